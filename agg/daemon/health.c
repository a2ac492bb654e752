/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/daemon/health.h"

#include <assert.h>
#include <stdio.h>

#include "base/time.h"

uint64_t health_awake(struct health *h)
{
    const uint64_t now_ns = trib_now_ns();

    atomic_store_explicit(&h->turned_ns, now_ns, memory_order_relaxed);
    return now_ns;
}

void health_done(struct health *h, uint64_t began_ns)
{
    assert(began_ns > 0);
    trib_metrics_raise(&h->busy_ns, trib_now_ns() - began_ns);
    trib_metrics_raise(&h->passes, 1);
}

bool health_ask_mt(const struct health *h, bool ready, char *say, size_t bytes)
{
    const uint64_t turned_ns = atomic_load(&h->turned_ns), now_ns = trib_now_ns();
    const uint64_t ms = now_ns > turned_ns ? (now_ns - turned_ns) / 1000000 : 0;
    const int state = atomic_load(&h->state);

    if (turned_ns && ms > HEALTH_LATE_MS) {
        snprintf(say, bytes, "the control thread has been stuck for %u s",
                 (unsigned)(ms / 1000));
        return false;
    }
    if (ready && state == HEALTH_OPENING) {
        snprintf(say, bytes, "the service is not listening yet");
        return false;
    }
    if (ready && state == HEALTH_DRAINING) {
        snprintf(say, bytes, "the service is draining: it accepts no new jobs");
        return false;
    }
    snprintf(say, bytes,
             ready ? "the service accepts jobs" : "the control thread is running");
    return true;
}

void health_view_mt(const struct health *h, struct trib_thread_view *out)
{
    snprintf(out->name, sizeof(out->name), "control");
    out->busy_ns = atomic_load_explicit(&h->busy_ns, memory_order_relaxed);
    out->passes = atomic_load_explicit(&h->passes, memory_order_relaxed);
}
