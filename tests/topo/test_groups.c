/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "base/error.h"
#include "tests/topo/places.h"

#define RANKS_MAX 512

/* "0 1|2 3": the ranks of each group. */
static void check_groups(const struct trib_groups *groups, const char *expected)
{
    char text[4096] = "";
    size_t n = 0;

    for (int g = 0; g < groups->n; g++)
        for (int i = groups->first[g]; i < groups->first[g + 1]; i++) {
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%d",
                                  i > groups->first[g] ? " "
                                  : g > 0              ? "|"
                                                       : "",
                                  groups->members[i]);
            assert_int_equal(groups->of_rank[groups->members[i]], g);
        }
    assert_string_equal(text, expected);
}

static void check(const struct trib_rank_place *places, int size, const char *kind,
                  const char *expected)
{
    struct trib_groups groups;

    assert_ok(trib_groups_make(places, size, kind, NULL, &groups));
    assert_int_equal(groups.size, size);
    check_groups(&groups, expected);
    trib_groups_free(&groups);
}

static void fill(struct trib_rank_place *places, int size, int per_host, int nics)
{
    for (int rank = 0; rank < size; rank++)
        places[rank] = place_of(rank, per_host, nics);
}

TEST(test_kinds)
{
    struct trib_rank_place places[16];

    fill(places, 16, 8, 2);
    check(places, 16, "host", "0 1 2 3 4 5 6 7|8 9 10 11 12 13 14 15");
    check(places, 16, "numa", "0 1|2 3|4 5|6 7|8 9|10 11|12 13|14 15");
    check(places, 16, "nic", "0 1 2 3|4 5 6 7|8 9 10 11|12 13 14 15");
    check(places, 1, "nic", "0");
}

/* Ranks that a launcher deals out in turn; names in another order than the ranks. */
TEST(test_order)
{
    struct trib_rank_place places[7];

    for (int rank = 0; rank < 7; rank++) {
        places[rank] = (struct trib_rank_place){.numa = -1};
        snprintf(places[rank].host, sizeof(places[rank].host), "n%d", 9 - rank % 3);
    }
    check(places, 7, "host", "0 3 6|1 4|2 5");
    struct trib_groups groups;
    assert_ok(trib_groups_make(places, 7, "host", NULL, &groups));
    assert_int_equal(groups.smallest, 2);
    assert_int_equal(groups.largest, 3);
    assert_int_equal(trib_groups_count(&groups, 0), 3);
    trib_groups_free(&groups);
    trib_groups_free(&groups);
}

static void check_auto(const struct trib_rank_place *places, int size, const char *kind,
                       int n)
{
    struct trib_groups groups;

    assert_ok(trib_groups_make(places, size, "auto", NULL, &groups));
    assert_string_equal(groups.kind->name, kind);
    assert_int_equal(groups.n, n);
    trib_groups_free(&groups);
}

TEST(test_auto)
{
    struct trib_rank_place places[16];

    fill(places, 16, 8, 2);
    check_auto(places, 16, "host", 2);
    check_auto(places, 8, "numa", 4);
    check_auto(places, 7, "host", 1); /* rank 6 is alone on its node */
    places[3].numa = -1;
    check_auto(places, 8, "host", 1); /* rank 3 is not bound to a node */
    fill(places, 16, 64, 2);
    check_auto(places, 16, "host", 1); /* all on one node */
}

/* A rank without a known place matters if other ranks of its host could be
 * elsewhere. */
TEST(test_unplaced)
{
    struct trib_rank_place places[17];
    struct trib_groups hosts;

    fill(places, 17, 8, 2); /* rank 16 is alone on its host */
    places[16].numa = -1;
    assert_ok(trib_groups_make(places, 17, "host", NULL, &hosts));
    assert_int_equal(trib_groups_unplaced(&hosts, places, "numa"), -1);
    places[9].numa = -1;
    assert_int_equal(trib_groups_unplaced(&hosts, places, "numa"), 9);
    assert_int_equal(trib_groups_unplaced(&hosts, places, "nic"), -1);
    places[4].nic[0] = '\0';
    assert_int_equal(trib_groups_unplaced(&hosts, places, "nic"), 4);
    assert_int_equal(trib_groups_unplaced(&hosts, places, "host"), -1);
    assert_int_equal(trib_groups_unplaced(&hosts, places, "auto"), -1);
    trib_groups_free(&hosts);
}

/* Every rank is in one group, with those alone that compare equal. */
TEST(test_partition)
{
    static struct trib_rank_place places[RANKS_MAX];

    for (int size = 1; size <= RANKS_MAX; size = size * 3 / 2 + 1) {
        for (int rank = 0; rank < size; rank++)
            places[rank] = place_of(rank * 7919 % RANKS_MAX, 24, 3);
        for (int k = 0; trib_group_kinds[k]; k++) {
            struct trib_groups groups;
            assert_ok(trib_groups_make(places, size, trib_group_kinds[k]->name, NULL,
                                       &groups));
            for (int a = 0; a < size; a++)
                for (int b = 0; b <= a; b++)
                    if ((groups.of_rank[a] == groups.of_rank[b]) !=
                        (trib_group_kinds[k]->compare(&places[a], &places[b]) == 0))
                        fail_msg("%d ranks by %s: %d and %d", size,
                                 trib_group_kinds[k]->name, a, b);
            trib_groups_free(&groups);
        }
    }
}

TEST(test_errors)
{
    struct trib_rank_place places[2] = {{.host = "a"}, {.host = "b"}};
    struct trib_groups groups;
    struct trib_error err = {0};

    assert_status(trib_groups_make(places, 2, "hsot", &err, &groups), TRIB_ERR_INVALID);
    assert_non_null(strstr(err.text, "did you mean \"host\"?"));
    trib_error_clear(&err);
    assert_status(trib_groups_make(places, 2, "colour", &err, &groups),
                  TRIB_ERR_INVALID);
    assert_non_null(strstr(err.text, "use one of auto, host, numa, nic"));
    trib_error_clear(&err);
    assert_status(trib_groups_make(places, 0, "auto", &err, &groups), TRIB_ERR_INVALID);
    trib_error_clear(&err);
    memset(places[1].nic, 'x', sizeof(places[1].nic));
    assert_status(trib_groups_make(places, 2, "auto", &err, &groups), TRIB_ERR_INVALID);
    assert_non_null(strstr(err.text, "rank 1 "));
}
