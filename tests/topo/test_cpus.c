/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "topo/cpus.h"

static struct trib_cpus on(int first, int n, uint64_t group, uint32_t milli)
{
    struct trib_cpus c = {.quota_group = group, .quota_milli = milli};

    for (int i = 0; i < n; i++)
        CPU_SET(first + i, &c.set);
    return c;
}

static int count(int n, const struct trib_cpus *all)
{
    struct trib_cpus_sum sum = {.processes = 0};

    for (int i = 0; i < n; i++)
        trib_cpus_add(&sum, &all[i]);
    assert_int_equal(sum.processes, n);
    return trib_cpus_count(&sum);
}

TEST(test_affinity)
{
    const struct trib_cpus all[] = {on(0, 2, 0, 0), on(1, 2, 0, 0), on(5, 1, 0, 0)};

    assert_int_equal(count(2, all), 3);
    assert_int_equal(count(3, all), 4);
}

/* Ranks of one container share its quota; two containers have two quotas. */
TEST(test_quota)
{
    const struct trib_cpus one[] = {on(0, 8, 7, 1500), on(0, 8, 7, 1500),
                                    on(0, 8, 7, 1500)};
    const struct trib_cpus two[] = {on(0, 8, 7, 1500), on(0, 8, 8, 1500)};
    const struct trib_cpus small[] = {on(0, 8, 7, 100), on(0, 8, 7, 100)};
    const struct trib_cpus large[] = {on(0, 2, 7, 64000)};
    const struct trib_cpus free[] = {on(0, 8, 7, 1500), on(0, 8, 0, 0)};

    assert_int_equal(count(3, one), 1);
    assert_int_equal(count(2, two), 3);
    assert_int_equal(count(2, small), 1);
    assert_int_equal(count(1, large), 2);
    assert_int_equal(count(2, free), 8);
}

TEST(test_share_of_quota)
{
    const struct trib_cpus none = on(0, 8, 0, 0), some = on(0, 8, 7, 4500),
                           little = on(0, 8, 7, 300);

    assert_int_equal(trib_cpus_quota(&none, 1), 0);
    assert_int_equal(trib_cpus_quota(&some, 1), 4);
    assert_int_equal(trib_cpus_quota(&some, 2), 2);
    assert_int_equal(trib_cpus_quota(&some, 9), 1);
    assert_int_equal(trib_cpus_quota(&little, 1), 1);
}

TEST(test_self)
{
    struct trib_cpus self;

    trib_cpus_self(&self);
    assert_true(trib_cpus_usable() >= 1);
    assert_true(CPU_COUNT(&self.set) == 0 ||
                trib_cpus_usable() <= CPU_COUNT(&self.set));
}
