/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bad input: each returns the documented status and a message with the error, its place
 * and the remedy; and has no other effect.
 */
#include "tests/harness/ranks.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static int logged_warnings;
static char logged_line[600];

static void keep_line(void *arg, trib_log_level_t level, const char *line)
{
    (void)arg;
    if (level <= TRIB_LOG_WARN && logged_warnings++ == 0)
        snprintf(logged_line, sizeof(logged_line), "%s", line);
}

static void assert_words(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (!strstr(text, *words))
            fail_msg("\"%s\" is not in: %s", *words, text);
}

/* trib_init ------------------------------------------------------------------------ */

static void refuse_init(trib_opts_t opts, trib_status_t expected,
                        const char *const *words)
{
    trib_comm_t *comm = (trib_comm_t *)&opts;

    opts.log = keep_line;
    assert_status(trib_init(&opts, &comm), expected);
    assert_null(comm);
    assert_words(trib_last_error(NULL), words);
}

static trib_opts_t one_rank(const char *config)
{
    trib_opts_t o = sized(trib_opts_t, .ranks = 1, .rank_plus_1 = 1, .config = config);

    return o;
}

TEST(test_init_refuses)
{
    trib_opts_t o = TRIB_OPTS_INIT;

    assert_status(trib_init(&o, NULL), TRIB_ERR_INVALID);
    assert_words(trib_last_error(NULL), WORDS("comm_out", "NULL"));
    o.size = 8;
    refuse_init(o, TRIB_ERR_INVALID, WORDS("trib_opts_t.size is 8", "TRIB_OPTS_INIT"));
    refuse_init(one_rank("chunk=100"), TRIB_ERR_CONFIG, WORDS("chunk", "100", "4"));
    refuse_init(one_rank("chonk=64K"), TRIB_ERR_CONFIG, WORDS("chonk", "chunk"));
    refuse_init(one_rank("window=many"), TRIB_ERR_CONFIG, WORDS("window", "many"));
    refuse_init(one_rank("progress=never"), TRIB_ERR_CONFIG,
                WORDS("progress", "never", "thread", "caller"));
    refuse_init(one_rank("transport=shn"), TRIB_ERR_CONFIG, WORDS("shn", "shm"));
    refuse_init(one_rank("transport=shm+nomad"), TRIB_ERR_CONFIG,
                WORDS("nomad", "nomap"));
    refuse_init(one_rank("transport=shm:rings=4"), TRIB_ERR_CONFIG, WORDS("ring"));
}

TEST(test_init_refuses_ranks)
{
    trib_opts_t o =
        sized(trib_opts_t, .ranks = 2, .rank_plus_1 = 3, .root = "127.0.0.1:1");

    refuse_init(o, TRIB_ERR_CONFIG, WORDS("rank", "2"));
    o.rank_plus_1 = 2;
    o.root = "";
    refuse_init(o, TRIB_ERR_CONFIG, WORDS("TRIB_ROOT"));
    o.root = "nonsense";
    refuse_init(o, TRIB_ERR_CONFIG, WORDS("nonsense"));
    o.root = "local:/nowhere";
    refuse_init(o, TRIB_ERR_BOOT, WORDS("/nowhere"));
}

TEST(test_unknown_variable_warns_once)
{
    trib_opts_t o = one_rank(NULL);
    trib_comm_t *comm;

    logged_warnings = 0;
    o.log = keep_line;
    setenv("TRIB_CHUNKS", "64K", 1);
    assert_status(trib_init(&o, &comm), TRIB_OK);
    unsetenv("TRIB_CHUNKS");
    assert_int_equal(logged_warnings, 1);
    assert_words(logged_line, WORDS("TRIB_CHUNKS", "TRIB_CHUNK"));
    assert_status(trib_free_comm(comm), TRIB_OK);
    setenv("TRIB_WINDOW", "0", 1);
    refuse_init(one_rank(NULL), TRIB_ERR_CONFIG, WORDS("TRIB_WINDOW", "0", "1"));
    unsetenv("TRIB_WINDOW");
}

/* Calls on a good communicator ----------------------------------------------------- */

