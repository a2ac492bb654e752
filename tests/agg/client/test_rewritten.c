/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank rewrites all memory that it shares with its aggregator, again and again:
 * slots, heads of arenas, control segments, rings, trailers. The process of the
 * aggregator survives, and its other job gets correct sums. With --long, each case
 * takes five minutes.
 */
#include "comm/plan/plan_make.h"
#include "tests/agg/client/aggregators.h"
#include "tests/agg/client/rewriter.h"

enum { RANKS = 2, AGGREGATOR = RANKS, COUNT = 20000, STARTS = 100, HOSTILE = 1 };

static const char *const codecs[] = {"none", "topk:ratio=0.25", "int8", "none",
                                     "qsgd:bits=8,bucket=64,ef=1", "thc"};
enum { CODECS = sizeof(codecs) / sizeof(*codecs) };

struct jobs {
    struct aggregators attacked, honest;
    int rounds;
    int seconds;
};

static float value(int rank, int step, int i)
{
    return (float)((rank * 5 + step * 3 + i) % 17 - 8);
}

static trib_status_t sum(struct trib_comm *agg_comm, trib_plan_t *plan, float *x,
                         int step)
{
    for (int i = 0; i < COUNT; i++)
        x[i] = value(trib_rank(agg_comm), step, i);
    const trib_status_t st = trib_plan_start(plan);
    return st == TRIB_OK ? trib_plan_wait(plan) : st;
}

static trib_plan_t *make(struct trib_comm *agg_comm, float *x, const char *codec)
{
    trib_plan_t *plan = NULL;
    trib_desc_t d = sized(trib_desc_t, .recv = x, .count = COUNT, .codec = codec);

    return trib_plan_create(agg_comm, TRIB_ALLREDUCE, &d, &plan) == TRIB_OK ? plan
                                                                           : NULL;
}

/* Check that the sum of the other job equals the plain sum. */
static void check_honest(struct ranks_self *self, struct trib_comm *agg_comm,
                         trib_plan_t *plan, float *x, int step)
{
    if (sum(agg_comm, plan, x, step) != TRIB_OK)
        ranks_die(self, "the other job: %s", trib_last_error(agg_comm));
    for (int i = 0; i < COUNT; i++)
        if (x[i] != value(0, step, i) + value(1, step, i))
            ranks_die(self, "the other job: element %d of step %d is %g", i, step,
                      (double)x[i]);
}

/* Return true if all three agree on another round. */
static bool goes_on(struct ranks_self *self, const struct jobs *j, int round,
                    double until)
{
    int32_t on = round < j->rounds && ranks_seconds() < until;

    ranks_ok(self, trib_broadcast(self->comm, &on, 1, TRIB_I32, 0));
    return on;
}

/* A rank whose wait condition was rewritten waits in vain, so the limit is short. */
static struct trib_comm *join_attacked(struct ranks_self *self, struct jobs *j)
{
    struct trib_comm *agg_comm = aggregators_join(self, &j->attacked, self->comm);

    agg_comm->cfg.timeout_ms = 60;
    return agg_comm;
}

/* Run until the attacked communicator fails, which may be at once. */
static void be_attacked(struct ranks_self *self, struct jobs *j, int round)
{
    struct trib_comm *agg_comm = join_attacked(self, j);
    float *x = malloc(COUNT * sizeof(*x));
    trib_plan_t *plan = x ? make(agg_comm, x, codecs[round % CODECS]) : NULL;
    trib_status_t st = plan ? sum(agg_comm, plan, x, 0) : TRIB_ERR_NO_MEMORY;
    pid_t rewriter = 0;

    if (st == TRIB_OK && self->rank == HOSTILE)
        rewriter = rewriter_start(&agg_comm->engine, AGGREGATOR);
    for (int i = 1; st == TRIB_OK && i < STARTS; i++) {
        st = sum(agg_comm, plan, x, i);
        atomic_fetch_add(&self->slot->count, 1);
    }
    rewriter_stop(rewriter);
    if (self->rank == 0)
        aggregators_tell(&j->attacked, AGGREGATORS_GOODBYE, "-");
    ranks_ok(self, trib_barrier(self->comm)); /* the aggregator is done with it as
                                               * well */
    trib_plan_destroy(plan);
    trib_agg_comm_dispose(agg_comm);
    free(x);
}

