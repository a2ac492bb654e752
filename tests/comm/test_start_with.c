/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans that are started on other buffers than in their description: with any memory,
 * transport, algorithm, codec and feed, and differently on each rank.
 */
#include "build-config.h"
#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { COUNT = 40000, STARTS = 8, PLACES = 4 };

struct scene {
    trib_coll_t coll;
    const char *algorithm;
    const char *codec;
    trib_feed_t feed;
};

/* Memory of each kind: plain, registered, from trib_alloc, and plain at an odd
 * address. */
struct places {
    char *at[PLACES];
};

static void open_places(struct ranks_self *self, struct places *p, size_t bytes)
{
    void *shared;

    p->at[0] = malloc(bytes);
    p->at[1] = malloc(bytes);
    p->at[3] = malloc(bytes + 64);
    ranks_assert(self, p->at[0] && p->at[1] && p->at[3]);
    p->at[3] += 4;
    ranks_ok(self, trib_register(self->comm, p->at[1], bytes));
    ranks_ok(self, trib_alloc(self->comm, bytes, &shared));
    p->at[2] = shared;
}

static void close_places(struct ranks_self *self, struct places *p)
{
    ranks_ok(self, trib_deregister(self->comm, p->at[1]));
    ranks_ok(self, trib_free(self->comm, p->at[2]));
    free(p->at[0]);
    free(p->at[1]);
    free(p->at[3] - 4);
}

static void feed(struct ranks_self *self, trib_plan_t *plan, trib_feed_t how)
{
    const size_t part = COUNT / 5;

    for (size_t i = 0; how && i < 5; i++)
        ranks_ok(self, trib_plan_ready(
                           plan, (how == TRIB_FEED_FORWARD ? i : 4 - i) * part, part));
}

static void check(struct ranks_self *self, const struct scene *s,
                  const struct oracle *o, const float *recv)
{
    const size_t n = s->coll == TRIB_ALLGATHER ? COUNT * (size_t)self->size : COUNT;

    if (s->coll == TRIB_REDUCE && self->rank != 0)
        return;
    for (size_t i = 0; i < n; i++) {
        const size_t mine = (size_t)self->rank * COUNT;
        struct oracle_answer a =
            s->coll == TRIB_ALLGATHER ? oracle_copied(o, (int)(i / COUNT), i % COUNT)
            : s->coll == TRIB_BROADCAST
                ? oracle_copied(o, 0, i)
                : oracle_reduced(o, s->coll == TRIB_REDUCE_SCATTER ? mine + i : i);
        if (a.value.f != (double)recv[i])
            ranks_die(self, "%s %s, element %zu: %g, not %g", trib_coll_name(s->coll),
                      s->codec ? s->codec : "", i, (double)recv[i], a.value.f);
    }
}

/* Use another kind of memory on each rank in each start; sometimes in place. */
static void one_start(struct ranks_self *self, const struct scene *s, trib_plan_t *plan,
                      const struct places *p, int k)
{
    const int from = (k + self->rank) % PLACES, to = (k + 2 * self->rank + 1) % PLACES;
    const bool in_place = from == to || (k + self->rank) % 3 == 0;
    const struct oracle o = {
        .kind = ORACLE_EXACT, .seed = (uint64_t)k, .size = self->size};
    const size_t n =
        s->coll == TRIB_REDUCE_SCATTER ? COUNT * (size_t)self->size : COUNT;
    char *send = p->at[from], *recv = p->at[to];

    if (in_place)
        send = recv;
    if (in_place && s->coll == TRIB_ALLGATHER)
        send = recv + (size_t)self->rank * COUNT * sizeof(float);
    oracle_fill(&o, self->rank, 0, n, send);
    if (s->coll == TRIB_BROADCAST)
        oracle_fill(&o, self->rank, 0, n, recv);
    ranks_ok(self, trib_plan_start_with(plan, in_place && k % 2 ? NULL : send, recv));
    feed(self, plan, s->feed);
    const trib_status_t st = trib_plan_wait(plan);
    if (st != TRIB_OK)
        ranks_die(self, "%s: %s", trib_status_name(st), trib_last_error(self->comm));
    if (in_place && s->coll == TRIB_REDUCE_SCATTER)
        recv += (size_t)self->rank * COUNT * sizeof(float);
    check(self, s, &o, (const float *)recv);
}

