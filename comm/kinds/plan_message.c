/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public calls of messages, except those with a request: tributary/send.h.
 */
#include "comm/kinds/plan_message.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include <tributary/send.h>

#include "comm/core/comm_lock.h"
#include "comm/core/communicator.h"
#include "comm/core/gate.h"
#include "comm/core/plan_struct.h"
#include "comm/core/progress_thread.h"
#include "comm/plan/plan_make.h"

const struct trib_plan_kind trib_plan_message_kind = {.name = "message"};

static void say(const struct trib_plan *plan, char *text, size_t bytes)
{
    trib_p2p_say(&trib_plan_message_of(plan)->request, text, bytes);
}

static trib_status_t check(struct trib_comm *comm, const struct trib_message_args *a,
                           size_t *bytes_out)
{
    const int size = comm->engine.ranks;

    if (!trib_dtype_size(a->dtype))
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "%s: dtype %d does not exist",
                              a->call, (int)a->dtype);
    if (a->peer < 0 || a->peer >= size)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "%s %s rank %d: the communicator has ranks 0 to %d",
                              a->call, a->sends ? "to" : "from", a->peer, size - 1);
    if (a->tag < 0)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "%s with tag %d: tags are 0 or more", a->call, a->tag);
    if (!trib_message_bytes(a->count, a->dtype, bytes_out))
        return trib_comm_fail(comm, TRIB_ERR_OVERFLOW,
                              "%s of %zu %s exceeds the address space", a->call,
                              a->count, trib_dtype_name(a->dtype));
    return TRIB_OK;
}

/* Connect to the peer and allocate the memory shared with it, if not done yet; with the
 * lock held. */
static trib_status_t open_peer(struct trib_comm *comm, int peer, const char *call)
{
    struct trib_engine *e = &comm->engine;
    trib_status_t st = TRIB_OK;

    trib_error_clear(&comm->cause);
    if (peer != e->rank)
        st = trib_engine_reach(e, peer, call);
    return st == TRIB_OK ? trib_p2p_open(e, peer) : st;
}

/* ---- table of operations --------------------------------------------------------- */

/* Start the request; with the lock held. */
static void launch(struct trib_plan *plan, const void *send, void *recv)
{
    struct trib_p2p_request *r = &trib_plan_message_of(plan)->request;
    struct trib_engine *e = &plan->comm->engine;

    r->buffer = r->sends ? (uint8_t *)(uintptr_t)send : recv;
    plan->starts++;
    trib_p2p_start(e, r);
    if (e->failed)
        (void)trib_engine_end(e);
}

static trib_status_t check_buffer(struct trib_plan *plan, const void *send, void *recv)
{
    const struct trib_p2p_request *r = &trib_plan_message_of(plan)->request;
    char what[160];

    if (!r->bytes || (r->sends ? send : recv))
        return TRIB_OK;
    say(plan, what, sizeof(what));
    return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                          "%s: its buffer is NULL: pass one to trib_plan_%s, or as %s "
                          "to trib_plan_start_with",
                          what, r->sends ? "send" : "recv", r->sends ? "send" : "recv");
}

static bool is_done(const struct trib_plan *plan)
{
    return atomic_load_explicit(&plan->run.now.state, memory_order_acquire) ==
           TRIB_RUN_DONE;
}

static trib_status_t run_message(struct trib_plan *plan, const void *send, void *recv)
{
    struct trib_comm *comm = plan->comm;
    trib_status_t st = check_buffer(plan, send, recv);

    if (st != TRIB_OK)
        return st;
    trib_comm_lock(comm);
    launch(plan, send, recv);
    st = is_done(plan) ? plan->run.now.status
                       : comm->engine.wait(&comm->engine, &plan->run);
    trib_comm_unlock(comm);
    return st;
}

static trib_status_t start_message(struct trib_plan *plan, const void *send, void *recv)
{
    struct trib_comm *comm = plan->comm;
    trib_status_t st = check_buffer(plan, send, recv);

    if (st != TRIB_OK)
        return st;
    trib_comm_lock(comm);
    if (!comm->progress_thread.running)
        st = trib_progress_thread_start(comm);
    if (st == TRIB_OK)
        launch(plan, send, recv);
    if (st == TRIB_OK && !is_done(plan)) {
        st = trib_progress_thread_start(comm); /* wakes the running thread */
        trib_engine_awake(&comm->engine);
        /* Do not progress a receive here: it would read a long message that has already
         * arrived before the caller starts what its own peers wait for. */
        if (trib_plan_message_of(plan)->request.sends)
            (void)trib_engine_progress(&comm->engine);
    }
    trib_comm_unlock(comm);
    return st;
}

