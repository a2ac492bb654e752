/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link: the memory that one rank shares with one peer. Each direction has two lanes,
 * their credits, and one notice. A lane has a window of W frames in S slots (W rounded
 * up to a power of two).
 *
 * All of it is in the receiver's memory. Every rank exports one region at start, its
 * arena:
 *
 *   arena of rank r = size - 1 blocks, one for each peer, written by that peer only:
 *     | credits 64 | notice 256 | advert 256 | mailbox 256 | waiting 256 |
 *     | lane 0: slot 0 … S-1 | … |
 *   slot = | entry (64): frame, short payload, position | payload (slot_bytes) |
 *
 * If not all peers are mapped, the blocks have no lanes. The lanes of a link are then a
 * separate region, allocated by its owner at the first use of the link. The owner
 * advertises the region by a write (trib_link_open). Until the advert arrives, the
 * peer's window is 0. Only a sender waits for the advert. A rank opens its links before
 * its operation starts, so the advert is never later than the operation itself. mailbox
 * is a second advert: the region by which two ranks exchange messages (pipeline/p2p).
 *
 * A sender writes a slot, then the slot's position. With load/store reach it uses plain
 * stores, and the receiver polls the entry. Otherwise it uses one transport write whose
 * immediate names the lane, and the receiver counts arrivals. Both use the same layout.
 *
 * With load/store reach and S >= 4 the memory of a lane is divided differently:
 *
 *   lane = | S slots with a payload of TRIB_SMALL_BYTES at most | TRIB_BIG_SLOTS places
 *   | place = | payload (slot_bytes) |
 *
 * Larger payloads use the places in rotation; the entry names the place. More places
 * would gain nothing between two cores, and a few stay in their caches.
 *
 * Credits. Position n of a lane may be written once the receiver has released position
 * n - W. The receiver stores the number of released positions in the sender's arena.
 * Without load/store reach it sends this number in the immediate of a write without
 * data, and the sender stores it at the event. Writing the number to memory would not
 * work: the transport orders events only, and memory that two writes share may keep the
 * older value (transport/ops.h).
 *
 * Notices. Without load/store reach the receiver reads a notice only after its event,
 * and only if the memory then has the version of that event. Waiting notices have a
 * place of their own, so they never overwrite an abort notice.
 *
 * On links to aggregators over transport writes, contributions and the credits of
 * results share the outgoing path. A link full of contributions delays those credits
 * until it drains, and without them the aggregator holds back results. A sender
 * therefore has at most 5 / 8 W contributions in flight, and credits return after each
 * quarter of a window. A waiting sender always gets a credit: 5 / 8 W, rounded up, is
 * never less than a quarter.
 */
#ifndef PIPELINE_LINK_LINK_H
#define PIPELINE_LINK_LINK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/snapshot.h"
#include "collectives/schedule/schedule.h"
#include "pipeline/link/advert.h"
#include "pipeline/link/arena.h"
#include "pipeline/link/frame.h"
#include "transport/ops.h"

#define TRIB_ENTRY_PAYLOAD 24
#define TRIB_OOB_NOTICE_TEXT 200
#define TRIB_OOB_NOTICE_SENTENCE_AT \
    196 /* in the text of a report: the byte with the offset of its rank's error message
         * in text; 0: no message */
#define TRIB_OOB_NOTICE_SENTENCE 60 /* minimum size of that message in bytes */
#define TRIB_BIG_SLOTS 2
#define TRIB_SMALL_BYTES 4096
#define TRIB_LINK_FRAME 1 /* upper byte of the immediate of a frame's write */
#define TRIB_LINK_CREDITS 2 /* the same for credits */
#define TRIB_LINK_MESSAGE 6 /* the same for a write into a mailbox and its credits */
#define TRIB_LINK_MESSAGE_CREDITS 7
#define TRIB_LINK_MESSAGE_TOKEN 16 /* tokens from this value on belong to mailboxes */

/* The first cache line of a slot. The sender stores position last, and the receiver
 * reads it first. */
