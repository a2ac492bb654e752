/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The secret of a job, which its ranks share and nobody else has, and proofs of having
 * it.
 *
 * Whoever connects to a rank, and the rank, each send a nonce; then each sends a proof,
 * a MAC under the secret over the role, both nonces, both ranks and the number of the
 * listening side. A proof is worth nothing on another connection, at another port, for
 * another rank, in the other direction, or a second time. Before it holds, nothing else
 * of the other side is believed.
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
#define TRIB_SECRET_TEXT (2 * TRIB_SECRET_BYTES + 1) /* length in hexadecimal digits,
                                                      * with the zero */
#define TRIB_SECRET_VARIABLE "TRIB_KEY"
#define TRIB_NONCE_BYTES 16
#define TRIB_PROOF_BYTES 32
#define TRIB_PROOF_BYTES_LEAST 24 /* shortest proof, for a wire without room for all
                                   * bytes */

/* Zeroed: there is none. */
struct trib_secret {
    bool is_set;
    uint8_t bytes[TRIB_SECRET_BYTES];
    struct trib_sodium sodium; /* open once trib_secret_arm has succeeded */
};

/** trib_secret_make - 32 bytes at random. TRIB_ERR_SYSTEM with a sentence. */
trib_status_t trib_secret_make(struct trib_secret *out, struct trib_error *err);

/** trib_secret_parse - 64 hexadecimal digits; false: the text, of n bytes, is something
 * else. */
bool trib_secret_parse(const char *text, size_t n, struct trib_secret *out);

/** trib_secret_format - write it as trib_secret_parse reads it. */
void trib_secret_format(const struct trib_secret *secret, char text[TRIB_SECRET_TEXT]);

/**
 * trib_secret_given - the secret in TRIB_KEY.
 *
 * out      not set where the variable is not set, or empty
 * errors   TRIB_ERR_CONFIG: the variable is no secret. The sentence does not repeat it
 */
trib_status_t trib_secret_given(struct trib_secret *out, struct trib_error *err);

/**
 * trib_secret_split - the secret in the text of a meeting place, "host:port#SECRET".
 *
 * root     receives the text before '#', cut at `bytes`
 * out      is set, unless the text has none
 * returns  false: what follows '#' is no secret
 */
bool trib_secret_split(const char *text, char *root, size_t bytes,
                       struct trib_secret *out);

/**
 * trib_secret_arm - open what proofs need; before any function below.
 *
 * why      receives why it cannot be used
 * returns  false: the secret is then no longer set
 */
bool trib_secret_arm(struct trib_secret *secret, char *why, size_t bytes);

/** trib_secret_derive - another secret, which does not tell the first one. */
void trib_secret_derive(const struct trib_secret *from, const char *label,
                        const void *bytes, size_t n, struct trib_secret *out);

/** trib_secret_mark - eight bytes that two secrets share only if they are the same one.
 * Zero where there is none. */
void trib_secret_mark(const struct trib_secret *secret, uint8_t out[8]);

/** trib_secret_wipe - forget it. */
void trib_secret_wipe(struct trib_secret *secret);

/* Proofs --------------------------------------------------------------------------- */

enum trib_proof_side { TRIB_PROOF_CALLER, TRIB_PROOF_LISTENER, TRIB_PROOF_SIDES };

/* The subject of a proof: the same on both sides of a connection. */
struct trib_proof {
    const char *label; /* label of the protocol and its version: "tcp 5" */
    uint64_t listener; /* number of the listening side, from its address */
    int32_t rank[TRIB_PROOF_SIDES];
    uint8_t nonce[TRIB_PROOF_SIDES][TRIB_NONCE_BYTES];
    uint32_t more; /* another number that both sides have told each other, or 0 */
};

/** trib_nonce_make - false: the kernel has no random bytes. */
bool trib_nonce_make(uint8_t out[TRIB_NONCE_BYTES]);

/** trib_proof_make - the proof of one side; the secret is armed. */
void trib_proof_make(const struct trib_secret *secret, const struct trib_proof *about,
                     enum trib_proof_side side, uint8_t out[TRIB_PROOF_BYTES]);

/**
 * trib_proof_holds - true if that side has the secret. Takes as long for a wrong proof
 * as for a right one.
 *
 * n        bytes of the proof: TRIB_PROOF_BYTES_LEAST or more
 */
bool trib_proof_holds(const struct trib_secret *secret, const struct trib_proof *about,
                      enum trib_proof_side side, const uint8_t *proof, size_t n);

/** trib_secret_mac - authenticate at most 2560 bytes under a label, which keeps uses
 * apart. */
void trib_secret_mac(const struct trib_secret *secret, const char *label,
                     const void *bytes, size_t n, uint8_t out[TRIB_PROOF_BYTES]);

#endif
