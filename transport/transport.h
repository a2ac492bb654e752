/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Types of the transport contract: addresses, memory, writes and events.
 *
 * A transport connects this process (peer number `self`) with its peers, numbered
 * 0..size-1. Peers write into each other's registered regions. A write completes with
 * an event at the target that carries 32 bits of immediate data.
 *
 * ops.h has the operations and the guarantees of every backend, open.h the functions to
 * open a transport, op_defaults.h what backends share.
 */
#ifndef TRANSPORT_TRANSPORT_H
#define TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for every candidate of "auto"; the largest is verbs with four RDMA devices per
 * rank. Frames carry blobs, so each byte of a blob adds a little to every operation. */
#define TRIB_ADDRESS_MAX 1792
#define TRIB_BLOB_MAX 240
#define TRIB_WHY_MAX 160

/* The immediate reserved for the transports' own messages. */
#define TRIB_IMM_OWN UINT32_C(0xffffffff)

/* The address of a transport. Each rank sends it to its peers once, unmodified. */
struct trib_address {
    uint16_t len;
    uint8_t bytes[TRIB_ADDRESS_MAX];
};

/* A peer to connect to. */
struct trib_target {
    int peer;
    const struct trib_address *address;
    /* set by connect_many: */
    bool tried; /* the next connect returns its result */
    uint64_t failed_ns; /* time that it took to fail; 0: it has not failed */
};

static inline void trib_target_reset(struct trib_target *target)
{
    target->tried = false;
    target->failed_ns = 0;
}

/* A connect that fails after this time or later has had no answer. */
#define TRIB_SILENT_NS UINT64_C(1000000000)

/* An exported region. It is sent to peers unmodified, also inside frames. */
struct trib_blob {
    uint16_t len;
    uint16_t mappable; /* peers with load/store access can map this region */
    uint8_t bytes[TRIB_BLOB_MAX];
};

enum trib_event_kind {
    TRIB_EVENT_WRITE_DONE, /* the source of the write with `token` may be changed */
    TRIB_EVENT_ARRIVED, /* a write from a peer has arrived */
    /* the connection is closed; unfinished writes to the peer are dropped without
     * WRITE_DONE */
    TRIB_EVENT_PEER_LOST,
};

struct trib_event {
    enum trib_event_kind kind;
    int peer;
    uint32_t imm; /* ARRIVED */
    bool left; /* PEER_LOST: the peer disconnected or closed its transport */
    bool given_up; /* PEER_LOST: the peer said that it has declared this rank lost */
    bool dead; /* PEER_LOST: this host's kernel reports that the process has ended */
    bool lives; /* PEER_LOST: the process still ran after its connection ended */
    bool continues; /* PEER_LOST: the peer has continued the job without this rank */
    /* PEER_LOST: the connection failed or ended; the process may still run */
    bool broken;
    bool final; /* PEER_LOST: it cannot be reached over this device again */
    uint64_t len; /* ARRIVED: bytes written */
    uint64_t token; /* WRITE_DONE */
    /* PEER_LOST: reason as a clause, such as "process 4711 is stopped" */
    char why[TRIB_WHY_MAX];
};

/* Opaque; struct trib_transport is the first member of each backend's struct. */
struct trib_transport {
    const struct trib_transport_ops *ops;
    struct trib_error *err; /* the one passed to open; may be NULL */
};
struct trib_region; /* local registered memory */
struct trib_remote; /* an imported region of a peer */

struct trib_write {
    const struct trib_region *local;
    size_t local_off;
    const struct trib_remote *remote;
    size_t remote_off;
    size_t len; /* 0 sends the event alone; local and remote may then be NULL */
    uint32_t imm; /* any value but TRIB_IMM_OWN */
    /* no ARRIVED event at the target; may be sent with the next write to it, or by the
     * next poll */
    bool quiet;
    bool signal; /* requests a WRITE_DONE event with `token` */
    uint64_t token;
};

/* Capabilities that a rank sends to all others after it has read their addresses. */
enum {
    TRIB_CAP_MAPS = 1, /* this rank expects load/store access to all peers */
    TRIB_CAP_READS = 2, /* this rank can `read` the memory of all peers on its host */
    TRIB_CAP_BACKEND = 8, /* first bit reserved for the backend itself */
};

/* A range of a dma-buf and its mapping in this process. */
struct trib_dmabuf {
    int fd;
    size_t offset; /* within the dma-buf */
    void *ptr;
    size_t len;
};

/* How much more memory can be registered. */
struct trib_pinned_limit {
    size_t bytes; /* SIZE_MAX: limited only by the host's memory */
    /* reason for the limit, a clause such as "process 4711 may lock 64K" */
    char why[TRIB_WHY_MAX];
    const char *cure; /* how to raise the limit, a string literal */
};

/* The backend used to reach a peer. */
struct trib_route {
    const char *name; /* name of a backend, or "none" */
    char why[TRIB_WHY_MAX]; /* reason, a clause such as "same host" */
    /* the peer is treated as on another host, though it may be on this one */
    bool apart;
    uint32_t mbps; /* nominal speed of the ports to the peer, Mbit/s; 0: unknown */
};

#endif
