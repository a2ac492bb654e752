/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The job's secret, shared only by its ranks, and proofs of knowing it.
 *
 * Both ends of a connection send a nonce. Then each sends a proof: a MAC under the
 * secret over the role, both nonces, both ranks and the number of the listening side. A
 * proof is thus invalid on another connection, at another port, for another rank, in
 * the other direction, and when replayed. Until the proof is verified, nothing else
 * from the peer is trusted.
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
#define TRIB_NONCE_BYTES 16
#define TRIB_PROOF_BYTES 32
/* Shortest accepted proof, for protocols without room for all bytes. */
#define TRIB_PROOF_BYTES_LEAST 24

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

/* Proofs --------------------------------------------------------------------------- */

enum trib_proof_side { TRIB_PROOF_CALLER, TRIB_PROOF_LISTENER, TRIB_PROOF_SIDES };

/* Data that a proof covers; equal on both sides of a connection. */
struct trib_proof {
    const char *label; /* protocol and version: "tcp 5" */
    uint64_t listener; /* number of the listening side, from its address */
    int32_t rank[TRIB_PROOF_SIDES];
    uint8_t nonce[TRIB_PROOF_SIDES][TRIB_NONCE_BYTES];
    uint32_t more; /* another number exchanged by both sides, or 0 */
};

/** trib_nonce_make - generate a nonce; false: the kernel has no random bytes. */
bool trib_nonce_make(uint8_t out[TRIB_NONCE_BYTES]);

/** trib_proof_make - compute the proof of one side; the secret must be armed. */
void trib_proof_make(const struct trib_secret *secret, const struct trib_proof *about,
                     enum trib_proof_side side, uint8_t out[TRIB_PROOF_BYTES]);

/**
 * trib_proof_holds - return true if that side knows the secret. Runs in constant time.
 *
 * n        bytes of the proof: TRIB_PROOF_BYTES_LEAST or more
 */
bool trib_proof_holds(const struct trib_secret *secret, const struct trib_proof *about,
                      enum trib_proof_side side, const uint8_t *proof, size_t n);

/** trib_secret_mac - compute a MAC of at most 2560 bytes under a label, which separates
 * uses. */
void trib_secret_mac(const struct trib_secret *secret, const char *label,
                     const void *bytes, size_t n, uint8_t out[TRIB_PROOF_BYTES]);

#endif
