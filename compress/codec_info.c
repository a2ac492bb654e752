/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sheet of a codec.
 */
#include "compress/codec_info.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/text.h"
#include "compress/models/model_ops.h"

enum { MEASURED = 65536, LEARNED = 1 << 20 }; /* elements */

/* Notes on a row that the tables of stages cannot hold. */
struct note {
    const char *row;
    const char *paper;
    const char *shared; /* before words of it add, or positions are known */
    const char *example;
};

static const struct note notes[] = {
    {"none", "", "", "none"},
    {"exact", "Kulisch & Miranker 1981, Computer Arithmetic in Theory and Practice", "",
     "exact"},
    {"f16", "IEEE 754-2008, binary16", "", "f16:round=random"},
    {"bf16", "Kalamkar et al. 2019, arXiv 1905.12322", "", "bf16:ef=1"},
    {"f8", "Micikevicius et al. 2022, arXiv 2209.05433", "",
     "f8:format=e5m2,bucket=32"},
    {"topk",
     "Aji & Heafield 2017, arXiv 1704.05021; Stich et al. 2018, arXiv 1809.07599", "",
     "topk:ratio=0.001+natural"},
    {"dgc", "Lin et al. 2017, arXiv 1712.01887", "", "dgc:ratio=0.001+f16"},
    {"threshold", "Strom 2015, Interspeech", "", "threshold:at=1e-3"},
    {"randomk",
     "Stich et al. 2018, arXiv 1809.07599; Konečný et al. 2016, arXiv 1610.05492",
     "seed of what is drawn", "randomk:ratio=0.01+bf16"},
    {"blocks", "Fei et al. 2021 (OmniReduce), SIGCOMM", "",
     "blocks:ratio=0.1,block=64"},
    {"adacomp", "Chen et al. 2017, arXiv 1712.02679", "", "adacomp:bin=500"},
    {"qsgd", "Alistarh et al. 2017, arXiv 1610.02132", "norms of the buckets",
     "qsgd:bits=2,pack=entropy"},
    {"natural", "Horváth et al. 2019, arXiv 1905.10988", "", "natural:pack=entropy"},
    {"dither",
     "Horváth et al. 2019, arXiv 1905.10988; Beznosikov et al. 2020, arXiv 2002.12410",
     "", "dither:bits=3,norm=l2"},
    {"terngrad", "Wen et al. 2017, arXiv 1705.07878", "norms of the buckets",
     "terngrad:shared=1"},
    {"onebit", "Seide et al. 2014, Interspeech", "", "onebit:bucket=4096"},
    {"efsign", "Karimireddy et al. 2019, arXiv 1901.09847", "", "efsign:bucket=4096"},
    {"signsgd", "Bernstein et al. 2018, arXiv 1802.04434", "", "signsgd"},
    {"int4", "Alistarh et al. 2017, arXiv 1610.02132", "norms of the buckets",
     "int4:round=nearest,ef=1"},
    {"int8", "Li et al. 2018 (Pipe-SGD), arXiv 1811.03619", "norms of the buckets",
     "int8:bucket=128"},
    {"int16", "Alistarh et al. 2017, arXiv 1610.02132", "norms of the buckets",
     "int16"},
    {"uniform-thc", "Li et al. 2023 (THC), arXiv 2302.08545", "ranges of the buckets",
     "uniform-thc:bits=8"},
    {"hadamard", "Suresh et al. 2017, arXiv 1611.00429",
     "scales of the rotated buckets", "hadamard:block=4096+int8"},
    {"thc", "Li et al. 2023 (THC), arXiv 2302.08545", "norms of the rotated blocks",
     "thc:block=4096,p=1/512"},
    {"gradiveq", "Yu et al. 2018, arXiv 1811.03617", "basis of the slices", "gradiveq"},
    {"powersgd", "Vogels et al. 2019, arXiv 1905.13727", "factors of the matrices",
     "powersgd"},
    {"lgc", "Abrahamyan et al. 2021, arXiv 2103.08870", "weights and positions", "lgc"},
    {"lgc-ps", "Abrahamyan et al. 2021, arXiv 2103.08870", "weights and positions",
     "lgc-ps"},
};

