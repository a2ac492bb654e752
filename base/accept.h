/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accepting, and back-off for listeners of a process that is out of descriptors.
 *
 * A connection that accept() could not take stays queued, and its listener stays
 * readable, so polling it would spin. The listener is skipped for a moment instead, and
 * a warning is logged now and then.
 */
#ifndef BASE_ACCEPT_H
#define BASE_ACCEPT_H

#include <stdbool.h>
#include <stdint.h>

#define TRIB_ACCEPT_PAUSE_MS 20

/* Zero-initialised: no failure yet. Used by one thread. */
struct trib_accept_pause {
    uint64_t until; /* on the clock of trib_now_ns; 0: no pause */
    uint64_t said; /* when a warning was last due; 0: never */
};

/**
 * trib_accept_next - accept the next connection at a TCP listener.
 *
 * ip_out   the peer's address, as in base/addresses.h
 * returns  a non-blocking socket, or -1 with errno
 */
int trib_accept_next(int listener, uint8_t ip_out[16]);

/**
 * trib_accept_failed - record a failure of accept().
 *
 * Starts a pause of TRIB_ACCEPT_PAUSE_MS, unless the error concerns only this
 * connection (EAGAIN, EINTR, ECONNABORTED and the like).
 *
 * returns  true if the caller must log the failure: the first time, then once a minute
 */
bool trib_accept_failed(struct trib_accept_pause *pause, int error);

/** trib_accept_paused - return true if the listener must not be polled now. */
bool trib_accept_paused(const struct trib_accept_pause *pause);

/** trib_accept_cure - return a cure such as "raise ulimit -n"; "" if none is known. */
const char *trib_accept_cure(int error);

#endif
