/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State of the auto transport and its peers, and the functions at its bottom:
 * records of blobs and addresses, and the choices of one peer.
 *
 * auto holds one inner transport for each candidate that opens (the table is in
 * transport.c) and routes each peer's traffic through one of them. The top of
 * auto_select.c has the rules of the choice.
 */
#ifndef TRANSPORT_AUTO_AUTO_PEER_H
#define TRANSPORT_AUTO_AUTO_PEER_H

#include <assert.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "base/error.h"
#include "base/process.h"
#include "transport/backends.h"
#include "transport/transport.h"

#define AUTO_INNERS 4
#define AUTO_WHY_MAX 400
#define AUTO_MAGIC UINT32_C(0x4f745541) /* changes with the two layouts below */

/* An address starts with this header. Records of the inner addresses follow, in the
 * order of their ids. */
struct auto_address {
    uint32_t magic;
    uint16_t near, far; /* bit 1 << id: open, and allowed for near or far peers */
    uint64_t boot, space; /* from trib_process; equal on one host */
    int32_t ranks_per_host;
    int32_t pid;
};
static_assert(sizeof(struct auto_address) == 32, "no padding");

/* Precedes each inner address and each inner region's blob. */
struct auto_record {
    uint8_t id;
    uint8_t len_low, len_high;
};
static_assert(sizeof(struct auto_record) == 3, "no padding");

/* The id of an empty record: the region is user memory, whose data may also be
 * copied. */
#define AUTO_USERS 0

enum auto_peer_state {
    AUTO_PEER_UNKNOWN, /* not connected */
    AUTO_PEER_CONNECTED,
    AUTO_PEER_DRAINING, /* lost; data sent over other inners is delivered first */
    AUTO_PEER_LOST,
    AUTO_PEER_LEFT, /* this rank disconnected from it */
};

struct auto_peer {
    enum auto_peer_state state;
    bool known; /* its address was examined */
    bool near; /* on this host, and not declared to be on another (ranks_per_host) */
    bool foreign; /* it claims to be this process, which an aggregator rejects */
    uint16_t choices; /* bit 1 << id: allowed and open at both ends */
    uint16_t silent; /* bit 1 << id: the peer did not answer on this inner */
    uint16_t heard; /* bit 1 << id: its writes arrived over this inner */
    bool tried; /* connect_many has tried its first choice, and connect has not asked
                 * yet */
    uint64_t failed_ns; /* time that this took to fail; 0: it has not failed */
    bool wrote; /* the choice is final: writes must arrive in order */
    uint64_t host; /* boot id of its host */
    struct trib_address *address; /* kept while another choice remains; else NULL */
    _Atomic int inner; /* index of the inner in use, also for wake(); -1: none yet */
    char *refused; /* why better choices are not in use; or NULL */
    struct trib_event loss; /* GOING: the event to report */
    uint64_t lost_at; /* GOING: time of the loss */
};

struct auto_inner {
    const struct trib_candidate *row;
    struct trib_transport *t; /* NULL: did not open, or is not needed */
    char why[AUTO_WHY_MAX]; /* t NULL: the reason, with a cure */
    char poor[TRIB_WHY_MAX]; /* why it cannot register memory; "": it can */
    uint64_t wasted_ns; /* spent on peers that did not answer on this inner */
    bool unfit; /* t NULL: this host has its device, but it cannot be used */
    bool fallback_logged; /* a fallback to another inner was logged */
    bool memory_logged; /* failed registration of user memory was logged */
};

struct auto_region {
    uint8_t *ptr;
    size_t len;
    int owner; /* the inner that allocated it; -1: reg() */
    bool callers; /* from reg() or alloc_user(): it holds no slots */
    int fd; /* of a dma-buf, our duplicate; -1: none */
    size_t fd_offset;
    struct trib_region *inner[AUTO_INNERS]; /* NULL: not registered there */
    LIST_ENTRY(auto_region) entry;
};

