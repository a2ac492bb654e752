/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "collectives/collectives.h"

TEST(test_table)
{
    uint32_t colls = 0;

    for (size_t i = 0; trib_algos[i]; i++) {
        const struct trib_algo *a = trib_algos[i];

        assert_ptr_equal(trib_algo_find(a->name), a);
        assert_true(a->detail && a->detail[0]);
        assert_true(a->can && a->cost && a->build && a->colls);
        colls |= a->colls;
    }
    assert_int_equal(colls, (1 << TRIB_COLL_COUNT) - 1);
    assert_null(trib_algo_find("rings"));
    assert_null(trib_algo_find(""));
}

static const struct trib_shape_groups one_group = {1, 1, (const int[3]){0},
                                                   (const int[1]){0}, NULL};

/* A builder does as its row in the table claims. */
TEST(test_claims)
{
    for (size_t i = 0; trib_algos[i]; i++)
        for (int coll = 0; coll < TRIB_COLL_COUNT; coll++) {
            struct trib_shape shape = {.coll = (trib_coll_t)coll, .size = 3};
            struct trib_schedule s = {0};
            shape.aggregators = trib_algos[i] == trib_algo_find("service");
            shape.groups = &one_group;
            trib_status_t status = trib_algos[i]->build(&shape, &s);

            if (trib_algos[i]->colls & 1u << coll)
                assert_int_equal(status, TRIB_OK);
            else
                assert_int_equal(status, TRIB_ERR_UNSUPPORTED);
            trib_schedule_free(&s);
        }
}

TEST(test_can)
{
    const struct trib_shape wrong[] = {
        {.coll = TRIB_ALLREDUCE, .size = 0},
        {.coll = TRIB_ALLREDUCE, .rank = 4, .size = 4},
        {.coll = TRIB_ALLREDUCE, .rank = -1, .size = 4},
        {.coll = TRIB_REDUCE, .size = 4, .root = 4},
        {.coll = TRIB_REDUCE, .size = 4, .root = -1},
        {.coll = TRIB_COLL_COUNT, .size = 4},
        {.coll = TRIB_REDUCE, .op = TRIB_OP_COUNT, .size = 4},
    };
    struct trib_choice choice = {.bytes = 64};
    char why[200];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_false(trib_algos[0]->can(&wrong[i]));
        assert_null(trib_algo_choose(&wrong[i], &choice, why, sizeof(why)));
        assert_string_equal(why, "no algorithm can do it");
    }
}

static const char *chosen(trib_coll_t coll, int size, struct trib_choice choice)
{
    struct trib_shape shape = {.coll = coll, .size = size};
    char why[200] = "";
    const struct trib_algo *algo;

    if (!choice.slot_bytes)
        choice.slot_bytes = 64 << 10;
    algo = trib_algo_choose(&shape, &choice, why, sizeof(why));
    assert_non_null(algo);
    assert_int_equal(strncmp(why, algo->name, strlen(algo->name)), 0);
    assert_non_null(strstr(why, " us; "));
    return algo->name;
}

TEST(test_choice_within_reach)
{
    struct trib_choice c = {.load_store = true};

    for (int p = 2; p <= 8; p += 2) {
        c.bytes = 8;
        assert_string_equal(chosen(TRIB_ALLREDUCE, p, c), "flat");
        c.bytes = 512;
        assert_string_equal(chosen(TRIB_ALLREDUCE, p, c), "flat");
        c.bytes = 64 << 10;
        assert_string_equal(chosen(TRIB_ALLREDUCE, p, c), "direct");
        c.bytes = 64 << 20;
        assert_string_equal(chosen(TRIB_ALLREDUCE, p, c), "direct");
        c.bytes = 32 << 10;
        assert_string_equal(chosen(TRIB_BROADCAST, p, c), "flat");
    }
}

TEST(test_choice_on_network)
{
    struct trib_choice c = {.load_store = false};

    c.bytes = 8;
    assert_string_equal(chosen(TRIB_ALLREDUCE, 2, c), "flat");
    assert_string_equal(chosen(TRIB_ALLREDUCE, 256, c), "tree");
    c.bytes = 64 << 20;
    assert_string_not_equal(chosen(TRIB_ALLREDUCE, 8, c), "flat");
    assert_string_not_equal(chosen(TRIB_ALLREDUCE, 8, c), "tree");
    assert_string_equal(chosen(TRIB_BARRIER, 8, c), "dissemination");
}

/* Each contribution encoded once, each result once. */
TEST(test_choice_of_lossy)
{
    for (int sparse = 0; sparse < 2; sparse++)
        for (int reach = 0; reach < 2; reach++)
            for (size_t bytes = 8; bytes <= 64 << 20; bytes *= 8) {
                struct trib_choice c = {.bytes = bytes,
                                        .load_store = reach,
                                        .sparse = sparse,
                                        .lossy = true};

                assert_string_equal(chosen(TRIB_ALLREDUCE, 4, c), "direct");
            }
}

/* Selections: the algorithm that sends fewer encoded bytes of contributions and
 * results, or fewer messages where these are short. */
