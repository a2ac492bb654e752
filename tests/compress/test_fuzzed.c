/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each parameter of a codec occurs in a seed text of the fuzzers: a text of a row, or
 * of the corpus of fuzz_codec_text.
 */
#include "tests/harness/tribtest.h"

#include "compress/stages.h"
#include "tests/harness/corpus_tar.h"

enum { TEXTS_MAX = 512, NAME_BYTES = 512 };

/* A text of the corpus, and the codec that it is. */
struct unit {
    char text[TRIB_CODEC_TEXT_MAX];
    struct trib_codec *codec;
};

struct units {
    struct unit *at;
    size_t n;
};

static void read_unit(void *arg, const char *name, const uint8_t *data, size_t size)
{
    struct units *units = arg;
    struct unit *u = &units->at[units->n];
    (void)name;
    if (size >= sizeof u->text)
        return;
    memcpy(u->text, data, size);
    u->text[size] = '\0';
    units->n += trib_codec_create(u->text, NULL, NULL, &u->codec) == TRIB_OK;
    assert_true(units->n < TEXTS_MAX);
}

static size_t read_units(struct unit *at)
{
    struct units units = {at, 0};
    char path[NAME_BYTES];
    corpus_path("fuzz_codec_text", path, sizeof path);
    assert_true(corpus_each(path, read_unit, &units));
    for (size_t i = 0; i < trib_codecs_count; i++)
        for (const char *const *text = trib_codecs[i].texts; *text; text++)
            read_unit(&units, trib_codecs[i].name, (const uint8_t *)*text,
                      strlen(*text));
    return units.n;
}

/* "…[:,]key=" in the segment of the text? */
static bool gives(const char *text, size_t segment, const char *key)
{
    const char *plus = strchr(text, '+');
    const char *from = segment ? plus : text;
    const char *to = segment || !plus ? text + strlen(text) : plus;
    const size_t len = strlen(key);
    if (!from)
        return false;
    for (const char *at = strpbrk(from, ":,"); at && at < to;
         at = strpbrk(at + 1, ":,"))
        if (strncmp(at + 1, key, len) == 0 && at[1 + len] == '=')
            return true;
    return false;
}

static bool any_gives(const struct unit *units, size_t n, const struct trib_codec *c,
                      const struct trib_param_text *p)
{
    for (size_t i = 0; i < n; i++) {
        const struct trib_codec *u = units[i].codec;
        if (p->segment ? u->values == c->values : u->row == c->row)
            if (gives(units[i].text, p->segment, p->key))
                return true;
    }
    return false;
}

static void check_text(const struct unit *units, size_t n, const char *text)
{
    struct trib_param_text params[TRIB_PARAM_TEXTS_MAX];
    struct trib_codec *c;
    if (trib_codec_create(text, NULL, NULL, &c) != TRIB_OK)
        return; /* not valid after a "+" */
    const size_t n_params = trib_codec_params(c, params);
    for (size_t i = 0; i < n_params; i++)
        if (!any_gives(units, n, c, &params[i]))
            fail_msg(
                "no text of a row or of tests/fuzz/corpus/fuzz_codec_text.tar has "
                "the %s of %s",
                params[i].key, text);
    trib_codec_destroy(c);
}

TEST(test_texts_have_every_parameter)
{
    static struct unit units[TEXTS_MAX];
    const size_t n = read_units(units);
    char behind[TRIB_CODEC_TEXT_MAX];
    for (size_t i = 0; i < trib_codecs_count; i++) {
        snprintf(behind, sizeof behind, "topk:ef=0+%s", trib_codecs[i].name);
        check_text(units, n, trib_codecs[i].name);
        check_text(units, n, behind);
    }
    for (size_t i = 0; i < n; i++)
        trib_codec_destroy(units[i].codec);
}
