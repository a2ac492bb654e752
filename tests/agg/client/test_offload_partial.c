/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Aggregators finish sums without late ranks. No input is lost or counted twice, and
 * all ranks have the same bits, even if aggregators are lost at any time.
 *
 * Values are small integers: results plus residuals of the ranks equal the inputs
 * exactly.
 */
#include "pipeline/payload/error_feedback.h"

#include <math.h>
#include <sys/mman.h>

#include "build-config.h"
#include "comm/members/leave.h"
#include "comm/plan/quorum_rule.h"
#include "pipeline/payload/partial.h"
#include "pipeline/payload/undo_log.h"
#include "tests/agg/client/aggregators.h"
#include "tests/comm/oracle.h"

enum { LONGEST = 20000, STEPS = 8, DRAIN = 16, PLANS = 3, RANKS = 5, LATE_MS = 60 };

#define QUORUM "0.5,deadline=5ms"

/* Properties of a plan; properties of a random job are drawn from its number. */
struct kind {
    const char *codec, *feedback;
    trib_dtype_t dtype;
    trib_op_t op;
    size_t count, chunk;
    trib_feed_t feed;
    bool in_place;
    bool exact; /* nothing is rounded, not even results */
};

struct said {
    uint64_t hash;
    uint64_t absent[RANKS];
};

struct shared {
    _Atomic int struck; /* process of aggregator 0, once it has killed itself */
    _Atomic int aggregator; /* process of aggregator 0 */
    _Atomic int n_done; /* ranks that are done */
    _Atomic uint64_t missed; /* missed elements, as reported to rank 0 */
    struct said said[RANKS][PLANS][STEPS + DRAIN];
    double held[RANKS][PLANS][LONGEST]; /* residuals at the end */
};

struct job {
    struct aggregators aggregators;
    uint64_t seed;
    const char *quorum;
    struct kind kind[PLANS];
    int late; /* rank; -1: none */
    int signal; /* of aggregator 0; 0: none */
    uint64_t after; /* its number of moves before the signal */
    bool strikes; /* the late rank kills aggregator 0 after it has fed a part of a
                   * start */
    int strike_step;
    uint64_t digest; /* out: digest of all results */
    int drain; /* starts with zero input at the end */
    struct shared *shared;
};

static double number(uint64_t seed, int rank, uint64_t step, size_t i)
{
    return (double)(oracle_mix(seed ^ oracle_mix(i * 64 + (uint64_t)rank) ^
                               step << 40) %
                    9) -
           4;
}

/* Aggregators ---------------------------------------------------------------------- */

static bool is_over(const struct ranks_self *self)
{
    const struct job *j = self->arg;

    return aggregators_over(self, &j->aggregators, atomic_load(&j->shared->n_done));
}

static void serve(struct ranks_self *self, struct trib_comm *agg_comm)
{
    struct job *j = self->arg;
    const bool first = agg_comm->engine.rank == j->aggregators.ranks;
    uint64_t moved = 0;
    unsigned turns = 0;

    if (first)
        atomic_store(&j->shared->aggregator, getpid());
    while (aggregators_listen(self, &j->aggregators, agg_comm) && !is_over(self)) {
        if (aggregators_turn(agg_comm, &turns) && ++moved == j->after && first &&
            j->signal) {
            atomic_store(&j->shared->struck, getpid());
            raise(j->signal);
        }
        if (agg_comm->engine.failed)
            usleep(1000);
    }
    trib_agg_comm_dispose(agg_comm);
}

/* Ranks ---------------------------------------------------------------------------- */

struct user {
    struct ranks_self *self;
    trib_comm_t *comm;
    trib_plan_t *plan[PLANS];
    trib_plan_t *last; /* plan of a step without a quorum: a rank that finishes it knows
                        * that all ranks finished the others */
    float sum;
    void *send[PLANS], *recv[PLANS];
    double *out[PLANS]; /* sum of all results; means are multiplied by their number of
                         * contributors */
};

#define WELL(u, call) \
    do { \
        if ((call) != TRIB_OK) \
            ranks_die((u)->self, "seed %llu: %s: %s", \
                      (unsigned long long)((struct job *)(u)->self->arg)->seed, #call, \
                      trib_last_error((u)->comm)); \
    } while (0)

