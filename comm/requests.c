/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-shot non-blocking calls. A request is a plan that was started once. When it is
 * freed it becomes idle, and the next call with the same key starts it again.
 */
#include <assert.h>
#include <stdlib.h>

#include <tributary/request.h>

#include "comm/communicator.h"
#include "comm/configured.h"
#include "comm/plan_message.h"

enum { IDLE_MOST = 64 };

struct trib_request {
    struct trib_plan_key key;
    struct trib_plan *plan;
    struct trib_request *next; /* of the idle requests, the newest first */
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

/* Take an idle request with this key out of the list, or return NULL. */
static struct trib_request *take_idle(struct trib_comm *comm,
                                      const struct trib_plan_key *key)
{
    struct trib_request **at = &comm->idle_requests;

    while (*at && !trib_plan_key_same(&(*at)->key, key))
        at = &(*at)->next;
    struct trib_request *r = *at;
    if (r)
        *at = r->next;
    return r;
}

/* Keep it for the next call, in the place of the one that has been idle for longest. */
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

static trib_status_t make(struct trib_comm *comm, const struct trib_plan_key *key,
                          struct trib_request **out)
{
    struct trib_request *r = calloc(1, sizeof(*r));

    if (!r)
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a request");
    r->key = *key;
    const trib_status_t st = trib_plan_make_for_call(comm, key, true, &r->plan);
    if (st != TRIB_OK)
        free(r);
    else
        *out = r;
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
                              "a non-blocking %s needs a place for its request, "
                              "request_out is NULL",
                              trib_coll_name(key.coll));
    struct trib_request *r = take_idle(comm, &key);
    trib_status_t st = r ? TRIB_OK : make(comm, &key, &r);
    if (st != TRIB_OK)
        return st;
    st = trib_plan_start_with(r->plan, send, recv);
    if (st != TRIB_OK) {
        put_idle(comm, r);
        return st;
    }
    comm->n_requests++;
    *request_out = r;
    return TRIB_OK;
}

trib_status_t trib_iallreduce(trib_comm_t *comm, const void *send, void *recv,
                              size_t count, trib_dtype_t dtype, trib_op_t op,
                              trib_request_t **request_out)
{
    return call(comm,
                (struct trib_plan_key){
                    .coll = TRIB_ALLREDUCE, .dtype = dtype, .op = op, .count = count},
                send, recv, request_out);
}

trib_status_t trib_ireduce(trib_comm_t *comm, const void *send, void *recv,
                           size_t count, trib_dtype_t dtype, trib_op_t op, int root,
                           trib_request_t **request_out)
{
    return call(comm,
                (struct trib_plan_key){.coll = TRIB_REDUCE,
                                       .dtype = dtype,
                                       .op = op,
                                       .count = count,
                                       .root = root},
                send, recv, request_out);
}

trib_status_t trib_ibroadcast(trib_comm_t *comm, void *buffer, size_t count,
                              trib_dtype_t dtype, int root,
                              trib_request_t **request_out)
{
    return call(
        comm,
        (struct trib_plan_key){
            .coll = TRIB_BROADCAST, .dtype = dtype, .count = count, .root = root},
        NULL, buffer, request_out);
}

trib_status_t trib_iallgather(trib_comm_t *comm, const void *send, void *recv,
                              size_t count, trib_dtype_t dtype,
                              trib_request_t **request_out)
{
    return call(
        comm,
        (struct trib_plan_key){.coll = TRIB_ALLGATHER, .dtype = dtype, .count = count},
        send, recv, request_out);
}

trib_status_t trib_ireduce_scatter(trib_comm_t *comm, const void *send, void *recv,
                                   size_t count, trib_dtype_t dtype, trib_op_t op,
                                   trib_request_t **request_out)
{
    return call(
        comm,
        (struct trib_plan_key){
            .coll = TRIB_REDUCE_SCATTER, .dtype = dtype, .op = op, .count = count},
        send, recv, request_out);
}

trib_status_t trib_ibarrier(trib_comm_t *comm, trib_request_t **request_out)
{
    return call(comm, (struct trib_plan_key){.coll = TRIB_BARRIER, .dtype = TRIB_I8},
                NULL, NULL, request_out);
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
                              "%s needs a place for its request, request_out is NULL",
                              a->call);
    struct trib_request *r = calloc(1, sizeof(*r));
    if (!r)
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a request");
    trib_status_t st = trib_plan_message_take(comm, a, &r->plan);
    if (st == TRIB_OK) {
        st = r->plan->ops->start(r->plan, a->buffer, (void *)(uintptr_t)a->buffer);
        if (st != TRIB_OK)
            trib_plan_message_give(r->plan);
    }
    if (st != TRIB_OK) {
        free(r);
        return st;
    }
    comm->n_requests++;
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
    assert(comm->n_requests > 0);
    comm->n_requests--;
    if (request->plan->message) {
        trib_plan_message_give(request->plan);
        free(request);
    } else {
        put_idle(comm, request);
    }
    return TRIB_OK;
}
