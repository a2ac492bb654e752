/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_plan_create: what it refuses, what it counts, and the description that the plan
 * keeps.
 */
#include "comm/calls/plan_create.h"

#include <math.h>

#include "comm/core/plan_struct.h"
#include "tests/harness/ranks.h"

static void expect_refused(struct ranks_self *self, const trib_desc_t *desc,
                           trib_plan_t **plan_out, const char *why)
{
    ranks_assert(self, trib_plan_create(self->comm, TRIB_ALLREDUCE, desc, plan_out) ==
                           TRIB_ERR_INVALID);
    ranks_assert(self, strstr(trib_last_error(self->comm), why) != NULL);
    ranks_assert(self, !plan_out || !*plan_out);
    ranks_assert(self, self->comm->n_plans == 0);
}

static int refuses(struct ranks_self *self)
{
    trib_plan_t *plan;
    trib_desc_t d = sized(trib_desc_t, .count = 3);

    expect_refused(self, NULL, &plan, "desc is NULL");
    expect_refused(self, &d, NULL, "plan_out is NULL");
    d.prescale = INFINITY;
    expect_refused(self, &d, &plan, "must be finite");
    d.prescale = -1;
    d.weighted = 1;
    expect_refused(self, &d, &plan, "weighted needs op mean");
    return 0;
}

static int keeps(struct ranks_self *self)
{
    char codec[] = "f16";
    trib_plan_t *plan;
    float x[4] = {1, 2, 3, 4};
    trib_desc_t d = sized(trib_desc_t, .count = 4);

    d.send = d.recv = x;
    d.codec = codec;
    d.prescale = 2;
    ranks_ok(self, trib_plan_create(self->comm, TRIB_ALLREDUCE, &d, &plan));
    codec[0] = 'x'; /* the plan has a copy */
    ranks_assert(self, self->comm->n_plans == 1);
    ranks_assert(self, plan->asked->coll == TRIB_ALLREDUCE);
    ranks_assert(self, strcmp(plan->asked->desc.codec, "f16") == 0);
    ranks_assert(self, plan->asked->desc.prescale > 1.5 && !plan->asked->desc.send);
    ranks_assert(self, plan->scale && !plan->asked->has_blocks);
    ranks_ok(self, trib_plan_start(plan));
    ranks_ok(self, trib_plan_wait(plan));
    for (int i = 0; i < 4; i++)
        ranks_assert(self, lround(x[i]) == 2 * self->size * (i + 1));
    ranks_ok(self, trib_plan_free(plan));
    ranks_assert(self, self->comm->n_plans == 0);
    return 0;
}

TEST(test_refuses)
{
    trib_plan_t *plan;

    assert_status(trib_plan_create(NULL, TRIB_ALLREDUCE, NULL, &plan),
                  TRIB_ERR_INVALID);
    ranks_pass(.size = 1, .fn = refuses);
}

TEST(test_keeps)
{
    for (int size = 1; size <= 3; size++)
        ranks_pass(.size = size, .fn = keeps);
}
