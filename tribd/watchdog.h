/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * systemd's watchdog (WatchdogSec=), fed by the server's thread as long as that and all
 * workers go on: a process that lives and sums nothing is ended and started again.
 * Without systemd there is none.
 */
#ifndef TRIBD_WATCHDOG_H
#define TRIBD_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

struct worker;
struct trib_log;

struct watchdog {
    uint64_t limit_ns; /* systemd's; 0: there is none */
    uint64_t due_ns;   /* when it is to be fed next */
    bool told;         /* the log says that a worker hangs */
};

/** watchdog_open - read from the environment whether systemd wants to be fed, and how
 * often. */
void watchdog_open(struct watchdog *w);

/** watchdog_due - when watchdog_step wants to be called at the latest, on trib_now_ns's
 * clock. */
uint64_t watchdog_due(const struct watchdog *w);

/** watchdog_step - feed systemd if all workers go on. The server's thread calls it in
 * each pass. */
void watchdog_step(struct watchdog *w, struct worker *const *workers, int n,
                   const struct trib_log *log);

#endif
