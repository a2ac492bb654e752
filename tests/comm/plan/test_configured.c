/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An ordinary program with a configured codec: weights, metrics, counters and the like
 * are exact, and only the gradients, large all-reduces of floats, are compressed.
 */
#include <math.h>

#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

enum { WEIGHTS = 5000 };

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static double weight(size_t i)
{
    return (double)(oracle_mix(i) % 4001) / 1000 - 2;
}

static void broadcast_weights(struct ranks_self *self)
{
    static float w[WEIGHTS];

    for (size_t i = 0; i < WEIGHTS; i++)
        w[i] = self->rank == 0 ? (float)weight(i) : -9;
    ranks_ok(self, trib_broadcast(self->comm, w, WEIGHTS, TRIB_F32, 0));
    for (size_t i = 0; i < WEIGHTS; i++)
        if (w[i] != (float)weight(i))
            ranks_die(self, "weight %zu is %g, not %g", i, (double)w[i], weight(i));
}

static void sum_metrics(struct ranks_self *self)
{
    const int n = self->size;
    float metrics[3] = {0.5f, 123.25f, (float)self->rank};
    double loss = 1.0 / 3;
    float best = (float)self->rank * 1.25f;

    ranks_ok(self, trib_allreduce(self->comm, NULL, metrics, 3, TRIB_F32, TRIB_SUM));
    ranks_assert(self,
                 metrics[0] == 0.5f * (float)n && metrics[1] == 123.25f * (float)n);
    ranks_assert(self, metrics[2] == (float)(n * (n - 1) / 2));
    ranks_ok(self, trib_allreduce(self->comm, NULL, &loss, 1, TRIB_F64, TRIB_MEAN));
    ranks_assert(self, fabs(loss - 1.0 / 3) < 1e-15);
    ranks_ok(self, trib_allreduce(self->comm, NULL, &best, 1, TRIB_F32, TRIB_MAX));
    ranks_assert(self, best == (float)(n - 1) * 1.25f);
}

/* Enough elements for the codec, but of operations that the codec does not apply to. */
static void sum_others(struct ranks_self *self)
{
    static int64_t seen[WEIGHTS];
    static double d[WEIGHTS];
    static float x[WEIGHTS * 4], y[WEIGHTS * 4];
    const size_t n = (size_t)self->size;

    for (size_t i = 0; i < WEIGHTS; i++) {
        seen[i] = (int64_t)i;
        d[i] = weight(i);
        x[i] = (float)(self->rank + 1) * (float)(i % 100);
    }
    ranks_ok(self, trib_allreduce(self->comm, NULL, seen, WEIGHTS, TRIB_I64, TRIB_SUM));
    ranks_ok(self, trib_allreduce(self->comm, NULL, d, WEIGHTS, TRIB_F64, TRIB_SUM));
    ranks_ok(self, trib_allgather(self->comm, x, y, WEIGHTS / 4, TRIB_F32));
    for (size_t i = 0; i < WEIGHTS / 4 * n; i++)
        ranks_assert(self, y[i] == (float)(i / (WEIGHTS / 4) + 1) *
                                       (float)(i % (WEIGHTS / 4) % 100));
    ranks_ok(self, trib_reduce(self->comm, x, y, WEIGHTS, TRIB_F32, TRIB_SUM, 0));
    for (size_t i = 0; self->rank == 0 && i < WEIGHTS; i++)
        ranks_assert(self, y[i] == (float)(n * (n + 1) / 2 * (i % 100)));
    for (size_t i = 0; i < WEIGHTS; i++)
        ranks_assert(self, seen[i] == (int64_t)(i * n) &&
                               fabs(d[i] - weight(i) * (double)n) < 1e-12);
    ranks_ok(self, trib_allreduce(self->comm, x, y, WEIGHTS, TRIB_F32, TRIB_MIN));
    for (size_t i = 0; i < WEIGHTS; i++)
        ranks_assert(self, y[i] == (float)(i % 100));
    ranks_ok(self,
             trib_reduce_scatter(self->comm, x, y, WEIGHTS / 4, TRIB_F32, TRIB_SUM));
    for (size_t i = 0; i < WEIGHTS / 4; i++)
        ranks_assert(self,
                     y[i] == (float)(n * (n + 1) / 2 *
                                     (((size_t)self->rank * (WEIGHTS / 4) + i) % 100)));
    ranks_ok(self, trib_barrier(self->comm));
}

