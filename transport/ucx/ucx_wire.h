/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wire format of the ucx transport; see docs/wire-format.md.
 */
#ifndef TRANSPORT_UCX_UCX_WIRE_H
#define TRANSPORT_UCX_UCX_WIRE_H

#include <assert.h>
#include <stdint.h>

#include "base/proof.h"
#include "transport/transport.h"

#define UCX_MAGIC UINT32_C(0x54726255) /* "TrbU", in every version */
#define UCX_VERSION 3 /* changes with the protocol */
#define UCX_NAME_MAX 8192 /* limit for a worker address; UCX chooses its length */

/* First bytes of a connection, followed by the worker address. magic and version keep
 * their place in every version, so that different versions recognize each other. */
struct ucx_hello {
    uint32_t magic;
    uint32_t version;
    int32_t rank; /* of the connecting side */
    int32_t size;
    uint64_t key; /* of the listening side */
    uint64_t settings; /* digest */
    uint32_t release; /* UCX's version: major << 16 | minor */
    uint32_t name_len; /* length of the worker address that follows */
    uint32_t flags; /* UCX_HAS_SECRET */
    uint32_t unused; /* 0 */
    uint8_t nonce[TRIB_NONCE_BYTES];
};
static_assert(sizeof(struct ucx_hello) == 64, "no padding");

enum { UCX_HAS_SECRET = 1 };

enum ucx_refusal {
    UCX_WELCOME_HERE,
    UCX_OTHER_VERSION,
    UCX_OTHER_JOB, /* wrong key */
    UCX_OTHER_RANK, /* out of range, or the listener's own */
    UCX_OTHER_SETTINGS,
    UCX_OTHER_RELEASE,
    UCX_TWICE, /* this rank is connected already */
    UCX_HAS_LEFT, /* the listener has disconnected from this rank, or lost it */
    UCX_NO_ENDPOINT,
    UCX_OTHER_FLAGS, /* only one side has a secret */
    UCX_NOT_PROVED, /* wrong proof of the connecting side */
};

enum ucx_control_kind {
    UCX_WELCOME = 1, /* value: length of the worker address that follows */
    /* value: enum ucx_refusal; bits 32..63: the listener's version (protocol or UCX) */
    UCX_REFUSE,
    UCX_WAKE,
    UCX_DISCONNECT, /* value: total number of messages sent */
    UCX_GOT_ALL, /* answers UCX_DISCONNECT */
    UCX_DROP, /* the sender has abandoned the receiver */
    UCX_UP, /* the sender's endpoint is up */
    UCX_CHALLENGE, /* struct ucx_challenge: before UCX_WELCOME, if there is a secret */
};

/* A control message, sent in both directions of each socket. */
struct ucx_control {
    uint32_t magic;
    uint32_t kind;
    uint64_t value;
};
static_assert(sizeof(struct ucx_control) == 16, "no padding");

/* Answers a hello. The connecting side replies with its proof of TRIB_PROOF_BYTES. */
struct ucx_challenge {
    struct ucx_control control;
    struct trib_challenge challenge;
};
static_assert(sizeof(struct ucx_challenge) == 64, "no padding");

enum ucx_message {
    UCX_WRITE = 1,
    UCX_QUIET, /* a write without an event */
    UCX_FIRST, /* wire-up message, not numbered */
};

#define UCX_AM_ID 0x54

/* Header of an active message; the payload is the data of the write. */
struct ucx_head {
    uint64_t key; /* the receiver's, or derived from both proofs (ucx_proof.c) */
    uint32_t kind;
    int32_t rank; /* of the sender */
    uint64_t number; /* counts the sender's messages to this receiver, from 0 */
    uint64_t off;
    uint64_t len;
    uint32_t region; /* of the receiver */
    uint32_t imm;
};
static_assert(sizeof(struct ucx_head) == 48, "no padding");

#endif
