/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creating plans: codecs that a description cannot have are refused with an error
 * message, and all settings that ranks must share are in the digest of a plan's frames.
 */
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "tests/harness/ranks.h"

enum { COUNT = 4000 };

static const struct refusal {
    trib_coll_t coll;
    trib_dtype_t dtype;
    trib_op_t op;
    const char *codec;
    trib_status_t st;
    const char *says;
} refusals[] = {
    {TRIB_REDUCE, TRIB_F32, TRIB_SUM, "powersgd", TRIB_ERR_UNSUPPORTED,
     " is trained by sums that all ranks receive, which reduce does not provide: use "
     "allreduce, or another codec"},
    {TRIB_ALLREDUCE, TRIB_I64, TRIB_SUM, "int8", TRIB_ERR_UNSUPPORTED,
     " supports floating-point elements, dtype is i64: use codec none"},
    {TRIB_ALLREDUCE, TRIB_F32, TRIB_MAX, "topk", TRIB_ERR_UNSUPPORTED,
     " supports sum and mean, op is max: use codec none, f16 or bf16"},
    {TRIB_ALLREDUCE, TRIB_F32, TRIB_MEDIAN, "f16", TRIB_ERR_UNSUPPORTED,
     " supports sum and mean, op is median: use codec none"},
    {TRIB_ALLREDUCE, TRIB_F32, TRIB_SUM, "tokp", TRIB_ERR_CODEC,
     "did you mean \"topk\"?"},
};

static bool ends_in(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

static int refused(struct ranks_self *self)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        const struct refusal *r = &refusals[i];
        trib_plan_t *plan = (trib_plan_t *)self;
        trib_desc_t d = sized(trib_desc_t, .count = COUNT, .dtype = r->dtype,
                              .op = r->op, .codec = r->codec);
        const trib_status_t st = trib_plan_create(self->comm, r->coll, &d, &plan);
        if (st != r->st || !ends_in(trib_last_error(self->comm), r->says) || plan)
            ranks_die(self, "row %zu: %s: %s", i, trib_status_name(st),
                      trib_last_error(self->comm));
    }
    return 0;
}

/* Codecs without effect are dropped: elements are sent unencoded. */
static int dropped(struct ranks_self *self)
{
    static const struct {
        trib_coll_t coll;
        const char *codec;
        bool kept;
    } rows[] = {
        {TRIB_ALLREDUCE, "none", false},     {TRIB_ALLREDUCE, NULL, false},
        {TRIB_ALLREDUCE, "bf16", true},      {TRIB_BROADCAST, "bf16", true},
        {TRIB_BROADCAST, "powersgd", false}, {TRIB_ALLREDUCE, "powersgd", true},
        {TRIB_BARRIER, "none", false},
    };
    static float x[COUNT];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        trib_plan_t *plan;
        plan = ranks_plan(self, rows[i].coll, .recv = x,
                          .count = rows[i].coll == TRIB_BARRIER ? 0 : COUNT,
                          .codec = rows[i].codec);
        if (!plan->codec == rows[i].kept)
            ranks_die(self, "row %zu: %s", i, plan->codec ? "has a codec" : "has none");
        for (int k = 0; k < COUNT; k++)
            x[k] = 2;
        ranks_step(self, plan);
        const float is = rows[i].coll == TRIB_ALLREDUCE ? 2 * (float)self->size : 2;
        for (int k = 0; k < COUNT; k++)
            ranks_assert(self, x[k] > is * 0.999f && x[k] < is * 1.001f);
        ranks_ok(self, trib_plan_free(plan));
    }
    return 0;
}

/* Plans of equal descriptions have one digest; each difference changes the digest. */
static int digests(struct ranks_self *self)
{
    const trib_desc_t rows[] = {
        {.algorithm = "ring"},
        {.algorithm = "flat"},
        {.algorithm = "flat", .chunk = 1024},
        {.algorithm = "flat", .codec = "bf16"},
        {.algorithm = "flat", .codec = "topk:ratio=0.5"},
        {.algorithm = "flat", .codec = "topk:ratio=0.25"},
        {.algorithm = "flat",
         .codec = "topk:ratio=0.5",
         .feedback = "ef14:momentum=0.5"},
        {.algorithm = "flat", .op = TRIB_TRIMMED_MEAN},
        {.algorithm = "flat", .op = TRIB_TRIMMED_MEAN, .parameter = 0.3},
    };
    enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
    uint32_t digest[2 * ROWS];

    for (size_t i = 0; i < 2 * ROWS; i++) {
        trib_plan_t *plan;
        plan = ranks_plan(self, TRIB_ALLREDUCE, .count = COUNT,
                          .algorithm = rows[i / 2].algorithm,
                          .chunk = rows[i / 2].chunk, .codec = rows[i / 2].codec,
                          .feedback = rows[i / 2].feedback, .op = rows[i / 2].op,
                          .parameter = rows[i / 2].parameter);
        digest[i] = plan->run.desc.digest;
        ranks_ok(self, trib_plan_free(plan));
        for (size_t k = 0; k < i; k++)
            if ((digest[k] == digest[i]) != (k / 2 == i / 2))
                ranks_die(self, "rows %zu and %zu: %08x, %08x", k / 2, i / 2, digest[k],
                          digest[i]);
    }
    return 0;
}

TEST(test_plans)
{
    static const ranks_fn fns[] = {refused, dropped, digests};

    for (int i = 0; i < 3; i++)
        assert_int_equal(ranks_run(&(struct ranks_job){
                             .size = 4, .fn = fns[i], .config = "transport=shm"}),
                         0);
}
