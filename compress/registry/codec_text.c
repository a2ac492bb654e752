/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codec text: parse a text to a row and parameters, and print the canonical text.
 *
 *     text    = segment *("+" segment)
 *     segment = name [":" key "=" value *("," key "=" value)]
 *
 * The first name is that of a row. If this row selects or rotates, a second name may
 * follow: the row that quantises the values. A key belongs to the segment of the stage
 * that reads it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "compress/models/model_ops.h"
#include "compress/quantise/bounded.h"
#include "compress/transform/rotated.h"

enum { SEGMENTS_MAX = 4, NAMES_MAX = 64, POWER_OF_TWO = 1u << 31 };

struct param {
    const char *key;
    double lowest;
    double highest;
    double fallback;
    /* values are multiples of this; 0: any number; or POWER_OF_TWO */
    unsigned multiple;
    const char *const *names; /* NULL-terminated names of the values 0, 1, …; or NULL */
    const char *meaning;
};

/* Parameters are never negative. */
#define UNSET (-1.0)

/* names of the values 0, 1, … */
#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char *const switch_names[] = {"0", "1", NULL};

static const struct param params[TRIB_PARAM_COUNT] = {
#define PARAM(id, ...) [TRIB_PARAM_##id] = {__VA_ARGS__},
#include "compress/codec_params.def"
#undef PARAM
};

struct segment {
    char *name;
    char *params; /* NULL: none */
};

struct parsing {
    struct trib_codec *codec;
    struct trib_error *err;
    const char *text; /* as given, for messages */
    char copy[TRIB_CODEC_TEXT_MAX];
    struct segment segments[SEGMENTS_MAX];
    size_t n_segments;
    uint64_t given; /* TRIB_PARAM_BITs */
    char *inner; /* [TRIB_CODEC_TEXT_MAX] codec of a model's coefficients; "": none */
};

/* ---- segments and the row ------------------------------------------------------ */

static trib_status_t split(struct parsing *p)
{
    const size_t len = strlen(p->text);
    if (len >= sizeof p->copy)
        return trib_fail(p->err, TRIB_ERR_CODEC,
                         "codec \"%.40s…\" has %zu characters, the limit is %zu",
                         p->text, len, sizeof p->copy - 1);
    memcpy(p->copy, p->text, len + 1);
    char *rest = p->copy;
    while (rest) {
        if (p->n_segments == SEGMENTS_MAX)
            return trib_fail(p->err, TRIB_ERR_CODEC,
                             "codec \"%s\" has more than %d parts", p->text,
                             SEGMENTS_MAX);
        struct segment *s = &p->segments[p->n_segments++];
        char *plus = strchr(rest, '+');
        s->name = rest;
        rest = plus ? plus + 1 : NULL;
        if (plus)
            *plus = '\0';
        s->params = strchr(s->name, ':');
        if (s->params)
            *s->params++ = '\0';
    }
    return TRIB_OK;
}

static const struct trib_codec_row *row_find(const char *name)
{
    for (size_t i = 0; i < trib_codecs_count; i++)
        if (strcmp(trib_codecs[i].name, name) == 0)
            return &trib_codecs[i];
    return NULL;
}

static void join_names(char *out, size_t bytes, const char *const *names, size_t n,
                       const char *between)
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < n && len < bytes; i++)
        len += (size_t)snprintf(out + len, bytes - len, "%s%s", i ? between : "",
                                names[i]);
}

/* True for rows that may follow a "+". */
static bool quantises(const struct trib_codec_row *row)
{
    return !row->stages.select->sparse &&
           row->stages.transform == &trib_transform_none &&
           !row->stages.quantise->exact && !row->stages.quantise->bounds &&
           !(row->flags & (TRIB_CODEC_IDENTITY | TRIB_CODEC_VOTE));
}

/* Return the row with the same quantiser, or NULL. */
static const struct trib_codec_row *row_of_values(const struct trib_codec_row *row)
{
    for (size_t i = 0; i < trib_codecs_count; i++)
        if (quantises(&trib_codecs[i]) &&
            trib_codecs[i].stages.quantise == row->stages.quantise)
            return &trib_codecs[i];
    return NULL;
}

/* True for rows that may precede a "+": they select f32, or rotate any values. */
static bool takes_values(const struct trib_codec_row *row)
{
    if (row->stages.transform->rotates)
        return row_of_values(row);
    return row->stages.select->sparse && row->stages.quantise == &trib_quantise_f32;
}

