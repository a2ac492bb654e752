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
    uint64_t at_least;
    uint32_t bound, wait_ms;
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
    const struct trib_control m = {.kind = TRIB_CONTROL_STORE_PULL,
                                   .store_pull = {r->vector->number, r->first, r->count,
                                                  r->at_least, r->bound, r->wait_ms}};

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
        assert(done <= r->out_bytes);
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
    if (r->version > r->vector->seen)
        r->vector->seen = r->version;
    return TRIB_OK;
}

/* Adds to the sentence what the rank knows of a vector that is lost. */
static trib_status_t say_seen(const struct trib_vector *v, trib_status_t st)
{
    char why[sizeof(v->store->err.text)];

    snprintf(why, sizeof(why), "%.400s", trib_error_text(&v->store->err));
    return trib_store_fail(v->store, st,
                           "%s; the newest version of vector %s that this rank has "
                           "heard of is %" PRIu64,
                           why, v->name, v->seen);
}

/* A request is made again over a new session if its own has ended before the answer. */
static trib_status_t make_request(struct request *r)
{
    struct trib_store *store = r->vector->store;
    const int shard = r->vector->shard;
    trib_status_t st = TRIB_OK;

    trib_error_clear(&store->err);
    store->wait_ms = r->wait_ms;
    for (int i = 0; i < TRIES; i++) {
        if (trib_store_shard_is_lost(store, shard)) {
            trib_error_clear(&store->err);
            st = trib_store_shard_again(store, shard);
            if (st != TRIB_OK)
                return say_seen(r->vector, st);
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
    if (o.timeout_ms < 0 || o.timeout_ms > TRIB_CONTROL_WAIT_MAX)
        return trib_store_fail(vector->store, TRIB_ERR_INVALID,
                               "vector %s: timeout_ms is %d, and must be 0 to %d",
                               vector->name, o.timeout_ms, TRIB_CONTROL_WAIT_MAX);
    if (!o.count)
        o.count = vector->count - o.first;
    struct request r = {.vector = vector,
                        .out = out,
                        .out_bytes = o.count * trib_dtype_size(vector->dtype),
                        .first = o.first,
                        .count = o.count,
                        .at_least = o.at_least,
                        .bound = vector->store->bound,
                        .wait_ms = wait_ms(vector->store, o.timeout_ms)};
    const trib_status_t st = make_request(&r);
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
    struct request r = {.vector = vector,
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
