/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "base/text.h"

TEST(test_size_parse)
{
    static const struct {
        const char *text;
        size_t bytes;
    } good[] = {
        {"0", 0},          {"1", 1},
        {"64K", 65536},    {"64k", 65536},
        {"1M", 1048576},   {"2G", (size_t)2 << 30},
        {"007", 7},        {"18446744073709551615", SIZE_MAX},
    };
    static const char *const bad[] = {
        "", "K", "-1", "+1", " 1", "1 ", "1KB", "1.5K", "0x10", "1T",
        "18446744073709551616", "17179869184G", "9999999999999999999999999",
    };
    size_t bytes;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(trib_size_parse(good[i].text, &bytes));
        assert_int_equal(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (trib_size_parse(bad[i], &bytes))
            fail_msg("\"%s\" was read as %zu", bad[i], bytes);
    }
}

TEST(test_size_format_reads_back)
{
    static const size_t sizes[] = {0, 1, 1023, 1024, 1025, 65536, 1 << 20,
                                   (size_t)3 << 40, SIZE_MAX};
    char text[24];
    size_t bytes;

    assert_string_equal(trib_size_format(65536, text), "64K");
    assert_string_equal(trib_size_format(1536, text), "1536");
    assert_string_equal(trib_size_format((size_t)3 << 40, text), "3072G");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        assert_true(trib_size_parse(trib_size_format(sizes[i], text), &bytes));
        assert_int_equal(bytes, sizes[i]);
    }
}

TEST(test_distance)
{
    char longer[100];

    assert_int_equal(trib_text_distance("", ""), 0);
    assert_int_equal(trib_text_distance("abc", "abc"), 0);
    assert_int_equal(trib_text_distance("", "abc"), 3);
    assert_int_equal(trib_text_distance("kitten", "sitting"), 3);
    assert_int_equal(trib_text_distance("chunk", "chnuk"), 2);
    memset(longer, 'a', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(trib_text_distance(longer, "a"), 99);
}

TEST(test_nearest)
{
    static const char *const names[] = {"chunk", "codec", "timeout_ms", NULL};

    assert_string_equal(trib_text_nearest("chnk", names, SIZE_MAX), "chunk");
    assert_string_equal(trib_text_nearest("codecs", names, SIZE_MAX), "codec");
    assert_string_equal(trib_text_nearest("timeout", names, SIZE_MAX), "timeout_ms");
    assert_null(trib_text_nearest("elephant", names, SIZE_MAX));
    assert_null(trib_text_nearest("timeout", names, 2));
}

TEST(test_append)
{
    char text[16] = "";
    char tiny[3] = "";

    assert_true(trib_text_append(text, sizeof(text), "%d and", 12));
    assert_true(trib_text_append(text, sizeof(text), " %s", "345678"));
    assert_string_equal(text, "12 and 345678");
    assert_true(trib_text_append(text, sizeof(text), "ab")); /* full to the last byte */
    assert_false(trib_text_append(text, sizeof(text), "c"));
    assert_string_equal(text, "12 and 34567...");
    assert_false(trib_text_append(tiny, sizeof(tiny), "abc"));
    assert_string_equal(tiny, "ab");
}