static trib_desc_t good_desc(void *recv)
{
    trib_desc_t d = sized(trib_desc_t, .recv = recv, .count = 16);

    return d;
}

static void refuse_plan(const struct ranks_self *self, trib_coll_t coll,
                        const trib_desc_t *d, trib_status_t expected,
                        const char *const *words)
{
    trib_plan_t *plan = (trib_plan_t *)(void *)&coll;
    trib_status_t got = trib_plan_create(self->comm, coll, d, &plan);

    ranks_assert(self, plan == NULL || got == TRIB_OK);
    ranks_refused(self, got, expected, words);
}

static void refuse_descs(struct ranks_self *self, float *x)
{
    trib_desc_t d = good_desc(x);
    trib_plan_t *plan;

    ranks_refused(self, trib_plan_create(self->comm, TRIB_ALLREDUCE, NULL, &plan),
                  TRIB_ERR_INVALID, WORDS("desc", "NULL"));
    ranks_refused(self, trib_plan_create(self->comm, TRIB_ALLREDUCE, &d, NULL),
                  TRIB_ERR_INVALID, WORDS("plan_out", "NULL"));
    ranks_assert(self,
                 trib_plan_create(NULL, TRIB_ALLREDUCE, &d, &plan) == TRIB_ERR_INVALID);
    refuse_plan(self, (trib_coll_t)99, &d, TRIB_ERR_INVALID,
                WORDS("collective 99"));
    d.size = 8;
    refuse_plan(self, TRIB_ALLREDUCE, &d, TRIB_ERR_INVALID,
                WORDS("trib_desc_t.size is 8", "TRIB_DESC_INIT"));
    d = good_desc(x);
    d.dtype = (trib_dtype_t)99;
    refuse_plan(self, TRIB_ALLREDUCE, &d, TRIB_ERR_INVALID, WORDS("dtype 99"));
    d.dtype = (trib_dtype_t)-1;
    refuse_plan(self, TRIB_ALLREDUCE, &d, TRIB_ERR_INVALID, WORDS("dtype -1"));
    d = good_desc(x);
    d.op = (trib_op_t)99;
    refuse_plan(self, TRIB_REDUCE, &d, TRIB_ERR_INVALID, WORDS("op 99"));
    d.op = TRIB_BXOR;
    refuse_plan(self, TRIB_REDUCE, &d, TRIB_ERR_INVALID,
                WORDS("op bxor supports integers and bool", "f32", "4 bytes"));
    d.op = TRIB_MEAN;
    d.dtype = TRIB_BOOL;
    refuse_plan(self, TRIB_REDUCE, &d, TRIB_ERR_INVALID,
                WORDS("op mean does not support bool", "u8 and sum"));
    d = good_desc(x);
    d.root = 2;
    refuse_plan(self, TRIB_BROADCAST, &d, TRIB_ERR_INVALID,
                WORDS("root is 2", "0 to 1"));
    d.root = -1;
    refuse_plan(self, TRIB_REDUCE, &d, TRIB_ERR_INVALID, WORDS("root is -1"));
    d = good_desc(x);
    d.feed = (trib_feed_t)3;
    refuse_plan(self, TRIB_ALLREDUCE, &d, TRIB_ERR_INVALID, WORDS("feed 3"));
    d.feed = TRIB_FEED_FORWARD;
    refuse_plan(self, TRIB_BROADCAST, &d, TRIB_ERR_INVALID, WORDS("feed", "broadcast"));
    d = good_desc(x);
    d.count = SIZE_MAX / 2;
    refuse_plan(self, TRIB_ALLREDUCE, &d, TRIB_ERR_OVERFLOW,
                WORDS("elements", "4 bytes"));
    d.count = SIZE_MAX / 8;
    refuse_plan(self, TRIB_ALLGATHER, &d, TRIB_ERR_OVERFLOW, WORDS("for each rank"));
    d.count = (size_t)1 << 47;
    refuse_plan(self, TRIB_ALLREDUCE, &d, TRIB_ERR_OVERFLOW, WORDS("TRIB_CHUNK"));
    d.count = (size_t)1 << 48;
    refuse_plan(self, TRIB_ALLREDUCE, &d, TRIB_ERR_OVERFLOW,
                WORDS("do not fit into memory"));
}

