/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * k=N of a plan counts elements of its whole vector: each rank sends that many in each
 * start, whatever the algorithm, the chunks and the order of feeding.
 */
#include "tests/harness/ranks.h"
#include "tests/comm/algorithms.h"

enum { COUNT = 1 << 18, STARTS = 4 };

struct scene {
    const char *codec;
    const char *algorithm;
    trib_coll_t coll;
    trib_feed_t feed;
    size_t chunk; /* bytes */
    size_t k;     /* maximum sent */
};

static void run_once(struct ranks_self *self, const struct scene *s, trib_plan_t *plan)
{
    const unsigned char *mask;
    size_t sent;

    ranks_ok(self, trib_plan_start(plan));
    for (size_t left = COUNT; s->feed != TRIB_FEED_WHOLE && left; left -= COUNT / 8)
        ranks_ok(self, trib_plan_ready(plan, left - COUNT / 8, COUNT / 8));
    ranks_ok(self, trib_plan_wait(plan));
    ranks_ok(self, trib_plan_sent(plan, &mask, &sent));
    if (sent > s->k || 5 * sent < 4 * s->k)
        ranks_die(self, "%s, %s of %s, chunks of %zu: %zu elements were sent", s->codec,
                  s->algorithm, trib_coll_name(s->coll), s->chunk, sent);
}

static int sends_k(struct ranks_self *self)
{
    const struct scene *s = self->arg;
    trib_desc_t d = TRIB_DESC_INIT;
    trib_plan_t *plan;
    float *x = malloc((COUNT + 1) * sizeof(*x)), *y = malloc((COUNT + 1) * sizeof(*y));

    ranks_assert(self, x && y);
    for (size_t i = 0; i < COUNT; i++)
        x[i] = 1 + (float)((i * 7919 + (size_t)self->rank * 104729) % 10007);
    d.send = x;
    d.recv = y;
    d.count = s->coll == TRIB_REDUCE_SCATTER ? COUNT / (size_t)self->size : COUNT;
    d.codec = s->codec;
    d.algorithm = s->algorithm;
    d.chunk = s->chunk;
    d.feed = s->feed;
    ranks_ok(self, trib_plan_create(self->comm, s->coll, &d, &plan));
    for (int start = 0; start < STARTS; start++) {
        run_once(self, s, plan);
        size_t out = 0;
        for (size_t i = 0; i < d.count; i++)
            out += y[i] != 0;
        ranks_assert(self, out <= s->k * (size_t)self->size);
    }
    ranks_ok(self, trib_plan_free(plan));
    free(x);
    free(y);
    return 0;
}

TEST(test_plans)
{
    static const char *const codecs[] = {"topk:k=10", "dgc:k=10,ef=0", "randomk:k=10",
                                         "topk:k=10+natural",
                                         "randomk:k=10,unbiased=1"};
    static const size_t chunks[] = {0, 65536, 1024};

    for (size_t a = 0; a < algorithms_count(false); a++) {
        for (size_t c = 0; c < 5; c++) {
            struct scene s = {.codec = codecs[c],
                              .algorithm = algorithm_at(a),
                              .coll = TRIB_ALLREDUCE,
                              .feed = c % 2 ? TRIB_FEED_BACKWARD : TRIB_FEED_WHOLE,
                              .chunk = chunks[(a + c) % 3],
                              .k = 10};
            ranks_pass(.size = 2 + (int)(a + c) % 3, .fn = sends_k, .arg = &s,
                       .seconds = 60);
        }
    }
}

TEST(test_reduce_scatter)
{
    struct scene s = {.codec = "topk:k=1000",
                      .algorithm = "direct",
                      .coll = TRIB_REDUCE_SCATTER,
                      .chunk = 4096,
                      .k = 1000};
    struct ranks_job job = {.size = 4, .fn = sends_k, .arg = &s, .seconds = 60};

    assert_int_equal(ranks_run(&job), 0);
}
