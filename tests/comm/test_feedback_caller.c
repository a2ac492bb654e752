/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Feedback ef14:caller=1: the residual stays in the caller's vector, and results and
 * residuals are bit-identical to a plan that keeps the residual itself, wherever the
 * result goes.
 */
#include "comm/core/plan_struct.h"
#include "tests/comm/fed.h"

#define COUNT 5003

struct pair {
    struct fed by_plan, by_caller;
    float *residual;
    float *elsewhere; /* another buffer for results */
};

static void pair_open(struct pair *p, struct ranks_self *self,
                      const struct fed_scene *scene)
{
    struct fed_scene *by_caller = malloc(sizeof(*by_caller));

    ranks_assert(self, by_caller);
    *by_caller = *scene;
    by_caller->feedback = "ef14:caller=1";
    fed_open(&p->by_plan, self, scene, COUNT);
    fed_open(&p->by_caller, self, by_caller, COUNT);
    p->residual = calloc(COUNT, sizeof(float));
    p->elsewhere = malloc(COUNT * sizeof(float));
    ranks_assert(self, p->residual && p->elsewhere);
    for (size_t i = 0; i < COUNT; i++) /* only the operation writes zeros */
        p->elsewhere[i] = ((float *)(void *)p->by_caller.recv)[i] = 7;
}

static void pair_close(struct pair *p)
{
    const void *scene = p->by_caller.scene;

    fed_close(&p->by_plan);
    fed_close(&p->by_caller);
    free(p->residual);
    free(p->elsewhere);
    free((void *)(uintptr_t)scene);
}

/* Run one step of both plans; the result of the caller's plan goes to recv. */
static void pair_step(struct pair *p, struct ranks_self *self, uint64_t step,
                      float *recv)
{
    float *sum = (float *)(void *)p->by_caller.send;

    fed_fill(&p->by_plan, step);
    for (size_t i = 0; i < COUNT; i++)
        sum[i] += ((const float *)(void *)p->by_plan.send)[i];
    ranks_step(self, p->by_plan.plan);
    ranks_ok(self, trib_plan_start_with(p->by_caller.plan, sum, recv));
    ranks_ok(self, trib_plan_wait(p->by_caller.plan));
}

static int same_bits(struct ranks_self *self)
{
    struct pair p;

    pair_open(&p, self, self->arg);
    float *own = (float *)(void *)p.by_caller.recv;
    for (uint64_t step = 1; step <= 6; step++) {
        /* alternate: the content of the other buffer is not the residual left here */
        float *recv = step == 3 || step == 4 ? p.elsewhere : own;
        pair_step(&p, self, step, recv);
        ranks_assert(self, memcmp(recv, p.by_plan.recv, COUNT * sizeof(float)) == 0);
        ranks_ok(self, trib_plan_residual_get(p.by_plan.plan, 0, COUNT, p.residual));
        for (size_t i = 0; i < COUNT; i++) /* -0 and 0 are the same residual */
            ranks_assert(self, p.residual[i] - ((float *)(void *)p.by_caller.send)[i] ==
                                   0);
    }
    pair_close(&p);
    return 0;
}

TEST(test_same_bits)
{
    static const char *const codecs[] = {"topk:ratio=0.02", "dgc:ratio=0.02",
                                         "randomk:ratio=0.05", "threshold:at=0.9",
                                         "topk:k=90",
                                         "blocks:block=32,ratio=0.1",
                                         "topk:ratio=0.9", "topk:ratio=0.02+qsgd"};
    static const char *const algorithms[] = {"auto", "ring", "direct", "flat", "tree",
                                             "hierarchical"};

    for (size_t c = 0; c < sizeof(codecs) / sizeof(*codecs); c++)
        for (size_t a = 0; a < sizeof(algorithms) / sizeof(*algorithms); a++) {
            const struct fed_scene scene = {codecs[c], "ef14", algorithms[a], TRIB_F32,
                                            (c + a) % 2 ? TRIB_SUM : TRIB_MEAN};
            struct ranks_job job = {.size = 2 + (int)((c + a) % 2),
                                    .fn = same_bits,
                                    .arg = (void *)(uintptr_t)&scene,
                                    .config = (c + a) % 3 ? "transport=shm"
                                                          : "transport=tcp"};
            if (ranks_run(&job) != 0)
                fail_msg("%s by %s", codecs[c], algorithms[a]);
        }
}

