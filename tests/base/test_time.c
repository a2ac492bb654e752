/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <limits.h>

#include "base/digest.h"
#include "base/time.h"

TEST(test_clock_moves_forward)
{
    uint64_t before = trib_now_ns();

    usleep(2000);
    uint64_t after = trib_now_ns();
    assert_true(after - before >= 2000000);
    assert_true(after - before < 60000000000u);
}

/* Rounds up; checked when the clock reads the same before and after. */
TEST(test_rounding)
{
    const uint64_t ms = 1000000;
    uint64_t deadline = trib_now_ns() + 1000000 * ms;

    for (int i = 0; i < 1000; i++) {
        int most = (int)((deadline - trib_now_ns() + ms - 1) / ms);
        int left = trib_deadline_left_ms(deadline);
        int least = (int)((deadline - trib_now_ns() + ms - 1) / ms);
        assert_in_range(left, least, most);
        if (least == most)
            return;
    }
    fail_msg("the clock gets on by a millisecond at every look");
}

TEST(test_deadlines)
{
    uint64_t far = trib_deadline_ms(1000000);
    uint64_t near = trib_deadline_ms(3);

    assert_false(trib_deadline_passed(far));
    assert_in_range(trib_deadline_left_ms(far), 900000, 1000000);
    usleep(5000);
    assert_true(trib_deadline_passed(near));
    assert_int_equal(trib_deadline_left_ms(near), 0);
    assert_true(trib_deadline_passed(trib_deadline_ms(-5)));
    assert_false(trib_deadline_passed(trib_deadline_ms(INT_MAX)));
}

/* 0 is no limit, and no sum of it becomes one. */
TEST(test_limits)
{
    const uint64_t never = trib_limit_deadline(0);

    assert_true(never == TRIB_NEVER);
    assert_true(trib_limit_ns(0) == TRIB_NEVER);
    assert_true(trib_limit_ns(86400000) == UINT64_C(86400000000000));
    assert_true(trib_deadline_later(never, 1) == TRIB_NEVER);
    assert_true(trib_deadline_later(5, TRIB_NEVER) == TRIB_NEVER);
    assert_true(trib_deadline_later(5, 6) == 11);
    assert_false(trib_deadline_passed(never));
    assert_int_equal(trib_deadline_left_ms(never), INT_MAX);
    assert_in_range(trib_deadline_left_ms(trib_limit_deadline(1000000)), 900000,
                    1000000);
    assert_int_equal(trib_limit_sum(3, 4), 7);
    assert_int_equal(trib_limit_sum(0, 4), 0);
    assert_int_equal(trib_limit_sum(3, 0), 0);
}

TEST(test_gaps)
{
    uint64_t now = trib_now_ns();
    uint64_t before = now;

    assert_int_equal(trib_gap_ns(&now, 1000000), 0);
    assert_true(now >= before);
    before = now;
    usleep(3000);
    uint64_t gap = trib_gap_ns(&now, 2);
    assert_true(gap >= 3000000);
    assert_int_equal(now - before, gap);
}

TEST(test_digest)
{
    assert_int_equal(trib_digest("", 0), 0x2d06800538d394c2u); /* XXH3 of nothing */
    assert_int_not_equal(trib_digest("a", 1), trib_digest("b", 1));
    assert_int_not_equal(trib_digest_seeded("a", 1, 1), trib_digest_seeded("a", 1, 2));
    assert_int_equal(trib_digest32("abc", 3), (uint32_t)trib_digest("abc", 3));
}
