/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of the simulator: valid schedules are broken, one property at a time, and it
 * must name each defect.
 */
#include "tests/harness/tribtest.h"

#include "tests/harness/simschedule.h"

#define SEEDS 60

static struct trib_sim sim_of(const char *algo, trib_coll_t coll, int size)
{
    struct trib_shape shape = {.coll = coll, .op = TRIB_SUM, .size = size};
    struct trib_sim sim = {.count = 40, .rounds = 3, .slots = 3, .window = 3};

    assert_true(trib_sim_build(&sim, trib_algo_find(algo), &shape));
    assert_true(trib_sim_prove(&sim));
    assert_true(trib_sim_run(&sim));
    return sim;
}

static void expect_why(const struct trib_sim *sim, const char *why)
{
    if (!strstr(sim->why, why))
        fail_msg("expected \"%s\", got \"%s\"", why, sim->why);
}

static void proof_fails(struct trib_sim *sim, const char *why)
{
    assert_false(trib_sim_prove(sim));
    expect_why(sim, why);
    trib_sim_free(sim);
}

/* Some order of steps must show the fault. */
static void some_run_fails(struct trib_sim *sim, const char *why)
{
    bool failed = false;

    for (sim->seed = 0; sim->seed < SEEDS && !failed; sim->seed++) {
        sim->in_place = sim->seed % 2;
        failed = !trib_sim_run(sim);
    }
    assert_true(failed);
    expect_why(sim, why);
    trib_sim_free(sim);
}

/* The n-th step of a kind in a rank's list. */
static uint32_t find(const struct trib_sim *sim, int rank, enum trib_step_op op,
                     uint32_t n)
{
    const struct trib_schedule *s = &sim->lists[rank];

    for (uint32_t i = 0; i < s->n_steps; i++)
        if (s->steps[i].op == op && n-- == 0)
            return i;
    fail_msg("rank %d has no such step", rank);
    return 0;
}

/* The last step of a list never happens. */
static void drop_last(struct trib_sim *sim, int rank)
{
    sim->lists[rank].n_steps--;
}

TEST(test_unconsumed)
{
    struct trib_sim sim = sim_of("direct", TRIB_ALLREDUCE, 4);

    drop_last(&sim, 2);
    assert_false(trib_sim_run(&sim));
    expect_why(&sim, "is never received");
    proof_fails(&sim, "is never received");
}

TEST(test_unsent)
{
    struct trib_sim sim = sim_of("flat", TRIB_REDUCE, 3);

    drop_last(&sim, 1);
    proof_fails(&sim, "is never sent");
}

TEST(test_order_on_lane)
{
    struct trib_sim sim = sim_of("ring", TRIB_ALLREDUCE, 4);
    uint32_t a = find(&sim, 1, TRIB_STEP_SEND, 0);
    uint32_t b = find(&sim, 1, TRIB_STEP_SEND, 1);
    struct trib_step *steps = sim.lists[1].steps;
    uint32_t chunk = steps[a].chunk;

    steps[a].chunk = steps[b].chunk;
    steps[b].chunk = chunk;
    proof_fails(&sim, "meets a receive of another chunk");
}

TEST(test_kind_on_lane)
{
    struct trib_sim sim = sim_of("flat", TRIB_BROADCAST, 2);
    uint32_t a = find(&sim, 1, TRIB_STEP_RECV_COPY, 0);

    sim.lists[1].steps[a].flags = 0;
    proof_fails(&sim, "meets a receive of another kind");
}

TEST(test_missing_dep)
{
    for (int run = 0; run < 2; run++) {
        struct trib_sim sim = sim_of("ring", TRIB_ALLREDUCE, 5);

        sim.lists[3].steps[find(&sim, 3, TRIB_STEP_SEND, 2)].dep = TRIB_STEP_NO_DEP;
        if (run)
            some_run_fails(&sim, "");
        else
            proof_fails(&sim, "may run before an earlier step");
    }
}

/* Flat: the sum may overwrite a contribution that is still to be sent. */
TEST(test_write_before_send)
{
    for (int run = 0; run < 2; run++) {
        struct trib_sim sim = sim_of("flat", TRIB_ALLREDUCE, 4);

        sim.lists[0].steps[find(&sim, 0, TRIB_STEP_RECV_REDUCE, 0)].dep =
            TRIB_STEP_NO_DEP;
        if (run)
            some_run_fails(&sim, "");
        else
            proof_fails(&sim, "may run before an earlier step");
    }
}

TEST(test_not_stable)
{
    for (int run = 0; run < 2; run++) {
        struct trib_sim sim = sim_of("flat", TRIB_ALLREDUCE, 3);

        sim.lists[1].steps[find(&sim, 1, TRIB_STEP_SEND, 0)].flags = TRIB_STEP_STABLE;
        if (run)
            some_run_fails(&sim, "is not stable");
        else
            proof_fails(&sim, "is not stable");
    }
}

TEST(test_not_finished)
{
    struct trib_sim sim = sim_of("direct", TRIB_ALLREDUCE, 2);
    uint32_t send = find(&sim, 1, TRIB_STEP_SEND, 1);

    assert_int_equal(sim.lists[1].steps[send].flags, TRIB_STEP_FINAL);
    sim.lists[1].steps[send].dep = TRIB_STEP_NO_DEP;
    some_run_fails(&sim, "is final but not finished");
}

