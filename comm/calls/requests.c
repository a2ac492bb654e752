/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-shot non-blocking calls. A request is a plan that was started once. Freeing a
 * request makes it idle, and the next call with the same key reuses it.
 */
#include "comm/calls/requests.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <tributary/request.h>

#include "base/text.h"
#include "collectives/collectives.h"
#include "comm/auto/plan_auto.h"
#include "comm/core/call_cache.h"
#include "comm/core/communicator.h"
#include "comm/core/gate.h"
#include "comm/core/plan_struct.h"
#include "comm/kinds/plan_message.h"
#include "comm/plan/configured.h"
#include "comm/plan/plan.h"
#include "comm/plan/plan_make.h"

enum { IDLE_MOST = 64 };

struct trib_request {
    struct trib_plan_key key;
    bool own; /* run by the communicator's own engine */
    struct trib_plan *plan;
    struct trib_request *next; /* in the list of idle requests, newest first */
};

static void destroy(struct trib_request *r)
{
    trib_plan_destroy(r->plan);
    free(r);
}

void trib_requests_clear(struct trib_comm *comm)
{
    trib_plan_messages_clear(comm);
    while (comm->idle_requests) {
        struct trib_request *r = comm->idle_requests;
        comm->idle_requests = r->next;
        destroy(r);
    }
}

/* Plans of unnamed calls keep no per-vector state, so each call may pass another
 * vector, and ranks may evict plans in different orders. */
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
    st = trib_plan_make_coded(comm, key->coll, &desc, own, plan_out);
    assert(st != TRIB_OK || *plan_out);
    if (st == TRIB_OK)
        (*plan_out)->identity.of_calls = true;
    return st;
}

/* Remove and return an idle request with this key and these count arrays, or NULL. */
static struct trib_request *take_idle(struct trib_comm *comm,
                                      const struct trib_call *call)
{
    struct trib_request **at = &comm->idle_requests;

    while (*at &&
           !((*at)->own == call->own && trib_plan_key_same(&(*at)->key, &call->key) &&
             (!call->counts ||
              memcmp((*at)->plan->counts, call->counts, call->bytes) == 0)))
        at = &(*at)->next;
    struct trib_request *r = *at;
    if (r)
        *at = r->next;
    return r;
}

/* Keep the request for the next call, and evict the one that has been idle longest if
 * the list is full. */
static void put_idle(struct trib_comm *comm, struct trib_request *r)
{
    struct trib_request **at = &comm->idle_requests;

    assert(r->plan->comm == comm);
    r->next = comm->idle_requests;
    comm->idle_requests = r;
    for (int i = 0; i < IDLE_MOST && *at; i++)
        at = &(*at)->next;
    if (*at) {
        assert(!(*at)->next);
        destroy(*at);
        *at = NULL;
    }
}

static trib_status_t make(struct trib_comm *comm, const struct trib_call *call,
                          struct trib_request **out)
{
    struct trib_request *r = calloc(1, sizeof(*r));

    if (!r)
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a request");
    r->key = call->key;
    r->own = call->own;
    const trib_status_t st =
        call->counts ? call->make(comm, call, &r->plan)
                     : trib_plan_make_for_call(comm, &call->key, call->own, &r->plan);
    if (st != TRIB_OK)
        free(r);
    else
        *out = r;
    return st;
}

/* Start a request of this call that no other thread uses. */
static trib_status_t begin(struct trib_comm *comm, const struct trib_call *call,
                           const void *send, void *recv, struct trib_request **out)
{
    trib_gate_enter(comm);
    struct trib_request *r = take_idle(comm, call);
    trib_status_t st = r ? TRIB_OK : make(comm, call, &r);
    trib_gate_leave(comm);
    if (st != TRIB_OK)
        return st;
    st = trib_plan_start_with(r->plan, send, recv);
    if (st == TRIB_OK) {
        *out = r;
        return TRIB_OK;
    }
    trib_gate_enter(comm);
    put_idle(comm, r);
    trib_gate_leave(comm);
    return st;
}

trib_status_t trib_call_shared(struct trib_comm *comm, const struct trib_call *call,
                               const void *send, void *recv)
{
    struct trib_request *r;
    trib_status_t st = begin(comm, call, send, recv, &r);

    assert(comm->gate);
    if (st != TRIB_OK)
        return st;
    st = trib_plan_wait(r->plan);
    if (st == TRIB_OK || trib_plan_release(r->plan, "plan", "keeping it") == TRIB_OK) {
        trib_gate_enter(comm);
        put_idle(comm, r);
        trib_gate_leave(comm);
    }
    return st;
}

static trib_status_t call(struct trib_comm *comm, struct trib_plan_key key,
                          const void *send, void *recv, trib_request_t **request_out)
{
    if (request_out)
        *request_out = NULL;
    if (!comm)
        return TRIB_ERR_INVALID;
    if (!request_out)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "a non-blocking %s needs request_out, and it is NULL",
                              trib_coll_name(key.coll));
    const struct trib_call one = {.key = key, .own = true};
    trib_status_t st = begin(comm, &one, send, recv, request_out);
    if (st != TRIB_OK)
        return st;
    trib_gate_enter(comm);
    comm->n_requests++;
    trib_gate_leave(comm);
    return TRIB_OK;
}