static void make_plans(struct user *u)
{
    const struct job *j = u->self->arg;

    for (int p = 0; p < PLANS; p++) {
        const struct kind *k = &j->kind[p];
        trib_desc_t d = TRIB_DESC_INIT;
        u->send[p] = calloc(k->count + 1, sizeof(float));
        u->recv[p] = k->in_place ? u->send[p] : calloc(k->count + 1, sizeof(float));
        u->out[p] = calloc(k->count + 1, sizeof(double));
        d.send = k->in_place ? NULL : u->send[p];
        d.recv = u->recv[p];
        d.count = k->count;
        d.dtype = k->dtype;
        d.op = k->op;
        d.codec = k->codec;
        d.feedback = k->feedback;
        d.chunk = k->chunk;
        d.feed = k->feed;
        d.quorum = j->quorum;
        WELL(u, trib_plan_allreduce(u->comm, &d, &u->plan[p]));
    }
    trib_desc_t d = sized(trib_desc_t, .recv = &u->sum, .count = 1);
    WELL(u, trib_plan_allreduce(u->comm, &d, &u->last));
}

/* Return the number of contributors to the chunk of element i; without aggregators, all
 * ranks. */
static int contributors(const struct user *u, int p, size_t i)
{
    const struct job *j = u->self->arg;
    const struct trib_offload_plan *s = u->plan[p]->offload;

    if (!s->committed) { /* the aggregators are lost; a short vector shows it */
        int n = j->aggregators.ranks;
        for (int r = 0; r < j->aggregators.ranks; r++)
            n -= s->absent[r] == j->kind[p].count;
        return n;
    }
    const struct trib_quorum_start *known = s->committed->start;
    const uint8_t *mask = known->bytes + i / known->piece * known->mask_bytes;
    int n = 0;
    for (int r = 0; r < j->aggregators.ranks; r++)
        n += trib_quorum_bit(mask, r);
    return n;
}

static void take_result(struct user *u, int p, int step)
{
    const struct job *j = u->self->arg;
    const struct kind *k = &j->kind[p];
    const size_t size = trib_dtype_size(k->dtype);
    struct said *said = &j->shared->said[u->self->rank][p][step];
    size_t absent[RANKS];

    WELL(u, trib_plan_absent(u->plan[p], absent));
    said->hash = oracle_hash(u->recv[p], k->count * size);
    for (int r = 0; r < j->aggregators.ranks; r++) {
        said->absent[r] = absent[r];
        if (u->self->rank == 0)
            atomic_fetch_add(&j->shared->missed, absent[r]);
    }
    for (size_t i = 0; i < k->count; i++) {
        const double x = perf_number_load(k->dtype, (char *)u->recv[p], i).f;
        const int n = k->op == TRIB_MEAN ? contributors(u, p, i) : 1;
        ranks_assert(u->self, k->op != TRIB_MEAN || 2 * n >= j->aggregators.ranks);
        u->out[p][i] += k->op == TRIB_MEAN ? nearbyint(x * n) : x;
    }
}

static void feed(struct user *u, int p, bool pause)
{
    const struct job *j = u->self->arg;
    const size_t count = j->kind[p].count;

    WELL(u, trib_plan_ready(u->plan[p], count / 3, count - count / 3));
    if (pause)
        usleep(LATE_MS * 1000);
    if (pause && j->strikes && p == 0) { /* the other ranks have finished it */
        atomic_store(&j->shared->struck, atomic_load(&j->shared->aggregator));
        kill(atomic_load(&j->shared->aggregator), SIGKILL);
    }
    WELL(u, trib_plan_ready(u->plan[p], 0, count / 3));
}

static void wait_for_last(struct user *u)
{
    const struct job *j = u->self->arg;

    WELL(u, trib_plan_wait(u->last));
    ranks_assert(u->self, u->sum == (float)(j->aggregators.ranks *
                                            (j->aggregators.ranks + 1) / 2));
}

