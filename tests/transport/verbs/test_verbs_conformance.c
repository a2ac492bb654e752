/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All checks on the verbs transport over a device in memory, which reaches the threads
 * of one process; tests/rxe runs them on a real one, with processes.
 */
#include "tests/harness/fake_verbs.h"
#include "tests/harness/tribtest.h"
#include "tests/transport/conformance.h"

static const struct row rows[] = {
    {"verbs:device=fake1", ROW_THREADS},
    {"verbs:depth=16,receives=64,rails=1", ROW_THREADS},
    {"verbs:device=fake0:2,fake0:1", ROW_THREADS},
    {"verbs", ROW_THREADS},
    {"verbs:connect=gid,rails=1", ROW_THREADS},
    {"verbs:qps=3,device=fake0:1", ROW_THREADS},
    {"verbs:depth=16,receives=64,connect=rdmacm,rails=1", ROW_THREADS},
    {"verbs:device=fake1,fake0,depth=16,receives=64", ROW_THREADS},
    {"verbs+trace+delay:us=100", ROW_THREADS | ROW_DECORATED},
    {"auto:ranks_per_host=1", ROW_THREADS},
};

/* Nothing was misused, nothing is left. */
static void look_back(void)
{
    assert_int_equal(fake_verbs_mistakes(), 0);
    assert_int_equal(fake_verbs_live(), 0);
}

int main(void)
{
    const struct suite suite = {
        .rows = rows, .n = sizeof(rows) / sizeof(rows[0]), .after = look_back};

    struct fake_verbs_opts *fake = fake_verbs_reset();

    fake->devices = 2;
    fake->ports = 2;
    fake->late_us = 100; /* traffic to rank 1 over the first device */
    fake->late_peer = 1;
    tribtest_deadline(280);
    return conformance_main(&suite);
}
