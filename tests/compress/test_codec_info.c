/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sheets of codecs compared with the parser and the codecs: every listed parameter
 * is accepted, and none is missing.
 */
#include "tests/harness/tribtest.h"

#include "base/error.h"
#include "compress/codec_info.h"
#include "compress/stages.h"

enum { TEXT = 200, CHUNK = 65536 };

static struct trib_codec_description *sheet_new(const char *text)
{
    struct trib_codec_description *s = NULL;
    struct trib_error err = {0};
    if (trib_codec_description_create(text, CHUNK, &err, &s) != TRIB_OK)
        fail_msg("%s: %s", text, err.text);
    return s;
}

/* Return true if such a codec exists, otherwise store the reason in err. */
static bool creates(const char *text, struct trib_error *err)
{
    struct trib_codec *c;
    *err = (struct trib_error){0};
    if (trib_codec_create(text, NULL, err, &c) != TRIB_OK)
        return false;
    trib_codec_destroy(c);
    return true;
}

/* "topk:ratio=0.1" or, for the part after the "+", "topk+natural:bucket=8" */
static const char *with(char out[TEXT], const char *const names[2], bool second,
                        const char *key, const char *value)
{
    snprintf(out, TEXT, "%s%s%s%s%s%s%s%s%s%s%s", names[0], second ? "" : ":",
             second ? "" : key, second ? "" : "=", second ? "" : value,
             names[1] ? "+" : "", names[1] ? names[1] : "", second ? ":" : "",
             second ? key : "", second ? "=" : "", second ? value : "");
    return out;
}

/* ---- parameters ------------------------------------------------------------------ */

/* Ends of a range that go only with other values of other parameters than the
 * defaults. */
static const char *instead_of(const char *text)
{
    static const char *const instead[][2] = {
        {"dither:bits=8", "dither:base=1.5,bits=8"},
        {"+dither:bits=8", "topk+dither:base=1.5,bits=8"},
        {"gradiveq:slice=8", "gradiveq:slice=8,kept=8"},
        {"gradiveq:kept=4096", "gradiveq:slice=4096,kept=4096"},
        {"lgc:every=1000000", "lgc:train=1000000,every=1000000"},
        {"lgc-ps:every=1000000", "lgc-ps:train=1000000,every=1000000"},
        {"lgc-ps:innovation=1", "lgc-ps:ratio=1,innovation=1"},
        {"lgc-ps:ratio=1e-09", "lgc-ps:ratio=1e-9,innovation=1e-9"},
    };
    for (size_t i = 0; i < sizeof instead / sizeof *instead; i++)
        if (strcmp(instead[i][0], text) == 0 ||
            (instead[i][0][0] == '+' && strstr(text, instead[i][0])))
            return instead[i][1];
    return NULL;
}

static void check_end(const char *const names[2], const trib_codec_param_t *p,
                      bool second, const char *value)
{
    char text[TEXT];
    struct trib_error err;
    with(text, names, second, p->key, value);
    if (creates(text, &err))
        return;
    if (!instead_of(text) || strstr(err.text, "must be") ||
        !creates(instead_of(text), &err))
        fail_msg("%s, an end of %s: %s", text, p->range, err.text);
}

static void check_beyond(const char *const names[2], const trib_codec_param_t *p,
                         bool second, double value)
{
    char text[TEXT], number[40];
    struct trib_error err;
    snprintf(number, sizeof number, "%.12g", value);
    char *plus = strchr(number, '+'); /* which would be another part */
    if (plus)
        memmove(plus, plus + 1, strlen(plus));
    with(text, names, second, p->key, number);
    if (creates(text, &err) || !strstr(err.text, "must be"))
        fail_msg("%s, beyond %s: %s", text, p->range, err.text);
}