static int start_with(struct ranks_self *self)
{
    const struct scene *s = self->arg;
    struct places p;

    open_places(self, &p, COUNT * sizeof(float) * (size_t)self->size);
    trib_plan_t *plan = ranks_plan(self, s->coll, .count = COUNT, .codec = s->codec,
                                   .algorithm = s->algorithm, .feed = s->feed);
    for (int k = 0; k < STARTS; k++)
        one_start(self, s, plan, &p, k);
    ranks_ok(self, trib_plan_free(plan));
    close_places(self, &p);
    return 0;
}

static void run_all(const struct scene *scenes, size_t n)
{
    static const char *const transports[] = {"transport=shm", "transport=tcp",
                                             "transport=shm+nomap", "transport=ucx"};

    for (size_t i = 0; i < n; i++) {
        for (size_t t = 0; t < 3 + HAVE_UCX; t++) {
            ranks_pass(.size = 2 + (int)((i + t) % 3), .fn = start_with,
                       .arg = (void *)(uintptr_t)&scenes[i], .config = transports[t]);
        }
    }
}

TEST(test_every_algorithm)
{
    static const struct scene scenes[] = {
        {.algorithm = "direct"},
        {.algorithm = "ring"},
        {.algorithm = "halving-doubling"},
        {.algorithm = "tree"},
        {.algorithm = "flat"},
        {.algorithm = "hierarchical"},
        {.coll = TRIB_REDUCE},
        {.coll = TRIB_BROADCAST},
        {.coll = TRIB_ALLGATHER},
        {.coll = TRIB_REDUCE_SCATTER},
    };

    run_all(scenes, sizeof(scenes) / sizeof(scenes[0]));
}

/* Codecs that are exact for small integers, with or without state. */
TEST(test_codecs_and_feeds)
{
    static const struct scene scenes[] = {
        {.codec = "topk:ratio=1"},
        {.codec = "topk:ratio=1", .feed = TRIB_FEED_BACKWARD},
        {.codec = "bf16", .algorithm = "ring"},
        {.feed = TRIB_FEED_FORWARD},
        {.feed = TRIB_FEED_BACKWARD, .algorithm = "ring"},
    };

    run_all(scenes, sizeof(scenes) / sizeof(scenes[0]));
}

static int refusals(struct ranks_self *self)
{
    float x[100], y[100];

    for (int i = 0; i < 100; i++)
        x[i] = 1;
    trib_plan_t *plan = ranks_plan(self, TRIB_ALLREDUCE, .count = 80);
    ranks_refused(self, trib_plan_start(plan), TRIB_ERR_INVALID,
                  WORDS("trib_plan_start_with"));
    ranks_refused(self, trib_plan_start_with(plan, x, NULL), TRIB_ERR_INVALID,
                  WORDS("recv is NULL"));
    ranks_refused(self, trib_plan_start_with(plan, x, x + 10), TRIB_ERR_OVERLAP,
                  WORDS("overlap"));
    ranks_assert(self, trib_plan_start_with(NULL, x, y) == TRIB_ERR_INVALID);
    ranks_ok(self, trib_plan_start_with(plan, x, y));
    ranks_ok(self, trib_plan_wait(plan));
    ranks_assert(self, y[79] == (float)self->size && x[79] == 1);
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST(test_refusals)
{
    struct ranks_job job = {.size = 1, .fn = refusals};

    assert_int_equal(ranks_run(&job), 0);
}

/* The next trib_plan_start uses the buffers of the description again. */
static int back(struct ranks_self *self)
{
    float own[64], other[64];

    trib_plan_t *plan = ranks_plan(self, TRIB_ALLREDUCE, .recv = own, .count = 64);
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < 64; i++)
            own[i] = 1, other[i] = 2;
        ranks_ok(self, trib_plan_start_with(plan, NULL, other));
        ranks_ok(self, trib_plan_wait(plan));
        ranks_assert(self, own[63] == 1 && other[63] == 2 * (float)self->size);
        ranks_step(self, plan);
        ranks_assert(self, own[63] == (float)self->size);
    }
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST(test_back_to_its_own)
{
    struct ranks_job job = {.size = 3, .fn = back};

    assert_int_equal(ranks_run(&job), 0);
}
