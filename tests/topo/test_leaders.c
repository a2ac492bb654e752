/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "base/error.h"
#include "tests/topo/places.h"
#include "topo/leaders.h"

#define RANKS_MAX 64

static void make(struct trib_rank_place *places, int size, int per_host, int nics,
                 struct trib_groups *groups)
{
    for (int rank = 0; rank < size; rank++)
        places[rank] = place_of(rank, per_host, nics);
    assert_ok(trib_groups_make(places, size, "host", NULL, groups));
}

/* "0 4|8 12": the leaders of each group. */
static void check(const struct trib_groups *groups,
                  const struct trib_rank_place *places, int n, const char *expected)
{
    struct trib_leaders leaders;
    char text[1024] = "";
    size_t at = 0;

    assert_ok(trib_leaders_appoint(groups, places, n, NULL, &leaders));
    assert_int_equal(leaders.n, n);
    for (int i = 0; i < groups->n * n; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%d",
                               i == 0       ? ""
                               : i % n == 0 ? "|"
                                            : " ",
                               leaders.rank[i]);
    assert_string_equal(text, expected);
    trib_leaders_free(&leaders);
    trib_leaders_free(&leaders);
}

TEST(test_spread)
{
    struct trib_rank_place places[RANKS_MAX];
    struct trib_groups groups;

    make(places, 16, 8, 0, &groups);
    check(&groups, places, 1, "0|8");
    check(&groups, places, 2, "0 4|8 12"); /* packages */
    check(&groups, places, 4, "0 4 2 6|8 12 10 14"); /* NUMA nodes */
    check(&groups, places, 8, "0 4 2 6 1 5 3 7|8 12 10 14 9 13 11 15");
    trib_groups_free(&groups);
}

/* Leader l is near device l, on each host. */
TEST(test_devices)
{
    struct trib_rank_place places[RANKS_MAX];
    struct trib_groups groups;

    make(places, 16, 8, 2, &groups);
    check(&groups, places, 2, "0 4|8 12");
    check(&groups, places, 4, "0 4 2 6|8 12 10 14");
    for (int rank = 8; rank < 16;
         rank++) /* the second host counts them the other way */
        snprintf(places[rank].nic, sizeof(places[rank].nic), "mlx5_%d", rank < 12);
    check(&groups, places, 2, "0 4|12 8");
    for (int rank = 0; rank < 8; rank++)
        snprintf(places[rank].nic, sizeof(places[rank].nic), "mlx5_%d",
                 rank < 4 ? 10 : 9);
    check(&groups, places, 2, "4 0|12 8"); /* 9 before 10 */
    trib_groups_free(&groups);
}

/* A device whose ranks all lead already: others take its turn. */
TEST(test_few_ranks_near)
{
    struct trib_rank_place places[RANKS_MAX];
    struct trib_groups groups;

    make(places, 8, 8, 1, &groups);
    snprintf(places[0].nic, sizeof(places[0].nic), "mlx5_1");
    check(&groups, places, 4, "1 0 4 6"); /* 6 is not near mlx5_1 */
    trib_groups_free(&groups);
}

TEST(test_all_ranks_lead)
{
    struct trib_rank_place places[RANKS_MAX];

    for (int per_host = 1; per_host <= 32; per_host++) {
        struct trib_groups groups;
        struct trib_leaders leaders;
        bool seen[RANKS_MAX] = {false};
        make(places, 2 * per_host, per_host, per_host % 5, &groups);
        assert_ok(trib_leaders_appoint(&groups, places, per_host, NULL, &leaders));
        for (int i = 0; i < 2 * per_host; i++) {
            assert_int_equal(groups.of_rank[leaders.rank[i]], i / per_host);
            assert_false(seen[leaders.rank[i]]);
            seen[leaders.rank[i]] = true;
        }
        trib_leaders_free(&leaders);
        trib_groups_free(&groups);
    }
}

TEST(test_too_many)
{
    struct trib_rank_place places[RANKS_MAX];
    struct trib_groups groups;
    struct trib_leaders leaders;
    struct trib_error err = {0};

    make(places, 13, 8, 0, &groups);
    assert_status(trib_leaders_appoint(&groups, places, 6, &err, &leaders),
                  TRIB_ERR_INVALID);
    assert_non_null(strstr(err.text, "the group of rank 8 (by host) has 5 ranks"));
    trib_error_clear(&err);
    assert_status(trib_leaders_appoint(&groups, places, 0, &err, &leaders),
                  TRIB_ERR_INVALID);
    trib_groups_free(&groups);
}