static void check_numbers(const char *const names[2], const trib_codec_param_t *p,
                          bool second)
{
    double lowest, highest;
    unsigned multiple = 0;
    char low[32], high[32];
    assert_int_equal(sscanf(p->range, "%31s to %31[^,]", low, high), 2);
    assert_int_equal(sscanf(p->range, "%lf to %lf", &lowest, &highest), 2);
    check_end(names, p, second, low);
    check_end(names, p, second, high);
    if (strstr(p->range, ", a power of two")) {
        check_beyond(names, p, second, lowest / 2);
        check_beyond(names, p, second, highest * 2);
        check_beyond(names, p, second, lowest * 1.5);
        return;
    }
    if (strstr(p->range, ", whole"))
        multiple = 1;
    else if (strstr(p->range, ", a multiple of "))
        assert_int_equal(sscanf(strchr(p->range, ','), ", a multiple of %u", &multiple),
                         1);
    check_beyond(names, p, second,
                 lowest - (multiple ? multiple : lowest / 100 + 1e-12));
    check_beyond(names, p, second, highest + (multiple ? multiple : highest / 100));
    if (multiple)
        check_beyond(names, p, second, lowest + multiple / 2.0);
}

/* One of "bits, omega or entropy"? */
static bool in_list(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at++)
        if ((at == list || at[-1] == ' ') && (!at[n] || at[n] == ',' || at[n] == ' '))
            return true;
    return false;
}

static void check_values(const char *const names[2], const trib_codec_param_t *p,
                         bool second, const char *const *values)
{
    char text[TEXT];
    struct trib_error err;
    assert_string_not_equal(p->range, "");
    for (; *values; values++)
        if (creates(with(text, names, second, p->key, *values), &err) !=
            in_list(p->range, *values))
            fail_msg("%s, and its values are %s: %s", text, p->range, err.text);
    if (creates(with(text, names, second, p->key, "such"), &err) ||
        !strstr(err.text, "must be"))
        fail_msg("%s: %s", text, err.text);
}

/* The canonical text stays the same. */
static void check_default(const char *const names[2], const trib_codec_param_t *p,
                          bool second, const char *canonical)
{
    char text[TEXT];
    struct trib_codec_description *s =
        sheet_new(with(text, names, second, p->key, p->fallback));
    assert_string_equal(trib_codec_description_get(s)->text, canonical);
    trib_codec_description_destroy(s);
}

/* The keys that the parser accepts in a segment are those of the sheet. */
static void check_keys(const char *const names[2], const trib_codec_sheet_t *sheet,
                       bool second)
{
    static const char *const keys[] = {
#define PARAM(id, key, ...) key,
#include "compress/codec_params.def"
#undef PARAM
        "nothing"};
    char text[TEXT];
    struct trib_error err;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        bool shown = false;
        for (size_t j = 0; j < sheet->n_params; j++)
            shown |= strcmp(sheet->params[j].key, keys[i]) == 0 &&
                     strcmp(sheet->params[j].row, names[second]) == 0;
        creates(with(text, names, second, keys[i], "such"), &err);
        const bool taken = !strstr(err.text, "has no parameter");
        if (taken != shown)
            fail_msg("%s: %s; the sheet has it: %d", text, err.text, shown);
    }
}

static void check_sheet(const char *first, const char *behind)
{
    const char *const names[2] = {first, behind};
    char text[TEXT];
    struct trib_param_text params[TRIB_PARAM_TEXTS_MAX];
    struct trib_codec *c;
    snprintf(text, sizeof text, "%s%s%s", first, behind ? "+" : "",
             behind ? behind : "");
    struct trib_codec_description *s = sheet_new(text);
    const trib_codec_sheet_t *sheet = trib_codec_description_get(s);
    assert_int_equal(trib_codec_create(text, NULL, NULL, &c), TRIB_OK);
    assert_int_equal(trib_codec_params(c, params), sheet->n_params);
    for (size_t i = 0; i < sheet->n_params; i++) {
        const trib_codec_param_t *p = &sheet->params[i];
        const bool second = params[i].segment;
        assert_string_equal(p->row, names[second]);
        if (!p->meaning[0])
            fail_msg("%s: %s has no meaning in compress/codec_params.def", text,
                     p->key);
        assert_string_equal(p->value, p->fallback);
        if (params[i].names)
            check_values(names, p, second, params[i].names);
        else
            check_numbers(names, p, second);
        if (p->fallback[0])
            check_default(names, p, second, sheet->text);
    }
    for (int second = 0; second <= (behind != NULL); second++)
        check_keys(names, sheet, second);
    trib_codec_destroy(c);
    trib_codec_description_destroy(s);
}

