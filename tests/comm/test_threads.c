/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that encode ahead (TRIB_ENCODE_THREADS): results, residuals and sent sizes
 * have the same bits for any number of threads. When an operation ends in any way, none
 * of them accesses its memory any longer.
 */
#include <sys/mman.h>

#include "base/workers.h"
#include "comm/core/comm_lock.h"
#include "comm/core/plan_struct.h"
#include "pipeline/payload/encode_ahead.h"
#include "tests/comm/algorithms.h"
#include "tests/comm/fed.h"
#include "tests/comm/shared_parts.h"

enum {
    STEPS = 3,
    SIZE_MOST = 4,
    VARIANTS = 4,
    COUNT = 24003,
    CHUNK = 8192, /* bytes: 2048 elements */
};

static const int threads_of[VARIANTS] = {0, 1, 2, 4};

struct scene {
    struct fed_scene fed;
    trib_coll_t coll;
    trib_feed_t feed;
    size_t count;
    int size;
    const char *transport;
};

/* Results of a rank with each number of threads; shared with the test. */
struct outcome {
    uint64_t result[STEPS];
    uint64_t sent[STEPS];
    uint64_t state;
    uint64_t words_ahead;
};

struct job {
    struct scene scene;
    struct outcome (*outcomes)[SIZE_MOST]; /* [VARIANTS] */
    int variant;
};

static struct trib_run *run_of(trib_plan_t *plan)
{
    return &plan->run;
}

/* ---- whole runs ------------------------------------------------------------------ */

/* Keep the progress thread out, so that the workers process all posted work. */
static void workers_do_posted(struct ranks_self *self, trib_plan_t *plan)
{
    struct trib_engine *e = &self->comm->engine;
    struct trib_run *run = run_of(plan);

    if (!trib_encode_ahead_is_used(run))
        return;
    trib_comm_lock(self->comm);
    trib_encode_ahead_post(e, run);
    uint32_t cells = (uint32_t)self->comm->cfg.encode_threads * 4;
    uint32_t posted = cells - trib_workers_free(e->workers), done = 0;
    while (done < posted) {
        done = 0;
        for (uint32_t cell = 0; cell < cells; cell++)
            done += trib_workers_done(e->workers, cell);
        sched_yield();
    }
    trib_comm_unlock(self->comm);
}

/* Feed half of the vector at once, the rest, which is wrong before, in small pieces. */
static void feed(struct ranks_self *self, const struct scene *s, trib_plan_t *plan)
{
    size_t half = s->count / 2, bytes = trib_dtype_size(s->fed.dtype);
    bool backward = s->feed == TRIB_FEED_BACKWARD;
    char *late = (char *)plan->send + (backward ? 0 : half * bytes);
    size_t late_bytes = (backward ? half : s->count - half) * bytes;
    char *kept = malloc(late_bytes);

    ranks_assert(self, kept);
    memcpy(kept, late, late_bytes);
    memset(late, 0x11, late_bytes);
    trib_comm_lock(self->comm);
    ranks_assert(self, trib_run_feed(run_of(plan), backward ? half : 0,
                                     backward ? s->count - half : half));
    trib_comm_unlock(self->comm);
    workers_do_posted(self, plan);
    memcpy(late, kept, late_bytes);
    free(kept);
    for (size_t at = half; backward ? at > 0 : at < s->count;) {
        size_t rest = backward ? at : s->count - at, piece = rest < 700 ? rest : 700;
        if (backward)
            at -= piece;
        ranks_ok(self, trib_plan_ready(plan, at, piece));
        if (!backward)
            at += piece;
    }
}

static void step(struct ranks_self *self, const struct scene *s, trib_plan_t *plan)
{
    ranks_ok(self, trib_plan_start(plan));
    if (s->feed)
        feed(self, s, plan);
    ranks_ok(self, trib_plan_wait(plan));
}

static uint64_t hash_of_state(struct ranks_self *self, trib_plan_t *plan)
{
    size_t bytes;

    ranks_ok(self, trib_plan_state_save(plan, NULL, 0, &bytes));
    void *state = malloc(bytes);
    ranks_assert(self, state);
    ranks_ok(self, trib_plan_state_save(plan, state, bytes, &bytes));
    uint64_t hash = oracle_hash(state, bytes);
    free(state);
    return hash;
}

