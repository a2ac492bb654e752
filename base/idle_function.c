/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/idle_function.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "base/error.h"
#include "base/time.h"

enum {
    SLICE_NS = 60000, /* the kernel adds its default timer slack of 50 us */
    LAST_MS = 5, /* for the abort notices of a rank whose caller gave up */
};

bool trib_idle_is_due(const struct trib_idle *idle)
{
    assert(trib_idle_is_set(idle));
    const uint64_t called = atomic_load_explicit(&idle->called, memory_order_relaxed);

    return trib_now_ns() - called >= TRIB_IDLE_US * UINT64_C(1000);
}

bool trib_idle_call(struct trib_idle *idle)
{
    if (!trib_idle_is_set(idle))
        return false;
    if (trib_idle_answer(idle))
        return true;
    if (!trib_idle_is_due(idle))
        return false;
    const int answer = idle->call(idle->arg);
    atomic_store_explicit(&idle->called, trib_now_ns(), memory_order_relaxed);
    atomic_store_explicit(&idle->answer, answer, memory_order_relaxed);
    return answer != 0;
}

trib_status_t trib_idle_fail(const struct trib_idle *idle, struct trib_error *err,
                             const char *fmt, ...)
{
    char text[256];
    va_list args;

    assert(trib_idle_answer(idle));
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    trib_error_clear(err);
    return trib_fail(err, TRIB_ERR_ABORTED,
                     "%s: its idle function (trib_opts_t.idle) has returned %d", text,
                     trib_idle_answer(idle));
}

int trib_idle_poll(struct trib_idle *idle, struct pollfd *fds, unsigned long n,
                   int timeout_ms)
{
    if (!trib_idle_is_set(idle))
        return poll(fds, n, timeout_ms);
    if (trib_idle_answer(idle) && (timeout_ms < 0 || timeout_ms > LAST_MS))
        timeout_ms = LAST_MS;
    const uint64_t until = timeout_ms < 0 ? UINT64_MAX : trib_deadline_ms(timeout_ms);
    for (;;) {
        const uint64_t now = trib_now_ns(), left = now < until ? until - now : 0;
        const struct timespec slice = {0, (long)(left < SLICE_NS ? left : SLICE_NS)};
        const int ready = ppoll(fds, n, &slice, NULL);
        const bool knew = trib_idle_answer(idle) != 0;
        if (ready > 0)
            (void)trib_idle_call(idle);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return ready;
        if (trib_idle_call(idle) && (!knew || left <= SLICE_NS)) {
            errno = ECANCELED;
            return -1;
        }
        if (ready < 0 || left <= SLICE_NS)
            return ready;
    }
}

bool trib_idle_sleep(struct trib_idle *idle, uint64_t ns)
{
    const uint64_t until = trib_now_ns() + ns;

    for (uint64_t now = until - ns; now < until; now = trib_now_ns()) {
        uint64_t left = until - now;
        if (trib_idle_is_set(idle) && left > SLICE_NS)
            left = SLICE_NS;
        nanosleep(&(struct timespec){(time_t)(left / 1000000000u),
                                     (long)(left % 1000000000u)},
                  NULL);
        if (trib_idle_call(idle))
            return false;
    }
    return true;
}

static int gate_call(void *arg)
{
    struct trib_idle_gate *gate = arg;

    if (atomic_load_explicit(&gate->is_inside, memory_order_acquire) &&
        pthread_equal(pthread_self(), atomic_load(&gate->thread)))
        (void)trib_idle_call(gate->callers);
    return trib_idle_answer(gate->callers);
}

struct trib_idle *trib_idle_gate_init(struct trib_idle_gate *gate,
                                      struct trib_idle *callers)
{
    gate->callers = callers;
    gate->idle.call = gate_call;
    gate->idle.arg = gate;
    return trib_idle_is_set(callers) ? &gate->idle : NULL;
}

void trib_idle_gate_enter(struct trib_idle_gate *gate)
{
    atomic_store(&gate->thread, pthread_self());
    atomic_store_explicit(&gate->is_inside, true, memory_order_release);
}

void trib_idle_gate_leave(struct trib_idle_gate *gate)
{
    atomic_store_explicit(&gate->is_inside, false, memory_order_release);
}
