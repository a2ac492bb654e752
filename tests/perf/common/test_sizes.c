/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/common/sizes.h"
#include "tests/harness/tribtest.h"


TEST(test_size)
{
    size_t bytes;

    assert_true(perf_size_parse("0", &bytes));
    assert_int_equal(bytes, 0);
    assert_true(perf_size_parse("64K", &bytes));
    assert_int_equal(bytes, 65536);
    assert_true(perf_size_parse("3MiB", &bytes));
    assert_int_equal(bytes, 3 << 20);
    assert_true(perf_size_parse("2gb", &bytes));
    assert_int_equal(bytes, (size_t)2 << 30);
    assert_false(perf_size_parse("", &bytes));
    assert_false(perf_size_parse("-1", &bytes));
    assert_false(perf_size_parse("1.5M", &bytes));
    assert_false(perf_size_parse("8 K", &bytes));
    assert_false(perf_size_parse("8Q", &bytes));
    assert_false(perf_size_parse("99999999999999999999", &bytes));
    assert_false(perf_size_parse("99999999999G", &bytes));
}

static void assert_sizes(const char *text, const size_t *want, size_t n_want)
{
    struct perf_sizes sizes = {0};
    char why[128] = "";

    if (!perf_sizes_parse(text, &sizes, why, sizeof(why)))
        fail_msg("%s: %s", text, why);
    assert_int_equal(sizes.n, n_want);
    assert_memory_equal(sizes.bytes, want, n_want * sizeof(*want));
    perf_sizes_free(&sizes);
}

TEST(test_lists)
{
    const size_t list[] = {8, 65536, 16 << 20};
    const size_t range[] = {8, 32, 128};
    const size_t doubled[] = {1, 2, 4, 1024};

    assert_sizes("8,64K,16M", list, 3);
    assert_sizes("8:128:4", range, 3);
    assert_sizes("8:511:4", range, 3); /* the end need not be met */
    assert_sizes("1:4,1K", doubled, 4);
    /* The last step does not overflow. */
    struct perf_sizes sizes = {0};
    char why[128];
    assert_true(perf_sizes_parse("1:8589934592G:2", &sizes, why, sizeof(why)));
    assert_int_equal(sizes.n, 64);
    perf_sizes_free(&sizes);
}

static void assert_refused(const char *text, const char *words)
{
    struct perf_sizes sizes = {0};
    char why[128] = "";

    if (perf_sizes_parse(text, &sizes, why, sizeof(why)))
        fail_msg("'%s' was taken", text);
    if (strstr(why, words) == NULL)
        fail_msg("'%s': \"%s\" does not say \"%s\"", text, why, words);
}

TEST(test_refused)
{
    assert_refused("", "8,64K,16M");
    assert_refused("8,", "8,64K,16M");
    assert_refused("8,,9", "8,64K,16M");
    assert_refused("8,x", "'x': a size is");
    assert_refused("0:8:2", "begins above 0");
    assert_refused("8:4:2", "rises");
    assert_refused("8:64:1", "at least 2");
    assert_refused("8:64:", "at least 2");
    assert_refused("8:", "from:to:factor");
}

TEST(test_time)
{
    double seconds;

    assert_true(perf_time_parse("10us", &seconds));
    assert_true(seconds > 9.99e-6 && seconds < 10.01e-6);
    assert_true(perf_time_parse("1.5s", &seconds));
    assert_true(seconds > 1.499 && seconds < 1.501);
    assert_false(perf_time_parse("10", &seconds));
    assert_false(perf_time_parse("-1s", &seconds));
    assert_false(perf_time_parse("ms", &seconds));
    assert_false(perf_time_parse("1e999s", &seconds));
}

TEST(test_text)
{
    char text[32];

    assert_string_equal(perf_size_text(0, text, sizeof(text)), "0 B");
    assert_string_equal(perf_size_text(1000, text, sizeof(text)), "1000 B");
    assert_string_equal(perf_size_text(25000000, text, sizeof(text)), "25 MB");
    assert_string_equal(perf_size_text(64000000 << 4, text, sizeof(text)), "1024 MB");
    assert_string_equal(perf_size_text(65536, text, sizeof(text)), "64 KiB");
    assert_string_equal(perf_size_text((size_t)1 << 40, text, sizeof(text)),
                        "1024 GiB");
}