static int record(struct ranks_self *self)
{
    const struct job *job = self->arg;
    const struct scene *s = &job->scene;
    struct outcome *o = &job->outcomes[job->variant][self->rank];
    size_t size = trib_dtype_size(s->fed.dtype), most = s->count * (size_t)self->size;
    struct oracle inputs = {.kind = ORACLE_REALS, .dtype = s->fed.dtype};
    char *send = calloc(most + 1, size), *recv = calloc(most + 1, size);
    trib_desc_t d = TRIB_DESC_INIT;
    trib_plan_t *plan;

    ranks_assert(self, send && recv);
    d.send = send;
    d.recv = recv;
    d.count = s->count;
    d.dtype = s->fed.dtype;
    d.op = s->fed.op;
    d.codec = s->fed.codec;
    d.feedback = s->fed.feedback;
    d.algorithm = s->fed.algorithm;
    d.feed = s->feed;
    d.chunk = CHUNK;
    ranks_ok(self, trib_plan_create(self->comm, s->coll, &d, &plan));
    for (int k = 0; k < STEPS; k++) {
        const unsigned char *mask;
        inputs.seed = (uint64_t)k + 1;
        oracle_fill(&inputs, self->rank, 0, most, send);
        step(self, s, plan);
        o->result[k] = oracle_hash(recv, most * size);
        if (trib_plan_sent(plan, &mask, NULL) == TRIB_OK)
            o->sent[k] = oracle_hash(mask, (run_of(plan)->desc.total + 7) / 8);
    }
    o->state = hash_of_state(self, plan);
    o->words_ahead = self->comm->engine.stats.words_ahead;
    char text[2000], words[40];
    ranks_ok(self, trib_plan_explain(plan, text, sizeof(text)));
    snprintf(words, sizeof(words), "threads    %d encode ahead",
             trib_encode_ahead_is_used(run_of(plan)) ? threads_of[job->variant] : 0);
    ranks_assert(self, strstr(text, words));
    if (job->variant == 0)
        ranks_assert(self,
                     !trib_encode_ahead_is_used(run_of(plan)) && o->words_ahead == 0);
    ranks_ok(self, trib_plan_free(plan));
    free(send);
    free(recv);
    return 0;
}

static void same(const struct job *job, int variant)
{
    const struct scene *s = &job->scene;

    for (int rank = 0; rank < s->size; rank++) {
        const struct outcome *a = &job->outcomes[0][rank];
        const struct outcome *b = &job->outcomes[variant][rank];
        if (memcmp(a, b, offsetof(struct outcome, words_ahead)) == 0)
            continue;
        fail_msg("%s, %s, %s of %d ranks, rank %d: %d threads: other bits of %s",
                 s->fed.codec, s->fed.feedback ? s->fed.feedback : "-",
                 s->fed.algorithm ? s->fed.algorithm : "auto", s->size, rank,
                 threads_of[variant],
                 memcmp(a->result, b->result, sizeof(a->result)) ? "results"
                 : memcmp(a->sent, b->sent, sizeof(a->sent))     ? "the mask"
                                                                 : "the state");
    }
}

/* Compare the results. Return the number of chunks that were encoded ahead on all
 * ranks, for all numbers of threads. */
static uint64_t compare(const struct scene *s)
{
    size_t bytes = VARIANTS * sizeof(struct outcome[SIZE_MOST]);
    struct job job = {.scene = *s};
    uint64_t ahead = 0;

    job.outcomes =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(job.outcomes != MAP_FAILED);
    for (int v = 0; v < VARIANTS; v++) {
        char config[100];
        snprintf(config, sizeof(config), "transport=%s,encode_threads=%d",
                 s->transport ? s->transport : "shm", threads_of[v]);
        struct ranks_job ranks = {
            .size = s->size, .fn = record, .arg = &job, .config = config};
        ranks.threads = s->transport && strcmp(s->transport, "loop") == 0;
        job.variant = v;
        assert_int_equal(ranks_run(&ranks), 0);
        same(&job, v);
        for (int r = 0; r < s->size; r++)
            ahead += job.outcomes[v][r].words_ahead;
    }
    munmap(job.outcomes, bytes);
    return ahead;
}

