/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <errno.h>

#include "base/error.h"

TEST(test_first_error_wins)
{
    struct trib_error err = {0};

    assert_status(trib_fail(&err, TRIB_ERR_TIMEOUT, "rank %d is late", 3),
                  TRIB_ERR_TIMEOUT);
    assert_status(trib_fail(&err, TRIB_ERR_ABORTED, "consequence"), TRIB_ERR_ABORTED);
    assert_status(err.status, TRIB_ERR_TIMEOUT);
    assert_string_equal(trib_error_text(&err), "rank 3 is late");
    trib_error_clear(&err);
    assert_string_equal(trib_error_text(&err), "success");
    trib_fail(&err, TRIB_ERR_ABORTED, "next");
    assert_string_equal(trib_error_text(&err), "next");
}

TEST(test_null_is_allowed)
{
    assert_status(trib_fail(NULL, TRIB_ERR_BUSY, "%s", "nobody listens"),
                  TRIB_ERR_BUSY);
    trib_error_clear(NULL);
}

TEST(test_errno_and_length)
{
    struct trib_error err = {0};
    char text[1000];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    errno = ENOENT;
    trib_fail(&err, TRIB_ERR_SYSTEM, "open: %m");
    assert_int_equal(errno, ENOENT);
    assert_string_equal(err.text, "open: No such file or directory");
    trib_error_clear(&err);
    trib_fail(&err, TRIB_ERR_SYSTEM, "%s", text);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

TEST(test_without_a_sentence)
{
    struct trib_error err = {.status = TRIB_ERR_BUSY};

    assert_string_equal(trib_error_text(&err), "the object is in use");
}
