/* SPDX-License-Identifier: BSD-3-Clause */
/* Encoded pushes and pulls. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agg/store_client/rank_store.h"
#include "base/digest.h"
#include "base/dtype.h"
#include "base/minmax.h"
#include "compress/feedback_ops.h"
#include "compress/kernels/kernels.h"
#include "compress/vectors/vector_words.h"

static trib_status_t no_memory(struct trib_vector *v, const char *text)
{
    return trib_store_fail(v->store, TRIB_ERR_NO_MEMORY,
                           "vector %s: out of memory for codec %s", v->name, text);
}

/* Report a codec error with the vector's name. */
static trib_status_t refuse(struct trib_vector *v, const struct trib_error *err)
{
    return trib_store_fail(v->store, err->status, "vector %s: %s", v->name,
                           trib_error_text(err));
}

static void close_words(struct trib_part_words *w)
{
    trib_words_close(w->words);
    *w = (struct trib_part_words){NULL, 0};
}

static struct trib_part_words *words_of(struct trib_vector *v,
                                        const struct trib_vector_coder *c,
                                        struct trib_vector_part *p)
{
    assert(c == &v->push || c == &v->pull);
    return c == &v->push ? &p->push : &p->pull;
}

static void close_coder(struct trib_vector *v, struct trib_vector_coder *c)
{
    for (int i = 0; i < v->n_parts; i++)
        close_words(words_of(v, c, &v->parts[i]));
    trib_codec_destroy(c->codec);
    c->codec = NULL;
    c->text[0] = '\0';
}

/* Return true if codecs support the vector's dtype. */
static bool takes_codecs(const struct trib_vector *v)
{
    return v->dtype == TRIB_F32 || trib_dtype_is_narrow(v->dtype);
}

static trib_status_t check_codec(const struct trib_vector *v,
                                 struct trib_vector_coder *c, struct trib_error *err)
{
    struct trib_feedback_rule rule = {.ops = NULL};
    trib_status_t st;

    if (trib_codec_info(c->codec)->flags & TRIB_CODEC_IDENTITY)
        return TRIB_OK;
    if (!takes_codecs(v))
        return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                         "codecs require f32 or narrower floats, not %s",
                         trib_dtype_name(v->dtype));
    if (c == &v->pull)
        return trib_words_check_state(c->codec, err);
    st = trib_words_check(c->codec, err);
    if (st == TRIB_OK)
        st = trib_feedback_fit(&rule, c->codec, err);
    c->feeds_back = st == TRIB_OK && rule.ops->corrects;
    return st;
}

/* Create the codec of `text`, unless it is the current one. */
static trib_status_t choose(struct trib_vector *v, struct trib_vector_coder *c,
                            const char *text)
{
    struct trib_error err = {0};

    if (c->codec && strcmp(c->text, text) == 0)
        return TRIB_OK;
    close_coder(v, c);
    if (strlen(text) > TRIB_CONTROL_CODEC_MAX)
        return trib_store_fail(v->store, TRIB_ERR_CODEC,
                               "vector %s: codec \"%.40s...\" has more than %d "
                               "characters",
                               v->name, text, TRIB_CONTROL_CODEC_MAX);
    trib_status_t st = trib_codec_create(text, NULL, &err, &c->codec);
    if (st != TRIB_OK)
        c->codec = NULL;
    else
        st = check_codec(v, c, &err);
    if (st != TRIB_OK) {
        close_coder(v, c);
        return refuse(v, &err);
    }
    memcpy(c->text, text, strlen(text) + 1);
    return TRIB_OK;
}

/* Set up the codec of a call; *coded_out false: do not encode. */
static trib_status_t prepare(struct trib_vector *v, struct trib_vector_coder *c,
                             const char *text, bool *coded_out)
{
    *coded_out = false;
    if (!text)
        text = c->usual;
    if (!text[0])
        return TRIB_OK;
    const trib_status_t st = choose(v, c, text);
    *coded_out =
        st == TRIB_OK && !(trib_codec_info(c->codec)->flags & TRIB_CODEC_IDENTITY);
    return st;
}

/* Set up a part's encoder or decoder for `count` elements; false: out of memory. */
static bool have_words(struct trib_vector *v, const struct trib_vector_coder *c,
                       struct trib_vector_part *p, size_t count)
{
    struct trib_part_words *w = words_of(v, c, p);

    assert(c->codec && count > 0);
    if (w->words && w->count == count)
        return true;
    close_words(w);
    if (trib_words_open(c->codec, count, &w->words) != TRIB_OK)
        return false;
    w->count = count;
    return true;
}

static trib_status_t take_usual(struct trib_vector *v, struct trib_vector_coder *c,
                                const char *text)
{
    const trib_status_t st = text ? choose(v, c, text) : TRIB_OK;

    if (text && st == TRIB_OK)
        memcpy(c->usual, text, strlen(text) + 1);
    return st;
}

trib_status_t trib_vector_codecs(struct trib_vector *v, const trib_vector_desc_t *d)
{
    const trib_status_t st = take_usual(v, &v->push, d->push_codec);

    return st == TRIB_OK ? take_usual(v, &v->pull, d->pull_codec) : st;
}

/* Allocate `count` floats that live as long as the vector. */
static bool have_floats(float **floats, size_t count)
{
    if (!*floats)
        *floats = calloc(count, sizeof(**floats));
    return *floats;
}

