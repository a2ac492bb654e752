/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to systemd and its journal; without systemd these functions do nothing. */
#ifndef TRIBD_SYSTEMD_H
#define TRIBD_SYSTEMD_H

#include <stdbool.h>
#include <stdint.h>

/** systemd_notify - such as "READY=1", to $NOTIFY_SOCKET, as sd_notify(3) does. */
void systemd_notify(const char *state);

/** systemd_reloading - "RELOADING=1", and when; READY=1 is its end. */
void systemd_reloading(void);

/** systemd_watchdog_ns - within which systemd wants "WATCHDOG=1", again and again; 0:
 * it does not, or it wants that of another process. */
uint64_t systemd_watchdog_ns(void);

/** systemd_log - return whether standard error is the journal, which reads priorities
 * at the start of lines. */
bool systemd_log(void);

#endif
