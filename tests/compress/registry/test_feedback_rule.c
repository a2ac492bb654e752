/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Feedback rules as text and as numbers: canonical texts, error messages for invalid
 * ones and DGC's schedule. The kernels match the C reference, bit for bit.
 */
#include "tests/harness/tribtest.h"

#include <math.h>

#include "base/error.h"
#include "base/text.h"
#include "compress/codec.h"
#include "compress/feedback_ops.h"
#include "compress/kernels/kernels.h"

static void fit(const char *text, const char *codec_text, struct trib_error *err,
                struct trib_feedback_rule *rule)
{
    struct trib_codec *codec = NULL;

    assert_status(trib_codec_create(codec_text, NULL, NULL, &codec), TRIB_OK);
    if (trib_feedback_parse(text, err, rule) == TRIB_OK)
        (void)trib_feedback_fit(rule, codec, err);
    trib_codec_destroy(codec);
}

TEST(test_canonical)
{
    static const char *const texts[][3] = {
        {"codec", "topk", "ef14"},
        {"codec", "topk:ef=0", "none"},
        {"codec", "none", "none"},
        {"none", "topk", "none"},
        {"ef14", "qsgd", "ef14"},
        {"ef14:momentum=0.90", "topk", "ef14:momentum=0.9,nesterov=0,masking=1"},
        {"ef14:momentum=0.9", "efsign", "ef14:momentum=0.9,nesterov=0,masking=0"},
        {"ef14:masking=0,nesterov=1,momentum=5e-1", "topk",
         "ef14:momentum=0.5,nesterov=1,masking=0"},
        {"none:clip=2.50", "qsgd", "none:clip=2.5"},
        {"none:clip=235444444444444444444444444444444444", "qsgd",
         "none:clip=2.3544444444444444e35"},
        {"none:clip=1e20,warmup=4294967295", "topk",
         "none:clip=1e20,warmup=4294967295,stages=4294967295"},
        {"ef14:warmup=100", "topk:ratio=0.01", "ef14:warmup=100,stages=100"},
        {"ef14:clip=1,stages=5,warmup=100", "topk", "ef14:clip=1,warmup=100,stages=5"},
        {"ef14:caller=1", "topk:ratio=0.01", "ef14:caller=1"},
        {"ef14:caller=0", "int8", "ef14"},
        {"ef21", "topk", "ef21"},
        {"ef21:momentum=1", "topk", "ef21"},
        {"ef21:momentum=0.1,clip=3", "topk:ef=0", "ef21:momentum=0.1,clip=3"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct trib_feedback_rule rule, again;
        struct trib_error err = {0};
        fit(texts[i][0], texts[i][1], &err, &rule);
        assert_status(err.status, TRIB_OK);
        assert_string_equal(rule.text, texts[i][2]);
        fit(rule.text, texts[i][1], &err, &again);
        assert_string_equal(again.text, rule.text);
        assert_int_equal(again.digest, rule.digest);
    }
}

TEST(test_sentences)
{
    static const char *const texts[][2] = {
        {"", "there is no \"\", only codec, none, ef14, ef21"},
        {"ef15", "did you mean \"ef14\""},
        {"momentum=0.9", "only codec, none, ef14, ef21"},
        {"codec:clip=1", "codec has no parameters"},
        {"none:momentum=0.9",
         "none has no parameter \"momentum\", only clip, warmup, stages"},
        {"ef21:masking=1", "ef21 has no parameter \"masking\""},
        {"ef14:momentun=0.9", "did you mean \"momentum\""},
        {"ef14:momentum", "momentum has no value"},
        {"ef14:momentum=", "it must be a number above 0, below 1"},
        {"ef14:momentum=1", "it must be a number above 0, below 1"},
        {"ef14:momentum=0", "it must be a number above 0, below 1"},
        {"ef14:momentum=nan", "it must be a number above 0, below 1"},
        {"ef21:momentum=1.5", "it must be a number above 0, at most 1"},
        {"ef14:momentum=0.9,momentum=0.9", "momentum is given twice"},
        {"ef14:momentum=0.9,nesterov=2", "nesterov is \"2\", it must be 0 or 1"},
        {"ef14:nesterov=1", "nesterov requires momentum"},
        {"ef14:masking=1", "masking requires momentum"},
        {"ef14:stages=3", "stages requires warmup"},
        {"ef14:warmup=2.5", "it must be a whole number of steps from 1"},
        {"ef14:warmup=1e30", "it must be a whole number of steps from 1"},
        {"ef14:warmup=3,stages=4", "4 stages do not fit into a warmup of 3 steps"},
        {"ef14:clip=-1", "it must be a number above 0"},
        {"ef14:clip=1e39", "it must be a number above 0 in the range of float32"},
        {"ef14:", "ef14 has no parameter \"\""},
    };
    char longest[300];

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct trib_feedback_rule rule;
        struct trib_error err = {0};
        assert_status(trib_feedback_parse(texts[i][0], &err, &rule), TRIB_ERR_INVALID);
        if (!strstr(err.text, texts[i][1]))
            fail_msg("\"%s\": %s", texts[i][0], err.text);
    }
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    struct trib_feedback_rule rule;
    struct trib_error err = {0};
    assert_status(trib_feedback_parse(longest, &err, &rule), TRIB_ERR_INVALID);
    assert_non_null(strstr(err.text, "has more than 159 characters"));
}

