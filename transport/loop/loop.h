/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of the loop transport, shared by loop.c and loop_mem.c.
 */
#ifndef TRANSPORT_LOOP_LOOP_H
#define TRANSPORT_LOOP_LOOP_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "transport/common/peer.h"
#include "transport/common/segment.h"
#include "transport/op_defaults.h"
#include "transport/open.h"
#include "base/process.h"

#define LOOP_MAGIC 0x706f6f6cu
#define LOOP_DEPTH 64u

struct loop_region {
    uint8_t *ptr;
    size_t len;
    uint64_t key;
    bool allocated;
    struct loop_region *next;
};

struct loop_remote {
    int peer;
    uint64_t key;
    size_t len;
    struct loop_remote *next;
};

/* A write in flight. */
struct loop_entry {
    const uint8_t *from;
    uint64_t key; /* of the target region */
    size_t off;
    size_t len;
    uint32_t imm;
    int peer;
    bool quiet;
    bool signal;
    bool copied; /* by the sender, which had to release the source */
};

/* Shared by the threads; protected by `lock`, except atomics. */
struct loop_endpoint {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool woken;
    _Atomic uint32_t made, closed;
    uint32_t size;
    uint32_t depth; /* queue entries per sender */
    uint64_t head, tail;
    uint64_t next_key;
    struct loop_region *regions;
    struct loop_sender {
        /* completed writes of this sender, a running count */
        _Alignas(64) _Atomic uint32_t taken;
        _Atomic uint32_t refused; /* it wrote to unregistered memory */
        _Atomic uint32_t left; /* the owner disconnected from this peer */
    } senders[];
    /* followed by size * depth entries */
};

struct loop_peer {
    enum trib_peer_state state;
    struct trib_segment seg;
    _Atomic(struct loop_endpoint *) endpoint;
    bool wake; /* writes of this peer completed, so it may be waiting */
    struct loop_posted {
        uint64_t token;
        bool signal;
    } * posted; /* ring of `depth` writes whose completion is not reported yet */
    uint32_t head, tail;
};

struct loop {
    struct trib_transport base;
    int self;
    int size;
    uint32_t depth;
    struct trib_error *err;
    struct trib_process me;
    struct trib_segment seg;
    struct loop_endpoint *own;
    struct loop_peer *peers;
    struct loop_remote *remotes;
};

struct loop_address {
    uint32_t magic;
    int32_t fd;
    uint64_t boot, space, start;
    uint64_t key, map_len;
    int32_t pid;
    uint32_t reserved;
};

struct loop_export {
    uint32_t magic;
    int32_t pid;
    uint64_t key;
    uint64_t len;
};

static_assert(sizeof(struct loop_address) <= TRIB_ADDRESS_MAX, "address");

static inline struct loop *loop_of(struct trib_transport *t)
{
    return (struct loop *)t;
}

static inline struct loop_entry *entry_at(struct loop_endpoint *ep, uint64_t counter)
{
    struct loop_entry *entries = (struct loop_entry *)(void *)&ep->senders[ep->size];

    return &entries[counter % (ep->size * ep->depth)];
}

static inline void endpoint_lock(struct loop_endpoint *ep)
{
    int error = pthread_mutex_lock(&ep->lock);

    assert(error == 0);
    (void)error;
}

/* loop_mem.c */
TRIB_TRANSPORT_MEMORY(trib_loop);
void trib_loop_release(struct trib_transport *t, struct trib_remote *remote);
size_t trib_loop_length(struct trib_transport *t, const struct trib_remote *remote);

/** trib_loop_copy - copy an entry's bytes, as a network card would, if its target is
 * inside a region. `ep`, the target, is locked. */
void trib_loop_copy(struct loop_endpoint *ep, struct loop_entry *e);

/** trib_loop_close_memory - mark the endpoint closed and free all regions and
 * imports. */
void trib_loop_close_memory(struct loop *loop);

#endif
