/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits with a deadline, and the library's own threads.
 *
 * Signals are for the application: a handler that runs in one of its threads does not
 * end a wait early, and the library's threads take none.
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
 * trib_wait_fd - poll() one descriptor until it is ready, whatever signals come.
 *
 * events    as of poll()
 * deadline  on the clock of trib_now_ns
 * idle      called meanwhile; or NULL
 * returns   true; or false with errno: ETIMEDOUT at the deadline, ECANCELED if the
 *           caller gives up
 */
bool trib_wait_fd(int fd, short events, uint64_t deadline, struct trib_idle *idle);

/**
 * trib_poll - poll(), where a failure neither spins nor leaves old results in revents.
 *
 * A signal is no failure. The kernel refuses n above the limit of open files (EINVAL),
 * so callers count open descriptors only.
 *
 * returns   as poll() does: 0 for a signal, -1 and errno after 10 ms for a failure,
 *           which the caller says
 */
int trib_poll(struct pollfd *fds, nfds_t n, int timeout_ms);

/**
 * trib_wait_epoll - epoll_wait() with a timeout in microseconds.
 *
 * Kernels before 5.11 and the filters of some containers refuse microseconds; then the
 * timeout is rounded up to milliseconds.
 */
int trib_wait_epoll(int epoll, struct epoll_event *events, int max, int timeout_us);

/** trib_cond_init - a condition whose waits end on the clock of trib_now_ns. */
void trib_cond_init(pthread_cond_t *cond);

/** trib_cond_wait - wait for a signal or the deadline; false: the deadline has
 * passed. */
bool trib_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t deadline);

/** trib_thread_start - a thread that no signal interrupts and that computes in the
 * usual modes (base/fpenv.h); 0 or an errno. */
int trib_thread_start(pthread_t *thread_out, void *(*run)(void *arg), void *arg);

/**
 * trib_thread_give_way - have the calling thread run behind others where processors are
 * few.
 *
 * It is for work that may take long while other threads have to answer at once. Threads
 * that this one starts inherit it, and nothing takes it back. Where the kernel refuses,
 * nothing changes.
 */
void trib_thread_give_way(void);

/**
 * trib_errand_run - work(arg) in a thread, for calls that may block for ever.
 *
 * idle     called meanwhile by this thread; or NULL
 * owner    of arg: the caller when this returns; but with ETIMEDOUT and ECANCELED the
 *          thread, which is left behind and calls discard(arg) should it ever end
 * returns  0 (work is done), ETIMEDOUT, ECANCELED (the caller gives up), or why no
 *          thread could be started
 */
int trib_errand_run(void (*work)(void *arg), void (*discard)(void *arg), void *arg,
                    uint64_t deadline, struct trib_idle *idle);

#endif
