/* SPDX-License-Identifier: BSD-3-Clause */
/* Which cores the ranks of a host get, seen from processes that are bound. */
#include "tests/harness/tribtest.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/common/bind.h"

/* The hardware threads that a process has after tool_bind_rank, in shared memory. */
static cpu_set_t *seen;

static const cpu_set_t *bound(enum tool_bind how, int rank, int ranks)
{
    const pid_t pid = fork();
    int status = -1;

    assert_true(pid >= 0);
    if (pid == 0) {
        const int error = tool_bind_rank(how, rank, ranks);
        _exit(error != 0 || sched_getaffinity(0, sizeof(*seen), seen) != 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    return seen;
}

/* As many ranks as there are cores, and fewer, share all of them; none is of two. */
static void test_shares(void **state)
{
    const int cores = tool_cores();
    cpu_set_t all, sum, both;

    (void)state;
    assert_true(cores > 0);
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    for (int ranks = 1; ranks <= (cores < 6 ? cores : 6); ranks++) {
        CPU_ZERO(&sum);
        for (int rank = 0; rank < ranks; rank++) {
            const cpu_set_t *one = bound(TOOL_BIND_AUTO, rank, ranks);
            CPU_AND(&both, &sum, one);
            assert_int_equal(CPU_COUNT(&both), 0);
            CPU_OR(&sum, &sum, one);
        }
        assert_true(CPU_EQUAL(&sum, &all));
    }
}

static void test_left_alone(void **state)
{
    const int cores = tool_cores();
    cpu_set_t all;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    assert_true(CPU_EQUAL(bound(TOOL_BIND_AUTO, 0, cores + 1), &all));
    assert_true(CPU_EQUAL(bound(TOOL_BIND_AUTO, cores, cores + 1), &all));
    assert_true(CPU_EQUAL(bound(TOOL_BIND_NONE, 0, 2), &all));
}

/* In turn, also where ranks have to share. */
static void test_core(void **state)
{
    const int cores = tool_cores();
    cpu_set_t first;

    (void)state;
    first = *bound(TOOL_BIND_CORE, 0, 0);
    assert_true(CPU_EQUAL(bound(TOOL_BIND_CORE, cores, 0), &first));
    if (cores > 1)
        assert_false(CPU_EQUAL(bound(TOOL_BIND_CORE, 1, 0), &first));
}

/* Within the cores that the program was given. */
static void test_restricted(void **state)
{
    cpu_set_t all, one;
    int cpu = 0;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(tool_cores(), 1);
    assert_true(CPU_EQUAL(bound(TOOL_BIND_AUTO, 1, 2), &one));
    assert_true(CPU_EQUAL(bound(TOOL_BIND_CORE, 1, 2), &one));
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_left_alone),
        cmocka_unit_test(test_core),
        cmocka_unit_test(test_restricted),
    };

    tribtest_deadline(60);
    seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                -1, 0);
    if (seen == MAP_FAILED)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
