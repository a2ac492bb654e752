/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators: errors, ownership, the lock, and query functions.
 */
#include "comm/core/communicator.h"

#include <assert.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sized.h"
#include "base/wait.h"
#include "comm/core/comm_lock.h"
#include "comm/core/comm_setup.h"

/* This thread's message of a failed trib_init, which leaves no communicator, or of a
 * failed call on a communicator shared by threads. */
static _Thread_local char init_error[512];

void trib_say_error(const char *text)
{
    if (text != init_error)
        snprintf(init_error, sizeof(init_error), "%s", text);
}

trib_status_t trib_comm_fail(struct trib_comm *comm, trib_status_t status,
                             const char *fmt, ...)
{
    char text[sizeof(comm->err.text)];
    va_list args;

    assert(status != TRIB_OK && status != TRIB_INPROGRESS);
    if (comm->engine.failed)
        return comm->engine.failed;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (comm->gate) { /* each thread has its own message */
        trib_say_error(text);
        return status;
    }
    trib_error_clear(&comm->err);
    return trib_fail(&comm->err, status, "%s", text);
}

const char *trib_comm_cause(const struct trib_comm *comm, trib_status_t st)
{
    assert(st != TRIB_OK);
    return comm->cause.status ? trib_error_text(&comm->cause) : trib_status_str(st);
}

void trib_comm_fail_all(struct trib_comm *comm, trib_status_t status, const char *text)
{
    assert(status != TRIB_OK);
    trib_comm_lock(comm);
    trib_engine_fail(&comm->engine, status, text);
    trib_comm_unlock(comm);
}

void trib_comm_lock_slow(struct trib_comm *comm)
{
    /* The holder lets others in for as long as some yields take: rarely sleep. */
    enum { WAKE_EVERY = 64, NAP_EVERY = 1024 };
    struct trib_engine *e = &comm->engine;

    atomic_fetch_add(&e->wanted, 1);
    for (unsigned turns = 1;
         atomic_exchange_explicit(&comm->lock, 1, memory_order_acquire); turns++) {
        if (turns % WAKE_EVERY == 0 && e->let_in) /* the holder may sleep */
            e->transport->ops->wake(e->transport, e->rank);
        trib_wait_turn(turns, NAP_EVERY);
    }
    atomic_fetch_sub(&e->wanted, 1);
}

void trib_comm_claim(struct trib_comm *comm)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bool *own =
        mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert(!comm->own);
    comm->pid = getpid();
    if (own == MAP_FAILED)
        return;
    if (madvise(own, page, MADV_WIPEONFORK) != 0) {
        munmap(own, page);
        return;
    }
    *own = true;
    comm->own = own;
}

trib_status_t trib_comm_refuse_child(struct trib_comm *comm, const char *call)
{
    return trib_comm_fail(
        comm, TRIB_ERR_INVALID,
        "%s: process %d is a forked child, and the communicator belongs to process %d: "
        "call trib_init in the child to create its own",
        call, (int)getpid(), (int)comm->pid);
}

trib_status_t trib_opts_take(const trib_opts_t *theirs, trib_opts_t *out,
                             struct trib_error *err)
{
    static const struct trib_sized kind = {"trib_opts_t", "TRIB_OPTS_INIT",
                                           sizeof(*out),
                                           TRIB_SIZED_UP_TO(trib_opts_t, log_arg)};

    *out = (trib_opts_t)TRIB_OPTS_INIT;
    return theirs ? trib_sized_take(&kind, theirs, out, err) : TRIB_OK;
}

/* Yield the lock to a waiting thread, for as long as it needs to acquire it. */
static void let_in(void *arg)
{
    enum { TURNS = 100 };
    struct trib_comm *comm = arg;

    assert(atomic_load(&comm->lock));
    trib_comm_unlock(comm);
    for (int i = 0; i < TURNS && !atomic_load(&comm->lock); i++)
        sched_yield();
    trib_comm_lock(comm);
}

/* Run the caller's callbacks without the lock: they may take arbitrarily long, and
 * other threads can drive the engine in that time. */
static bool give_way(void *arg)
{
    struct trib_comm *comm = arg;
    struct trib_idle *idle = comm->idle;

    assert(atomic_load(&comm->lock));
    if (atomic_load_explicit(&comm->engine.wanted, memory_order_relaxed))
        let_in(comm);
    if (comm->run_callbacks)
        comm->run_callbacks(comm);
    if (!trib_idle_is_set(idle) || (!trib_idle_answer(idle) && !trib_idle_is_due(idle)))
        return false;
    trib_comm_unlock(comm);
    const bool over = trib_idle_call(idle);
    trib_comm_lock(comm);
    return over;
}

void trib_comm_give_way(struct trib_comm *comm)
{
    struct trib_engine *e = &comm->engine;

    e->wait = trib_engine_wait_idle;
    e->idle_fn = comm->idle;
    e->give_way = give_way;
}

void trib_comm_share_lock(struct trib_comm *comm)
{
    comm->engine.let_in = let_in;
    comm->engine.give_way_arg = comm;
}

void trib_comm_set_idle(struct trib_comm *comm, trib_idle_fn call, void *arg)
{
    assert(!comm->engine.transport);
    comm->own_idle.call = call;
    comm->own_idle.arg = arg;
    comm->idle = call ? &comm->own_idle : NULL;
}

int trib_rank(const trib_comm_t *comm)
{
    return comm ? comm->engine.rank : -1;
}

int trib_size(const trib_comm_t *comm)
{
    return comm ? comm->engine.ranks : 0;
}

const char *trib_last_error(const trib_comm_t *comm)
{
    if (!comm)
        return init_error;
    if (comm->gate && !comm->engine.failed)
        return init_error;
    return trib_error_text(comm->engine.failed ? &comm->engine.failure : &comm->err);
}

trib_status_t trib_progress(trib_comm_t *comm)
{
    if (!comm)
        return TRIB_ERR_INVALID;
    trib_status_t st = trib_comm_ours(comm, "trib_progress");
    if (st != TRIB_OK)
        return st;
    if (trib_comm_try_lock(comm)) {
        trib_engine_drive(&comm->engine);
        if (comm->run_callbacks)
            comm->run_callbacks(comm);
        trib_comm_unlock(comm);
    }
    trib_comm_poll(comm);
    return comm->engine.failed;
}
