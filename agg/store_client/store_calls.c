/* SPDX-License-Identifier: BSD-3-Clause */
/* Pushes and pulls. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agg/store_client/rank_store.h"
#include "base/sized.h"

static trib_status_t open_part(struct trib_vector *v, struct trib_vector_part *p)
{
    struct trib_control m = {.kind = TRIB_CONTROL_STORE_OPEN,
                             .store_open = {.dtype = v->dtype, .count = p->count}};

    assert(p->count > 0);
    snprintf(m.store_open.name, sizeof(m.store_open.name), "%s", v->name);
    snprintf(m.store_open.rule, sizeof(m.store_open.rule), "%s", v->rule);
    trib_status_t st = trib_store_send(v->store, p->shard, &m);
    if (st == TRIB_OK)
        st = trib_store_hear(v->store, p->shard, TRIB_CONTROL_STORE_VECTOR, &m);
    if (st == TRIB_OK) {
        p->number = m.store_state.vector;
        p->seen = m.store_state.version;
        p->saved = m.store_state.saved;
        p->pushed = m.store_state.pushes;
    }
    return st;
}

/* Open a part, again if the connection is lost before the answer. */
static trib_status_t open_again(struct trib_vector *v, struct trib_vector_part *p)
{
    trib_status_t st = TRIB_ERR_PEER_LOST;

    for (int tries = 0; st == TRIB_ERR_PEER_LOST && tries < TRIB_STORE_TRIES; tries++) {
        if (trib_store_shard_is_lost(v->store, p->shard)) {
            const trib_status_t found = trib_store_shard_again(v->store, p->shard);
            if (found != TRIB_OK)
                return found;
            trib_error_clear(&v->store->err);
        }
        st = open_part(v, p);
        if (!trib_store_shard_is_lost(v->store, p->shard))
            break;
    }
    return st;
}

trib_status_t trib_vector_open(struct trib_vector *v)
{
    trib_status_t st = TRIB_OK;

    trib_store_lock(v->store);
    for (int i = 0; i < v->n_parts && st == TRIB_OK; i++)
        st = open_again(v, &v->parts[i]);
    trib_store_unlock(v->store);
    return st;
}

/* Return true if two arrays of `bytes` bytes overlap. */
static bool overlap(const void *a, const void *b, size_t bytes)
{
    return b && (uintptr_t)a < (uintptr_t)b + bytes &&
           (uintptr_t)b < (uintptr_t)a + bytes;
}

/* Use a temporary result in two cases: the result would overwrite data that may be sent
 * again, or the sent pairs differ from the given ones. */
static trib_status_t push(struct trib_store_request *r,
                          const struct trib_pairs_input *given)
{
    void *const result = r->out;
    const bool moved = given->indices != r->indices;
    const size_t n = r->indices ? r->n_indices : r->vector->count;
    const size_t bytes = n * trib_dtype_size(r->vector->dtype);

    if (!result || (!moved && !overlap(r->data, result, bytes)))
        return trib_vector_request(r);
    r->out = malloc(bytes + 1);
    if (!r->out)
        return trib_store_fail(r->vector->store, TRIB_ERR_NO_MEMORY,
                               "vector %s: out of memory for a result",
                               r->vector->name);
    const trib_status_t st = trib_vector_request(r);
    if (st == TRIB_OK && moved)
        trib_vector_spread(r, given, r->out, result);
    else if (st == TRIB_OK)
        memcpy(result, r->out, bytes);
    free(r->out);
    return st;
}

/* Prepare the caller's elements for sending: encode or sort them. */
static trib_status_t make_data(struct trib_store_request *r, const trib_push_opts_t *o,
                               const struct trib_pairs_input *given)
{
    struct trib_vector *v = r->vector;

    assert(r->purpose);
    if (!o->indices)
        return trib_vector_encode(r, o->codec);
    if (o->codec && strcmp(o->codec, "none"))
        return trib_store_fail(v->store, TRIB_ERR_UNSUPPORTED,
                               "vector %s: codec %s encodes only whole vectors, not "
                               "pairs: omit the codec or the indices",
                               v->name, o->codec);
    return trib_vector_sort(r, given);
}

/* Without a timeout, wait as long as tribd allows. */
static uint32_t wait_ms(const struct trib_store *store, int timeout_ms)
{
    const int ms = timeout_ms ? timeout_ms : store->job.cfg.timeout_ms;

    assert(ms >= 0);
    return ms ? (uint32_t)ms : TRIB_CONTROL_WAIT_MAX;
}

/* Public --------------------------------------------------------------------------- */

