/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks lose their aggregators in any phase, because these are killed or stopped. They
 * connect to later aggregators and may lose these as well. Each sum equals the plain
 * sum, and the residual of a codec is neither lost nor sent twice.
 *
 * An aggregator counts its moves and kills itself at a number that the test draws.
 * Values are small integers, so all sums are exact.
 */
#include "pipeline/payload/error_feedback.h"

#include <math.h>
#include <sys/mman.h>

#include "agg/client/fallback.h"
#include "build-config.h"
#include "comm/core/comm_lock.h"
#include "comm/members/leave.h"
#include "tests/agg/client/lossy_job.h"
#include "tests/comm/oracle.h"

/* Return an input of a rank: a small integer. */
static double number(uint64_t seed, int rank, uint64_t step, size_t i)
{
    return (double)(oracle_mix(seed ^ oracle_mix(i * 64 + (uint64_t)rank) ^
                               step << 40) %
                    17) -
           8;
}

static double sum_of(uint64_t seed, int ranks, uint64_t step, size_t i)
{
    double sum = 0;

    for (int r = 0; r < ranks; r++)
        sum += number(seed, r, step, i);
    return sum;
}

/* Ranks ---------------------------------------------------------------------------- */

struct plans {
    trib_plan_t *dense, *whole, *coded;
    float *x; /* [LONG], in place */
    int64_t *in, *out; /* [SHORT] */
    float *y; /* [CODED], in place; of the newest start */
    float *elsewhere; /* the same */
    double *total; /* [CODED] sum of results */
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
    const struct lossy_job *j = self->arg;
    trib_desc_t d = TRIB_DESC_INIT;

    p->x = calloc(LONG, sizeof(float));
    p->in = calloc(SHORT, sizeof(int64_t));
    p->out = calloc(SHORT, sizeof(int64_t));
    p->y = calloc(CODED, sizeof(float));
    p->elsewhere = calloc(CODED, sizeof(float));
    p->total = calloc(CODED, sizeof(double));
    d.chunk = 4096;
    d.dtype = TRIB_F32;
    d.recv = p->x;
    d.count = LONG;
    d.feed = TRIB_FEED_FORWARD;
    p->dense = plan(self, comm, d);
    d.recv = p->y;
    d.count = CODED;
    d.feed = TRIB_FEED_WHOLE;
    d.codec = j->kind->codec;
    d.feedback = j->kind->feedback;
    p->coded = plan(self, comm, d);
    d.codec = "none";
    d.feedback = NULL;
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
    ranks_ok(self, trib_plan_free(p->coded));
    free(p->x);
    free(p->in);
    free(p->out);
    free(p->y);
    free(p->elsewhere);
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
        if ((double)p->x[i] != sum_of(j->seed, j->aggregators.ranks, step, i))
            ranks_die(
                self,
                "seed %llu, after %llu: dense element %zu of step %llu is %g, not %g",
                (unsigned long long)j->seed, (unsigned long long)j->after[0], i,
                (unsigned long long)step, (double)p->x[i],
                sum_of(j->seed, j->aggregators.ranks, step, i));
}

static void check_whole(struct ranks_self *self, const struct plans *p, uint64_t step)
{
    const struct lossy_job *j = self->arg;

    for (size_t i = 0; i < SHORT; i++)
        if ((double)p->out[i] != sum_of(j->seed, j->aggregators.ranks, step, i))
            ranks_die(self,
                      "seed %llu, after %llu: integer %zu of step %llu is %lld, not %g",
                      (unsigned long long)j->seed, (unsigned long long)j->after[0], i,
                      (unsigned long long)step, (long long)p->out[i],
                      sum_of(j->seed, j->aggregators.ranks, step, i));
}

/* Return 0 for step STEPS and later, or the same value each time for CAUGHT_UP. */
static double coded_number(const struct lossy_job *j, int rank, uint64_t step, size_t i)
{
    if (step < STEPS)
        return number(j->seed, rank, step, i);
    return j->kind->law == CAUGHT_UP ? number(j->seed, rank, STEPS, i) : 0;
}

