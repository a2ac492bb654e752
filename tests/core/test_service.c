/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that lose their service in any phase: killed, stopped, or never. Whatever happens,
 * each sum is the plain one, and what a codec holds back is neither lost nor sent twice.
 *
 * A node counts what it has moved and ends itself at a number that the test draws. Values are
 * small integers, so all sums are exact.
 */
#include "tests/harness/tribtest.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "build-config.h"
#include "core/service.h"
#include "tests/core/nodes.h"
#include "tests/core/oracle.h"

enum { LONG = 30000, SHORT = 1023, SPARSE = 4097, STEPS = 6, DRAIN = 12 };

struct shared {
    _Atomic int pid[NODES_MOST];
    _Atomic int n_done; /* ranks */
};

struct lossy_job {
    struct nodes nodes;
    uint64_t seed;
    int signal;          /* 0: none */
    uint64_t after;      /* so many steps of node 0 that moved something */
    struct shared *shared;
};

/* What a rank sums of: small whole numbers. */
static double number(uint64_t seed, int rank, uint64_t step, size_t i)
{
    return (double)(oracle_mix(seed ^ oracle_mix(i * 64 + (uint64_t)rank) ^ step << 40) % 17) -
           8;
}

static double sum_of(uint64_t seed, int ranks, uint64_t step, size_t i)
{
    double sum = 0;

    for (int r = 0; r < ranks; r++)
        sum += number(seed, r, step, i);
    return sum;
}

/* Nodes --------------------------------------------------------------------------------- */

static int serve(struct ranks_self *self, struct trib_comm *channel)
{
    struct lossy_job *j = self->arg;
    const int index = self->rank - j->nodes.ranks;
    uint64_t moved = 0;

    atomic_store(&j->shared->pid[index], getpid());
    while (nodes_listen(self, &j->nodes, channel) &&
           atomic_load(&j->shared->n_done) < j->nodes.ranks) {
        if (!trib_channel_step(channel))
            sched_yield();
        else if (++moved == j->after && index == 0 && j->signal)
            raise(j->signal);
        if (channel->engine.failed)
            usleep(1000);
    }
    trib_channel_dispose(channel);
    return 0;
}

/* Ranks --------------------------------------------------------------------------------- */

struct plans {
    trib_plan_t *dense, *whole, *sparse;
    float *x; /* [LONG], in place */
    int64_t *in, *out; /* [SHORT] */
    float *held, *total; /* [SPARSE] */
};

static trib_plan_t *plan(struct ranks_self *self, trib_comm_t *comm, trib_desc_t d)
{
    trib_plan_t *p;

    if (trib_plan_allreduce(comm, &d, &p) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(comm));
    return p;
}

static void make_plans(struct ranks_self *self, trib_comm_t *comm, struct plans *p)
{
    trib_desc_t d = TRIB_DESC_INIT;

    p->x = calloc(LONG, sizeof(float));
    p->in = calloc(SHORT, sizeof(int64_t));
    p->out = calloc(SHORT, sizeof(int64_t));
    p->held = calloc(SPARSE, sizeof(float));
    p->total = calloc(SPARSE, sizeof(float));
    d.chunk = 4096;
    d.dtype = TRIB_F32;
    d.recv = p->x;
    d.count = LONG;
    d.feed = TRIB_FEED_FORWARD;
    p->dense = plan(self, comm, d);
    d.recv = p->held;
    d.count = SPARSE;
    d.feed = TRIB_FEED_WHOLE;
    d.codec = "topk:ratio=0.25";
    p->sparse = plan(self, comm, d);
    d.codec = "none";
    d.dtype = TRIB_I64;
    d.send = p->in;
    d.recv = p->out;
    d.count = SHORT;
    p->whole = plan(self, comm, d);
}

static void free_plans(struct ranks_self *self, struct plans *p)
{
    ranks_ok(self, trib_plan_free(p->dense));
    ranks_ok(self, trib_plan_free(p->whole));
    ranks_ok(self, trib_plan_free(p->sparse));
    free(p->x);
    free(p->in);
    free(p->out);
    free(p->held);
    free(p->total);
}

