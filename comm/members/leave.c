/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Leave and free communicators.
 */
#include "comm/members/leave.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/quiet.h"
#include "base/workers.h"
#include "comm/calls/plan_cache.h"
#include "comm/calls/requests.h"
#include "comm/core/comm_lock.h"
#include "comm/core/comm_setup.h"
#include "comm/core/communicator.h"
#include "comm/core/gate.h"
#include "comm/core/locality.h"
#include "comm/core/progress_thread.h"
#include "comm/plan/plan_make.h"
#include "pipeline/run/failure.h"
#include "transport/op_defaults.h"

/* In a trace, a communicator created from another belongs to the parent's process: its
 * label begins with the parent's rank. */
static struct trib_trace_owner trace_owner(const struct trib_comm *comm)
{
    char *part;
    const long rank = strtol(comm->label, &part, 10);
    const bool known = comm->rank_clock.known;

    return (struct trib_trace_owner){
        .process = part != comm->label ? (int)rank : comm->engine.rank,
        .host = comm->engine.peers ? comm->engine.peers[comm->engine.rank].host : "",
        .part = *part == '-' ? part + 1 : part,
        .ahead_ns = comm->rank_clock.ahead_ns,
        .within_ns = known ? comm->rank_clock.within_ns : UINT64_MAX};
}

static void write_trace(const struct trib_comm *comm)
{
    const struct trib_trace *trace = &comm->engine.trace;
    const struct trib_trace_owner owner = trace_owner(comm);
    char path[TRIB_CONFIG_TEXT_BYTES + 48];

    if (!trace->count)
        return;
    snprintf(path, sizeof(path), "%s.%s.json", comm->cfg.trace_file, comm->label);
    struct trib_quiet quiet;
    trib_quiet_begin(&quiet, SIGXFSZ);
    FILE *f = trib_fd_create(path);
    bool ok = f && trib_trace_dump(trace, &owner, f) == TRIB_OK;
    int error = errno;
    if (f && fclose(f)) {
        error = ok ? errno : error;
        ok = false;
    }
    trib_quiet_end(&quiet);
    errno = error;
    if (!ok)
        trib_log(&comm->log, TRIB_LOG_WARN, "trace", "cannot write %s: %m%s", path,
                 error == EFBIG ? " (raise ulimit -f)" : "");
}

static void comm_free(struct trib_comm *comm)
{
    if (comm->own)
        munmap((void *)(uintptr_t)comm->own, (size_t)sysconf(_SC_PAGESIZE));
    trib_locality_free(comm->locality);
    trib_gate_free(comm->gate);
    if (comm->aggregators)
        comm->aggregators->free(comm->aggregators);
    free(comm);
}

static void keep_remote(struct trib_transport *t, struct trib_remote *remote)
{
    (void)t;
    (void)remote;
}

static void keep_peers(struct trib_transport *t, const bool *which)
{
    (void)t;
    (void)which;
}

static void keep_peer(struct trib_transport *t, int peer)
{
    (void)t;
    (void)peer;
}

/*
 * Free a forked child's copy without notifying peers. A transport's close() supports
 * children; all other functions that closing the engine calls must do nothing.
 */
void trib_comm_drop_copy(struct trib_comm *comm)
{
    static const struct trib_transport_ops nothing = {.dereg = trib_no_release_pages,
                                                      .release = keep_remote,
                                                      .disconnect = keep_peer,
                                                      .leave = keep_peers};
    struct trib_engine *e = &comm->engine;
    struct trib_transport *t = e->transport;
    const struct trib_transport_ops *ops = t->ops;

    assert(trib_comm_in_child(comm));
    t->ops = &nothing;
    trib_plan_destroy(comm->leaving);
    trib_requests_clear(comm);
    trib_plan_cache_clear(comm);
    if (comm->hooks)
        comm->hooks->forget_in_child(comm);
    e->head = NULL; /* the parent's operations continue without the child */
    trib_workers_forget(e->workers);
    e->workers = NULL;
    trib_engine_close(e);
    t->ops = ops;
    ops->close(t);
    comm_free(comm);
}

void trib_comm_dispose(struct trib_comm *comm)
{
    struct trib_engine *e = &comm->engine;

    assert(!trib_comm_in_child(comm));
    trib_progress_thread_stop(comm);
    trib_requests_clear(comm);
    trib_plan_cache_clear(comm);
    if (comm->hooks)
        comm->hooks->drop(comm);
    write_trace(comm);
    trib_engine_close(e);
    trib_log_tell(&comm->log, true);
    if (e->transport)
        e->transport->ops->close(e->transport);
    comm_free(comm);
}

