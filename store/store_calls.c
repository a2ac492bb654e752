/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pushes and pulls. A session that ends meanwhile is made anew, and the request is made
 * again: tribd knows a push that it has applied by its number.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/sized.h"
#include "compress/vector_words.h"
#include "store/rank_store.h"

enum {
    TRIES = 8, /* of one request, over sessions that end */
    DISK_MS = 60000, /* a disk that is slower than this and the next is a failure */
    DISK_BYTES_A_MS = 10000,
    WAIT_MOST = 40000000,
};

static size_t vector_bytes(const struct trib_vector *v)
{
    return v->count * trib_dtype_size(v->dtype);
}

/* Bytes of the next message of `bytes` bytes, of which `at` have gone. */
static uint32_t piece(size_t bytes, size_t at)
{
    return (uint32_t)trib_min(bytes - at, TRIB_CONTROL_STORE_BYTES);
}

/* A request without elements has a message, too. */
static trib_status_t send_push(const struct trib_store_request *r)
{
    trib_status_t st = TRIB_OK;
    size_t at = 0;

    do {
        const uint32_t n = piece(r->data_bytes, at);
        const struct trib_control m = {.kind = TRIB_CONTROL_STORE_PUSH,
                                       .store_push = {.vector = r->vector->number,
                                                      .purpose = r->purpose,
                                                      .number = r->number,
                                                      .rate = r->rate,
                                                      .offset = at,
                                                      .data = {r->data + at, n}}};
        st = trib_store_send(r->vector->store, r->vector->shard, &m);
        at += n;
    } while (at < r->data_bytes && st == TRIB_OK);
    return st;
}

static trib_status_t send_indices(const struct trib_store_request *r)
{
    const size_t each = trib_control_index_bytes(r->vector->count);
    const size_t bytes = r->n_indices * each;
    uint8_t data[TRIB_CONTROL_STORE_BYTES];
    trib_status_t st = TRIB_OK;
    size_t at = 0;

    do {
        const uint32_t n = piece(bytes, at);
        for (size_t i = 0; i < n / each; i++)
            memcpy(data + i * each, &r->indices[at / each + i], each);
        const struct trib_control m = {.kind = TRIB_CONTROL_STORE_INDEX,
                                       .store_index = {.vector = r->vector->number,
                                                       .count = r->n_indices,
                                                       .offset = at,
                                                       .data = {data, n}}};
        st = trib_store_send(r->vector->store, r->vector->shard, &m);
        at += n;
    } while (at < bytes && st == TRIB_OK);
    return st;
}

static trib_status_t send_codec(const struct trib_store_request *r)
{
    struct trib_control m = {.kind = TRIB_CONTROL_STORE_CODEC,
                             .store_codec = {.vector = r->vector->number,
                                             .bytes = r->purpose ? r->data_bytes : 0}};

    snprintf(m.store_codec.codec, sizeof(m.store_codec.codec), "%s", r->codec);
    return trib_store_send(r->vector->store, r->vector->shard, &m);
}

static trib_status_t send_pull(const struct trib_store_request *r)
{
    const struct trib_control m = {.kind = TRIB_CONTROL_STORE_PULL,
                                   .store_pull = {r->vector->number, r->first, r->count,
                                                  r->at_least, r->bound, r->wait_ms}};

    return trib_store_send(r->vector->store, r->vector->shard, &m);
}

static trib_status_t send_snapshot(const struct trib_store_request *r)
{
    const struct trib_control m = {.kind = TRIB_CONTROL_STORE_SNAPSHOT,
                                   .store_snapshot = {r->vector->number, r->order}};

    return trib_store_send(r->vector->store, r->vector->shard, &m);
}

static trib_status_t send_request(const struct trib_store_request *r)
{
    trib_status_t st = TRIB_OK;

    if (r->order)
        return send_snapshot(r);
    if (r->indices)
        st = send_indices(r);
    else if (r->codec)
        st = send_codec(r);
    if (st != TRIB_OK)
        return st;
    return r->purpose ? send_push(r) : send_pull(r);
}

static trib_status_t not_due(const struct trib_store_request *r, const char *what)
{
    struct trib_store *store = r->vector->store;

    (void)trib_session_end(store->link->sessions[r->vector->shard], TRIB_ERR_PROTOCOL,
                           "%s of vector %s are not due here", what, r->vector->name);
    return trib_store_fail(store, TRIB_ERR_PROTOCOL, "%s",
                           trib_error_text(&store->link->err));
}

/* Takes elements of an answer, of which `done` bytes have come; false: they are not
 * due. */
