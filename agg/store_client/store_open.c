/* SPDX-License-Identifier: BSD-3-Clause */
/* Collective calls: rank 0 acts first, and all ranks learn the outcome. */
#include "agg/store_client/rank_store.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/sized.h"
#include "comm/core/communicator.h"

/* Broadcast by rank 0. */
struct verdict {
    int32_t status;
    int32_t n; /* number of addresses */
    int32_t lasting;
    uint8_t token[TRIB_CONTROL_NONCE_BYTES];
    uint8_t owner[TRIB_CONTROL_NONCE_BYTES];
    char job[TRIB_CONTROL_JOB_MAX + 1];
    char why[400];
    char addresses[TRIB_AGGREGATORS_MAX][TRIB_CONFIG_TEXT_BYTES];
};

trib_status_t trib_store_agree(struct trib_store *store, trib_status_t own)
{
    int32_t worst = own;

    const trib_status_t st =
        trib_allreduce(store->comm, NULL, &worst, 1, TRIB_I32, TRIB_MIN);
    if (st != TRIB_OK)
        return trib_store_fail(store, st, "%s", trib_last_error(store->comm));
    if (own != TRIB_OK || worst == TRIB_OK)
        return own;
    return trib_store_fail(store, trib_status_of_peer(worst), "another rank failed: %s",
                           trib_status_str((trib_status_t)worst));
}

/* Opening -------------------------------------------------------------------------- */

/* Without a key from the caller, use a random key for this run. */
static trib_status_t take_opts(struct trib_store *store, const trib_store_opts_t *opts)
{
    static const struct trib_sized kind = {"trib_store_opts_t", "TRIB_STORE_OPTS_INIT",
                                           sizeof(*opts),
                                           TRIB_SIZED_UP_TO(trib_store_opts_t, key)};
    trib_store_opts_t o = TRIB_STORE_OPTS_INIT;
    struct trib_secret key = {0};

    if (opts && trib_sized_take(&kind, opts, &o, &store->err) != TRIB_OK)
        return TRIB_ERR_INVALID;
    if (!(o.snapshot_s >= 0 && o.snapshot_s <= TRIB_CONTROL_WAIT_MAX / 1000))
        return trib_store_fail(store, TRIB_ERR_INVALID,
                               "snapshot_s must be 0 to %d seconds",
                               TRIB_CONTROL_WAIT_MAX / 1000);
    if (o.key && !trib_secret_parse(o.key, strlen(o.key), &key))
        return trib_store_fail(store, TRIB_ERR_INVALID,
                               "the key of a store must be %d hexadecimal digits: "
                               "create it with openssl rand -hex %d",
                               TRIB_SECRET_TEXT - 1, TRIB_SECRET_BYTES);
    if (getrandom(store->owner, sizeof(store->owner), 0) !=
        (ssize_t)sizeof(store->owner))
        return trib_store_fail(store, TRIB_ERR_SYSTEM, "cannot get random bytes: %s",
                               strerror(errno));
    if (o.key)
        memcpy(store->owner, key.bytes, sizeof(store->owner));
    trib_secret_wipe(&key);
    store->lasting = o.key;
    store->every_pushes = o.snapshot_pushes;
    store->every_ms = (uint32_t)(o.snapshot_s * 1000 + 0.999);
    return TRIB_OK;
}

static trib_status_t describe(struct trib_store *store, const trib_store_opts_t *opts)
{
    const trib_status_t taken = take_opts(store, opts);

    if (taken != TRIB_OK)
        return taken;
    if (!store->comm->cfg.service[0])
        return trib_store_fail(store, TRIB_ERR_CONFIG,
                               "a store requires tribd, but TRIB_SERVICE is not set: "
                               "set it, such as TRIB_SERVICE=agg0:4700");
    if (getrandom(store->token, sizeof(store->token), 0) !=
        (ssize_t)sizeof(store->token))
        return trib_store_fail(store, TRIB_ERR_SYSTEM, "cannot get random bytes: %s",
                               strerror(errno));
    const trib_status_t st =
        trib_control_link_describe(store->comm, &store->job, &store->err);
    return st == TRIB_OK ? trib_store_shards_open(store, false) : st;
}

