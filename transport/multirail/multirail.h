/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State shared by the files of the transport "rails".
 *
 * It holds several transports of one kind ("inner"), one per device, and spreads the
 * writes to a peer over them. Two ranks pair up their inner transports. Such a pair is
 * a rail; both ranks number their rails 0..n-1 alike (multirail_address.c).
 *
 * Events are in one order per direction. The rail of the next event follows from the
 * speeds of the rails and from the lengths of the events before it, which both ends
 * know: it is the live rail that would finish first (multirail_next). A quiet write
 * uses the rail of the next event. So the receiver knows the rail of the next event
 * without numbers on the wire. An event that arrives early waits.
 *
 * The top of multirail_failover.c describes the loss of a rail, the top of
 * multirail_failback.c its return.
 */
#ifndef TRANSPORT_MULTIRAIL_MULTIRAIL_H
#define TRANSPORT_MULTIRAIL_MULTIRAIL_H

#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "base/error.h"
#include "base/idle_function.h"
#include "transport/common/peer.h"
#include "transport/multirail/multirail_wire.h"
#include "transport/op_defaults.h"
#include "transport/open.h"

#define MULTIRAIL_NAME "rails" /* name of the backend and of its log component */

#define MULTIRAIL_LOG 256u /* writes to a peer that may have to be repeated */
#define MULTIRAIL_LABEL 48
#define MULTIRAIL_NO_MARK UINT16_MAX
#define MULTIRAIL_NOT_SAID UINT16_MAX

/* The token of a caller's write is its index in the log, with the epoch in the upper
 * bits. A probe has the index MULTIRAIL_PROBE in every epoch. */
#define MULTIRAIL_EPOCH_SHIFT 56
#define MULTIRAIL_PROBE ((UINT64_C(1) << MULTIRAIL_EPOCH_SHIFT) - 1)

/* The state of an attempt to connect again. */
enum multirail_revival {
    MULTIRAIL_REVIVING, /* call again */
    MULTIRAIL_REVIVED, /* connected in both directions */
    MULTIRAIL_ENDED, /* the peer's process no longer listens */
    MULTIRAIL_NOT_YET, /* call again: the process listens, but has not polled since */
    MULTIRAIL_NEVER, /* a device has failed, or the peer wants no connection */
};

/* The inner transports to open: `open` is called for each rail 0..n-1 of this rank. */
struct multirail_plan {
    const char *name; /* of the inner transports, for route() */
    int n;
    /* WRITE_DONE of the inners means that the bytes are at the target. Otherwise the
     * loss of a rail is the loss of the peer, because no write can be repeated. */
    bool confirms;
    bool skips; /* skip a rail that does not open if another one opens */
    trib_status_t (*open)(void *arg, int rail, const struct trib_transport_opts *opts,
                          struct trib_transport **out);
    void *arg;
    /* Return true if the address seems to be in the inner's network. NULL: unknown. */
    bool (*same_net)(struct trib_transport *inner, const struct trib_address *address);
    /* Try to connect again to a peer that was disconnected or lost, without blocking.
     * last: no rail is left. `why` receives the reason of MULTIRAIL_NEVER. NULL: lost
     * rails do not return. */
    enum multirail_revival (*revive)(struct trib_transport *inner, int peer, bool last,
                                     char why[TRIB_WHY_MAX]);
    /* End a connection without a notice to the peer. NULL if `revive` is. */
    void (*sever)(struct trib_transport *inner, int peer);
    /* The inner is about to be disconnected from a peer for good: later requests of the
     * peer get MULTIRAIL_NEVER. NULL if `revive` is. */
    void (*bar)(struct trib_transport *inner, int peer);
    /* Let the inner's address be shorter; false: it cannot. NULL: it never can. */
    bool (*shorten)(struct trib_transport *inner);
    /* Time to connect a peer, after which no other inner is tried; 0: all are tried. */
    int reach_ms;
    char label[MULTIRAIL_MAX][MULTIRAIL_LABEL]; /* "mlx5_0" */
    /* May be set by open(): */
    uint64_t net[MULTIRAIL_MAX]; /* network number; 0: unknown */
    uint32_t speed[MULTIRAIL_MAX]; /* Mbit/s; 0: unknown */
};