static bool any_row(const struct trib_codec_row *row)
{
    (void)row;
    return true;
}

static size_t names_of(bool (*wanted)(const struct trib_codec_row *row),
                       const char *names_out[NAMES_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < trib_codecs_count; i++)
        if (wanted(&trib_codecs[i]))
            names_out[n++] = trib_codecs[i].name;
    return n;
}

static trib_status_t fail_name(struct parsing *p, const char *name,
                               bool (*wanted)(const struct trib_codec_row *row))
{
    const char *names[NAMES_MAX];
    char all[512];
    const size_t n = names_of(wanted, names);
    const char *nearest = name[0] ? trib_text_nearest(name, names, n) : NULL;
    if (nearest)
        return trib_fail(p->err, TRIB_ERR_CODEC,
                         "codec \"%s\": unknown codec \"%s\"; did you mean \"%s\"?",
                         p->text, name, nearest);
    join_names(all, sizeof all, names, n, ", ");
    return trib_fail(p->err, TRIB_ERR_CODEC,
                     "codec \"%s\": unknown codec \"%s\"; use one of %s", p->text, name,
                     all);
}

/* True for rows whose encoded chunks add once the ranks share scales. */
static bool adds(const struct trib_codec_row *row)
{
    return quantises(row) &&
           (row->stages.quantise->packed_ints || row->stages.quantise->shared);
}

static bool is_model(const struct trib_codec_row *row)
{
    return row->stages.transform->model;
}

/* Find the codec after the "+" of a model: it encodes the coefficients. */
static trib_status_t find_coefficients(struct parsing *p)
{
    const struct segment *s = &p->segments[1];
    const struct trib_codec_row *row = row_find(s->name);
    char all[512];
    const char *names[NAMES_MAX];
    if (!row)
        return fail_name(p, s->name, adds);
    join_names(all, sizeof all, names, names_of(adds, names), ", ");
    if (!adds(row))
        return trib_fail(
            p->err, TRIB_ERR_CODEC,
            "codec \"%s\": encodings of \"%s\" do not add; after \"+\" use one of "
            "%s",
            p->text, s->name, all);
    const bool named = s->params && strstr(s->params, "shared=");
    const bool share = row->stages.quantise->shared && !named;
    snprintf(p->inner, TRIB_CODEC_TEXT_MAX, "%s%s%s%s%s", s->name,
             s->params || share ? ":" : "", s->params ? s->params : "",
             s->params && share ? "," : "", share ? "shared=1" : "");
    return TRIB_OK;
}

/* Return why a row cannot follow the "+" of the first. */
static const char *why_no_values(const struct trib_codec_row *first,
                                 const struct trib_codec_row *row)
{
    if (first->stages.transform->rotates && row->stages.transform->rotates)
        return "already rotates";
    if (first->stages.transform->rotates && row->flags & TRIB_CODEC_VOTE)
        return "is a vote, which cannot be rotated back";
    return "does not encode values";
}

static trib_status_t find_values(struct parsing *p)
{
    const struct trib_codec_row *first = p->codec->row;
    if (is_model(first) && first->stages.transform->model->quantised &&
        p->n_segments == 2)
        return find_coefficients(p);
    const char *name = p->segments[1].name, *names[NAMES_MAX];
    char all[512];
    const struct trib_codec_row *row = row_find(name);
    if (!takes_values(first) || (p->n_segments > 2 && (!row || quantises(row))))
        return trib_fail(
            p->err, TRIB_ERR_CODEC,
            "codec \"%s\": nothing can follow \"%s\", which encodes the values",
            p->text, takes_values(first) ? name : p->segments[0].name);
    p->codec->values = row;
    if (!row)
        return fail_name(p, name, quantises);
    if (quantises(row))
        return TRIB_OK;
    join_names(all, sizeof all, names, names_of(quantises, names), ", ");
    return trib_fail(p->err, TRIB_ERR_CODEC,
                     "codec \"%s\": \"%s\" %s; after \"+\" use one of %s", p->text,
                     name, why_no_values(first, row), all);
}

