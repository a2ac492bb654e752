/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages between ranks over verbs; see docs/wire-format.md.
 */
#ifndef TRANSPORT_VERBS_VERBS_WIRE_H
#define TRANSPORT_VERBS_VERBS_WIRE_H

#include <assert.h>
#include <stdint.h>

#include "base/secret.h"
#include "transport/transport.h"

#define VERBS_MAGIC UINT32_C(0x54726256) /* "TrbV" */
#define VERBS_VERSION 5 /* changes with the protocol */
#define VERBS_MTU_MAX 5 /* the number of 4096 bytes; 1 is 256 */
#define VERBS_ADDRESSES 12
#define VERBS_PIECE_SHIFT_MAX 30 /* a longer write is cut, whatever the device can */

/* IPv4 is mapped into IPv6. */
struct verbs_ip {
    uint8_t bytes[16];
};

/* Address. */
struct verbs_address {
    uint32_t magic;
    uint16_t port; /* of the connection manager; 0: not by it */
    uint16_t n; /* addresses of the device, for the connection manager */
    uint64_t key; /* random: strangers and other jobs do not know it */
    uint64_t start, space, boot; /* of trib_process */
    int32_t pid;
    uint16_t heartbeat_port; /* UDP, of heartbeats */
    uint16_t oob_port; /* TCP port for OOB requests; 0: none are taken */
    uint64_t heartbeat_key;
    uint64_t net; /* inode of the network name space */
    uint8_t more; /* addresses of the host behind those of the device, for OOB
                   * requests */
    uint8_t layer; /* enum verbs_layer of the port; 0: not known */
    uint8_t unused[6];
    struct verbs_ip ip[VERBS_ADDRESSES];
};
/* Four devices of a rank, and 700 bytes for what "auto" and "rails" have beside
 * them. */
static_assert(4 * sizeof(struct verbs_address) + 700 <= TRIB_ADDRESS_MAX, "address");

struct verbs_export {
    uint32_t magic;
    uint32_t rkey;
    uint64_t key; /* of the owner, as in its address */
    uint64_t address; /* of its first byte, as RDMA names it: see verbs_mr.c */
    uint64_t len;
};
static_assert(4 * sizeof(struct verbs_export) + 100 <= TRIB_BLOB_MAX, "region");

/* The private data of a request for a connection; the connection manager has room for
 * 56 bytes. */
struct verbs_hello {
    uint32_t magic;
    uint8_t version; /* and the next byte were one number up to version 4 */
    uint8_t mtu; /* active, of the port of who asks: 1 to VERBS_MTU_MAX */
    uint8_t piece_shift; /* longer writes come in pieces of 1 << piece_shift bytes */
    uint8_t step; /* enum verbs_step */
    int32_t rank; /* of who asks */
    int32_t pid;
    uint64_t key; /* of who is asked */
    uint64_t settings; /* digest */
    uint8_t proof[TRIB_PROOF_BYTES_LEAST]; /* or a nonce: see the step */
};
static_assert(sizeof(struct verbs_hello) == 56, "private data of a request");

enum verbs_step {
    VERBS_ASKS, /* the job has no secret: proof is zero */
    VERBS_BEGINS, /* proof begins with a nonce; VERBS_CHALLENGE answers it */
    VERBS_PROVES,
};

enum verbs_refusal {
    VERBS_WELCOME,
    VERBS_STRANGER, /* the key is not ours: another job, or one that has ended */
    VERBS_OTHER_VERSION,
    VERBS_OTHER_SETTINGS,
    VERBS_OTHER_DEVICE, /* it came in by a device or port that this rank does not use */
    VERBS_LEFT, /* this rank has left the asking one, or lost it */
    VERBS_TWICE, /* there is a connection already */
    VERBS_NO_ROOM,
    VERBS_NO_WAY, /* no GIDs of both ports fit together */
    VERBS_NONSENSE, /* a request that cannot be understood */
    VERBS_CHALLENGE, /* prove that you have the job's secret, as this answer does */
    VERBS_OTHER_SECRET, /* one has a secret and the other has none */
    VERBS_NOT_PROVED, /* the proof of who asks is wrong, or came too late */
};

/* The private data of an answer. */
struct verbs_answer {
    uint32_t magic;
    uint16_t version;
    uint8_t refusal;
    uint8_t mtu; /* of VERBS_WELCOME by the connection manager: of the port of who
                  * answers; else 0 */
    uint64_t key; /* of who answers */
    uint8_t nonce[TRIB_NONCE_BYTES]; /* of who answers; zero where there is no secret */
    uint8_t proof[TRIB_PROOF_BYTES]; /* of VERBS_CHALLENGE and VERBS_WELCOME */
};
static_assert(sizeof(struct verbs_answer) == 64, "private data of a rejection: 148");

/* Immediates of sends, which are not writes: kind in the upper four bits. */
enum verbs_control {
    VERBS_BYE = 1,
    VERBS_PIECES, /* that many pieces came before the write that follows */
    VERBS_GIVEN_UP, /* the sender counts the receiver as lost */
};
#define VERBS_CONTROL_SHIFT 28

#endif