struct multirail_region {
    uint8_t *ptr;
    size_t len;
    struct trib_region *inner[MULTIRAIL_MAX];
    LIST_ENTRY(multirail_region) entry;
};

struct multirail_remote {
    int peer;
    struct trib_remote *rail[MULTIRAIL_MAX]; /* NULL: the rail was lost before the
                                              * import */
    struct trib_blob *later; /* to import if that rail returns; or NULL */
    LIST_ENTRY(multirail_remote) entry;
};

/* A posted write, kept until it certainly needs no repetition. */
struct multirail_entry {
    struct trib_write w; /* the caller's */
    uint64_t event; /* number of its event, or of the next event for a quiet write */
    uint8_t rail;
    bool spoilt; /* its region or remote was freed: the write cannot be repeated */
};

struct multirail_arrival {
    uint64_t len;
    uint32_t imm;
};

struct multirail_fifo {
    struct multirail_arrival *ring;
    uint32_t head, tail, room; /* capacity, a power of two or 0 */
};

/* The live rails of one direction, and the cost of their events. */
struct multirail_order {
    uint8_t n;
    uint8_t at; /* rail[at] carries the next event */
    uint8_t rail[MULTIRAIL_MAX];
    uint32_t cost[MULTIRAIL_MAX]; /* of a byte: inverse to the rail's speed */
    uint64_t used[MULTIRAIL_MAX]; /* cost of its events, less the least of all rails */
};

struct multirail_rail {
    int inner; /* index of this rank's inner; -1: not known yet */
    int other; /* index of the peer's inner */
    struct trib_remote *board; /* the peer's board */
    uint64_t done; /* entries below this number that used the rail are done */
    uint32_t unsignalled;
    struct multirail_fifo early; /* arrivals before their turn */
    uint16_t mark; /* last mark received: the peer's state */
    uint16_t share; /* speed in parts of MULTIRAIL_SHARE of the fastest; 0: not set */
    uint16_t marked; /* last mark sent */
    /* used by multirail_timeout.c; times in ns */
    uint64_t last; /* requests are outstanding on the rail while `done` is below */
    uint64_t seen; /* `done` at the last check */
    uint64_t since; /* start of a wait without progress; 0: none */
    uint64_t asked; /* time of the last probe */
    uint64_t heard; /* time of the last answer to a probe */
    bool probing;
    char why[TRIB_WHY_MAX]; /* of its loss; "": reported by the peer */
};

enum multirail_flow {
    MULTIRAIL_FLOWING,
    MULTIRAIL_ASKING, /* waiting for the peer's answer: the first event to repeat */
    MULTIRAIL_REPEATING, /* posting writes in flight again */
};

