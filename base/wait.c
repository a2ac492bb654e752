/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/wait.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/fpenv.h"
#include "base/time.h"

enum { STEP_NS = 100000 }; /* interval between two calls of an idle function */

bool trib_wait_fd(int fd, short events, uint64_t deadline, struct trib_idle *idle)
{
    struct pollfd ready = {.fd = fd, .events = events};
    int n;

    do
        n = trib_idle_poll(idle, &ready, 1, trib_deadline_left_ms(deadline));
    while ((n == 0 || (n < 0 && errno == EINTR)) && !trib_deadline_passed(deadline));
    if (n == 0 || (n < 0 && errno == EINTR))
        errno = ETIMEDOUT;
    return n > 0;
}

int trib_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    const struct timespec nap = {0, 10000000};
    int ready = poll(fds, n, timeout_ms);

    if (ready >= 0)
        return ready;
    for (nfds_t i = 0; i < n; i++)
        fds[i].revents = 0;
    if (errno == EINTR)
        return 0;
    const int error = errno;
    nanosleep(&nap, NULL);
    errno = error;
    return -1;
}

int trib_wait_epoll(int epoll, struct epoll_event *events, int max, int timeout_us)
{
    struct timespec ts = {timeout_us / 1000000, timeout_us % 1000000 * 1000L};
    int n = epoll_pwait2(epoll, events, max, &ts, NULL);

    if (n < 0 && (errno == ENOSYS || errno == EPERM))
        n = epoll_wait(epoll, events, max,
                       timeout_us / 1000 + (timeout_us % 1000 != 0));
    return n;
}

void trib_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

bool trib_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t deadline)
{
    const struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000u),
                                   .tv_nsec = (long)(deadline % 1000000000u)};

    return pthread_cond_timedwait(cond, mutex, &until) == 0;
}

int trib_thread_start(pthread_t *thread_out, void *(*run)(void *arg), void *arg)
{
    sigset_t all;
    sigset_t old;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const uint64_t modes = trib_fpenv_enter();
    int error = pthread_create(thread_out, NULL, run, arg);
    trib_fpenv_leave(modes);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return error;
}

void trib_wait_turn(unsigned turn, unsigned yields)
{
    const struct timespec nap = {.tv_nsec = 50000};

    if (turn % yields)
        sched_yield();
    else
        nanosleep(&nap, NULL);
}

void trib_thread_give_way(void)
{
    enum { STEPS = 10 }; /* a tenth of a CPU next to one thread at normal priority */

    (void)!nice(STEPS); /* on Linux this affects only this thread */
}

/* Freed by the last user: the caller or the thread. */
struct detached_call {
    void (*work)(void *arg);
    void (*discard)(void *arg);
    void *arg;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done; /* under the lock, like the fields below */
    bool abandoned;
};

static void call_free(struct detached_call *c)
{
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static void *call_main(void *arg)
{
    struct detached_call *c = arg;

    c->work(c->arg);
    pthread_mutex_lock(&c->lock);
    c->done = true;
    bool abandoned = c->abandoned;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
    if (abandoned) {
        c->discard(c->arg);
        call_free(c);
    }
    return NULL;
}

/* Wait with the lock held; the idle function is called without it. Return 0, ETIMEDOUT
 * or ECANCELED. */
static int call_await(struct detached_call *c, uint64_t deadline,
                      struct trib_idle *idle)
{
    const uint64_t step = trib_idle_is_set(idle) ? STEP_NS : UINT64_MAX;

    while (!c->done && !trib_deadline_passed(deadline)) {
        const uint64_t now = trib_now_ns();
        (void)trib_cond_wait(&c->wake, &c->lock,
                             step < deadline - now ? now + step : deadline);
        if (!trib_idle_is_set(idle))
            continue;
        pthread_mutex_unlock(&c->lock);
        const bool over = trib_idle_call(idle);
        pthread_mutex_lock(&c->lock);
        if (over)
            return c->done ? 0 : ECANCELED;
    }
    return c->done ? 0 : ETIMEDOUT;
}

/* Non-zero: the thread continues and owns its data. */
static int call_finish(struct detached_call *c, pthread_t thread, uint64_t deadline,
                       struct trib_idle *idle)
{
    pthread_mutex_lock(&c->lock);
    const int error = call_await(c, deadline, idle);
    c->abandoned = error != 0;
    pthread_mutex_unlock(&c->lock);
    if (!error)
        pthread_join(thread, NULL);
    else
        pthread_detach(thread);
    return error;
}

int trib_detached_call(void (*work)(void *arg), void (*discard)(void *arg), void *arg,
                       uint64_t deadline, struct trib_idle *idle)
{
    struct detached_call *c = calloc(1, sizeof(*c));
    pthread_t thread;

    if (!c)
        return ENOMEM;
    c->work = work;
    c->discard = discard;
    c->arg = arg;
    pthread_mutex_init(&c->lock, NULL);
    trib_cond_init(&c->wake);
    int error = trib_thread_start(&thread, call_main, c);
    if (!error) {
        error = call_finish(c, thread, deadline, idle);
        if (error)
            return error;
    }
    call_free(c);
    return error;
}
