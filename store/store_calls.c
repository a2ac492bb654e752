/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pushes and pulls. A session that ends meanwhile is made anew, and the request is made
 * again: tribd knows a push that it has applied by its number.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "store/rank_store.h"

enum { TRIES = 8 }; /* of one request, over sessions that end */

/* A push or a pull. */
struct request {
    struct trib_vector *vector;
    uint32_t purpose; /* of a push, enum trib_control_push; 0: a pull */
    uint64_t number; /* of a push */
    uint64_t rate; /* of a push: the bits of a float64 */
    const uint8_t *data; /* of a push, all of it */
    uint8_t *out; /* of an answer with elements */
    size_t out_bytes;
    size_t first, count; /* of a pull */
    uint64_t version; /* the answer */
};

static size_t vector_bytes(const struct trib_vector *v)
{
    return v->count * trib_dtype_size(v->dtype);
}

static trib_status_t send_push(const struct request *r)
{
    const size_t bytes = vector_bytes(r->vector);
    trib_status_t st = TRIB_OK;

    for (size_t at = 0; at < bytes && st == TRIB_OK;) {
        const size_t left = bytes - at;
        const uint32_t n =
            left < TRIB_CONTROL_STORE_BYTES ? (uint32_t)left : TRIB_CONTROL_STORE_BYTES;
        const struct trib_control m = {.kind = TRIB_CONTROL_STORE_PUSH,
                                       .store_push = {.vector = r->vector->number,
                                                      .purpose = r->purpose,
                                                      .number = r->number,
                                                      .rate = r->rate,
                                                      .offset = at,
                                                      .data = {r->data + at, n}}};
        st = trib_store_send(r->vector->store, r->vector->shard, &m);
        at += n;
    }
    return st;
}

static trib_status_t send_pull(const struct request *r)
{
    const struct trib_control m = {
        .kind = TRIB_CONTROL_STORE_PULL,
        .store_pull = {r->vector->number, r->first, r->count}};

    return trib_store_send(r->vector->store, r->vector->shard, &m);
}

static trib_status_t not_due(const struct request *r, const char *what)
{
    struct trib_store *store = r->vector->store;

    (void)trib_session_end(store->link->sessions[r->vector->shard], TRIB_ERR_PROTOCOL,
                           "%s of vector %s are not due here", what, r->vector->name);
    return trib_store_fail(store, TRIB_ERR_PROTOCOL, "%s",
                           trib_error_text(&store->link->err));
}

/* Takes the answer up to its end. */
static trib_status_t hear_answer(struct request *r)
{
    struct trib_store *store = r->vector->store;
    struct trib_control m;
    size_t done = 0;
    trib_status_t st;

    while ((st = trib_store_hear(store, r->vector->shard, TRIB_CONTROL_STORE_DATA,
                                 TRIB_CONTROL_STORE_DONE, &m)) == TRIB_OK) {
        if (m.kind == TRIB_CONTROL_STORE_DONE)
            break;
        const struct trib_control_store_data *d = &m.store_data;
        if (d->offset != done || d->data.n > r->out_bytes - done)
            return not_due(r, "elements");
        memcpy(r->out + done, d->data.at, d->data.n);
        done += d->data.n;
    }
    if (st != TRIB_OK)
        return st;
    if (done != r->out_bytes)
        return not_due(r, "so few elements");
    r->version = m.store_state.version;
    return TRIB_OK;
}

/* A request is made again over a new session if its own has ended before the answer. */
static trib_status_t make_request(struct request *r)
{
    struct trib_store *store = r->vector->store;
    const int shard = r->vector->shard;
    trib_status_t st = TRIB_OK;

    trib_error_clear(&store->err);
    for (int i = 0; i < TRIES; i++) {
        if (trib_store_shard_is_lost(store, shard)) {
            trib_error_clear(&store->err);
            st = trib_store_shard_again(store, shard);
            if (st != TRIB_OK)
                return st;
        }
        st = r->purpose ? send_push(r) : send_pull(r);
        if (st == TRIB_OK)
            st = hear_answer(r);
        if (st == TRIB_OK || st == TRIB_ERR_PROTOCOL || st == TRIB_ERR_ABORTED ||
            !trib_store_shard_is_lost(store, shard))
            return st;
    }
    return st;
}

