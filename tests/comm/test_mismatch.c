/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that disagree: all of them get an error, long before a time-out, and the
 * message names the rank that differs and the difference.
 */
#include "tests/harness/ranks.h"
#include "tests/comm/algorithms.h"

#define LIMIT_SECONDS (10.0 * tribtest_slowness())
#define COUNT 5000

/* One difference between a rank and the others. */
struct difference {
    const char *name;
    const char *words[4]; /* in the message of each rank */
    trib_coll_t coll, odd_coll;
    trib_dtype_t odd_dtype;
    trib_op_t odd_op;
    size_t odd_count;
    size_t odd_chunk;
    int odd_root;
    const char *codec, *odd_codec;
    const char *feedback, *odd_feedback;
    const char *odd_algorithm;
    trib_feed_t odd_feed;
    bool odd_leaves; /* calls trib_free_comm */
};

static const struct difference differences[] = {
    {.name = "count", .words = {"count", "4999", "5000"}, .odd_count = 4999},
    {.name = "a lot more", .words = {"count", "500000"}, .odd_count = 500000},
    {.name = "nothing", .words = {"count", "0", "5000"}, .odd_count = SIZE_MAX},
    {.name = "dtype", .words = {"dtype", "i32", "f32"}, .odd_dtype = TRIB_I32},
    {.name = "op", .words = {"op", "max", "sum"}, .odd_op = TRIB_MAX},
    {.name = "codec", .words = {"codec"}, .odd_codec = "bf16"},
    {.name = "one of two codecs",
     .words = {"codec"},
     .codec = "f16",
     .odd_codec = "bf16"},
    {.name = "parameter of a codec",
     .words = {"codec"},
     .codec = "topk:ratio=0.1",
     .odd_codec = "topk:ratio=0.2"},
    {.name = "feedback",
     .words = {"feedback"},
     .codec = "topk:ratio=0.1",
     .odd_feedback = "none"},
    {.name = "parameter of feedback",
     .words = {"feedback"},
     .codec = "topk:ratio=0.1",
     .feedback = "ef14:momentum=0.9",
     .odd_feedback = "ef14:momentum=0.8"},
    {.name = "chunk", .words = {"chunk"}, .odd_chunk = 256},
    {.name = "feed", .words = {"feed"}, .odd_feed = TRIB_FEED_BACKWARD},
    {.name = "other collective",
     .words = {"reduce-scatter", "allreduce"},
     .odd_coll = TRIB_REDUCE_SCATTER},
    {.name = "barrier", .words = {"barrier", "allreduce"}, .odd_coll = TRIB_BARRIER},
    {.name = "leaving", .words = {"trib_free_comm", "allreduce"}, .odd_leaves = true},
    {.name = "root of broadcast",
     .words = {"broadcast"},
     .coll = TRIB_BROADCAST,
     .odd_coll = TRIB_BROADCAST,
     .odd_root = 1},
    {.name = "root of reduce",
     .words = {"root"},
     .coll = TRIB_REDUCE,
     .odd_coll = TRIB_REDUCE,
     .odd_root = 1},
};

struct scene {
    const struct difference *difference;
    const char *algorithm;
    int odd; /* rank */
};

static float send[500000], recv[2000000];

static trib_desc_t description(const struct scene *s, bool odd)
{
    const struct difference *d = s->difference;
    trib_desc_t desc =
        sized(trib_desc_t, .send = send, .recv = recv, .count = COUNT,
              .codec = d->codec, .feedback = d->feedback, .algorithm = s->algorithm);

    if (!odd)
        return desc;
    desc.count = d->odd_count ? (d->odd_count == SIZE_MAX ? 0 : d->odd_count) : COUNT;
    desc.dtype = d->odd_dtype;
    desc.op = d->odd_op;
    desc.root = d->odd_root;
    desc.chunk = d->odd_chunk;
    desc.feed = d->odd_feed;
    if (d->odd_codec)
        desc.codec = d->odd_codec;
    if (d->odd_feedback)
        desc.feedback = d->odd_feedback;
    if (d->odd_algorithm)
        desc.algorithm = d->odd_algorithm;
    if (d->odd_coll == TRIB_BARRIER || d->odd_coll == TRIB_REDUCE_SCATTER)
        desc.algorithm = NULL;
    return desc;
}

static trib_status_t act(struct ranks_self *self, const struct scene *s)
{
    const struct difference *d = s->difference;
    bool odd = self->rank == s->odd;
    trib_desc_t desc = description(s, odd);
    trib_plan_t *plan;

    ranks_ok(self,
             trib_plan_create(self->comm, odd ? d->odd_coll : d->coll, &desc, &plan));
    trib_status_t st = trib_plan_start(plan);
    if (st == TRIB_OK && desc.feed)
        (void)trib_plan_ready(plan, 0, desc.count);
    if (st == TRIB_OK)
        st = trib_plan_wait(plan);
    ranks_ok(self, trib_plan_free(plan));
    return st;
}