static void be_rank(struct ranks_self *self, struct jobs *j)
{
    struct trib_comm *honest = aggregators_join(self, &j->honest, self->comm);
    const double until = ranks_seconds() + j->seconds;
    float *x = malloc(COUNT * sizeof(*x));
    trib_plan_t *plan = make(honest, x, "none");

    if (!x || !plan)
        ranks_die(self, "%s", trib_last_error(honest));
    for (int round = 0; goes_on(self, j, round, until); round++) {
        be_attacked(self, j, round);
        check_honest(self, honest, plan, x, round);
    }
    if (self->rank == 0)
        aggregators_tell(&j->honest, AGGREGATORS_GOODBYE, "-");
    ranks_ok(self, trib_barrier(self->comm));
    trib_plan_destroy(plan);
    trib_agg_comm_dispose(honest);
    free(x);
}

/* Receive an announcement of rank 0 about the attacked job. Return false once the job
 * has ended. A late plan is dropped. */
static bool hear(struct aggregators *s, struct trib_comm *agg_comm)
{
    struct aggregators_message m;

    while (recv(s->pipes[0][0], &m, sizeof(m), MSG_DONTWAIT) == sizeof(m)) {
        if (m.number == AGGREGATORS_GOODBYE)
            return false;
        if (!agg_comm->engine.failed)
            (void)trib_agg_comm_announced(agg_comm, m.number, m.text);
    }
    return true;
}

static void serve_attacked(struct ranks_self *self, struct jobs *j,
                           struct trib_comm *honest)
{
    struct trib_comm *agg_comm = join_attacked(self, j);

    while (hear(&j->attacked, agg_comm)) {
        if (!agg_comm->engine.failed)
            (void)trib_agg_comm_step(agg_comm);
        if (!aggregators_listen(self, &j->honest, honest) ||
            !trib_agg_comm_step(honest))
            sched_yield();
    }
    if (agg_comm->engine.failed)
        atomic_fetch_add(&self->slot->count, 1);
    ranks_assert(self, !agg_comm->engine.failed || agg_comm->engine.failure.text[0]);
    ranks_ok(self, trib_barrier(self->comm));
    trib_agg_comm_dispose(agg_comm);
}

/* The sum of the other job after each round. */
static void serve_honest(struct ranks_self *self, struct jobs *j,
                         struct trib_comm *honest)
{
    const uint32_t done = honest->engine.seq;

    while (honest->engine.seq == done || honest->engine.head) {
        (void)aggregators_listen(self, &j->honest, honest);
        if (!trib_agg_comm_step(honest))
            sched_yield();
        ranks_assert(self, !honest->engine.failed);
    }
}

static void be_aggregator(struct ranks_self *self, struct jobs *j)
{
    struct trib_comm *honest = aggregators_join(self, &j->honest, self->comm);
    const double until = ranks_seconds() + j->seconds;

    for (int round = 0; goes_on(self, j, round, until); round++) {
        serve_attacked(self, j, honest);
        serve_honest(self, j, honest);
    }
    ranks_ok(self, trib_barrier(self->comm));
    trib_agg_comm_dispose(honest);
}

static int run_one(struct ranks_self *self)
{
    struct jobs *j = self->arg;

    if (self->rank == AGGREGATOR)
        be_aggregator(self, j);
    else
        be_rank(self, j);
    return 0;
}

static int seconds = 6; /* for each attack; set by main */

static void test_rewritten(void **state)
{
    struct jobs j = {.attacked = {.ranks = RANKS, .n = 1},
                     .honest = {.ranks = RANKS, .n = 1},
                     .rounds = 1000,
                     .seconds = seconds};
    struct ranks_job job = {.size = RANKS + 1,
                            .fn = run_one,
                            .arg = &j,
                            .config = *state,
                            .seconds = 100 + (unsigned)seconds,
                            .noisy = true};
    struct ranks r;

    assert_true(aggregators_open(&j.attacked) && aggregators_open(&j.honest));
    assert_true(ranks_start(&r, &job));
    ranks_wait(&r);
    const uint64_t broken = r.slots[AGGREGATOR].count, sums = r.slots[0].count;
    const int failed = ranks_failed(&r);
    ranks_close(&r);
    aggregators_close(&j.attacked);
    aggregators_close(&j.honest);
    printf("# %llu sums under attack, %llu jobs ended by it\n",
           (unsigned long long)sums, (unsigned long long)broken);
    assert_int_equal(failed, 0);
    assert_true(sums > 0 && broken > 0);
}

#define ON(test, config) \
    {#test " [" config "]", test, NULL, NULL, \
     (char *)(uintptr_t) "transport=shm;" config}

static const struct CMUnitTest rows[] = {
    ON(test_rewritten, "chunk=64K"),
    ON(test_rewritten, "chunk=4K;window=2"),
};

TEST_ROWS(rows)

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--long") == 0)
        seconds = 300;
    tribtest_seconds = 300 + 2 * (unsigned)seconds;
    return tribtest_run();
}
