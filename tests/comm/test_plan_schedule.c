/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The algorithm of a plan: the one that the caller names, or one that the library
 * chooses.
 */
#include "tests/harness/tribtest.h"

#include "comm/communicator.h"
#include "tests/harness/ranks.h"

static trib_status_t make(struct ranks_self *self, const char *algorithm, trib_op_t op,
                          trib_plan_t **plan)
{
    trib_desc_t d = TRIB_DESC_INIT;

    d.count = 5000;
    d.op = op;
    d.algorithm = algorithm;
    return trib_plan_allreduce(self->comm, &d, plan);
}

static int named(struct ranks_self *self)
{
    static const char *const names[] = {"direct", "ring", "flat", "tree"};
    trib_plan_t *plan;

    for (int i = 0; i < 4; i++) {
        ranks_ok(self, make(self, names[i], TRIB_SUM, &plan));
        ranks_assert(self, strcmp(plan->run.desc.name, names[i]) == 0);
        ranks_assert(self, strstr(plan->why, "asked for by name"));
        ranks_ok(self, trib_plan_free(plan));
    }
    ranks_ok(self, make(self, "auto", TRIB_SUM, &plan));
    ranks_assert(self, trib_algo_find(plan->run.desc.name) && plan->why[0]);
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

static int refused(struct ranks_self *self)
{
    trib_plan_t *plan;

    ranks_assert(self, make(self, "rinq", TRIB_SUM, &plan) == TRIB_ERR_INVALID);
    ranks_assert(self, strstr(trib_last_error(self->comm), "did you mean \"ring\""));
    ranks_assert(self, make(self, "ring", TRIB_MEDIAN, &plan) == TRIB_ERR_UNSUPPORTED);
    ranks_assert(self, strstr(trib_last_error(self->comm), "forwards partial sums"));
    ranks_ok(self, make(self, "auto", TRIB_MEDIAN, &plan));
    ranks_assert(self, plan->run.desc.gathers);
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

static void test_named(void **state)
{
    (void)state;
    ranks_pass(.size = 3, .fn = named);
}

static void test_refused(void **state)
{
    (void)state;
    ranks_pass(.size = 3, .fn = refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_named),
        cmocka_unit_test(test_refused),
    };

    tribtest_deadline(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
