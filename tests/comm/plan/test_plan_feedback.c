/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The feedback of a plan: which text applies, and the error messages of refused ones.
 */
#include "comm/plan/configured.h"
#include "tests/harness/ranks.h"

struct refusal {
    const char *codec, *feedback;
    trib_coll_t coll;
    trib_op_t op;
    trib_feed_t feed;
    const char *algorithm;
    const char *words[4];
};

static const struct refusal refusals[] = {
    {.codec = "none",
     .feedback = "ef14",
     .words = {"ef14", "codec none", "choose one"}},
    {.codec = "none", .feedback = "none:clip=1", .words = {"clip=1", "codec none"}},
    {.codec = "qsgd:bits=4,norm=l2",
     .feedback = "ef14",
     .words = {"ef14", "without bound"}},
    {.codec = "qsgd:bits=4",
     .feedback = "ef21",
     .words = {"ef21", "contraction", "delta"}},
    {.codec = "topk+qsgd:bits=4", .feedback = "ef21", .words = {"ef21", "contraction"}},
    {.codec = "bf16",
     .feedback = "ef14:momentum=0.9,masking=1",
     .words = {"masking", "bf16"}},
    {.codec = "qsgd:bits=4", .feedback = "none:warmup=5", .words = {"warmup", "ratio"}},
    {.codec = "topk:k=5", .feedback = "ef14:warmup=5", .words = {"warmup", "ratio="}},
    {.codec = "topk",
     .feedback = "ef21",
     .coll = TRIB_REDUCE,
     .words = {"ef21", "allreduce"}},
    {.codec = "topk",
     .feedback = "ef14:momentum=0.9",
     .coll = TRIB_ALLGATHER,
     .words = {"sums", "allgather"}},
    {.codec = "efsign",
     .feedback = "ef21",
     .algorithm = "ring",
     .words = {"ring", "flat"}},
    {.codec = "topk:result=selected",
     .feedback = "ef21",
     .algorithm = "direct",
     .words = {"part of sums", "flat"}},
    {.codec = "f16", .feedback = "ef14:momentum=0.9", .op = TRIB_MAX, .words = {"max"}},
    {.codec = "topk",
     .feedback = "ef14:clip=1",
     .feed = TRIB_FEED_BACKWARD,
     .words = {"clip", "piecewise"}},
    {.codec = "topk", .feedback = "ef41", .words = {"ef41", "did you mean"}},
};

RANKS_TEST(test_refusals, .size = 2)
{
    float x[10] = {0};

    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
        const struct refusal *r = &refusals[i];
        trib_plan_t *plan;
        trib_desc_t d = sized(trib_desc_t, .recv = x, .count = 5, .codec = r->codec,
                              .feedback = r->feedback, .op = r->op, .feed = r->feed,
                              .algorithm = r->algorithm);
        trib_status_t st = trib_plan_create(self->comm, r->coll, &d, &plan);
        const char *text = trib_last_error(self->comm);
        if (st == TRIB_OK || !ranks_has(text, r->words))
            ranks_die(self, "%s with %s: %s: %s", r->feedback, r->codec,
                      trib_status_name(st), text);
        ranks_say(self, "%s", text);
    }
    return 0;
}

/* The configured feedback applies to sums with a codec. */
static int configured(struct ranks_self *self)
{
    static float x[TRIB_CODEC_ELEMENTS_MIN] = {1};
    int32_t n[4] = {1, 2, 3, 4};
    char text[500];
    trib_desc_t d = TRIB_DESC_INIT;
    trib_plan_t *plan;

    ranks_ok(self, trib_broadcast(self->comm, x, TRIB_CODEC_ELEMENTS_MIN, TRIB_F32, 0));
    ranks_ok(self, trib_allreduce_named(self->comm, "x", NULL, x,
                                        TRIB_CODEC_ELEMENTS_MIN, TRIB_F32, TRIB_SUM));
    d.recv = n;
    d.count = 4;
    d.dtype = TRIB_I32;
    d.codec = "none";
    ranks_ok(self, trib_plan_allreduce(self->comm, &d, &plan));
    ranks_ok(self, trib_plan_free(plan));
    d.recv = x;
    d.count = TRIB_CODEC_ELEMENTS_MIN;
    d.dtype = TRIB_F32;
    d.codec = NULL;
    ranks_ok(self, trib_plan_allreduce(self->comm, &d, &plan));
    ranks_ok(self, trib_plan_explain(plan, text, sizeof(text)));
    if (!strstr(text, "ef14:momentum=0.5,nesterov=0,masking=1"))
        ranks_die(self, "%s", text);
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST(test_configuration)
{
    ranks_pass(.size = 2, .fn = configured,
               .config = "codec=topk:ratio=0.1;feedback=ef14:momentum=0.5");
}
