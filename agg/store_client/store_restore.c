/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Snapshots, and restoring from them or from a rank's copy.
 *
 * If a tribd has lost the store, all ranks together recreate it in this shard, with a
 * new token. A rank that does not know yet finds no store with its old token. So it
 * cannot push to a vector whose history it does not share.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agg/store_client/rank_store.h"
#include "base/sized.h"
#include "comm/core/communicator.h"

enum {
    DISK_MS = 60000, /* disk timeout: this plus the bytes divided by the next */
    DISK_BYTES_A_MS = 10000,
    WAIT_MOST = 40000000,
};

/* Restore request: equal on all ranks, except `copy`. */
struct restoring {
    struct trib_vector *only; /* NULL: all */
    int from;
    const void *copy;
};

/* Outcome, broadcast by one rank. */
struct outcome {
    int32_t status;
    char why[400];
};

/* Snapshots ------------------------------------------------------------------------ */

/* Save or restore the snapshot of a vector. */
static trib_status_t order(struct trib_vector *v, enum trib_control_snapshot what,
                           uint64_t *version_out)
{
    const uint64_t ms = v->count * trib_dtype_size(v->dtype) / DISK_BYTES_A_MS;
    struct trib_store_request r = {
        .vector = v,
        .order = what,
        .wait_ms = DISK_MS + (uint32_t)(ms < WAIT_MOST ? ms : WAIT_MOST)};

    const trib_status_t st = trib_vector_request(&r);
    if (st == TRIB_OK && version_out)
        *version_out = r.version;
    return st;
}

trib_status_t trib_store_snapshot(trib_store_t *store, trib_vector_t *vector,
                                  uint64_t *version_out)
{
    trib_status_t st = TRIB_OK;

    if (!store || trib_store_enter(store) != TRIB_OK)
        return TRIB_ERR_INVALID;
    if ((vector && vector->store != store) || (!vector && version_out))
        return trib_store_fail(store, TRIB_ERR_INVALID,
                               vector ? "the vector belongs to another store"
                                      : "version_out requires a vector");
    if (vector)
        return order(vector, TRIB_CONTROL_SNAPSHOT_TAKE, version_out);
    for (struct trib_vector *v = store->vectors; v && st == TRIB_OK; v = v->next_vector)
        st = order(v, TRIB_CONTROL_SNAPSHOT_TAKE, NULL);
    return st;
}

trib_status_t trib_store_state(const trib_vector_t *vector, trib_vector_state_t *state)
{
    if (!vector || !state)
        return TRIB_ERR_INVALID;
    trib_vector_state_t s = trib_vector_state(vector);
    s.size = state->size;
    if (s.size < sizeof(s))
        return trib_store_fail(vector->store, TRIB_ERR_INVALID,
                               "trib_vector_state_t has a size of %zu, not %zu: "
                               "initialise it with TRIB_VECTOR_STATE_INIT",
                               s.size, sizeof(s));
    *state = s;
    return TRIB_OK;
}

/* Restoring ------------------------------------------------------------------------ */

static bool takes_part(const struct restoring *r, const struct trib_vector *v)
{
    return (!r->only || r->only == v) &&
           (r->from != TRIB_RESTORE_LOST || trib_vector_state(v).lost);
}

/* Share one rank's status and message with all ranks. */
static trib_status_t follow(struct trib_store *store, int root, trib_status_t own)
{
    struct outcome o = {.status = own};

    snprintf(o.why, sizeof(o.why), "%.390s", trib_error_text(&store->err));
    const trib_status_t shared =
        trib_broadcast(store->comm, &o, sizeof(o), TRIB_U8, root);
    if (shared != TRIB_OK)
        return trib_store_fail(store, shared, "%s", trib_last_error(store->comm));
    o.why[sizeof(o.why) - 1] = '\0';
    if (store->rank == root || o.status == TRIB_OK)
        return own;
    return trib_store_fail(store, trib_status_of_peer(o.status), "rank %d: %s", root,
                           o.why);
}

/* Check whether the shard of a part has its store. */
static trib_status_t check_part(struct trib_vector *v, struct trib_vector_part *p)
{
    if (!p->lost) { /* ask for the version */
        struct trib_store_request r = {
            .vector = v, .only = p, .bound = TRIB_CONTROL_UNBOUNDED};
        return trib_vector_request(&r);
    }
    trib_store_lock(v->store);
    const trib_status_t st = trib_store_shard_is_lost(v->store, p->shard)
                                 ? trib_store_shard_again(v->store, p->shard)
                                 : TRIB_OK;
    trib_store_unlock(v->store);
    return st;
}

/* Check for the store in a shard that may have no vector yet. */
static trib_status_t check_empty(struct trib_store *store, int shard)
{
    trib_store_lock(store);
    const trib_status_t st = trib_store_shard_answers(store, shard)
                                 ? TRIB_OK
                                 : trib_store_shard_again(store, shard);
    trib_store_unlock(store);
    return st;
}

/* Check each shard with a part of these vectors for its store, or all shards if all
 * vectors are restored; gone[k]: shard k says that it has lost it. A shard that this
 * rank cannot reach may still have it. */
