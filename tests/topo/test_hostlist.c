/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "topo/hostlist.h"

#define TEXT_BYTES 1024

static void note(void *arg, const char *name)
{
    char *text = arg;
    size_t n = strlen(text);

    snprintf(text + n, TEXT_BYTES - n, "%s%s", n ? " " : "", name);
}

static void check(const char *list, const char *expected)
{
    char text[TEXT_BYTES] = "";
    const char *why = trib_hostlist_each(list, 100, note, text);

    if (why)
        fail_msg("%s: %s", list, why);
    assert_string_equal(text, expected);
}

static void check_wrong(const char *list, const char *words)
{
    char text[TEXT_BYTES] = "";
    const char *why = trib_hostlist_each(list, 100, note, text);

    if (!why || !strstr(why, words))
        fail_msg("%s: %s", list, why ? why : text);
}

TEST(test_lists)
{
    check("n", "n");
    check("a,b.x-y_z,c:1", "a b.x-y_z c:1");
    check("n[1-3]", "n1 n2 n3");
    check("n[08-11,20]", "n08 n09 n10 n11 n20");
    check("n[8-11]", "n8 n9 n10 n11");
    check("n[098-101]x", "n098x n099x n100x n101x");
    check("r[1-2]n[1-2],m[3]", "r1n1 r1n2 r2n1 r2n2 m3");
    check("[7-8]", "7 8");
    check("[1-2][1-2][5]", "115 125 215 225");
}

TEST(test_wrong)
{
    char name[80];

    check_wrong("", "empty");
    check_wrong("a,,b", "empty");
    check_wrong("a,", "empty");
    check_wrong("n[1", "[ without its ]");
    check_wrong("n]", "] without its [");
    check_wrong("n[]", "no numbers");
    check_wrong("n[a]", "no numbers");
    check_wrong("n[2-1]", "no numbers");
    check_wrong("n[1-]", "no numbers");
    check_wrong("n[1-2-3]", "no numbers");
    check_wrong("n[1[2]]", "no numbers");
    check_wrong("n[1,]", "no numbers");
    check_wrong("n[1234567890]", "no numbers");
    check_wrong("n[1-101]", "too many");
    check_wrong("n[0-9][0-9][0-1]", "too many");
    check_wrong("n[0-999999999][0-999999999]", "too many");
    check_wrong("a b", "invalid character");
    check_wrong("a\tb", "invalid character");
    check_wrong("\x80", "invalid character");
    check_wrong("[1][1][1][1][1][1][1][1][1]", "8 brackets");
    memset(name, 'n', sizeof(name));
    name[64] = '\0';
    check(name, name);
    name[64] = 'n';
    name[65] = '\0';
    check_wrong(name, "64 characters");
    memcpy(name + 62, "[1000]", 7);
    check_wrong(name, "64 characters");
}

TEST(test_max)
{
    char text[TEXT_BYTES] = "";

    assert_null(trib_hostlist_each("n[1-3]", 3, note, text));
    text[0] = '\0';
    assert_non_null(trib_hostlist_each("n[1-4]", 3, note, text));
    assert_string_equal(text, "n1 n2 n3");
    assert_non_null(trib_hostlist_each("n", 0, note, text));
}

TEST(test_names)
{
    assert_true(trib_hostname_ok("leaf-1.x"));
    assert_false(trib_hostname_ok(""));
    assert_false(trib_hostname_ok("a b"));
    assert_false(trib_hostname_ok("a,b"));
    assert_false(trib_hostname_ok(
        "01234567890123456789012345678901234567890123456789012345678901234"));
}
