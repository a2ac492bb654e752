/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/store/store_form.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agg/store/store_walk.h"
#include "base/error.h"
#include "base/minmax.h"
#include "base/quota.h"
#include "compress/vectors/vector_words.h"

/* Memory --------------------------------------------------------------------------- */

static trib_status_t take_quota(struct trib_quota *quota, uint64_t more, uint64_t bytes,
                                uint32_t rank, struct trib_error *err)
{
    if (!trib_quota_take_mt(quota, more))
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_NO_RESOURCE,
                     "%" PRIu64 " bytes for a push or pull of rank %" PRIu32 " exceed "
                     "the remaining quota of the job, its user or the service",
                     bytes, rank);
}

static trib_status_t no_memory(uint64_t bytes, struct trib_error *err)
{
    return trib_fail(err, TRIB_ERR_NO_MEMORY,
                     "out of memory: cannot allocate %" PRIu64 " bytes on the host",
                     bytes);
}

trib_status_t trib_store_memory_grow(struct trib_store_memory *memory, uint64_t bytes,
                                     uint32_t rank, struct trib_error *err)
{
    if (bytes <= memory->room)
        return TRIB_OK;
    const uint64_t more = bytes - memory->room;
    const trib_status_t st = take_quota(memory->quota, more, bytes, rank, err);
    if (st != TRIB_OK)
        return st;
    uint8_t *grown = realloc(memory->bytes, bytes);
    if (!grown) {
        trib_quota_give_mt(memory->quota, more);
        return no_memory(bytes, err);
    }
    memory->bytes = grown;
    memory->room = bytes;
    return TRIB_OK;
}

void trib_store_memory_free(struct trib_store_memory *memory)
{
    trib_quota_give_mt(memory->quota, memory->room);
    free(memory->bytes);
    *memory = (struct trib_store_memory){.quota = memory->quota};
}

/* Life ----------------------------------------------------------------------------- */

static void close_words(struct trib_store_form *form)
{
    trib_quota_give_mt(form->indices.quota, form->words_memory);
    trib_words_close(form->words);
    form->words = NULL;
    form->words_count = form->words_memory = 0;
}

void trib_store_form_end(struct trib_store_form *form)
{
    form->sparse = form->coded = false;
}

void trib_store_form_free(struct trib_store_form *form)
{
    close_words(form);
    trib_codec_destroy(form->codec);
    form->codec = NULL;
    trib_store_memory_free(&form->indices);
}

static uint64_t elements(const struct trib_store_form *form, uint32_t vector)
{
    return trib_store_bytes(form->table, vector) /
           trib_store_element(form->table, vector);
}

static size_t index_bytes(const struct trib_store_form *form)
{
    return trib_control_index_bytes(elements(form, form->vector));
}

/* Return true while indices are missing. */
static bool is_incomplete(const struct trib_store_form *form)
{
    return form->sparse && form->done < form->count * index_bytes(form);
}

bool trib_store_form_fits(const struct trib_store_form *form, uint32_t vector)
{
    return !is_incomplete(form) &&
           ((!form->sparse && !form->coded) || form->vector == vector);
}

/* Indices -------------------------------------------------------------------------- */

const uint8_t *trib_store_form_indices(const struct trib_store_form *form)
{
    static const uint8_t none;

    if (!form->sparse)
        return NULL;
    return form->count ? form->indices.bytes : &none;
}

static trib_status_t begin_indices(struct trib_store_form *form,
                                   const struct trib_control_store_index *m,
                                   struct trib_error *refusal, struct trib_error *err)
{
    if (form->sparse || form->coded || m->offset != 0 ||
        m->vector >= trib_store_table_size(form->table))
        return trib_fail(err, TRIB_ERR_PROTOCOL,
                         "unexpected indices of vector %" PRIu32 " of %" PRIu32 ", "
                         "from byte %" PRIu64,
                         m->vector, trib_store_table_size(form->table), m->offset);
    form->sparse = form->rising = true;
    form->vector = m->vector;
    form->count = m->count;
    form->done = 0;
    if (!refusal->status)
        (void)trib_store_memory_grow(&form->indices, m->count * index_bytes(form),
                                     form->rank, refusal);
    return TRIB_OK;
}

/* Validate each index of a message, and whether indices ascend. */
static trib_status_t check_indices(struct trib_store_form *form,
                                   const struct trib_control_bytes *data,
                                   struct trib_error *err)
{
    const uint64_t count = elements(form, form->vector);
    const size_t bytes = index_bytes(form);
    bool first = form->done == 0;

    for (uint32_t at = 0; at < data->n; at += (uint32_t)bytes) {
        uint64_t index = 0;
        memcpy(&index, data->at + at, bytes);
        if (index >= count)
            return trib_fail(err, TRIB_ERR_PROTOCOL,
                             "index out of range: vector %" PRIu32 " has %" PRIu64
                             " elements, index is %" PRIu64,
                             form->vector, count, index);
        form->rising &= first || index > form->last;
        form->last = index;
        first = false;
    }
    return TRIB_OK;
}

trib_status_t trib_store_form_index(struct trib_store_form *form,
                                    const struct trib_control_store_index *m,
                                    struct trib_error *refusal, struct trib_error *err)
{
    trib_status_t st = TRIB_OK;

