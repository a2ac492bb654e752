/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codec auto, without a plan: texts, and the choice among candidates whose true times
 * the test knows.
 */
#include "tests/harness/tribtest.h"

#include <locale.h>

#include <math.h>

#include "base/error.h"
#include "comm/plan/auto_choice.h"

static void parse(const char *text, struct trib_auto_choice *c)
{
    struct trib_error err = {0};

    if (trib_auto_parse(text, &err, c) != TRIB_OK)
        fail_msg("%s: %s", text, trib_error_text(&err));
}

static void refuse(const char *text, const char *words)
{
    struct trib_auto_choice c;
    struct trib_error err = {0};

    assert_int_equal(trib_auto_parse(text, &err, &c), TRIB_ERR_CODEC);
    if (!strstr(trib_error_text(&err), words))
        fail_msg("%s: \"%s\" does not say %s", text, trib_error_text(&err), words);
}

TEST(test_texts)
{
    struct trib_auto_choice c;

    assert_true(trib_auto_wanted("auto"));
    assert_true(trib_auto_wanted("auto:of=int8"));
    assert_false(trib_auto_wanted("automatic"));
    assert_false(trib_auto_wanted("topk"));
    parse("auto:max_nmse=1e-3", &c);
    assert_true(c.n > 4);
    assert_true(c.max_nmse > 0.9e-3 && c.max_nmse < 1.1e-3);
    parse("auto:of=int8:bucket=64,round=nearest|bf16|none|topk:ratio=0.1,ef=0", &c);
    assert_int_equal(c.n, 4);
    assert_string_equal(c.of[0].text, "none");
    assert_string_equal(c.of[1].text, "int8:bucket=64,round=nearest");
    refuse("auto", "set an error budget");
    refuse("auto:", "set an error budget");
    refuse("auto:of=", "set an error budget");
    refuse("auto:max_nmse=", "must be from 0 to 1");
    refuse("auto:max_nmse=2", "must be from 0 to 1");
    refuse("auto:max_nmse=nan", "must be from 0 to 1");
    refuse("auto:max_nmse=1e-3x", "must be from 0 to 1");
    refuse("auto:of=int8||bf16", "an empty name");
    refuse("auto:of=itn8", "int8");
    parse("auto:of=int8|topk", &c);
    assert_false(c.of[1].holds);
    assert_true(c.of[2].holds);
    assert_true(trib_auto_holds(&c));
    parse("auto:of=int8|topk:ef=0", &c);
    assert_false(trib_auto_holds(&c));
    refuse("auto:of=gradiveq", "is trained");
    refuse("auto:of=signsgd", "signs");
    refuse("auto:of=int4|int8|int16|bf16|f16|f8|natural|qsgd|dither|terngrad|blocks"
           "|exact|topk:ratio=0.1|topk:ratio=0.2",
           "at most");
    for (int i = 0; i < 2; i++) {
        struct trib_error err = {0};
        assert_int_equal(trib_auto_feedback(i ? "codec" : "none", &err), TRIB_OK);
        assert_int_equal(trib_auto_feedback("ef14", &err), TRIB_ERR_UNSUPPORTED);
    }
}

/* The true times, bytes per element and errors of the candidates. */
struct world {
    double us[4];
    double bytes[4];
    double nmse[4];
    double work_ns;
};

static void open_world(struct trib_auto_choice *c, const struct world *w,
                       const char *text)
{
    parse(text, c);
    assert_int_equal(c->n, 4);
    c->count = 1e6;
    c->element = 4;
    c->ranks = 4;
    for (int i = 0; i < c->n; i++)
        c->of[i].nmse = -1;
    (void)w;
}

/* Report the figures of an agreement. Return the next candidate. */
static int agree(struct trib_auto_choice *c, const struct world *w)
{
    c->of[c->now].took_us = w->us[c->now];
    for (int i = 1; i < c->n; i++) {
        c->of[i].bytes = w->bytes[i];
        c->of[i].nmse = w->nmse[i];
        c->of[i].work_ns = w->work_ns;
    }
    return trib_auto_next(c);
}

static const char three[] = "auto:of=bf16|int8|int4";

static const struct world slow = {.us = {300e3, 160e3, 90e3, 85e3},
                                  .bytes = {4, 2, 1, 0.5},
                                  .nmse = {0, 5e-6, 1e-4, 3e-2},
                                  .work_ns = 1};