#define WELL(self, comm, call) \
    do { \
        if ((call) != TRIB_OK) \
            ranks_die(self, "%s: %s", #call, trib_last_error(comm)); \
    } while (0)

static void check_dense(struct ranks_self *self, const struct plans *p, uint64_t step)
{
    const struct lossy_job *j = self->arg;

    for (size_t i = 0; i < LONG; i++)
        if ((double)p->x[i] != sum_of(j->seed, j->nodes.ranks, step, i))
            ranks_die(self, "seed %llu, after %llu: dense element %zu of step %llu is %g, not %g",
                      (unsigned long long)j->seed, (unsigned long long)j->after, i,
                      (unsigned long long)step, (double)p->x[i],
                      sum_of(j->seed, j->nodes.ranks, step, i));
}

static void check_whole(struct ranks_self *self, const struct plans *p, uint64_t step)
{
    const struct lossy_job *j = self->arg;

    for (size_t i = 0; i < SHORT; i++)
        if ((double)p->out[i] != sum_of(j->seed, j->nodes.ranks, step, i))
            ranks_die(self, "seed %llu, after %llu: integer %zu of step %llu is %lld, not %g",
                      (unsigned long long)j->seed, (unsigned long long)j->after, i,
                      (unsigned long long)step, (long long)p->out[i],
                      sum_of(j->seed, j->nodes.ranks, step, i));
}

static void one_sparse(struct ranks_self *self, trib_comm_t *comm, struct plans *p)
{
    WELL(self, comm, trib_plan_start(p->sparse));
    WELL(self, comm, trib_plan_wait(p->sparse));
    for (size_t i = 0; i < SPARSE; i++)
        p->total[i] += p->held[i];
}

/* Several starts under way, waited for in another order, and other operations among them. */
static void one_step(struct ranks_self *self, trib_comm_t *comm, struct plans *p, uint64_t step)
{
    const struct lossy_job *j = self->arg;
    double mine[2] = {1, 2};

    for (size_t i = 0; i < LONG; i++)
        p->x[i] = (float)number(j->seed, self->rank, step, i);
    for (size_t i = 0; i < SHORT; i++)
        p->in[i] = (int64_t)number(j->seed, self->rank, step, i);
    WELL(self, comm, trib_plan_start(p->dense));
    WELL(self, comm, trib_plan_ready(p->dense, 0, LONG / 3));
    WELL(self, comm, trib_plan_start(p->whole));
    WELL(self, comm, trib_plan_ready(p->dense, LONG / 3, LONG - LONG / 3));
    if (step % 2)
        WELL(self, comm, trib_plan_wait(p->whole));
    WELL(self, comm, trib_allreduce(comm, NULL, mine, 2, TRIB_F64, TRIB_SUM));
    ranks_assert(self, mine[0] == j->nodes.ranks);
    WELL(self, comm, trib_barrier(comm));
    while (trib_plan_test(p->dense) == TRIB_INPROGRESS)
        sched_yield();
    WELL(self, comm, trib_plan_wait(p->dense));
    check_dense(self, p, step);
    WELL(self, comm, trib_plan_wait(p->whole));
    check_whole(self, p, step);
    for (size_t i = 0; i < SPARSE; i++)
        p->held[i] = (float)number(j->seed, self->rank, step, i);
    one_sparse(self, comm, p);
}

/* All that was given has come out. */
static void check_sparse(struct ranks_self *self, trib_comm_t *comm, struct plans *p)
{
    const struct lossy_job *j = self->arg;

    for (int i = 0; i < DRAIN; i++) {
        memset(p->held, 0, SPARSE * sizeof(float));
        one_sparse(self, comm, p);
    }
    for (size_t i = 0; i < SPARSE; i++) {
        double sum = 0;
        for (uint64_t step = 0; step < STEPS; step++)
            sum += sum_of(j->seed, j->nodes.ranks, step, i);
        if ((double)p->total[i] != sum)
            ranks_die(self, "seed %llu, after %llu: %g of %g came out at element %zu",
                      (unsigned long long)j->seed, (unsigned long long)j->after,
                      (double)p->total[i], sum, i);
    }
}

/* A child frees its copies, of which nobody else hears. */
static void fork_child(struct ranks_self *self, trib_comm_t *home, struct plans *p)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        bool ok = trib_plan_free(p->dense) == TRIB_OK &&
                  trib_plan_free(p->whole) == TRIB_OK &&
                  trib_plan_free(p->sparse) == TRIB_OK && trib_free_comm(home) == TRIB_OK;
        _exit(!ok);
    }
    ranks_assert(self, pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

static int run_rank(struct ranks_self *self)
{
    struct lossy_job *j = self->arg;
    struct trib_comm *all = NULL, *home = NULL, *spare = NULL, *channel;
    struct plans p;

    ranks_ok(self, trib_init(&self->opts, &all));
    channel = nodes_join(self, &j->nodes, all);
    const bool node = self->rank >= j->nodes.ranks;
    ranks_ok(self, trib_split(all, node ? -1 : 0, 0, &home));
    if (node)
        return serve(self, channel);
    ranks_ok(self, trib_split(home, 0, 0, &spare));
    ranks_ok(self, trib_service_attach(home, channel, spare));
    make_plans(self, home, &p);
    for (uint64_t step = 0; step < STEPS; step++) {
        if (step == 2 && !j->signal)
            fork_child(self, home, &p);
        one_step(self, home, &p, step);
    }
    check_sparse(self, home, &p);
    free_plans(self, &p);
    WELL(self, NULL, trib_free_comm(home));
    const bool last = atomic_fetch_add(&j->shared->n_done, 1) + 1 == j->nodes.ranks;
    if (last && j->signal) /* it may be stopped */
        kill(atomic_load(&j->shared->pid[0]), SIGKILL);
    return 0;
}

/* Runs ---------------------------------------------------------------------------------- */

static void run(const char *transport, struct lossy_job *j)
{
    char config[200];

    snprintf(config, sizeof(config), "transport=%s;stop_timeout_ms=300;timeout_ms=%u", transport,
             20000 * tribtest_slowness());
    j->shared = mmap(NULL, sizeof(*j->shared), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(j->shared, MAP_FAILED);
    assert_true(nodes_open(&j->nodes));
    struct ranks_job job = {.size = j->nodes.ranks + j->nodes.services,
                            .fn = run_rank,
                            .arg = j,
                            .config = config,
                            .bare = true,
                            .noisy = j->signal != 0};
    struct ranks r;
    assert_true(ranks_start(&r, &job));
    ranks_wait(&r);
    int failed = ranks_failed(&r);
    ranks_close(&r);
    nodes_close(&j->nodes);
    munmap(j->shared, sizeof(*j->shared));
    /* The node that ended itself did not return. */
    assert_int_equal(failed, j->signal ? 1 : 0);
}

static void test_never(void **state)
{
    run(*state, &(struct lossy_job){.nodes = {.ranks = 3, .services = 2}, .seed = 1});
}

static void sweep(const char *transport, int sig, int draws)
{
    for (int i = 0; i < draws; i++) {
        const uint64_t bits = oracle_mix((uint64_t)i + (uint64_t)sig * 1000);
        struct lossy_job j = {.nodes = {.ranks = 2 + (int)(bits % 3),
                                        .services = 1 + (int)(bits >> 8 & 1)},
                              .seed = bits,
                              .signal = sig,
                              .after = 1 + (bits >> 16) % (i % 2 ? 40 : 400)};
        run(transport, &j);
    }
}

static void test_killed(void **state)
{
    sweep(*state, SIGKILL, 12);
}

static void test_stopped(void **state)
{
    sweep(*state, SIGSTOP, 3);
}

#define ON(test, transport) {#test " [" transport "]", test, NULL, NULL, (char *)(uintptr_t)transport}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON(test_never, "shm"), ON(test_killed, "shm"), ON(test_stopped, "shm"),
        ON(test_never, "tcp"), ON(test_killed, "tcp"), ON(test_stopped, "tcp"),
    };

    tribtest_deadline(300);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
