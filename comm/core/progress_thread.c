/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The progress thread. The first plan start creates it. It works while a plan is active
 * and sleeps while a caller waits, because that caller drives the engine.
 */
#include "comm/core/progress_thread.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <time.h>

#include "base/wait.h"
#include "comm/core/comm_lock.h"
#include "comm/core/communicator.h"

enum {
    SLEEP_US = 500,
    STEP_BACK_NS = 200000,
    WATCH_NS = 50000, /* poll interval for plans run by other engines */
};

/* Block until there is work; false if the thread must stop. */
static bool wait_for_work(struct trib_progress_thread *d)
{
    bool stop;

    pthread_mutex_lock(&d->mutex);
    while (!d->stop && (atomic_load(&d->active) == 0 || atomic_load(&d->callers) > 0))
        pthread_cond_wait(&d->work, &d->mutex);
    stop = d->stop;
    pthread_mutex_unlock(&d->mutex);
    return !stop;
}

static void nap(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static void drive(struct trib_comm *comm)
{
    struct trib_engine *e = &comm->engine;
    bool sleep = false;

    if (!trib_comm_try_lock(comm)) {
        nap(STEP_BACK_NS);
        return;
    }
    bool moved = trib_engine_progress(e);
    if (!moved)
        sleep = trib_engine_check(e);
    if (sleep) {
        trib_engine_arm(e);
        sleep = !trib_engine_progress(e);
        moved = !sleep;
    }
    if (moved)
        trib_engine_awake(e);
    const bool watches = comm->run_callbacks && comm->run_callbacks(comm);
    if (!watches && !trib_engine_is_busy(e))
        atomic_store(&comm->progress_thread.active, 0);
    trib_comm_unlock(comm);
    if (watches && !moved)
        nap(WATCH_NS);
    else if (sleep)
        e->transport->ops->wait(e->transport, SLEEP_US);
    else if (!moved)
        sched_yield();
}

static void *progress_thread_main(void *arg)
{
    struct trib_comm *comm = arg;

    while (wait_for_work(&comm->progress_thread))
        drive(comm);
    return NULL;
}

static void wake(struct trib_progress_thread *d)
{
    pthread_mutex_lock(&d->mutex);
    pthread_cond_signal(&d->work);
    pthread_mutex_unlock(&d->mutex);
}

void trib_progress_thread_caller_enter(struct trib_comm *comm)
{
    atomic_fetch_add(&comm->progress_thread.callers, 1);
}

/* The caller that takes `callers` to 0 while a plan is active wakes the thread. A
 * thread that has just seen a caller holds the mutex until it waits. */
void trib_progress_thread_caller_leave(struct trib_comm *comm)
{
    struct trib_progress_thread *d = &comm->progress_thread;

    assert(atomic_load(&d->callers) > 0);
    if (atomic_fetch_sub(&d->callers, 1) == 1 && d->running && atomic_load(&d->active))
        wake(d);
}

/* The engine is locked, so no thread clears `active` concurrently. */
trib_status_t trib_progress_thread_start(struct trib_comm *comm)
{
    struct trib_progress_thread *d = &comm->progress_thread;

    if (comm->cfg.progress == TRIB_PROGRESS_CALLER)
        return TRIB_OK;
    if (!d->running) {
        pthread_mutex_init(&d->mutex, NULL);
        pthread_cond_init(&d->work, NULL);
        d->stop = false;
        errno = trib_thread_start(&d->thread, progress_thread_main, comm);
        if (errno)
            return trib_comm_fail(comm, TRIB_ERR_SYSTEM,
                                  "cannot start a progress thread: %m (set "
                                  "TRIB_PROGRESS=caller to run without one)");
        d->running = true;
    }
    if (atomic_exchange(&d->active, 1) == 0)
        wake(d);
    return TRIB_OK;
}

void trib_progress_thread_stop(struct trib_comm *comm)
{
    struct trib_progress_thread *d = &comm->progress_thread;

    if (!d->running)
        return;
    pthread_mutex_lock(&d->mutex);
    d->stop = true;
    pthread_cond_signal(&d->work);
    pthread_mutex_unlock(&d->mutex);
    pthread_join(d->thread, NULL);
    pthread_cond_destroy(&d->work);
    pthread_mutex_destroy(&d->mutex);
    d->running = false;
}