static bool take_data(const struct trib_store_request *r,
                      const struct trib_control_store_data *d, size_t done,
                      trib_status_t *words)
{
    if (d->offset != done)
        return false;
    if (r->words) {
        *words = trib_words_take(r->words, d->data.at, d->data.n, r->decoded);
        return *words >= TRIB_OK;
    }
    assert(done <= r->out_bytes);
    if (d->data.n > r->out_bytes - done)
        return false;
    memcpy(r->out + done, d->data.at, d->data.n);
    return true;
}

/* Takes the answer up to its end. */
static trib_status_t hear_answer(struct trib_store_request *r)
{
    struct trib_store *store = r->vector->store;
    trib_status_t st, words = TRIB_INPROGRESS;
    struct trib_control m;
    size_t done = 0;

    if (r->words)
        trib_words_begin(r->words);
    while ((st = trib_store_hear(store, r->vector->shard, TRIB_CONTROL_STORE_DATA,
                                 TRIB_CONTROL_STORE_DONE, &m)) == TRIB_OK) {
        if (m.kind == TRIB_CONTROL_STORE_DONE)
            break;
        if (!take_data(r, &m.store_data, done, &words))
            return not_due(r, "elements");
        done += m.store_data.data.n;
    }
    if (st != TRIB_OK)
        return st;
    if (r->words ? words != TRIB_OK : done != r->out_bytes)
        return not_due(r, "so few elements");
    trib_vector_narrow(r);
    r->version = m.store_state.version;
    if (r->version > r->vector->seen)
        r->vector->seen = r->version;
    r->vector->saved = m.store_state.saved;
    return TRIB_OK;
}

/* Adds to the sentence what the rank knows of a vector that is lost. */
static trib_status_t say_seen(const struct trib_vector *v, trib_status_t st)
{
    char why[sizeof(v->store->err.text)];

    char saved[64] = "no snapshot of it is known here";

    snprintf(why, sizeof(why), "%.300s", trib_error_text(&v->store->err));
    if (v->saved)
        snprintf(saved, sizeof(saved), "version %" PRIu64 " is safe in a snapshot",
                 v->saved - 1);
    return trib_store_fail(v->store, st,
                           "%s; the newest version of vector %s that this rank has "
                           "heard of is %" PRIu64 ", and %s: trib_store_restore",
                           why, v->name, v->seen, saved);
}

/* A request is made again over a new session if its own has ended before the answer. */
static trib_status_t make_request(struct trib_store_request *r)
{
    struct trib_store *store = r->vector->store;
    const int shard = r->vector->shard;
    trib_status_t st = TRIB_OK;

    trib_error_clear(&store->err);
    store->wait_ms = r->wait_ms;
    if (r->vector->lost) {
        (void)trib_store_fail(store, TRIB_ERR_PEER_LOST,
                              "tribd at %s was lost, and is there again without it",
                              store->job.addresses[shard]);
        return say_seen(r->vector, TRIB_ERR_PEER_LOST);
    }
    for (int i = 0; i < TRIES; i++) {
        if (trib_store_shard_is_lost(store, shard)) {
            trib_error_clear(&store->err);
            st = trib_store_shard_again(store, shard);
            if (st != TRIB_OK)
                return say_seen(r->vector, st);
        }
        st = send_request(r);
        if (st == TRIB_OK)
            st = hear_answer(r);
        if (st == TRIB_OK || st == TRIB_ERR_PROTOCOL || st == TRIB_ERR_ABORTED ||
            !trib_store_shard_is_lost(store, shard))
            return st;
    }
    return st;
}

trib_status_t trib_vector_open(struct trib_vector *v)
{
    struct trib_control m = {.kind = TRIB_CONTROL_STORE_OPEN,
                             .store_open = {.dtype = v->dtype, .count = v->count}};

    snprintf(m.store_open.name, sizeof(m.store_open.name), "%s", v->name);
    snprintf(m.store_open.rule, sizeof(m.store_open.rule), "%s", v->rule);
    trib_status_t st = TRIB_OK;
    if (trib_store_shard_is_lost(v->store, v->shard))
        st = trib_store_shard_again(v->store, v->shard);
    if (st == TRIB_OK)
        st = trib_store_send(v->store, v->shard, &m);
    if (st == TRIB_OK)
        st = trib_store_hear(v->store, v->shard, TRIB_CONTROL_STORE_VECTOR,
                             TRIB_CONTROL_STORE_VECTOR, &m);
    if (st == TRIB_OK) {
        v->number = m.store_state.vector;
        v->seen = m.store_state.version;
        v->saved = m.store_state.saved;
        v->pushed = m.store_state.pushes;
    }
    return st;
}

trib_status_t trib_vector_snapshot(struct trib_vector *v,
                                   enum trib_control_snapshot order,
                                   uint64_t *version_out)
{
    const uint64_t ms = vector_bytes(v) / DISK_BYTES_A_MS;
    struct trib_store_request r = {
        .vector = v,
        .order = order,
        .wait_ms = DISK_MS + (uint32_t)(ms < WAIT_MOST ? ms : WAIT_MOST)};

    const trib_status_t st = make_request(&r);
    if (st == TRIB_OK && version_out)
        *version_out = r.version;
    return st;
}

