/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "base/error.h"
#include "tests/harness/rng_draw.h"
#include "tests/harness/group_text.h"
#include "topo/racks/agg_groups.h"

enum { NAMES_MAX = 64, TEXT_BYTES = 8192 };

static void check(const char *racks_text, const char *aggregators, const char *ranks,
                  const char *expected)
{
    const struct trib_racks_source source = {"test", racks_text, strlen(racks_text),
                                             NULL, 0};
    const char *aggregator_names[NAMES_MAX], *rank_names[NAMES_MAX];
    char aggregator_text[256], rank_text[256], text[TEXT_BYTES] = "";
    struct trib_racks *racks = NULL;
    struct trib_places places;
    struct trib_agg_groups groups;

    snprintf(aggregator_text, sizeof(aggregator_text), "%s", aggregators);
    snprintf(rank_text, sizeof(rank_text), "%s", ranks);
    const int n_aggregators = group_text_split(aggregator_text, aggregator_names);
    const int n = group_text_split(rank_text, rank_names);
    assert_ok(trib_racks_parse(&source, NULL, &racks));
    assert_ok(trib_places_of_racks(racks, aggregator_names, n_aggregators, rank_names,
                                   n, &places));
    assert_ok(trib_agg_groups_make(&places, NULL, &groups));
    const struct group_text u = {groups.n,           n,
                                 groups.parent,      groups.first,
                                 groups.aggregators, groups.of_rank,
                                 aggregator_names};
    group_text_append(&u, 0, text);
    assert_string_equal(text, expected);
    trib_agg_groups_free(&groups);
    trib_agg_groups_free(&groups);
    trib_places_free(&places);
    trib_places_free(&places);
    trib_racks_free(racks);
}

#define RACKS "r1: a1 a2 a3 s1\nr2: b1 b2 s2 t2\nr3: c1 c2\n"

TEST(test_roots)
{
    check(RACKS, "s1 s2 x y", "a1 a2 b1 b1", "x,y (s1:2) (s2:2)");
    check(RACKS, "x s2 t2 s1", "a1 a2 b1 b1", "x (s1:2) (s2,t2:2)");
    /* neither a rack without an aggregator nor a host without a rack has one nearer
     * than the root */
    check(RACKS, "s1 s2 x", "a1 b1 c1 login", "x:2 (s1:1) (s2:1)");
    check(RACKS, "x y", "a1 b1 c1", "x,y:3");
    check(RACKS, "x", "a1.cluster.org b1", "x:2");
    check(RACKS, "s1.cluster.org s2 x", "a1.cluster.org b1",
          "x (s1.cluster.org:1) (s2:1)");
}

/* Aggregators in racks alone are the root, too. */
TEST(test_racks_alone)
{
    check(RACKS, "s1 s2", "a1 a2 b1", "s1,s2 (s1:2) (s2:1)");
    check(RACKS, "s1 s2 t2", "a1 a2 b1 c1", "s1,s2,t2:1 (s1:2) (s2,t2:1)");
}

/* A group that would have nothing to sum has no part. */
TEST(test_left_out)
{
    check(RACKS, "s1 s2 x", "a1 a2 a3", "s1:3");
    check(RACKS, "s1 s2 t2", "b1 b2", "s2,t2:2");
    check(RACKS, "s1 s2", "a1 c1", "s1:1 (s1:1)");
    check(RACKS, "s1 s2 x", "c1 c2", "x:2");
    check(RACKS, "s1 s2", "c1 login", "s1,s2:2");
    check(RACKS, "s1", "c1 a1", "s1:1 (s1:1)");
}

static const char pods[] =
    "SwitchName=p1 Switches=r1,r2 Nodes=q1\nSwitchName=p2 Switches=r3,r4 Nodes=q2\n"
    "SwitchName=c Switches=p[1-2]\nSwitchName=r1 Nodes=a[1-2],s1\nSwitchName=r2 "
    "Nodes=b[1-2],s2\n"
    "SwitchName=r3 Nodes=c1,s3\nSwitchName=r4 Nodes=d1,s4\n";

