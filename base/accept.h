/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listeners of a process that has no descriptor left.
 *
 * A connection that accept() could not take stays in the queue, and its listener stays
 * readable: whoever polls it would spin. So the listener is left out for a moment, and
 * that is said now and then.
 */
#ifndef BASE_ACCEPT_H
#define BASE_ACCEPT_H

#include <stdbool.h>
#include <stdint.h>

#define TRIB_ACCEPT_PAUSE_MS 20

/* Zeroed: nothing has failed. By one thread. */
struct trib_accept_pause {
    uint64_t until; /* on the clock of trib_now_ns; 0: no pause */
    uint64_t said; /* when the failure was last to be said; 0: never */
};

/**
 * trib_accept_failed - note how accept() has failed.
 *
 * A pause of TRIB_ACCEPT_PAUSE_MS begins, unless only this one connection was concerned
 * (EAGAIN, EINTR, ECONNABORTED and the like).
 *
 * returns  true if the caller shall say so: at the first failure, then once a minute
 */
bool trib_accept_failed(struct trib_accept_pause *pause, int error);

/** trib_accept_paused - true if the listener is not to be polled now. */
bool trib_accept_paused(const struct trib_accept_pause *pause);

/** trib_accept_cure - "raise ulimit -n" and the like; "" where none is known. */
const char *trib_accept_cure(int error);

#endif