trib_status_t trib_vector_replace(struct trib_vector *v, const void *data,
                                  uint64_t version)
{
    struct trib_store_request r = {.vector = v,
                                   .purpose = TRIB_CONTROL_PUSH_RESTORE,
                                   .number = version + 1,
                                   .data = data,
                                   .data_bytes = vector_bytes(v)};

    return make_request(&r);
}

trib_status_t trib_vector_set(struct trib_vector *v, const void *data)
{
    struct trib_store_request r = {.vector = v,
                                   .purpose = TRIB_CONTROL_PUSH_SET,
                                   .number = 1,
                                   .data = data,
                                   .data_bytes = vector_bytes(v)};

    return make_request(&r);
}

/* True if the two arrays of so many bytes share any. */
static bool overlap(const void *a, const void *b, size_t bytes)
{
    return b && (uintptr_t)a < (uintptr_t)b + bytes &&
           (uintptr_t)b < (uintptr_t)a + bytes;
}

/* A result goes elsewhere first if it would overwrite what may have to be sent again,
 * or if the pairs that were given are not those that were sent. */
static trib_status_t push(struct trib_store_request *r,
                          const struct trib_pairs_input *given)
{
    void *const result = r->out;
    const bool moved = given->indices != r->indices;
    const bool shared = moved || overlap(r->data, result, r->out_bytes);

    if (!result || !shared)
        return make_request(r);
    if (moved)
        r->out_bytes = r->n_indices * trib_dtype_size(r->vector->dtype);
    r->out = malloc(r->out_bytes + 1);
    if (!r->out)
        return trib_store_fail(r->vector->store, TRIB_ERR_NO_MEMORY,
                               "vector %s: no memory for a result", r->vector->name);
    const trib_status_t st = make_request(r);
    if (st == TRIB_OK && moved)
        trib_vector_spread(r, given, r->out, result);
    else if (st == TRIB_OK)
        memcpy(result, r->out, r->out_bytes);
    free(r->out);
    return st;
}

/* Makes of the caller's elements what goes to tribd. */
static trib_status_t make_data(struct trib_store_request *r, const trib_push_opts_t *o,
                               const struct trib_pairs_input *given)
{
    struct trib_vector *v = r->vector;

    if (!o->indices)
        return trib_vector_encode(r, o->codec);
    if (o->codec && strcmp(o->codec, "none"))
        return trib_store_fail(v->store, TRIB_ERR_UNSUPPORTED,
                               "vector %s: codec %s is for whole vectors, and pairs go "
                               "as they are: leave it out, or the indices",
                               v->name, o->codec);
    r->out_bytes = o->result ? given->n * trib_dtype_size(v->dtype) : 0;
    return trib_vector_sort(r, given);
}

static uint32_t wait_ms(const struct trib_store *store, int timeout_ms)
{
    return (uint32_t)(timeout_ms ? timeout_ms : store->job.cfg.timeout_ms);
}

/* Public --------------------------------------------------------------------------- */

trib_status_t trib_store_push(trib_vector_t *vector, const void *data,
                              const trib_push_opts_t *opts, uint64_t *version_out)
{
    static const struct trib_sized kind = {"trib_push_opts_t", "TRIB_PUSH_OPTS_INIT",
                                           sizeof(*opts),
                                           TRIB_SIZED_UP_TO(trib_push_opts_t, result)};
    trib_push_opts_t o = TRIB_PUSH_OPTS_INIT;

    if (!vector)
        return TRIB_ERR_INVALID;
    trib_error_clear(&vector->store->err);
    if (opts && trib_sized_take(&kind, opts, &o, &vector->store->err) != TRIB_OK)
        return TRIB_ERR_INVALID;
    if (!data && !(o.indices && !o.count))
        return trib_store_fail(vector->store, TRIB_ERR_INVALID,
                               "vector %s: data is NULL", vector->name);
    struct trib_store_request r = {.vector = vector,
                                   .purpose = o.result ? TRIB_CONTROL_PUSH_GIVE
                                                       : TRIB_CONTROL_PUSH,
                                   .number = vector->pushed + 1,
                                   .data = data,
                                   .data_bytes = vector_bytes(vector),
                                   .out = o.result,
                                   .out_bytes = o.result ? vector_bytes(vector) : 0};
    const struct trib_pairs_input given = {o.indices, data, o.indices ? o.count : 0};
    memcpy(&r.rate, &o.rate, sizeof(r.rate));
    trib_status_t st = make_data(&r, &o, &given);
    if (st == TRIB_OK)
        st = push(&r, &given);
    if (st == TRIB_OK)
        vector->pushed++;
    if (st == TRIB_OK && r.codec)
        trib_vector_encoded(vector);
    if (st == TRIB_OK && version_out)
        *version_out = r.version;
    return st;
}

