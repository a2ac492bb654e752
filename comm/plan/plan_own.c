/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans run by the communicator's own engine: trib_plan_own_ops.
 */
#include <inttypes.h>
#include <sched.h>
#include <time.h>

#include "base/time.h"
#include "comm/core/comm_lock.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/core/progress_thread.h"
#include "comm/plan/plan_feedback.h"
#include "compress/models/model.h"
#include "pipeline/payload/payload_pairs.h"
#include "pipeline/payload/undo_log.h"

enum {
    THREAD_BEGINS = 32768
}; /* elements: waking a thread costs less than encoding this many */

static void number(struct trib_plan *plan)
{
    const uint64_t start = ++plan->comm->starts;

    if (plan->codec && !plan->identity.inner)
        trib_plan_number(plan, plan->comm, start);
}

/* Let the progress thread rest if nothing is left for it; with the lock held. Otherwise
 * it would spin for long against a caller that sums repeatedly and nearly always holds
 * the lock. */
static void let_thread_rest(struct trib_comm *comm)
{
    if (!trib_engine_is_busy(&comm->engine) && !comm->notified)
        atomic_store(&comm->progress_thread.active, 0);
}

/* Queue the plan's run, preceded by the exchange it depends on. */
static void launch(struct trib_plan *plan, const void *send, void *recv)
{
    struct trib_engine *e = &plan->comm->engine;
    struct trib_run *run = &plan->run;

    plan->starts++;
    if (plan->codec)
        trib_plan_stamp(plan);
    trib_undo_save_model(run);
    run->now.exchanged = NULL;
    if (plan->exchange && run->desc.model &&
        trib_model_exchange(run->desc.model, run->now.step + 1, plan->exchanged)) {
        run->now.exchanged = plan->exchanged;
        trib_run_start(e, &plan->exchange->run, plan->exchanged, plan->exchanged);
    }
    if (run->desc.regions.cell) {
        uint32_t *counts = trib_pairs_count_cells(run, send);
        trib_run_start(e, &plan->exchange->run, counts, counts);
    }
    trib_run_start(e, run, send, recv);
}

static trib_status_t own_run(struct trib_plan *plan, const void *send, void *recv)
{
    struct trib_comm *comm = plan->comm;

    trib_comm_lock(comm);
    number(plan);
    launch(plan, send, recv);
    const trib_status_t st = comm->engine.wait(&comm->engine, &plan->run);
    if (atomic_load_explicit(&comm->progress_thread.active, memory_order_relaxed))
        let_thread_rest(comm);
    trib_comm_unlock(comm);
    return st;
}

/* Return true if the progress thread should do the first encoding because it would
 * block the caller for long. */
static bool thread_begins(const struct trib_plan *plan)
{
    return plan->codec && plan->run.desc.count >= THREAD_BEGINS &&
           plan->comm->cfg.progress != TRIB_PROGRESS_CALLER;
}

static trib_status_t own_start(struct trib_plan *plan, const void *send, void *recv)
{
    struct trib_comm *comm = plan->comm;

    trib_comm_lock(comm);
    const trib_status_t st = trib_progress_thread_start(comm);
    if (st == TRIB_OK) {
        number(plan);
        launch(plan, send, recv);
        trib_engine_awake(&comm->engine);
        if (thread_begins(plan))
            comm->engine.transport->ops->wake(comm->engine.transport,
                                              comm->engine.rank);
        else
            (void)trib_engine_progress(&comm->engine);
    }
    trib_comm_unlock(comm);
    return st;
}

static trib_status_t own_ready(struct trib_plan *plan, size_t first, size_t count)
{
    if (!trib_run_feed(&plan->run, first, count))
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "elements %zu to %zu: not awaited; call trib_plan_start "
                              "first, and pass each element once",
                              first, first + count);
    if (plan->comm->cfg.progress == TRIB_PROGRESS_CALLER)
        return trib_progress(plan->comm);
    struct trib_engine *e = &plan->comm->engine;
    e->transport->ops->wake(e->transport, e->rank);
    return TRIB_OK;
}

