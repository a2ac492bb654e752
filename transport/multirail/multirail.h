/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the rails transport: what its files share.
 *
 * It holds several transports of one kind ("inner"), each with its own device, and
 * spreads the writes to a peer over them. Two ranks make pairs of their inner
 * transports; such a pair is a rail, numbered 0..n-1 by both in the same way
 * (multirail_address.c).
 *
 * Events are numbered for each direction. Event x goes over rail (x - base) mod n of
 * those that live, a quiet write over the rail of the next event; so the receiver knows
 * where the next one comes from and needs no number on the wire. What came too early
 * waits.
 *
 * What happens when a rail is lost is at the top of multirail_failover.c.
 */
#ifndef TRANSPORT_MULTIRAIL_MULTIRAIL_H
#define TRANSPORT_MULTIRAIL_MULTIRAIL_H

#include <assert.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "base/error.h"
#include "transport/multirail/multirail_wire.h"
#include "transport/transport.h"

#define RAILS_NAME "rails" /* its row, and the component of its log lines */

#define RAILS_LOG 256u /* writes to a peer that may have to be repeated */
#define RAILS_LABEL 48

/* The token of a write of the caller's is its place in the log, and the epoch above; a
 * probe's is this place, whatever the epoch. */
#define RAILS_EPOCH_SHIFT 56
#define RAILS_PROBE ((UINT64_C(1) << RAILS_EPOCH_SHIFT) - 1)

/* What is to be opened. `open` is called for rail 0..n-1 of this rank. */
struct rails_plan {
    const char *name; /* of the inner transports, for route() */
    int n;
    bool confirms; /* their WRITE_DONE means: it is at the target. Without that a lost
                    * rail is a lost peer, for nothing can be written again */
    bool skips; /* a rail that does not open is left out, if another does */
    trib_status_t (*open)(void *arg, int rail, const struct trib_transport_opts *opts,
                          struct trib_transport **out);
    void *arg;
    /* Does such an address promise to be of that inner's network? NULL: not known */
    bool (*same_net)(struct trib_transport *inner, const struct trib_address *address);
    int reach_ms; /* for a peer: then no other inner is tried; 0: each is */
    char label[RAILS_MAX][RAILS_LABEL]; /* "mlx5_0" */
    uint64_t
        net[RAILS_MAX]; /* equal: the same network; 0: not known; open() may set it */
};

struct rails_region {
    uint8_t *ptr;
    size_t len;
    struct trib_region *inner[RAILS_MAX];
    LIST_ENTRY(rails_region) entry;
};

struct rails_remote {
    int peer;
    struct trib_remote *rail[RAILS_MAX]; /* NULL: that rail was lost before */
    LIST_ENTRY(rails_remote) entry;
};

/* A posted write until it is known that it need not be repeated. */
struct rails_entry {
    struct trib_write w; /* the caller's */
    uint64_t event; /* its number; of a quiet one that of the next event */
    uint8_t rail;
    bool spoilt; /* its region or remote is gone: it cannot be repeated */
};

struct rails_arrival {
    uint64_t len;
    uint32_t imm;
};

struct rails_fifo {
    struct rails_arrival *ring;
    uint32_t head, tail, room; /* room is a power of two or 0 */
};

/* By which rails a direction goes. */
struct rails_order {
    uint64_t base; /* the event that goes over rail[0] */
    uint8_t n;
    uint8_t rail[RAILS_MAX];
};

struct rails_rail {
    int inner; /* the own one; -1: not known yet */
    int other; /* the peer's */
    struct trib_remote *board; /* the peer's */
    uint64_t done; /* entries below that went over this rail are done */
    uint32_t unsignalled;
    struct rails_fifo early; /* arrived before its turn */
    uint8_t mark; /* the last that came: which rails the peer has given up */
    uint8_t marked; /* the last that was sent */
    /* multirail_timeout.c; times in ns */
    uint64_t last; /* while done is below it, something posted here is not done */
    uint64_t seen; /* done, at the last look */
    uint64_t since; /* waits since then without progress; 0: it does not */
    uint64_t asked; /* the last probe */
    uint64_t heard; /* the last answer to one */
    bool probing;
};

enum rails_peer_state {
    RAILS_PEER_UNKNOWN, /* not connected; what it writes arrives */
    RAILS_PEER_CONNECTED,
    RAILS_PEER_GOING, /* lost; what it wrote is still delivered first */
    RAILS_PEER_LOST,
    RAILS_PEER_LEFT, /* we left it */
};