struct trib_entry {
    struct trib_frame frame;
    uint8_t payload[TRIB_ENTRY_PAYLOAD];
    uint32_t place; /* number of a large payload's big slot; in short_path.h: a core */
    _Atomic uint32_t position; /* number of the frame on this lane, from 1 */
};
_Static_assert(sizeof(struct trib_entry) == 64, "an entry is one cache line");

struct trib_credits {
    _Atomic uint32_t released[TRIB_LANES];
    _Atomic uint32_t withdrawn; /* not 0: see trib_link_withdraw */
    uint32_t unused[13];
};
_Static_assert(sizeof(struct trib_credits) == 64, "credits are one cache line");

enum trib_oob_notice_kind {
    TRIB_OOB_NOTICE_WAITING = 1, /* the sender waits in this operation */
    TRIB_OOB_NOTICE_FAILED, /* the communicator has failed; text is the cause */
    TRIB_OOB_NOTICE_SURVIVOR, /* the sender's report in trib_comm_shrink: frame and text
                               * are a struct trib_survivor_report */
};

/* A notice outside the lanes, which needs no credit. version is odd during a write. */
struct trib_oob_notice {
    _Atomic uint32_t version;
    uint32_t kind;
    int32_t status;
    uint32_t lost; /* FAILED: the rank whose loss is the cause, plus 1; 0: no loss */
    struct trib_frame frame;
    char text[TRIB_OOB_NOTICE_TEXT];
    _Atomic uint32_t version_end;
    uint32_t unused2;
};
_Static_assert(sizeof(struct trib_oob_notice) == 256, "a notice is four cache lines");

/* The region of a peer's slots or of its mailbox. The peer stores ready last; over
 * transport writes an event reports the advert. */
struct trib_slot_advert {
    struct trib_blob blob;
    _Atomic uint32_t ready;
    uint32_t unused[2];
};
_Static_assert(sizeof(struct trib_slot_advert) == 256, "an advert is four cache lines");

/* Maximum number of imported regions per peer: enough for the buffers of a large model
 * in rotation, and far below the 65530 mappings that Linux allows a process. */
#define TRIB_IMPORTS 512
#define TRIB_IMPORT_BUCKETS 128 /* a power of two */

struct trib_import {
    struct trib_import *next; /* in its bucket */
    struct trib_blob blob;
    struct trib_remote *remote;
    uint8_t *base; /* NULL: no load/store reach */
    size_t len; /* size of the region */
    uint64_t used; /* clock of the link at the last use, for LRU eviction */
};

enum trib_send_grant {
    TRIB_GRANT_NONE,
    TRIB_GRANT_ASKED, /* the filled entry waits for a grant */
    TRIB_GRANT_GIVEN, /* it may be posted */
};

struct trib_send_lane {
    uint32_t next; /* position of the next frame, from 0 */
    uint32_t released; /* last credit seen */
    uint32_t place; /* big slot of the next large payload */
    bool filled; /* the next entry is filled but not published */
    bool zcopied; /* the payload of the next entry was posted ahead of it */
    enum trib_send_grant grant; /* of the next entry: grants.h */
    uint64_t sent; /* total number of frames sent; counted with load/store reach */
    uint64_t place_end[TRIB_BIG_SLOTS]; /* `sent` after the last use of each */
    uint8_t *remote; /* the peer's slots, or NULL without load/store reach */
    uint8_t *staging; /* copy of the slots, source of transport writes */
};

struct trib_recv_lane {
    uint32_t next; /* position of the next frame to check, from 0 */
    uint32_t arrived; /* frames counted by events; without load/store reach */
    uint32_t returned; /* last credit returned */
    uint32_t asked; /* bytes of the next frame if it needs a grant, or 0: grants.h */
    uint32_t skip; /* number of coming frames to drop: see partial.h */
    bool owed; /* credits are unsent: the transport was full */
    bool taken; /* link.seen has the entry of `next` */
    bool granted; /* the next frame has its grant */
    uint8_t *slots;
};

/* The payload of the next frame if it does not follow its entry: posted before the
 * entry. */
struct trib_zcopy {
    const struct trib_region *from; /* the caller's memory; NULL: staging */
    size_t from_off;
    const struct trib_remote *to; /* the peer's buffer; NULL: the slot of the entry */
    size_t to_off;
    size_t len; /* 0: no payload, or already posted */
};

