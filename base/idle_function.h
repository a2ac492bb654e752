/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The caller's idle function, trib_opts_t.idle: called by a thread that blocks in a
 * public call, between two polls.
 *
 * It is passed to all code that waits. NULL, or a struct without a function, has no
 * effect. Library threads have none and never call it.
 */
#ifndef BASE_IDLE_FUNCTION_H
#define BASE_IDLE_FUNCTION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tributary/status.h>

struct pollfd;
struct trib_error;

enum {
    TRIB_IDLE_US = 50, /* interval between two calls; the API promises 200 */
};

struct trib_idle {
    int (*call)(void *arg); /* NULL: none */
    void *arg;
    _Atomic uint64_t called; /* ns, time of the last call */
    _Atomic int answer; /* non-zero return value by which the caller gave up; 0: not
                         * yet */
};

/** trib_idle_is_set - return true if there is a function to call. */
static inline bool trib_idle_is_set(const struct trib_idle *idle)
{
    return idle && idle->call;
}

/** trib_idle_answer - return the value by which the caller gave up, or 0. */
static inline int trib_idle_answer(const struct trib_idle *idle)
{
    return idle ? atomic_load_explicit(&idle->answer, memory_order_relaxed) : 0;
}

/** trib_idle_is_due - return true if the last call was at least TRIB_IDLE_US ago. */
bool trib_idle_is_due(const struct trib_idle *idle);

/**
 * trib_idle_call - call the function if due.
 *
 * thread   one that waits in a public call and holds no library lock
 * returns  true if the caller gives up, now or earlier. The function is not called
 *          again then
 */
bool trib_idle_call(struct trib_idle *idle);

/**
 * trib_idle_fail - record the error message after the caller gave up.
 *
 * fmt      beginning of the message: the rank and the call
 * returns  TRIB_ERR_ABORTED
 */
trib_status_t trib_idle_fail(const struct trib_idle *idle, struct trib_error *err,
                             const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/**
 * trib_idle_poll - poll() in slices, calling the function in between.
 *
 * returns  as poll(); -1 with ECANCELED if the caller gives up. Later calls then wait
 *          at most 5 ms, for events that are about to arrive
 */
int trib_idle_poll(struct trib_idle *idle, struct pollfd *fds, unsigned long n,
                   int timeout_ms);

/*
 * Lets several threads wait with one idle function: only the thread that is in a public
 * call calls it, others read its answer.
 */
struct trib_idle_gate {
    struct trib_idle idle; /* for all threads */
    struct trib_idle *callers;
    _Atomic pthread_t thread; /* the one in a public call … */
    _Atomic bool is_inside; /* … while there is one */
};

/** trib_idle_gate_init - return the idle function for all threads, or NULL if the
 * caller has none. */
struct trib_idle *trib_idle_gate_init(struct trib_idle_gate *gate,
                                      struct trib_idle *callers);

/** trib_idle_gate_enter - begin a call in which this thread calls the function. */
void trib_idle_gate_enter(struct trib_idle_gate *gate);

/** trib_idle_gate_leave - end it. A later thread may get the id of this one. */
void trib_idle_gate_leave(struct trib_idle_gate *gate);

/** trib_idle_sleep - sleep in slices; return false if the caller gives up. */
bool trib_idle_sleep(struct trib_idle *idle, uint64_t ns);

#endif
