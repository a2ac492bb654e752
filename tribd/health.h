/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is the service alive, and does it take jobs? The control thread notes what it does;
 * any thread may ask, such as that of HTTP for /healthz and /readyz.
 */
#ifndef TRIBD_HEALTH_H
#define TRIBD_HEALTH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agg/metrics/metrics.h"

enum health_state { HEALTH_OPENING, HEALTH_READY, HEALTH_DRAINING };

struct health {
    _Atomic int state; /* enum health_state */
    _Atomic uint64_t turned_ns; /* the last pass of the control thread; 0: none yet */
    _Atomic uint64_t busy_ns;   /* time spent in passes, without sleep */
    _Atomic uint64_t passes;
};

enum { HEALTH_LATE_MS = 10000 }; /* a control thread that turns less often is not
                                  * healthy */

/** health_awake - the control thread has slept, and begins a pass; the moment, for
 * health_done. */
uint64_t health_awake(struct health *h);

/** health_done - the pass that began then is over. */
void health_done(struct health *h, uint64_t began_ns);

/**
 * health_ask_mt - is all well? A sentence in either case.
 *
 * ready    false: does the control thread turn? true: are new jobs taken, too?
 */
bool health_ask_mt(const struct health *h, bool ready, char *say, size_t bytes);

/** health_view_mt - the control thread, for those who look at all threads. */
void health_view_mt(const struct health *h, struct trib_thread_view *out);

#endif