static void refuse_chunks(struct ranks_self *self, float *x)
{
    trib_desc_t d = good_desc(x);
    static const char *const codecs[] = {"none", "bf16", "qsgd:bits=4",
                                         "topk:ratio=0.5"};

    d.chunk = 63;
    refuse_plan(self, TRIB_ALLREDUCE, &d, TRIB_ERR_INVALID, WORDS("63", "64"));
    d.chunk = 1 << 20;
    refuse_plan(self, TRIB_ALLREDUCE, &d, TRIB_ERR_INVALID,
                WORDS("1048576", "TRIB_CHUNK"));
    /* Small chunks are either refused or work, with any codec. */
    for (size_t i = 0; i < sizeof(codecs) / sizeof(*codecs); i++) {
        for (size_t chunk = 64; chunk <= 256; chunk += 64) {
            trib_plan_t *plan;
            d.chunk = chunk;
            d.codec = codecs[i];
            trib_status_t st = trib_plan_create(self->comm, TRIB_ALLREDUCE, &d, &plan);
            if (st == TRIB_OK) {
                ranks_step(self, plan);
                ranks_ok(self, trib_plan_free(plan));
            } else {
                ranks_refused(self, st, TRIB_ERR_INVALID, WORDS("chunk"));
            }
        }
    }
}

static void refuse_codecs(struct ranks_self *self, float *x)
{
    trib_desc_t d = good_desc(x);

    d.codec = "topc:ratio=0.1";
    refuse_plan(self, TRIB_ALLREDUCE, &d, TRIB_ERR_CODEC, WORDS("topc", "topk"));
    d.codec = "topk:ratio=2";
    refuse_plan(self, TRIB_ALLREDUCE, &d, TRIB_ERR_CODEC, WORDS("ratio", "2"));
    d.codec = "qsgd:bits=9";
    refuse_plan(self, TRIB_ALLREDUCE, &d, TRIB_ERR_CODEC, WORDS("bits", "9"));
    d.codec = "topk:ratio";
    refuse_plan(self, TRIB_ALLREDUCE, &d, TRIB_ERR_CODEC, WORDS("ratio"));
    d.codec = "";
    refuse_plan(self, TRIB_ALLREDUCE, &d, TRIB_ERR_CODEC, WORDS("codec"));
    d.codec = "bf16";
    d.dtype = TRIB_I32;
    refuse_plan(self, TRIB_ALLREDUCE, &d, TRIB_ERR_UNSUPPORTED,
                WORDS("bf16", "i32", "codec none"));
    d.dtype = TRIB_F32;
    d.codec = "qsgd:bits=4";
    d.op = TRIB_MAX;
    refuse_plan(self, TRIB_ALLREDUCE, &d, TRIB_ERR_UNSUPPORTED, WORDS("qsgd", "max"));
}

static void refuse_algorithms(struct ranks_self *self, float *x)
{
    trib_desc_t d = good_desc(x);

    d.algorithm = "rinq";
    refuse_plan(self, TRIB_ALLREDUCE, &d, TRIB_ERR_INVALID, WORDS("rinq", "ring"));
    d.algorithm = "dissemination";
    refuse_plan(self, TRIB_ALLREDUCE, &d, TRIB_ERR_UNSUPPORTED,
                WORDS("dissemination", "allreduce"));
}

