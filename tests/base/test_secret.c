/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "base/error.h"
#include "base/secret.h"

#define KEY "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF"

static void arm(struct trib_secret *secret)
{
    char why[160];

    if (!trib_secret_arm(secret, why, sizeof(why)))
        tribtest_skip(why);
}

TEST(test_texts)
{
    struct trib_secret secret, again;
    char text[TRIB_SECRET_TEXT], root[40];

    assert_true(trib_secret_parse(KEY, strlen(KEY), &secret));
    assert_int_equal(secret.bytes[1], 0x11);
    assert_int_equal(secret.bytes[31], 0xff);
    trib_secret_format(&secret, text);
    assert_true(trib_secret_parse(text, strlen(text), &again));
    assert_memory_equal(secret.bytes, again.bytes, sizeof(secret.bytes));
    assert_false(trib_secret_parse(KEY, strlen(KEY) - 1, &again));
    assert_false(trib_secret_parse(KEY "0", strlen(KEY) + 1, &again));
    text[5] = 'g';
    assert_false(trib_secret_parse(text, strlen(text), &again));
    assert_false(again.is_set);
    assert_true(trib_secret_split("n7,10.0.0.1:4711#" KEY, root, sizeof(root), &again));
    assert_string_equal(root, "n7,10.0.0.1:4711");
    assert_true(again.is_set);
    assert_true(trib_secret_split("n7:4711", root, sizeof(root), &again));
    assert_false(again.is_set);
    assert_false(trib_secret_split("n7:4711#", root, sizeof(root), &again));
}

/* The variable is read, and no error message contains it. */
TEST(test_given)
{
    struct trib_secret secret;
    struct trib_error err = {0};

    assert_int_equal(unsetenv("TRIB_KEY"), 0);
    assert_status(trib_secret_given(&secret, &err), TRIB_OK);
    assert_false(secret.is_set);
    assert_int_equal(setenv("TRIB_KEY", KEY, 1), 0);
    assert_status(trib_secret_given(&secret, &err), TRIB_OK);
    assert_true(secret.is_set);
    assert_int_equal(setenv("TRIB_KEY", "s3cret", 1), 0);
    assert_status(trib_secret_given(&secret, &err), TRIB_ERR_CONFIG);
    assert_non_null(strstr(err.text, "64 hexadecimal digits"));
    assert_null(strstr(err.text, "s3cret"));
    assert_int_equal(unsetenv("TRIB_KEY"), 0);
}

TEST(test_random)
{
    struct trib_secret a, b;

    assert_status(trib_secret_make(&a, NULL), TRIB_OK);
    assert_status(trib_secret_make(&b, NULL), TRIB_OK);
    assert_memory_not_equal(a.bytes, b.bytes, sizeof(a.bytes));
    trib_secret_wipe(&a);
    assert_false(a.is_set);
    for (size_t i = 0; i < sizeof(a.bytes); i++)
        assert_int_equal(a.bytes[i], 0);
}

/* Secrets of secrets: each use has another. */
TEST(test_derived)
{
    struct trib_secret secret, a, b;
    uint8_t mark_1[8], mark_2[8], none[8] = {0};

    assert_true(trib_secret_parse(KEY, strlen(KEY), &secret));
    arm(&secret);
    trib_secret_derive(&secret, "one", "salt", 4, &a);
    trib_secret_derive(&secret, "one", "salt", 4, &b);
    assert_memory_equal(a.bytes, b.bytes, sizeof(a.bytes));
    trib_secret_derive(&secret, "two", "salt", 4, &b);
    assert_memory_not_equal(a.bytes, b.bytes, sizeof(a.bytes));
    trib_secret_derive(&secret, "one", "salz", 4, &b);
    assert_memory_not_equal(a.bytes, b.bytes, sizeof(a.bytes));
    assert_memory_not_equal(a.bytes, secret.bytes, sizeof(a.bytes));
    trib_secret_mark(&a, mark_1);
    trib_secret_mark(&b, mark_2);
    assert_memory_not_equal(mark_1, mark_2, sizeof(mark_1));
    assert_memory_not_equal(mark_1, none, sizeof(mark_1));
    a.is_set = false;
    trib_secret_mark(&a, mark_1);
    assert_memory_equal(mark_1, none, sizeof(mark_1));
}