TEST(test_choice_of_selections)
{
    static const struct {
        double contribution, result; /* of the vector */
        int ranks;
        const char *name;
    } rows[] = {
        {0.0014, 0.0028, 2, "flat"}, /* top 0.1 % */
        {0.0007, 0.005, 4, "flat"}, /* the same with values of 8 bits, sums of 32 */
        {0.0014, 0.0014, 4, "direct"}, /* results that are selected */
        {0.0014, 0.01, 16, "direct"}, /* selections that overlap */
        {0.03, 0.9, 8, "flat"},
    };
    for (int reach = 0; reach < 2; reach++)
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
            struct trib_choice c = {.bytes = 64 << 20,
                                    .slot_bytes = 64 << 20,
                                    .load_store = reach,
                                    .sparse = true,
                                    .lossy = true,
                                    .contribution = rows[i].contribution,
                                    .result = rows[i].result};
            const double p = rows[i].ranks, up = rows[i].contribution;
            const double flat = (p - 1) * up,
                         direct = (p - 1) / p * (up + rows[i].result);

            char why[256];
            struct trib_shape sh = {.coll = TRIB_ALLREDUCE, .size = rows[i].ranks};
            trib_algo_choose(&sh, &c, why, 256);
            fprintf(stderr, "%d %zu %s\n", reach, i, why);
            assert_int_equal(flat < direct, strcmp(rows[i].name, "flat") == 0);
            assert_string_equal(chosen(TRIB_ALLREDUCE, rows[i].ranks, c), rows[i].name);
            c.slot_bytes = 4 << 10; /* encoded chunks of some bytes each */
            if (up < 0.001)
                assert_string_equal(chosen(TRIB_ALLREDUCE, 4, c), "direct");
        }
}

/* Pairs: few bytes and many ranks by doubling, many bytes at the owner of each chunk,
 * and never by an algorithm that rounds partial sums. */