static const char *const meanings[TRIB_PARAM_COUNT] = {
    [TRIB_PARAM_RATIO] = "the part of the elements that is sent",
    [TRIB_PARAM_K] =
        "how many elements of the whole vector are sent, in place of ratio",
    [TRIB_PARAM_AT] = "the least magnitude that is sent",
    [TRIB_PARAM_UNBIASED] = "1: what is sent is scaled so that its mean is right",
    [TRIB_PARAM_BLOCK] = "elements of a block",
    [TRIB_PARAM_FORMAT] = "bits of the exponent and of the mantissa",
    [TRIB_PARAM_BASE] = "each level is this times the next one below",
    [TRIB_PARAM_BIN] = "elements of a bin",
    [TRIB_PARAM_FACTOR] = "how often the newest gradient counts",
    [TRIB_PARAM_BITS] = "of an element",
    [TRIB_PARAM_BUCKET] = "elements with a scale of their own",
    [TRIB_PARAM_NORM] = "what the levels are parts of",
    [TRIB_PARAM_ROUND] = "random is unbiased, nearest errs less",
    [TRIB_PARAM_RESULT] =
        "sums in as many bits as they need, or rounded anew to those of a word",
    [TRIB_PARAM_CLIP] = "the norm is at most so many root mean squares",
    [TRIB_PARAM_ROTATION] = "elements that are rotated together",
    [TRIB_PARAM_TAIL] = "the part that is cut off",
    [TRIB_PARAM_SHARED] = "1: the norms are those of all ranks, words add",
    [TRIB_PARAM_PACK] = "fixed width, or as few bits as codes need",
    [TRIB_PARAM_RANK] = "columns of a factor",
    [TRIB_PARAM_COLUMNS] =
        "of the matrix that a chunk is; without it about as many as rows",
    [TRIB_PARAM_SLICE] = "elements that are projected together",
    [TRIB_PARAM_KEPT] = "coefficients of a slice, at most slice",
    [TRIB_PARAM_TRAIN] = "starts by which it learns",
    [TRIB_PARAM_CODED] = "starts until it learns anew",
    [TRIB_PARAM_CENTRE] = "1: the mean slice is taken off",
    [TRIB_PARAM_DENSE] = "starts before it learns, of elements as they are",
    [TRIB_PARAM_RATE] = "of learning",
    [TRIB_PARAM_INNOVATION] = "the part of the elements that a rank sends of its own",
    [TRIB_PARAM_EF] = "1: what was not sent is added next time",
};

enum { VALUE_BYTES = 32, RANGE_BYTES = 96 };

struct trib_codec_description {
    struct trib_codec *codec;
    bool feedback_off; /* its names alone are no codec, with ef=0 they are one */
    trib_codec_sheet_t sheet;
    trib_codec_param_t params[TRIB_PARAM_TEXTS_MAX];
    struct trib_param_text given[TRIB_PARAM_TEXTS_MAX]; /* of the text */
    struct trib_param_text plain[TRIB_PARAM_TEXTS_MAX]; /* of names alone */
    char range[TRIB_PARAM_TEXTS_MAX][RANGE_BYTES];
};

static const struct note *note_of(const struct trib_codec_row *row)
{
    static const struct note nothing = {"", "", "", ""};
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        if (strcmp(notes[i].row, row->name) == 0)
            return &notes[i];
    return &nothing;
}

/* Only some parameters make the words of some rows add. */
static const char *shared_of(const struct trib_codec *c)
{
    const struct trib_quantise *q = c->row->stages.quantise;
    const bool may_add = q->packed_ints || q->shared;
    return may_add && !(c->info.flags & TRIB_CODEC_AGREES) ? ""
                                                           : note_of(c->row)->shared;
}

/* ---- parameters ------------------------------------------------------------------ */

