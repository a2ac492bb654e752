/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All checks on verbs over one to eight rails of unequal delay, on devices in memory.
 */
#include "tests/harness/fake_verbs.h"
#include "tests/harness/tribtest.h"
#include "tests/transport/conformance.h"

/* As decorated rows: in one process, no thread wakes a sleeper when a delay ends. */
#define FLAGS (ROW_THREADS | ROW_DECORATED)

static const struct row rows[] = {
    {"verbs:rails=1", FLAGS},
    {"verbs:rails=2", FLAGS},
    {"verbs:rails=3", FLAGS},
    {"verbs:rails=4", FLAGS},
    {"verbs:rails=5", FLAGS},
    {"verbs:rails=8", FLAGS},
    {"verbs:rails=8,connect=gid", FLAGS},
    {"verbs:rails=2,qps=4", FLAGS},
};

/* Nothing was misused, nothing is left. */
static void look_back(void)
{
    assert_int_equal(fake_verbs_mistakes(), 0);
    assert_int_equal(fake_verbs_live(), 0);
}

int main(void)
{
    static const uint64_t delays_us[] = {300, 1, 1000, 30, 2000, 5, 90, 700};
    const struct suite suite = {
        .rows = rows, .n = sizeof(rows) / sizeof(rows[0]), .after = look_back};

    fake_verbs_reset()->devices = 8;
    for (int device = 0; device < 8; device++)
        fake_verbs_port_opts(0, device, 1)->delay_us = delays_us[device];
    tribtest_deadline(280);
    return conformance_main(&suite);
}
