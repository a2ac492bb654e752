/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the auto transport: what auto.c, auto_select.c and auto_mem.c share.
 *
 * It holds one transport for each candidate that opens ("inner", the table is in
 * transport.c) and routes each peer's traffic through one of them. The rules of the
 * choice are at the top of auto_select.c.
 */
#ifndef TRANSPORT_AUTO_AUTO_H
#define TRANSPORT_AUTO_AUTO_H

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
#define AUTO_MAGIC UINT32_C(0x4f745541) /* changes with the two layouts below */

/* An address: this, then records of the inner addresses, in the order of their ids. */
struct auto_address {
    uint32_t magic;
    uint16_t near, far; /* bit 1 << id: open, and allowed for peers that are so */
    uint64_t boot, space; /* of trib_process: equal on one host */
    int32_t ranks_per_host;
    int32_t pid;
};
static_assert(sizeof(struct auto_address) == 32, "no padding");

/* In front of each inner address and of each inner region's blob. */
struct auto_record {
    uint8_t id;
    uint8_t len_low, len_high;
};
static_assert(sizeof(struct auto_record) == 3, "no padding");

/* The id of an empty record: the region is the user's, its bytes can come another
 * way. */
#define AUTO_USERS 0

enum auto_peer_state {
    AUTO_PEER_UNKNOWN, /* not connected */
    AUTO_PEER_CONNECTED,
    AUTO_PEER_GOING, /* lost; what it sent by other inners is still delivered first */
    AUTO_PEER_LOST,
    AUTO_PEER_LEFT, /* we left it */
};

struct auto_peer {
    enum auto_peer_state state;
    bool known; /* its address was looked at */
    bool near; /* of this host, or made out to be */
    bool foreign; /* it says that it is this very process, which an aggregator does not
                   * believe */
    uint16_t choices; /* bit 1 << id: what both ends have */
    uint16_t silent; /* bit 1 << id: it did not answer there */
    uint16_t heard; /* bit 1 << id: by what its writes came */
    bool wrote; /* nothing is chosen anew: writes must arrive in order */
    uint64_t host; /* its boot id */
    struct trib_address *address; /* while there is another choice; else NULL */
    _Atomic int inner; /* index of the one in use, also for wake(); -1: none yet */
    char *refused; /* why better ones are not in use; NULL: it needs no words */
    struct trib_event loss; /* GOING: what will be reported … */
    uint64_t lost_at; /* … and since when */
};

struct auto_inner {
    const struct trib_candidate *row;
    struct trib_transport *t; /* NULL: did not open, or nobody needs it */
    char why[TRIB_WHY_MAX]; /* t NULL: why */
    char poor[TRIB_WHY_MAX]; /* why it cannot register memory; "": it can */
    uint64_t wasted_ns; /* on peers that did not answer there */
    bool unfit; /* t NULL: this host has a device for it, which lacks something */
    bool told; /* that somebody is reached another way */
    bool told_memory; /* that memory of the caller cannot be registered */
};

struct auto_region {
    uint8_t *ptr;
    size_t len;
    int owner; /* the inner that allocated it; -1: reg() */
    bool callers; /* reg(), alloc_user(): no slots are in it */
    int fd; /* of a dma-buf, our own; -1: none */
    size_t fd_offset;
    struct trib_region *inner[AUTO_INNERS]; /* NULL: not registered there */
    LIST_ENTRY(auto_region) entry;
};

struct auto_remote {
    int peer;
    int inner;
    struct trib_remote *remote; /* NULL: it could not be imported another way */
    size_t len; /* by the first way: the others have no less */
    struct trib_blob *blob; /* to import it another way; NULL: it stays where it is */
    LIST_ENTRY(auto_remote) entry;
};

struct choosing {
    struct trib_transport base;
    int self;
    int size;
    const struct trib_log *log;
    struct trib_error *err;
    struct trib_error inner_err; /* what the inners say; *err is the caller's */
    struct trib_process me;
    struct trib_heartbeat *heartbeat; /* of all inners */
    int64_t ranks_per_host; /* 0: as it is */
    uint16_t near, far; /* as in the address */
    uint16_t used; /* bit 1 << id: memory is registered there */
    bool settled;
    bool serves; /* this side is an aggregator's */
    struct auto_inner inners[AUTO_INNERS];
    int n_inners;
    struct auto_peer *peers;
    LIST_HEAD(, auto_region) regions;
    LIST_HEAD(, auto_remote) remotes;
    int next; /* inner that the next poll begins with */
    int n_going;
    struct pollfd sleep[AUTO_INNERS]; /* descriptors of those that are open */
    int n_sleep; /* 0: not asked yet, or one of them has none */
    bool asked;
};