static void tell(const struct trib_store *store, trib_status_t st, struct verdict *v)
{
    assert(store->job.n <= TRIB_AGGREGATORS_MAX);
    v->status = st;
    v->n = store->job.n;
    memcpy(v->token, store->token, sizeof(v->token));
    memcpy(v->owner, store->owner, sizeof(v->owner));
    v->lasting = store->lasting;
    memcpy(v->addresses, store->job.addresses, sizeof(v->addresses));
    snprintf(v->job, sizeof(v->job), "%s", store->job.name);
    snprintf(v->why, sizeof(v->why), "%.390s", trib_error_text(&store->err));
}

static trib_status_t follow(struct trib_store *store, struct verdict *v)
{
    v->why[sizeof(v->why) - 1] = v->job[sizeof(v->job) - 1] = '\0';
    if (v->status != TRIB_OK)
        return trib_store_fail(store, trib_status_of_peer(v->status), "rank 0: %s",
                               v->why);
    if (v->n < 1 || v->n > TRIB_AGGREGATORS_MAX)
        return trib_store_fail(store, TRIB_ERR_PROTOCOL,
                               "rank 0 sent an invalid number of tribds, %d", v->n);
    for (int i = 0; i < v->n; i++)
        v->addresses[i][TRIB_CONFIG_TEXT_BYTES - 1] = '\0';
    store->job.n = v->n;
    memcpy(store->job.addresses, v->addresses, sizeof(v->addresses));
    memcpy(store->job.name, v->job, sizeof(v->job));
    memcpy(store->token, v->token, sizeof(v->token));
    memcpy(store->owner, v->owner, sizeof(v->owner));
    store->lasting = v->lasting == 1;
    return trib_store_shards_open(store, true);
}

static trib_status_t open_all(struct trib_store *store, const trib_store_opts_t *opts,
                              struct verdict *v)
{
    trib_status_t st = TRIB_OK;

    if (store->rank == 0) {
        st = describe(store, opts);
        tell(store, st, v);
    }
    const trib_status_t shared = trib_broadcast(store->comm, v, sizeof(*v), TRIB_U8, 0);
    if (shared != TRIB_OK)
        return trib_store_fail(store, shared, "%s", trib_last_error(store->comm));
    if (store->rank != 0)
        st = follow(store, v);
    return trib_store_agree(store, st);
}

trib_status_t trib_store_open(trib_comm_t *comm, trib_store_t **store_out)
{
    return trib_store_open_with(comm, NULL, store_out);
}

trib_status_t trib_store_open_with(trib_comm_t *comm, const trib_store_opts_t *opts,
                                   trib_store_t **store_out)
{
    if (!comm || !store_out)
        return TRIB_ERR_INVALID;
    *store_out = NULL;
    trib_status_t st = trib_comm_ours(comm, "trib_store_open");
    if (st != TRIB_OK)
        return st;
    struct trib_store *store = calloc(1, sizeof(*store));
    struct verdict *v = calloc(1, sizeof(*v));
    if (!store || !v) {
        free(store);
        free(v);
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "out of memory for a store");
    }
    store->comm = comm;
    store->rank = trib_rank(comm);
    store->ranks = store->job.ranks = trib_size(comm);
    store->log = comm->log;
    store->kernels = comm->engine.kernels;
    store->seed = (uint64_t)comm->cfg.seed;
    store->job.cfg = comm->cfg;
    store->bound = TRIB_CONTROL_UNBOUNDED;
    if (comm->idle)
        store->idle =
            (struct trib_idle){.call = comm->idle->call, .arg = comm->idle->arg};
    st = open_all(store, opts, v);
    free(v);
    if (st == TRIB_OK) {
        *store_out = store;
        return TRIB_OK;
    }
    (void)trib_comm_fail(comm, st, "store: %s", trib_error_text(&store->err));
    (void)trib_store_free(store);
    return st;
}

trib_status_t trib_store_free(trib_store_t *store)
{
    if (!store)
        return TRIB_OK;
    const bool in_child = store->alive.pid && !trib_store_alive_runs(store);
    if (store->vectors)
        trib_store_shards_rejoin(store);
    while (store->vectors) {
        struct trib_vector *v = store->vectors;
        store->vectors = v->next_vector;
        trib_vector_free(v);
    }
    trib_store_alive_stop(store);
    if (in_child) /* its parent is the rank, and stays */
        trib_control_link_free_copy(store->link);
    else
        trib_control_link_free(store->link);
    free(store);
    return TRIB_OK;
}