static trib_status_t find_rows(struct parsing *p)
{
    struct trib_codec *c = p->codec;
    c->row = row_find(p->segments[0].name);
    if (!c->row)
        return fail_name(p, p->segments[0].name, any_row);
    const trib_status_t status = p->n_segments > 1 ? find_values(p) : TRIB_OK;
    if (status != TRIB_OK)
        return status;
    c->stages = c->row->stages;
    if (c->stages.transform->rotates && p->n_segments == 1)
        c->values = row_of_values(c->row);
    if (c->values)
        c->stages.quantise = c->values->stages.quantise;
    if (c->values && c->stages.transform->rotates)
        c->stages.pack = c->values->stages.pack;
    return TRIB_OK;
}

/* Parameters allowed in a segment. */
static uint64_t segment_params(const struct trib_codec *c, size_t segment)
{
    if (c->row->flags & TRIB_CODEC_IDENTITY)
        return 0;
    if (segment == 1 && c->stages.select->sparse) /* positions differ between ranks */
        return c->stages.quantise->params &
               ~(TRIB_PARAM_BIT(SHARED) | TRIB_PARAM_BIT(RESULT));
    if (segment == 1)
        return c->stages.quantise->params;
    const struct trib_model_ops *model = c->stages.transform->model;
    const uint64_t own = model       ? model->params
                         : c->values ? 0
                                     : c->stages.quantise->params;
    return c->stages.transform->params | c->stages.select->params | TRIB_PARAM_BIT(EF) |
           own;
}

/* ---- values --------------------------------------------------------------------- */

/* The limits of a parameter for this codec. Buckets of rotated values are no larger
 * than a rotated block, and only sparse codecs have result=selected. */
static struct param param_of(const struct trib_codec *c, int id)
{
    static const char *const dense_results[] = {"sums", "requantised", NULL};
    struct param p = params[id];
    if (id == TRIB_PARAM_BUCKET && c->stages.transform->rotates)
        p.highest = TRIB_ROTATED_WINDOW;
    if (id == TRIB_PARAM_BUCKET && c->stages.quantise->bounds)
        p.highest = TRIB_BOUNDED_BUCKET_MAX;
    if (id == TRIB_PARAM_RESULT && !c->stages.select->sparse)
        p.names = dense_results;
    return p;
}

static trib_status_t fail_value(struct parsing *p, const struct param *param,
                                const char *value)
{
    char names[64];
    if (param->names) {
        size_t n = 0;
        while (param->names[n])
            n++;
        join_names(names, sizeof names, param->names, n, " or ");
        return trib_fail(p->err, TRIB_ERR_CODEC,
                         "codec \"%s\": %s is \"%s\", it must be %s", p->text,
                         param->key, value, names);
    }
    if (param->multiple == POWER_OF_TWO)
        return trib_fail(
            p->err, TRIB_ERR_CODEC,
            "codec \"%s\": %s is \"%s\", it must be a power of two from %.10g "
            "to %.10g",
            p->text, param->key, value, param->lowest, param->highest);
    if (param->multiple > 1)
        return trib_fail(
            p->err, TRIB_ERR_CODEC,
            "codec \"%s\": %s is \"%s\", it must be a multiple of %u from %.10g "
            "to %.10g",
            p->text, param->key, value, param->multiple, param->lowest, param->highest);
    return trib_fail(
        p->err, TRIB_ERR_CODEC,
        "codec \"%s\": %s is \"%s\", it must be a %snumber from %.10g to %.10g",
        p->text, param->key, value, param->multiple ? "whole " : "", param->lowest,
        param->highest);
}

static bool value_parse(const struct param *param, const char *value, double *out)
{
    if (param->names) {
        for (int i = 0; param->names[i]; i++) {
            if (strcmp(param->names[i], value) == 0) {
                *out = i;
                return true;
            }
        }
        return false;
    }
    double v;
    if (!trib_number_read(value, &v) || !(v >= param->lowest) || !(v <= param->highest))
        return false;
    if (param->multiple == POWER_OF_TWO
            ? exp2(round(log2(v))) != v
            : param->multiple && fmod(v, param->multiple) != 0.0)
        return false;
    *out = v;
    return true;
}