static trib_status_t own_test(struct trib_plan *plan)
{
    struct trib_comm *comm = plan->comm;
    int state = atomic_load_explicit(&plan->run.now.state, memory_order_acquire);

    if (state == TRIB_RUN_IDLE)
        return TRIB_OK;
    if (state != TRIB_RUN_DONE && trib_comm_try_lock(comm)) {
        trib_engine_drive(&comm->engine);
        if (comm->run_callbacks)
            comm->run_callbacks(comm);
        trib_comm_unlock(comm);
        trib_comm_poll(comm);
        state = atomic_load_explicit(&plan->run.now.state, memory_order_acquire);
    }
    return state == TRIB_RUN_DONE ? plan->run.now.status : TRIB_INPROGRESS;
}

/*
 * Acquire the lock to drive the engine until the run completes; false: it has
 * completed. Meanwhile another waiting thread holds the lock, and drives this run, too.
 */
static bool lock_for(struct trib_comm *comm, const struct trib_run *run)
{
    enum { NAP_NS = 50000, TURNS = 100 };

    for (unsigned turns = 0; !trib_comm_try_lock(comm); turns++) {
        if (atomic_load_explicit(&run->now.state, memory_order_acquire) ==
            TRIB_RUN_DONE)
            return false;
        (void)trib_idle_call(comm->idle); /* its result is for the thread that drives */
        if (turns < TURNS)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
    return true;
}

/* Return true if the run completes within a few polls, when reading the clock would be
 * a large part of the measured time. */
static bool ends_at_once(struct trib_comm *comm, const struct trib_run *run)
{
    enum { LOOKS = 16 };
    struct trib_engine *e = &comm->engine;
    bool done = false;

    for (int i = 0; i < LOOKS && e->all_mapped && !e->oversubscribed && !done; i++) {
        (void)trib_engine_progress(e);
        done = atomic_load_explicit(&run->now.state, memory_order_acquire) ==
               TRIB_RUN_DONE;
    }
    return done;
}

/* Drive the engine until the run completes, with the lock held. */
static void drive(struct trib_comm *comm, struct trib_run *run)
{
    if (ends_at_once(comm, run))
        return;
    const uint64_t begin = trib_now_ns();
    (void)comm->engine.wait(&comm->engine, run);
    comm->engine.stats.wait_ns += trib_now_ns() - begin;
}

static trib_status_t own_wait(struct trib_plan *plan)
{
    struct trib_comm *comm = plan->comm;
    int state = atomic_load_explicit(&plan->run.now.state, memory_order_acquire);

    if (state == TRIB_RUN_IDLE)
        return TRIB_OK;
    if (state != TRIB_RUN_DONE) {
        trib_progress_thread_caller_enter(comm);
        if (lock_for(comm, &plan->run)) {
            drive(comm, &plan->run);
            let_thread_rest(comm);
            trib_comm_unlock(comm);
        }
        trib_progress_thread_caller_leave(comm);
    }
    return plan->run.now.status;
}

static bool own_busy(const struct trib_plan *plan)
{
    const int state = atomic_load(&plan->run.now.state);

    return state == TRIB_RUN_QUEUED || state == TRIB_RUN_ACTIVE;
}

static const void *own_input(const struct trib_plan *plan)
{
    return own_busy(plan) ? plan->run.now.input : NULL;
}

static struct trib_plan *own_computing(struct trib_plan *plan)
{
    return plan;
}

static void own_absent(const struct trib_plan *plan, size_t *elements_out)
{
    (void)plan;
    (void)elements_out; /* every sum includes all ranks */
}

const struct trib_plan_ops trib_plan_own_ops = {
    .run = own_run,
    .start = own_start,
    .ready = own_ready,
    .test = own_test,
    .wait = own_wait,
    .busy = own_busy,
    .input = own_input,
    .computing = own_computing,
    .sent = trib_plan_own_sent,
    .absent = own_absent,
};