static bool agrees_first(const char *codec)
{
    struct trib_codec *c;

    assert_status(trib_codec_create(codec, NULL, NULL, &c), TRIB_OK);
    bool shared = trib_codec_info(c)->flags & TRIB_CODEC_AGREES;
    trib_codec_destroy(c);
    return shared;
}

/* The share of the workers is deterministic: see workers_do_posted. */
TEST(test_fed)
{
    static const struct fed_scene scenes[] = {
        {.codec = "topk:ratio=0.02", .feedback = NULL},
        {.codec = "topk:ratio=0.05+natural", .feedback = "ef21:momentum=0.1"},
        {.codec = "dgc:ratio=0.01",
         .feedback = "ef14:momentum=0.9,nesterov=1,warmup=3,stages=2"},
        {.codec = "randomk:ratio=0.05", .feedback = "ef14:momentum=0.9"},
        {.codec = "qsgd:bits=4", .feedback = "none"},
        {.codec = "qsgd:bits=4,bucket=64,pack=entropy", .feedback = "ef14"},
        {.codec = "onebit", .feedback = NULL},
        {.codec = "thc", .feedback = NULL},
        {.codec = "int8", .feedback = "ef14:momentum=0.9,masking=0"},
        {.codec = "uniform-thc:bits=4", .feedback = "none"},
        {.codec = "signsgd", .feedback = NULL},
        {.codec = "adacomp", .feedback = NULL},
        {.codec = "blocks:ratio=0.1,block=16", .feedback = "ef14:momentum=0.9"},
        {.codec = "f16:round=random", .feedback = "none"},
        {.codec = "natural", .feedback = "ef14:momentum=0.9,masking=0"},
    };
    static const trib_dtype_t dtypes[] = {TRIB_F32, TRIB_F16, TRIB_F32, TRIB_F64,
                                          TRIB_BF16};

    for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++) {
        struct scene s = {.fed = scenes[i], .coll = TRIB_ALLREDUCE, .count = COUNT};
        s.fed.algorithm = algorithm_at(i);
        s.fed.dtype = dtypes[i % 4];
        s.fed.op = i % 2 ? TRIB_MEAN : TRIB_SUM;
        s.feed = i % 2 ? TRIB_FEED_BACKWARD : TRIB_FEED_FORWARD;
        s.size = 2 + (int)(i % 3);
        uint64_t ahead = compare(&s);
        if (!agrees_first(s.fed.codec)) /* workers wait for agreements, so the share
                                         * depends on timing */
            assert_true(ahead > 0);
    }
}

TEST(test_whole)
{
    static const char *const codecs[][2] = {
        {"topk:ratio=0.02", "ef14:momentum=0.9,clip=2"},
        {"qsgd:bits=4,norm=max", "ef14"},
        {"int8:ef=1", NULL},
        {"dgc:ratio=0.05", "ef21"},
        {"terngrad", "none:clip=3"},
    };

    for (size_t i = 0; i < 10; i++) {
        struct scene s = {.fed = {.codec = codecs[i % 5][0],
                                  .feedback = codecs[i % 5][1],
                                  .algorithm = algorithm_at(i + i / 5),
                                  .dtype = TRIB_F32,
                                  .op = TRIB_SUM},
                          .coll = TRIB_ALLREDUCE,
                          .count = COUNT,
                          .size = 1 + (int)(i % 4),
                          .transport = i % 4 == 3   ? "tcp"
                                       : i % 4 == 2 ? "loop"
                                                    : "shm"};
        (void)compare(&s);
    }
}

