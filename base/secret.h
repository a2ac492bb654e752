/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The job's secret, shared only by its ranks. base/proof.h proves that a peer has it.
 *
 * All functions may be called by any thread; none blocks.
 */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

#include "base/sodium.h"

struct trib_error;

#define TRIB_SECRET_BYTES 32
/* Length in hexadecimal digits, plus the NUL. */
#define TRIB_SECRET_TEXT (2 * TRIB_SECRET_BYTES + 1)
#define TRIB_SECRET_VARIABLE "TRIB_KEY"
#define TRIB_PROOF_BYTES 32 /* of a MAC */
#define TRIB_MAC_BYTES_MOST 2560 /* that a MAC covers */

/* Zero-initialised: no secret. */
struct trib_secret {
    bool is_set;
    uint8_t bytes[TRIB_SECRET_BYTES];
    struct trib_sodium sodium; /* open after trib_secret_arm */
};

/** trib_secret_make - generate 32 random bytes. Errors: TRIB_ERR_SYSTEM with a
 * message. */
trib_status_t trib_secret_make(struct trib_secret *out, struct trib_error *err);

/** trib_secret_parse - parse 64 hexadecimal digits; false: the text, of n bytes, is not
 * a secret. */
bool trib_secret_parse(const char *text, size_t n, struct trib_secret *out);

/** trib_secret_format - format as accepted by trib_secret_parse. */
void trib_secret_format(const struct trib_secret *secret, char text[TRIB_SECRET_TEXT]);

/**
 * trib_secret_given - read the secret from TRIB_KEY.
 *
 * out      not set if the variable is unset or empty
 * errors   TRIB_ERR_CONFIG: not a secret. The message does not repeat the value
 */
trib_status_t trib_secret_given(struct trib_secret *out, struct trib_error *err);

/**
 * trib_secret_split - extract the secret from a rendezvous text, "host:port#SECRET".
 *
 * root     receives the text before '#', cut at `bytes`
 * out      set, unless the text contains none
 * returns  false: the text after '#' is not a secret
 */
bool trib_secret_split(const char *text, char *root, size_t bytes,
                       struct trib_secret *out);

/**
 * trib_secret_arm - load the cryptographic library; required by the functions below.
 *
 * why      receives the reason of a failure
 * returns  false: the secret is no longer set
 */
bool trib_secret_arm(struct trib_secret *secret, char *why, size_t bytes);

/** trib_secret_derive - derive another secret, which does not reveal the original. */
void trib_secret_derive(const struct trib_secret *from, const char *label,
                        const void *bytes, size_t n, struct trib_secret *out);

/** trib_secret_mark - return eight bytes that are equal only for equal secrets; zero
 * without a secret. */
void trib_secret_mark(const struct trib_secret *secret, uint8_t out[8]);

/** trib_secret_wipe - erase the secret. */
void trib_secret_wipe(struct trib_secret *secret);

/** trib_secret_mac - compute a MAC of at most TRIB_MAC_BYTES_MOST bytes under a label,
 * which separates uses. */
void trib_secret_mac(const struct trib_secret *secret, const char *label,
                     const void *bytes, size_t n, uint8_t out[TRIB_PROOF_BYTES]);

#endif