trib_status_t trib_iallreduce(trib_comm_t *comm, const void *send, void *recv,
                              size_t count, trib_dtype_t dtype, trib_op_t op,
                              trib_request_t **request_out)
{
    return call(comm, trib_plan_key_of(TRIB_ALLREDUCE, count, dtype, op, 0), send, recv,
                request_out);
}

trib_status_t trib_ireduce(trib_comm_t *comm, const void *send, void *recv,
                           size_t count, trib_dtype_t dtype, trib_op_t op, int root,
                           trib_request_t **request_out)
{
    return call(comm, trib_plan_key_of(TRIB_REDUCE, count, dtype, op, root), send, recv,
                request_out);
}

trib_status_t trib_ibroadcast(trib_comm_t *comm, void *buffer, size_t count,
                              trib_dtype_t dtype, int root,
                              trib_request_t **request_out)
{
    return call(comm, trib_plan_key_of(TRIB_BROADCAST, count, dtype, TRIB_SUM, root),
                NULL, buffer, request_out);
}

trib_status_t trib_iallgather(trib_comm_t *comm, const void *send, void *recv,
                              size_t count, trib_dtype_t dtype,
                              trib_request_t **request_out)
{
    return call(comm, trib_plan_key_of(TRIB_ALLGATHER, count, dtype, TRIB_SUM, 0), send,
                recv, request_out);
}

trib_status_t trib_ireduce_scatter(trib_comm_t *comm, const void *send, void *recv,
                                   size_t count, trib_dtype_t dtype, trib_op_t op,
                                   trib_request_t **request_out)
{
    return call(comm, trib_plan_key_of(TRIB_REDUCE_SCATTER, count, dtype, op, 0), send,
                recv, request_out);
}

trib_status_t trib_ibarrier(trib_comm_t *comm, trib_request_t **request_out)
{
    return call(comm, trib_plan_key_of(TRIB_BARRIER, 0, TRIB_I8, TRIB_SUM, 0), NULL,
                NULL, request_out);
}

/* Return the message's request, which stays with its plan; NULL: out of memory. */
static struct trib_request *request_of(struct trib_plan *plan)
{
    struct trib_plan_message *m = trib_plan_message_of(plan);

    if (!m->handle)
        m->handle = calloc(1, sizeof(*m->handle));
    if (m->handle)
        m->handle->plan = plan;
    return m->handle;
}

static trib_status_t begin_message(struct trib_comm *comm,
                                   const struct trib_message_args *a,
                                   trib_request_t **request_out)
{
    if (request_out)
        *request_out = NULL;
    if (!comm)
        return TRIB_ERR_INVALID;
    if (!request_out)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "%s needs request_out, and it is NULL", a->call);
    struct trib_plan *plan;
    trib_status_t st = trib_plan_message_take(comm, a, &plan);
    if (st != TRIB_OK)
        return st;
    struct trib_request *r = request_of(plan);
    st = r ? plan->ops->start(plan, a->buffer, (void *)(uintptr_t)a->buffer)
           : trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a request");
    if (st != TRIB_OK) {
        trib_plan_message_give(plan);
        return st;
    }
    trib_gate_enter(comm);
    comm->n_requests++;
    trib_gate_leave(comm);
    *request_out = r;
    return TRIB_OK;
}

trib_status_t trib_isend(trib_comm_t *comm, const void *buffer, size_t count,
                         trib_dtype_t dtype, int to, int tag,
                         trib_request_t **request_out)
{
    return begin_message(
        comm,
        &(struct trib_message_args){"trib_isend", true, buffer, count, dtype, to, tag},
        request_out);
}

trib_status_t trib_irecv(trib_comm_t *comm, void *buffer, size_t count,
                         trib_dtype_t dtype, int from, int tag,
                         trib_request_t **request_out)
{
    return begin_message(comm,
                         &(struct trib_message_args){"trib_irecv", false, buffer, count,
                                                     dtype, from, tag},
                         request_out);
}

trib_status_t trib_request_test(trib_request_t *request)
{
    return request ? trib_plan_test(request->plan) : TRIB_ERR_INVALID;
}

trib_status_t trib_request_wait(trib_request_t *request)
{
    return request ? trib_plan_wait(request->plan) : TRIB_ERR_INVALID;
}

trib_status_t trib_request_free(trib_request_t *request)
{
    if (!request)
        return TRIB_OK;
    struct trib_comm *comm = request->plan->comm;
    const trib_status_t st =
        trib_plan_release(request->plan, "request", "trib_request_free");
    if (st != TRIB_OK)
        return st;
    trib_gate_enter(comm);
    assert(comm->n_requests > 0);
    comm->n_requests--;
    if (trib_plan_message_of(request->plan)) {
        trib_plan_message_give(request->plan);
    } else {
        put_idle(comm, request);
    }
    trib_gate_leave(comm);
    return TRIB_OK;
}