/* A single rank sends nothing, and the result is what it would have sent. */
static int alone(struct ranks_self *self)
{
    struct pair p;

    pair_open(&p, self, self->arg);
    const float *result = (const float *)(void *)p.by_caller.recv,
                *rest = (const float *)(void *)p.by_caller.send;
    float *before = calloc(COUNT, sizeof(float));
    ranks_assert(self, before);
    for (uint64_t step = 1; step <= 3; step++) {
        size_t sent = 0;
        pair_step(&p, self, step, (float *)(void *)p.by_caller.recv);
        for (size_t i = 0; i < COUNT; i++) {
            const float x = ((const float *)(void *)p.by_plan.send)[i];
            ranks_assert(self, result[i] + rest[i] - (before[i] + x) == 0);
            sent += result[i] < 0 || result[i] > 0;
        }
        ranks_assert(self, sent > COUNT / 100 && sent < COUNT / 20);
        memcpy(before, rest, COUNT * sizeof(float));
    }
    free(before);
    pair_close(&p);
    return 0;
}

TEST(test_alone)
{
    const struct fed_scene scene = {"topk:ratio=0.02", "ef14", "auto", TRIB_F32,
                                    TRIB_MEAN};
    struct ranks_job job = {.size = 1, .fn = alone, .arg = (void *)(uintptr_t)&scene,
                            .config = "transport=shm"};

    assert_int_equal(ranks_run(&job), 0);
}

static void refused(struct ranks_self *self, trib_status_t want, const char *sentence,
                    trib_status_t st)
{
    ranks_assert(self, st == want);
    ranks_assert(self, strstr(trib_last_error(self->comm), sentence) != NULL);
}

static trib_status_t make(struct ranks_self *self, trib_dtype_t dtype,
                          const char *codec, const char *feedback)
{
    trib_plan_t *plan;
    trib_desc_t d = sized(trib_desc_t, .count = COUNT, .dtype = dtype, .codec = codec,
                          .feedback = feedback);

    const trib_status_t st = trib_plan_allreduce(self->comm, &d, &plan);
    if (st == TRIB_OK)
        ranks_ok(self, trib_plan_free(plan));
    return st;
}

static int refuses(struct ranks_self *self)
{
    static float x[COUNT + 1];

    refused(self, TRIB_ERR_UNSUPPORTED, "all-reduces of float32",
            make(self, TRIB_F16, "topk", "ef14:caller=1"));
    refused(self, TRIB_ERR_UNSUPPORTED, "a codec such as topk",
            make(self, TRIB_F32, "int8", "ef14:caller=1"));
    refused(self, TRIB_ERR_UNSUPPORTED, "a codec such as topk",
            make(self, TRIB_F32, "adacomp", "ef14:caller=1"));
    refused(self, TRIB_ERR_UNSUPPORTED, "omit them",
            make(self, TRIB_F32, "topk", "ef14:caller=1,momentum=0.9"));
    refused(self, TRIB_ERR_UNSUPPORTED, "omit them",
            make(self, TRIB_F32, "topk", "ef14:caller=1,clip=2"));
    trib_plan_t *plan = ranks_plan(self, TRIB_ALLREDUCE, .count = COUNT,
                                   .codec = "topk", .feedback = "ef14:caller=1",
                                   .recv = x);
    refused(self, TRIB_ERR_INVALID, "a vector of floats, separate",
            trib_plan_start(plan));
    refused(self, TRIB_ERR_UNSUPPORTED, "keeps no residual",
            trib_plan_residual_get(plan, 0, 1, x));
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST(test_refuses)
{
    struct ranks_job job = {.size = 2, .fn = refuses, .config = "transport=shm"};

    assert_int_equal(ranks_run(&job), 0);
}
