/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "agg/jobs/drr.h"
#include "base/rng.h"

#define ONE TRIB_DRR_WEIGHT_ONE
#define TURN 65536
#define MEMBERS 5

struct client {
    struct trib_drr_member member; /* first */
    uint64_t chunk;                  /* it uses whole chunks */
    uint64_t greed;                  /* chunks beyond its budget */
    uint64_t had;
    uint64_t turns;
};

static struct client *as_client(struct trib_drr_member *member)
{
    return (struct client *)(void *)member;
}

/* Take one turn: whole chunks until the budget is used, then `greed` more. */
static struct client *serve(struct trib_drr *share, bool more)
{
    uint64_t budget = 0, used = 0;
    struct client *c = as_client(trib_drr_next(share, &budget));

    assert_non_null(c);
    assert_true(budget > 0);
    while (used < budget)
        used += c->chunk;
    used += c->greed * c->chunk;
    c->had += used;
    c->turns++;
    trib_drr_charge(share, used, more);
    return c;
}

static void prepare(struct trib_drr *share, struct client *clients, int n)
{
    trib_drr_init(share, TURN);
    for (int i = 0; i < n; i++) {
        if (!clients[i].member.weight)
            trib_drr_set_weight(&clients[i].member, ONE);
        trib_drr_activate(share, &clients[i].member);
    }
}

TEST(test_turns_go_round)
{
    struct client c[3] = {{.chunk = 1024}, {.chunk = 1024}, {.chunk = 1024}};
    struct trib_drr share;

    prepare(&share, c, 3);
    for (int i = 0; i < 9; i++) {
        trib_drr_activate(&share, &c[i % 2].member); /* they are already in the ring */
        assert_ptr_equal(serve(&share, true), &c[i % 3]);
    }
    assert_int_equal(c[0].had, 3 * TURN);
}

TEST(test_nobody)
{
    struct client c = {.chunk = 4096};
    struct trib_drr share;
    uint64_t budget;

    trib_drr_init(&share, TURN);
    assert_null(trib_drr_next(&share, &budget));
    trib_drr_set_weight(&c.member, ONE);
    trib_drr_remove(&share, &c.member); /* it was never in the ring */
    trib_drr_activate(&share, &c.member);
    assert_ptr_equal(serve(&share, false), &c);
    assert_null(trib_drr_next(&share, &budget));
    trib_drr_activate(&share, &c.member);
    trib_drr_remove(&share, &c.member);
    assert_null(trib_drr_next(&share, &budget));
}

/* Between any two moments, the shares per weight differ by at most a turn and a chunk
 * of each. */
static void assert_fair(const struct client *c, const uint64_t *before, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double wi = (double)c[i].member.weight / ONE,
                   wj = (double)c[j].member.weight / ONE;
            double gap = (double)(c[i].had - before[i]) / wi -
                         (double)(c[j].had - before[j]) / wj;
            double over_i = (double)((c[i].greed + 1) * c[i].chunk) / wi;
            double over_j = (double)((c[j].greed + 1) * c[j].chunk) / wj;
            if (gap > 2 * TURN + over_i + over_j)
                fail_msg("%d is ahead of %d by %.0f", i, j, gap);
        }
}