/* Allocate all buffers to encode a push. */
static bool have_room(struct trib_vector *v)
{
    size_t bound = 0;
    bool all = true;

    for (int i = 0; i < v->n_parts; i++) {
        struct trib_vector_part *p = &v->parts[i];
        if (!have_words(v, &v->push, p, p->count))
            return false;
        bound += trib_words_bound(p->push.words);
    }
    if (bound > v->words_room) {
        free(v->words);
        v->words = malloc(bound);
        v->words_room = v->words ? bound : 0;
    }
    if (v->dtype != TRIB_F32)
        all = have_floats(&v->stage, v->count);
    if (v->push.feeds_back)
        all &= have_floats(&v->residual, v->count) && have_floats(&v->next, v->count);
    return all && v->words;
}

/* Encode a part; the result equals its section of the encoded whole vector. */
static size_t encode_part(struct trib_vector *v, struct trib_vector_part *p,
                          const struct trib_words_source *whole, size_t at)
{
    struct trib_words_source source = *whole;

    assert(p->push.words && p->push.count == p->count);
    source.x += p->first;
    if (source.residual)
        source.residual += p->first;
    source.key.index = p->first;
    p->coded_at = at;
    for (size_t i = 0; i < trib_words_chunks(p->push.words); i++)
        at += trib_words_encode(p->push.words, i, &source, v->words + at);
    p->coded_bytes = at - p->coded_at;
    return at;
}

trib_status_t trib_vector_encode(struct trib_store_request *r, const char *text)
{
    struct trib_vector *v = r->vector;
    struct trib_words_source source = {
        .total = v->count,
        .key = {.seed = trib_digest_seeded(v->name, strlen(v->name), v->store->seed),
                .step = (uint32_t)r->number,
                .stream = (uint32_t)v->store->rank}};
    size_t at = 0;
    bool coded;
    const trib_status_t st = prepare(v, &v->push, text, &coded);

    if (st != TRIB_OK || !coded)
        return st;
    if (!have_room(v))
        return no_memory(v, v->push.text);
    source.x = (const float *)(const void *)r->data;
    if (v->dtype != TRIB_F32) {
        v->store->kernels->to_f32[v->dtype](v->stage, r->data, v->count);
        source.x = v->stage;
    }
    if (v->push.feeds_back) {
        memcpy(v->next, v->residual, v->count * sizeof(*v->next));
        source.residual = v->next;
    }
    for (int i = 0; i < v->n_parts; i++)
        at = encode_part(v, &v->parts[i], &source, at);
    r->data = v->words;
    r->codec = trib_codec_info(v->push.codec)->text;
    return TRIB_OK;
}

void trib_vector_encoded(struct trib_vector *v)
{
    float *const before = v->residual;

    if (!v->push.feeds_back)
        return;
    v->residual = v->next;
    v->next = before;
}

/* Set up the decoder of each part of a pull; false: out of memory. */
static bool expect_parts(struct trib_store_request *r)
{
    struct trib_vector *v = r->vector;

    for (int i = 0; i < v->n_parts; i++) {
        struct trib_vector_part *p = &v->parts[i];
        const size_t first = trib_max(r->first, p->first);
        const size_t end = trib_min(r->first + r->count, p->first + p->count);
        if (first < end && !have_words(v, &v->pull, p, end - first))
            return false;
    }
    return v->dtype == TRIB_F32 || have_floats(&v->stage, v->count);
}

trib_status_t trib_vector_expect(struct trib_store_request *r, const char *text)
{
    struct trib_vector *v = r->vector;
    bool coded;
    const trib_status_t st = prepare(v, &v->pull, text, &coded);

    if (st != TRIB_OK || !coded)
        return st;
    if (!expect_parts(r))
        return no_memory(v, v->pull.text);
    r->decoded = v->dtype == TRIB_F32 ? (float *)(void *)r->out : v->stage;
    r->codec = trib_codec_info(v->pull.codec)->text;
    return TRIB_OK;
}

void trib_vector_narrow(const struct trib_store_request *r)
{
    const struct trib_vector *v = r->vector;

    if (r->decoded && v->dtype != TRIB_F32)
        v->store->kernels->from_f32[v->dtype](r->out, v->stage, r->count);
}

void trib_vector_codecs_free(struct trib_vector *v)
{
    close_coder(v, &v->push);
    close_coder(v, &v->pull);
    free(v->residual);
    free(v->next);
    free(v->stage);
    free(v->words);
}

/* Public --------------------------------------------------------------------------- */

static trib_status_t check_residual(struct trib_vector *v, size_t first, size_t count,
                                    const float *residual)
{
    trib_error_clear(&v->store->err);
    if (!residual || first > v->count || count > v->count - first)
        return trib_store_fail(
            v->store, TRIB_ERR_INVALID,
            "vector %s: residual range out of bounds: %zu elements from %zu, but it "
            "has %zu",
            v->name, count, first, v->count);
    if (!takes_codecs(v))
        return trib_store_fail(v->store, TRIB_ERR_UNSUPPORTED,
                               "vector %s: it has no residual, because codecs require "
                               "f32 or narrower floats, not %s",
                               v->name, trib_dtype_name(v->dtype));
    return TRIB_OK;
}

trib_status_t trib_store_residual_get(trib_vector_t *vector, size_t first, size_t count,
                                      float *residual)
{
    if (!vector)
        return TRIB_ERR_INVALID;
    const trib_status_t st = check_residual(vector, first, count, residual);
    for (size_t i = 0; i < count && st == TRIB_OK; i++)
        residual[i] = vector->residual ? vector->residual[first + i] : 0;
    return st;
}

trib_status_t trib_store_residual_set(trib_vector_t *vector, size_t first, size_t count,
                                      const float *residual)
{
    if (!vector)
        return TRIB_ERR_INVALID;
    const trib_status_t st = check_residual(vector, first, count, residual);
    if (st != TRIB_OK)
        return st;
    if (!have_floats(&vector->residual, vector->count))
        return no_memory(vector, "its residual");
    memcpy(vector->residual + first, residual, count * sizeof(*residual));
    return TRIB_OK;
}
