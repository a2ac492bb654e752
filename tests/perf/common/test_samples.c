/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/common/samples.h"
#include "tests/harness/tribtest.h"

#include <math.h>


static void assert_near(double value, double want)
{
    if (!(fabs(value - want) < 1e-9))
        fail_msg("%.12g is not %.12g", value, want);
}

TEST(test_percentiles)
{
    double values[1000];
    struct perf_summary s;

    for (int i = 0; i < 1000; i++)
        values[i] = (i * 7) % 1000 + 1; /* 1 … 1000 in disorder */
    perf_summarise(values, 1000, &s);
    assert_int_equal(s.n, 1000);
    assert_near(s.p50, 500);
    assert_near(s.p99, 990);
    assert_near(s.p999, 999);
    assert_near(s.min, 1);
    assert_near(s.max, 1000);
    assert_near(s.mean, 500.5);
}

/* With few samples the high percentiles are the maximum, never beyond it. */
TEST(test_few)
{
    double values[] = {3, 1, 2};
    struct perf_summary s;

    perf_summarise(values, 3, &s);
    assert_near(s.p50, 2);
    assert_near(s.p99, 3);
    assert_near(s.p999, 3);
    perf_summarise(values, 1, &s);
    assert_near(s.p50, 1);
    assert_near(s.max, 1);
    perf_summarise(values, 0, &s);
    assert_int_equal(s.n, 0);
    assert_near(s.p50, 0);
}

TEST(test_bus_factor)
{
    assert_near(perf_bus_factor(TRIB_ALLREDUCE, 4), 1.5);
    assert_near(perf_bus_factor(TRIB_ALLREDUCE, 1), 0);
    assert_near(perf_bus_factor(TRIB_ALLGATHER, 4), 0.75);
    assert_near(perf_bus_factor(TRIB_REDUCE_SCATTER, 2), 0.5);
    assert_near(perf_bus_factor(TRIB_BROADCAST, 8), 1);
    assert_near(perf_bus_factor(TRIB_REDUCE, 8), 1);
}