/* A locale that writes 0,5 for a half must not change the meaning of a budget. */
TEST(test_locale)
{
    static const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", NULL};
    struct trib_error err = {0};
    struct trib_auto_choice c;
    int i = 0;

    while (commas[i] && !setlocale(LC_ALL, commas[i]))
        i++;
    if (!commas[i])
        tribtest_skip("no locale with a decimal comma is installed");
    const trib_status_t st = trib_auto_parse("auto:max_nmse=0.25", &err, &c);
    setlocale(LC_ALL, "C");
    assert_int_equal(st, TRIB_OK);
    assert_true(c.max_nmse == 0.25);
}

TEST(test_slow_link)
{
    struct trib_auto_choice c;

    open_world(&c, &slow, three);
    assert_int_equal(c.now, 0);
    assert_int_equal(agree(&c, &slow), 3); /* it promises most */
    for (int i = 0; i < 10; i++)
        (void)agree(&c, &slow);
    assert_int_equal(c.now, 3);
    assert_true(c.of[2].took_us > 0 || c.optimism > 1);
}

/* Only candidates within the budget; of two that differ by 5 %, the first one stays. */
TEST(test_budget)
{
    struct trib_auto_choice c;
    struct world w = slow;

    open_world(&c, &w, three);
    c.max_nmse = 1e-3;
    for (int i = 0; i < 10; i++)
        assert_int_not_equal(agree(&c, &w), 3);
    assert_int_equal(c.now, 2);
    w.nmse[2] = 1; /* the inputs have changed */
    (void)agree(&c, &w);
    assert_int_equal(c.now, 1);
    w.nmse[1] = -1; /* NaN among them */
    (void)agree(&c, &w);
    assert_int_equal(c.now, 0);
    w.nmse[1] = 5e-6;
    w.us[1] = 290e3;
    (void)agree(&c, &w);
    assert_int_equal(c.now, 1); /* measured earlier at 160 ms */
    for (int i = 0; i < 4; i++)
        (void)agree(&c, &w);
    assert_true(c.now == 0 || c.now == 1);
}

/* A codec that loses time is tried at most once. */
TEST(test_fast_link)
{
    const struct world fast = {.us = {800, 1500, 2000, 2500},
                               .bytes = {4, 2, 1, 0.5},
                               .nmse = {0, 5e-6, 1e-4, 3e-2},
                               .work_ns = 1};
    struct trib_auto_choice c;
    int coded = 0;

    open_world(&c, &fast, three);
    for (int i = 0; i < 50; i++)
        coded += agree(&c, &fast) != 0;
    assert_int_equal(coded, 0);
    /* Computation is not the only cost of a codec. */
    struct world w = fast;
    w.work_ns = 0.1;
    open_world(&c, &w, three);
    coded = 0;
    for (int i = 0; i < 50; i++)
        coded += agree(&c, &w) != 0;
    assert_in_range(coded, 1, 3);
    assert_int_equal(c.now, 0);
}

/* The link has changed: candidates are measured again. */
TEST(test_drift)
{
    struct trib_auto_choice c;
    struct world w = slow;

    open_world(&c, &w, three);
    for (int i = 0; i < 10; i++)
        (void)agree(&c, &w);
    assert_int_equal(c.now, 3);
    w.us[3] = 40e3;
    assert_int_equal(agree(&c, &w), 3); /* a single time may be chance */
    w.us[3] = 85e3;
    assert_int_equal(agree(&c, &w), 3);
    w = (struct world){.us = {800, 1500, 2000, 2500},
                       .bytes = {4, 2, 1, 0.5},
                       .nmse = {0, 5e-6, 1e-4, 3e-2},
                       .work_ns = 1};
    assert_int_equal(c.changes, 0);
    for (int i = 0; i < 6; i++)
        (void)agree(&c, &w);
    assert_int_equal(c.now, 0);
    assert_int_equal(c.changes, 1);
}

/* Variations of the running codec are tried once nothing promises more; the better one
 * stays. */
TEST(test_varied)
{
    struct trib_auto_choice c;
    char text[600];

    open_world(&c, &slow, three);
    while (agree(&c, &slow) != 3 || !c.settled)
        continue;
    assert_true(trib_auto_vary(&c, "ring", 0));
    assert_true(trib_auto_vary(&c, NULL, 65536));
    assert_false(trib_auto_vary(&c, "ring", 0));
    assert_int_equal(c.n, 6);
    assert_int_equal(c.of[4].like, 3);
    assert_int_equal(trib_auto_next(&c), 4);
    c.of[4].took_us = 95e3;
    assert_int_equal(trib_auto_next(&c), 5);
    c.of[5].took_us = 70e3;
    assert_int_equal(trib_auto_next(&c), 5);
    assert_true(c.settled);
    trib_auto_explain(&c, text, sizeof(text));
    assert_non_null(strstr(text, "int4 in chunks of 65536 bytes, 70 ms"));
    assert_non_null(strstr(text, "next is int4, 85 ms"));
    assert_non_null(strstr(text, "NMSE 0.03"));
    c.max_nmse = 1e-3; /* the variation has the same error as its codec */
    assert_false(trib_auto_allowed(&c, 5));
    assert_int_not_equal(c.of[trib_auto_next(&c)].like, 3);
    for (int i = c.n; i < TRIB_AUTO_CANDIDATES; i++)
        assert_true(trib_auto_vary(&c, NULL, (size_t)i));
    assert_false(trib_auto_vary(&c, NULL, 4096));
}

