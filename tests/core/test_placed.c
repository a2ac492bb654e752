/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "tests/core/placed.h"

static void test_tcp(void **state)
{
    (void)state;
    assert_int_equal(
        placed_all((struct ranks_job){.size = 3, .config = "transport=tcp"}), 0);
}

/* Copies late: when the receiver looks. */
static void test_loop(void **state)
{
    (void)state;
    assert_int_equal(placed_all((struct ranks_job){
                         .size = 3, .threads = true, .config = "transport=loop"}),
                     0);
}

static void test_shm_by_writes(void **state)
{
    (void)state;
    assert_int_equal(
        placed_all((struct ranks_job){.size = 2, .config = "transport=shm+nomap"}), 0);
}

/* One peer within load/store reach, the others not. */
static void test_two_hosts(void **state)
{
    struct placed p = {.algorithm = "ring", .count = 16 * 16384, .alloc = true,
                       .near = true};
    struct ranks_job job = {
        .size = 4,
        .fn = placed_run,
        .arg = &p,
        .config = "transport=auto:near=shm,far=tcp,ranks_per_host=2;window=8",
    };

    (void)state;
    assert_int_equal(ranks_run(&job), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tcp),
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_shm_by_writes),
        cmocka_unit_test(test_two_hosts),
    };

    tribtest_deadline(400);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