/* Also if chunks share bytes of the mask. */
TEST(test_collectives)
{
    static const trib_coll_t colls[] = {TRIB_REDUCE, TRIB_BROADCAST, TRIB_ALLGATHER,
                                        TRIB_REDUCE_SCATTER};
    static const char *const codecs[] = {"topk:ratio=0.02", "qsgd:bits=4", "int8"};

    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 3; k++) {
            struct scene s = {
                .fed = {.codec = codecs[k], .dtype = TRIB_F32, .op = TRIB_SUM},
                .coll = colls[i],
                .count = k ? COUNT : COUNT + 5, /* a multiple of 8 */
                .size = 3};
            (void)compare(&s);
            if (k == 0 && colls[i] == TRIB_REDUCE_SCATTER) {
                s.count = COUNT;
                assert_int_equal(compare(&s), 0);
            }
        }
}

/* ---- operations that end early --------------------------------------------------- */

struct under_way {
    trib_plan_t *plan;
    float *send; /* in separate pages: an access after free faults */
    float *recv;
    size_t bytes;
};

/* Start a slowly encoded plan, and feed nothing yet. */
static void begin(struct ranks_self *self, struct under_way *u)
{
    struct oracle inputs = {.kind = ORACLE_REALS, .dtype = TRIB_F32};
    trib_desc_t d = sized(trib_desc_t, .count = (size_t)1 << 22);

    d.codec = "qsgd:bits=8,pack=entropy";
    d.algorithm = "flat";
    d.feed = TRIB_FEED_FORWARD;
    u->bytes = d.count * sizeof(float);
    u->send = mmap(NULL, u->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                   -1, 0);
    u->recv = mmap(NULL, u->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                   -1, 0);
    ranks_assert(self, u->send != MAP_FAILED && u->recv != MAP_FAILED);
    oracle_fill(&inputs, self->rank, 0, d.count, u->send);
    d.send = u->send;
    d.recv = u->recv;
    ranks_ok(self, trib_plan_allreduce(self->comm, &d, &u->plan));
    ranks_ok(self, trib_plan_start(u->plan));
    ranks_assert(self, trib_encode_ahead_is_used(run_of(u->plan)));
}

/* Feed half of it, so that workers hold it. */
static void feed_half(struct ranks_self *self, struct under_way *u)
{
    trib_comm_lock(self->comm);
    ranks_assert(self, trib_run_feed(run_of(u->plan), 0, (size_t)1 << 21));
    trib_encode_ahead_post(&self->comm->engine, run_of(u->plan));
    trib_comm_unlock(self->comm);
}

static void forget(struct ranks_self *self, struct under_way *u)
{
    munmap(u->send, u->bytes);
    munmap(u->recv, u->bytes);
    ranks_ok(self, trib_plan_free(u->plan));
}

static int fails(struct ranks_self *self)
{
    struct under_way u;

    begin(self, &u);
    feed_half(self, &u);
    trib_comm_lock(self->comm);
    trib_encode_ahead_post(&self->comm->engine, run_of(u.plan));
    trib_engine_fail(&self->comm->engine, TRIB_ERR_PEER_LOST, "as if");
    trib_comm_unlock(self->comm);
    ranks_expect(self, trib_plan_wait(u.plan), TRIB_ERR_PEER_LOST, "trib_plan_wait");
    forget(self, &u);
    return 0;
}

TEST(test_failure)
{
    static const char *const configs[] = {
        "transport=shm,encode_threads=4,chunk=1M",
        "transport=shm,encode_threads=2,chunk=1M,progress=caller",
        "transport=tcp,encode_threads=1,chunk=1M",
    };

    for (int i = 0; i < 3; i++)
        for (int round = 0; round < 4; round++) {
            ranks_pass(.size = 2, .fn = fails, .config = configs[i], .noisy = true);
        }
}

/* Rank 1 dies during the operation. */
static int loses_peer(struct ranks_self *self)
{
    struct under_way u;

    begin(self, &u);
    feed_half(self, &u);
    ranks_ok(self, trib_plan_ready(u.plan, (size_t)1 << 21, (size_t)1 << 20));
    if (self->rank == 1) {
        while (self->comm->engine.stats.messages < 2)
            (void)trib_progress(self->comm);
        kill(getpid(), SIGKILL);
    }
    ranks_expect(self, trib_plan_wait(u.plan), TRIB_ERR_PEER_LOST, "trib_plan_wait");
    forget(self, &u);
    return 0;
}