static trib_status_t fail_key(struct parsing *p, const char *key, uint64_t allowed,
                              const char *name)
{
    const char *keys[TRIB_PARAM_COUNT];
    char all[128];
    size_t n = 0;
    for (int id = 0; id < TRIB_PARAM_COUNT; id++)
        if (allowed >> id & 1u)
            keys[n++] = params[id].key;
    if (n == 0)
        return trib_fail(p->err, TRIB_ERR_CODEC,
                         "codec \"%s\": \"%s\" has no parameters", p->text, name);
    const char *nearest = trib_text_nearest(key, keys, n);
    if (nearest)
        return trib_fail(p->err, TRIB_ERR_CODEC,
                         "codec \"%s\": \"%s\" has no parameter \"%s\"; did you mean "
                         "\"%s\"?",
                         p->text, name, key, nearest);
    join_names(all, sizeof all, keys, n, ", ");
    return trib_fail(p->err, TRIB_ERR_CODEC,
                     "codec \"%s\": \"%s\" has no parameter \"%s\", only %s", p->text,
                     name, key, all);
}

static trib_status_t parse_param(struct parsing *p, char *key, uint64_t allowed,
                                 const char *name)
{
    char *value = strchr(key, '=');
    int id = 0;
    if (value)
        *value++ = '\0';
    while (id < TRIB_PARAM_COUNT &&
           !(allowed >> id & 1u && strcmp(params[id].key, key) == 0))
        id++;
    if (id == TRIB_PARAM_COUNT)
        return fail_key(p, key, allowed, name);
    if (!value)
        return trib_fail(p->err, TRIB_ERR_CODEC, "codec \"%s\": %s has no value",
                         p->text, key);
    if (p->given >> id & 1u)
        return trib_fail(p->err, TRIB_ERR_CODEC, "codec \"%s\": %s is given twice",
                         p->text, key);
    p->given |= UINT64_C(1) << id;
    const struct param param = param_of(p->codec, id);
    if (!value_parse(&param, value, &p->codec->param[id]))
        return fail_value(p, &param, value);
    return TRIB_OK;
}

static trib_status_t parse_segment(struct parsing *p, size_t segment)
{
    const struct segment *s = &p->segments[segment];
    const uint64_t allowed = segment_params(p->codec, segment);
    char *at = s->params;
    while (at) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma++ = '\0';
        const trib_status_t status = parse_param(p, at, allowed, s->name);
        if (status != TRIB_OK)
            return status;
        at = comma;
    }
    return TRIB_OK;
}

/* Default of ef=, from all other parameters. Error feedback needs a contraction. */
static bool feeds_back(const struct trib_codec *c)
{
    const bool values = c->values && (c->values->flags & TRIB_CODEC_FEEDBACK);
    if (c->param[TRIB_PARAM_UNBIASED] > 0)
        return false;
    if (c->stages.select == &trib_select_blocks && c->param[TRIB_PARAM_RATIO] < 1)
        return true;
    return values || (c->row->flags & TRIB_CODEC_FEEDBACK);
}

static void set_defaults(struct trib_codec *c)
{
    const struct trib_model_ops *model = c->stages.transform->model;

    for (int id = 0; id < TRIB_PARAM_COUNT; id++)
        c->param[id] = params[id].fallback;
    if (c->stages.quantise->nearest)
        c->param[TRIB_PARAM_ROUND] = TRIB_ROUND_NEAREST;
    c->param[TRIB_PARAM_RATIO] = model ? model->ratio : c->stages.select->ratio;
    if (model && model->train > 0)
        c->param[TRIB_PARAM_TRAIN] = model->train;
}

static trib_status_t parse(struct parsing *p)
{
    trib_status_t status = split(p);
    if (status == TRIB_OK)
        status = find_rows(p);
    if (status != TRIB_OK)
        return status;
    set_defaults(p->codec);
    const size_t own = p->inner[0] ? 1 : p->n_segments;
    for (size_t i = 0; i < own && status == TRIB_OK; i++)
        status = parse_segment(p, i);
    if (status != TRIB_OK)
        return status;
    const uint64_t both = TRIB_PARAM_BIT(RATIO) | TRIB_PARAM_BIT(K);
    if ((p->given & both) == both)
        return trib_fail(p->err, TRIB_ERR_CODEC,
                         "codec \"%s\": give ratio or k, not both", p->text);
    const uint64_t bounds = TRIB_PARAM_BIT(ABS) | TRIB_PARAM_BIT(REL);
    if ((p->given & bounds) == bounds)
        return trib_fail(p->err, TRIB_ERR_CODEC,
                         "codec \"%s\": give abs or rel, not both", p->text);
    if (p->given & TRIB_PARAM_BIT(ABS))
        p->codec->param[TRIB_PARAM_REL] = UNSET;
    if (p->given & TRIB_PARAM_BIT(K))
        p->codec->param[TRIB_PARAM_RATIO] = UNSET;
    if (!(p->given & TRIB_PARAM_BIT(EF)))
        p->codec->param[TRIB_PARAM_EF] = feeds_back(p->codec);
    return TRIB_OK;
}

