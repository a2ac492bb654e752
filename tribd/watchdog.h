/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * systemd's watchdog (WatchdogSec=), fed by the server's thread as long as that and all
 * lanes go on: a process that lives and sums nothing is ended and started again.
 * Without systemd there is none.
 */
#ifndef TRIBD_WATCHDOG_H
#define TRIBD_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

struct lane;
struct trib_log;

struct watchdog {
    uint64_t limit_ns; /* systemd's; 0: there is none */
    uint64_t due_ns;   /* when it is to be fed next */
    bool told;         /* that a lane does not go on */
};

/** watchdog_open - as the environment says that systemd wants it. */
void watchdog_open(struct watchdog *w);

/** watchdog_due - when watchdog_step wants to be called at the latest, on trib_now_ns's
 * clock. */
uint64_t watchdog_due(const struct watchdog *w);

/** watchdog_step - of the server's thread, in each of its passes. */
void watchdog_step(struct watchdog *w, struct lane *const *lanes, int n,
                   const struct trib_log *log);

#endif
