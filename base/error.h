/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last-error buffer: the message that explains a status.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdint.h>

#include <tributary/status.h>

/* Used by one thread at a time. Zero-initialised: no error. */
struct trib_error {
    trib_status_t status;
    char text[512];
};

/**
 * trib_fail - record an error; return status, for use in a return statement.
 *
 * The first error is kept as the cause; later ones are dropped until trib_error_clear.
 * err      may be NULL
 * fmt      printf format, with %m; names the problem, the place and the cure. Arguments
 *          may come from unauthenticated peers: the text is sanitised (base/plain.h)
 */
trib_status_t trib_fail(struct trib_error *err, trib_status_t status, const char *fmt,
                        ...) __attribute__((format(printf, 3, 4)));

/** trib_error_clear - reset for the next operation. NULL is allowed. */
void trib_error_clear(struct trib_error *err);

/** trib_error_text - return the error message, or the general text of the status. */
const char *trib_error_text(const struct trib_error *err);

/**
 * trib_status_of_peer - convert a status number sent by a peer.
 *
 * returns  TRIB_OK for 0, an error that this version knows, else TRIB_ERR_PROTOCOL
 */
trib_status_t trib_status_of_peer(int64_t number);

#endif
