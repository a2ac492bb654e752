/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The conformance suite over rails of unequal delay that lose and reorder packets, in
 * virtual time.
 */
#include "tests/harness/fake_verbs.h"
#include "tests/harness/tribtest.h"
#include "tests/transport/conformance.h"

/* The delays are the fabric's, but the limit of a rail without progress is in the time
 * of this machine, which may be busy. */
static const struct row rows[] = {
    {"verbs:rails=1", ROW_THREADS | ROW_PATIENT},
    {"verbs:rails=3", ROW_THREADS | ROW_PATIENT},
    {"verbs:device=fake7,fake5,fake6,fake4", ROW_THREADS | ROW_PATIENT},
    {"verbs:rails=8", ROW_THREADS | ROW_PATIENT},
    {"verbs:rails=8,depth=16,receives=64,connect=gid", ROW_THREADS | ROW_PATIENT},
};

static void check_device(void)
{
    assert_int_equal(fake_verbs_mistakes(), 0);
    assert_int_equal(fake_verbs_live(), 0);
}

int main(void)
{
    static const uint64_t delays_us[] = {100, 20000, 5, 700, 3000, 1, 90, 11000};
    const struct suite suite = {.rows = rows,
                                .n = sizeof(rows) / sizeof(rows[0]),
                                .after = check_device,
                                .only_data = true};
    struct fake_verbs_opts *fake = fake_verbs_reset();

    fake->devices = (int)(sizeof(delays_us) / sizeof(delays_us[0]));
    fake->virtual_time = true;
    fake->stall_ms = 2; /* ranks also wait for each other outside of the fabric */
    fake->rate = UINT64_C(1000000000);
    fake->loss_ppm = 1000;
    fake->reorder_us = 50;
    for (int i = 0; i < fake->devices; i++)
        fake_verbs_port_opts(0, i, 1)->delay_us = delays_us[i];
    tribtest_deadline(200);
    return conformance_main(&suite);
}