static void one_step(struct user *u, int step, bool zero)
{
    const struct job *j = u->self->arg;
    const uint64_t bits = oracle_mix(j->seed + (uint64_t)step);
    const bool late = u->self->rank == j->late && !zero && bits % 3 != 0;

    for (int p = 0; p < PLANS; p++) {
        const struct kind *k = &j->kind[p];
        for (size_t i = 0; i < k->count; i++) {
            union perf_number v = {.f = 0};
            if (!zero)
                v.f = number(j->seed + (uint64_t)p, u->self->rank, (uint64_t)step, i);
            perf_number_store(k->dtype, u->send[p], i, v);
        }
    }
    if (late && bits & 64 && !j->strikes)
        usleep(LATE_MS * 1000);
    for (int p = 0; p < PLANS; p++)
        WELL(u, trib_plan_start(u->plan[p]));
    u->sum = (float)u->self->rank + 1;
    if (bits & 256)
        WELL(u, trib_plan_start(u->last));
    for (int p = 0; p < PLANS; p++)
        if (j->kind[p].feed)
            feed(u, p,
                 j->strikes ? u->self->rank == j->late && step == j->strike_step
                            : late && !(bits & 64));
    if (bits & 256 && (bits >> 10 & 3) == (uint64_t)u->self->rank % 4)
        wait_for_last(u);
    for (int p = PLANS - 1; p >= 0; p--) {
        unsigned turns = 0;
        while (bits & 128 && trib_plan_test(u->plan[p]) == TRIB_INPROGRESS)
            tribtest_rest(&turns);
        WELL(u, trib_plan_wait(u->plan[p]));
        take_result(u, p, step);
    }
    if (bits & 256)
        wait_for_last(u);
}

/* Residuals are parts of contributions. A rank that was the only one to leave the
 * aggregators in the last start keeps its part of each mean, such as a third. */
static void note_held(struct user *u)
{
    const struct job *j = u->self->arg;

    for (int p = 0; p < PLANS; p++) {
        struct trib_run *run = &u->plan[p]->offload->inner->run;
        ranks_assert(u->self,
                     trib_feedback_of(run)->residual || strcmp(j->quorum, "all") == 0);
        for (size_t i = 0; trib_feedback_of(run)->residual && i < j->kind[p].count;
             i++) {
            const double held = (double)trib_feedback_of(run)->residual[i];
            j->shared->held[u->self->rank][p][i] =
                j->kind[p].op == TRIB_MEAN ? nearbyint(held) : held;
        }
    }
}

/* Called by rank 0 when all ranks are done. */
static void check_mass(struct user *u)
{
    const struct job *j = u->self->arg;

    for (int p = 0; p < PLANS; p++) {
        for (size_t i = 0; i < j->kind[p].count; i++) {
            double in = 0, held = 0;
            for (int r = 0; r < j->aggregators.ranks; r++) {
                held += j->shared->held[r][p][i];
                for (uint64_t step = 0; step < STEPS; step++)
                    in += number(j->seed + (uint64_t)p, r, step, i);
            }
            const double off = fabs(u->out[p][i] + held - in);
            if (off > (j->kind[p].exact ? 0 : 1))
                ranks_die(
                    u->self,
                    "seed %llu after %llu: plan %d (%s %s %s): element %zu: %g came "
                    "out, %g is held, %g went in",
                    (unsigned long long)j->seed, (unsigned long long)j->after, p,
                    j->kind[p].codec, trib_dtype_name(j->kind[p].dtype),
                    trib_op_name(j->kind[p].op), i, u->out[p][i], held, in);
        }
    }
}

static void check_same(struct user *u)
{
    const struct job *j = u->self->arg;

    for (int r = 1; r < j->aggregators.ranks; r++)
        for (int p = 0; p < PLANS; p++)
            for (int step = 0; step < STEPS + j->drain; step++)
                if (memcmp(&j->shared->said[r][p][step], &j->shared->said[0][p][step],
                           sizeof(struct said)) != 0)
                    ranks_die(u->self,
                              "seed %llu after %llu: start %d of plan %d: rank %d has "
                              "another result than rank 0",
                              (unsigned long long)j->seed, (unsigned long long)j->after,
                              step, p, r);
}

static trib_comm_t *come(struct ranks_self *self, struct trib_comm **all_out)
{
    struct job *j = self->arg;
    struct trib_comm *all = NULL, *parent = NULL;
    const bool aggregator = self->rank >= j->aggregators.ranks;

    ranks_ok(self, trib_init(&self->opts, &all));
    struct trib_comm *agg_comm = aggregators_join(self, &j->aggregators, all);
    ranks_ok(self, trib_split(all, aggregator ? -1 : 0, 0, &parent));
    *all_out = all;
    if (aggregator) {
        serve(self, agg_comm);
        return NULL;
    }
    ranks_ok(self, trib_offload_attach(parent));
    parent->offload->agg_comm = agg_comm;
    return parent;
}