static trib_status_t check_shards(struct trib_store *store, const struct restoring *r,
                                  int32_t *gone)
{
    for (int k = 0; k < store->job.n && !r->only; k++) {
        store->denied = false;
        const trib_status_t st = check_empty(store, k);
        gone[k] = st == TRIB_ERR_PEER_LOST && store->denied;
        if (st != TRIB_OK && !gone[k])
            return st;
    }
    for (struct trib_vector *v = store->vectors; v; v = v->next_vector) {
        for (int i = 0; i < v->n_parts; i++) {
            const int k = v->parts[i].shard;
            if ((r->only && r->only != v) || gone[k])
                continue;
            store->denied = false;
            const trib_status_t st = check_part(v, &v->parts[i]);
            gone[k] = st == TRIB_ERR_PEER_LOST && store->denied;
            if (st != TRIB_OK && !gone[k])
                return st;
        }
    }
    trib_error_clear(&store->err);
    return TRIB_OK;
}

/* Recreate the store in one shard, on all ranks. */
static trib_status_t remake(struct trib_store *store, int shard)
{
    trib_status_t st = TRIB_OK;

    store->remade[shard]++;
    for (struct trib_vector *v = store->vectors; v; v = v->next_vector)
        for (int i = 0; i < v->n_parts; i++)
            v->parts[i].lost |= v->parts[i].shard == shard;
    if (store->rank == 0)
        st = trib_store_shard_remake(store, shard);
    st = follow(store, 0, st);
    if (store->rank != 0 && st == TRIB_OK)
        st = trib_store_shard_remake(store, shard);
    return trib_store_agree(store, st);
}

static trib_status_t remake_gone(struct trib_store *store, const struct restoring *r)
{
    int32_t gone[TRIB_AGGREGATORS_MAX] = {0};

    trib_status_t st = trib_store_agree(store, check_shards(store, r, gone));
    if (st != TRIB_OK)
        return st;
    st = trib_allreduce(store->comm, NULL, gone, TRIB_AGGREGATORS_MAX, TRIB_I32,
                        TRIB_MAX);
    if (st != TRIB_OK)
        return trib_store_fail(store, st, "%s", trib_last_error(store->comm));
    for (int k = 0; k < store->job.n && st == TRIB_OK; k++)
        if (gone[k])
            st = remake(store, k);
    return st;
}

/* Restore a vector; called by one rank: rank 0, or the owner of the copy. */
static trib_status_t fill(struct trib_vector *v, const struct restoring *r)
{
    struct trib_store_request copy = {.vector = v,
                                      .purpose = TRIB_CONTROL_PUSH_RESTORE,
                                      .number = trib_vector_state(v).version + 1,
                                      .data = r->copy};

    const trib_status_t st = trib_vector_open(v);
    if (st != TRIB_OK)
        return st;
    return r->from >= 0 ? trib_vector_request(&copy)
                        : order(v, TRIB_CONTROL_SNAPSHOT_RESTORE, NULL);
}

static trib_status_t restore_one(struct trib_vector *v, const struct restoring *r)
{
    struct trib_store *store = v->store;
    const int root = r->from >= 0 ? r->from : 0;
    trib_status_t st = TRIB_OK;

    if (store->rank == root)
        st = fill(v, r);
    st = follow(store, root, st);
    if (st == TRIB_OK)
        st = trib_vector_open(v);
    st = trib_store_agree(store, st);
    for (int i = 0; i < v->n_parts && st == TRIB_OK; i++)
        v->parts[i].lost = false;
    return st;
}

static trib_status_t check(struct trib_store *store, const struct restoring *r,
                           const uint64_t *version_out)
{
    if (r->only && r->only->store != store)
        return trib_store_fail(store, TRIB_ERR_INVALID,
                               "the vector belongs to another store");
    if (!r->only && (r->from >= 0 || version_out))
        return trib_store_fail(store, TRIB_ERR_INVALID,
                               "a copy or a version requires a vector: pass one");
    if (r->from < TRIB_RESTORE_LOST || r->from >= store->ranks)
        return trib_store_fail(store, TRIB_ERR_INVALID,
                               "invalid rank %d: it has no copy to restore", r->from);
    if (r->from == store->rank && !r->copy)
        return trib_store_fail(store, TRIB_ERR_INVALID, "vector %s: copy is NULL",
                               r->only->name);
    return TRIB_OK;
}

trib_status_t trib_store_restore(trib_store_t *store, trib_vector_t *vector, int from,
                                 const void *copy, uint64_t *version_out)
{
    const struct restoring r = {vector, from, copy};

    if (!store || trib_store_enter(store) != TRIB_OK)
        return TRIB_ERR_INVALID;
    trib_status_t st = trib_store_agree(store, check(store, &r, version_out));
    if (st == TRIB_OK)
        st = remake_gone(store, &r);
    for (struct trib_vector *v = store->vectors; v && st == TRIB_OK; v = v->next_vector)
        if (takes_part(&r, v))
            st = restore_one(v, &r);
    if (st == TRIB_OK && version_out)
        *version_out = trib_vector_state(vector).version;
    return st;
}