enum rails_flow {
    RAILS_FLOWING,
    RAILS_ASKING, /* waits for the peer's word from where to repeat */
    RAILS_REPEATING, /* until what was under way is posted again */
};

/* Sets of rails are bits: 1 << rail. */
struct rails_peer {
    enum rails_peer_state state;
    int n; /* rails; 0: not known yet */
    bool plain; /* it has one device, and so one rail, over whichever of ours it
                 * comes */
    struct rails_rail rails[RAILS_MAX];
    uint8_t dead; /* given up: nothing is written over them */
    uint8_t parted; /* and left: nothing arrives over them */
    uint8_t doomed; /* to be given up */
    uint8_t left; /* the peer left them; the others will follow, if it leaves */
    uint8_t ended; /* the inner transport has reported it */
    uint8_t warned;
    bool trouble; /* any of these, or not done with them */
    bool listed;
    uint64_t trouble_at;
    uint64_t proved_at; /* since then a rail answers while another is silent; 0: none */
    char why[TRIB_WHY_MAX];
    _Atomic int waker; /* inner by which it is woken; -1: none */
    /* sending */
    enum rails_flow flow;
    uint8_t epoch; /* of tokens: grows with each loss */
    struct rails_entry *log; /* [RAILS_LOG], a ring */
    uint64_t head, tail;
    uint64_t confirmed; /* entries below are done, whatever the rails say */
    uint64_t repeat_at;
    uint64_t events; /* sent */
    uint64_t released; /* events whose source may have changed */
    struct rails_order out;
    /* receiving */
    uint64_t got; /* events, without a gap */
    struct rails_order in;
    uint8_t in_dead; /* what `in` leaves out */
    bool answer_owed;
    struct rails_fifo ready; /* in order, not delivered yet */
};

struct rails {
    struct trib_transport base;
    int self;
    int size;
    int n;
    bool confirms;
    const char *name;
    bool (*same_net)(struct trib_transport *inner, const struct trib_address *address);
    int reach_ms;
    const struct trib_log *log;
    struct trib_error *err;
    struct trib_error inner_err[RAILS_MAX]; /* one each: threads connect */
    int pid;
    struct trib_transport *inner[RAILS_MAX];
    char label[RAILS_MAX][RAILS_LABEL];
    uint64_t net[RAILS_MAX];
    struct rails_peer *peers;
    LIST_HEAD(, rails_region) regions;
    LIST_HEAD(, rails_remote) remotes;
    struct rails_region *board; /* [2 * size]: peers write into the first half, out of
                                 * the second this rank writes to them */
    struct rails_board *boards;
    int *list; /* peers with something to report or to do */
    int n_list;
    int next; /* inner that is polled first */
    struct pollfd sleep[RAILS_MAX];
    int n_sleep; /* 0: not asked yet, or one has no descriptor */
    bool asked;
    uint64_t silence_ns; /* of a peer, until it is lost */
    uint64_t looked_at;
    uint32_t polls;
    _Atomic bool slept; /* the next poll looks at once */
};

static inline struct rails *rails_of(struct trib_transport *t)
{
    return (struct rails *)t;
}

static inline unsigned rails_all(const struct rails_peer *p)
{
    return (1u << p->n) - 1;
}

static inline int rails_rail_of(const struct rails_order *order, uint64_t event)
{
    return order->rail[(event - order->base) % order->n];
}

/**
 * trib_rails_make - open the inner transports of a plan and what lies over them.
 *
 * plan     1 to RAILS_MAX rails; copied, but for name and arg
 */
trib_status_t trib_rails_make(const struct trib_transport_opts *opts,
                              const struct rails_plan *plan,
                              struct trib_transport **out);

/** trib_rails_pass - an inner's error becomes this one's; returns status. */
trib_status_t trib_rails_pass(struct rails *r, int inner, trib_status_t status);

/** trib_rails_list - the next poll looks at this peer. */
void trib_rails_list(struct rails *r, int peer);

/** trib_rails_set_order - all rails but the dead ones, from event `base` on. */
void trib_rails_set_order(struct rails_order *order, const struct rails_peer *p,
                          uint64_t base);

/* An address, taken apart. A rank with one device has one without rails, and no
 * board. */