/* Sets of rails are bit masks: 1 << rail. */
struct multirail_peer {
    enum trib_peer_state state;
    int n; /* number of rails; 0: not known yet */
    bool plain; /* one end has one device, the other several: one rail, over any inner
                 * of the other end */
    bool crossed; /* plain, and the peer writes over another inner than this rank */
    struct multirail_rail rails[MULTIRAIL_MAX];
    uint8_t ahead; /* connect_many has tried them, and connect has not asked yet */
    uint8_t dead; /* abandoned: no writes use them */
    uint8_t parted; /* abandoned and disconnected: nothing arrives over them */
    uint8_t failing; /* about to be abandoned */
    uint8_t left; /* disconnected by the peer; all follow if it leaves for good */
    uint8_t ended; /* their loss was reported by the inner transport */
    uint8_t given_up; /* the peer said over them that it considers this rank lost */
    uint8_t broken; /* ended by a failure of the connection */
    uint8_t final; /* they will not be connected again */
    bool process_ended; /* an inner has seen the end of the peer's process */
    bool continues; /* the peer said over one of them: its job continues without us */
    bool process_runs; /* the process answered after the last lost rail had ended */
    uint8_t warned;
    uint8_t generation; /* grows when abandoned rails return */
    uint8_t up; /* abandoned, and connected again at this end */
    uint16_t said_up; /* `up` as this rank has said in this generation, or
                      * MULTIRAIL_NOT_SAID: the notice may be lost */
    uint8_t peer_up; /* the peer's `up`, as it has said in this generation */
    uint8_t returned; /* not logged yet */
    uint64_t stranded_at; /* time at which the last rail was lost; 0: one is left */
    uint64_t stranded_first; /* the same of its first loss since `stranded_with` grew */
    uint64_t stranded_with; /* 1 + `released` at that time; 0: nothing in flight */
    uint64_t stranded_seen; /* last check of the time since stranded_at */
    uint64_t stranded_warn; /* time at which to warn of it; 0: done */
    bool trouble; /* a set above is not empty, or recovery is in progress */
    bool listed;
    uint64_t trouble_at;
    uint64_t proved_at; /* since when one rail answers while another is silent; or 0 */
    char why[TRIB_WHY_MAX];
    _Atomic int waker; /* inner that wakes the peer; -1: none */
    /* sending */
    enum multirail_flow flow;
    uint8_t epoch; /* of tokens: grows with each loss */
    struct multirail_entry *log; /* ring of MULTIRAIL_LOG */
    uint64_t head, tail;
    uint64_t confirmed; /* entries below are done, whatever the rails report */
    uint64_t repeat_at;
    uint64_t events; /* number sent */
    uint64_t released; /* number whose source may change */
    struct multirail_order out;
    /* receiving */
    uint64_t got; /* number received without a gap */
    struct multirail_order in;
    uint8_t in_dead; /* rails that `in` excludes */
    uint8_t in_generation; /* generation of `in` */
    bool answer_owed;
    struct multirail_fifo ready; /* events in order, not delivered yet */
};

struct multirail {
    struct trib_transport base;
    int self;
    int size;
    int n;
    bool confirms;
    const char *name;
    bool (*same_net)(struct trib_transport *inner, const struct trib_address *address);
    enum multirail_revival (*revive)(struct trib_transport *inner, int peer, bool last,
                                     char why[TRIB_WHY_MAX]);
    void (*sever)(struct trib_transport *inner, int peer);
    void (*bar)(struct trib_transport *inner, int peer);
    bool (*shorten)(struct trib_transport *inner);
    int reach_ms;
    const struct trib_log *log;
    struct trib_error *err;
    struct trib_error inner_err[MULTIRAIL_MAX]; /* one each: threads connect */
    struct trib_idle *idle; /* called while connecting; or NULL */
    struct trib_idle_gate gate; /* for the inners; other threads may connect them */
    int pid;
    struct trib_transport *inner[MULTIRAIL_MAX];
    char label[MULTIRAIL_MAX][MULTIRAIL_LABEL];
    uint64_t net[MULTIRAIL_MAX];
    uint32_t speed[MULTIRAIL_MAX]; /* Mbit/s; 0: unknown */
    struct multirail_peer *peers;
    LIST_HEAD(, multirail_region) regions;
    LIST_HEAD(, multirail_remote) remotes;
    struct multirail_region *board; /* see MULTIRAIL_BOARDS_AT */
    struct multirail_board *boards; /* [2 * size]: peers write into the first half, this
                                     * rank writes to peers from the second */
    int *list; /* peers with events to report or work to do */
    int n_list;
    int next; /* the inner to poll first */
    int event_fd; /* of all inners; -1: one has none */
    int epoll; /* the same if there are several inners; else -1 */
    bool asked; /* event_fd is set */
    uint64_t timeout_ns; /* silence after which a peer counts as lost */
    uint64_t checked_at;
    uint64_t done[MULTIRAIL_MAX]; /* requests of an inner that are done */
    uint64_t seen_done[MULTIRAIL_MAX]; /* the same at the last check */
    uint64_t moved_at[MULTIRAIL_MAX]; /* last check that saw progress of an inner */
    uint32_t polls;
    _Atomic bool slept; /* the next poll checks for timeouts */
};

