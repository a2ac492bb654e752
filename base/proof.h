/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Challenge and response: both ends of a connection prove that they have the job's
 * secret. All protocols of the ranks use these messages and steps; each has its own
 * header around them.
 *
 *     caller                                 listener
 *     trib_proof_begin: nonce 16 ──▶
 *                           ◀── nonce 16, proof 32 :trib_proof_challenge
 *     trib_proof_answer: proof 32 ──▶          verified by trib_proof_check
 *
 * Until the peer's proof is verified, nothing else from the peer is trusted. A proof is
 * a MAC under the secret over its side and the fields of struct trib_proof:
 *
 *     protocol         label    listener   ranks         more             request
 *     boot             boot 4   0          caller, 0     number of ranks  -
 *     tcp              tcp 7    its key    caller, peer  flags of both    -
 *     ucx              ucx 3    its key    caller, peer  flags            -
 *     verbs, rdmacm    verbs 6  its key    caller, peer  0                -
 *     verbs, OOB       verbs 6  its key    caller, peer  0                whole request
 *
 *     attack                                     prevented by
 *     replay of a proof on another connection    both nonces
 *     reflection of the listener's own proof     side
 *     use at another listener or port            listener, its random key
 *     use as another rank, or for another peer   ranks
 *     use in another protocol, or for a key      label
 *     change of flags or request on the way      more, request
 *
 * Each connection has one struct trib_proof. After TRIB_PROOF_DONE, keys derived from
 * it (trib_proof_make with another label) are secret and belong to this connection.
 *
 * All functions may be called by any thread; none blocks. The secret must be armed.
 */
#ifndef BASE_PROOF_H
#define BASE_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/secret.h"

#define TRIB_NONCE_BYTES 16
/* Shortest accepted proof, for protocols without room for all bytes. */
#define TRIB_PROOF_BYTES_LEAST 24

/* Parts of error messages that all protocols use. */
#define TRIB_PROOF_OTHER_SECRET \
    "does not have this job's secret; set the same TRIB_KEY on all ranks"
#define TRIB_PROOF_UNPROVED "did not prove that it has the secret of this job"
#define TRIB_PROOF_ONE_SIDED \
    "has no secret, but this rank has one (TRIB_KEY), or vice versa"

enum trib_proof_side { TRIB_PROOF_CALLER, TRIB_PROOF_LISTENER, TRIB_PROOF_SIDES };

enum trib_proof_step {
    TRIB_PROOF_NEW,
    TRIB_PROOF_BEGUN, /* caller: nonce generated, challenge expected */
    TRIB_PROOF_CHALLENGED, /* listener: challenge generated, proof expected */
    TRIB_PROOF_DONE, /* the peer has the secret */
    TRIB_PROOF_WRONG, /* the peer does not */
};

/* State of one side, and the data that both proofs cover. */
struct trib_proof {
    const char *label; /* protocol and version: "tcp 5" */
    const void *request; /* covered as a whole; or NULL. Must outlive the steps */
    size_t request_bytes;
    uint64_t listener; /* number of the listening side, from its address */
    int32_t rank[TRIB_PROOF_SIDES];
    uint8_t nonce[TRIB_PROOF_SIDES][TRIB_NONCE_BYTES];
    uint32_t more; /* another number known to both sides, or 0 */
    enum trib_proof_step step; /* not covered */
};

/* The listener's message; it has the same layout in all protocols. */
struct trib_challenge {
    uint8_t nonce[TRIB_NONCE_BYTES];
    uint8_t proof[TRIB_PROOF_BYTES];
};
_Static_assert(sizeof(struct trib_challenge) == 48, "no padding");

/** trib_proof_begin - caller: generate the nonce; false: the kernel has no random
 * bytes. */
bool trib_proof_begin(struct trib_proof *p, uint8_t nonce_out[TRIB_NONCE_BYTES]);

/**
 * trib_proof_challenge - listener: generate nonce and proof.
 *
 * p        all fields are set, the caller's nonce included
 * returns  false: the kernel has no random bytes
 */
bool trib_proof_challenge(const struct trib_secret *secret, struct trib_proof *p,
                          struct trib_challenge *out);

/**
 * trib_proof_answer - caller: verify the listener's proof and generate its own.
 *
 * out      the caller's proof. If the listener's is wrong: zeros, which the caller
 *          sends, too, so that a listener with another secret reports the mismatch
 * returns  false: the listener does not have the secret
 */
bool trib_proof_answer(const struct trib_secret *secret, struct trib_proof *p,
                       const struct trib_challenge *challenge,
                       uint8_t out[TRIB_PROOF_BYTES]);

/**
 * trib_proof_check - listener: verify the caller's proof. Runs in constant time.
 *
 * n        bytes of the proof: TRIB_PROOF_BYTES_LEAST or more
 */
bool trib_proof_check(const struct trib_secret *secret, struct trib_proof *p,
                      const uint8_t *proof, size_t n);

/** trib_proof_make - compute the MAC of one side; with another label, a key. */
void trib_proof_make(const struct trib_secret *secret, const struct trib_proof *p,
                     enum trib_proof_side side, uint8_t out[TRIB_PROOF_BYTES]);

#endif