TEST(test_fair_with_weights)
{
    /* The second always exceeds its budget by 20 chunks; the third has chunks of many
     * turns. */
    struct client c[MEMBERS] = {
        {.chunk = 4096},
        {.chunk = 16384, .greed = 20},
        {.chunk = 16 * TURN},
        {.chunk = 100, .member.weight = 3 * ONE},
        {.chunk = 8192, .member.weight = ONE / 4},
    };
    struct trib_drr share;
    struct trib_rng rng = {.seed = 5};
    double sum = 0;

    prepare(&share, c, MEMBERS);
    for (int window = 0; window < 300; window++) {
        uint64_t before[MEMBERS];
        uint32_t turns = 1 + trib_rng_draw4(rng, (uint64_t)window).word[0] % 500;
        for (int i = 0; i < MEMBERS; i++)
            before[i] = c[i].had;
        for (uint32_t t = 0; t < turns; t++) {
            serve(&share, true);
            assert_fair(c, before, MEMBERS);
        }
    }
    for (int i = 0; i < MEMBERS; i++)
        sum += (double)c[i].had;
    for (int i = 0; i < MEMBERS; i++) {
        double due = c[i].member.weight / (6.25 * ONE);
        double share_of = (double)c[i].had / sum;
        printf("# weight %.2f, chunks of %llu, %llu more: %.4f of all, due %.4f\n",
               (double)c[i].member.weight / ONE, (unsigned long long)c[i].chunk,
               (unsigned long long)c[i].greed, share_of, due);
        assert_true(share_of > 0.99 * due && share_of < 1.01 * due);
    }
}

/* A job that uses much, leaves and returns still has its debt. */
TEST(test_debts_stay)
{
    struct client c[2] = {{.chunk = 4096}, {.chunk = 4096, .greed = 100}};
    struct trib_drr share;

    prepare(&share, c, 2);
    for (int i = 0; i < 20000; i++) {
        if (serve(&share, true) != &c[1])
            continue;
        trib_drr_remove(&share, &c[1].member);
        trib_drr_activate(&share, &c[1].member);
    }
    assert_true(c[1].had < c[0].had + c[0].had / 50);
    assert_true(c[1].had > c[0].had - c[0].had / 50);
}

/* A job that was idle for long then gets as many turns as others, and is served within
 * a round. */
TEST(test_idleness_saves_nothing)
{
    struct client c[3] = {{.chunk = 4096}, {.chunk = 4096}, {.chunk = 4096}};
    struct trib_drr share;

    prepare(&share, c, 3);
    trib_drr_remove(&share, &c[2].member);
    for (int i = 0; i < 1000; i++)
        serve(&share, true);
    trib_drr_activate(&share, &c[2].member);
    for (int i = 0; i < 3; i++)
        serve(&share, true);
    assert_int_equal(c[2].turns, 1);
    for (int i = 0; i < 300; i++)
        serve(&share, true);
    assert_int_equal(c[2].turns, 101);
}

/* A single job pays nothing: its debt to others is cancelled. */
TEST(test_alone)
{
    struct client c = {.chunk = TURN * 1000};
    struct trib_drr share;

    prepare(&share, &c, 1);
    for (int i = 0; i < 100; i++)
        assert_ptr_equal(serve(&share, true), &c);
}

/* A turn without possible work is no credit for the next. */
TEST(test_what_is_left_is_lost)
{
    struct client c[2] = {{.chunk = 4096}, {.chunk = 4096}};
    struct trib_drr share;
    uint64_t budget;

    prepare(&share, c, 2);
    for (int i = 0; i < 10; i++) {
        assert_ptr_equal(trib_drr_next(&share, &budget), &c[0].member);
        assert_int_equal(budget, TURN);
        trib_drr_charge(&share, 0, true);
        serve(&share, true);
    }
}

/* However much a client claims to have used, nothing overflows, and the others
 * continue. */
TEST(test_absurd_claims)
{
    struct client c[2] = {{.chunk = 4096}, {.chunk = 4096}};
    struct trib_drr share;
    uint64_t budget;

    prepare(&share, c, 2);
    trib_drr_set_weight(&c[1].member, 2 * ONE);
    for (int i = 0; i < 100; i++) {
        struct client *turn = as_client(trib_drr_next(&share, &budget));
        turn->turns++;
        trib_drr_charge(&share, UINT64_MAX, true);
        assert_true(turn->member.deficit < 0);
    }
    assert_in_range(c[1].turns, 2 * c[0].turns - 2, 2 * c[0].turns + 2);
}