static inline struct multirail *multirail_of(struct trib_transport *t)
{
    return (struct multirail *)t;
}

static inline struct trib_peers multirail_peers(const struct multirail *r)
{
    return (struct trib_peers){r->peers, sizeof(*r->peers), r->self, r->size, r->err};
}

static inline unsigned multirail_all(const struct multirail_peer *p)
{
    return (1u << p->n) - 1;
}

/* Return the rail of the next event. */
static inline int multirail_next(const struct multirail_order *order)
{
    assert(order->n > 0 && order->n <= MULTIRAIL_MAX && order->at < order->n);
    return order->rail[order->at];
}

/**
 * trib_multirail_make - open a rails transport: the inner transports of a plan, and the
 * state above them.
 *
 * plan     1 to MULTIRAIL_MAX rails; copied, except for name and arg
 */
trib_status_t trib_multirail_make(const struct trib_transport_opts *opts,
                                  const struct multirail_plan *plan,
                                  struct trib_transport **out);

/** trib_multirail_take_error - move the error of an inner to this transport. Returns
 * `status`. */
trib_status_t trib_multirail_take_error(struct multirail *r, int inner,
                                        trib_status_t status);

/** trib_multirail_enlist - have the next poll handle this peer. */
void trib_multirail_enlist(struct multirail *r, int peer);

/** trib_multirail_trouble - have each poll take a step of this peer's recovery. */
void trib_multirail_trouble(struct multirail *r, int peer);

/** trib_multirail_set_order - use all rails except the dead ones. Both ends call it
 * before the same event. */
void trib_multirail_set_order(struct multirail_order *order,
                              const struct multirail_peer *p);

/** trib_multirail_advance - count an event of `len` bytes and choose the rail of the
 * next one. */
void trib_multirail_advance(struct multirail_order *order, uint64_t len);

/** trib_multirail_set_shares - set the shares of a peer's rails from their speeds in
 * Mbit/s. If one is unknown (0), all are equal. */
void trib_multirail_set_shares(struct multirail_peer *p,
                               const uint32_t speed[MULTIRAIL_MAX]);

/* A parsed address. If this rank or the peer has one device and the other several,
 * `plain` is set, and there is one rail. inner[0] is then what this rank's inner
 * transports connect to: the whole address if the peer has several devices. board[0]
 * is empty if the peer has one device and never connects again. */
struct multirail_parsed_address {
    int n;
    bool plain;
    uint64_t net[MULTIRAIL_MAX];
    uint32_t speed[MULTIRAIL_MAX];
    struct trib_address inner[MULTIRAIL_MAX];
    struct trib_blob board[MULTIRAIL_MAX];
};

/* multirail_address.c */
/** trib_multirail_match - pair this rank's inners with the peer's. Sets the peer's
 * rails. */
trib_status_t trib_multirail_match(struct multirail *r, int peer,
                                   const struct trib_address *address,
                                   struct multirail_parsed_address *out);
TRIB_TRANSPORT_PEERS(trib_multirail);
/** trib_multirail_import_later - import the regions whose import skipped these rails.
 * Returns false on failure. */
bool trib_multirail_import_later(struct multirail *r, int peer, unsigned rails);

/* multirail_connect_many.c */
void trib_multirail_connect_many(struct trib_transport *t, struct trib_target *dials,
                                 int n);

/* multirail_connect.c */
/** trib_multirail_join - wait for a thread that connects, and call the idle
 * function. */
void trib_multirail_join(struct multirail *r, pthread_t thread);

/* multirail_mem.c */
TRIB_TRANSPORT_MEMORY(trib_multirail);
trib_status_t trib_multirail_borrow(struct trib_transport *t, void *ptr, size_t len,
                                    bool written, struct trib_region **out);
void trib_multirail_give_back(struct trib_transport *t, struct trib_region *region,
                              bool broken);
