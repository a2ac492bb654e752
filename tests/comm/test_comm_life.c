/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a communicator: plans come first, and all ranks leave together.
 */
#include "tests/harness/tribtest.h"

#include "comm/communicator.h"
#include "tests/harness/ranks.h"

static int ends(struct ranks_self *self)
{
    trib_desc_t d = TRIB_DESC_INIT;
    trib_comm_t *comm;
    trib_plan_t *plans[2];

    ranks_ok(self, trib_init(&self->opts, &comm));
    d.count = 10;
    for (int i = 0; i < 2; i++)
        ranks_ok(self, trib_plan_allreduce(comm, &d, &plans[i]));
    ranks_assert(self, trib_free_comm(comm) == TRIB_ERR_BUSY);
    ranks_assert(self, strstr(trib_last_error(NULL), "2 plans are not freed"));
    ranks_ok(self, trib_plan_free(plans[0]));
    ranks_assert(self, trib_free_comm(comm) == TRIB_ERR_BUSY);
    ranks_assert(self, strstr(trib_last_error(NULL), "1 plan is not freed"));
    ranks_ok(self, trib_plan_free(plans[1]));
    if (self->rank == 0)
        usleep(50000); /* the others wait for it in the last barrier */
    ranks_ok(self, trib_free_comm(comm));
    return 0;
}

static void test_ends(void **state)
{
    static const char *const configs[] = {"transport=shm", "transport=tcp"};

    (void)state;
    assert_status(trib_free_comm(NULL), TRIB_OK);
    for (int i = 0; i < 2; i++)
        for (int size = 1; size <= 3; size++)
            ranks_pass(.size = size, .fn = ends, .config = configs[i], .bare = true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
    };

    tribtest_deadline(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
