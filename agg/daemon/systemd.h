/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to systemd and its journal; without systemd these functions do nothing. */
#ifndef AGG_DAEMON_SYSTEMD_H
#define AGG_DAEMON_SYSTEMD_H

#include <stdbool.h>
#include <stdint.h>

/** systemd_notify - send a state such as "READY=1" to $NOTIFY_SOCKET, as sd_notify(3)
 * does. */
void systemd_notify(const char *state);

/** systemd_reloading - send "RELOADING=1" with the time; a later READY=1 ends it. */
void systemd_reloading(void);

/** systemd_watchdog_ns - return the interval within which systemd expects "WATCHDOG=1";
 * 0: no watchdog, or for another process. */
uint64_t systemd_watchdog_ns(void);

/** systemd_log - return true if standard error is the journal, which parses priorities
 * at the start of lines. */
bool systemd_log(void);

#endif