/* The memory from which the transport reads the writes to a peer. */
struct trib_outbox {
    const struct trib_region *region; /* NULL: none */
    uint8_t *base;
    size_t staging_off; /* offset of the copy of the peer's slots */
    size_t sources_off; /* offset of the sources of writes other than frames */
};

/* Memory in which a peer writes notices. With load/store reach all use the first
 * place. */
enum trib_oob_notice_place {
    TRIB_OOB_NOTICE_LAST_WORDS,
    TRIB_OOB_NOTICE_OF_WAITING,
    TRIB_OOB_NOTICE_PLACES,
};

struct trib_link {
    int peer;
    bool connected;
    bool mapped; /* load/store reach to the peer's arena */
    bool reads; /* also, both ranks can read each other's memory by address */
    size_t stride; /* distance between slots */
    size_t small; /* size of the payload that fits a slot; a multiple of 64 */
    uint32_t core; /* core of the peer, plus 1, from its last short frame; 0: unknown */
    bool lost;
    bool left; /* lost because the peer disconnected */
    bool dead; /* lost, and its process has ended */
    bool lives; /* lost because its connection was cut: its process still runs */
    bool continues; /* lost, and the peer has continued the job without this rank */
    bool has_failed; /* the peer's communicator has: no further write of it arrives */
    bool reported_lost; /* another rank reported the peer as lost */
    bool gone_out; /* the peer announced that it is lost itself: it will end, and did
                    * not continue without this rank */
    struct trib_transport *transport;
    struct trib_remote *arena; /* the peer's */
    size_t head_off; /* offset of this rank's credits and notice in it */
    struct trib_remote *slots; /* the peer's, for this rank; NULL: not advertised yet */
    size_t slots_off;
    uint32_t window[TRIB_LANES]; /* maximum frames in flight; 0: no slots advertised */
    uint32_t give_back_after; /* return credits after N released frames */
    bool opened; /* this rank's slots exist */
    bool advertised; /* an event reported the peer's advert */
    bool advert_unsent; /* this rank's advert is unsent: the transport was full */
    bool waits; /* sending needs the peer's advert: its arena is per link */
    struct trib_outbox outbox;
    struct trib_slot_advert *slot_advert_out; /* in the peer's arena, or NULL */
    struct trib_slot_advert *mailbox_out; /* the same for the mailbox */
    bool mailbox_advertised; /* an event reported the peer's mailbox */
    struct trib_send_lane send[TRIB_LANES];
    struct trib_recv_lane recv[TRIB_LANES];
    struct trib_zcopy zcopy[TRIB_LANES];
    struct trib_out *out; /* results to send before all other frames: see partial.h */
    uint32_t out_frames; /* total number of frames of these results */
    uint32_t n_zcopies; /* writes from the caller's memory in flight: of operations, */
    uint32_t n_direct; /* and of messages */
    _Atomic uint32_t *my_credits; /* [lane]; stored by the peer with load/store reach,
                                   * else by this rank at credit events */
    _Atomic uint32_t *peer_credits; /* [lane], in the peer's arena, or NULL */
    struct trib_oob_notice *notice_out; /* in the peer's arena, or NULL */
    uint32_t notice_version; /* version of the last notice sent; even */
    uint32_t notice_seen[TRIB_OOB_NOTICE_PLACES];
    /* Lower 24 bits of the version in the last event; 0: no event yet. */
    uint32_t notice_arrived[TRIB_OOB_NOTICE_PLACES];
    uint32_t notices_busy; /* writes of trib_link_notify still in flight */
    bool report_busy; /* the transport may still read the last notice of
                       * trib_link_report */
    bool unnotified; /* the transport refused the abort notice */
    uint64_t clock; /* clock of the imports */
    int n_imports;
    struct trib_import *imports[TRIB_IMPORT_BUCKETS]; /* by a hash of the blob */
    struct trib_entry seen[TRIB_LANES]; /* copies of arrived entries: trib_link_peek */
};

/**
 * trib_link_connect - connect a link for notices, if it is not connected.
 *
 * address, arena  from the peer's wireup data
 */
