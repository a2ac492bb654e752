/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The states of a plan that its own engine runs: idle, under way, done.
 */
#include "tests/harness/tribtest.h"

#include "comm/communicator.h"
#include "tests/harness/ranks.h"

static int states(struct ranks_self *self)
{
    float x[1000];
    size_t absent[RANKS_MAX];
    trib_desc_t d = TRIB_DESC_INIT;
    trib_plan_t *plan;

    for (int i = 0; i < 1000; i++)
        x[i] = 1;
    d.recv = x;
    d.count = 1000;
    d.feed = TRIB_FEED_FORWARD;
    ranks_ok(self, trib_plan_allreduce(self->comm, &d, &plan));
    ranks_assert(self,
                 plan->ops == &trib_plan_own_ops && plan->ops->computing(plan) == plan);
    ranks_ok(self, trib_plan_test(plan)); /* not started */
    ranks_assert(self, !plan->ops->busy(plan) && !plan->ops->input(plan));
    ranks_assert(self, trib_plan_ready(plan, 0, 10) == TRIB_ERR_INVALID);
    ranks_ok(self, trib_plan_start(plan));
    ranks_assert(self, plan->ops->busy(plan) && plan->ops->input(plan) == x);
    ranks_assert(self, trib_plan_test(plan) == TRIB_INPROGRESS);
    ranks_assert(self, trib_plan_start(plan) == TRIB_ERR_BUSY);
    ranks_assert(self, trib_plan_free(plan) == TRIB_ERR_BUSY);
    ranks_assert(self, trib_plan_absent(plan, absent) == TRIB_ERR_BUSY);
    ranks_ok(self, trib_plan_ready(plan, 0, 400));
    ranks_assert(self, trib_plan_ready(plan, 900, 101) == TRIB_ERR_INVALID);
    ranks_ok(self, trib_plan_ready(plan, 400, 600));
    ranks_ok(self, trib_plan_wait(plan));
    ranks_assert(self, !plan->ops->busy(plan));
    ranks_ok(self, trib_plan_absent(plan, absent));
    for (int r = 0; r < self->size; r++)
        ranks_assert(self, absent[r] == 0);
    for (int i = 0; i < 1000; i++)
        ranks_assert(self, x[i] >= (float)self->size && x[i] <= (float)self->size);
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

static void test_states(void **state)
{
    (void)state;
    ranks_pass(.size = 2, .fn = states, .config = "transport=shm");
    ranks_pass(.size = 3, .fn = states, .config = "transport=tcp");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states),
    };

    tribtest_deadline(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