/* The names of this codec and, unless p is NULL, a value of one parameter. */
static void names_print(const struct trib_codec_description *s,
                        const struct trib_param_text *p, const char *value,
                        char out[TRIB_CODEC_TEXT_MAX])
{
    const struct trib_codec *c = s->codec;
    const char *names[] = {c->row->name, c->values ? c->values->name : NULL};
    out[0] = '\0';
    for (size_t i = 0; i < 2 && names[i]; i++) {
        const bool here = p && p->segment == i;
        const bool off = s->feedback_off && i == 0 && !(here && p->id == TRIB_PARAM_EF);
        trib_text_append(out, TRIB_CODEC_TEXT_MAX, "%s%s%s", i ? "+" : "", names[i],
                         off ? ":ef=0" : "");
        if (here)
            trib_text_append(out, TRIB_CODEC_TEXT_MAX, "%s%s=%s", off ? "," : ":",
                             p->key, value);
    }
}

/* Is there a codec with these names and a value of one parameter? */
static bool takes(const struct trib_codec_description *s,
                  const struct trib_param_text *p, const char *value)
{
    char text[TRIB_CODEC_TEXT_MAX];
    struct trib_codec *other = NULL;
    names_print(s, p, value, text);
    const bool good =
        trib_codec_create(text, s->codec->kernels, NULL, &other) == TRIB_OK;
    if (good)
        trib_codec_destroy(other);
    return good;
}

/* Prints the values that go with the defaults of the others, if these are few. */
static void values_print(const struct trib_codec_description *s,
                         const struct trib_param_text *p, char *out)
{
    const char *good[8];
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; p->names[i] && n < sizeof good / sizeof *good; i++)
        if (takes(s, p, p->names[i]))
            good[n++] = p->names[i];
    for (size_t i = 0; i < n; i++)
        trib_text_append(out, RANGE_BYTES, "%s%s",
                         i == 0       ? ""
                         : i == n - 1 ? " or "
                                      : ", ",
                         good[i]);
}

/* By names alone. Those that select have error feedback then, which not all values go
 * with. */
static trib_status_t plain_create(struct trib_codec_description *s,
                                  struct trib_error *err, struct trib_codec **out)
{
    char text[TRIB_CODEC_TEXT_MAX];
    names_print(s, NULL, NULL, text);
    trib_status_t status = trib_codec_create(text, s->codec->kernels, NULL, out);
    if (status != TRIB_OK) {
        s->feedback_off = true;
        names_print(s, NULL, NULL, text);
        status = trib_codec_create(text, s->codec->kernels, err, out);
    }
    return status;
}

static trib_status_t params_fill(struct trib_codec_description *s,
                                 struct trib_error *err)
{
    const struct trib_codec *c = s->codec;
    struct trib_codec *plain;
    const trib_status_t status = plain_create(s, err, &plain);
    if (status != TRIB_OK)
        return status;
    const size_t n = trib_codec_params(c, s->given);
    trib_codec_params(plain, s->plain);
    trib_codec_destroy(plain);
    for (size_t i = 0; i < n; i++) {
        const struct trib_param_text *p = &s->given[i];
        if (p->names)
            values_print(s, p, s->range[i]);
        else
            snprintf(s->range[i], RANGE_BYTES, "%s", p->range);
        const char *meaning = meanings[p->id];
        s->params[i] = (trib_codec_param_t){
            .row = p->segment ? c->values->name : c->row->name,
            .key = p->key,
            .value = p->value,
            .fallback = s->plain[i].value,
            .range = s->range[i],
            .meaning = meaning ? meaning : ""};
    }
    s->sheet.params = s->params;
    s->sheet.n_params = n;
    return TRIB_OK;
}

/* ---- bytes ----------------------------------------------------------------------- */

/* By Box and Muller, from (0, 1]. */
static void fill_normal(float *x, size_t n)
{
    const struct trib_rng rng = {.seed = 1};
    for (size_t i = 0; i + 2 <= n; i += 2) {
        const struct trib_rng_block b = trib_rng_draw4(rng, i / 2);
        const double u = ((double)b.word[0] + 1) * 0x1p-32;
        const double angle = 2 * M_PI * (double)b.word[1] * 0x1p-32;
        x[i] = (float)(sqrt(-2 * log(u)) * cos(angle));
        x[i + 1] = (float)(sqrt(-2 * log(u)) * sin(angle));
    }
}