trib_status_t trib_link_connect(struct trib_link *l, struct trib_arena *a, int peer,
                                const struct trib_address *address,
                                const struct trib_arena_blob *arena);

/**
 * trib_link_open - allocate a connected link's slots for frames and advertise them, if
 * not done yet.
 *
 * errors   of registering the slots. A full transport is not an error: it sets
 *          l->advert_unsent
 */
trib_status_t trib_link_open(struct trib_link *l, struct trib_arena *a);

/** trib_link_advertise - retry the advert after the transport was full. */
trib_status_t trib_link_advertise(struct trib_link *l, const struct trib_arena *a);

/**
 * trib_link_take_advert - import the peer's slots; TRIB_INPROGRESS if the advert has
 * not arrived.
 *
 * errors   of importing the region, with the transport's error message
 */
trib_status_t trib_link_take_advert(struct trib_link *l, struct trib_arena *a);

/**
 * trib_link_advertise_mailbox - advertise a region into which the peer may write
 * messages.
 *
 * source   in the region, at source_off; must stay unchanged while the region exists
 * returns  TRIB_ERR_NO_RESOURCE: the transport is full, retry later
 */
trib_status_t trib_link_advertise_mailbox(struct trib_link *l,
                                          const struct trib_region *region,
                                          struct trib_slot_advert *source,
                                          size_t source_off);

/**
 * trib_link_take_mailbox - import the peer's mailbox; TRIB_INPROGRESS if the advert has
 * not arrived.
 *
 * least    bytes of the mailbox that this rank will address
 * errors   of importing; TRIB_ERR_PROTOCOL: the mailbox cannot be mapped
 */
trib_status_t trib_link_take_mailbox(struct trib_link *l, const struct trib_arena *a,
                                     size_t least, struct trib_remote **out);

/** trib_link_close - close a link. Its slots remain until trib_arena_destroy, because
 * writes may be in flight. */
void trib_link_close(struct trib_link *l, struct trib_arena *a);

/**
 * trib_link_import - return the peer's region of a blob, cached or newly imported; NULL
 * on failure.
 *
 * err      receives the reason, unless the transport reports it in its own error;
 *          neither is set if no such blob can exist
 *
 * Valid for this call and the next one on this link. Importing another region evicts
 * the regions that the peer has freed.
 */
struct trib_import *trib_link_import(struct trib_link *l, const struct trib_blob *blob,
                                     struct trib_error *err);

/** trib_link_drop_imports - release all imported regions of the link. */
void trib_link_drop_imports(struct trib_link *l);

static inline bool trib_link_has_room(const struct trib_link *l, int lane, bool place)
{
    const struct trib_send_lane *s = &l->send[lane];
    uint32_t under_way = s->next - s->released;

    return under_way < l->window[lane] &&
           (!place || s->sent - under_way >= s->place_end[s->place]);
}

/** trib_link_can_send - return true if a slot is free for a frame with `bytes` bytes of
 * payload. */
static inline bool trib_link_can_send(struct trib_link *l, int lane, size_t bytes)
{
    struct trib_send_lane *s = &l->send[lane];
    bool place = bytes > l->small;

    if (trib_link_has_room(l, lane, place))
        return true;
    s->released = atomic_load_explicit(&l->my_credits[lane], memory_order_acquire);
    return trib_link_has_room(l, lane, place);
}

/** trib_link_raw_full - return true if the window of uncompressed frames is full. */
static inline bool trib_link_raw_full(struct trib_link *l, const struct trib_arena *a,
                                      int lane)
{
    struct trib_send_lane *s = &l->send[lane];

    if (!a->raw_window || s->next - s->released < a->raw_window)
        return false;
    s->released = atomic_load_explicit(&l->my_credits[lane], memory_order_acquire);
    return s->next - s->released >= a->raw_window;
}

/* Return the offset of a position's entry from the first slot of its lane. */
static inline size_t trib_slot_off(const struct trib_link *l,
                                   const struct trib_arena *a, uint32_t position)
{
    return (position & (a->slots - 1)) * l->stride;
}

/** trib_link_entry - return the entry to fill for the next frame, in the peer's memory
 * or in staging. */
