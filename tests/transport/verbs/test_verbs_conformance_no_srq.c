/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All checks on verbs over devices without shared receive queues, in memory.
 */
#include <errno.h>

#include "tests/harness/fake_verbs.h"
#include "tests/harness/tribtest.h"
#include "tests/transport/conformance.h"

static const struct row rows[] = {
    {"verbs:rails=1", ROW_THREADS},
    {"verbs:depth=16,receives=64", ROW_THREADS},
    {"verbs:connect=gid,rails=1,receives=64", ROW_THREADS},
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
    fake->srq_errno = EOPNOTSUPP;
    fake->late_us = 100; /* traffic to rank 1 over the first device */
    fake->late_peer = 1;
    tribtest_deadline(280);
    return conformance_main(&suite);
}