TEST(test_ask)
{
    struct trib_rank_place places[RANKS_MAX];
    struct trib_groups groups;
    struct trib_leaders_ask ask;

    make(places, 13, 8, 4, &groups);
    trib_leaders_ask_of(&groups, places, &ask);
    assert_int_equal(ask.groups, 2);
    assert_int_equal(ask.smallest, 5);
    assert_int_equal(ask.largest, 8);
    assert_int_equal(ask.nics, 3); /* the fourth is near none of the 5 ranks */
    places[9].nic[0] = places[8].nic[0] = '\0';
    trib_leaders_ask_of(&groups, places, &ask);
    assert_int_equal(ask.nics, 2);
    trib_groups_free(&groups);
}

/* The traffic of a host's one link does not depend on how many leaders share it; their
 * sums do. Each term is counted by hand here. */
TEST(test_cost)
{
    static const struct trib_cost_model inside = {.wire_Bps = 1e9, .sum_Bps = 1e9};
    static const struct trib_cost_model link = {.wire_Bps = 1e9, .sum_Bps = 1e30};
    struct trib_leaders_ask ask = {.groups = 4,
                                   .smallest = 8,
                                   .largest = 8,
                                   .nics = 1,
                                   .bytes = 8000,
                                   .inside = &inside,
                                   .between = &link};

    /* each way 7 shards, and 8 of them summed; each way 3 of 4 parts of a shard */
    assert_int_equal(trib_leaders_us(&ask, 1) + 0.5, 2 * 56 + 64 + 2 * 6);
    assert_int_equal(trib_leaders_us(&ask, 4) + 0.5, 2 * 14 + 16 + 2 * 6);
    ask.nics = 4;
    assert_int_equal(trib_leaders_us(&ask, 4) * 10 + 0.5, 20 * 14 + 160 + 2 * 15);
    ask.cores = 2; /* leaders take turns */
    assert_int_equal(trib_leaders_us(&ask, 4) * 10 + 0.5, 20 * 14 + 320 + 2 * 15);
    ask.groups = 1;
    assert_int_equal(trib_leaders_us(&ask, 8) + 0.5, 2 * 8 + 8 * 4);
    ask.largest = ask.smallest = 1;
    assert_int_equal(trib_leaders_us(&ask, 1), 0);
}

TEST(test_choose)
{
    struct trib_leaders_ask ask = {
        .groups = 4, .smallest = 16, .largest = 16, .nics = 1, .bytes = 64 << 20};

    int one_link = trib_leaders_choose(&ask);
    assert_in_range(one_link, 2, 15);
    ask.bytes = 64; /* messages are all that counts */
    assert_int_equal(trib_leaders_choose(&ask), 1);
    ask.bytes = 64 << 20;
    for (int nics = 2; nics <= 8; nics++) {
        ask.nics = nics;
        int n = trib_leaders_choose(&ask);
        assert_in_range(n, nics, 16);
        assert_int_equal(n % nics, 0);
    }
    ask.nics = 8;
    ask.smallest = 3;
    assert_int_equal(trib_leaders_choose(&ask), 3);
    ask.nics = 0;
    ask.smallest = 1;
    assert_int_equal(trib_leaders_choose(&ask), 1);
}

/* On a core that all ranks of a host share, more leaders do not sum faster. */
TEST(test_choose_cores)
{
    struct trib_leaders_ask ask = {
        .groups = 2, .smallest = 8, .largest = 8, .bytes = 64 << 20, .cores = 8};
    int many = trib_leaders_choose(&ask);

    struct trib_cost_model slow = *trib_cost_default(TRIB_COST_LOAD_STORE);
    slow.wire_Bps = 1e30; /* inside a group only summing costs time */
    slow.sum_Bps = 1e8;
    ask.inside = &slow;
    ask.cores = 1;
    assert_int_equal(trib_leaders_choose(&ask), 1);
    ask.cores = 8;
    assert_int_equal(trib_leaders_choose(&ask), 8);
    assert_in_range(many, 2, 8);
}

/* If more ranks than cores exchange short vectors, a notified rank must first get a
 * core. */
TEST(test_choose_crowded)
{
    struct trib_leaders_ask ask = {
        .groups = 2, .smallest = 4, .largest = 4, .bytes = 64 << 10, .cores = 4};

    assert_true(trib_leaders_choose(&ask) > 1);
    ask.cores = 2;
    assert_int_equal(trib_leaders_choose(&ask), 1);
    ask.bytes = 4 << 10; /* measured: each additional leader costs 0.05 to 0.15 ms */
    assert_int_equal(trib_leaders_choose(&ask), 1);
    for (int n = 1; n < 4; n++)
        assert_in_range(trib_leaders_us(&ask, n + 1) - trib_leaders_us(&ask, n), 50,
                        150);
    ask.bytes = 64 << 20;
    assert_true(trib_leaders_choose(&ask) > 1);
}
