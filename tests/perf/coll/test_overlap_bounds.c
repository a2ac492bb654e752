/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "perf/coll/overlap.h"

#define about(a, b) assert_true((a) > 0.999999 * (b) && (a) < 1.000001 * (b))

/* 1 GB of floats on 4 ranks at 10, 2, 6 and 3 GB/s; the link carries 0.5 GB. */
static const struct perf_overlap_alone alone = {.Bps = {10e9, 2e9, 6e9, 3e9},
                                                .link_cpu_s = 0.1e-9};

TEST(test_work)
{
    struct perf_overlap_work w = perf_overlap_work(8e6, 4, false, true, 3e6);

    about(w.of[PERF_STAGE_ENCODE], 8e6);
    about(w.of[PERF_STAGE_LINK], 3e6);
    about(w.of[PERF_STAGE_SUM], 6e6);
    about(w.of[PERF_STAGE_DECODE], 8e6);
    w = perf_overlap_work(8e6, 4, true, true, 3e6);
    about(w.of[PERF_STAGE_SUM], 24e6);
    about(w.of[PERF_STAGE_DECODE], 8e6);
    w = perf_overlap_work(8e6, 4, false, false, 12e6);
    assert_true(w.of[PERF_STAGE_ENCODE] == 0 && w.of[PERF_STAGE_DECODE] == 0);
    about(w.of[PERF_STAGE_SUM], 6e6);
    w = perf_overlap_work(8e6, 4, true, false, 24e6);
    about(w.of[PERF_STAGE_SUM], 24e6);
}

TEST(test_slowest_stage)
{
    const struct perf_overlap_work w = perf_overlap_work(1e9, 4, false, true, 0.5e9);
    struct perf_overlap o = {0};

    perf_overlap_bounds(&w, &alone, 400e3, &o);
    about(o.stage_GBps[PERF_STAGE_ENCODE], 10);
    about(o.stage_GBps[PERF_STAGE_LINK], 4); /* B / r */
    about(o.stage_GBps[PERF_STAGE_SUM], 8); /* three quarters are summed here */
    about(o.stage_GBps[PERF_STAGE_DECODE], 3);
    assert_int_equal(o.narrowest, PERF_STAGE_DECODE);
    about(o.bound_GBps, 3);
    about(o.reached_GBps, 2.5);
    about(o.part, 2.5 / 3);
    /* 0.1 + 0.125 + 1 / 3 s of codec and sums, and 0.05 s for sending. */
    about(o.core_GBps, 1 / (0.1 + 0.125 + 1.0 / 3 + 0.05));
    about(o.core_part, 2.5 / o.core_GBps);
}

TEST(test_slow_link)
{
    const struct perf_overlap_work w = perf_overlap_work(1e9, 2, false, false, 1e9);
    const struct perf_overlap_alone slow = {.Bps = {0, 0.12e9, 8e9, 0}};
    struct perf_overlap o = {0};

    perf_overlap_bounds(&w, &slow, 1e9 / 0.12e9 * 1e6, &o);
    assert_int_equal(o.narrowest, PERF_STAGE_LINK);
    about(o.part, 1);
    about(o.core_part, 1); /* never more than the link allows */
    assert_true(o.stage_GBps[PERF_STAGE_ENCODE] == 0);
    perf_overlap_bounds(&w, &(struct perf_overlap_alone){.Bps = {0}}, 0, &o);
    assert_true(o.bound_GBps == 0 && o.part == 0 && o.core_part == 0);
}

TEST(test_hidden)
{
    about(perf_overlap_hidden(10, 15, 16), 0.9);
    about(perf_overlap_hidden(10, 15, 14.9), 1);
    assert_true(perf_overlap_hidden(10, 15, 25) == 0);
    about(-perf_overlap_hidden(10, 15, 30), 0.5);
    assert_true(perf_overlap_hidden(0, 15, 16) == 0);
}