static void refuse_buffers(struct ranks_self *self, float *x)
{
    trib_comm_t *c = self->comm;

    ranks_refused(self, trib_allreduce(c, NULL, NULL, 4, TRIB_F32, TRIB_SUM),
                  TRIB_ERR_INVALID, WORDS("allreduce", "recv", "NULL"));
    ranks_refused(self, trib_allreduce(c, x, x + 1, 4, TRIB_F32, TRIB_SUM),
                  TRIB_ERR_OVERLAP, WORDS("allreduce", "overlap", "same pointer"));
    ranks_refused(self, trib_allreduce(c, x + 3, x, 4, TRIB_F32, TRIB_SUM),
                  TRIB_ERR_OVERLAP, WORDS("overlap"));
    ranks_refused(self, trib_allgather(c, x + 5, x, 4, TRIB_F32), TRIB_ERR_OVERLAP,
                  WORDS("allgather", "overlap"));
    ranks_refused(self, trib_reduce_scatter(c, x, x + 7, 4, TRIB_F32, TRIB_SUM),
                  TRIB_ERR_OVERLAP, WORDS("reduce-scatter", "overlap"));
    ranks_refused(self, trib_broadcast(c, NULL, 4, TRIB_F32, 0), TRIB_ERR_INVALID,
                  WORDS("broadcast", "NULL"));
    ranks_refused(self, trib_reduce(c, NULL, NULL, 4, TRIB_F32, TRIB_SUM, 0),
                  TRIB_ERR_INVALID, WORDS("reduce", "NULL"));
    ranks_refused(self, trib_reduce(c, NULL, x, 4, TRIB_F32, TRIB_SUM, 7),
                  TRIB_ERR_INVALID, WORDS("root is 7"));
    ranks_refused(self, trib_allreduce(c, NULL, x, SIZE_MAX, TRIB_F32, TRIB_SUM),
                  TRIB_ERR_OVERFLOW, WORDS("elements"));
    ranks_assert(self,
                 trib_allreduce(NULL, x, x, 1, TRIB_F32, TRIB_SUM) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_barrier(NULL) == TRIB_ERR_INVALID);
    ranks_ok(self, trib_allreduce(c, NULL, NULL, 0, TRIB_F32, TRIB_SUM));
}

static void refuse_memory(struct ranks_self *self, float *x)
{
    trib_comm_t *c = self->comm;
    void *p;
    trib_stats_t stats = {.size = 3};

    ranks_refused(self, trib_alloc(c, 0, &p), TRIB_ERR_INVALID,
                  WORDS("trib_alloc", "0 bytes"));
    ranks_refused(self, trib_alloc(c, 4, NULL), TRIB_ERR_INVALID, WORDS("ptr_out"));
    trib_status_t st = trib_alloc(c, SIZE_MAX / 2, &p);
    ranks_assert(self, st == TRIB_ERR_NO_MEMORY || st == TRIB_ERR_OVERFLOW);
    ranks_refused(self, st, st, WORDS("trib_alloc", "9223372036854775807"));
    ranks_refused(self, trib_free(c, x), TRIB_ERR_INVALID,
                  WORDS("trib_free", "trib_alloc"));
    ranks_refused(self, trib_register(c, NULL, 4), TRIB_ERR_INVALID,
                  WORDS("ptr is NULL"));
    ranks_refused(self, trib_register(c, x, 0), TRIB_ERR_INVALID, WORDS("0 bytes"));
    ranks_refused(self, trib_deregister(c, x), TRIB_ERR_INVALID,
                  WORDS("trib_register"));
    ranks_assert(self, trib_stats(c, &stats) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_stats(c, NULL) == TRIB_ERR_INVALID);
    ranks_refused(self, trib_split(c, 0, 0, NULL), TRIB_ERR_INVALID, WORDS("comm_out"));
    ranks_assert(self, trib_free(c, NULL) == TRIB_OK);
    ranks_assert(self,
                 trib_free_comm(NULL) == TRIB_OK && trib_plan_free(NULL) == TRIB_OK);
    ranks_assert(self, trib_rank(NULL) == -1 && trib_size(NULL) == 0);
}