struct auto_remote {
    int peer;
    int inner;
    struct trib_remote *remote; /* NULL: the import failed after a change of inner */
    size_t len; /* length at the first import; later imports are no shorter */
    struct trib_blob *blob; /* for importing it through another inner; NULL: it stays */
    LIST_ENTRY(auto_remote) entry;
};

struct auto_transport {
    struct trib_transport base;
    int self;
    int size;
    const struct trib_log *log;
    struct trib_error *err;
    struct trib_error inner_err; /* errors of the inners; *err is the caller's */
    struct trib_process me;
    struct trib_heartbeat *heartbeat; /* shared by all inners */
    int64_t ranks_per_host; /* 0: actual hosts */
    uint16_t near, far; /* as in struct auto_address */
    uint16_t used; /* bit 1 << id: memory is registered there */
    bool agreed;
    bool serves; /* this side is an aggregator */
    bool warns; /* for the ranks of this host: it is the first of them */
    struct auto_inner inners[AUTO_INNERS];
    int n_inners;
    struct auto_peer *peers;
    LIST_HEAD(, auto_region) regions;
    LIST_HEAD(, auto_remote) remotes;
    int next; /* the inner that the next poll begins with */
    int n_draining;
    struct pollfd sleep[AUTO_INNERS]; /* descriptors of the open inners */
    int n_sleep; /* 0: not asked yet, or an inner has none */
    bool asked;
};

static inline struct auto_transport *auto_of(struct trib_transport *t)
{
    return (struct auto_transport *)t;
}

static inline uint16_t auto_bit(const struct auto_inner *inner)
{
    return (uint16_t)(1u << inner->row->id);
}

/* auto_log.c */
/** trib_auto_pass_error - move the error of an inner to this transport. Returns
 * `status`. */
trib_status_t trib_auto_pass_error(struct auto_transport *c, trib_status_t status);

/** trib_auto_close_heartbeat - stop heartbeats if no inner needs them. */
void trib_auto_close_heartbeat(struct auto_transport *c);

/* auto_blob.c */
/** trib_auto_put - append a record to `bytes` at *at; return false if there is no
 * room. */
bool trib_auto_put(uint8_t *bytes, size_t room, size_t *at, uint8_t id,
                   const uint8_t *what, size_t len);

/** trib_auto_get - find the record of an id at or after `at`; return NULL if there is
 * none. */
const uint8_t *trib_auto_get(const uint8_t *bytes, size_t len, size_t at, int id,
                             size_t *len_out);

/* auto_peer.c */
/** trib_auto_in_use - return true if memory is registered with this inner. */
bool trib_auto_in_use(const struct auto_transport *c, int inner);

/** trib_auto_inner_address - extract the address of one inner; return false if there is
 * none. */
bool trib_auto_inner_address(const struct trib_address *whole, int id,
                             struct trib_address *out);

/** trib_auto_first_choice - return the index of the cheapest open inner among
 * `choices`, or -1. */
int trib_auto_first_choice(const struct auto_transport *c, uint16_t choices);

/** trib_auto_short_reason - shorten an inner's error message: omit its name and the
 * ranks. */
const char *trib_auto_short_reason(const char *name, const char *why);

/** trib_auto_note_refused - record why the inner `name` does not serve a peer. */
void trib_auto_note_refused(struct auto_peer *p, const char *name, const char *why);

/** trib_auto_connect_first - connect a peer through the first of its choices that
 * answers. Record why the others failed. */
trib_status_t trib_auto_connect_first(struct auto_transport *c, int peer,
                                      const struct trib_address *address);

/** trib_auto_connect_next - same, without the inner in use. `why` is logged, and
 * becomes the error if no choice is left. Must not be called once `wrote` is set. */
trib_status_t trib_auto_connect_next(struct auto_transport *c, int peer,
                                     trib_status_t reason, const char *why);

bool trib_auto_reads(struct trib_transport *t, int peer);
trib_status_t trib_auto_read(struct trib_transport *t, int peer, uint64_t from,
                             void *to, size_t len);

#endif
