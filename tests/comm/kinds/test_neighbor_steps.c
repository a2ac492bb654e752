/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steps with neighbours whose parts may be late: nothing is lost, no part is later than
 * allowed, ranks run ahead as far as allowed and no further, parts in flight are
 * counted and drained; graphs that do not match; ranks that die or are stopped.
 */
#include <math.h>

#include "build-config.h"
#include "tests/comm/neighbor_graphs.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static trib_plan_t *make(struct ranks_self *self, size_t count, trib_dtype_t dtype,
                         int late)
{
    trib_plan_t *plan;
    trib_neighbors_desc_t d =
        sized(trib_neighbors_desc_t, .count = count, .dtype = dtype, .late = late);

    ranks_ok(self, trib_plan_neighbors(self->comm, &d, &plan));
    return plan;
}

static void finish(struct ranks_self *self, trib_plan_t *plan, trib_status_t st)
{
    if (st == TRIB_OK)
        st = trib_plan_wait(plan);
    if (st != TRIB_OK)
        ranks_die(self, "%d: %s", (int)st, trib_last_error(self->comm));
}

static trib_in_flight_t in_flight(struct ranks_self *self, trib_plan_t *plan)
{
    trib_in_flight_t counts = TRIB_IN_FLIGHT_INIT;

    ranks_ok(self, trib_plan_in_flight(plan, &counts));
    return counts;
}

/* After a drain, the vectors and weights of all ranks have their initial sums. */
static void check_sums(struct ranks_self *self, const struct scene *s, const void *x,
                       double weight)
{
    const double slack = s->exact ? 0 : s->dtype == TRIB_F64 ? 1e-12 : 1e-4;
    double *all = calloc(s->count + 1, sizeof(*all));

    for (size_t i = 0; i < s->count; i++)
        all[i] = scene_load(s, x, i);
    all[s->count] = weight;
    ranks_ok(self,
             trib_allreduce(self->comm, NULL, all, s->count + 1, TRIB_F64, TRIB_SUM));
    for (size_t i = 0; i <= s->count; i++) {
        double sum = i == s->count ? self->size : 0;
        for (int r = 0; r < self->size && i < s->count; r++)
            sum += scene_input(s, r, i);
        if (!(fabs(all[i] - sum) <= slack))
            ranks_die(self, "%s %zu: %.17g in all, not %.17g",
                      i == s->count ? "weight" : "element", i, all[i], sum);
    }
    free(all);
}

/* No part is in flight on any rank: as many were added as were sent. */
static void check_drained(struct ranks_self *self, trib_plan_t *plan)
{
    const trib_in_flight_t c = in_flight(self, plan);
    double sums[2] = {(double)c.given - (double)c.added,
                      c.weight_given - c.weight_added};

    ranks_assert(self, c.unsent == 0 && c.awaited == 0 && c.arrived == 0);
    ranks_ok(self, trib_allreduce(self->comm, NULL, sums, 2, TRIB_F64, TRIB_SUM));
    ranks_assert(self, sums[0] == 0 && fabs(sums[1]) < 1e-9);
}

static void nap(struct ranks_self *self, const struct scene *s, int step)
{
    const uint64_t x =
        oracle_mix(s->seed ^ 0x5eedULL ^ (uint64_t)(step * 31 + self->rank));

    if (x % 4 == 0)
        usleep((useconds_t)(x >> 8) % 1000);
}

/* Random graphs and pauses, and a drain in the middle and at the end. */
static int conserves(struct ranks_self *self)
{
    const struct scene *s = self->arg;
    const int steps = s->exact ? 8 : 60;
    trib_plan_t *plan = make(self, s->count, s->dtype, s->late);
    void *x = calloc(s->count + 1, 8);
    struct graph graph;
    double weight = 1;

    for (size_t i = 0; i < s->count; i++)
        scene_store(s, x, i, scene_input(s, self->rank, i));
    for (int step = 0; step < steps; step++) {
        scene_graph(s, self->size, self->rank, step, &graph);
        finish(self, plan, trib_plan_start_neighbors(plan, &graph.g, x, &weight));
        nap(self, s, step);
        if (step != steps / 2)
            continue;
        finish(self, plan, trib_plan_start_drain(plan, x, &weight));
        check_sums(self, s, x, weight);
    }
    const trib_in_flight_t c = in_flight(self, plan);
    double all = weight + c.weight_given - c.weight_added;
    ranks_ok(self, trib_allreduce(self->comm, NULL, &all, 1, TRIB_F64, TRIB_SUM));
    ranks_assert(self, fabs(all - self->size) < 1e-9);
    ranks_assert(self, c.steps == (uint64_t)steps + 1);
    finish(self, plan, trib_plan_start_drain(plan, x, &weight));
    check_sums(self, s, x, weight);
    check_drained(self, plan);
    ranks_ok(self, trib_plan_free(plan));
    free(x);
    return 0;
}

