/* SPDX-License-Identifier: BSD-3-Clause */
/* Which cores the ranks of a host get, seen from processes that are bound. */
#include "tests/harness/tribtest.h"

#include <sys/mman.h>

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

/* Ranks, at most as many as cores, share all cores; no core belongs to two ranks. */
TEST(test_shares)
{
    const int cores = tool_cores();
    cpu_set_t all, sum, both;

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

TEST(test_left_alone)
{
    const int cores = tool_cores();
    cpu_set_t all;

    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    assert_true(CPU_EQUAL(bound(TOOL_BIND_AUTO, 0, cores + 1), &all));
    assert_true(CPU_EQUAL(bound(TOOL_BIND_AUTO, cores, cores + 1), &all));
    assert_true(CPU_EQUAL(bound(TOOL_BIND_NONE, 0, 2), &all));
}

/* In turn, also where ranks have to share. */
TEST(test_core)
{
    const int cores = tool_cores();
    cpu_set_t first;

    first = *bound(TOOL_BIND_CORE, 0, 0);
    assert_true(CPU_EQUAL(bound(TOOL_BIND_CORE, cores, 0), &first));
    if (cores > 1)
        assert_false(CPU_EQUAL(bound(TOOL_BIND_CORE, 1, 0), &first));
}

/* Within the cores that the program was given. */
TEST(test_restricted)
{
    cpu_set_t all, one;
    int cpu = 0;

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
    seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                -1, 0);
    if (seen == MAP_FAILED)
        return 1;
    return tribtest_run();
}
