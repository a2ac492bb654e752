/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The caller's idle function, trib_opts_t.idle: a thread that waits in a public call
 * calls it between two looks at what it waits for.
 *
 * It is passed to whatever waits. NULL, and a struct without a function, change
 * nothing. A thread of the library has none, so none of them calls it.
 */
#ifndef BASE_IDLE_FUNCTION_H
#define BASE_IDLE_FUNCTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tributary/status.h>

struct pollfd;
struct trib_error;

enum {
    TRIB_IDLE_US = 50, /* between two calls; the API promises 200 */
};

struct trib_idle {
    int (*call)(void *arg); /* NULL: there is none */
    void *arg;
    _Atomic uint64_t called; /* ns, time of the last call */
    _Atomic int answer; /* the answer by which the caller gave up; 0: it has not */
};

/** trib_idle_is_set - true if there is a function to call. */
static inline bool trib_idle_is_set(const struct trib_idle *idle)
{
    return idle && idle->call;
}

/** trib_idle_answer - the answer by which the caller has given up, or 0. */
static inline int trib_idle_answer(const struct trib_idle *idle)
{
    return idle ? atomic_load_explicit(&idle->answer, memory_order_relaxed) : 0;
}

/** trib_idle_is_due - true if the function has not been called for TRIB_IDLE_US. */
bool trib_idle_is_due(const struct trib_idle *idle);

/**
 * trib_idle_look - call the function if it is due.
 *
 * thread   one that waits in a public call, without a lock of the library
 * returns  true: the caller gives up, now or before. The function is then not called
 *          again
 */
bool trib_idle_look(struct trib_idle *idle);

/**
 * trib_idle_fail - the sentence of a rank whose caller gives up.
 *
 * fmt      the beginning: who, and in what
 * returns  TRIB_ERR_ABORTED
 */
trib_status_t trib_idle_fail(const struct trib_idle *idle, struct trib_error *err,
                             const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/**
 * trib_idle_poll - poll(), in slices between which the function is called.
 *
 * returns  as poll(); -1 with ECANCELED if the caller gives up. After that it waits at
 *          most 5 ms, for what is ready soon
 */
int trib_idle_poll(struct trib_idle *idle, struct pollfd *fds, unsigned long n,
                   int timeout_ms);

/** trib_idle_sleep - sleep, in slices; false if the caller gives up. */
bool trib_idle_sleep(struct trib_idle *idle, uint64_t ns);

#endif
