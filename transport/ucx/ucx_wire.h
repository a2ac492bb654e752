/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages between ranks over ucx; see docs/wire-format.md.
 */
#ifndef TRANSPORT_UCX_UCX_WIRE_H
#define TRANSPORT_UCX_UCX_WIRE_H

#include <assert.h>
#include <stdint.h>

#include "base/secret.h"
#include "transport/transport.h"

#define UCX_MAGIC UINT32_C(0x54726255) /* "TrbU", for ever */
#define UCX_VERSION 3 /* changes with the protocol */
#define UCX_NAME_MAX \
    8192 /* of a worker's address, which UCX makes as long as it \
          * likes */

/* The first bytes of a connection, then the address of the worker. magic and version
 * stay where they are in every version, so that two of them can tell each other. */
struct ucx_hello {
    uint32_t magic;
    uint32_t version;
    int32_t rank; /* of the connecting side */
    int32_t size;
    uint64_t key; /* of the listening side */
    uint64_t settings; /* digest */
    uint32_t release; /* of UCX: major << 16 | minor */
    uint32_t name_len; /* bytes that follow */
    uint32_t flags; /* UCX_HAS_SECRET */
    uint32_t unused; /* 0 */
    uint8_t nonce[TRIB_NONCE_BYTES];
};
static_assert(sizeof(struct ucx_hello) == 64, "no padding");

enum { UCX_HAS_SECRET = 1 };

enum ucx_refusal {
    UCX_WELCOME_HERE,
    UCX_OTHER_VERSION,
    UCX_OTHER_JOB, /* the key is wrong */
    UCX_OTHER_RANK, /* out of range, or the listener's own */
    UCX_OTHER_SETTINGS,
    UCX_OTHER_RELEASE,
    UCX_TWICE, /* a connection of this rank is here */
    UCX_HAS_LEFT, /* the listener has left this rank, or lost it */
    UCX_NO_ENDPOINT,
    UCX_OTHER_FLAGS, /* one has a secret and the other has none */
    UCX_NOT_PROVED, /* the proof of who connects is wrong */
};

enum ucx_word_kind {
    UCX_WELCOME = 1, /* value: bytes of the worker's address that follow */
    UCX_REFUSE, /* value: an enum ucx_refusal and, from bit 32, what the listener has */
    UCX_WAKE,
    UCX_BYE, /* value: messages that were sent on the whole */
    UCX_GOT_ALL, /* answers a BYE */
    UCX_DROP, /* the sender has given the receiver up */
    UCX_UP, /* the sender's endpoint is up */
    UCX_CHALLENGE, /* before UCX_WELCOME, where the job has a secret: struct
                    * ucx_challenge */
};

/* Both ways, on each connection. */
struct ucx_word {
    uint32_t magic;
    uint32_t kind;
    uint64_t value;
};
static_assert(sizeof(struct ucx_word) == 16, "no padding");

/* Answers a hello; the proof of who connects, TRIB_PROOF_BYTES of them, comes back. */
struct ucx_challenge {
    struct ucx_word word;
    uint8_t nonce[TRIB_NONCE_BYTES];
    uint8_t proof[TRIB_PROOF_BYTES];
};
static_assert(sizeof(struct ucx_challenge) == 64, "no padding");

enum ucx_message {
    UCX_WRITE = 1,
    UCX_QUIET, /* a write without an event */
    UCX_FIRST, /* the endpoint has come up; without a number */
};

#define UCX_AM_ID 0x54

/* Header of an active message; its payload is the write's. */
struct ucx_head {
    uint64_t key; /* of the receiver, or with a secret that of both (ucx_proof.c) */
    uint32_t kind;
    int32_t rank; /* of the sender */
    uint64_t number; /* of the sender's messages to this receiver, from 0 */
    uint64_t off;
    uint64_t len;
    uint32_t region; /* of the receiver */
    uint32_t imm;
};
static_assert(sizeof(struct ucx_head) == 48, "no padding");

#endif
