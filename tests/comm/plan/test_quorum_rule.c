/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans that cannot have a quorum are refused with an error message; without
 * aggregators others run as usual.
 */
#include "comm/core/plan_struct.h"
#include "comm/plan/quorum_rule.h"
#include "tests/harness/ranks.h"

#define QUORUM "0.5,deadline=5ms"

static int refused(struct ranks_self *self)
{
    static const struct {
        const char *codec, *feedback;
        trib_dtype_t dtype;
        trib_op_t op;
    } kinds[] = {
        {.codec = "none", .dtype = TRIB_F32, .op = TRIB_MAX},
        {.codec = "none", .dtype = TRIB_I32},
        {.codec = "none", .dtype = TRIB_F64},
        {.codec = "int8"},
        {.codec = "thc"},
        {.codec = "powersgd"},
        {.codec = "qsgd:bits=4"},
        {.codec = "topk:ratio=0.1,ef=0"},
        {.codec = "topk:ratio=0.1", .feedback = "ef21"},
    };
    trib_plan_t *plan;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        float x[4] = {0};
        trib_desc_t d =
            sized(trib_desc_t, .recv = x, .count = 4, .codec = kinds[i].codec,
                  .feedback = kinds[i].feedback, .dtype = kinds[i].dtype,
                  .op = kinds[i].op, .quorum = QUORUM);
        ranks_assert(self, trib_plan_allreduce(self->comm, &d, &plan) ==
                               TRIB_ERR_UNSUPPORTED);
        ranks_assert(self, strstr(trib_last_error(self->comm), "quorum"));
    }
    return 0;
}

TEST(test_refused)
{
    ranks_pass(.size = 1, .fn = refused);
}

/* Without aggregators all ranks are in each sum, whatever the quorum. */
RANKS_TEST(test_alone, .size = 3)
{
    float x[1500];

    for (int i = 0; i < 1500; i++)
        x[i] = 1;
    trib_plan_t *plan = ranks_plan(self, TRIB_ALLREDUCE, .recv = x, .count = 1500,
                                   .quorum = QUORUM);
    ranks_assert(self, plan->has_quorum && !plan->run.desc.quorum.need && !plan->codec);
    ranks_step(self, plan);
    for (int i = 0; i < 1500; i++)
        ranks_assert(self, x[i] >= (float)self->size && x[i] <= (float)self->size);
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}