static trib_status_t explain(const struct trib_plan *plan, char *text, size_t bytes)
{
    const struct trib_p2p_request *r = &trib_plan_message_of(plan)->request;
    char what[160];

    say(plan, what, sizeof(what));
    snprintf(text, bytes, "%s\npath       %s\nmessages   %u so far\n", what,
             r->peer == plan->comm->engine.rank ? "a copy within this rank"
             : r->bytes <= TRIB_SEND_SHORT      ? "with its header"
             : plan->comm->engine.links[r->peer].mapped
                 ? "announced, read from the sender's memory if possible, else in "
                   "parts through slots"
                 : "announced, in parts through slots",
             plan->starts);
    return TRIB_OK;
}

static void awaits(const struct trib_plan *plan, char *text, size_t bytes)
{
    const struct trib_p2p_request *r = &trib_plan_message_of(plan)->request;
    char who[128];

    trib_engine_name_rank(&plan->comm->engine, r->peer, who, sizeof(who));
    snprintf(text, bytes, "the %s of %s", r->sends ? "receive" : "send", who);
}

static trib_status_t keeps_nothing(struct trib_plan *plan)
{
    return trib_comm_fail(
        plan->comm, TRIB_ERR_UNSUPPORTED,
        "a plan of messages or neighbours keeps no state between starts");
}

static trib_status_t no_save(struct trib_plan *plan, void *state, size_t bytes,
                             size_t *bytes_out)
{
    (void)state, (void)bytes, (void)bytes_out;
    return keeps_nothing(plan);
}

static trib_status_t no_load(struct trib_plan *plan, const void *state, size_t bytes)
{
    (void)state, (void)bytes;
    return keeps_nothing(plan);
}

static trib_status_t no_sent(struct trib_plan *plan, const unsigned char **mask_out,
                             size_t *sent_out)
{
    (void)mask_out, (void)sent_out;
    return keeps_nothing(plan);
}

void trib_plan_message_keep_nothing(struct trib_plan_ops *ops)
{
    ops->state_save = no_save;
    ops->state_load = no_load;
    ops->sent = no_sent;
}

static void destroy(struct trib_plan *plan)
{
    assert(trib_plan_message_of(plan) && plan->ops);
    free(trib_plan_message_of(plan)->handle);
    free(plan->of_kind);
    plan->of_kind = NULL;
}

/* ---- creation -------------------------------------------------------------------- */

static struct trib_plan *make_empty(struct trib_comm *comm)
{
    struct trib_plan *plan = calloc(1, sizeof(*plan));
    struct trib_plan_message *m = plan ? calloc(1, sizeof(*m)) : NULL;

    if (!m) {
        free(plan);
        return NULL;
    }
    m->ops = trib_plan_own_ops;
    m->ops.run = run_message;
    m->ops.start = start_message;
    m->ops.explain = explain;
    m->ops.awaits = awaits;
    trib_plan_message_keep_nothing(&m->ops);
    m->ops.destroy = destroy;
    plan->ops = &m->ops;
    plan->comm = comm;
    plan->kind = &trib_plan_message_kind;
    plan->of_kind = m;
    return plan;
}

/* Set the arguments of an empty or reused plan. */
static void describe(struct trib_plan *plan, const struct trib_message_args *a,
                     size_t bytes)
{
    assert(trib_plan_message_of(plan) && plan->run.now.state != TRIB_RUN_ACTIVE);
    plan->run.desc.count = a->count;
    plan->run.desc.element = trib_dtype_size(a->dtype);
    plan->run.desc.op.dtype = a->dtype;
    trib_plan_message_of(plan)->request = (struct trib_p2p_request){.sends = a->sends,
                                                                    .peer = a->peer,
                                                                    .tag = a->tag,
                                                                    .dtype = a->dtype,
                                                                    .count = a->count,
                                                                    .bytes = bytes,
                                                                    .run = &plan->run};
}

static trib_status_t take(struct trib_comm *comm, const struct trib_message_args *args,
                          struct trib_plan **plan_out)
{
    size_t bytes = 0;