trib_status_t trib_codec_parse(struct trib_codec *c, const char *text,
                               struct trib_error *err,
                               char inner_out[TRIB_CODEC_TEXT_MAX])
{
    struct parsing p = {.codec = c, .err = err, .text = text, .inner = inner_out};
    locale_t plain;
    inner_out[0] = '\0';
    if (!text)
        return trib_fail(err, TRIB_ERR_CODEC,
                         "the codec text is NULL; use \"none\" for no codec");
    const locale_t before = trib_number_enter(&plain);
    const trib_status_t status = parse(&p);
    trib_number_leave(plain, before);
    return status;
}

/* ---- canonical text -------------------------------------------------------------- */

static void value_print(const struct param *param, double v, char *out, size_t bytes)
{
    if (param->names && v >= 0)
        snprintf(out, bytes, "%s", param->names[(int)v]);
    else if (v >= 0)
        trib_number_print(out, bytes, v);
    else
        out[0] = '\0';
}

static size_t segment_print(const struct trib_codec *c, uint64_t shown, char *out,
                            size_t bytes)
{
    size_t len = 0;
    for (int id = 0; id < TRIB_PARAM_COUNT; id++) {
        char value[32];
        if (!(shown >> id & 1u) || c->param[id] < 0)
            continue;
        value_print(&params[id], c->param[id], value, sizeof value);
        len += (size_t)snprintf(out + len, bytes - len, "%c%s=%s", len ? ',' : ':',
                                params[id].key, value);
    }
    return len;
}

void trib_codec_print(struct trib_codec *c)
{
    const char *const names[] = {c->row->name, c->values ? c->values->name : NULL};
    const size_t bytes = sizeof c->text;
    locale_t plain;
    const locale_t before = trib_number_enter(&plain);
    size_t len = 0;
    for (size_t i = 0; i < 2 && names[i]; i++) {
        len += (size_t)snprintf(c->text + len, bytes - len, "%s%s", i ? "+" : "",
                                names[i]);
        len += segment_print(c, segment_params(c, i), c->text + len, bytes - len);
    }
    if (c->coefficients)
        snprintf(c->text + len, bytes - len, "+%s", c->coefficients->text);
    trib_number_leave(plain, before);
}

/* ---- parameters for trib-info ---------------------------------------------------- */

static void range_print(const struct param *param, char *out, size_t bytes)
{
    char lowest[32], highest[32];
    trib_number_print(lowest, sizeof lowest, param->lowest);
    trib_number_print(highest, sizeof highest, param->highest);
    snprintf(out, bytes, "%s to %s", lowest, highest);
    if (param->multiple == POWER_OF_TWO)
        trib_text_append(out, bytes, ", a power of two");
    else if (param->multiple > 1)
        trib_text_append(out, bytes, ", a multiple of %u", param->multiple);
    else if (param->multiple == 1)
        trib_text_append(out, bytes, ", whole");
}

size_t trib_codec_params(const struct trib_codec *c,
                         struct trib_param_text params_out[TRIB_PARAM_TEXTS_MAX])
{
    size_t n = 0;
    locale_t plain;
    const locale_t before = trib_number_enter(&plain);
    for (size_t segment = 0; segment < (c->values ? 2 : 1); segment++) {
        const uint64_t allowed = segment_params(c, segment);
        for (int id = 0; id < TRIB_PARAM_COUNT; id++) {
            if (!(allowed >> id & 1u))
                continue;
            const struct param param = param_of(c, id);
            struct trib_param_text *p = &params_out[n++];
            *p = (struct trib_param_text){.segment = segment,
                                          .id = (enum trib_param_id)id,
                                          .key = param.key,
                                          .meaning = param.meaning,
                                          .names = param.names};
            /* 0 and 1 are shown as two values, not as a range */
            if (!p->names && params[id].multiple == 1 && params[id].highest == 1)
                p->names = switch_names;
            value_print(&param, c->param[id], p->value, sizeof p->value);
            range_print(&param, p->range, sizeof p->range);
        }
    }
    trib_number_leave(plain, before);
    return n;
}
