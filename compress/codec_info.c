/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Description of a codec for trib-info.
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

enum { VALUE_BYTES = 32, RANGE_BYTES = 96 };

struct trib_codec_description {
    struct trib_codec *codec;
    bool feedback_off; /* the names alone are invalid without ef=0 */
    trib_codec_sheet_t sheet;
    trib_codec_param_t params[TRIB_PARAM_TEXTS_MAX];
    struct trib_param_text given[TRIB_PARAM_TEXTS_MAX]; /* from the text */
    /* defaults, from the names alone */
    struct trib_param_text plain[TRIB_PARAM_TEXTS_MAX];
    char range[TRIB_PARAM_TEXTS_MAX][RANGE_BYTES];
};

/* Some codecs add only with certain parameters; without them nothing is shared. */
static const char *shared_of(const struct trib_codec *c)
{
    const struct trib_quantise *q = c->row->stages.quantise;
    const bool may_add = q->packed_ints || q->shared || q->bounds;
    const bool adds = !may_add || c->info.flags & TRIB_CODEC_AGREES;
    return adds && c->row->shared ? c->row->shared : "";
}

/* ---- parameters ------------------------------------------------------------------ */

/* Print the codec's names and, unless p is NULL, one parameter with this value. */
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

/* Return true if these names with this value of one parameter form a valid codec. */
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

/* Print the values that are valid with the defaults of all other parameters, up to
 * 8. */
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

/* Create the codec from the names alone. Codecs that select then default to error
 * feedback, which some value codecs do not support. */
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
        s->params[i] = (trib_codec_param_t){
            .row = p->segment ? c->values->name : c->row->name,
            .key = p->key,
            .value = p->value,
            .fallback = s->plain[i].value,
            .range = s->range[i],
            .meaning = p->meaning};
    }
    s->sheet.params = s->params;
    s->sheet.n_params = n;
    return TRIB_OK;
}

/* ---- bytes ----------------------------------------------------------------------- */

/* Box-Muller transform, with uniform numbers from (0, 1]. */
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

/* Size after training, including what ranks share first: for a vector of LEARNED
 * elements, in chunks as plans cut it. */
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
                : trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for an encoded chunk");
}

/* ---- whole description ----------------------------------------------------------- */

/* Return w of the codec; negative: unknown. */
static double error_of(const struct trib_codec *c)
{
    const struct trib_quantise *q = c->stages.quantise;
    const struct trib_select *select = c->stages.select;
    const struct trib_model_ops *model = c->stages.transform->model;
    if (model && !model->projects)
        return -1;
    if (model)
        return 1 + (c->coefficients ? error_of(c->coefficients) : 0);
    const double delta = trib_quantise_delta(c);
    const double w = q->error ? q->error(c) : delta > 0 ? 1 - 1 / delta : -1;
    if (select->error && select->unbiased(c))
        return w == 0 && select->error(c) > 0 ? select->error(c) : -1;
    return w;
}

static void properties_fill(struct trib_codec_description *s)
{
    const struct trib_codec *c = s->codec;
    const struct trib_codec_info *info = trib_codec_info(c);
    trib_codec_sheet_t *sheet = &s->sheet;
    sheet->grammar = c->row->grammar;
    sheet->detail = c->row->detail;
    sheet->row = c->row->name;
    sheet->text = info->text;
    memcpy(sheet->stages, info->stages, sizeof sheet->stages);
    sheet->linear = (info->flags & TRIB_CODEC_LINEAR) != 0;
    sheet->unbiased = (info->flags & TRIB_CODEC_UNBIASED) != 0;
    sheet->sparse = (info->flags & TRIB_CODEC_SPARSE) != 0;
    sheet->feedback = (info->flags & TRIB_CODEC_FEEDBACK) != 0;
    sheet->learns = (info->flags & TRIB_CODEC_MODEL) != 0;
    sheet->delta = info->delta;
    sheet->vote = (info->flags & TRIB_CODEC_VOTE) != 0;
    sheet->error = error_of(c);
    sheet->least = c->stages.select->least;
    if (c->stages.quantise->rounding)
        sheet->rounding = c->stages.quantise->rounding(c);
    sheet->shared = shared_of(c);
    sheet->paper = c->row->paper ? c->row->paper : "";
    sheet->example = c->row->texts[0];
}

trib_status_t trib_codec_description_create(const char *text, size_t chunk,
                                            struct trib_error *err,
                                            struct trib_codec_description **out)
{
    struct trib_codec_description *s = calloc(1, sizeof *s);
    if (!s)
        return trib_fail(err, TRIB_ERR_NO_MEMORY,
                         "no memory for the description of a codec");
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