static void one_coded(struct ranks_self *self, trib_comm_t *comm, struct plans *p,
                      uint64_t step)
{
    float *y =
        (step + (uint64_t)self->rank) % 3 ? p->elsewhere : p->y; /* the same vector */

    for (size_t i = 0; i < CODED; i++)
        y[i] = (float)coded_number(self->arg, self->rank, step, i);
    WELL(self, comm, trib_plan_start_with(p->coded, NULL, y));
    WELL(self, comm, trib_plan_wait(p->coded));
    for (size_t i = 0; i < CODED; i++)
        p->total[i] += (double)y[i];
    p->elsewhere = y == p->y ? p->elsewhere : p->y;
    p->y = y;
}

/* Put a rank into the state after its aggregators were silent for this rank only: a
 * lost link does not notify them. */
static void lose_aggregators(struct ranks_self *self, trib_comm_t *comm)
{
    struct trib_comm *agg_comm = comm->offload->agg_comm;
    struct trib_engine *e = &agg_comm->engine;

    ranks_assert(self, !e->failed);
    trib_comm_lock(agg_comm);
    for (int p = e->ranks; p < e->size; p++)
        e->links[p].lost = true;
    trib_engine_fail(e, TRIB_ERR_PEER_LOST, "the aggregators were silent");
    trib_comm_unlock(agg_comm);
}

/* Start several plans, wait for them in another order, and mix in other operations. */
static void one_step(struct ranks_self *self, trib_comm_t *comm, struct plans *p,
                     uint64_t step)
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
    ranks_assert(self, mine[0] == j->aggregators.ranks);
    WELL(self, comm, trib_barrier(comm));
    unsigned turns = 0;
    while (trib_plan_test(p->dense) == TRIB_INPROGRESS)
        tribtest_rest(&turns);
    WELL(self, comm, trib_plan_wait(p->dense));
    check_dense(self, p, step);
    WELL(self, comm, trib_plan_wait(p->whole));
    check_whole(self, p, step);
    one_coded(self, comm, p, step);
}

/* Run steps with zero input; then send the residuals of the ranks to rank 0. */
static void drain(struct ranks_self *self, trib_comm_t *comm, struct plans *p)
{
    const struct lossy_job *j = self->arg;

    for (int i = 0; i < j->kind->drain; i++)
        one_coded(self, comm, p, STEPS + (uint64_t)i);
    const float *held = trib_feedback_of(&p->coded->offload->inner->run)->residual;
    ranks_assert(self, held || j->kind->law == CAUGHT_UP);
    if (held)
        memcpy(j->shared->held[self->rank], held, sizeof(j->shared->held[0]));
    WELL(self, comm, trib_barrier(comm));
}

/* Return the input of the codec of one rank for element i, of all steps or of the last
 * one. */
static double given(const struct lossy_job *j, int rank, size_t i)
{
    double sum = 0, u = 0;

    if (j->kind->law == CAUGHT_UP)
        return coded_number(j, rank, STEPS, i);
    for (uint64_t step = 0; step < STEPS + (uint64_t)j->kind->drain; step++) {
        u = j->kind->momentum * u + coded_number(j, rank, step, i);
        sum += u;
    }
    return sum;
}

static void check_coded(struct ranks_self *self, const struct plans *p)
{
    const struct lossy_job *j = self->arg;
    const struct kind *k = j->kind;
    const double most = k->rounding + k->lost * (!!j->signal + 1);

    for (size_t i = 0; i < CODED; i++) {
        double in = 0, held = 0;
        for (int r = 0; r < j->aggregators.ranks; r++) {
            in += given(j, r, i);
            held += k->law == NOTHING_LOST ? (double)j->shared->held[r][i] : 0;
        }
        const double out = k->law == CAUGHT_UP ? (double)p->y[i] : p->total[i];
        if (!(fabs(out + held - in) <= most))
            ranks_die(
                self,
                "seed %llu, after %llu: codec %s %s: of element %zu %g went in, %g "
                "came out, %g is held",
                (unsigned long long)j->seed, (unsigned long long)j->after[0], k->codec,
                k->feedback ? k->feedback : "", i, in, out, held);
    }
}