static inline struct trib_entry *trib_link_entry(struct trib_link *l,
                                                 const struct trib_arena *a, int lane)
{
    struct trib_send_lane *s = &l->send[lane];
    uint8_t *slots = s->remote ? s->remote : s->staging;
    return (struct trib_entry *)(slots + trib_slot_off(l, a, s->next));
}

static inline uint8_t *trib_link_payload(const struct trib_link *l,
                                         const struct trib_arena *a, uint8_t *slots,
                                         struct trib_entry *c, uint32_t place,
                                         size_t bytes)
{
    if (bytes <= TRIB_ENTRY_PAYLOAD)
        return c->payload;
    if (bytes <= l->small)
        return (uint8_t *)(c + 1);
    return slots + a->slots * l->stride + place % TRIB_BIG_SLOTS * a->slot_bytes;
}

/** trib_link_to_send - return the address for `bytes` bytes of payload of the entry to
 * fill. */
static inline uint8_t *trib_link_to_send(struct trib_link *l,
                                         const struct trib_arena *a, int lane,
                                         size_t bytes)
{
    struct trib_send_lane *s = &l->send[lane];
    uint8_t *slots = s->remote ? s->remote : s->staging;

    return trib_link_payload(l, a, slots, trib_link_entry(l, a, lane), s->place, bytes);
}

/**
 * trib_link_post - publish by transport writes, without load/store reach: first the
 * payload that the lane's zcopy names, then the entry.
 */
trib_status_t trib_link_post(struct trib_link *l, const struct trib_arena *a, int lane);

/**
 * trib_link_publish - send the filled entry: its frame, and frame.bytes of payload.
 *
 * returns  TRIB_ERR_NO_RESOURCE: the transport is full or the frame waits for a grant,
 *          publish again later
 */
static inline trib_status_t trib_link_publish(struct trib_link *l,
                                              const struct trib_arena *a, int lane)
{
    struct trib_send_lane *s = &l->send[lane];

    if (!l->mapped)
        return trib_link_post(l, a, lane);
    struct trib_entry *c = trib_link_entry(l, a, lane);

    s->sent++;
    if (c->frame.bytes > l->small) {
        c->place = s->place;
        s->place_end[s->place] = s->sent;
        s->place = (s->place + 1) % TRIB_BIG_SLOTS;
    }
    atomic_store_explicit(&c->position, ++s->next, memory_order_release);
    l->transport->ops->wake(l->transport, l->peer);
    return TRIB_OK;
}

/* Return the slot of the next position to receive; the peer may be writing it. */
static inline struct trib_entry *trib_link_slot(const struct trib_link *l,
                                                const struct trib_arena *a, int lane)
{
    const struct trib_recv_lane *r = &l->recv[lane];

    return (struct trib_entry *)(r->slots + trib_slot_off(l, a, r->next));
}

/**
 * trib_link_peek - return the next received entry of a lane, or NULL.
 *
 * The entry is a copy, made at the first call and unchanged until trib_link_release.
 * Checks of a frame therefore stay valid whatever the sender writes, and a frame that
 * was seen does not disappear.
 */
static inline struct trib_entry *trib_link_peek(struct trib_link *l,
                                                const struct trib_arena *a, int lane)
{
    struct trib_recv_lane *r = &l->recv[lane];

    if (r->taken)
        return &l->seen[lane];
    const struct trib_entry *c = trib_link_slot(l, a, lane);
    if (l->mapped
            ? atomic_load_explicit(&c->position, memory_order_acquire) != r->next + 1
            : (int32_t)(r->arrived - r->next) <= 0)
        return NULL;
    trib_snapshot(&l->seen[lane], c, offsetof(struct trib_entry, position));
    r->taken = true;
    return &l->seen[lane];
}

/** trib_link_received - return the payload of the entry from trib_link_peek. Up to
 * TRIB_ENTRY_PAYLOAD bytes are in the copy; the peer may still write to a longer
 * payload. */