static int run_rank(struct ranks_self *self)
{
    struct job *j = self->arg;
    struct user u = {.self = self};
    struct trib_comm *all;

    u.comm = come(self, &all);
    if (!u.comm) {
        trib_comm_dispose(all);
        return 0;
    }
    make_plans(&u);
    for (int step = 0; step < STEPS + j->drain; step++)
        one_step(&u, step, step >= STEPS);
    note_held(&u);
    if (j->seed % 2) /* rank 0 cannot know that all ranks are done */
        WELL(&u, trib_barrier(u.comm));
    for (int p = 0; p < PLANS; p++)
        WELL(&u, trib_plan_free(u.plan[p]));
    WELL(&u, trib_plan_free(u.last));
    WELL(&u, trib_free_comm(u.comm));
    u.comm = NULL;
    const bool last =
        atomic_fetch_add(&j->shared->n_done, 1) + 1 == j->aggregators.ranks;
    if (last && j->signal == SIGSTOP && atomic_load(&j->shared->struck))
        kill(atomic_load(&j->shared->struck), SIGKILL);
    while (self->rank == 0 && atomic_load(&j->shared->n_done) < j->aggregators.ranks)
        usleep(1000);
    if (self->rank == 0) {
        check_same(&u);
        check_mass(&u);
    }
    for (int p = 0; p < PLANS; p++) {
        free(u.send[p]);
        if (u.recv[p] != u.send[p])
            free(u.recv[p]);
        free(u.out[p]);
    }
    trib_comm_dispose(all);
    return 0;
}

/* Runs ----------------------------------------------------------------------------- */

static void draw(struct kind *k, uint64_t bits, bool exact)
{
    static const size_t counts[] = {1, 17, 1023, 4097, LONGEST};
    static const size_t chunks[] = {0, 256, 4096};
    static const trib_dtype_t dtypes[] = {TRIB_F32, TRIB_F16, TRIB_BF16};
    static const struct {
        const char *codec, *feedback;
    } codecs[] = {{"none", NULL},
                  {"topk:ratio=0.25", NULL},
                  {"none", "none"},
                  {"topk:ratio=0.1", "ef14"},
                  {"qsgd:bits=8,bucket=64,ef=1", NULL},
                  {"natural", "ef14"}};
    const size_t c = (bits >> 24) % (exact ? 4 : 6);

    *k = (struct kind){.codec = codecs[c].codec,
                       .feedback = codecs[c].feedback,
                       .dtype = dtypes[bits % 3],
                       .op = (trib_op_t)(bits >> 8 & 1 && exact ? TRIB_MEAN : TRIB_SUM),
                       .count = counts[(bits >> 16) % 5],
                       .chunk = chunks[(bits >> 32) % 3],
                       .feed = (trib_feed_t)((bits >> 40) % 3),
                       .in_place = bits >> 48 & 1,
                       .exact = c < 4};
    if (c)
        k->dtype = TRIB_F32;
}

/* Return the number of elements that some rank missed; 0 is possible on a busy machine,
 * where the other ranks are as late. */