/* A child process frees its copies and sends nothing to peers. */
static void fork_child(struct ranks_self *self, trib_comm_t *parent, struct plans *p)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        bool ok = trib_plan_free(p->dense) == TRIB_OK &&
                  trib_plan_free(p->whole) == TRIB_OK &&
                  trib_plan_free(p->coded) == TRIB_OK &&
                  trib_free_comm(parent) == TRIB_OK;
        _exit(!ok);
    }
    ranks_assert(self, pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

/* Create this plan even while the job has no aggregators; it moves with the others. */
static void one_more(struct ranks_self *self, trib_comm_t *comm, trib_plan_t **more,
                     int64_t *x)
{
    trib_desc_t d = sized(trib_desc_t, .dtype = TRIB_I64, .recv = x, .count = 3);

    if (!*more)
        *more = plan(self, comm, d);
    for (int i = 0; i < 3; i++)
        x[i] = self->rank + i;
    WELL(self, comm, trib_plan_start(*more));
    WELL(self, comm, trib_plan_wait(*more));
    const int n = trib_size(comm);
    for (int i = 0; i < 3; i++)
        ranks_assert(self, x[i] == n * (n - 1) / 2 + n * i);
}

/* Return NULL if the process was an aggregator that is done. */
static trib_comm_t *come(struct ranks_self *self, struct provider *provider)
{
    struct lossy_job *j = self->arg;
    struct trib_comm *all = NULL, *first = NULL, *parent = NULL, *agg_comm = NULL;
    const bool aggregator = self->rank >= j->aggregators.ranks;
    const bool late = self->rank >= j->aggregators.ranks + j->aggregators.n;

    ranks_ok(self, trib_init(&self->opts, &all));
    ranks_ok(self, trib_split(all, late ? 1 : 0, 0, &first));
    if (!late && j->aggregators.n)
        agg_comm = aggregators_join(self, &j->aggregators, first);
    ranks_ok(self, trib_split(all, aggregator ? -1 : 0, 0, &parent));
    *provider =
        (struct provider){.self = self, .all = all, .first = first, .parent = parent};
    if (late)
        serve_later(self, all);
    else if (aggregator)
        serve(self, &j->aggregators, agg_comm);
    if (aggregator)
        return NULL;
    ranks_ok(self, trib_offload_attach(parent));
    parent->offload->agg_comm = agg_comm;
    parent->offload->next_poll_seq = agg_comm ? 0 : 1;
    parent->offload->provider = (struct trib_agg_provider_ops){
        .found = self->rank == 0 ? found : NULL, .open = open_later, .arg = provider};
    return parent;
}

/* Free without notifying peers: some are dead. */
static void part(struct provider *w)
{
    trib_comm_dispose(w->first);
    trib_comm_dispose(w->all);
}

static int run_rank(struct ranks_self *self)
{
    struct lossy_job *j = self->arg;
    struct provider provider;
    trib_plan_t *more = NULL;
    int64_t x[3];
    struct plans p;

    trib_comm_t *parent = come(self, &provider);
    if (!parent) {
        part(&provider);
        return 0;
    }
    make_plans(self, parent, &p);
    for (provider.step = 0; provider.step < STEPS; provider.step++) {
        if (provider.step == 2 && !j->signal)
            fork_child(self, parent, &p);
        if (j->gives_up_at && provider.step == (uint64_t)j->gives_up_at &&
            self->rank == 0)
            lose_aggregators(self, parent);
        one_step(self, parent, &p, provider.step);
        if (provider.step >= 2)
            one_more(self, parent, &more, x);
    }
    drain(self, parent, &p);
    if (self->rank == 0)
        check_coded(self, &p);
    ranks_assert(self, !j->leaves || provider.returned);
    ranks_ok(self, trib_plan_free(more));
    free_plans(self, &p);
    WELL(self, NULL, trib_free_comm(parent));
    const bool last =
        atomic_fetch_add(&j->shared->n_done, 1) + 1 == j->aggregators.ranks;
    for (int i = 0; last && i < 2; i++) /* they may be stopped */
        if (atomic_load(&j->shared->struck[i]))
            kill(atomic_load(&j->shared->struck[i]), SIGKILL);
    part(&provider);
    return 0;
}

/* Runs ----------------------------------------------------------------------------- */

/* Return true if the ranks reached the later aggregators. */
static bool run(const char *transport, struct lossy_job *j)
{
    /* Between hosts a rank is lost if its heartbeats are late, as under load. */
    const int stop_ms = strncmp(transport, "auto", 4) == 0 ? 1500 : 300;
    char config[200];

    snprintf(config, sizeof(config), "transport=%s;stop_timeout_ms=%d;timeout_ms=%u",
             transport, stop_ms,
             (j->gives_up_at ? 600000 : 20000) * tribtest_slowness());
    j->shared = mmap(NULL, sizeof(*j->shared), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(j->shared, MAP_FAILED);
    j->later.ranks = j->aggregators.ranks;
    j->kind = j->kind ? j->kind : &kinds[0];
    assert_true(aggregators_open(&j->aggregators) && aggregators_open(&j->later));
    struct ranks_job job = {.size =
                                j->aggregators.ranks + j->aggregators.n + j->later.n,
                            .fn = run_rank,
                            .arg = j,
                            .config = config,
                            .bare = true,
                            .noisy = j->signal || j->gives_up_at};
    int failed = ranks_run(&job);
    aggregators_close(&j->aggregators);
    aggregators_close(&j->later);
    /* Aggregators that killed themselves did not return. */
    const int struck = !!j->shared->struck[0] + !!j->shared->struck[1];
    const bool returned = j->shared->returns;
    munmap(j->shared, sizeof(*j->shared));
    assert_int_equal(failed, struck);
    return returned;
}

TEST_WITH(test_never, "shm", "tcp")
{
    run(*state, &(struct lossy_job){.aggregators = {.ranks = 3, .n = 2}, .seed = 1});
}

TEST_WITH(test_leaves, "shm", "tcp")
{
    assert_true(run(*state, &(struct lossy_job){.aggregators = {.ranks = 3, .n = 1},
                                                .later = {.n = 2},
                                                .leaves = true,
                                                .seed = 2}));
}

/* The other ranks wait at working aggregators and must be notified that a rank has
 * left. */
TEST_WITH(test_one_gives_up, "shm", "tcp", "auto:ranks_per_host=2")
{
    for (int step = 1; step < 4; step++)
        run(*state, &(struct lossy_job){.aggregators = {.ranks = 3, .n = 2},
                                        .gives_up_at = step,
                                        .seed = 5});
}

TEST_WITH(test_comes_later, "shm", "tcp")
{
    assert_true(run(*state, &(struct lossy_job){.aggregators = {.ranks = 3},
                                                .later = {.n = 1},
                                                .seed = 3}));
}

static int sweep(const char *transport, int sig, int draws, const struct kind *kind)
{
    int returned = 0;

    for (int i = 0; i < draws; i++) {
        const uint64_t bits = oracle_mix((uint64_t)i + (uint64_t)sig * 1000);
        struct lossy_job j = {.aggregators = {.ranks = 2 + (int)(bits % 3),
                                        .n = 1 + (int)(bits >> 8 & 1)},
                              .later = {.n = (int)((bits >> 9) % 3)},
                              .seed = bits,
                              .kind = kind,
                              .signal = sig,
                              .after = {1 + (bits >> 16) % (i % 2 ? 40 : 400),
                                        (bits >> 40) % 400}};
        returned += run(transport, &j);
    }
    return returned;
}

TEST_WITH(test_killed, "shm", "tcp", "auto:ranks_per_host=2")
{
    assert_true(sweep(*state, SIGKILL, 12, &kinds[0]) > 0);
}

/* The state of each kind of feedback is the same as without a loss. */
TEST_WITH(test_states, "shm", "tcp")
{
    for (int k = 1; k < KINDS; k++) {
        run(*state, &(struct lossy_job){.aggregators = {.ranks = 3, .n = 1},
                                        .kind = &kinds[k],
                                        .seed = 4});
        assert_true(sweep(*state, SIGKILL, 5, &kinds[k]) > 0);
    }
}

TEST_WITH(test_stopped, "shm", "tcp", "auto:ranks_per_host=2")
{
    assert_true(sweep(*state, SIGSTOP, 3, &kinds[0]) > 0);
}
