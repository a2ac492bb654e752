/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An absence is a gap between two ticks that is longer than a busy machine makes; it is
 * known to the owner for a while from its first check on, whoever ran first.
 */
#include "tests/harness/tribtest.h"

#include "base/time.h"
#include "transport/common/absence.h"

#define MS UINT64_C(1000000)

/* This makes the last tick that much older. */
static void stand_still(struct trib_absence *a, uint64_t ns)
{
    atomic_store(&a->ticked, trib_boot_ns() - ns);
}

static uint64_t recent(struct trib_absence *a)
{
    return trib_absence_recent(a, TRIB_ABSENCE_CERTAIN);
}

static uint64_t doubtful(struct trib_absence *a)
{
    return trib_absence_recent(a, TRIB_ABSENCE_DOUBTFUL);
}

TEST(test_limits)
{
    struct trib_absence a;

    trib_absence_begin(&a, 4000);
    assert_int_equal(a.gaps[TRIB_ABSENCE_CERTAIN].least_ns, 3500 * MS);
    assert_int_equal(a.gaps[TRIB_ABSENCE_DOUBTFUL].least_ns, 3500 * MS);
    assert_true(trib_absence_step_ns(&a) <= 3500 * MS / 8);
    trib_absence_begin(&a, 100); /* a thread may wait longer for a processor */
    assert_int_equal(a.gaps[TRIB_ABSENCE_CERTAIN].least_ns, 875 * MS);
    assert_in_range(a.gaps[TRIB_ABSENCE_DOUBTFUL].least_ns, 87 * MS, 88 * MS);
    assert_true(trib_absence_step_ns(&a) <= 88 * MS / 8);
    trib_absence_begin(&a, 0);
    assert_true(trib_absence_step_ns(&a) == TRIB_NEVER);
    stand_still(&a, 86400000 * MS);
    trib_absence_tick(&a);
    assert_int_equal(recent(&a), 0);
}

TEST(test_busy)
{
    struct trib_absence a;

    trib_absence_begin(&a, 4000);
    assert_int_equal(recent(&a), 0);
    for (int i = 0; i < 5; i++) {
        stand_still(&a, 400 * MS);
        assert_int_equal(recent(&a), 0);
        trib_absence_tick(&a);
        assert_int_equal(recent(&a), 0);
    }
}

TEST(test_absence)
{
    for (int ticks_first = 0; ticks_first < 2; ticks_first++) {
        struct trib_absence a;
        trib_absence_begin(&a, 1000);
        stand_still(&a, 1500 * MS);
        if (ticks_first)
            trib_absence_tick(&a);
        assert_in_range(recent(&a), 1500 * MS, 60000 * MS);
        trib_absence_tick(&a); /* which ends nothing */
        assert_in_range(recent(&a), 1500 * MS, 60000 * MS);
        a.gaps[TRIB_ABSENCE_CERTAIN].seen_at -= 2001 * MS;
        assert_int_equal(recent(&a), 0);
        stand_still(&a, 900 * MS); /* another one */
        assert_in_range(recent(&a), 900 * MS, 60000 * MS);
    }
}

/* A short absence may be that of one thread; it does not hide a longer one. */
TEST(test_doubtful)
{
    struct trib_absence a;

    trib_absence_begin(&a, 300);
    stand_still(&a, 200 * MS);
    assert_int_equal(doubtful(&a), 0);
    stand_still(&a, 400 * MS);
    assert_in_range(doubtful(&a), 400 * MS, 60000 * MS);
    assert_int_equal(recent(&a), 0);
    stand_still(&a, 1500 * MS);
    trib_absence_tick(&a);
    stand_still(&a, 400 * MS);
    trib_absence_tick(&a);
    assert_in_range(recent(&a), 1500 * MS, 60000 * MS);
    assert_in_range(doubtful(&a), 400 * MS, 60000 * MS);
}

/* An owner that computes for long after its return checks as late. */
TEST(test_late_check)
{
    struct trib_absence a;

    trib_absence_begin(&a, 1000);
    stand_still(&a, 1500 * MS);
    trib_absence_tick(&a);
    atomic_store(&a.gaps[TRIB_ABSENCE_CERTAIN].returned, trib_boot_ns() - 3600000 * MS);
    assert_in_range(recent(&a), 1500 * MS, 60000 * MS);
}