/* Once it has learned, and with what ranks share first; of a vector of LEARNED
 * elements, in chunks as plans have them. */
static void bytes_of_model(struct trib_codec_description *s, size_t chunk)
{
    const size_t n =
        trib_codec_cut(s->codec, LEARNED, chunk, chunk, trib_codec_sum_bound);
    const double most = (double)trib_codec_bound(s->codec, n) / (double)n;
    s->sheet.bytes = (double)trib_model_trained_bytes(s->codec, n) / (double)n;
    s->sheet.bytes_most = fmax(s->sheet.bytes, most);
}

static trib_status_t bytes_measure(struct trib_codec_description *s,
                                   struct trib_error *err)
{
    const struct trib_codec *c = s->codec;
    const size_t bound = trib_codec_bound(c, MEASURED);
    const size_t scratch = (trib_codec_scratch(c, MEASURED) + 127) / 64 * 64;
    float *x = malloc(MEASURED * sizeof *x);
    uint8_t *word = malloc(bound + 1);
    void *work = aligned_alloc(64, scratch);
    const bool room = x && word && work;
    if (room) {
        fill_normal(x, MEASURED);
        const struct trib_encode in = {.x = x, .n = MEASURED, .scratch = work};
        s->sheet.bytes = (double)trib_codec_encode(c, &in, word) / MEASURED;
        s->sheet.bytes_most = (double)bound / MEASURED;
    }
    free(x);
    free(word);
    free(work);
    return room ? TRIB_OK
                : trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for a codec's word");
}

/* ---- the whole ------------------------------------------------------------------- */

static void properties_fill(struct trib_codec_description *s)
{
    const struct trib_codec *c = s->codec;
    const struct trib_codec_info *info = trib_codec_info(c);
    const struct trib_codec_row_info *rows;
    trib_codec_sheet_t *sheet = &s->sheet;
    const size_t n = trib_codec_rows(&rows);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rows[i].name, c->row->name) == 0) {
            sheet->grammar = rows[i].grammar;
            sheet->detail = rows[i].detail;
        }
    }
    sheet->row = c->row->name;
    sheet->text = info->text;
    memcpy(sheet->stages, info->stages, sizeof sheet->stages);
    sheet->linear = (info->flags & TRIB_CODEC_LINEAR) != 0;
    sheet->unbiased = (info->flags & TRIB_CODEC_UNBIASED) != 0;
    sheet->sparse = (info->flags & TRIB_CODEC_SPARSE) != 0;
    sheet->feedback = (info->flags & TRIB_CODEC_FEEDBACK) != 0;
    sheet->learns = (info->flags & TRIB_CODEC_MODEL) != 0;
    sheet->delta = info->delta;
    sheet->shared = shared_of(c);
    sheet->paper = note_of(c->row)->paper;
    sheet->example = note_of(c->row)->example;
}

trib_status_t trib_codec_description_create(const char *text, size_t chunk,
                                            struct trib_error *err,
                                            struct trib_codec_description **out)
{
    struct trib_codec_description *s = calloc(1, sizeof *s);
    if (!s)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for the sheet of a codec");
    trib_status_t status = trib_codec_create(text, NULL, err, &s->codec);
    if (status == TRIB_OK) {
        properties_fill(s);
        status = params_fill(s, err);
    }
    if (status == TRIB_OK && s->codec->info.flags & TRIB_CODEC_MODEL)
        bytes_of_model(s, chunk);
    else if (status == TRIB_OK)
        status = bytes_measure(s, err);
    if (status != TRIB_OK) {
        trib_codec_description_destroy(s);
        return status;
    }
    *out = s;
    return TRIB_OK;
}

void trib_codec_description_destroy(struct trib_codec_description *sheet)
{
    if (!sheet)
        return;
    trib_codec_destroy(sheet->codec);
    free(sheet);
}

const trib_codec_sheet_t *trib_codec_description_get(
    const struct trib_codec_description *sheet)
{
    return &sheet->sheet;
}
