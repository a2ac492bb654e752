/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Liveness and readiness of the service. The control thread updates them; any thread
 * may query them, such as the HTTP thread for /healthz and /readyz.
 */
#ifndef AGG_DAEMON_HEALTH_H
#define AGG_DAEMON_HEALTH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agg/metrics/metrics.h"

enum health_state { HEALTH_OPENING, HEALTH_READY, HEALTH_DRAINING };

struct health {
    _Atomic int state; /* enum health_state */
    _Atomic uint64_t turned_ns; /* start of the latest pass; 0: none yet */
    _Atomic uint64_t busy_ns;   /* time spent in passes, without sleep */
    _Atomic uint64_t passes;
};

enum { HEALTH_LATE_MS = 10000 }; /* longer without a pass is unhealthy */

/** health_awake - note that the control thread woke up and starts a pass; return the
 * time, for health_done. */
uint64_t health_awake(struct health *h);

/** health_done - note the end of the pass that started at began_ns. */
void health_done(struct health *h, uint64_t began_ns);

/**
 * health_ask_mt - return true if healthy; `say` receives a message in both cases.
 *
 * ready    false: is the control thread alive? true: does the service also accept jobs?
 */
bool health_ask_mt(const struct health *h, bool ready, char *say, size_t bytes);

/** health_view_mt - describe the control thread for the list of all threads. */
void health_view_mt(const struct health *h, struct trib_thread_view *out);

#endif
