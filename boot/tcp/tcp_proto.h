/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of the TCP boot. Pure functions on bytes: no sockets, no clock, no memory.
 *
 *      0       4      5      6        8          12         16
 *     +-------+------+------+--------+----------+----------+---------
 *     | magic | vers | kind |   0    | exchange |  length  | payload
 *     +-------+------+------+--------+----------+----------+---------
 *
 * Numbers are little-endian. `exchange` counts the all-gathers from 1; 0 where it has
 * no meaning. Who connects sends a HELLO, and is answered by a WELCOME or a FAIL. Where
 * the job has a secret (base/proof.h), the answer is a CHALLENGE with the server's
 * nonce and proof; the WELCOME follows the client's PROOF.
 *
 *     HELLO, WELCOME   size 4, rank 4, pid 4, host 65, library version 24, has a secret
 *                      4, nonce 16
 *     CHALLENGE        nonce 16, proof 32
 *     PROOF            proof 32
 *     GATHER           phase 24, bytes of one rank
 *     RESULT           bytes of all ranks, by rank
 *     FAIL             status 4, a sentence
 *     TICK             nothing: the sender is not stopped
 */
#ifndef BOOT_TCP_TCP_PROTO_H
#define BOOT_TCP_TCP_PROTO_H

#include <stddef.h>
#include <stdint.h>

#include "base/proof.h"
#include "boot/boot.h"
#include "boot/rank_names.h"

#include <tributary/status.h>

#define TRIB_TCP_VERSION 4
#define TRIB_TCP_HEAD_BYTES 16
#define TRIB_TCP_LIBRARY_BYTES 24
#define TRIB_TCP_HELLO_BYTES \
    (12 + TRIB_HOST_BYTES + TRIB_TCP_LIBRARY_BYTES + 4 + TRIB_NONCE_BYTES)
#define TRIB_TCP_CHALLENGE_BYTES sizeof(struct trib_challenge)
/* Length of an error message, with the NUL, which is not sent. */
#define TRIB_TCP_TEXT_BYTES 512
#define TRIB_TCP_GATHER_BYTES (TRIB_BOOT_PHASE_MAX + TRIB_BOOT_BLOB_MAX)
/* The largest frame that is not a RESULT. */
#define TRIB_TCP_SMALL_BYTES (TRIB_TCP_HEAD_BYTES + TRIB_TCP_GATHER_BYTES)

enum trib_tcp_kind {
    TRIB_TCP_HELLO = 1,
    TRIB_TCP_WELCOME,
    TRIB_TCP_GATHER,
    TRIB_TCP_RESULT,
    TRIB_TCP_FAIL,
    TRIB_TCP_TICK,
    TRIB_TCP_CHALLENGE,
    TRIB_TCP_PROOF,
};

struct trib_tcp_frame {
    enum trib_tcp_kind kind;
    uint32_t exchange;
    uint32_t length;
    const uint8_t *payload; /* points into the parsed bytes */
};

struct trib_tcp_hello {
    int size;
    struct trib_rank_name who;
    char library[TRIB_TCP_LIBRARY_BYTES];
    bool has_secret;
    uint8_t nonce[TRIB_NONCE_BYTES]; /* nonce in the HELLO of a rank with a secret */
};

struct trib_tcp_gather {
    char phase[TRIB_BOOT_PHASE_MAX];
    uint32_t bytes;
    const uint8_t *blob;
};

struct trib_tcp_failure {
    trib_status_t status; /* always an error */
    char text[TRIB_TCP_TEXT_BYTES];
};

/**
 * trib_tcp_parse - parse the first frame in `bytes`.
 *
 * result_max  longest acceptable payload of a RESULT; 0: none
 * used_out    bytes of the frame
 * returns     TRIB_INPROGRESS: more bytes needed; TRIB_ERR_UNSUPPORTED: our protocol,
 *             another version; TRIB_ERR_PROTOCOL: anything else. The length is checked
 *             against the kind as soon as the head is complete
 */
trib_status_t trib_tcp_parse(const uint8_t *bytes, size_t n, size_t result_max,
                             struct trib_tcp_frame *out, size_t *used_out);

/**
 * trib_tcp_parse_* - parse a payload. Texts are sanitised and terminated. Errors:
 * TRIB_ERR_PROTOCOL for a frame of another kind and for negative sizes, ranks and PIDs.
 * The server checks that a rank is in range.
 */
trib_status_t trib_tcp_parse_hello(const struct trib_tcp_frame *frame,
                                   struct trib_tcp_hello *out);
trib_status_t trib_tcp_parse_gather(const struct trib_tcp_frame *frame,
                                    struct trib_tcp_gather *out);
trib_status_t trib_tcp_parse_challenge(const struct trib_tcp_frame *frame,
                                       struct trib_challenge *out);
trib_status_t trib_tcp_parse_fail(const struct trib_tcp_frame *frame,
                                  struct trib_tcp_failure *out);

/** trib_tcp_proof - return the proof of a connection that begins with this HELLO. */
struct trib_proof trib_tcp_proof(const struct trib_tcp_hello *hello);

/** trib_tcp_put_head - write a head; returns TRIB_TCP_HEAD_BYTES. */
size_t trib_tcp_put_head(uint8_t *out, enum trib_tcp_kind kind, uint32_t exchange,
                         size_t length);

/** trib_tcp_put_* - write a whole frame; return its bytes. */
size_t trib_tcp_put_hello(uint8_t out[TRIB_TCP_SMALL_BYTES], enum trib_tcp_kind kind,
                          const struct trib_tcp_hello *hello);
size_t trib_tcp_put_challenge(uint8_t out[TRIB_TCP_SMALL_BYTES],
                              const struct trib_challenge *challenge);
size_t trib_tcp_put_proof(uint8_t out[TRIB_TCP_SMALL_BYTES],
                          const uint8_t proof[TRIB_PROOF_BYTES]);
size_t trib_tcp_put_gather(uint8_t out[TRIB_TCP_SMALL_BYTES], uint32_t exchange,
                           const struct trib_tcp_gather *gather);
size_t trib_tcp_put_fail(uint8_t out[TRIB_TCP_SMALL_BYTES],
                         const struct trib_tcp_failure *failure);

#endif
