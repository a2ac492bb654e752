/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "base/library.h"

struct functions {
    size_t (*length)(const char *text);
    void (*newer)(void);
};

TEST(test_opens)
{
    static const struct trib_symbol symbols[] = {
        {.name = "strlen", .at = offsetof(struct functions, length)},
        {.name = "of_next_year",
         .at = offsetof(struct functions, newer),
         .optional = true},
    };
    struct functions f = {.newer = abort};
    char why[160] = "";

    assert_true(trib_library_open("libc.so.6", symbols, 2, &f, why, sizeof(why)));
    assert_int_equal(f.length("four"), 4);
    assert_null(f.newer);
    assert_string_equal(why, "");
    assert_true(trib_library_open("libc.so.6", NULL, 0, NULL, why, sizeof(why)));
}

TEST(test_missing)
{
    static const struct trib_symbol symbols[] = {
        {.name = "of_next_year", .at = offsetof(struct functions, newer)},
    };
    struct functions f;
    char why[160] = "";

    assert_false(trib_library_open("libc.so.6", symbols, 1, &f, why, sizeof(why)));
    assert_string_equal(why, "libc.so.6: it is too old, it has no of_next_year");
    assert_false(
        trib_library_open("libnowhere.so.7", symbols, 1, &f, why, sizeof(why)));
    assert_non_null(strstr(why, "libnowhere.so.7"));
}