void trib_comm_dispose_dup(struct trib_comm *dup, const struct trib_comm *of)
{
    if (!dup)
        return;
    assert(dup != of);
    if (of->engine.failed && !dup->engine.failed) {
        trib_comm_lock(dup);
        trib_engine_mark_like(&dup->engine, &of->engine);
        (void)trib_engine_end(&dup->engine);
        trib_comm_unlock(dup);
    }
    trib_comm_dispose(dup);
}

/* Start the final barrier: no rank disconnects while a peer still needs it. An existing
 * progress thread has requests to drive; none is created for this. */
static trib_status_t begin_to_leave(struct trib_comm *comm)
{
    trib_desc_t desc = TRIB_DESC_INIT;
    trib_status_t st = TRIB_OK;

    if (comm->leaving)
        return TRIB_OK;
    if (!comm->progress_thread.running)
        comm->cfg.progress = TRIB_PROGRESS_CALLER;
    desc.dtype = TRIB_I8;
    trib_gate_enter(comm);
    st = trib_plan_make(comm, TRIB_BARRIER, &desc, true, &comm->leaving);
    trib_gate_leave(comm);
    return st == TRIB_OK ? trib_plan_start(comm->leaving) : st;
}

/* Free the final barrier, which has ended or was never started. */
static void end_leaving(struct trib_comm *comm)
{
    trib_progress_thread_stop(comm);
    trib_plan_destroy(comm->leaving);
    comm->leaving = NULL;
}

/* Return true if there is a final barrier to wait for: one already started, even if it
 * has failed since, or a new one. */
static bool has_to_leave(const struct trib_comm *comm)
{
    return comm->leaving || (!comm->engine.failed && comm->engine.ranks > 1);
}

static trib_status_t leave(struct trib_comm *comm)
{
    trib_status_t st = comm->leaving_status;

    if (st == TRIB_OK && has_to_leave(comm)) {
        /* The progress thread would report peers that disconnect after the barrier as
         * lost. */
        trib_progress_thread_stop(comm);
        st = begin_to_leave(comm);
        if (st == TRIB_OK)
            st = trib_plan_wait(comm->leaving);
    }
    end_leaving(comm);
    return st;
}

/* Poll the final barrier. An error is kept and returned once all requests are freed. */
static trib_status_t try_to_leave(struct trib_comm *comm)
{
    if (comm->leaving_status != TRIB_OK || !has_to_leave(comm))
        return comm->leaving_status;
    trib_status_t st = begin_to_leave(comm);
    if (st == TRIB_OK)
        st = trib_plan_test(comm->leaving);
    if (st != TRIB_INPROGRESS)
        comm->leaving_status = st;
    return st;
}

/* Return TRIB_ERR_BUSY with a message: `left` objects are not freed. */
static trib_status_t refuse(struct trib_comm *comm, int left, const char *what,
                            const char *call)
{
    const trib_status_t st =
        trib_comm_fail(comm, TRIB_ERR_BUSY, "%d %s%s not freed: call %s first", left,
                       what, left == 1 ? " is" : "s are", call);

    trib_say_error(trib_last_error(comm));
    return st;
}

trib_status_t trib_free_comm(trib_comm_t *comm)
{
    if (!comm)
        return TRIB_OK;
    if (comm->n_plans)
        return refuse(comm, comm->n_plans, "plan", "trib_plan_free");
    if (comm->n_requests)
        return refuse(comm, comm->n_requests, "request", "trib_request_free");
    if (trib_comm_in_child(comm)) {
        trib_comm_drop_copy(comm);
        return TRIB_OK;
    }
    trib_requests_clear(comm);
    trib_plan_cache_clear(comm);
    trib_status_t st = comm->hooks ? comm->hooks->detach(comm) : TRIB_OK;
    if (st == TRIB_OK)
        st = leave(comm);
    if (st != TRIB_OK)
        trib_say_error(trib_last_error(comm));
    trib_comm_dispose(comm);
    return st;
}

trib_status_t trib_try_free_comm(trib_comm_t *comm)
{
    if (!comm || comm->n_plans || trib_comm_in_child(comm) || comm->hooks)
        return trib_free_comm(comm);
    const trib_status_t st = try_to_leave(comm);
    if (st == TRIB_INPROGRESS || comm->n_requests)
        return TRIB_INPROGRESS;
    if (st != TRIB_OK)
        trib_say_error(trib_last_error(comm));
    end_leaving(comm);
    trib_comm_dispose(comm);
    return st;
}
