/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <math.h>

#include "topo/cost.h"

static const struct trib_cost_model model = {
    .hop_us = 2,
    .switch_us = 10,
    .message_us = 0.5,
    .wire_Bps = 1e9,
    .sum_Bps = 4e9,
};

static void assert_us(struct trib_cost_work work, bool oversubscribed, double us)
{
    double got = trib_cost_us(&model, &work, oversubscribed);

    if (fabs(got - us) > 1e-9)
        fail_msg("%g us, not %g", got, us);
}

TEST(test_terms)
{
    assert_us((struct trib_cost_work){0}, false, 0);
    assert_us((struct trib_cost_work){.hops = 3}, false, 6);
    assert_us((struct trib_cost_work){.hops = 3}, true, 36);
    assert_us((struct trib_cost_work){.messages = 4}, true, 2);
    assert_us((struct trib_cost_work){.up = 1000, .down = 2000}, false, 3);
    assert_us((struct trib_cost_work){.summed = 4000}, false, 1);
}

/* The work of all ranks counts if they share cores; the length of their chain counts
 * anyway. */
TEST(test_shared_cores)
{
    const struct trib_cost_work work = {
        .hops = 3, .messages = 4, .up = 4000, .mean = 0.5};
    struct trib_cost_model shared = model;

    assert_us(work, false, 6 + 2 + 4);
    shared.shared_cores = true;
    assert_true(fabs(trib_cost_us(&shared, &work, false) - (6 + 1 + 2)) < 1e-9);
}

/* The modelled cost per byte is higher where a rank has several peers. */
TEST(test_peers)
{
    struct trib_cost_work work = {.messages = 4, .up = 3000, .down = 1000, .peers = 3};
    struct trib_cost_model shared = model;

    assert_us(work, false, 2 + 4);
    shared.peer = 0.25;
    assert_true(fabs(trib_cost_us(&shared, &work, false) - (2 + 6)) < 1e-9);
    for (work.peers = 0; work.peers < 1.5; work.peers++)
        assert_true(fabs(trib_cost_us(&shared, &work, false) - (2 + 4)) < 1e-9);
    for (int k = 0; k <= TRIB_COST_SHARED_CORES; k++)
        assert_int_equal(trib_cost_default((enum trib_cost_kind)k)->peer > 0,
                         k == TRIB_COST_SHARED_CORES);
}

/* A port's speed is a rate in both directions; CPU costs do not change. */
TEST(test_ports)
{
    const struct trib_cost_model *far = trib_cost_default(TRIB_COST_NETWORK);
    const struct trib_cost_model slow = trib_cost_of_ports(1);
    const struct trib_cost_model ndr = trib_cost_of_ports(400000);
    const struct trib_cost_work megabyte = {.up = 1e6};

    assert_true(fabs(slow.wire_Bps - 125e3) < 1);
    assert_true(fabs(ndr.wire_Bps - 50e9) < 1);
    assert_true(fabs(trib_cost_us(&ndr, &megabyte, false) - 20) < 1e-6);
    assert_true(ndr.hop_us < far->hop_us);
    assert_true(ndr.message_us == far->message_us && ndr.sum_Bps == far->sum_Bps);
}

TEST(test_defaults)
{
    const struct trib_cost_model *near = trib_cost_default(TRIB_COST_LOAD_STORE);
    const struct trib_cost_model *far = trib_cost_default(TRIB_COST_NETWORK);
    const struct trib_cost_model *shared = trib_cost_default(TRIB_COST_SHARED_CORES);

    assert_true(near->hop_us > 0 && near->hop_us < far->hop_us);
    assert_true(near->message_us > 0 && near->message_us < far->message_us);
    assert_true(near->wire_Bps > far->wire_Bps && far->wire_Bps > 0);
    assert_true(near->sum_Bps > 0 && far->sum_Bps > 0);
    assert_true(near->switch_us > 0 && far->switch_us > 0);
    assert_true(shared->shared_cores && !near->shared_cores && !far->shared_cores);
    assert_true(shared->message_us > far->message_us);
}
