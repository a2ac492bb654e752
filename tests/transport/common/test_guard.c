/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Guards: which peers are not trusted, which backends and which user a guard lets in.
 */
#include "tests/harness/tribtest.h"

#include "transport/common/guard.h"

TEST(test_bars)
{
    const struct trib_guard ranks = {.ranks = 4}, serves = {.serves = true, .ranks = 4};

    for (int peer = 0; peer < 8; peer++) {
        assert_false(trib_guard_bars(NULL, peer));
        assert_true(trib_guard_bars(&serves, peer));
        assert_int_equal(trib_guard_bars(&ranks, peer), peer >= 4);
    }
}

TEST(test_names)
{
    const struct trib_guard all = {.ranks = 1}, two = {.transports = "shm, tcp"};

    assert_true(trib_guard_takes(NULL, "ucx") && trib_guard_takes(&all, "ucx"));
    assert_true(trib_guard_takes(&two, "shm") && trib_guard_takes(&two, "tcp"));
    assert_false(trib_guard_takes(&two, "ucx"));
    assert_false(trib_guard_takes(&two, "tc"));
    assert_false(trib_guard_takes(&two, "shm,"));
    assert_false(trib_guard_lists("", "shm"));
    assert_false(trib_guard_lists(" , ,", "shm"));
    assert_true(trib_guard_lists(",,shm , tcp", "tcp"));
}

/* The first user that is asked for is the job's, for ever. */
TEST(test_user)
{
    struct trib_guard guard = {.serves = true, .user = TRIB_GUARD_ANYBODY};

    assert_true(trib_guard_is_user(&guard, 1000));
    assert_false(trib_guard_is_user(&guard, 0));
    assert_false(trib_guard_is_user(&guard, 1001));
    assert_true(trib_guard_is_user(&guard, 1000));
}