static int disagree(struct ranks_self *self)
{
    const struct scene *s = self->arg;
    const struct difference *d = s->difference;
    bool leaves = self->rank == s->odd && d->odd_leaves;
    char name[32], text[512];

    ranks_ok(self, trib_init(&self->opts, &self->comm));
    /* The first barrier may fail because of later calls of others. */
    trib_status_t st = trib_barrier(self->comm);
    double begin = ranks_seconds();
    if (st != TRIB_OK)
        leaves = false;
    else
        st = leaves ? trib_free_comm(self->comm) : act(self, s);
    double seconds = ranks_seconds() - begin;
    /* A rank that does not need the others may be done before they fail. */
    if (st == TRIB_OK && !leaves)
        st = trib_barrier(self->comm);
    snprintf(text, sizeof(text), "%s", trib_last_error(leaves ? NULL : self->comm));
    if (st != TRIB_ERR_MISMATCH)
        ranks_die(self, "%s %s: %s after %.2f s: %s", s->algorithm, d->name,
                  trib_status_name(st), seconds, text);
    snprintf(name, sizeof(name), "rank %d", s->odd);
    if (!strstr(text, name) || !ranks_has(text, d->words))
        ranks_die(self, "%s %s: not a good sentence: %s", s->algorithm, d->name, text);
    if (seconds > LIMIT_SECONDS)
        ranks_die(self, "%s %s: took %.2f s", s->algorithm, d->name, seconds);
    ranks_say(self, "%s", text);
    if (!leaves)
        ranks_ok(self, trib_free_comm(self->comm));
    return 0;
}

static int run_scene(const struct scene *s, int size, const char *config)
{
    struct ranks_job job = {
        .size = size, .fn = disagree, .arg = (void *)s, .bare = true, .config = config};

    return ranks_run(&job);
}

static bool can_do(const char *algorithm, trib_coll_t coll)
{
    return strcmp(algorithm, "halving-doubling") != 0 ||
           (coll != TRIB_REDUCE && coll != TRIB_BROADCAST);
}

static void run_differences(int size, const char *algorithm, const char *config)
{
    int failed = 0;

    for (size_t i = 0; i < sizeof(differences) / sizeof(*differences); i++) {
        const struct difference *d = &differences[i];
        if (!can_do(algorithm, d->coll))
            continue;
        struct scene s = {d, algorithm, d->coll == TRIB_ALLREDUCE ? size - 1 : 1};
        failed += run_scene(&s, size, config) != 0;
    }
    assert_int_equal(failed, 0);
}

TEST(test_two_ranks)
{
    run_differences(2, "direct", "transport=shm");
    run_differences(2, "ring", "transport=shm");
}

TEST(test_four_ranks)
{
    run_differences(4, "direct", "transport=shm");
    run_differences(4, "flat", "transport=shm");
    run_differences(4, "tree", "transport=shm");
}

TEST(test_by_writes)
{
    run_differences(3, "ring", "transport=shm+nomap");
    run_differences(4, "halving-doubling", "transport=shm+nomap");
}

TEST(test_algorithms)
{
    const size_t n = algorithms_count(false);
    int failed = 0;

    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            struct difference d = {.name = algorithm_at(k), .words = {"algorithm"},
                                   .odd_algorithm = algorithm_at(k)};
            struct scene s = {&d, algorithm_at(i), 1};
            if (i != k)
                failed += run_scene(&s, 4, "transport=shm") != 0;
        }
    }
    assert_int_equal(failed, 0);
}

/* One rank is an operation behind: it missed a barrier of the others. */
static int other_order(struct ranks_self *self)
{
    trib_comm_t *c = NULL;
    /* A slow rank may learn of the mismatch before it returns from trib_init. */
    trib_status_t st = trib_init(&self->opts, &c);

    if (st == TRIB_OK && self->rank != 1)
        st = trib_allreduce(c, send, recv, 10, TRIB_F32, TRIB_SUM);
    if (st == TRIB_OK)
        st = trib_broadcast(c, recv, 10, TRIB_F32, 0);
    if (st == TRIB_OK)
        st = trib_barrier(c);
    if (st != TRIB_ERR_MISMATCH ||
        !ranks_has(trib_last_error(c), (const char *const[]){"rank 1", "allreduce",
                                                             "broadcast", NULL}))
        ranks_die(self, "%s: %s", trib_status_name(st), trib_last_error(c));
    (void)trib_free_comm(c);
    return 0;
}

TEST(test_order_of_calls)
{
    for (int size = 2; size <= 4; size++)
        ranks_pass(.size = size, .fn = other_order, .bare = true);
}

/* Settings that must agree are compared at the start. */
static int other_setting(struct ranks_self *self)
{
    const char *const *settings = self->arg;

    self->opts.config = settings[self->rank == 1];
    double begin = ranks_seconds();
    trib_status_t st = trib_init(&self->opts, &self->comm);
    const char *text = trib_last_error(NULL);
    if (st != TRIB_ERR_MISMATCH || !strstr(text, "rank 1") ||
        !strstr(text, settings[2]) || !strstr(text, settings[3]))
        ranks_die(self, "%s: %s", trib_status_name(st), text);
    if (ranks_seconds() - begin > LIMIT_SECONDS)
        ranks_die(self, "took %.2f s", ranks_seconds() - begin);
    return 0;
}

TEST(test_settings)
{
    static const char *const settings[][4] = {
        {"chunk=64K", "chunk=8K", "chunk=64K", "chunk=8K"},
        {"window=2", "window=3", "window=2", "window=3"},
        {"codec=none", "codec=bf16", "codec=none", "codec=bf16"},
        {"algorithm=ring", "algorithm=auto", "algorithm=ring", "algorithm=auto"},
        {"zero_copy=1", "zero_copy=0", "zero_copy=", "zero_copy="},
        {"seal=1", "seal=0", "seal=1", "seal=0"},
    };

    for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
        ranks_pass(.size = 3, .fn = other_setting, .arg = (void *)settings[i],
                   .bare = true);
}

RANKS_TEST(test_same_rank_twice, .size = 2, .bare = true,
           .config = "boot_timeout_ms=3000")
{
    self->opts.rank_plus_1 = 1;
    trib_status_t st = trib_init(&self->opts, &self->comm);
    if (st == TRIB_OK)
        ranks_die(self, "two processes are rank 0");
    ranks_say(self, "%s", trib_last_error(NULL));
    return 0;
}
