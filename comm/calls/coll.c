/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocking collectives; their plans are cached internally.
 */
#include "comm/calls/plan_cache.h"

#include <assert.h>

#include "comm/calls/named_plans.h"
#include "comm/calls/requests.h"
#include "comm/core/call_cache.h"
#include "comm/core/communicator.h"
#include "comm/core/gate.h"
#include "comm/plan/plan.h"
#include "comm/plan/plan_make.h"

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
    struct trib_plan_cache_entry *c = trib_plan_cache_find(comm, key);

    if (!c->plan || !trib_plan_key_same(&c->key, key)) {
        const trib_status_t st = make(comm, key, c);
        if (st != TRIB_OK)
            return st;
    }
    comm->newest = c;
    c->used = ++comm->clock;
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

/* Run a call that does not reuse the previous call's plan. With several threads no call
 * does: comm->newest stays NULL. The number of plans they need depends on timing, so
 * they run on this communicator's own engine: tribd numbers plans in creation order. */
static trib_status_t call_other(struct trib_comm *comm, const struct trib_plan_key *key,
                                const void *send, void *recv)
{
    struct trib_plan *plan;

    if (comm->gate)
        return trib_call_shared(comm, &(struct trib_call){.key = *key, .own = true},
                                send, recv);
    const trib_status_t st = lookup(comm, key, &plan);
    return st == TRIB_OK ? trib_plan_run(plan, send, recv) : st;
}

static trib_status_t call(struct trib_comm *comm, struct trib_plan_key key,
                          const void *send, void *recv)
{
    if (!comm)
        return TRIB_ERR_INVALID;
    const struct trib_plan_cache_entry *c = comm->newest;
    return c && c->plan && trib_plan_key_same(&c->key, &key)
               ? trib_plan_run(c->plan, send, recv)
               : call_other(comm, &key, send, recv);
}

trib_status_t trib_allreduce(trib_comm_t *comm, const void *send, void *recv,
                             size_t count, trib_dtype_t dtype, trib_op_t op)
{
    return call(comm, trib_plan_key_of(TRIB_ALLREDUCE, count, dtype, op, 0), send,
                recv);
}

trib_status_t trib_reduce(trib_comm_t *comm, const void *send, void *recv, size_t count,
                          trib_dtype_t dtype, trib_op_t op, int root)
{
    return call(comm, trib_plan_key_of(TRIB_REDUCE, count, dtype, op, root), send,
                recv);
}

trib_status_t trib_broadcast(trib_comm_t *comm, void *buffer, size_t count,
                             trib_dtype_t dtype, int root)
{
    return call(comm, trib_plan_key_of(TRIB_BROADCAST, count, dtype, TRIB_SUM, root),
                NULL, buffer);
}

trib_status_t trib_allgather(trib_comm_t *comm, const void *send, void *recv,
                             size_t count, trib_dtype_t dtype)
{
    return call(comm, trib_plan_key_of(TRIB_ALLGATHER, count, dtype, TRIB_SUM, 0), send,
                recv);
}

trib_status_t trib_reduce_scatter(trib_comm_t *comm, const void *send, void *recv,
                                  size_t count, trib_dtype_t dtype, trib_op_t op)
{
    return call(comm, trib_plan_key_of(TRIB_REDUCE_SCATTER, count, dtype, op, 0), send,
                recv);
}

trib_status_t trib_gather(trib_comm_t *comm, const void *send, void *recv, size_t count,
                          trib_dtype_t dtype, int root)
{
    return call(comm, trib_plan_key_of(TRIB_GATHER, count, dtype, TRIB_SUM, root), send,
                recv);
}

trib_status_t trib_scatter(trib_comm_t *comm, const void *send, void *recv,
                           size_t count, trib_dtype_t dtype, int root)
{
    return call(comm, trib_plan_key_of(TRIB_SCATTER, count, dtype, TRIB_SUM, root),
                send, recv);
}

trib_status_t trib_alltoall(trib_comm_t *comm, const void *send, void *recv,
                            size_t count, trib_dtype_t dtype)
{
    return call(comm, trib_plan_key_of(TRIB_ALLTOALL, count, dtype, TRIB_SUM, 0), send,
                recv);
}

trib_status_t trib_scan(trib_comm_t *comm, const void *send, void *recv, size_t count,
                        trib_dtype_t dtype, trib_op_t op)
{
    return call(comm, trib_plan_key_of(TRIB_SCAN, count, dtype, op, 0), send, recv);
}

trib_status_t trib_exscan(trib_comm_t *comm, const void *send, void *recv, size_t count,
                          trib_dtype_t dtype, trib_op_t op)
{
    return call(comm, trib_plan_key_of(TRIB_EXSCAN, count, dtype, op, 0), send, recv);
}

trib_status_t trib_barrier(trib_comm_t *comm)
{
    return call(comm, trib_plan_key_of(TRIB_BARRIER, 0, TRIB_I8, TRIB_SUM, 0), NULL,
                NULL);
}