/* The tree is as deep as there are switches with aggregators. */
TEST(test_depth)
{
    check(pods, "x s1 s2 s3 q1 q2", "a1 b1 b2 c1 d1",
          "x (q1 (s1:1) (s2:2)) (q2:1 (s3:1))");
    check(pods, "s1 s2 s3 s4 q1 q2", "a1 b1 c1 d1",
          "q1,q2 (q1 (s1:1) (s2:1)) (q2 (s3:1) (s4:1))");
    check(pods, "x s1 s2 s3 q1 q2", "a1 b1 c1", "x (q1 (s1:1) (s2:1)) (s3:1)");
    check(pods, "x s1 s2 s3 q1 q2", "a1 b1", "q1 (s1:1) (s2:1)");
    check(pods, "s1 q1", "a1 b1", "q1:1 (s1:1)");
}

/* Properties of all groups. */
static void check_groups(const struct trib_places *p, const struct trib_agg_groups *u)
{
    int in_root[NAMES_MAX] = {0}, below[NAMES_MAX] = {0}, has[NAMES_MAX + 1] = {0};

    assert_true(u->n >= 1 && u->first[0] == 0);
    for (int r = 0; r < p->ranks; r++) {
        assert_true(u->of_rank[r] >= 0 && u->of_rank[r] < u->n);
        has[u->of_rank[r]]++;
    }
    for (int v = 1; v < u->n; v++) {
        assert_true(u->parent[v] >= 0 && u->parent[v] < v);
        has[u->parent[v]]++;
        for (int i = u->first[v]; i < u->first[v + 1]; i++) {
            assert_int_equal(below[u->aggregators[i]]++, 0);
            assert_true(p->of_aggregator[u->aggregators[i]] ==
                        p->of_aggregator[u->aggregators[u->first[v]]]);
        }
    }
    for (int i = 0; i < u->first[1]; i++)
        in_root[u->aggregators[i]]++;
    for (int v = 0; v < u->n; v++) {
        assert_true(has[v] > 0 && u->first[v] < u->first[v + 1]);
        for (int i = u->first[v]; v > 0 && i < u->first[v + 1]; i++)
            assert_true(!in_root[u->aggregators[i]] || u->parent[v] == 0);
    }
    for (int i = 0; i < p->aggregators; i++)
        assert_true(in_root[i] <= 1);
}

TEST(test_random)
{
    for (uint32_t round = 0; round < 3000; round++) {
        struct trib_rng rng = {.seed = 7, .step = round};
        struct trib_places p;
        struct trib_agg_groups u;
        const int n = (int)(draw_u32(rng, 0) % 20),
                  aggregators = 1 + (int)(draw_u32(rng, 1) % 30),
                  ranks = 1 + (int)(draw_u32(rng, 2) % 60);
        uint64_t at = 3;

        assert_ok(trib_places_make(n, aggregators, ranks, &p));
        for (int i = 1; i < n; i++) /* parents may come before and after */
            p.above[i] = (int)(draw_u32(rng, at++) % (uint32_t)(i + 1)) - 1;
        for (int i = 0; i < aggregators && n > 0; i++)
            p.of_aggregator[i] =
                (int)(draw_u32(rng, at++) % (uint32_t)(n + round % 2)) -
                (int)(round % 2);
        for (int i = 0; i < ranks && n > 0; i++)
            p.of_rank[i] = (int)(draw_u32(rng, at++) % (uint32_t)(n + 1)) - 1;
        assert_ok(trib_agg_groups_make(&p, NULL, &u));
        check_groups(&p, &u);
        trib_agg_groups_free(&u);
        trib_places_free(&p);
    }
}

TEST(test_errors)
{
    struct trib_error err = {0};
    struct trib_places p;
    struct trib_agg_groups u;

    assert_ok(trib_places_make(0, 0, 1, &p));
    assert_status(trib_agg_groups_make(&p, &err, &u), TRIB_ERR_INVALID);
    assert_non_null(strstr(err.text, "at least one"));
    trib_places_free(&p);
}