void trib_multirail_pinned_limit(struct trib_transport *t, bool near,
                                 struct trib_pinned_limit *out);
trib_status_t trib_multirail_reg_dmabuf(struct trib_transport *t,
                                        const struct trib_dmabuf *d,
                                        struct trib_region **out);
void trib_multirail_release(struct trib_transport *t, struct trib_remote *remote);
size_t trib_multirail_length(struct trib_transport *t,
                             const struct trib_remote *remote);
void trib_multirail_free_memory(struct multirail *r);

/* multirail_send.c */
trib_status_t trib_multirail_write(struct trib_transport *t, int peer,
                                   const struct trib_write *write);
bool trib_multirail_detach(struct trib_transport *t, int peer);
/** trib_multirail_reap - report WRITE_DONE events in the order of the writes. */
int trib_multirail_reap(struct multirail *r, int peer, struct trib_event *events,
                        int max);
/** trib_multirail_repost - post again all writes that the peer has not received.
 * Returns false if some are still to be posted. */
bool trib_multirail_repost(struct multirail *r, int peer);
/* A control message: these bytes of the peer's board, which have the same offset in
 * ours, or as many spare ones. */
struct multirail_msg {
    size_t off, len;
    bool spare;
    bool quiet;
    bool probe; /* multirail_timeout.c expects its WRITE_DONE */
};
/** trib_multirail_send_msg - send a control message over a rail. Returns
 * TRIB_ERR_NO_RESOURCE like write. */
trib_status_t trib_multirail_send_msg(struct multirail *r, int peer, int rail,
                                      struct multirail_msg msg);

/* multirail_reorder.c */
/** trib_multirail_pull - poll each inner transport once. Returns false if there were no
 * events. */
bool trib_multirail_pull(struct multirail *r);
/** trib_multirail_drain - poll the inner transports until they have no events left. */
void trib_multirail_drain(struct multirail *r);
/** trib_multirail_reorder - move the arrivals whose turn has come to `ready`. */
void trib_multirail_reorder(struct multirail_peer *p);
int trib_multirail_deliver(struct multirail_peer *p, int peer,
                           struct trib_event *events, int max);
void trib_multirail_free_fifos(struct multirail_peer *p);

/* multirail_timeout.c */
/** trib_multirail_check_timeouts - call after a pull. Fail the rails that are silent
 * while others make progress. */
void trib_multirail_check_timeouts(struct multirail *r);

/* multirail_failback.c */
/** trib_multirail_fail_back - take the next step towards the return of lost rails. */
void trib_multirail_fail_back(struct multirail *r, int peer);
/** trib_multirail_return - start a new generation. Rails that are connected again and
 * not in the set `dead` carry writes again. */
void trib_multirail_return(struct multirail *r, int peer, unsigned dead);
void trib_multirail_log_return(struct multirail *r, int peer);

/* multirail_failover.c */
/** trib_multirail_count - return the number of rails in a set. */
int trib_multirail_count(unsigned set);
/** trib_multirail_fail_rails - abandon these rails of a peer at the next recovery step.
 * why: the reason, a clause; NULL: reported by the peer. */
void trib_multirail_fail_rails(struct multirail *r, int peer, unsigned rails,
                               const char *why);
/** trib_multirail_recover - take the next step in the recovery of a peer. */
void trib_multirail_recover(struct multirail *r, int peer);
/** trib_multirail_fail_peer - consider a peer lost, for a reason that this rank has
 * found. */
void trib_multirail_fail_peer(struct multirail *r, int peer, const char *why);
/** trib_multirail_take_answer - handle the peer's answer: the first event to repeat. */
void trib_multirail_take_answer(struct multirail *r, int peer, int losses);
/** trib_multirail_drop_peer - notify a live peer that this rank considers it lost. */
void trib_multirail_drop_peer(struct multirail *r, int peer);
/** trib_multirail_leave_rails - disconnect all rails of a peer. */
void trib_multirail_leave_rails(struct multirail *r, int peer,
                                enum trib_peer_state state);

#endif