/* Vectors -------------------------------------------------------------------------- */

static bool has(const struct trib_store *store, const char *name)
{
    const struct trib_vector *v = store->vectors;

    while (v && strcmp(v->name, name))
        v = v->next_vector;
    return v;
}

static trib_status_t check_desc(struct trib_store *store, const trib_vector_desc_t *d)
{
    if (!d->name || !trib_control_job_fits(d->name))
        return trib_store_fail(store, TRIB_ERR_INVALID,
                               "a vector's name must be 1 to %d letters, digits and "
                               "._:-+@/%%=,",
                               TRIB_CONTROL_JOB_MAX);
    const size_t element = trib_dtype_size(d->dtype);
    if (!d->count || !element || d->count > TRIB_CONTROL_COUNT_MAX ||
        d->count > SIZE_MAX / element)
        return trib_store_fail(store, TRIB_ERR_INVALID, "vector %s: %s", d->name,
                               element ? "count is 0 or too large" : "unknown dtype");
    if (d->shards < 0 || d->shards > TRIB_AGGREGATORS_MAX)
        return trib_store_fail(store, TRIB_ERR_INVALID,
                               "vector %s: shards is %d, but must be 0 to %d", d->name,
                               d->shards, TRIB_AGGREGATORS_MAX);
    if (has(store, d->name))
        return trib_store_fail(store, TRIB_ERR_INVALID, "vector %s exists already",
                               d->name);
    if (d->rule && (!d->rule[0] || strlen(d->rule) > TRIB_CONTROL_RULE_MAX))
        return trib_store_fail(store, TRIB_ERR_INVALID,
                               "vector %s: a rule must have 1 to %d characters",
                               d->name, TRIB_CONTROL_RULE_MAX);
    return TRIB_OK;
}

/* Rank 0 creates the vector, then the others open it. */
static trib_status_t open_in_turn(struct trib_store *store, const trib_vector_desc_t *d,
                                  struct trib_vector *v, trib_status_t st)
{
    struct trib_store_request set = {
        .vector = v, .purpose = TRIB_CONTROL_PUSH_SET, .number = 1, .data = d->initial};

    assert(v || st != TRIB_OK);
    if (store->rank == 0 && st == TRIB_OK)
        st = trib_vector_open(v);
    if (store->rank == 0 && st == TRIB_OK && d->initial)
        st = trib_vector_request(&set);
    int32_t first = st;
    const trib_status_t shared = trib_broadcast(store->comm, &first, 1, TRIB_I32, 0);
    if (shared != TRIB_OK)
        return trib_store_fail(store, shared, "%s", trib_last_error(store->comm));
    if (store->rank != 0 && first == TRIB_OK && st == TRIB_OK)
        st = trib_vector_open(v);
    return trib_store_agree(store, st);
}

trib_status_t trib_store_create(trib_store_t *store, const trib_vector_desc_t *desc,
                                trib_vector_t **vector_out)
{
    static const struct trib_sized kind = {
        "trib_vector_desc_t", "TRIB_VECTOR_DESC_INIT", sizeof(*desc),
        TRIB_SIZED_UP_TO(trib_vector_desc_t, initial)};
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    struct trib_vector *v = NULL;

    if (!store || !vector_out)
        return TRIB_ERR_INVALID;
    *vector_out = NULL;
    if (trib_store_enter(store) != TRIB_OK)
        return TRIB_ERR_INVALID;
    trib_status_t st = desc ? trib_sized_take(&kind, desc, &d, &store->err)
                            : trib_store_fail(store, TRIB_ERR_INVALID, "desc is NULL");
    if (st == TRIB_OK)
        st = check_desc(store, &d);
    if (st == TRIB_OK && !(v = trib_vector_make(store, &d)))
        st = trib_store_fail(store, TRIB_ERR_NO_MEMORY, "out of memory for a vector");
    if (st == TRIB_OK)
        st = trib_vector_codecs(v, &d);
    st = open_in_turn(store, &d, v, st);
    if (st != TRIB_OK) {
        trib_vector_free(v);
        return st;
    }
    v->next_vector = store->vectors;
    store->vectors = v;
    *vector_out = v;
    return TRIB_OK;
}
