/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wire format of the verbs transport; see docs/wire-format.md.
 */
#ifndef TRANSPORT_VERBS_VERBS_WIRE_H
#define TRANSPORT_VERBS_VERBS_WIRE_H

#include <assert.h>
#include <stdint.h>

#include "base/proof.h"
#include "transport/transport.h"

#define VERBS_MAGIC UINT32_C(0x54726256) /* "TrbV" */
#define VERBS_VERSION 6 /* changes with the protocol */
#define VERBS_MTU_MAX 5 /* number of 4096 bytes; 1 is 256 */
#define VERBS_ADDRESSES 12
#define VERBS_PIECE_SHIFT_MAX 30 /* longer writes are always split */

/* Capabilities of a port. */
#define VERBS_HAS_IMMEDIATE 1 /* takes writes with immediate */
#define VERBS_HAS_SRQ 2 /* shared receive queues */
#define VERBS_CAPS (VERBS_HAS_IMMEDIATE | VERBS_HAS_SRQ)

/* IPv4 addresses are mapped into IPv6. */
struct verbs_ip {
    uint8_t bytes[16];
};

/* The address that a rank gives to its peers. */
struct verbs_address {
    uint32_t magic;
    uint16_t port; /* of librdmacm; 0: not used */
    uint16_t n; /* number of the device's addresses, for librdmacm */
    uint64_t key; /* random: unknown to other jobs and outsiders */
    uint64_t start, space, boot; /* from trib_process */
    int32_t pid;
    uint16_t heartbeat_port; /* UDP port */
    uint16_t oob_port; /* TCP port for OOB requests; 0: not accepted */
    uint64_t heartbeat_key;
    uint64_t net; /* inode of the network namespace */
    uint8_t more; /* number of host addresses after the device's, for OOB requests */
    uint8_t layer; /* enum verbs_layer of the port; 0: unknown */
    uint8_t piece_shift; /* log2 of the longest message that its port takes */
    uint8_t caps; /* VERBS_HAS_* */
    uint16_t pkey; /* its port's entry for the setting pkey=; 0: not set */
    uint8_t unused[2];
    struct verbs_ip ip[VERBS_ADDRESSES];
};

struct verbs_export {
    uint32_t magic;
    uint32_t rkey;
    uint64_t key; /* of the owner, as in its address */
    uint64_t address; /* address of the first byte in requests: see verbs_mr.c */
    uint64_t len;
};

/* Private data of a connection request; librdmacm allows 56 bytes. */
struct verbs_hello {
    uint32_t magic;
    uint8_t version; /* together with the next byte one number up to version 4 */
    uint8_t sizes; /* verbs_sizes */
    uint8_t caps; /* VERBS_HAS_*, of the requester's port */
    uint8_t step; /* enum verbs_step */
    int32_t rank; /* of the requester */
    int32_t pid;
    uint64_t key; /* of the listener */
    uint64_t settings; /* digest */
    uint8_t proof[TRIB_PROOF_BYTES_LEAST]; /* or a nonce: see enum verbs_step */
};
static_assert(sizeof(struct verbs_hello) == 56, "private data of a request");

/* The active MTU of the requester's port, 1 to VERBS_MTU_MAX, and log2 of the size of
 * its pieces, at most VERBS_PIECE_SHIFT_MAX; longer writes are split. */
static inline uint8_t verbs_sizes(uint8_t mtu, uint8_t piece_shift)
{
    return (uint8_t)(mtu << 5 | piece_shift);
}

static inline uint8_t verbs_hello_mtu(const struct verbs_hello *hello)
{
    return hello->sizes >> 5;
}

static inline uint8_t verbs_hello_piece_shift(const struct verbs_hello *hello)
{
    return hello->sizes & 31;
}

enum verbs_step {
    VERBS_ASKS, /* the job has no secret: `proof` is zero */
    VERBS_BEGINS, /* `proof` begins with a nonce; answered by VERBS_CHALLENGE */
    VERBS_PROVES,
};

enum verbs_refusal {
    VERBS_WELCOME,
    VERBS_STRANGER, /* wrong key: another job, or one that has ended */
    VERBS_OTHER_VERSION,
    VERBS_OTHER_SETTINGS,
    VERBS_OTHER_DEVICE, /* the request came in through an unused device or port */
    VERBS_LEFT, /* the listener has lost the requester; it accepts a later request */
    VERBS_TWICE, /* already connected */
    VERBS_NO_ROOM,
    VERBS_NO_WAY, /* no pair of GIDs of the two ports matches */
    VERBS_NONSENSE, /* malformed request */
    VERBS_CHALLENGE, /* the requester must prove that it has the job's secret, as this
                      * answer does */
    VERBS_OTHER_SECRET, /* only one side has a secret */
    VERBS_NOT_PROVED, /* the requester's proof is wrong or late */
    VERBS_OTHER_PARTITION, /* no partition of both ports that permits packets */
    VERBS_NO_DEVICE, /* the listener's device has failed */
    VERBS_GONE, /* it has disconnected from the requester, or lost it, for good */
};

/* Private data of an answer. */
struct verbs_answer {
    uint32_t magic;
    uint16_t version;
    uint8_t refusal;
    uint8_t mtu; /* VERBS_WELCOME through librdmacm: MTU of its port; else 0 */
    uint64_t key; /* of the listener */
    /* In VERBS_CHALLENGE, and VERBS_WELCOME with a secret. The proof of a welcome
     * covers the answer. */
    struct trib_challenge challenge;
};
static_assert(sizeof(struct verbs_answer) == 64, "private data of a rejection: 148");

/* Immediates of sends, as opposed to writes: the kind is in the upper four bits. */
enum verbs_control {
    VERBS_DISCONNECT = 1,
    VERBS_PIECES, /* value: number of pieces that precede the next write */
    VERBS_GIVEN_UP, /* the sender considers the receiver lost */
};
#define VERBS_CONTROL_SHIFT 28
#define VERBS_CONTROL_VALUE ((UINT32_C(1) << VERBS_CONTROL_SHIFT) - 1)

#endif
