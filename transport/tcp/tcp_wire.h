/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of the tcp transport (docs/wire-format.md).
 *
 * Each rank listens on one port. To write to a peer, a rank connects to the peer's
 * port. It writes once both sides have proved that they have the job's secret
 * (tcp_proof.c), or at once if the job has none. The listener answers with a control
 * frame: accepted, or the reason for the refusal. A control frame is a struct tcp_head
 * without payload. Once both connections of a pair exist, the higher rank ends its own
 * with TCP_LAST. It continues on the lower rank's connection, after a TCP_BOTH_WAYS
 * frame. With TRIB_SEAL, everything after the proofs is in encrypted records
 * (tcp_seal.c).
 */
#ifndef TRANSPORT_TCP_TCP_WIRE_H
#define TRANSPORT_TCP_TCP_WIRE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/proof.h"

#define TCP_MAGIC UINT32_C(0x54726254) /* "TrbT"; never changes */
#define TCP_VERSION 7
/* Maximum payload of a record: the receiver decrypts one while the sender encrypts the
 * next, and both fit a core's cache. */
#define TCP_RECORD ((size_t)16 << 10)

enum tcp_kind {
    TCP_WRITE = 1,
    TCP_QUIET, /* a write without an event */
    TCP_WAKE,
    TCP_DISCONNECT,
    /* Sent only by the listening side. ACCEPT and REFUSE never change their layout: */
    TCP_ACCEPT,
    TCP_REFUSE, /* imm: enum tcp_refusal; off: the listener's version */
    /* frames follow here, after all frames on the other connection up to TCP_LAST */
    TCP_BOTH_WAYS,
    /* the writer continues on the reader's connection; also the reader's answer that it
     * has seen TCP_LAST */
    TCP_LAST,
    /* sent only by the listener, before TCP_ACCEPT: struct tcp_challenge */
    TCP_CHALLENGE,
    /* both directions: the writer has declared the reader lost, and closes the
     * connection */
    TCP_GIVEN_UP,
};

enum tcp_refusal {
    TCP_NOT_REFUSED,
    TCP_OTHER_VERSION,
    TCP_OTHER_JOB, /* wrong key */
    TCP_OTHER_RANK, /* out of range, or the listener's own */
    TCP_TWICE, /* this rank has a connection already */
    TCP_WAS_LOST, /* the listener has declared this rank lost */
    TCP_OTHER_FLAGS, /* only one side has a secret */
    TCP_NOT_PROVED, /* the connecting side's proof is wrong */
    TCP_OTHER_SEAL, /* only one side encrypts (TRIB_SEAL) */
};

/* Precedes each write; in the layout of x86-64 and AArch64 Linux. */
struct tcp_head {
    uint32_t magic;
    uint32_t kind;
    uint32_t region; /* id at the receiver */
    uint32_t imm;
    uint64_t off;
    uint64_t len;
};
static_assert(sizeof(struct tcp_head) == 32, "no padding");

/* The first bytes of a connection. magic and version keep their place in every version,
 * so that two versions can recognize each other. */
struct tcp_hello {
    uint32_t magic;
    uint32_t version;
    int32_t rank; /* of the connecting side */
    int32_t size;
    /* of the listening side: identifies it if its port has changed hands */
    uint64_t key;
    uint32_t flags; /* TCP_HAS_… */
    uint32_t unused; /* 0 */
    uint8_t nonce[TRIB_NONCE_BYTES];
};
static_assert(sizeof(struct tcp_hello) == 48, "no padding");

enum {
    TCP_HAS_SECRET = 1,
    /* everything after the proofs is in records (sealed_record.h), in both
     * directions */
    TCP_SEALS = 2,
    TCP_HAS_AES = 4, /* with TCP_SEALS: use AES256-GCM if both sides support it */
};

/* The listener's answer to a hello, if the job has a secret. The connecting side then
 * sends its proof of TRIB_PROOF_BYTES. */
struct tcp_challenge {
    struct tcp_head head; /* kind is TCP_CHALLENGE; imm holds the listener's flags */
    struct trib_challenge challenge;
};
static_assert(sizeof(struct tcp_challenge) == 80, "no padding");

#endif