TEST(test_lost_peer)
{
    for (int round = 0; round < 3; round++) {
        struct ranks_job job = {.size = 2,
                                .fn = loses_peer,
                                .config = "transport=shm,encode_threads=2,chunk=256K,"
                                          "progress=caller",
                                .noisy = true};
        struct ranks r;
        assert_true(ranks_start(&r, &job));
        ranks_wait(&r);
        if (r.slots[0].status != 0)
            fail_msg("rank 0: %s", r.slots[0].text);
        assert_true(WIFSIGNALED(r.wait_status[1]));
        ranks_close(&r);
    }
}

struct gate {
    _Atomic bool begun;
    _Atomic bool open;
};

static void wait_at_gate(void *arg, uint32_t cell, uint32_t worker)
{
    struct gate *gate = arg;

    (void)cell, (void)worker;
    atomic_store(&gate->begun, true);
    while (!atomic_load(&gate->open))
        sched_yield();
}

/* A child has no workers, even if those of its parent are running: it frees its copy of
 * a running plan, and its parent continues. */
static int forks(struct ranks_self *self)
{
    struct gate gate = {false, false};
    struct under_way u;
    int status = -1;

    begin(self, &u);
    struct trib_workers *workers = self->comm->engine.workers;
    trib_comm_lock(self->comm);
    uint32_t cell = trib_workers_cell(workers);
    trib_workers_post(workers, cell, (struct trib_work){wait_at_gate, &gate});
    trib_workers_rouse(workers);
    trib_comm_unlock(self->comm);
    while (!atomic_load(&gate.begun))
        sched_yield();
    pid_t pid = self->rank == 0 ? fork() : -1;
    if (pid == 0)
        _exit(trib_plan_free(u.plan) == TRIB_OK && trib_free_comm(self->comm) == TRIB_OK
                  ? 0
                  : 3);
    if (self->rank == 0)
        ranks_assert(self, pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    atomic_store(&gate.open, true);
    trib_comm_lock(self->comm);
    while (!trib_workers_done(workers, cell))
        sched_yield();
    trib_workers_release(workers, cell);
    trib_comm_unlock(self->comm);
    feed_half(self, &u);
    ranks_ok(self, trib_plan_ready(u.plan, (size_t)1 << 21, (size_t)1 << 21));
    ranks_ok(self, trib_plan_wait(u.plan));
    forget(self, &u);
    return 0;
}

TEST(test_forked_child)
{
    struct ranks_job job = {
        .size = 2, .fn = forks, .config = "transport=shm,encode_threads=2,chunk=256K"};

    assert_int_equal(ranks_run(&job), 0);
}

/* ---- sums and copies of raw chunks ----------------------------------------------- */

TEST(test_raw_shm)
{
    shared_run("transport=shm;" SHARED_SPLIT, false);
}

TEST(test_raw_tcp)
{
    shared_run("transport=tcp;" SHARED_SPLIT, false);
}

/* ---- work that is not encoded ahead ---------------------------------------------- */

/* One chunk, or small ones, are not worth a thread; models are updated by the
 * engine. */
static int stays_here(struct ranks_self *self)
{
    static const struct {
        const char *codec;
        size_t count;
    } plans[] = {{"none", 100000}, {"topk", 1000}, {"topk", 100}, {"powersgd", 100000}};
    char text[2000];

    for (size_t i = 0; i < 4; i++) {
        trib_plan_t *plan;
        float *x = calloc(plans[i].count, sizeof(*x));
        plan = ranks_plan(self, TRIB_ALLREDUCE, .recv = x, .count = plans[i].count,
                          .codec = plans[i].codec);
        ranks_assert(self, !trib_encode_ahead_is_used(run_of(plan)) &&
                               !self->comm->engine.workers);
        ranks_ok(self, trib_plan_explain(plan, text, sizeof(text)));
        ranks_assert(self, strstr(text, "threads    0 "));
        ranks_step(self, plan);
        ranks_ok(self, trib_plan_free(plan));
        free(x);
    }
    return 0;
}

TEST(test_stays_here)
{
    struct ranks_job job = {
        .size = 2, .fn = stays_here, .config = "transport=shm,encode_threads=2"};

    assert_int_equal(ranks_run(&job), 0);
}
