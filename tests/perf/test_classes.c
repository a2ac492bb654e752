/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inequalities of the three classes of biased compression hold for every codec with
 * its proven constants, on drawn and on adversarial vectors. The measured values match
 * tests/regress/classes.csv, the table in docs/codec-loss.md. After an intended change:
 *
 *     trib-perf codec --classes --csv tests/regress/classes.csv CODEC…
 */
#include "tests/harness/tribtest.h"

#include <math.h>

#include "base/error.h"
#include "compress/codec.h"
#include "perf/codec/classes.h"

enum { DRAWS = 60, MANY_DRAWS = 1000, LINE = 300, FIGURES = 8 };

static struct trib_codec *codec_of(const char *text)
{
    struct trib_error err = {0};
    struct trib_codec *codec = NULL;

    if (trib_codec_create(text, NULL, &err, &codec) != TRIB_OK ||
        trib_codec_for_ranks(codec, 2, &err) != TRIB_OK)
        fail_msg("%s: %s", text, trib_error_text(&err));
    return codec;
}

static void check_codec(const char *text)
{
    const struct codec_classes proved = codec_classes_proved(text);
    struct trib_codec *codec = codec_of(text);

    for (int v = 0; v < CLASSES_VECTORS && codec_classes_have(codec); v++) {
        struct codec_moments moments;
        const char *why;

        assert_true(codec_moments_of(codec, v, DRAWS, &moments));
        if (!codec_classes_hold(&proved, &moments, &why))
            fail_msg("%s, vector %d: not %s with alpha %g, beta %g, gamma %g, delta %g",
                     text, v, why, proved.alpha, proved.beta, proved.gamma,
                     proved.delta);
    }
    trib_codec_destroy(codec);
}

TEST(test_inequalities)
{
    for (size_t i = 0; i < trib_codecs_count; i++)
        for (const char *const *text = trib_codecs[i].texts; *text; text++)
            check_codec(*text);
}

static void near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-6 * fabs(b)))
        fail_msg("%.9g, not %.9g", a, b);
}

/* Constants that the paper gives: top-k (k/d, 1 | k/d, 1 | d/k), unbiased ones with
 * variance w (1, 1 + w | 1, 1 + w), and top-k before natural dithering
 * (k/d, 9/8 in the second class). */
TEST(test_proved)
{
    const struct codec_classes topk = codec_classes_proved("topk:ratio=0.01");
    const struct codec_classes natural = codec_classes_proved("natural");
    const struct codec_classes both = codec_classes_proved("topk:ratio=0.01+natural");
    const struct codec_classes nearest = codec_classes_proved("natural:round=nearest");
    const struct codec_classes none = codec_classes_proved("adacomp");

    near(topk.alpha, 0.01);
    near(topk.beta, 1);
    near(topk.gamma, 0.01);
    near(topk.delta, 100);
    near(natural.alpha, 1);
    near(natural.beta, 9 / 8.0);
    near(natural.gamma, 1);
    near(natural.delta, 8 / 7.0);
    near(both.gamma, 0.01);
    near(both.beta, 9 / 8.0);
    near(nearest.delta, 9 / 8.0);
    assert_true(none.beta == 0 && none.delta == 0);
}

/* Constants that are too good are found out. */
TEST(test_finds_out)
{
    struct trib_codec *codec = codec_of("topk:ratio=0.01+natural");
    struct codec_classes too_good[4];
    bool found[4] = {false, false, false, false};

    for (int k = 0; k < 4; k++)
        too_good[k] = codec_classes_proved("topk:ratio=0.01+natural");
    too_good[0].alpha *= 1.2;
    too_good[1].beta = 1 + (too_good[1].beta - 1) / 2;
    too_good[2].gamma *= 1.2;
    too_good[3].delta /= 1.2;
    for (int v = 0; v < CLASSES_VECTORS; v++) {
        struct codec_moments moments;
        const char *why;

        assert_true(codec_moments_of(codec, v, MANY_DRAWS, &moments));
        for (int k = 0; k < 4; k++)
            found[k] |= !codec_classes_hold(&too_good[k], &moments, &why);
    }
    for (int k = 0; k < 4; k++)
        assert_true(found[k]);
    trib_codec_destroy(codec);
}

static void check_row(char *line)
{
    const double *now;
    double old[FIGURES];
    struct codec_classes both[2];
    char *rest = line;
    const char *text = strsep(&rest, ";");
    struct trib_codec *codec = codec_of(text);

    for (int i = 0; i < FIGURES; i++)
        old[i] = strtod(strsep(&rest, ";"), NULL);
    both[1] = codec_classes_proved(text);
    assert_true(codec_classes_measured(codec, &both[0]));
    for (int i = 0; i < FIGURES; i++) {
        now = (const double *)&both[i % 2] + i / 2;
        /* A delta of thousands is the reciprocal of a small difference from 1. */
        if (!(fabs(*now - old[i]) <= (i < 6 ? 0.02 : 0.1) * fabs(old[i]) + 1e-9))
            fail_msg("%s: figure %d is %g, and %g in the table", text, i, *now, old[i]);
    }
    trib_codec_destroy(codec);
}

TEST(test_table)
{
    const char *top = getenv("abs_top_srcdir");
    char path[4096], line[LINE];
    int rows = 0;

    snprintf(path, sizeof(path), "%s/tests/regress/classes.csv", top ? top : ".");
    FILE *f = fopen(path, "r");
    if (!f)
        fail_msg("%s cannot be read", path);
    assert_non_null(fgets(line, sizeof(line), f));
    for (; fgets(line, sizeof(line), f); rows++)
        check_row(line);
    fclose(f);
    assert_true(rows > 20);
}
