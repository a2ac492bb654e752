/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits with a deadline, and the library's own threads.
 *
 * Signals belong to the application: a handler that runs in one of its threads does not
 * end a wait early, and the library's threads block all signals.
 */
#ifndef BASE_WAIT_H
#define BASE_WAIT_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/idle_function.h"

/**
 * trib_wait_fd - poll() one descriptor until it is ready, despite signals.
 *
 * events    as for poll()
 * deadline  on the clock of trib_now_ns
 * idle      called while waiting; or NULL
 * returns   true; or false with errno: ETIMEDOUT at the deadline, ECANCELED if the
 *           caller gives up
 */
bool trib_wait_fd(int fd, short events, uint64_t deadline, struct trib_idle *idle);

/**
 * trib_poll - poll(), except that a failure neither spins nor leaves stale revents.
 *
 * A signal is not a failure. The kernel rejects n above the limit of open files
 * (EINVAL), so callers count open descriptors only.
 *
 * returns   as poll(): 0 for a signal, -1 and errno after 10 ms for a failure, which
 *           the caller reports
 */
int trib_poll(struct pollfd *fds, nfds_t n, int timeout_ms);

/**
 * trib_wait_epoll - epoll_wait() with a timeout in microseconds.
 *
 * Kernels before 5.11 and some containers' filters do not support microseconds; the
 * timeout is then rounded up to milliseconds.
 */
int trib_wait_epoll(int epoll, struct epoll_event *events, int max, int timeout_us);

/** trib_cond_init - initialise a condition variable on the clock of trib_now_ns. */
void trib_cond_init(pthread_cond_t *cond);

/** trib_cond_wait - wait for a wake-up or the deadline; false: the deadline has
 * passed. */
bool trib_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t deadline);

/** trib_thread_start - start a thread that blocks all signals and uses the default
 * floating-point modes (base/fpenv.h); 0 or an errno. */
int trib_thread_start(pthread_t *thread_out, void *(*run)(void *arg), void *arg);

/**
 * trib_wait_turn - pass one turn of a wait for a thread that will be done soon.
 *
 * Yields the core, and every `yields` turns sleeps for 50 us instead: yielding lets no
 * thread run that has a lower priority than a caller in a real-time class.
 * turn    1, 2, … during a wait
 */
void trib_wait_turn(unsigned turn, unsigned yields);

enum { TRIB_WAIT_YIELDS = 64 }; /* unless a nap might miss its chance */

/**
 * trib_thread_give_way - lower the priority of the calling thread.
 *
 * For long work while other threads must respond quickly. Threads started by this one
 * inherit the priority, and it cannot be raised again. No effect if the kernel rejects
 * it.
 */
void trib_thread_give_way(void);

/**
 * trib_detached_call - run work(arg) in a thread, for calls that may block forever.
 *
 * idle     called by this thread while waiting; or NULL
 * owner    of arg: the caller on return; but after ETIMEDOUT and ECANCELED the
 *          abandoned thread, which calls discard(arg) if it ever finishes
 * returns  0 (work is done), ETIMEDOUT, ECANCELED (the caller gives up), or the errno
 *          of starting the thread
 */
int trib_detached_call(void (*work)(void *arg), void (*discard)(void *arg), void *arg,
                       uint64_t deadline, struct trib_idle *idle);

#endif
