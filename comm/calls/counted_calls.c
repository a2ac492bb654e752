/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocking calls with counts and offsets per rank. Their plans share the cache of the
 * other calls under a digest of the arrays; a hit compares the arrays themselves.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "comm/calls/plan_cache.h"
#include "comm/core/call_cache.h"
#include "comm/core/communicator.h"
#include "comm/core/gate.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/plan.h"
#include "comm/plan/plan_make.h"

enum {
    COUNTED = 0x100, /* flag added to the collective in a key */
    ARRAYS = 4,
};

/* The arrays of a call on this rank, concatenated. */
struct arrays {
    size_t *all; /* [ARRAYS * ranks] */
    size_t bytes;
};

/* Return true if this rank reads the arrays: with a root, only the root has them. */
static bool is_read(const struct trib_comm *comm, trib_coll_t coll,
                    const trib_desc_t *d)
{
    return !trib_coll_has_root(coll) || d->root == comm->engine.rank;
}

static trib_status_t join(struct trib_comm *comm, trib_coll_t coll,
                          const trib_desc_t *d, struct arrays *out)
{
    const size_t *const given[ARRAYS] = {d->send_counts, d->send_offsets,
                                         d->recv_counts, d->recv_offsets};
    const size_t size = (size_t)comm->engine.ranks;

    assert(size > 0);
    out->bytes = (ARRAYS * size + 2) * sizeof(*out->all);
    out->all = calloc(1, out->bytes);
    if (!out->all)
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
    out->all[ARRAYS * size] = d->count;
    for (size_t i = 0; i < ARRAYS && is_read(comm, coll, d); i++) {
        if (!given[i])
            continue;
        out->all[ARRAYS * size + 1] |= (size_t)1 << i;
        memcpy(out->all + i * size, given[i], size * sizeof(*out->all));
    }
    return TRIB_OK;
}

/* Create a plan that keeps a copy of the arrays. */
static trib_status_t make(struct trib_comm *comm, const struct trib_call *call,
                          struct trib_plan **plan_out)
{
    const trib_coll_t coll = (trib_coll_t)((unsigned)call->key.coll & ~COUNTED);
    size_t *arrays = malloc(call->bytes);

    if (!arrays)
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
    const trib_status_t st = trib_plan_make(comm, coll, call->desc, false, plan_out);
    if (st != TRIB_OK) {
        free(arrays);
        return st;
    }
    struct trib_plan *plan = *plan_out;
    assert(plan->run.desc.blocks && !plan->counts);
    memcpy(arrays, call->counts, call->bytes);
    plan->identity.of_calls = true;
    plan->counts = arrays;
    return TRIB_OK;
}

/* Return the cached plan of the call, or create it. */
static trib_status_t find(struct trib_comm *comm, const struct trib_call *call,
                          struct trib_plan **plan_out)
{
    struct trib_plan_cache_entry *c = trib_plan_cache_find(comm, &call->key);

    if (!c->plan || !trib_plan_key_same(&c->key, &call->key) ||
        memcmp(c->plan->counts, call->counts, call->bytes) != 0) {
        const trib_status_t st = make(comm, call, plan_out);
        if (st != TRIB_OK)
            return st;
        trib_plan_destroy(c->plan);
        c->plan = *plan_out;
        c->key = call->key;
    }
    c->used = ++comm->clock;
    if (comm->newest == c)
        comm->newest = NULL;
    *plan_out = c->plan;
    return TRIB_OK;
}

static trib_status_t call(struct trib_comm *comm, trib_coll_t coll, trib_desc_t d,
                          const void *send, void *recv)
{
    struct arrays arrays;
    const size_t **needed = trib_coll_traits(coll) & TRIB_COLL_RECV_BLOCKS
                                ? &d.recv_counts
                                : &d.send_counts;

    assert(trib_coll_is_blocked(coll));
    if (!comm)
        return TRIB_ERR_INVALID;
    d.op = trib_coll_sums(coll) ? d.op : TRIB_SUM;
    if (!is_read(comm, coll, &d))
        *needed = &d.count;
    if (!*needed)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "%s with counts: the array of counts is NULL",
                              trib_coll_name(coll));
    trib_status_t st = join(comm, coll, &d, &arrays);
    if (st != TRIB_OK)
        return st;
    const struct trib_call one = {
        .key = {.coll = (trib_coll_t)((unsigned)coll | COUNTED),
                .dtype = d.dtype,
                .op = d.op,
                .root = d.root,
                .count = (size_t)trib_digest(arrays.all, arrays.bytes)},
        .counts = arrays.all,
        .bytes = arrays.bytes,
        .desc = &d,
        .make = make,
    };
    struct trib_plan *plan;
    if (comm->gate) {
        st = trib_call_shared(comm, &one, send, recv);
    } else {
        st = find(comm, &one, &plan);
        if (st == TRIB_OK)
            st = trib_plan_run(plan, send, recv);
    }
    free(arrays.all);
    return st;
}

trib_status_t trib_allgatherv(trib_comm_t *comm, const void *send, void *recv,
                              const size_t *counts, const size_t *offsets,
                              trib_dtype_t dtype)
{
    trib_desc_t d = TRIB_DESC_INIT;

    d.recv_counts = counts;
    d.recv_offsets = offsets;
    d.dtype = dtype;
    return call(comm, TRIB_ALLGATHER, d, send, recv);
}

trib_status_t trib_reduce_scatterv(trib_comm_t *comm, const void *send, void *recv,
                                   const size_t *counts, const size_t *offsets,
                                   trib_dtype_t dtype, trib_op_t op)
{
    trib_desc_t d = TRIB_DESC_INIT;

    d.send_counts = counts;
    d.send_offsets = offsets;
    d.dtype = dtype;
    d.op = op;
    return call(comm, TRIB_REDUCE_SCATTER, d, send, recv);
}

trib_status_t trib_gatherv(trib_comm_t *comm, const void *send, size_t count,
                           void *recv, const size_t *counts, const size_t *offsets,
                           trib_dtype_t dtype, int root)
{
    trib_desc_t d = TRIB_DESC_INIT;

    d.recv_counts = counts;
    d.recv_offsets = offsets;
    d.count = count;
    d.dtype = dtype;
    d.root = root;
    return call(comm, TRIB_GATHER, d, send, recv);
}

trib_status_t trib_scatterv(trib_comm_t *comm, const void *send, const size_t *counts,
                            const size_t *offsets, void *recv, size_t count,
                            trib_dtype_t dtype, int root)
{
    trib_desc_t d = TRIB_DESC_INIT;

    d.send_counts = counts;
    d.send_offsets = offsets;
    d.count = count;
    d.dtype = dtype;
    d.root = root;
    return call(comm, TRIB_SCATTER, d, send, recv);
}

trib_status_t trib_alltoallv(trib_comm_t *comm, const void *send,
                             const size_t *send_counts, const size_t *send_offsets,
                             void *recv, const size_t *recv_counts,
                             const size_t *recv_offsets, trib_dtype_t dtype)
{
    trib_desc_t d = TRIB_DESC_INIT;

    d.send_counts = send_counts;
    d.send_offsets = send_offsets;
    d.recv_counts = recv_counts;
    d.recv_offsets = recv_offsets;
    d.dtype = dtype;
    return call(comm, TRIB_ALLTOALL, d, send, recv);
}