static uint64_t run(const char *transport, struct job *j)
{
    char config[200];

    snprintf(config, sizeof(config),
             "transport=%s;stop_timeout_ms=%d;timeout_ms=%u;window=%d", transport,
             j->signal == SIGSTOP ? 1000 : 20000, 20000 * tribtest_slowness(),
             j->seed % 3 ? 2 : 8);
    j->shared = mmap(NULL, sizeof(*j->shared), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(j->shared, MAP_FAILED);
    assert_true(aggregators_open(&j->aggregators));
    struct ranks_job job = {.size = j->aggregators.ranks + j->aggregators.n,
                            .fn = run_rank,
                            .arg = j,
                            .config = config,
                            .bare = true,
                            .noisy = j->signal != 0};
    const int failed = ranks_run(&job);
    aggregators_close(&j->aggregators);
    const int struck = j->shared->struck != 0;
    const uint64_t missed = j->shared->missed;
    j->digest = oracle_hash(j->shared->said[0], sizeof(j->shared->said[0]));
    munmap(j->shared, sizeof(*j->shared));
    assert_int_equal(failed, struck);
    return missed;
}

static struct job job_of(uint64_t n, bool exact)
{
    const uint64_t bits = oracle_mix(n * 7 + 1);
    struct job j = {
        .aggregators = {.ranks = 3 + (int)(bits % 3), .n = 1 + (int)(bits >> 8) % 3},
        .seed = bits,
        .quorum = QUORUM};

    if (j.aggregators.n < 1)
        j.aggregators.n = 1;
    j.late = (int)(bits >> 16 & 0xff) % j.aggregators.ranks;
    for (uint64_t p = 0; p < PLANS; p++)
        draw(&j.kind[p], oracle_mix(bits + p), exact);
    return j;
}

/* Aggregators and plans are the same over each transport, so only shm runs all jobs. */
static uint64_t jobs_over(const char *transport, uint64_t n)
{
    return strcmp(transport, "shm") == 0 ? n : n / 2;
}

TEST_WITH(test_late, "shm", "tcp", IF_UCX("ucx"))
{
    uint64_t missed = 0;

    for (uint64_t n = 0; n < jobs_over(*state, 6); n++) {
        struct job j = job_of(n, true);
        missed += run(*state, &j);
    }
    assert_true(missed > 0);
}

TEST_WITH(test_rounded, "shm", "tcp")
{
    uint64_t missed = 0;

    for (uint64_t n = 20; n < 20 + jobs_over(*state, 4); n++) {
        struct job j = job_of(n, false);
        j.drain = DRAIN;
        missed += run(*state, &j);
    }
    assert_true(missed > 0);
}

/* With enough time, no rank is missed. */
TEST_WITH(test_patient, "shm")
{
    struct job j = job_of(3, true);

    j.quorum = "0.5,deadline=100s";
    assert_int_equal(run(*state, &j), 0);
}

/* The results are then bit-identical to those without a quorum. */
TEST_WITH(test_same, "shm")
{
    for (uint64_t n = 40; n < 43; n++) {
        struct job j = job_of(n, true);
        j.late = -1;
        j.quorum = "all";
        assert_int_equal(run(*state, &j), 0);
        const uint64_t digest = j.digest;
        j.quorum = "0.5,deadline=100s";
        assert_int_equal(run(*state, &j), 0);
        assert_true(j.digest == digest);
    }
}

static void sweep(const char *transport, int sig, uint64_t draws)
{
    for (uint64_t n = 0; n < draws; n++) {
        struct job j = job_of(n + 100 * (uint64_t)sig, true);
        for (int p = 0; p < PLANS; p++)
            if (j.kind[p].op == TRIB_MEAN) /* of one chunk: see contributors */
                j.kind[p] = (struct kind){.codec = "none",
                                          .count = 17,
                                          .op = TRIB_MEAN,
                                          .feed = j.kind[p].feed,
                                          .exact = true};
        j.signal = sig;
        j.after = 1 + oracle_mix(j.seed + 5) % (n % 3 == 0   ? 60
                                                : n % 3 == 1 ? 400
                                                             : 2000);
        (void)run(transport, &j);
    }
}

TEST_WITH(test_killed, "shm", "tcp", IF_UCX("ucx"))
{
    sweep(*state, SIGKILL, jobs_over(*state, 6));
}

/* The other ranks have finished a start, and the late rank contributed to some of its
 * chunks only. */
TEST_WITH(test_half_fed, "shm", "tcp", IF_UCX("ucx"))
{
    uint64_t missed = 0;

    for (uint64_t n = 0; n < jobs_over(*state, 4); n++) {
        struct job j = job_of(n + 200, true);
        for (int p = 0; p < PLANS; p++) {
            j.kind[p].feed = TRIB_FEED_BACKWARD;
            j.kind[p].count = p ? 4097 : LONGEST;
            j.kind[p].chunk = 4096;
            j.kind[p].op = TRIB_SUM; /* without aggregators, the contributors to a mean
                                      * are unknown */
        }
        j.signal = SIGKILL;
        j.strikes = true;
        j.strike_step = STEPS / 2;
        missed += run(*state, &j);
    }
    assert_true(missed > 0);
}

/* The same in the last start: only the late rank continues without aggregators. */
TEST_WITH(test_last_mean, "shm", "tcp")
{
    uint64_t missed = 0;

    for (uint64_t n = 0; n < jobs_over(*state, 6); n++) {
        struct job j = job_of(n + 300, true);
        for (int p = 0; p < PLANS; p++)
            j.kind[p] = (struct kind){.codec = "none",
                                      .count = 17,
                                      .op = TRIB_MEAN,
                                      .feed = TRIB_FEED_BACKWARD,
                                      .exact = true};
        j.signal = SIGKILL;
        j.strikes = true;
        j.strike_step = STEPS - 1;
        j.late = (int)n % j.aggregators.ranks;
        missed += run(*state, &j);
    }
    assert_true(missed > 0);
}

TEST_WITH(test_stopped, "shm", "tcp")
{
    sweep(*state, SIGSTOP, 2);
}