/* ---- every rule ------------------------------------------------------------------ */

/* The row's example is valid with its codec, and its canonical text is equivalent. */
static void check_example(const struct trib_feedback_ops *ops,
                          const char *const example[2])
{
    struct trib_feedback_rule rule, again;
    struct trib_error err = {0};

    assert_int_equal(strncmp(example[0], ops->name, strlen(ops->name)), 0);
    fit(example[0], example[1], &err, &rule);
    if (err.status != TRIB_OK)
        fail_msg("%s with %s: %s", example[0], example[1], err.text);
    assert_true(ops->chosen_for || rule.ops == ops);
    fit(rule.text, example[1], &err, &again);
    assert_string_equal(again.text, rule.text);
    assert_int_equal(again.digest, rule.digest);
    assert_memory_equal(again.param, rule.param, sizeof(rule.param));
}

/* Some example has this parameter; its limits are accepted, values beyond are
 * rejected. */
static void check_param(const struct trib_feedback_ops *ops,
                        const struct trib_feedback_param *param)
{
    struct trib_feedback_rule rule;
    char text[TRIB_FEEDBACK_TEXT_MAX];
    const double values[] = {param->lowest, param->highest,
                             param->lowest - param->highest,
                             param->highest + param->highest};
    bool shown = false;

    for (int i = 0; ops->examples[i][0]; i++)
        shown |= strstr(ops->examples[i][0], param->name) != NULL;
    if (!shown)
        fail_msg("no example of %s has %s", ops->name, param->name);
    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof(text), "%s:%s=%.17g", ops->name, param->name, values[i]);
        for (const struct trib_feedback_param *p = ops->params; p->name; p++)
            if (param->about && strcmp(p->name, param->about) == 0)
                trib_text_append(text, sizeof(text), ",%s=%.17g", p->name, p->highest);
        const trib_status_t st = trib_feedback_parse(text, NULL, &rule);
        if (st != (i < 2 ? TRIB_OK : TRIB_ERR_INVALID))
            fail_msg("%s: %s", text, trib_status_name(st));
    }
}

TEST(test_rows)
{
    for (int i = 0; trib_feedback_rules[i]; i++) {
        const struct trib_feedback_ops *ops = trib_feedback_rules[i];
        assert_non_null(ops->examples[0][0]);
        for (int k = 0; ops->examples[k][0]; k++)
            check_example(ops, ops->examples[k]);
        for (int k = 0; ops->params[k].name; k++)
            check_param(ops, &ops->params[k]);
        for (int k = 0; ops->states[k].name; k++)
            assert_true(ops->before && strlen(ops->states[k].name) < 16);
        assert_true(!ops->residual || ops->corrects);
        assert_true(!ops->sums_state || (ops->result && ops->restart));
    }
}

/* A row's text is its name in the list of rows, which also generates the docs. */
TEST(test_names)
{
    static const char *const ids[] = {
#define RULE(id, ...) #id,
#include "compress/feedback_rules.def"
#undef RULE
    };
    size_t n = 0;

    for (; trib_feedback_rules[n]; n++) {
        char name[32];
        snprintf(name, sizeof(name), "%s", ids[n]);
        for (char *c = name; *c; c++)
            *c = *c == '_' ? '-' : *c;
        assert_string_equal(trib_feedback_rules[n]->name, name);
    }
    assert_int_equal(n, sizeof(ids) / sizeof(*ids));
}

/* Five epochs to a ratio of 0.001, of ten steps each. */
TEST(test_schedule)
{
    static const double ratios[] = {0.31623, 0.1, 0.031623, 0.01, 0.0031623, 0.001};
    struct trib_feedback_rule rule;
    double before = 1;

    assert_status(trib_feedback_parse("none:warmup=50,stages=5", NULL, &rule), TRIB_OK);
    for (uint32_t step = 0; step < 60; step++) {
        double ratio = trib_feedback_ratio(&rule, 0.001, step);
        assert_true(fabs(ratio / ratios[step / 10] - 1) < 1e-4 && ratio <= before);
        before = ratio;
    }
    assert_true(trib_feedback_ratio(&rule, 0.001, UINT32_MAX) == 0.001);
    assert_true(trib_feedback_ratio(&rule, 1, 0) == 1);
}