static void refuse_plan_calls(struct ranks_self *self, float *x)
{
    trib_desc_t d = good_desc(x);
    trib_plan_t *plan;
    char text[300];

    ranks_ok(self, trib_plan_allreduce(self->comm, &d, &plan));
    ranks_refused(self, trib_plan_ready(plan, 0, 1), TRIB_ERR_INVALID, WORDS("feed"));
    ranks_refused(self, trib_free_comm(self->comm), TRIB_ERR_BUSY,
                  WORDS("1 plan", "trib_plan_free"));
    ranks_assert(self, strstr(trib_last_error(NULL), "1 plan is not freed"));
    ranks_assert(self, trib_plan_explain(plan, NULL, 10) == TRIB_ERR_INVALID);
    ranks_ok(self, trib_plan_explain(plan, text, sizeof(text)));
    ranks_assert(self,
                 strstr(text, "allreduce of 16 f32") && strstr(text, "algorithm"));
    ranks_ok(self, trib_plan_free(plan));
    d.feed = TRIB_FEED_FORWARD;
    ranks_ok(self, trib_plan_allreduce(self->comm, &d, &plan));
    ranks_refused(self, trib_plan_ready(plan, 0, 4), TRIB_ERR_INVALID,
                  WORDS("0 to 4", "trib_plan_start"));
    ranks_ok(self, trib_plan_start(plan));
    ranks_refused(self, trib_plan_start(plan), TRIB_ERR_BUSY, WORDS("wait"));
    ranks_refused(self, trib_plan_free(plan), TRIB_ERR_BUSY, WORDS("wait"));
    ranks_refused(self, trib_plan_ready(plan, 10, 7), TRIB_ERR_INVALID,
                  WORDS("10", "17", "16"));
    ranks_refused(self, trib_plan_ready(plan, 17, 0), TRIB_ERR_INVALID, WORDS("17"));
    ranks_refused(self, trib_plan_ready(plan, 1, SIZE_MAX), TRIB_ERR_INVALID,
                  WORDS("16"));
    void *p;
    ranks_ok(self, trib_alloc(self->comm, 64, &p));
    ranks_refused(self, trib_free(self->comm, p), TRIB_ERR_BUSY,
                  WORDS("trib_free", "wait"));
    ranks_ok(self, trib_plan_ready(plan, 8, 8));
    ranks_refused(self, trib_plan_ready(plan, 0, 9), TRIB_ERR_INVALID,
                  WORDS("0 to 9", "once"));
    ranks_ok(self, trib_plan_ready(plan, 0, 8));
    ranks_ok(self, trib_plan_wait(plan));
    ranks_refused(self, trib_plan_ready(plan, 0, 16), TRIB_ERR_INVALID,
                  WORDS("trib_plan_start"));
    ranks_ok(self, trib_free(self->comm, p));
    ranks_ok(self, trib_plan_free(plan));
    ranks_assert(self, trib_plan_start(NULL) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_plan_wait(NULL) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_plan_test(NULL) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_plan_ready(NULL, 0, 0) == TRIB_ERR_INVALID);
}

RANKS_TEST(test_calls_refuse, .size = 2)
{
    float x[64] = {1, 2, 3};

    refuse_descs(self, x);
    refuse_codecs(self, x);
    refuse_algorithms(self, x);
    refuse_buffers(self, x);
    refuse_memory(self, x);
    refuse_plan_calls(self, x);
    for (int i = 0; i < 64; i++)
        x[i] = (float)(self->rank + 1);
    ranks_ok(self, trib_allreduce(self->comm, NULL, x, 64, TRIB_F32, TRIB_SUM));
    ranks_assert(self, x[0] == 3.0f && x[63] == 3.0f);
    return 0;
}

RANKS_TEST(test_small_chunks, .size = 2)
{
    float x[64] = {1, 2, 3};

    refuse_chunks(self, x);
    return 0;
}

/* The other end of a failed communicator. */
static int use_after_failure(struct ranks_self *self)
{
    float x[4] = {0};
    trib_desc_t d = good_desc(x);
    trib_plan_t *plan;
    void *p;

    d.count = 4;
    ranks_ok(self, trib_plan_allreduce(self->comm, &d, &plan));
    size_t count = self->rank == 0 ? 3 : 4;
    trib_status_t st = trib_allreduce(self->comm, NULL, x, count, TRIB_F32, TRIB_SUM);
    ranks_refused(self, st, TRIB_ERR_MISMATCH, WORDS("count"));
    for (int i = 0; i < 3; i++) {
        ranks_refused(self, trib_barrier(self->comm), TRIB_ERR_MISMATCH,
                      WORDS("count"));
        ranks_refused(self, trib_plan_start(plan), TRIB_ERR_MISMATCH, WORDS("count"));
        ranks_assert(self, trib_progress(self->comm) == TRIB_ERR_MISMATCH);
    }
    ranks_refused(self, trib_split(self->comm, 0, 0, (trib_comm_t **)&p),
                  TRIB_ERR_MISMATCH, WORDS("count"));
    d.algorithm = "rinq";
    refuse_plan(self, TRIB_ALLREDUCE, &d, TRIB_ERR_MISMATCH, WORDS("count"));
    d.algorithm = "dissemination";
    refuse_plan(self, TRIB_ALLREDUCE, &d, TRIB_ERR_MISMATCH, WORDS("count"));
    ranks_ok(self, trib_plan_free(plan));
    ranks_ok(self, trib_free_comm(self->comm));
    return 0;
}