/* A codec that is only faster by chance, or compared with cold starts of dense sums. */
TEST(test_chance)
{
    struct trib_auto_choice c;
    struct world w = slow;

    w.us[1] = w.us[2] = w.us[3] = 200e3;
    open_world(&c, &w, three);
    while (agree(&c, &w) != 3)
        continue;
    c.of[3].noise_us = 100e3; /* 200 +- 100 ms of 300: perhaps not faster */
    for (int i = 0; i < 10; i++)
        (void)agree(&c, &w);
    assert_int_not_equal(c.now, 3);
    open_world(&c, &w, three);
    c.of[0].noise_us = 100e3;
    for (int i = 0; i < 10; i++)
        (void)agree(&c, &w);
    assert_int_equal(c.now, 0);
    /* A second measurement of dense sums shows that the first was of a cold start. */
    open_world(&c, &w, three);
    int looks = 0, codec = 0;
    for (int i = 0; i < 12; i++) {
        codec += agree(&c, &w) != 0;
        if (codec && c.now == 0) {
            w.us[0] = 190e3;
            looks++;
        }
    }
    assert_true(looks > 0);
    assert_int_equal(c.now, 0);
    assert_true(c.confirmed && c.settled);
    /* If they are as slow as before, the codec stays. */
    w.us[0] = 300e3;
    open_world(&c, &w, three);
    for (int i = 0; i < 12; i++)
        (void)agree(&c, &w);
    assert_int_not_equal(c.now, 0);
    assert_true(c.confirmed && c.settled);
}

/* If most of the time is per message, fewer bytes promise nothing. */
TEST(test_messages)
{
    struct world w = slow;
    struct trib_auto_choice c;

    for (int i = 0; i < 4; i++)
        w.us[i] = 10;
    w.work_ns = 0.1;
    open_world(&c, &w, three);
    c.count = 1024;
    assert_int_not_equal(agree(&c, &w), 0); /* 10 us for bytes: fewer would help */
    open_world(&c, &w, three);
    c.count = 1024;
    c.fixed = 0.92;
    for (int i = 0; i < 10; i++)
        assert_int_equal(agree(&c, &w), 0);
    /* Fixed costs are not saved; the estimate of dense sums is their measured time. */
    const double dense = trib_auto_expect_us(&c, 0, 1.0000001);
    assert_true(dense > 9.99 && dense < 10.01);
    assert_true(trib_auto_expect_us(&c, 3, 1) > 9.2);
    assert_true(trib_auto_expect_us(&c, 3, 1e-3) < 0.2 * 0.8e3); /* a slow link */
}

static int lines_of(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

TEST(test_explained)
{
    struct trib_auto_choice c;
    char text[600];

    open_world(&c, &slow, three);
    trib_auto_explain(&c, text, sizeof(text));
    assert_int_equal(lines_of(text), 1);
    assert_non_null(strstr(text, "none until its first starts are measured"));
    for (int i = 0; i < 10; i++)
        (void)agree(&c, &slow);
    trib_auto_explain(&c, text, sizeof(text));
    assert_int_equal(lines_of(text), 3);
    assert_non_null(strstr(text, "int4, 85 ms per start (measured)"));
    assert_non_null(strstr(text, "3.53 times as fast as none"));
    /* 2 * 3/4 * 4 MB in 300 ms are 0.16 Gbit/s; far above it int4 does not pay. */
    const char *at = strstr(text, "changes    to none on links of more than ");
    double rate, here;
    assert_non_null(at);
    assert_int_equal(sscanf(at,
                            "changes    to none on links of more than %lf Gbit/s per "
                            "rank; this link carried %lf",
                            &rate, &here),
                     2);
    assert_true(here > 0.15 && here < 0.17);
    assert_true(rate > 10 * here);
    for (size_t room = 1; room < sizeof(text); room += 7) { /* any size is accepted */
        memset(text, 1, sizeof(text));
        trib_auto_explain(&c, text, room);
        assert_non_null(memchr(text, 0, room));
    }
}
