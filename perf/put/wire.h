/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control stream between the two sides of `trib-perf put`: short messages, exchanged
 * while no write is being measured.
 *
 * Each message is a header and a body of fixed size. The header of a hello, and the
 * version at the start of its body, never change.
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
    PUT_CAPS, /* both: uint32_t, the transport's capabilities */
    PUT_READY, /* both, no body: connected; server: phase may begin */
    PUT_PHASE, /* client: struct put_phase */
    PUT_RESULT, /* server, after a phase: struct put_outcome */
    PUT_END, /* client, no body: no more phases */
    PUT_FAIL, /* either, at any time: a message, then end of stream */
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
    uint64_t area; /* bytes of the source, and of the target, per side */
    uint32_t bind; /* enum tool_bind */
    uint32_t zero;
};
static_assert(sizeof(struct put_setup) == 272, "no padding");

/* The address of a side, and its memory for the other side's writes. */
struct put_place {
    struct trib_address address;
    struct trib_blob memory;
};

enum put_phase_kind { PUT_PINGPONG, PUT_STREAM, PUT_VERIFY };

struct put_phase {
    uint32_t kind; /* enum put_phase_kind */
    uint32_t depth;
    uint64_t bytes;
    uint64_t n; /* writes, or rounds of a verification */
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
    char who[96]; /* the other side, for messages */
    struct trib_error *err;
};

/**
 * put_wire_open - use a connected stream socket; takes ownership of fd.
 *
 * err      receives the messages of all failures
 */
void put_wire_open(struct put_wire *wire, int fd, const char *who,
                   struct trib_error *err);
void put_wire_close(struct put_wire *wire);

/**
 * put_wire_hello - exchange hellos.
 *
 * answers  send the hello only after a valid one was received: the server
 * errors   TRIB_ERR_MISMATCH: other version; TRIB_ERR_PROTOCOL: not trib-perf put
 */
trib_status_t put_wire_hello(struct put_wire *wire, bool answers,
                             const struct put_hello *mine, struct put_hello *theirs_out,
                             uint64_t deadline);

/**
 * put_wire_send - send one message; len is 0 if it has no body.
 *
 * errors   TRIB_ERR_PEER_LOST, TRIB_ERR_TIMEOUT
 */
trib_status_t put_wire_send(struct put_wire *wire, enum put_kind kind, const void *body,
                            size_t len, uint64_t deadline);

/**
 * put_wire_receive - receive the next message, which must have this kind and length.
 *
 * deadline on the clock of trib_now_ns
 * errors   TRIB_ERR_PROTOCOL: invalid message; TRIB_ERR_PEER_LOST: end of stream;
 *          TRIB_ERR_TIMEOUT; any other: the other side has failed
 */
trib_status_t put_wire_receive(struct put_wire *wire, enum put_kind kind, void *body,
                               size_t len, uint64_t deadline);

/** put_wire_receive_any - receive a phase or the end; *kind_out says which. */
trib_status_t put_wire_receive_any(struct put_wire *wire, enum put_kind *kind_out,
                                   struct put_phase *phase_out, uint64_t deadline);

/** put_wire_fail - send the reason of a failure; the other side may have closed
 * already. */
void put_wire_fail(struct put_wire *wire, const char *sentence);

/** put_wire_said - return an error if the other side has sent a failure. Does not
 * wait. */
trib_status_t put_wire_said(struct put_wire *wire);

/**
 * put_wire_check - return an error if the other side has ended or failed, without
 * waiting.
 *
 * Other messages stay in the stream.
 */
trib_status_t put_wire_check(struct put_wire *wire);

#endif