static inline uint8_t *trib_link_received(const struct trib_link *l,
                                          const struct trib_arena *a, int lane,
                                          struct trib_entry *c)
{
    if (c->frame.bytes <= TRIB_ENTRY_PAYLOAD)
        return c->payload;
    return trib_link_payload(l, a, l->recv[lane].slots, trib_link_slot(l, a, lane),
                             c->place, c->frame.bytes);
}

/** trib_link_give_back - return all credits of a lane now; they stay owed if the
 * transport is full. */
void trib_link_give_back(struct trib_link *l, int lane);

/**
 * trib_link_release - release the entry from trib_link_peek.
 *
 * A credit costs a store to the peer's cache line, or even a write, so credits return
 * by half a window, or a quarter (above). A waiting sender still gets a credit while
 * the receiver makes progress. Credits return at once for frames that name the sender's
 * memory and for payloads in a big place: the sender may wait for those.
 */
static inline void trib_link_release(struct trib_link *l, const struct trib_arena *a,
                                     int lane)
{
    struct trib_recv_lane *r = &l->recv[lane];
    const struct trib_frame *f = &trib_link_peek(l, a, lane)->frame;
    bool now = f->kind == TRIB_FRAME_GET || f->bytes > l->small;

    r->taken = false;
    r->next++;
    if (now || r->next - r->returned >= l->give_back_after)
        trib_link_give_back(l, lane);
}

/**
 * trib_link_notify - write a notice to the peer; a text that is too long is cut.
 *
 * A waiting notice is skipped while the transport still reads the previous one: the
 * next follows soon.
 * returns  TRIB_OK, also if there is no peer to notify; TRIB_ERR_NO_RESOURCE: the
 *          transport is full, notify again later; other errors of the write
 */
trib_status_t trib_link_notify(struct trib_link *l, struct trib_arena *a,
                               const struct trib_oob_notice *notice);

/**
 * trib_link_report - write a notice to the peer after trib_arena_make_reports.
 *
 * Works on a link that is connected but not open. With load/store reach it also works
 * for a lost peer, which may have been stopped and may resume.
 *
 * returns  as trib_link_notify; TRIB_ERR_NO_RESOURCE also while the transport still
 *          reads the previous report
 */
trib_status_t trib_link_report(struct trib_link *l, const struct trib_arena *a,
                               const struct trib_oob_notice *notice);

/**
 * trib_link_withdraw - tell a mapped peer, even a lost one, that the memory advertised
 * to it may change from now on. For a rank that abandons all operations in flight.
 */
static inline void trib_link_withdraw(struct trib_link *l)
{
    if (!l->connected || !l->peer_credits)
        return;
    struct trib_credits *c = (struct trib_credits *)(void *)l->peer_credits;
    atomic_store_explicit(&c->withdrawn, 1, memory_order_relaxed);
    /* Order the flag before the caller's changes to its memory. */
    atomic_thread_fence(memory_order_seq_cst);
}

/** trib_link_is_withdrawn - return true if memory that the peer advertised may have
 * changed before it was read. */
static inline bool trib_link_is_withdrawn(const struct trib_link *l)
{
    const struct trib_credits *c = (const struct trib_credits *)(void *)l->my_credits;

    atomic_thread_fence(memory_order_acquire); /* after all reads of that memory */
    return atomic_load_explicit(&c->withdrawn, memory_order_relaxed) != 0;
}

/** trib_link_reread - make trib_link_notice return the peer's newest notice again. */
static inline void trib_link_reread(struct trib_link *l)
{
    l->notice_seen[TRIB_OOB_NOTICE_LAST_WORDS] = 0;
}

/**
 * trib_link_notice - copy a new notice of rank `peer`; return false if there is none.
 *
 * Works without a connection to the peer.
 */
bool trib_link_notice(struct trib_link *l, const struct trib_arena *a, int peer,
                      struct trib_oob_notice *out);

/** trib_link_credits_fit - return false if an event brings credits for frames that were
 * never sent. */
bool trib_link_credits_fit(const struct trib_link *l, const struct trib_event *event);

/**
 * trib_link_event - handle an ARRIVED or WRITE_DONE event of this link.
 *
 * Return true if the event can advance an operation. A notice cannot.
 */
bool trib_link_event(struct trib_link *l, const struct trib_event *event);

#endif
