/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stream between the two sides of `trib-perf put`: short messages in turn, while no
 * write is being measured.
 *
 * Each message is a head and a body of fixed size. The head of a hello, and the version
 * at the start of its body, are the same in all versions to come.
 */
#ifndef PERF_PUT_WIRE_H
#define PERF_PUT_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

#include "base/host.h"
#include "transport/transport.h"

struct trib_error;

enum put_kind {
    PUT_HELLO = 1, /* both, first: struct put_hello */
    PUT_SETUP, /* client: struct put_setup */
    PUT_PLACE, /* both: struct put_place */
    PUT_CAPS, /* both: uint32_t, what the transport tells of itself */
    PUT_READY, /* both, no body: connected; server: phase may begin */
    PUT_PHASE, /* client: struct put_phase */
    PUT_RESULT, /* server, behind a phase: struct put_outcome */
    PUT_END, /* client, no body: no more phases */
    PUT_FAIL, /* either, at any time: a sentence, then the end of the stream */
};

struct put_head {
    uint32_t magic;
    uint32_t kind;
    uint32_t len; /* of the body */
    uint32_t zero;
};
static_assert(sizeof(struct put_head) == 16, "no padding");

struct put_hello {
    char version[32];
    char host[TRIB_HOST_BYTES];
};
static_assert(sizeof(struct put_hello) == 32 + TRIB_HOST_BYTES, "no padding");

struct put_setup {
    char transport[256];
    uint64_t area; /* bytes of the source, and of the target, on each side */
    uint32_t bind; /* enum tool_bind */
    uint32_t zero;
};
static_assert(sizeof(struct put_setup) == 272, "no padding");

/* The address of a side, and the memory that the other one writes. */
struct put_place {
    struct trib_address address;
    struct trib_blob memory;
};

enum put_phase_kind { PUT_PINGPONG, PUT_STREAM, PUT_VERIFY };

struct put_phase {
    uint32_t kind; /* enum put_phase_kind */
    uint32_t depth;
    uint64_t bytes;
    uint64_t n; /* writes; rounds of a verification */
    uint32_t bidirectional;
    uint32_t zero;
};
static_assert(sizeof(struct put_phase) == 32, "no padding");

struct put_outcome {
    double cpu_s;
    uint64_t wrong;
};
static_assert(sizeof(struct put_outcome) == 16, "no padding");

#define PUT_SENTENCE_MAX 480

struct put_wire {
    int fd; /* -1: none */
    char who[96]; /* the other side, for sentences */
    struct trib_error *err;
};

/**
 * put_wire_open - speak over a connected stream socket, which becomes the wire's.
 *
 * err      receives the sentences of all that fails here
 */
void put_wire_open(struct put_wire *wire, int fd, const char *who,
                   struct trib_error *err);
void put_wire_close(struct put_wire *wire);

/**
 * put_wire_hello - say who this side is, hear who the other is.
 *
 * answers  says it second, and to no stranger: the server
 * errors   TRIB_ERR_MISMATCH: it has another version; TRIB_ERR_PROTOCOL: a stranger
 */
trib_status_t put_wire_hello(struct put_wire *wire, bool answers,
                             const struct put_hello *mine, struct put_hello *theirs_out,
                             uint64_t deadline);

/**
 * put_wire_send - one message; len is 0 for those without a body.
 *
 * errors   TRIB_ERR_PEER_LOST, TRIB_ERR_TIMEOUT
 */
trib_status_t put_wire_send(struct put_wire *wire, enum put_kind kind, const void *body,
                            size_t len, uint64_t deadline);

/**
 * put_wire_receive - the next message, which must be of this kind and length.
 *
 * deadline on the clock of trib_now_ns
 * errors   TRIB_ERR_PROTOCOL: not what this program says; TRIB_ERR_PEER_LOST: it has
 *          ended; TRIB_ERR_TIMEOUT; any, where the other side said that it failed
 */
trib_status_t put_wire_receive(struct put_wire *wire, enum put_kind kind, void *body,
                               size_t len, uint64_t deadline);

/** put_wire_receive_any - a phase or the end: *kind_out says which. */
trib_status_t put_wire_receive_any(struct put_wire *wire, enum put_kind *kind_out,
                                   struct put_phase *phase_out, uint64_t deadline);

/** put_wire_fail - tell the other side why this one ends; it may have gone already. */
void put_wire_fail(struct put_wire *wire, const char *sentence);

/** put_wire_said - has the other side said that it failed? A look, not a wait. */
trib_status_t put_wire_said(struct put_wire *wire);

/**
 * put_wire_look - has the other side ended or failed? A look, not a wait.
 *
 * What it says in its turn stays to be received.
 */
trib_status_t put_wire_look(struct put_wire *wire);

#endif