static trib_status_t check_part(const struct trib_vector *v, const void *out,
                                const trib_pull_opts_t *o)
{
    if (!out)
        return trib_store_fail(v->store, TRIB_ERR_INVALID, "vector %s: out is NULL",
                               v->name);
    if (o->indices && o->codec && strcmp(o->codec, "none"))
        return trib_store_fail(v->store, TRIB_ERR_UNSUPPORTED,
                               "vector %s: codec %s is for parts of a vector, and "
                               "elements by indices go as they are",
                               v->name, o->codec);
    if (o->indices && o->first)
        return trib_store_fail(v->store, TRIB_ERR_INVALID,
                               "vector %s: give first or indices, not both", v->name);
    if (o->indices)
        return trib_vector_check_indices(v, o->indices, o->count);
    if (o->first >= v->count || o->count > v->count - o->first)
        return trib_store_fail(v->store, TRIB_ERR_INVALID,
                               "vector %s: it has no such part", v->name);
    return TRIB_OK;
}

trib_status_t trib_store_pull(trib_vector_t *vector, void *out,
                              const trib_pull_opts_t *opts, uint64_t *version_out)
{
    static const struct trib_sized kind = {"trib_pull_opts_t", "TRIB_PULL_OPTS_INIT",
                                           sizeof(*opts),
                                           TRIB_SIZED_UP_TO(trib_pull_opts_t, count)};
    trib_pull_opts_t o = TRIB_PULL_OPTS_INIT;

    if (!vector)
        return TRIB_ERR_INVALID;
    trib_error_clear(&vector->store->err);
    if (opts && trib_sized_take(&kind, opts, &o, &vector->store->err) != TRIB_OK)
        return TRIB_ERR_INVALID;
    trib_status_t st = check_part(vector, out, &o);
    if (st != TRIB_OK)
        return st;
    if (o.timeout_ms < 0 || o.timeout_ms > TRIB_CONTROL_WAIT_MAX)
        return trib_store_fail(vector->store, TRIB_ERR_INVALID,
                               "vector %s: timeout_ms is %d, and must be 0 to %d",
                               vector->name, o.timeout_ms, TRIB_CONTROL_WAIT_MAX);
    if (!o.count && !o.indices)
        o.count = vector->count - o.first;
    struct trib_store_request r = {.vector = vector,
                                   .indices = o.count ? o.indices : NULL,
                                   .n_indices = o.count,
                                   .out = out,
                                   .out_bytes =
                                       o.count * trib_dtype_size(vector->dtype),
                                   .first = o.first,
                                   .count = o.count,
                                   .at_least = o.at_least,
                                   .bound = vector->store->bound,
                                   .wait_ms = wait_ms(vector->store, o.timeout_ms)};
    if (!o.indices)
        st = trib_vector_expect(&r, o.codec);
    if (st == TRIB_OK)
        st = make_request(&r);
    if (st == TRIB_OK && version_out)
        *version_out = r.version;
    return st;
}

trib_status_t trib_store_wait(trib_vector_t *vector, uint64_t version, int timeout_ms,
                              uint64_t *version_out)
{
    if (!vector)
        return TRIB_ERR_INVALID;
    trib_error_clear(&vector->store->err);
    if (timeout_ms < 0 || timeout_ms > TRIB_CONTROL_WAIT_MAX)
        return trib_store_fail(vector->store, TRIB_ERR_INVALID,
                               "vector %s: timeout_ms is %d, and must be 0 to %d",
                               vector->name, timeout_ms, TRIB_CONTROL_WAIT_MAX);
    struct trib_store_request r = {.vector = vector,
                                   .at_least = version,
                                   .bound = TRIB_CONTROL_UNBOUNDED,
                                   .wait_ms = wait_ms(vector->store, timeout_ms)};
    const trib_status_t st = make_request(&r);
    if (st == TRIB_OK && version_out)
        *version_out = r.version;
    return st;
}

trib_status_t trib_store_set_staleness(trib_store_t *store, int bound)
{
    if (!store)
        return TRIB_ERR_INVALID;
    trib_error_clear(&store->err);
    if (bound < TRIB_STALE_ANY)
        return trib_store_fail(store, TRIB_ERR_INVALID,
                               "a bound of staleness is a number of pushes from 0, or "
                               "TRIB_STALE_ANY, and not %d",
                               bound);
    store->bound = bound == TRIB_STALE_ANY ? TRIB_CONTROL_UNBOUNDED : (uint32_t)bound;
    return TRIB_OK;
}
