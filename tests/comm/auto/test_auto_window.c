/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The windows of codec auto: their length, which starts are measured, and the
 * evaluation of scattered times.
 */
#include "tests/harness/tribtest.h"

#include "comm/auto/auto_window.h"

/* Short starts scatter, so more of them are measured; if nothing is known, the
 * fewest. */
TEST(test_lengths)
{
    assert_int_equal(trib_auto_window_tried(0), 3);
    assert_int_equal(trib_auto_window_tried(300e3), 3);
    assert_int_equal(trib_auto_window_tried(500), 10);
    assert_int_equal(trib_auto_window_tried(1.5), 32);
    assert_int_equal(trib_auto_window_next(3, 0, 300e3), 16);
    assert_int_equal(trib_auto_window_next(16, 0, 300e3), 32);
    assert_int_equal(trib_auto_window_next(1024, 0, 300e3), 1024);
    assert_int_equal(trib_auto_window_next(1024, 0, 0), 1024);
    /* An agreement takes a millisecond: a second of short starts runs between two. */
    assert_int_equal(trib_auto_window_next(1024, 0, 2), 2048);
    assert_int_equal(trib_auto_window_next(400000, 0, 2), 500000);
    assert_int_equal(trib_auto_window_next(1 << 20, 0, 1e-3), 1 << 20);
    /* Times that never become stable must not cause endless trials. */
    assert_int_equal(trib_auto_window_next(32, 0, 20), 160);
    assert_int_equal(trib_auto_window_next(32, 3, 20), 1280);
    assert_int_equal(trib_auto_window_next(3, 4, 300e3), 256);
    assert_int_equal(trib_auto_window_next(32, 1000000, 300e3), 1024);
}

static unsigned measured(unsigned length)
{
    struct trib_auto_window w = {0};
    unsigned n = 0;

    trib_auto_window_begin(&w, length);
    for (w.done = 0; w.done < length; w.done++)
        n += trib_auto_window_counts(&w);
    return n;
}

TEST(test_measured)
{
    assert_int_equal(measured(3), 2);
    assert_int_equal(measured(TRIB_AUTO_KEPT + 1), TRIB_AUTO_KEPT);
    /* Plans with a final choice read the clock for few of their starts. */
    assert_int_equal(measured(1024), TRIB_AUTO_KEPT);
    assert_int_equal(measured(1 << 20), TRIB_AUTO_KEPT);
}

TEST(test_typical)
{
    static const double two[] = {300, 100};
    struct trib_auto_window w = {0};
    double noise;

    trib_auto_window_begin(&w, 3);
    assert_true(trib_auto_window_typical(&w, &noise) <= 0 && noise <= 0);
    for (int i = 0; i < 2; i++)
        trib_auto_window_add(&w, two[i]);
    assert_int_equal((int)trib_auto_window_typical(&w, &noise), 100);
    assert_int_equal((int)noise, 141); /* 200 / sqrt(2) */
    /* One lucky start of many does not count, nor does a delayed one. */
    trib_auto_window_begin(&w, 32);
    for (int i = 0; i < TRIB_AUTO_KEPT; i++)
        trib_auto_window_add(&w, i == 3 ? 1 : i == 7 ? 1e6 : 50);
    assert_int_equal((int)trib_auto_window_typical(&w, &noise), 50);
    assert_true(noise <= 0);
    for (int i = 0; i < TRIB_AUTO_KEPT; i++) /* the latest ones count */
        trib_auto_window_add(&w, 80 + i % 2);
    assert_int_equal((int)trib_auto_window_typical(&w, &noise), 80);
    assert_true(noise > 0.1 && noise < 0.3);
}
