/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Warnings of strangers at a port: the first at once, then one line now and then which
 * says how many there were, so that nobody fills a log by knocking.
 */
#ifndef BASE_STRANGER_H
#define BASE_STRANGER_H

#include <stdint.h>

#define TRIB_STRANGER_PAUSE_MS 10000 /* interval between two lines */

struct trib_log;

/* The strangers at one port. Zeroed: nobody has come. For one thread. */
struct trib_strangers {
    uint64_t next_ns; /* no line before this moment */
    unsigned untold;  /* have come since the last line */
};

/**
 * trib_stranger_warn - say what somebody did at a port, with his address.
 *
 * ip       16 bytes as in base/addresses.h; NULL where it is not known
 * port     at which he knocked
 * what     a clause about him: "did not prove that it has the secret of this job"
 */
void trib_stranger_warn(struct trib_strangers *s, const struct trib_log *log,
                        const char *component, const uint8_t *ip, unsigned port,
                        const char *what);

#endif
