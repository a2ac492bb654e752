/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <assert.h>

#include "tests/collectives/sweep.h"

#define ALL_RANKS 64 /* every number of ranks up to this */
#define ALL_CASES 17 /* all roots and sizes up to this many ranks */
#define DRAWS 3 /* orders of steps per case */

uint64_t sweep_all(const struct trib_sim *sim)
{
    uint64_t sum = 0;

    for (uint32_t c = 0; c < sim->lists[0].n_chunks; c++)
        sum += trib_sim_chunk(sim, c);
    return sum;
}

static void describe(const struct trib_sim *sim, const struct sweep *sweep)
{
    fail_msg(
        "%s, collective %d, op %d, %d ranks, %d aggregators, root %d, %zu elements, %u "
        "rounds, %u slots, window %u%s%s%s%s, seed %llu: %s",
        sweep->algo, (int)sweep->coll, (int)sim->shape.op, sim->shape.size,
        sim->shape.aggregators, sim->shape.root, sim->count, sim->rounds, sim->slots,
        sim->window, sim->whole_runs ? ", whole runs" : "",
        sim->in_place ? ", in place" : "", sim->real ? ", real" : "",
        sim->uneven ? ", uneven" : "", (unsigned long long)sim->seed, sim->why);
}

static void check_bytes(struct trib_sim *sim, const struct sweep *sweep)
{
    for (uint32_t r = 0; r < (uint32_t)trib_sim_size(sim); r++) {
        uint64_t up = 0;
        uint64_t down = 0;

        if (sim->shape.size > 1 || sim->shape.aggregators)
            sweep->formula(sim, r, &up, &down);
        if (sim->sent_up[r] == up && sim->sent_down[r] == down)
            continue;
        snprintf(sim->why, sizeof(sim->why),
                 "rank %u sent %llu elements up and %llu down, not %llu and %llu", r,
                 (unsigned long long)sim->sent_up[r],
                 (unsigned long long)sim->sent_down[r], (unsigned long long)up,
                 (unsigned long long)down);
        describe(sim, sweep);
    }
}

static void run_once(struct trib_sim *sim, const struct sweep *sweep, uint64_t seed)
{
    trib_op_t op = sim->shape.op;

    sim->seed = seed;
    sim->window = 1 + (uint32_t)(seed / 2 % 3);
    sim->whole_runs = seed / 6 % 2;
    sim->in_place = seed / 12 % 2;
    sim->real = (op == TRIB_SUM || op == TRIB_MEAN) && seed % 5 == 0;
    sim->rank_order = sweep->rank_order;
    sim->uneven = trib_coll_is_blocked(sweep->coll) && seed / 24 % 2;
    if (!trib_sim_run(sim))
        describe(sim, sweep);
    if (!sim->uneven)
        check_bytes(sim, sweep);
}

static void run_sizes(struct trib_sim *sim, const struct sweep *sweep, uint64_t *seed)
{
    size_t p = (size_t)sim->shape.size;
    size_t few[] = {0, 1, p - 1, p + 1, 101};
    size_t many[] = {p + 1};
    bool all = p <= ALL_CASES;
    const size_t *counts = all ? few : many;
    size_t n = all ? sizeof(few) / sizeof(few[0]) : 1;

    for (size_t i = 0; i < n; i++) {
        sim->count = counts[i];
        /* A block a rank: a vector of this times the ranks. */
        if (!all && trib_coll_is_blocked(sweep->coll))
            sim->count = 3;
        sim->rounds = all ? 3 : 2;
        for (int k = 0; k < 2 * DRAWS; k++) {
            sim->slots = k % 2 ? 3 : 1;
            run_once(sim, sweep, (*seed)++);
        }
    }
}

static void run_shape(const struct sweep *sweep, struct trib_shape shape,
                      uint64_t *seed)
{
    const struct trib_algo *algo = trib_algo_find(sweep->algo);
    struct trib_sim sim = {0};

    assert_non_null(algo);
    shape.pairs = algo->merges;
    assert_true(algo->colls & UINT32_C(1) << sweep->coll);
    assert_true(algo->can(&shape));
    if (!trib_sim_build(&sim, algo, &shape) || !trib_sim_prove(&sim))
        describe(&sim, sweep);
    run_sizes(&sim, sweep, seed);
    trib_sim_free(&sim);
}

void sweep_offloaded(const struct sweep *sweep, sweep_serve serve, int variant)
{
    uint64_t seed = 1;

    for (int p = 1; p <= ALL_RANKS; p++) {
        int root_step = p <= ALL_CASES ? 1 : p / 2;
        int n_roots = trib_coll_has_root(sweep->coll) ? p : 1;

        for (int root = 0; root < n_roots; root += root_step) {
            struct trib_shape shape = {
                .coll = sweep->coll,
                .op = (trib_op_t)((p + root) % (TRIB_PROD + 1)),
                .size = p,
                .root = root,
            };

            /* A mean of some ranks is undefined: scans do not support it. */
            if (shape.op == TRIB_MEAN && trib_coll_is_prefix(sweep->coll))
                shape.op = TRIB_SUM;
            serve(&shape, variant);
            run_shape(sweep, shape, &seed);
            /* A mean has its own steps. */
            if (p > ALL_CASES || shape.op == TRIB_MEAN ||
                trib_coll_is_prefix(sweep->coll))
                continue;
            shape.op = TRIB_MEAN;
            run_shape(sweep, shape, &seed);
        }
    }
}

static void serve_none(struct trib_shape *shape, int variant)
{
    (void)shape, (void)variant;
}

static void test_sweep(void **state)
{
    sweep_offloaded(*state, serve_none, 0);
}

int sweep_main(const struct sweep *sweeps, size_t n)
{
    struct CMUnitTest tests[TRIB_COLL_COUNT];

    assert(n <= TRIB_COLL_COUNT);
    for (size_t i = 0; i < n; i++)
        tests[i] = (struct CMUnitTest){.name = trib_coll_name(sweeps[i].coll),
                                       .test_func = test_sweep,
                                       .initial_state = (void *)(uintptr_t)&sweeps[i]};
    tribtest_deadline(120);
    return _cmocka_run_group_tests("sweeps", tests, n, NULL, NULL);
}
