/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rate-limited warnings about unauthenticated peers at a port: the first at once, then
 * one line per interval with a count, so that connection attempts cannot flood the log.
 */
#ifndef BASE_UNAUTHENTICATED_H
#define BASE_UNAUTHENTICATED_H

#include <stdint.h>

#define TRIB_UNAUTHENTICATED_PAUSE_MS 10000 /* interval between two lines */

struct trib_log;

/* Unauthenticated peers at one port. Zero-initialised: none yet. For one thread. */
struct trib_unauthenticated {
    uint64_t next_ns; /* no line before this time */
    unsigned unlogged; /* peers since the last line */
};

/**
 * trib_unauthenticated_warn - log that a peer failed to authenticate, with its address.
 *
 * ip       16 bytes as in base/addresses.h; NULL if unknown
 * port     local port
 * what     predicate of the message: "did not prove that it has the secret of this job"
 */
void trib_unauthenticated_warn(struct trib_unauthenticated *s,
                               const struct trib_log *log, const char *component,
                               const uint8_t *ip, unsigned port, const char *what);

#endif
