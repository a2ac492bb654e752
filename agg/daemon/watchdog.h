/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * systemd's watchdog (WatchdogSec=), fed by the server thread while it and all workers
 * make progress. A process that is alive but stuck is thus killed and restarted.
 * Without systemd there is no watchdog.
 */
#ifndef AGG_DAEMON_WATCHDOG_H
#define AGG_DAEMON_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

struct worker;
struct trib_log;

struct watchdog {
    uint64_t limit_ns; /* systemd's limit; 0: no watchdog */
    uint64_t due_ns;   /* time of the next message */
    bool logged; /* a stuck worker was logged */
};

/** watchdog_open - read systemd's watchdog interval from the environment. */
void watchdog_open(struct watchdog *w);

/** watchdog_due - return the latest time for watchdog_step, on the clock of
 * trib_now_ns. */
uint64_t watchdog_due(const struct watchdog *w);

/** watchdog_step - feed the watchdog if all workers make progress; the server thread
 * calls it in each pass. */
void watchdog_step(struct watchdog *w, struct worker *const *workers, int n,
                   const struct trib_log *log);

#endif