TEST(test_choice_of_pairs)
{
    static const struct {
        double contribution, result; /* of a vector of 1 MiB */
        int ranks;
        bool load_store, one_host;
        const char *name;
    } rows[] = {
        {0.0015, 0.012, 8, false, false, "doubling"},
        {0.0015, 0.023, 16, false, false, "doubling"},
        {0.0015, 0.023, 16, true, true, "flat"},
        {0.0015, 0.003, 2, false, false, "flat"},
        {0.02, 0.24, 16, false, false, "direct"},
        {0.15, 0.8, 8, false, true, "direct"},
        {1, 1, 16, true, true, "direct"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct trib_choice c = {.bytes = 1 << 20,
                                      .load_store = rows[i].load_store,
                                      .one_host = rows[i].one_host,
                                      .oversubscribed = rows[i].one_host,
                                      .contribution = rows[i].contribution,
                                      .result = rows[i].result,
                                      .pairs = true};
        struct trib_shape shape = {
            .coll = TRIB_ALLREDUCE, .size = rows[i].ranks, .pairs = true};
        char why[200];
        const struct trib_algo *a = trib_algo_choose(&shape, &c, why, sizeof(why));

        assert_non_null(a);
        if (strcmp(a->name, rows[i].name) != 0)
            fail_msg("row %zu: %s", i, why);
        shape.pairs = false; /* dense sums are never merged so */
        assert_false(trib_algo_find("doubling")->can(&shape));
    }
}

/* If ranks wait for a core, one hop is worth many bytes. */
TEST(test_choice_oversubscribed)
{
    struct trib_choice c = {.bytes = 8 << 10, .load_store = true};

    assert_string_equal(chosen(TRIB_ALLREDUCE, 4, c), "direct");
    c.oversubscribed = true;
    assert_string_equal(chosen(TRIB_ALLREDUCE, 4, c), "flat");
}

/* ... but over a network's way on one host each message costs a switch: few
 * messages. */
TEST(test_choice_shared_cores)
{
    struct trib_choice c = {.bytes = 8, .oversubscribed = true};

    assert_string_equal(chosen(TRIB_ALLREDUCE, 4, c), "flat");
    c.one_host = true;
    assert_string_equal(chosen(TRIB_ALLREDUCE, 4, c), "tree");
    c.bytes = 32 << 10;
    assert_string_equal(chosen(TRIB_ALLREDUCE, 4, c), "tree");
    for (int p = 3; p <= 16; p++) /* equal bytes, fewer peers */
        for (c.bytes = 1 << 20; c.bytes <= 256 << 20; c.bytes *= 4)
            assert_string_equal(chosen(TRIB_ALLREDUCE, p, c), "tree");
    c.oversubscribed = false; /* a core each: all of them work at once */
    assert_string_not_equal(chosen(TRIB_ALLREDUCE, 4, c), "tree");
    c.oversubscribed = c.lossy = true; /* one merge: each would add noise */
    c.bytes = 32 << 10;
    assert_string_equal(chosen(TRIB_ALLREDUCE, 4, c), "direct");
}

/* Links that are the limit: a ring alone keeps all of them busy. */
TEST(test_choice_slow_links)
{
    struct trib_cost_model network = {
        .hop_us = 30, .message_us = 5, .wire_Bps = 1.2e8, .sum_Bps = 1e10};
    struct trib_choice c = {.bytes = 64 << 20, .network = &network};

    assert_string_equal(chosen(TRIB_ALLREDUCE, 4, c), "ring");
    assert_string_equal(chosen(TRIB_ALLREDUCE, 8, c), "ring");
    c.lossy = true; /* each hop would encode */
    assert_string_equal(chosen(TRIB_ALLREDUCE, 4, c), "direct");
    c.lossy = false;
    c.bytes = 4096; /* many hops */
    assert_string_not_equal(chosen(TRIB_ALLREDUCE, 8, c), "ring");
    c.bytes = 64 << 20;
    network.wire_Bps = 1.2e9; /* processors are the limit */
    assert_string_equal(chosen(TRIB_ALLREDUCE, 4, c), "direct");
    network.wire_Bps = 1.2e8;
    c.one_host = true;
    assert_string_equal(chosen(TRIB_ALLREDUCE, 4, c), "direct");
}

TEST(test_alone)
{
    for (int coll = 0; coll < TRIB_COLL_COUNT; coll++) {
        struct trib_shape shape = {
            .coll = (trib_coll_t)coll, .op = TRIB_MEAN, .size = 1};
        struct trib_choice choice = {.bytes = 64};
        const struct trib_algo *algo = trib_algo_choose(&shape, &choice, NULL, 0);
        struct trib_schedule s = {0};

        assert_non_null(algo);
        assert_int_equal(algo->build(&shape, &s), TRIB_OK);
        assert_int_equal(s.n_steps, coll != TRIB_BARRIER && coll != TRIB_EXSCAN);
        if (s.n_steps == 1)
            assert_int_equal(s.steps[0].op, TRIB_STEP_COPY);
        trib_schedule_free(&s);
    }
}

/* Algorithms whose rounds wait for the contributions of all peers are slow over a long
 * link. */
TEST(test_choice_over_a_long_link)
{
    struct trib_choice dense = {
        .bytes = 25 << 20, .slot_bytes = 65536, .delay_us = 20000};
    struct trib_choice c = {.bytes = 25 << 20,
                            .slot_bytes = 323840,
                            .sparse = true,
                            .lossy = true,
                            .contribution = 0.0125,
                            .result = 0.025};

    assert_string_equal(chosen(TRIB_ALLREDUCE, 2, c), "flat");
    c.delay_us = 20000;
    assert_string_not_equal(chosen(TRIB_ALLREDUCE, 2, c), "flat");
    assert_string_not_equal(chosen(TRIB_ALLREDUCE, 2, dense), "flat");
    c.bytes = 100000; /* one round: one way there, and nothing back */
    assert_string_equal(chosen(TRIB_ALLREDUCE, 2, c), "flat");
}

/* Return the most ranks that send to one rank on a lane, by the lists of all ranks. */
static uint32_t senders_of(const struct trib_algo *algo, struct trib_shape shape,
                           int lane)
{
    uint32_t most = 0;

    for (int r = 0; r < shape.size + shape.aggregators; r++) {
        struct trib_schedule s = {0};
        bool sends[64] = {false};
        uint32_t n = 0;

        shape.rank = r;
        assert_ok(algo->build(&shape, &s));
        for (uint32_t i = 0; i < s.n_steps; i++) {
            const struct trib_step *step = &s.steps[i];
            const bool receives =
                step->op == TRIB_STEP_RECV_REDUCE || step->op == TRIB_STEP_RECV_COPY;
            if (!receives || step->lane != lane || sends[step->peer])
                continue;
            sends[step->peer] = true;
            n++;
        }
        most = n > most ? n : most;
        trib_schedule_free(&s);
    }
    return most;
}

/* An algorithm states how many ranks send to one, or these are few. */
TEST(test_senders)
{
    enum { FEW = 8 };

    for (size_t i = 0; trib_algos[i]; i++)
        for (int coll = 0; coll < TRIB_COLL_COUNT; coll++)
            for (int size = 2; size <= 32; size *= 4) {
                const struct trib_algo *a = trib_algos[i];
                struct trib_shape shape = {.coll = (trib_coll_t)coll, .size = size};
                shape.aggregators = a->aggregators ? 3 : 0;
                if (!(a->colls & 1u << coll) || a->groups || !a->can(&shape) ||
                    strcmp(a->name, "barrier") == 0 || strcmp(a->name, "pairwise") == 0)
                    continue;
                for (int lane = 0; lane < TRIB_LANES; lane++) {
                    const uint32_t said = trib_algo_senders(a, &shape, lane);
                    const uint32_t are = senders_of(a, shape, lane);
                    if (a->senders ? said < are && are > 1 : are > FEW)
                        fail_msg("%s, %s of %d: %u ranks send to one, not %u", a->name,
                                 trib_coll_name(shape.coll), size, are, said);
                }
            }
}
