/* SPDX-License-Identifier: BSD-3-Clause */
/* Pushes and pulls that are encoded. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/dtype.h"
#include "compress/feedback_ops.h"
#include "compress/kernels/kernels.h"
#include "compress/vector_words.h"
#include "store/rank_store.h"

static trib_status_t no_memory(struct trib_vector *v, const char *text)
{
    return trib_store_fail(v->store, TRIB_ERR_NO_MEMORY,
                           "vector %s: no memory for codec %s", v->name, text);
}

/* Says what is wrong with a codec, and for which vector. */
static trib_status_t refuse(struct trib_vector *v, const struct trib_error *err)
{
    return trib_store_fail(v->store, err->status, "vector %s: %s", v->name,
                           trib_error_text(err));
}

static void close_coder(struct trib_vector_coder *c)
{
    trib_words_close(c->words);
    trib_codec_destroy(c->codec);
    c->words = NULL;
    c->codec = NULL;
    c->text[0] = '\0';
}

static trib_status_t check_codec(const struct trib_vector *v,
                                 struct trib_vector_coder *c, struct trib_error *err)
{
    struct trib_feedback_rule rule = {.ops = NULL};
    trib_status_t st;

    if (trib_codec_info(c->codec)->flags & TRIB_CODEC_IDENTITY)
        return TRIB_OK;
    if (v->dtype != TRIB_F32 && !trib_dtype_is_narrow(v->dtype))
        return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                         "codecs are for f32 and narrower floats, not for %s",
                         trib_dtype_name(v->dtype));
    if (c == &v->pull)
        return trib_words_check_state(c->codec, err);
    st = trib_words_check(c->codec, err);
    if (st == TRIB_OK)
        st = trib_feedback_fit(&rule, c->codec, err);
    c->feeds_back = st == TRIB_OK && rule.ops->corrects;
    return st;
}

/* Makes the codec of a text, unless the vector has it. */
static trib_status_t choose(struct trib_vector *v, struct trib_vector_coder *c,
                            const char *text)
{
    struct trib_error err = {0};

    if (c->codec && strcmp(c->text, text) == 0)
        return TRIB_OK;
    close_coder(c);
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
        close_coder(c);
        return refuse(v, &err);
    }
    memcpy(c->text, text, strlen(text) + 1);
    return TRIB_OK;
}

/* Has the coder of a call ready; false in *coded_out: elements go as they are. */
static trib_status_t prepare(struct trib_vector *v, struct trib_vector_coder *c,
                             const char *text, size_t count, bool *coded_out)
{
    *coded_out = false;
    if (!text)
        text = c->usual;
    if (!text[0])
        return TRIB_OK;
    const trib_status_t st = choose(v, c, text);
    if (st != TRIB_OK || trib_codec_info(c->codec)->flags & TRIB_CODEC_IDENTITY)
        return st;
    *coded_out = true;
    if (c->words && c->words_count == count)
        return TRIB_OK;
    trib_words_close(c->words);
    c->words_count = count;
    return trib_words_open(c->codec, count, &c->words) == TRIB_OK ? TRIB_OK
                                                                  : no_memory(v, text);
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

/* Makes room for `count` floats that stay until the vector is freed. */
static bool have_floats(float **floats, size_t count)
{
    if (!*floats)
        *floats = calloc(count, sizeof(**floats));
    return *floats;
}

/* Makes room for what the encoding of a push needs. */
static bool have_room(struct trib_vector *v)
{
    const size_t bound = trib_words_bound(v->push.words);
    bool all = true;

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

trib_status_t trib_vector_encode(struct trib_store_request *r, const char *text)
{
    struct trib_vector *v = r->vector;
    struct trib_words_source source = {
        .key = {.seed = trib_digest_seeded(v->name, strlen(v->name), v->store->seed),
                .step = (uint32_t)r->number,
                .stream = (uint32_t)v->store->rank}};
    bool coded;
    const trib_status_t st = prepare(v, &v->push, text, v->count, &coded);

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
    r->data_bytes = 0;
    for (size_t i = 0; i < trib_words_chunks(v->push.words); i++)
        r->data_bytes +=
            trib_words_encode(v->push.words, i, &source, v->words + r->data_bytes);
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

trib_status_t trib_vector_expect(struct trib_store_request *r, const char *text)
{
    struct trib_vector *v = r->vector;
    bool coded;
    const trib_status_t st = prepare(v, &v->pull, text, r->count, &coded);

    if (st != TRIB_OK || !coded)
        return st;
    if (v->dtype != TRIB_F32 && !have_floats(&v->stage, v->count))
        return no_memory(v, v->pull.text);
    r->decoded = v->dtype == TRIB_F32 ? (float *)(void *)r->out : v->stage;
    r->words = v->pull.words;
    r->codec = trib_codec_info(v->pull.codec)->text;
    return TRIB_OK;
}

void trib_vector_narrow(const struct trib_store_request *r)
{
    const struct trib_vector *v = r->vector;

    if (r->words && v->dtype != TRIB_F32)
        v->store->kernels->from_f32[v->dtype](r->out, v->stage, r->count);
}

void trib_vector_free(struct trib_vector *v)
{
    if (!v)
        return;
    close_coder(&v->push);
    close_coder(&v->pull);
    trib_sorted_pairs_free(&v->pairs);
    free(v->residual);
    free(v->next);
    free(v->stage);
    free(v->words);
    free(v);
}