static trib_plan_t *plan_of(struct ranks_self *self, trib_coll_t coll, trib_desc_t d)
{
    trib_plan_t *plan;

    ranks_ok(self, trib_plan_create(self->comm, coll, &d, &plan));
    return plan;
}

/* Check whether the plan has the configured codec. */
static void expect_codec(struct ranks_self *self, trib_coll_t coll, trib_desc_t d,
                         bool coded)
{
    trib_plan_t *plan = plan_of(self, coll, d);
    char text[800];

    ranks_ok(self, trib_plan_explain(plan, text, sizeof(text)));
    if ((plan->codec != NULL) != coded ||
        (strstr(text, "none: TRIB_CODEC applies to all-reduces of sum or mean") !=
         NULL) == coded)
        ranks_die(self, "%s", text);
    ranks_ok(self, trib_plan_free(plan));
}

static void look_at_plans(struct ranks_self *self)
{
    trib_desc_t d = sized(trib_desc_t, .count = TRIB_CODEC_ELEMENTS_MIN);

    expect_codec(self, TRIB_ALLREDUCE, d, true);
    d.dtype = TRIB_BF16;
    d.op = TRIB_MEAN;
    expect_codec(self, TRIB_ALLREDUCE, d, true);
    d.dtype = TRIB_F64;
    expect_codec(self, TRIB_ALLREDUCE, d, false);
    d.dtype = TRIB_F32;
    d.op = TRIB_MAX;
    expect_codec(self, TRIB_ALLREDUCE, d, false);
    d.op = TRIB_SUM;
    expect_codec(self, TRIB_REDUCE, d, false);
    expect_codec(self, TRIB_REDUCE_SCATTER, d, false);
    expect_codec(self, TRIB_BROADCAST, d, false);
    expect_codec(self, TRIB_ALLGATHER, d, false);
    d.count--;
    expect_codec(self, TRIB_ALLREDUCE, d, false);
}

/* A request in a description is fulfilled, or refused, as without a configuration. */
static void stay_strict(struct ranks_self *self)
{
    trib_plan_t *plan;
    trib_desc_t d = sized(trib_desc_t, .count = 10);

    d.codec = "topk:ratio=0.5";
    plan = plan_of(self, TRIB_ALLREDUCE, d);
    ranks_assert(self, plan->codec);
    ranks_ok(self, trib_plan_free(plan));
    d.dtype = TRIB_I32;
    ranks_expect(self, trib_plan_create(self->comm, TRIB_ALLREDUCE, &d, &plan),
                 TRIB_ERR_UNSUPPORTED, "integers by topk");
    d.dtype = TRIB_F32;
    d.op = TRIB_MAX;
    ranks_expect(self, trib_plan_create(self->comm, TRIB_ALLREDUCE, &d, &plan),
                 TRIB_ERR_UNSUPPORTED, "max by topk");
}

static void sum_gradients(struct ranks_self *self)
{
    static float g[WEIGHTS];
    trib_stats_t before = {.size = sizeof(before)}, after = {.size = sizeof(after)};

    for (size_t i = 0; i < WEIGHTS; i++)
        g[i] = (float)weight(i);
    ranks_ok(self, trib_stats(self->comm, &before));
    ranks_ok(self, trib_allreduce_named(self->comm, "gradient", NULL, g, WEIGHTS,
                                        TRIB_F32, TRIB_MEAN));
    ranks_ok(self, trib_stats(self->comm, &after));
    ranks_assert(self, (after.payload_bytes - before.payload_bytes) <
                           (after.dense_bytes - before.dense_bytes));
}

static int program(struct ranks_self *self)
{
    broadcast_weights(self);
    for (int step = 0; step < 3; step++) {
        sum_gradients(self);
        sum_metrics(self);
        sum_others(self);
    }
    look_at_plans(self);
    stay_strict(self);
    return 0;
}

TEST(test_ordinary_program)
{
    static const char *const configs[] = {
        "codec=signsgd",
        "codec=topk:ratio=0.1",
        "codec=topk:ratio=0.1;feedback=ef21",
        "codec=qsgd:bits=4;feedback=none",
        "codec=powersgd:rank=1",
        "codec=topk:ratio=0.1;feedback=ef14:momentum=0.9;quorum=0.5,deadline=20ms",
        "codec=int8;transport=tcp",
    };

    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        ranks_pass(.size = 2 + (int)(i % 3), .fn = program, .config = configs[i]);
    }
}
