/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The blocking calls: look the plan up, run it here.
 */
#include "core/quorum.h"
#include "core/service.h"

static bool same_key(const struct trib_plan_key *a, const struct trib_plan_key *b)
{
    return a->count == b->count && a->coll == b->coll && a->dtype == b->dtype &&
           a->op == b->op && a->root == b->root && a->vector == b->vector;
}

static struct trib_cached_plan *find(struct trib_comm *comm,
                                     const struct trib_plan_key *key)
{
    struct trib_cached_plan *oldest = &comm->cache[0];

    for (int i = 0; i < TRIB_PLAN_CACHE; i++) {
        struct trib_cached_plan *c = &comm->cache[i];
        if (c->plan && same_key(&c->key, key))
            return c;
        if (c->used < oldest->used)
            oldest = c;
    }
    return oldest;
}

/* A plan with error feedback goes with what it held back. */
static void evict(struct trib_comm *comm, struct trib_cached_plan *c)
{
    struct trib_served *served = c->plan ? c->plan->served : NULL;
    const struct trib_run *run = served    ? &trib_served_plan(served)->run
                                 : c->plan ? &c->plan->run
                                           : NULL;

    if (run && (run->residual || run->feedback.momentum || run->feedback.own) &&
        !comm->residual_lost) {
        comm->residual_lost = true;
        trib_log(&comm->log, TRIB_LOG_WARN, "codec",
                 "more than %d vectors are summed by blocking calls with codec %s: what "
                 "it held back of the oldest is dropped (use plans)",
                 TRIB_PLAN_CACHE, comm->cfg.codec);
    }
    trib_plan_destroy(c->plan);
    c->plan = NULL;
}

static trib_status_t lookup(struct trib_comm *comm, const struct trib_plan_key *key,
                            struct trib_plan **plan_out)
{
    struct trib_cached_plan *c = comm->newest;

    if (!c || !c->plan || !same_key(&c->key, key)) {
        c = find(comm, key);
        if (!c->plan || !same_key(&c->key, key)) {
            trib_desc_t desc = TRIB_DESC_INIT;
            desc.count = key->count;
            desc.dtype = key->dtype;
            desc.op = key->op;
            desc.root = key->root;
            evict(comm, c);
            c->key = *key;
            trib_status_t st = trib_plan_make(comm, key->coll, &desc, false, &c->plan);
            if (st != TRIB_OK)
                return st;
        }
        comm->newest = c;
        c->used = ++comm->clock;
    }
    *plan_out = c->plan;
    return TRIB_OK;
}

void trib_cache_clear(struct trib_comm *comm)
{
    for (int i = 0; i < TRIB_PLAN_CACHE; i++) {
        trib_plan_destroy(comm->cache[i].plan);
        comm->cache[i].plan = NULL;
    }
    comm->newest = NULL;
}

static trib_status_t call(struct trib_comm *comm, struct trib_plan_key key,
                          const void *send, void *recv)
{
    struct trib_plan *plan;

    if (!comm)
        return TRIB_ERR_INVALID;
    /* What has memory, of a codec or for late ranks, needs a residual for each vector. */
    if (comm->coded || trib_quorum_configured(comm))
        key.vector = recv ? recv : send;
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

trib_status_t trib_barrier(trib_comm_t *comm)
{
    return call(comm, (struct trib_plan_key){.coll = TRIB_BARRIER, .dtype = TRIB_I8},
                NULL, NULL);
}
