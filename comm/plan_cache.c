/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cache of plans behind the blocking calls, and these calls.
 */
#include <assert.h>

#include "base/text.h"
#include "collectives/collectives.h"
#include "comm/communicator.h"
#include "comm/configured.h"

struct trib_plan_cache_entry *trib_plan_cache_find(struct trib_comm *comm,
                                                   const struct trib_plan_key *key)
{
    struct trib_plan_cache_entry *oldest = &comm->cache[0];

    for (int i = 0; i < TRIB_PLAN_CACHE; i++) {
        struct trib_plan_cache_entry *c = &comm->cache[i];
        if (c->plan && trib_plan_key_same(&c->key, key))
            return c;
        if (c->used < oldest->used)
            oldest = c;
    }
    return oldest;
}

/* A plan of a call keeps no state of a vector, so each call may pass another vector,
 * and ranks may evict plans in different orders. */
trib_status_t trib_plan_make_for_call(struct trib_comm *comm,
                                      const struct trib_plan_key *key, bool own,
                                      struct trib_plan **plan_out)
{
    const struct trib_algo *algo = trib_algo_find(comm->cfg.algorithm);
    trib_desc_t desc = TRIB_DESC_INIT;

    if (own && algo && algo->aggregators)
        desc.algorithm = TRIB_AUTO;
    desc.count = key->count;
    desc.dtype = key->dtype;
    desc.op = key->op;
    desc.root = key->root;
    trib_status_t st = trib_configured_call(comm, key->coll, &desc);
    if (st != TRIB_OK)
        return st;
    st = own ? trib_plan_make_own(comm, key->coll, &desc, plan_out)
             : trib_plan_make(comm, key->coll, &desc, false, plan_out);
    assert(st != TRIB_OK || *plan_out);
    if (st == TRIB_OK)
        (*plan_out)->identity.of_calls = true;
    return st;
}

static trib_status_t make(struct trib_comm *comm, const struct trib_plan_key *key,
                          struct trib_plan_cache_entry *c)
{
    struct trib_plan *plan;
    const trib_status_t st = trib_plan_make_for_call(comm, key, false, &plan);

    if (st != TRIB_OK)
        return st;
    trib_plan_destroy(c->plan);
    c->plan = plan;
    c->key = *key;
    return TRIB_OK;
}

static trib_status_t lookup(struct trib_comm *comm, const struct trib_plan_key *key,
                            struct trib_plan **plan_out)
{
    struct trib_plan_cache_entry *c = comm->newest;

    if (!c || !c->plan || !trib_plan_key_same(&c->key, key)) {
        c = trib_plan_cache_find(comm, key);
        if (!c->plan || !trib_plan_key_same(&c->key, key)) {
            const trib_status_t st = make(comm, key, c);
            if (st != TRIB_OK)
                return st;
        }
        comm->newest = c;
        c->used = ++comm->clock;
    }
    *plan_out = c->plan;
    return TRIB_OK;
}

void trib_plan_cache_clear(struct trib_comm *comm)
{
    for (int i = 0; i < TRIB_PLAN_CACHE; i++) {
        trib_plan_destroy(comm->cache[i].plan);
        comm->cache[i].plan = NULL;
    }
    comm->newest = NULL;
    trib_named_plans_clear(comm);
}

static trib_status_t call(struct trib_comm *comm, struct trib_plan_key key,
                          const void *send, void *recv)
{
    struct trib_plan *plan;

    if (!comm)
        return TRIB_ERR_INVALID;
    trib_status_t st = lookup(comm, &key, &plan);
    return st == TRIB_OK ? trib_plan_run(plan, send, recv) : st;
}

trib_status_t trib_allreduce(trib_comm_t *comm, const void *send, void *recv,
                             size_t count, trib_dtype_t dtype, trib_op_t op)
{
    return call(comm,
                (struct trib_plan_key){
                    .coll = TRIB_ALLREDUCE, .dtype = dtype, .op = op, .count = count},
                send, recv);
}

trib_status_t trib_reduce(trib_comm_t *comm, const void *send, void *recv, size_t count,
                          trib_dtype_t dtype, trib_op_t op, int root)
{
    return call(comm,
                (struct trib_plan_key){.coll = TRIB_REDUCE,
                                       .dtype = dtype,
                                       .op = op,
                                       .count = count,
                                       .root = root},
                send, recv);
}

trib_status_t trib_broadcast(trib_comm_t *comm, void *buffer, size_t count,
                             trib_dtype_t dtype, int root)
{
    return call(comm,
                (struct trib_plan_key){.coll = TRIB_BROADCAST,
                                       .dtype = dtype,
                                       .count = count,
                                       .root = root},
                NULL, buffer);
}

trib_status_t trib_allgather(trib_comm_t *comm, const void *send, void *recv,
                             size_t count, trib_dtype_t dtype)
{
    return call(
        comm,
        (struct trib_plan_key){.coll = TRIB_ALLGATHER, .dtype = dtype, .count = count},
        send, recv);
}

trib_status_t trib_reduce_scatter(trib_comm_t *comm, const void *send, void *recv,
                                  size_t count, trib_dtype_t dtype, trib_op_t op)
{
    return call(comm,
                (struct trib_plan_key){.coll = TRIB_REDUCE_SCATTER,
                                       .dtype = dtype,
                                       .op = op,
                                       .count = count},
                send, recv);
}

trib_status_t trib_gather(trib_comm_t *comm, const void *send, void *recv, size_t count,
                          trib_dtype_t dtype, int root)
{
    return call(comm,
                (struct trib_plan_key){
                    .coll = TRIB_GATHER, .dtype = dtype, .count = count, .root = root},
                send, recv);
}

trib_status_t trib_scatter(trib_comm_t *comm, const void *send, void *recv,
                           size_t count, trib_dtype_t dtype, int root)
{
    return call(comm,
                (struct trib_plan_key){
                    .coll = TRIB_SCATTER, .dtype = dtype, .count = count, .root = root},
                send, recv);
}

trib_status_t trib_alltoall(trib_comm_t *comm, const void *send, void *recv,
                            size_t count, trib_dtype_t dtype)
{
    return call(
        comm,
        (struct trib_plan_key){.coll = TRIB_ALLTOALL, .dtype = dtype, .count = count},
        send, recv);
}

trib_status_t trib_scan(trib_comm_t *comm, const void *send, void *recv, size_t count,
                        trib_dtype_t dtype, trib_op_t op)
{
    return call(comm,
                (struct trib_plan_key){
                    .coll = TRIB_SCAN, .dtype = dtype, .op = op, .count = count},
                send, recv);
}

trib_status_t trib_exscan(trib_comm_t *comm, const void *send, void *recv, size_t count,
                          trib_dtype_t dtype, trib_op_t op)
{
    return call(comm,
                (struct trib_plan_key){
                    .coll = TRIB_EXSCAN, .dtype = dtype, .op = op, .count = count},
                send, recv);
}

trib_status_t trib_barrier(trib_comm_t *comm)
{
    return call(comm, (struct trib_plan_key){.coll = TRIB_BARRIER, .dtype = TRIB_I8},
                NULL, NULL);
}