static inline struct choosing *choosing_of(struct trib_transport *t)
{
    return (struct choosing *)t;
}

static inline uint16_t auto_bit(const struct auto_inner *inner)
{
    return (uint16_t)(1u << inner->row->id);
}

/** trib_auto_make - open with candidates of the caller's, which outlive the transport:
 * tests bring their own. */
trib_status_t trib_auto_make(const struct trib_candidate *rows,
                             const struct trib_transport_opts *opts,
                             struct trib_transport **out);

/** trib_auto_pass - an inner's error becomes this one's; returns status. */
trib_status_t trib_auto_pass(struct choosing *c, trib_status_t status);

/* auto_select.c */
TRIB_TRANSPORT_PEERS(trib_auto);
trib_status_t trib_auto_caps(struct trib_transport *t,
                             const struct trib_address *addresses, uint32_t *caps_out);
void trib_auto_agree(struct trib_transport *t, const uint32_t *caps);
void trib_auto_route(struct trib_transport *t, int peer, struct trib_route *out);

/* auto_mem.c */
void trib_auto_pinned_limit(struct trib_transport *t, bool near,
                            struct trib_pinned_limit *out);
TRIB_TRANSPORT_MEMORY(trib_auto);
trib_status_t trib_auto_alloc_user(struct trib_transport *t, size_t len, void **ptr_out,
                                   struct trib_region **region_out);
trib_status_t trib_auto_reg_dmabuf(struct trib_transport *t,
                                   const struct trib_dmabuf *d,
                                   struct trib_region **out);
trib_status_t trib_auto_borrow(struct trib_transport *t, void *ptr, size_t len,
                               bool written, struct trib_region **out);
void trib_auto_give_back(struct trib_transport *t, struct trib_region *region,
                         bool broken);
void trib_auto_release_pages(struct trib_transport *t, struct trib_region *region);
void trib_auto_release(struct trib_transport *t, struct trib_remote *remote);
size_t trib_auto_length(struct trib_transport *t, const struct trib_remote *remote);
bool trib_auto_stale(struct trib_transport *t, const struct trib_remote *remote);
void *trib_auto_map(struct trib_transport *t, const struct trib_remote *remote,
                    size_t *len_out);
bool trib_auto_reads(struct trib_transport *t, int peer);
trib_status_t trib_auto_read(struct trib_transport *t, int peer, uint64_t from,
                             void *to, size_t len);

/** trib_auto_put - append a record to `bytes` at *at; false: no room. */
bool trib_auto_put(uint8_t *bytes, size_t room, size_t *at, uint8_t id,
                   const uint8_t *what, size_t len);

/** trib_auto_get - the record of an id, of those from `at` on; NULL: none. */
const uint8_t *trib_auto_get(const uint8_t *bytes, size_t len, size_t at, int id,
                             size_t *len_out);

/** trib_auto_local - a region as an inner knows it; registers it there if need be. */
struct trib_region *trib_auto_local(struct choosing *c,
                                    const struct trib_region *region, int inner);

/** trib_auto_moved - import all regions of a peer anew: it is reached by another
 * inner. */
trib_status_t trib_auto_moved(struct choosing *c, int peer);

/** trib_auto_stays - the peer was written to: its regions stay where they are. */
void trib_auto_stays(struct choosing *c, int peer);

/** trib_auto_move - reach a peer by its next choice, for this reason, which is
 * the error where there is none; not once it `wrote`. */
trib_status_t trib_auto_move(struct choosing *c, int peer, trib_status_t reason,
                             const char *why);

/** trib_auto_shut - close an inner that nobody needs, unless it holds memory in use. */
void trib_auto_shut(struct choosing *c, int inner, const char *why);

/** trib_auto_quiet - no inner beats hearts any more: neither does this one. */
void trib_auto_quiet(struct choosing *c);

/** trib_auto_free_memory - the own records; the inners free what is theirs. */
void trib_auto_free_memory(struct choosing *c);

#endif
