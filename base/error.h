/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last-error buffer: the sentence behind a status.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdint.h>

#include <tributary/status.h>

/* Belongs to one thread at a time. Zero-initialised means: no error. */
struct trib_error {
    trib_status_t status;
    char text[512];
};

/**
 * trib_fail - note why an operation fails; returns status, so that it can be returned.
 *
 * The first error wins: it is the cause, what follows are consequences. They are
 * dropped until trib_error_clear.
 * err      may be NULL
 * fmt      printf's, with %m; a sentence that names what was wrong, where, and the
 *          cure. Much of it may come from strangers: the text is plain (base/plain.h)
 */
trib_status_t trib_fail(struct trib_error *err, trib_status_t status, const char *fmt,
                        ...) __attribute__((format(printf, 3, 4)));

/** trib_error_clear - ready for the next operation. NULL is allowed. */
void trib_error_clear(struct trib_error *err);

/** trib_error_text - the sentence; the status' general text where none was given. */
const char *trib_error_text(const struct trib_error *err);

/**
 * trib_status_of_peer - a status out of a number that a peer has sent.
 *
 * returns  TRIB_OK of 0, an error that this version knows; TRIB_ERR_PROTOCOL of
 *          anything else
 */
trib_status_t trib_status_of_peer(int64_t number);

#endif