trib_status_t trib_vector_open(struct trib_vector *v, const char *rule)
{
    struct trib_control m = {.kind = TRIB_CONTROL_STORE_OPEN,
                             .store_open = {.dtype = v->dtype, .count = v->count}};

    snprintf(m.store_open.name, sizeof(m.store_open.name), "%s", v->name);
    snprintf(m.store_open.rule, sizeof(m.store_open.rule), "%s", rule);
    trib_status_t st = TRIB_OK;
    if (trib_store_shard_is_lost(v->store, v->shard))
        st = trib_store_shard_again(v->store, v->shard);
    if (st == TRIB_OK)
        st = trib_store_send(v->store, v->shard, &m);
    if (st == TRIB_OK)
        st = trib_store_hear(v->store, v->shard, TRIB_CONTROL_STORE_VECTOR,
                             TRIB_CONTROL_STORE_VECTOR, &m);
    if (st == TRIB_OK)
        v->number = m.store_state.vector;
    return st;
}

trib_status_t trib_vector_set(struct trib_vector *v, const void *data)
{
    struct request r = {
        .vector = v, .purpose = TRIB_CONTROL_PUSH_SET, .number = 1, .data = data};

    return make_request(&r);
}

/* True if the two arrays of so many bytes share any. */
static bool overlap(const void *a, const void *b, size_t bytes)
{
    return b && (uintptr_t)a < (uintptr_t)b + bytes &&
           (uintptr_t)b < (uintptr_t)a + bytes;
}

/* A result that would overwrite what may have to be sent again is taken elsewhere. */
static trib_status_t push(struct request *r)
{
    void *const result = r->out;
    const bool shared = overlap(r->data, result, r->out_bytes);

    if (shared)
        r->out = malloc(r->out_bytes);
    if (shared && !r->out)
        return trib_store_fail(r->vector->store, TRIB_ERR_NO_MEMORY,
                               "vector %s: no memory for a result in place of data",
                               r->vector->name);
    const trib_status_t st = make_request(r);
    if (shared && st == TRIB_OK)
        memcpy(result, r->out, r->out_bytes);
    if (shared)
        free(r->out);
    return st;
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
    if (!data)
        return trib_store_fail(vector->store, TRIB_ERR_INVALID,
                               "vector %s: data is NULL", vector->name);
    if (opts && trib_sized_take(&kind, opts, &o, &vector->store->err) != TRIB_OK)
        return TRIB_ERR_INVALID;
    struct request r = {.vector = vector,
                        .purpose =
                            o.result ? TRIB_CONTROL_PUSH_GIVE : TRIB_CONTROL_PUSH,
                        .number = vector->pushed + 1,
                        .data = data,
                        .out = o.result,
                        .out_bytes = o.result ? vector_bytes(vector) : 0};
    memcpy(&r.rate, &o.rate, sizeof(r.rate));
    const trib_status_t st = push(&r);
    if (st == TRIB_OK)
        vector->pushed++;
    if (st == TRIB_OK && version_out)
        *version_out = r.version;
    return st;
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
    if (!out || o.first >= vector->count || o.count > vector->count - o.first)
        return trib_store_fail(vector->store, TRIB_ERR_INVALID, "vector %s: %s",
                               vector->name,
                               out ? "it has no such part" : "out is NULL");
    if (!o.count)
        o.count = vector->count - o.first;
    struct request r = {.vector = vector,
                        .out = out,
                        .out_bytes = o.count * trib_dtype_size(vector->dtype),
                        .first = o.first,
                        .count = o.count};
    const trib_status_t st = make_request(&r);
    if (st == TRIB_OK && version_out)
        *version_out = r.version;
    return st;
}