    if (!is_incomplete(form))
        st = begin_indices(form, m, refusal, err);
    if (st != TRIB_OK)
        return st;
    const uint64_t total = form->count * index_bytes(form);
    if (m->vector != form->vector || m->count != form->count ||
        m->offset != form->done || m->data.n > total - form->done ||
        m->data.n % index_bytes(form))
        return trib_fail(err, TRIB_ERR_PROTOCOL,
                         "%" PRIu32 " bytes at %" PRIu64 " do not continue %" PRIu64
                         " indices with %" PRIu64 " of %" PRIu64 " bytes received",
                         m->data.n, m->offset, form->count, form->done, total);
    st = check_indices(form, &m->data, err);
    if (st != TRIB_OK)
        return st;
    if (!refusal->status && m->data.n)
        memcpy(form->indices.bytes + form->done, m->data.at, m->data.n);
    form->done += m->data.n;
    return TRIB_OK;
}

/* Codecs --------------------------------------------------------------------------- */

/* Create the codec that `text` describes, unless it is the current one. */
static void take_codec(struct trib_store_form *form, const char *text,
                       struct trib_error *refusal)
{
    struct trib_codec *codec;

    if (form->codec && strcmp(form->text, text) == 0)
        return;
    if (trib_codec_create(text, NULL, refusal, &codec) != TRIB_OK)
        return;
    if (trib_words_check(codec, refusal) != TRIB_OK) {
        trib_codec_destroy(codec);
        return;
    }
    close_words(form);
    trib_codec_destroy(form->codec);
    form->codec = codec;
    memcpy(form->text, text, strlen(text) + 1);
}

trib_status_t trib_store_form_codec(struct trib_store_form *form,
                                    const struct trib_control_store_codec *m,
                                    struct trib_error *refusal, struct trib_error *err)
{
    if (form->sparse || form->coded || m->vector >= trib_store_table_size(form->table))
        return trib_fail(err, TRIB_ERR_PROTOCOL,
                         "unexpected codec for vector %" PRIu32 " of %" PRIu32,
                         m->vector, trib_store_table_size(form->table));
    form->coded = true;
    form->vector = m->vector;
    form->bytes = m->bytes;
    if (refusal->status)
        return TRIB_OK;
    if (!trib_store_floats(form->table, m->vector, 0))
        (void)trib_fail(refusal, TRIB_ERR_UNSUPPORTED,
                        "codecs require vectors of f32 or narrower floats");
    else
        take_codec(form, m->codec, refusal);
    return TRIB_OK;
}

trib_status_t trib_store_form_words(struct trib_store_form *form, uint64_t count,
                                    struct trib_error *err)
{
    assert(form->codec && count > 0);
    if (form->words && form->words_count == count)
        return TRIB_OK;
    close_words(form);
    const uint64_t bytes = trib_words_memory(form->codec, count);
    const trib_status_t st =
        take_quota(form->indices.quota, bytes, bytes, form->rank, err);
    if (st != TRIB_OK)
        return st;
    form->words_memory = bytes;
    if (trib_words_open(form->codec, count, &form->words) != TRIB_OK) {
        close_words(form);
        return no_memory(bytes, err);
    }
    form->words_count = count;
    return TRIB_OK;
}

/* Encode chunk by chunk, each while the walk locks it. */
static void encode_chunks(struct trib_store_form *form,
                          const struct trib_words_source *source,
                          struct trib_store_walk *walk, struct trib_store_coded *out)
{
    const size_t chunks = trib_words_chunks(form->words);
    const size_t chunk = trib_words_chunk(form->words);
    const uint64_t first = source->key.index;

    for (size_t i = 0; i < chunks; i++) {
        const uint64_t end = trib_min((i + 1) * chunk, form->words_count);
        trib_store_walk_to(walk, first + i * chunk, first + end);
        out->bytes +=
            trib_words_encode(form->words, i, source, out->memory->bytes + out->bytes);
        trib_store_walk_did(walk, end - i * chunk);
    }
}

trib_status_t trib_store_form_encode(struct trib_store_form *form,
                                     const struct trib_control_store_pull *pull,
                                     const struct trib_store_tick *tick,
                                     struct trib_store_coded *out,
                                     struct trib_error *err)
{
    struct trib_words_source source = {
        .x = trib_store_floats(form->table, pull->vector, pull->first),
        .key = {.seed = trib_store_seed(form->table, pull->vector),
                .stream = form->rank,
                .index = pull->first}};
    struct trib_store_walk walk;
    trib_status_t st = trib_words_check_state(form->codec, err);

    assert(source.x);
    out->bytes = 0;
    if (st == TRIB_OK)
        st = trib_store_form_words(form, pull->count, err);
    if (st == TRIB_OK)
        st = trib_store_memory_grow(out->memory, trib_words_bound(form->words),
                                    form->rank, err);
    if (st != TRIB_OK)
        return st;
    trib_store_walk_begin(form->table, pull->vector, tick, &walk);
    out->version = trib_store_version(form->table, pull->vector);
    source.key.step = (uint32_t)out->version;
    encode_chunks(form, &source, &walk, out);
    trib_store_walk_end(&walk);
    return TRIB_OK;
}
