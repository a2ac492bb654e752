/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>

#include "agg/daemon/watchdog.h"

#include "agg/daemon/systemd.h"
#include "agg/daemon/worker.h"
#include "base/log.h"
#include "base/time.h"

enum { FEEDINGS = 4 }; /* messages to systemd within its limit */

void watchdog_open(struct watchdog *w)
{
    *w = (struct watchdog){.limit_ns = systemd_watchdog_ns()};
}

uint64_t watchdog_due(const struct watchdog *w)
{
    return w->limit_ns ? w->due_ns : UINT64_MAX;
}

void watchdog_step(struct watchdog *w, struct worker *const *workers, int n,
                   const struct trib_log *log)
{
    const uint64_t now_ns = w->limit_ns ? trib_now_ns() : 0;
    bool all = true;

    assert(n >= 0 && log);
    if (!w->limit_ns || now_ns < w->due_ns)
        return;
    w->due_ns = now_ns + w->limit_ns / FEEDINGS;
    for (int i = 0; i < n; i++) /* ask all: each worker updates its state */
        all &= worker_goes_on(workers[i], now_ns, w->limit_ns / 2);
    if (all) {
        systemd_notify("WATCHDOG=1");
        w->logged = false;
    } else if (!w->logged) {
        trib_log(
            log, TRIB_LOG_ERROR, "tribd",
            "a worker thread has been stuck for %.1f s: systemd will restart tribd",
            (double)(w->limit_ns / 2) / 1e9);
        w->logged = true;
    }
}