TEST(test_parameters)
{
    for (size_t i = 0; i < trib_codecs_count; i++) {
        struct trib_codec *c;
        assert_int_equal(trib_codec_create(trib_codecs[i].name, NULL, NULL, &c),
                         TRIB_OK);
        check_sheet(trib_codecs[i].name, c->values ? c->values->name : NULL);
        trib_codec_destroy(c);
    }
}

static void check_all_behind(const char *first)
{
    int n = 0;
    for (size_t i = 0; i < trib_codecs_count; i++) {
        char text[TEXT];
        struct trib_error err;
        snprintf(text, sizeof text, "%s+%s", first, trib_codecs[i].name);
        if (!creates(text, &err))
            continue;
        check_sheet(first, trib_codecs[i].name);
        n++;
    }
    assert_true(n >= 10);
}

TEST(test_parameters_behind_a_plus)
{
    check_all_behind("topk");
    check_all_behind("hadamard");
}

/* The names alone are not a valid codec: feedback around it would grow. */
TEST(test_names_that_are_no_codec)
{
    struct trib_error err;
    struct trib_codec_description *s = sheet_new("topk:ef=0+terngrad:clip=3");
    const trib_codec_sheet_t *sheet = trib_codec_description_get(s);
    assert_false(creates("topk+terngrad", &err));
    assert_int_equal(sheet->n_params, 7);
    assert_string_equal(sheet->params[2].key, "result");
    assert_string_equal(sheet->params[2].range, "sums, requantised or selected");
    assert_string_equal(sheet->params[3].key, "ef");
    assert_string_equal(sheet->params[3].range, "0");
    assert_string_equal(sheet->params[5].key, "clip");
    assert_string_equal(sheet->params[5].row, "terngrad");
    assert_string_equal(sheet->params[5].value, "3");
    assert_string_equal(sheet->params[5].fallback, "2.5");
    assert_string_equal(sheet->params[6].range, "bits");
    trib_codec_description_destroy(s);
}

TEST(test_values_of_a_text)
{
    struct trib_codec_description *s = sheet_new("qsgd:bits=2,norm=l2");
    const trib_codec_sheet_t *sheet = trib_codec_description_get(s);
    assert_string_equal(sheet->params[0].key, "bits");
    assert_string_equal(sheet->params[0].value, "2");
    assert_string_equal(sheet->params[0].fallback, "4");
    assert_string_equal(sheet->params[2].key, "norm");
    assert_string_equal(sheet->params[2].value, "l2");
    assert_string_equal(sheet->params[2].fallback, "max");
    trib_codec_description_destroy(s);
}

/* ---- properties ------------------------------------------------------------------ */

static void check_properties(const char *text)
{
    struct trib_codec_description *s = sheet_new(text);
    const trib_codec_sheet_t *sheet = trib_codec_description_get(s);
    struct trib_codec *c;
    assert_int_equal(trib_codec_create(text, NULL, NULL, &c), TRIB_OK);
    const struct trib_codec_info *info = trib_codec_info(c);
    assert_string_equal(sheet->text, info->text);
    for (int i = 0; i < 4; i++)
        assert_string_equal(sheet->stages[i], info->stages[i]);
    assert_int_equal(sheet->linear, !!(info->flags & TRIB_CODEC_LINEAR));
    assert_int_equal(sheet->unbiased, !!(info->flags & TRIB_CODEC_UNBIASED));
    assert_int_equal(sheet->sparse, !!(info->flags & TRIB_CODEC_SPARSE));
    assert_int_equal(sheet->feedback, !!(info->flags & TRIB_CODEC_FEEDBACK));
    assert_true(sheet->delta == info->delta);
    if (info->flags & TRIB_CODEC_AGREES && !sheet->shared[0])
        fail_msg("%s: its row does not say what is shared", text);
    assert_int_equal(sheet->learns, !!(info->flags & TRIB_CODEC_MODEL));
    if (!sheet->learns)
        assert_true(sheet->bytes_most == (double)trib_codec_bound(c, 65536) / 65536);
    assert_true(sheet->bytes > 0 && sheet->bytes <= sheet->bytes_most);
    trib_codec_destroy(c);
    trib_codec_description_destroy(s);
}