trib_status_t trib_store_push(trib_vector_t *vector, const void *data,
                              const trib_push_opts_t *opts, uint64_t *version_out)
{
    static const struct trib_sized kind = {"trib_push_opts_t", "TRIB_PUSH_OPTS_INIT",
                                           sizeof(*opts),
                                           TRIB_SIZED_UP_TO(trib_push_opts_t, result)};
    trib_push_opts_t o = TRIB_PUSH_OPTS_INIT;

    if (!vector || trib_store_enter(vector->store) != TRIB_OK)
        return TRIB_ERR_INVALID;
    if (opts && trib_sized_take(&kind, opts, &o, &vector->store->err) != TRIB_OK)
        return TRIB_ERR_INVALID;
    if (!data && !(o.indices && !o.count))
        return trib_store_fail(vector->store, TRIB_ERR_INVALID,
                               "vector %s: data is NULL", vector->name);
    if (o.count && !o.indices)
        return trib_store_fail(
            vector->store, TRIB_ERR_INVALID,
            "vector %s: trib_push_opts_t.count is %zu but indices is NULL: without "
            "indices a push covers all %zu elements, and count must be 0",
            vector->name, o.count, vector->count);
    if (!(o.rate >= 0) || !isfinite(o.rate))
        return trib_store_fail(
            vector->store, TRIB_ERR_INVALID,
            "vector %s: trib_push_opts_t.rate is %g: use a rate above 0, or 0 for the "
            "optimizer's rate",
            vector->name, o.rate);
    struct trib_store_request r = {.vector = vector,
                                   .purpose = o.result ? TRIB_CONTROL_PUSH_GIVE
                                                       : TRIB_CONTROL_PUSH,
                                   .number = trib_vector_state(vector).pushes + 1,
                                   .data = data,
                                   .out = o.result};
    const struct trib_pairs_input given = {o.indices, data, o.indices ? o.count : 0};
    memcpy(&r.rate, &o.rate, sizeof(r.rate));
    trib_status_t st = make_data(&r, &o, &given);
    if (st == TRIB_OK)
        st = push(&r, &given);
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
                               "vector %s: codec %s encodes only ranges of a vector, "
                               "not indexed elements: omit the codec or the indices",
                               v->name, o->codec);
    if (o->indices && o->first)
        return trib_store_fail(v->store, TRIB_ERR_INVALID,
                               "vector %s: set first or indices, not both", v->name);
    if (o->indices)
        return trib_vector_check_indices(v, o->indices, o->count);
    if (o->first >= v->count || o->count > v->count - o->first)
        return trib_store_fail(v->store, TRIB_ERR_INVALID,
                               "vector %s: range out of bounds", v->name);
    return TRIB_OK;
}

trib_status_t trib_store_pull(trib_vector_t *vector, void *out,
                              const trib_pull_opts_t *opts, uint64_t *version_out)
{
    static const struct trib_sized kind = {"trib_pull_opts_t", "TRIB_PULL_OPTS_INIT",
                                           sizeof(*opts),
                                           TRIB_SIZED_UP_TO(trib_pull_opts_t, count)};
    trib_pull_opts_t o = TRIB_PULL_OPTS_INIT;

    if (!vector || trib_store_enter(vector->store) != TRIB_OK)
        return TRIB_ERR_INVALID;
    if (opts && trib_sized_take(&kind, opts, &o, &vector->store->err) != TRIB_OK)
        return TRIB_ERR_INVALID;
    trib_status_t st = check_part(vector, out, &o);
    if (st != TRIB_OK)
        return st;
    if (o.timeout_ms < 0 || o.timeout_ms > TRIB_CONTROL_WAIT_MAX)
        return trib_store_fail(vector->store, TRIB_ERR_INVALID,
                               "vector %s: timeout_ms is %d, but must be 0 to %d",
                               vector->name, o.timeout_ms, TRIB_CONTROL_WAIT_MAX);
    if (!o.count && !o.indices)
        o.count = vector->count - o.first;
    struct trib_store_request r = {.vector = vector,
                                   .indices = o.count ? o.indices : NULL,
                                   .n_indices = o.count,
                                   .out = out,
                                   .first = o.first,
                                   .count = o.count,
                                   .at_least = o.at_least,
                                   .bound = vector->store->bound,
                                   .wait_ms = wait_ms(vector->store, o.timeout_ms)};
    if (!o.indices)
        st = trib_vector_expect(&r, o.codec);
    if (st == TRIB_OK)
        st = r.indices ? trib_vector_pull_each(&r) : trib_vector_request(&r);
    if (st == TRIB_OK)
        trib_vector_narrow(&r);
    if (st == TRIB_OK && version_out)
        *version_out = r.version;
    return st;
}

trib_status_t trib_store_wait(trib_vector_t *vector, uint64_t version, int timeout_ms,
                              uint64_t *version_out)
{
    if (!vector || trib_store_enter(vector->store) != TRIB_OK)
        return TRIB_ERR_INVALID;
    if (timeout_ms < 0 || timeout_ms > TRIB_CONTROL_WAIT_MAX)
        return trib_store_fail(vector->store, TRIB_ERR_INVALID,
                               "vector %s: timeout_ms is %d, but must be 0 to %d",
                               vector->name, timeout_ms, TRIB_CONTROL_WAIT_MAX);
    struct trib_store_request r = {.vector = vector,
                                   .at_least = version,
                                   .bound = TRIB_CONTROL_UNBOUNDED,
                                   .wait_ms = wait_ms(vector->store, timeout_ms)};
    const trib_status_t st = trib_vector_request(&r);
    if (st == TRIB_OK && version_out)
        *version_out = r.version;
    return st;
}

trib_status_t trib_store_stats(const trib_store_t *store, trib_store_stats_t *stats)
{
    static const struct trib_sized kind = {
        "trib_store_stats_t", "TRIB_STORE_STATS_INIT", sizeof(trib_store_stats_t),
        TRIB_SIZED_UP_TO(trib_store_stats_t, wait_ns)};
    struct trib_error none = {0};

    if (!store || !stats || trib_sized_fits(&kind, stats, &none) != TRIB_OK)
        return TRIB_ERR_INVALID;
    trib_sized_give(&kind, &store->stats, stats);
    return TRIB_OK;
}

trib_status_t trib_store_set_staleness(trib_store_t *store, int bound)
{
    if (!store)
        return TRIB_ERR_INVALID;
    trib_error_clear(&store->err);
    if (bound < TRIB_STALE_ANY)
        return trib_store_fail(store, TRIB_ERR_INVALID,
                               "the staleness bound must be a number of pushes from 0, "
                               "or TRIB_STALE_ANY, not %d",
                               bound);
    store->bound = bound == TRIB_STALE_ANY ? TRIB_CONTROL_UNBOUNDED : (uint32_t)bound;
    return TRIB_OK;
}