struct rails_whole {
    int n;
    bool plain; /* such a rank's */
    uint64_t net[RAILS_MAX];
    struct trib_address inner[RAILS_MAX];
    struct trib_blob board[RAILS_MAX];
};

/* multirail_address.c */
/** trib_rails_look - which inner goes with which of the peer's; sets the peer's
 * rails. */
trib_status_t trib_rails_look(struct rails *r, int peer,
                              const struct trib_address *address,
                              struct rails_whole *out);
trib_status_t trib_rails_address(struct trib_transport *t, struct trib_address *out);
trib_status_t trib_rails_reach(struct trib_transport *t, int peer,
                               const struct trib_address *address);

/* multirail_connect.c */
trib_status_t trib_rails_connect(struct trib_transport *t, int peer,
                                 const struct trib_address *address);

/* multirail_mem.c */
trib_status_t trib_rails_alloc(struct trib_transport *t, size_t len, void **ptr_out,
                               struct trib_region **region_out);
void trib_rails_room(struct trib_transport *t, bool near, struct trib_room *out);
trib_status_t trib_rails_reg_dmabuf(struct trib_transport *t,
                                    const struct trib_dmabuf *d,
                                    struct trib_region **out);
trib_status_t trib_rails_reg(struct trib_transport *t, void *ptr, size_t len,
                             struct trib_region **out);
void trib_rails_dereg(struct trib_transport *t, struct trib_region *region);
trib_status_t trib_rails_export(struct trib_transport *t,
                                const struct trib_region *region,
                                struct trib_blob *out);
trib_status_t trib_rails_import(struct trib_transport *t, int peer,
                                const struct trib_blob *blob, struct trib_remote **out);
void trib_rails_release(struct trib_transport *t, struct trib_remote *remote);
size_t trib_rails_length(struct trib_transport *t, const struct trib_remote *remote);
void trib_rails_free_memory(struct rails *r);

/* multirail_send.c */
trib_status_t trib_rails_write(struct trib_transport *t, int peer,
                               const struct trib_write *write);
/** trib_rails_reap - WRITE_DONE, in the order of the writes. */
int trib_rails_reap(struct rails *r, int peer, struct trib_event *events, int max);
/** trib_rails_repeat - post again what the peer has not got; false: not all yet. */
bool trib_rails_repeat(struct rails *r, int peer);
/* A word of our own: these bytes of the peer's board, which lie alike in ours. */
struct rails_word {
    size_t off, len;
    bool quiet;
    bool probe; /* reports its end, to multirail_timeout.c */
};
/** trib_rails_say - over this rail; TRIB_ERR_NO_RESOURCE as of write. */
trib_status_t trib_rails_say(struct rails *r, int peer, int rail,
                             struct rails_word word);

/* multirail_reorder.c */
/** trib_rails_pull - poll each inner transport once; false: there was nothing. */
bool trib_rails_pull(struct rails *r);
/** trib_rails_drain - what inner transports hold comes in, until there is nothing. */
void trib_rails_drain(struct rails *r);
/** trib_rails_settle - what has its turn becomes ready. */
void trib_rails_settle(struct rails_peer *p);
int trib_rails_deliver(struct rails_peer *p, int peer, struct trib_event *events,
                       int max);
void trib_rails_free_fifos(struct rails_peer *p);

/* multirail_timeout.c */
/** trib_rails_watch - after a pull: which rails are silent while others are not? */
void trib_rails_watch(struct rails *r);

/* multirail_failover.c */
/** trib_rails_doom - a rail is to be given up. */
int trib_rails_losses(unsigned set);
void trib_rails_doom(struct rails *r, int peer, unsigned rails);
/** trib_rails_tend - a step further with a peer in trouble. */
void trib_rails_tend(struct rails *r, int peer);
/** trib_rails_fail - this peer is lost, for a reason of our own. */
void trib_rails_fail(struct rails *r, int peer, const char *why);
/** trib_rails_answered - the peer's word from where to repeat has come. */
void trib_rails_answered(struct rails *r, int peer, int losses);
/** trib_rails_renounce - tell a peer that lives that it is lost to us, not left. */
void trib_rails_renounce(struct rails *r, int peer);
/** trib_rails_part - leave all rails of a peer. */
void trib_rails_part(struct rails *r, int peer, enum rails_peer_state state);

#endif