RANKS_TEST(test_use_after_failure, .size = 2, .bare = true)
{
    ranks_ok(self, trib_init(&self->opts, &self->comm));
    return use_after_failure(self);
}

/*
 * The progress thread detects that a peer differs, ends the run, and notifies the peers
 * without a link, while it still holds the run. The caller may see the end, but its
 * plan is not freed before the thread is done: the log line of a link marks that
 * moment.
 */
static struct {
    pthread_t caller;
    _Atomic int started, telling, freed, too_early;
} pass;

static void slow_line(void *arg, trib_log_level_t level, const char *line)
{
    (void)arg;
    (void)level;
    if (!pass.started || pthread_equal(pthread_self(), pass.caller) ||
        !strstr(line, "connected to peer"))
        return;
    pass.telling = 1;
    for (int i = 0; i < 20 && !pass.freed; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    pass.too_early |= pass.freed;
}

static int free_at_once(struct ranks_self *self)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    static float x[5000];
    trib_status_t st;

    pass.caller = pthread_self();
    self->opts.log = slow_line;
    ranks_ok(self, trib_init(&self->opts, &self->comm));
    trib_plan_t *plan = ranks_plan(self, TRIB_ALLREDUCE, .recv = x,
                                   .count = self->rank ? 5000 : 4999,
                                   .algorithm = "ring");
    pass.started = 1;
    /* The rank that differs starts late, so that the threads of the others detect
     * it. */
    for (int i = 0; i < 100 && self->rank == 0; i++)
        nanosleep(&moment, NULL);
    ranks_ok(self, trib_plan_start(plan));
    for (int i = 0; i < 1000 && self->rank && !pass.telling; i++)
        nanosleep(&moment, NULL);
    while ((st = trib_plan_test(plan)) == TRIB_INPROGRESS)
        nanosleep(&moment, NULL);
    ranks_refused(self, st, TRIB_ERR_MISMATCH, WORDS("count"));
    ranks_ok(self, trib_plan_free(plan));
    pass.freed = 1;
    ranks_ok(self, trib_free_comm(self->comm));
    ranks_assert(self, !pass.too_early);
    return 0;
}

TEST(test_free_while_failing)
{
    static const char *const configs[] = {"log=debug,transport=shm",
                                          "log=debug,transport=shm+nomap"};

    for (int i = 0; i < 2; i++) {
        ranks_pass(.size = 5, .fn = free_at_once, .config = configs[i], .bare = true);
    }
}

/* A plan that is fed only in part: all ranks get an error, although they keep telling
 * each other that they wait. */
static int starve(struct ranks_self *self)
{
    enum { COUNT = 1000 };
    float x[COUNT] = {0};

    ranks_ok(self, trib_init(&self->opts, &self->comm));
    trib_plan_t *plan = ranks_plan(self, TRIB_ALLREDUCE, .recv = x, .count = COUNT,
                                   .feed = TRIB_FEED_FORWARD);
    ranks_ok(self, trib_plan_start(plan));
    ranks_ok(self, trib_plan_ready(plan, 0, self->rank ? COUNT : COUNT / 2));
    ranks_refused(self, trib_plan_wait(plan), TRIB_ERR_TIMEOUT,
                  WORDS("rank 0", "no progress for 3000 ms"));
    ranks_ok(self, trib_plan_free(plan));
    ranks_ok(self, trib_free_comm(self->comm));
    return 0;
}

TEST(test_starved_plan)
{
    static const char *const configs[] = {"timeout_ms=3000,transport=shm",
                                          "timeout_ms=3000,transport=shm+nomap"};

    for (int i = 0; i < 2; i++) {
        ranks_pass(.size = 3, .fn = starve, .config = configs[i], .bare = true);
    }
}