    if (comm->engine.failed)
        return comm->engine.failed;
    trib_status_t st = trib_comm_ours(comm, args->call);
    if (st == TRIB_OK)
        st = check(comm, args, &bytes);
    if (st != TRIB_OK)
        return st;
    trib_comm_lock(comm);
    st = open_peer(comm, args->peer, args->call);
    trib_comm_unlock(comm);
    if (st != TRIB_OK)
        return trib_comm_fail(comm, st, "%s: %s", args->call,
                              trib_comm_cause(comm, st));
    struct trib_plan *plan = comm->idle_messages;
    if (plan)
        comm->idle_messages = trib_plan_message_of(plan)->next;
    else
        plan = make_empty(comm);
    if (!plan)
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
    describe(plan, args, bytes);
    *plan_out = plan;
    return TRIB_OK;
}

trib_status_t trib_plan_message_take(struct trib_comm *comm,
                                     const struct trib_message_args *args,
                                     struct trib_plan **plan_out)
{
    trib_gate_enter(comm);
    const trib_status_t st = take(comm, args, plan_out);
    trib_gate_leave(comm);
    return st;
}

void trib_plan_message_give(struct trib_plan *plan)
{
    struct trib_comm *comm = plan->comm;

    assert(!plan->ops->busy(plan));
    trib_gate_enter(comm);
    trib_plan_message_of(plan)->next = comm->idle_messages;
    comm->idle_messages = plan;
    trib_gate_leave(comm);
}

void trib_plan_messages_clear(struct trib_comm *comm)
{
    while (comm->idle_messages) {
        struct trib_plan *plan = comm->idle_messages;
        comm->idle_messages = trib_plan_message_of(plan)->next;
        trib_plan_destroy(plan);
    }
}

/* ---- public calls ---------------------------------------------------------------- */

static trib_status_t make_plan(struct trib_comm *comm,
                               const struct trib_message_args *args,
                               struct trib_plan **plan_out)
{
    if (plan_out)
        *plan_out = NULL;
    if (!comm)
        return TRIB_ERR_INVALID;
    if (!plan_out)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "%s needs plan_out, and it is NULL", args->call);
    const trib_status_t st = trib_plan_message_take(comm, args, plan_out);
    if (st != TRIB_OK)
        return st;
    (*plan_out)->starts = 0;
    (*plan_out)->run.now.state = TRIB_RUN_IDLE;
    (*plan_out)->send = args->sends ? args->buffer : NULL;
    (*plan_out)->recv = args->sends ? NULL : (void *)(uintptr_t)args->buffer;
    trib_gate_enter(comm);
    comm->n_plans++;
    trib_gate_leave(comm);
    return TRIB_OK;
}

trib_status_t trib_plan_send(trib_comm_t *comm, const void *buffer, size_t count,
                             trib_dtype_t dtype, int to, int tag,
                             trib_plan_t **plan_out)
{
    return make_plan(comm,
                     &(struct trib_message_args){"trib_plan_send", true, buffer, count,
                                                 dtype, to, tag},
                     plan_out);
}

trib_status_t trib_plan_recv(trib_comm_t *comm, void *buffer, size_t count,
                             trib_dtype_t dtype, int from, int tag,
                             trib_plan_t **plan_out)
{
    return make_plan(comm,
                     &(struct trib_message_args){"trib_plan_recv", false, buffer, count,
                                                 dtype, from, tag},
                     plan_out);
}

static trib_status_t run_once(struct trib_comm *comm,
                              const struct trib_message_args *args)
{
    struct trib_plan *plan;

    if (!comm)
        return TRIB_ERR_INVALID;
    trib_status_t st = trib_plan_message_take(comm, args, &plan);
    if (st != TRIB_OK)
        return st;
    const void *send = args->sends ? args->buffer : NULL;
    void *recv = args->sends ? NULL : (void *)(uintptr_t)args->buffer;
    st = comm->gate ? start_message(plan, send, recv) : run_message(plan, send, recv);
    if (st == TRIB_OK && comm->gate)
        st = plan->ops->wait(plan);
    trib_plan_message_give(plan);
    return st;
}

trib_status_t trib_send(trib_comm_t *comm, const void *buffer, size_t count,
                        trib_dtype_t dtype, int to, int tag)
{
    return run_once(comm, &(struct trib_message_args){"trib_send", true, buffer, count,
                                                      dtype, to, tag});
}

trib_status_t trib_recv(trib_comm_t *comm, void *buffer, size_t count,
                        trib_dtype_t dtype, int from, int tag)
{
    return run_once(comm, &(struct trib_message_args){"trib_recv", false, buffer, count,
                                                      dtype, from, tag});
}