/* ---- kernels --------------------------------------------------------------------- */

enum { MOST = 200 };

static void fill(float *x, size_t n, uint64_t *seed)
{
    static const float odd[] = {NAN,       INFINITY,        -INFINITY,
                                0x1p-140f, 0x1.fffffep127f, -0.0f};

    for (size_t i = 0; i < n; i++) {
        const uint64_t r = *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = r >> 60 ? (float)(int32_t)(r >> 32) * 0x1p-31f : odd[(r >> 33) % 6];
    }
}

static void same(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, sizeof(*a)) != 0 && !(isnan(a[i]) && isnan(b[i])))
            fail_msg("element %zu of %zu: %a, not %a", i, n, (double)b[i],
                     (double)a[i]);
}

TEST(test_kernels)
{
    static const char *const isas[] = {"c", "avx2", "avx512", "neon"};
    const struct trib_kernels *ref = trib_kernels_get("c");
    float x[MOST + 4], v[MOST + 4], a[MOST + 4], b[MOST + 4];
    uint64_t seed = 5;

    for (int isa = 0; isa < 4; isa++) {
        const struct trib_kernels *k = trib_kernels_get(isas[isa]);
        for (size_t n = 0; k && n < MOST; n++) {
            const size_t at = n % 4;
            fill(x, MOST + 4, &seed);
            fill(v, MOST + 4, &seed);
            memcpy(a, v, sizeof(a)), memcpy(b, v, sizeof(b));
            ref->average(a + at, x, n, 0.9f, 0.3f);
            k->average(b + at, x, n, 0.9f, 0.3f);
            same(a, b, MOST + 4); /* nothing outside the n is touched */
            const struct trib_combine c = {x, v + at, -1.5f, 0.7f};
            ref->combine(a + at, &c, n);
            k->combine(b + at, &c, n);
            same(a, b, MOST + 4);
            const struct trib_combine in_place = {b, x, 1.0f, -1.0f};
            memcpy(a, b, sizeof(a));
            ref->combine(a, &(struct trib_combine){a, x, 1.0f, -1.0f}, n);
            k->combine(b, &in_place, n);
            same(a, b, MOST + 4);
        }
    }
    float u[4] = {NAN, INFINITY, 2, -4}, g[4] = {1, 2, 4, NAN};
    ref->average(u, g, 4, 0.5f, 3.0f);
    assert_true(u[0] == 3 && u[1] == 6 && u[2] == 13 && isnan(u[3]));
}

/* ---- the mask of sent elements --------------------------------------------------- */

TEST(test_marks)
{
    static const char *const codecs[] = {"topk:ratio=0.05", "topk:ratio=0.4+natural",
                                         "topk:ratio=1"};
    float x[500], y[500], u[500];
    uint8_t mask[80], word[8192];
    _Alignas(64) uint8_t scratch[8192];
    uint64_t seed = 9;

    for (size_t i = 0; i < 3 * 40; i++) {
        const size_t n = i / 3 * 12, first = i % 13;
        struct trib_codec *codec;
        assert_status(trib_codec_create(codecs[i % 3], NULL, NULL, &codec), TRIB_OK);
        fill(x, n, &seed);
        for (size_t j = 0; j < n; j++)
            u[j] = 1;
        memset(mask, 0, sizeof(mask));
        struct trib_sent sent = {mask, first, u};
        struct trib_encode in = {.x = x, .n = n, .scratch = scratch, .sent = &sent};
        assert_true(trib_codec_scratch(codec, n) <= sizeof(scratch));
        const size_t len = trib_codec_encode(codec, &in, word);
        assert_status(trib_codec_decode(codec, word, len, y, n), TRIB_OK);
        for (size_t j = 0; j < 600; j++) {
            const bool marked = mask[j / 8] >> j % 8 & 1;
            const bool inside = j >= first && j < first + n;
            assert_true(inside || !marked);
            if (inside && !marked)
                assert_true(y[j - first] == 0 && u[j - first] == 1);
            if (inside && marked)
                assert_true(u[j - first] == 0);
            /* topk:ratio=1 sends all, or all that is not 0 */
            if (inside && i % 3 == 2)
                assert_true(marked || x[j - first] == 0);
        }
        trib_codec_destroy(codec);
    }
}
