/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <errno.h>

#include "base/accept.h"
#include "base/time.h"

TEST(test_one_connection)
{
    static const int errors[] = {EAGAIN, EINTR, ECONNABORTED, EPROTO, EPERM, ENETDOWN};
    struct trib_accept_pause pause = {0};

    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
        assert_false(trib_accept_failed(&pause, errors[i]));
        assert_false(trib_accept_paused(&pause));
    }
}

/* The listener pauses at each failure, and logs the first one and then one per
 * minute. */
TEST(test_no_descriptor)
{
    struct trib_accept_pause pause = {0};

    assert_true(trib_accept_failed(&pause, EMFILE));
    assert_true(pause.until > pause.said);
    const uint64_t until = pause.until;
    assert_false(trib_accept_failed(&pause, ENFILE));
    assert_true(pause.until >= until);
    pause.until = trib_now_ns();
    assert_false(trib_accept_paused(&pause));
    pause.said -= UINT64_C(61) * 1000000000;
    assert_true(trib_accept_failed(&pause, ENOMEM));
}

TEST(test_cures)
{
    assert_non_null(strstr(trib_accept_cure(EMFILE), "ulimit -n"));
    assert_non_null(strstr(trib_accept_cure(ENFILE), "fs.file-max"));
    assert_string_equal(trib_accept_cure(EINVAL), "");
}