TEST(test_lost_contribution)
{
    struct trib_sim sim = sim_of("flat", TRIB_REDUCE, 4);
    struct trib_schedule *root = &sim.lists[0];

    assert_int_equal(root->steps[2].peer, 3);
    drop_last(&sim, 0);
    drop_last(&sim, 3);
    assert_true(trib_sim_prove(&sim));
    some_run_fails(&sim, "the result is wrong");
}

TEST(test_scale)
{
    struct trib_shape shape = {.coll = TRIB_REDUCE, .op = TRIB_MEAN, .size = 4};
    struct trib_step again;

    for (int twice = 0; twice < 2; twice++) {
        struct trib_sim sim = {.count = 9, .rounds = 1, .slots = 1, .window = 1};

        assert_true(trib_sim_build(&sim, trib_algo_find("tree"), &shape));
        assert_true(trib_sim_run(&sim));
        again = sim.lists[0].steps[sim.lists[0].n_steps - 1];
        assert_int_equal(again.op, TRIB_STEP_SCALE);
        if (twice)
            trib_schedule_add(&sim.lists[0], again);
        else
            drop_last(&sim, 0);
        some_run_fails(&sim, "the result is wrong");
    }
}

TEST(test_missing_copy)
{
    struct trib_sim sim = sim_of("flat", TRIB_BROADCAST, 3);

    drop_last(&sim, 0);
    some_run_fails(&sim, "the result is wrong");
}

/* Doubles: rank 2 adds 1 first and 0 last, which rounds otherwise. */
TEST(test_different_bits)
{
    struct trib_sim sim = sim_of("flat", TRIB_ALLREDUCE, 3);
    uint32_t first = find(&sim, 2, TRIB_STEP_RECV_REDUCE, 0);
    struct trib_step *steps = sim.lists[2].steps;

    sim.real = true;
    assert_true(trib_sim_run(&sim));
    steps[first].peer = 1;
    steps[first + 1].peer = 0;
    steps[first + 1].dep = 0; /* no longer a run, so ranks have no order */
    for (sim.seed = 0; sim.seed < SEEDS && trib_sim_run(&sim); sim.seed++)
        ;
    expect_why(&sim, "the bits differ between ranks");
    trib_sim_free(&sim);
}

/* Two ranks that each send only after they have received. */
TEST(test_dead_lock)
{
    struct trib_sim sim = sim_of("direct", TRIB_REDUCE_SCATTER, 2);

    for (int r = 0; r < 2; r++) {
        struct trib_step *steps = sim.lists[r].steps;
        struct trib_step send = steps[0];

        steps[0] = steps[1];
        steps[1] = send;
        steps[1].dep = 0;
    }
    assert_false(trib_sim_run(&sim));
    expect_why(&sim, "dead-lock");
    proof_fails(&sim, "dead-lock");
}

/*
 * Rank 0 sends the chunks in order and then a result; rank 1 needs the result first.
 * Three slots hold all of them; with one slot the second chunk is never sent.
 */
TEST(test_dead_lock_by_slots)
{
    struct trib_shape shape = {
        .coll = TRIB_REDUCE, .op = TRIB_SUM, .size = 2, .root = 1};
    const uint32_t none = TRIB_STEP_NO_DEP;
    struct trib_step sends[] = {
        {TRIB_STEP_SEND, TRIB_STEP_STABLE, TRIB_LANE_UP, 1, 0, none},
        {TRIB_STEP_SEND, TRIB_STEP_STABLE, TRIB_LANE_UP, 1, 1, none},
        {TRIB_STEP_SEND, TRIB_STEP_FINAL, TRIB_LANE_DOWN, 1, 2, 1},
    };
    struct trib_step recvs[] = {
        {TRIB_STEP_RECV_COPY, TRIB_STEP_FINAL, TRIB_LANE_DOWN, 0, 2, none},
        {TRIB_STEP_RECV_REDUCE, 0, TRIB_LANE_UP, 0, 0, 0},
        {TRIB_STEP_RECV_REDUCE, 0, TRIB_LANE_UP, 0, 1, none},
    };
    struct trib_sim sim = {.rounds = 1, .window = 1};

    assert_true(trib_sim_build(&sim, trib_algo_find("flat"), &shape));
    for (int r = 0; r < 2; r++) {
        trib_schedule_free(&sim.lists[r]);
        trib_schedule_init(&sim.lists[r], 3);
        for (int i = 0; i < 3; i++)
            trib_schedule_add(&sim.lists[r], r == 0 ? sends[i] : recvs[i]);
    }
    assert_true(trib_sim_prove(&sim));
    sim.slots = 3;
    assert_true(trib_sim_run(&sim));
    sim.slots = 1;
    assert_false(trib_sim_run(&sim));
    expect_why(&sim, "dead-lock");
    trib_sim_free(&sim);
}

TEST(test_barrier_too_short)
{
    struct trib_sim sim = sim_of("dissemination", TRIB_BARRIER, 5);

    for (int r = 0; r < 5; r++)
        sim.lists[r].n_steps -= 2;
    proof_fails(&sim, "may leave the barrier");
}