TEST_ON(test_conserves, "shm", "shm+nomap", "tcp", IF_UCX("ucx"))
{
    static const size_t counts[] = {0, 1, 7, 1021, 1024, 1025, 20003};
    static const int late[] = {1, 2, 0, 5, 1000};

    for (int k = 0; k < 14; k++) {
        const struct scene s = {.count = counts[k % 7],
                                .dtype = k % 2 ? TRIB_F64 : TRIB_F32,
                                .seed = (uint64_t)k + 70,
                                .late = late[k % 5],
                                .exact = k % 2 && k % 3};
        ranks_pass(.size = 2 + k % 4, .fn = conserves, .arg = (void *)(uintptr_t)&s,
                   .config = *state);
    }
}

/* x / weight converges to the mean, with graphs that change, and late parts. */
static int consensus(struct ranks_self *self)
{
    enum { N = 501, STEPS = 150 };
    const struct scene s = {.count = N, .dtype = TRIB_F64, .seed = 5};
    trib_plan_t *plan = make(self, N, TRIB_F64, 3);
    double x[N], weight = 1;
    struct graph graph;

    for (size_t i = 0; i < N; i++)
        x[i] = scene_input(&s, self->rank, i);
    for (int step = 0; step < STEPS; step++) {
        scene_graph(&s, self->size, self->rank, step, &graph);
        finish(self, plan, trib_plan_start_neighbors(plan, &graph.g, x, &weight));
        nap(self, &s, step);
    }
    finish(self, plan, trib_plan_start_drain(plan, x, &weight));
    for (size_t i = 0; i < N; i++) {
        double mean = 0;
        for (int r = 0; r < self->size; r++)
            mean += scene_input(&s, r, i) / self->size;
        if (!(fabs(x[i] / weight - mean) < 1e-9))
            ranks_die(self, "element %zu is %.17g, not %.17g", i, x[i] / weight, mean);
    }
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST_ON(test_consensus, "shm", "tcp")
{
    ranks_pass(.size = 4, .fn = consensus, .config = *state);
    ranks_pass(.size = 4, .fn = consensus, .config = *state, .threads = true);
}

enum { RING_STEPS = 40, RING_LATE = 3, RING_SLOTS = 5000 };

/* In a ring, each rank writes into its vector at each step, at an index for that step.
 * A part must arrive at most `late` steps later, and not before its own step. */
static int bounded(struct ranks_self *self)
{
    const struct scene s = {.seed = 11};
    const int size = self->size, to = (self->rank + 1) % size;
    const int from = (self->rank + size - 1) % size;
    const double half = 0.5;
    const trib_neighbors_t g = {sizeof(g), &to, &half, 1, &from, 1};
    trib_plan_t *plan = make(self, RING_SLOTS, TRIB_F64, RING_LATE);
    double *x = calloc(RING_SLOTS, sizeof(*x));

    for (int step = 0; step < RING_STEPS; step++) {
        x[self->rank * RING_STEPS + step] += 1;
        finish(self, plan, trib_plan_start_neighbors(plan, &g, x, NULL));
        for (int k = 0; k < RING_STEPS; k++) {
            const double got = x[from * RING_STEPS + k];
            if (got > 0 ? k > step : k <= step - RING_LATE)
                ranks_die(self, "step %d: of step %d there is %g", step, k, got);
        }
        nap(self, &s, step);
    }
    finish(self, plan, trib_plan_start_drain(plan, x, NULL));
    ranks_ok(self, trib_plan_free(plan));
    free(x);
    return 0;
}

TEST_ON(test_bounded, "shm", "tcp")
{
    ranks_pass(.size = 3, .fn = bounded, .config = *state);
    ranks_pass(.size = 2, .fn = bounded, .config = *state);
}

/* Rank 0 runs `late` steps ahead of rank 1, and no further. */
static int ahead(struct ranks_self *self)
{
    enum { N = 20000, LATE = 4, AHEAD = 1, MORE, SEEN };
    const int other = 1 - self->rank;
    const double half = 0.5;
    const trib_neighbors_t g = {sizeof(g), &other, &half, 1, &other, 1};
    trib_plan_t *plan = make(self, N, TRIB_F32, LATE);
    _Atomic int *phase = &self->slot[-self->rank].phase; /* of rank 0 */
    float *x = calloc(N, sizeof(*x));
    double weight = 1;

    for (int step = 0; step < LATE && self->rank == 0; step++)
        finish(self, plan, trib_plan_start_neighbors(plan, &g, x, &weight));
    if (self->rank == 0) {
        *phase = AHEAD;
        ranks_ok(self, trib_plan_start_neighbors(plan, &g, x, &weight));
        for (int k = 0; k < 20; k++, usleep(1000))
            ranks_assert(self, trib_plan_test(plan) == TRIB_INPROGRESS);
        const trib_in_flight_t c = in_flight(self, plan);
        ranks_assert(self, c.given == LATE + 1 && c.added == 0);
        ranks_assert(self, c.unsent == LATE + 1 && c.awaited == LATE + 1);
        ranks_refused(self, trib_plan_free(plan), TRIB_ERR_BUSY,
                      WORDS("still running"));
        *phase = MORE;
        finish(self, plan, TRIB_OK);
        ranks_refused(self, trib_plan_free(plan), TRIB_ERR_BUSY,
                      WORDS("in flight", "trib_plan_start_drain"));
    }
    while (self->rank == 1 && *phase < MORE)
        usleep(1000);
    for (int step = 0; step <= LATE && self->rank == 1; step++)
        finish(self, plan, trib_plan_start_neighbors(plan, &g, x, &weight));
    finish(self, plan, trib_plan_start_drain(plan, x, &weight));
    check_drained(self, plan);
    ranks_ok(self, trib_plan_free(plan));
    free(x);
    return 0;
}

TEST_ON(test_ahead, "shm", "tcp", IF_UCX("ucx"))
{
    ranks_pass(.size = 2, .fn = ahead, .config = *state);
}

static void count_call(void *arg, trib_status_t status)
{
    ++*(_Atomic int *)(status == TRIB_OK ? arg : NULL);
}

/* A callback is called at the end of steps and of drains. */
RANKS_TEST_ON(test_tells, ("shm"), .size = 2)
{
    const int to = (self->rank + 1) % self->size;
    const int from = (self->rank + self->size - 1) % self->size;
    const double half = 0.5;
    const trib_neighbors_t g = {sizeof(g), &to, &half, 1, &from, 1};
    trib_plan_t *plan = make(self, 3000, TRIB_F32, 2);
    float *x = calloc(3000, sizeof(*x));
    _Atomic int calls = 0;

    ranks_ok(self, trib_plan_notify(plan, count_call, &calls));
    for (int step = 1; step <= 40; step++) {
        ranks_ok(self, step % 10 ? trib_plan_start_neighbors(plan, &g, x, NULL)
                                 : trib_plan_start_drain(plan, x, NULL));
        while (calls < step)
            sched_yield();
        ranks_ok(self, trib_plan_wait(plan));
        ranks_assert(self, calls == step);
    }
    ranks_ok(self, trib_plan_free(plan));
    free(x);
    return 0;
}

/* From step 7 on, rank 0 and rank 1 disagree on one of their edges. */
static int misfit(struct ranks_self *self)
{
    const bool gives = *(const bool *)self->arg;
    const char *const text =
        gives ? "rank 0 has rank 1 in `to`, and rank 1 does not have rank 0 in `from`"
              : "rank 0 has rank 1 in `from`, and rank 1 does not have rank 0 in `to`";
    const int other = 1 - self->rank;
    const double half = 0.5;
    trib_plan_t *plan = make(self, 2000, TRIB_F32, 3);
    static float x[2000];
    trib_status_t st = TRIB_OK;

    for (int step = 1; st == TRIB_OK && step < 1000; step++) {
        trib_neighbors_t g = {sizeof(g), &other, &half, 1, &other, 1};
        if (self->rank == 1 && step >= 7 && gives)
            g.n_from = 0;
        if (self->rank == 1 && step >= 7 && !gives)
            g.n_to = 0;
        st = trib_plan_start_neighbors(plan, &g, x, NULL);
        if (st == TRIB_OK)
            st = trib_plan_wait(plan);
    }
    ranks_expect(self, st, TRIB_ERR_MISMATCH, text);
    if (!ranks_has(trib_last_error(self->comm), WORDS(text, "step 7")))
        ranks_die(self, "%s", trib_last_error(self->comm));
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST_ON(test_misfit, "shm", "tcp")
{
    for (int gives = 0; gives < 2; gives++) {
        const bool arg = gives;
        ranks_pass(.size = 2, .fn = misfit, .arg = (void *)(uintptr_t)&arg,
                   .config = *state, .noisy = true);
    }
}

/* One rank drains while the other one sends it a part. */
RANKS_TEST_ON(test_drains_alone, ("shm"), .size = 2, .noisy = true)
{
    const int other = 1 - self->rank;
    const double half = 0.5;
    const trib_neighbors_t g = {sizeof(g), &other, &half, 1, &other, 1};
    trib_plan_t *plan = make(self, 3, TRIB_F32, 3);
    float x[3] = {0};
    trib_status_t st = self->rank ? trib_plan_start_drain(plan, x, NULL)
                                  : trib_plan_start_neighbors(plan, &g, x, NULL);

    if (st == TRIB_OK)
        st = trib_plan_wait(plan);
    while (st == TRIB_OK) /* the drain itself may be done before the offer arrives */
        st = trib_barrier(self->comm);
    ranks_expect(self, st, TRIB_ERR_MISMATCH, "a drain of one rank");
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

struct loss {
    int signal, late;
};

/* Rank 1 dies or is stopped; its neighbours name it. */
static int dies(struct ranks_self *self)
{
    const struct loss *l = self->arg;
    const int to = (self->rank + 1) % self->size, from = (self->rank + 2) % self->size;
    const double half = 0.5;
    const trib_neighbors_t g = {sizeof(g), &to, &half, 1, &from, 1};
    trib_plan_t *plan = make(self, 20000, TRIB_F32, l->late);
    static float x[20000];
    trib_status_t st = TRIB_OK;

    for (int k = 0; st == TRIB_OK; k++) {
        st = trib_plan_start_neighbors(plan, &g, x, NULL);
        if (k == 20 && self->rank == 1)
            raise(l->signal);
        if (st == TRIB_OK)
            st = trib_plan_wait(plan);
    }
    ranks_expect(self, st, TRIB_ERR_PEER_LOST, "a step with a dead rank");
    ranks_assert(self, ranks_has(trib_last_error(self->comm), WORDS("rank 1")));
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

static void lose(const char *config, struct loss l)
{
    const struct ranks_job job = {
        .size = 3, .fn = dies, .arg = &l, .config = config, .noisy = true};
    struct ranks r;

    assert_true(ranks_start(&r, &job));
    ranks_outlive(&r, 1u << 1);
    ranks_survived(&r, 1u << 1, "%s", config);
}

TEST_ON(test_death, "shm", "tcp")
{
    lose(*state, (struct loss){SIGKILL, 0});
    lose(*state, (struct loss){SIGKILL, 2});
}

TEST_ON(test_stopped, "shm")
{
    lose(*state, (struct loss){SIGSTOP, 2});
}

RANKS_TEST(test_refusals, .size = 2)
{
    trib_in_flight_t counts = TRIB_IN_FLIGHT_INIT;
    trib_plan_t *plan, *dense;
    float x[3] = {0};
    trib_neighbors_desc_t d = sized(trib_neighbors_desc_t, .count = 3, .late = -1);

    ranks_refused(self, trib_plan_neighbors(self->comm, &d, &plan), TRIB_ERR_INVALID,
                  WORDS("late is -1", "0 to 1000"));
    d.late = 1001;
    ranks_refused(self, trib_plan_neighbors(self->comm, &d, &plan), TRIB_ERR_INVALID,
                  WORDS("late is 1001"));
    plan = make(self, 3, TRIB_F32, 1);
    dense = ranks_plan(self, TRIB_ALLREDUCE, .recv = x, .count = 3);
    ranks_refused(self, trib_plan_start_drain(dense, x, NULL), TRIB_ERR_INVALID,
                  WORDS("trib_plan_start_drain is for plans created by"));
    ranks_refused(self, trib_plan_in_flight(dense, &counts), TRIB_ERR_INVALID,
                  WORDS("trib_plan_in_flight is for plans created by"));
    ranks_refused(self, trib_plan_start_drain(plan, NULL, NULL), TRIB_ERR_INVALID,
                  WORDS("x is NULL"));
    ranks_refused(self, trib_plan_in_flight(plan, NULL), TRIB_ERR_INVALID,
                  WORDS("counts is NULL"));
    counts.size = 8;
    ranks_refused(self, trib_plan_in_flight(plan, &counts), TRIB_ERR_INVALID,
                  WORDS("trib_in_flight_t.size is 8"));
    ranks_assert(self, trib_plan_start_drain(NULL, x, NULL) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_plan_in_flight(NULL, &counts) == TRIB_ERR_INVALID);
    ranks_ok(self, trib_plan_free(dense));
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}
