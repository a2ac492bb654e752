/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

TEST(test_names_and_texts)
{
    assert_string_equal(trib_status_name(TRIB_OK), "TRIB_OK");
    assert_string_equal(trib_status_name(TRIB_ERR_TIMEOUT), "TRIB_ERR_TIMEOUT");
    assert_string_equal(trib_status_str(TRIB_ERR_TIMEOUT),
                        "no progress before the deadline");
    assert_int_equal(trib_status_scope(TRIB_ERR_TIMEOUT), TRIB_SCOPE_COMM);
    assert_int_equal(trib_status_scope(TRIB_ERR_OVERLAP), TRIB_SCOPE_OP);
    assert_int_equal(trib_status_scope(TRIB_OK), TRIB_SCOPE_NONE);
}

TEST(test_sign_says_what_it_is)
{
#define CHECK_SIGN(name, value, scope, text) \
    assert_int_equal(TRIB_SCOPE_##scope == TRIB_SCOPE_NONE, (value) >= 0);
    TRIB_STATUS_MAP(CHECK_SIGN)
#undef CHECK_SIGN
}

TEST(test_unknown)
{
    assert_string_equal(trib_status_name((trib_status_t)-999), "TRIB_?");
    assert_string_equal(trib_status_str((trib_status_t)-999), "unknown status");
    assert_int_equal(trib_status_scope((trib_status_t)-999), TRIB_SCOPE_CONTEXT);
}