TEST(test_properties)
{
    for (size_t i = 0; i < trib_codecs_count; i++) {
        struct trib_codec_description *s = sheet_new(trib_codecs[i].name);
        const trib_codec_sheet_t *sheet = trib_codec_description_get(s);
        const bool none = trib_codecs[i].flags & TRIB_CODEC_IDENTITY;
        assert_string_equal(sheet->row, trib_codecs[i].name);
        if ((!sheet->paper[0] && !none) || !sheet->example[0])
            fail_msg("%s has no paper or no text in its row", sheet->row);
        check_properties(sheet->row);
        check_properties(sheet->example);
        assert_memory_equal(sheet->example, sheet->row, strlen(sheet->row));
        trib_codec_description_destroy(s);
    }
}

TEST(test_shared)
{
    static const struct {
        const char *text, *shared;
    } cases[] = {{"qsgd", ""},
                 {"qsgd:shared=1", "norms of the buckets"},
                 {"topk+int8", ""},
                 {"int8", "norms of the buckets"},
                 {"randomk", "seed of the selection"},
                 {"hadamard+int8", "scales of the rotated buckets"},
                 {"hadamard+f16", ""},
                 {"signsgd", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trib_codec_description *s = sheet_new(cases[i].text);
        assert_string_equal(trib_codec_description_get(s)->shared, cases[i].shared);
        trib_codec_description_destroy(s);
    }
}

TEST(test_bytes)
{
    static const struct {
        const char *text;
        double bytes, most;
    } cases[] = {{"none", 4, 4},
                 {"bf16", 2, 2},
                 {"qsgd", 0.5 + 4 / 512.0, 0.5 + 4 / 512.0},
                 {"topk:ratio=0.01+f16", 0.0303, 4},
                 {"qsgd:bits=2,pack=entropy", 0.142, 0.258}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trib_codec_description *s = sheet_new(cases[i].text);
        assert_float_equal(trib_codec_description_get(s)->bytes, cases[i].bytes, 0.003);
        assert_float_equal(trib_codec_description_get(s)->bytes_most, cases[i].most,
                           0.003);
        trib_codec_description_destroy(s);
    }
}

TEST(test_no_codec)
{
    struct trib_error err = {0};
    struct trib_codec_description *s = NULL;
    assert_int_equal(trib_codec_description_create("tpok", CHUNK, &err, &s),
                     TRIB_ERR_CODEC);
    assert_non_null(strstr(err.text, "did you mean \"topk\"?"));
    assert_null(s);
    trib_codec_description_destroy(s);
}

/* The figure applies to the chunks of plans: a matrix whose encoding exceeds a chunk is
 * cut by rows, and each part has its own factors. */
TEST(test_bytes_follow_the_chunk)
{
    static const struct {
        size_t chunk;
        double bytes;
    } cases[] = {{65536, 4.0 * 4 * (256 + 4096) / (1 << 20)},
                 {4096 + 8, 4.0 * 4 * (256 + 4096) / (1 << 20)},
                 {4096, 4.0 * 4 * (255 + 4096) / (255 * 4096)},
                 {1024, 4.0 * 4 * (63 + 4096) / (63 * 4096)}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trib_codec_description *s = NULL;
        struct trib_error err = {0};
        assert_int_equal(trib_codec_description_create("powersgd:rank=4,columns=4096",
                                                       cases[i].chunk, &err, &s),
                         TRIB_OK);
        assert_float_equal(trib_codec_description_get(s)->bytes, cases[i].bytes, 1e-4);
        trib_codec_description_destroy(s);
    }
}
