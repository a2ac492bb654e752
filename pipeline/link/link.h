/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link: what one rank shares with one peer. Two lanes each way, with a window of W
 * frames in S slots, S being W rounded up to a power of two; the credits for them, and
 * one notice each way.
 *
 * All of it lives in the receiver's memory. Every rank exports one region at start, its
 * arena:
 *
 *   arena of rank r = size - 1 blocks, one for each peer, written by that peer only:
 *     | credits 64 | notice 256 | advert 256 | mailbox 256 | waiting 256 |
 *     | lane 0: slot 0 … S-1 | … |
 *   slot = | entry (64): frame, short payload, position | payload (slot_bytes) |
 *
 * Where not all peers are mapped the blocks have no lanes: those of a link are a
 * region of their own, made when its owner first uses the link. It names them by a
 * write that names the region (trib_link_open); until that has come the peer's window
 * is 0. Nobody waits for it but who sends, and a rank opens its links before its
 * operation starts: the advert is never further away than the operation itself.
 * mailbox is a second advert, of the region by which two ranks exchange messages
 * (pipeline/p2p).
 *
 * A sender writes a slot and then its position: with load/store reach by plain stores
 * (the receiver polls the entry), else by one transport write whose immediate says
 * which lane (the receiver counts arrivals). Both have the same layout.
 *
 * With load/store reach and S >= 4 the memory of a lane is cut otherwise:
 *
 *   lane = | S slots with a payload of TRIB_SMALL_BYTES at most | TRIB_BIG_SLOTS places
 *   | place = | payload (slot_bytes) |
 *
 * Larger payloads take the places by turns; the entry says which. More of them under
 * way between two cores would gain nothing, and few places stay in their caches.
 *
 * Credits. Position n of a lane may be written once the receiver has released
 * position n - W. The receiver stores the number of released positions in the sender's
 * arena. Without load/store reach it sends that number in the immediate of a write
 * without bytes, and the sender stores it at the event. A write of the number itself
 * would not do: the transport orders events, and memory that two writes share may keep
 * the older value (transport/transport.h).
 *
 * Notices. Without load/store reach the receiver reads a notice only after its event,
 * and only if the memory then has the version of that event. A notice of waiting has a
 * place of its own, so that it never replaces the words of a failure.
 *
 * Beside aggregators, over transport writes, contributions and the credits of results
 * share the way out. A link that is full of contributions keeps those credits for as
 * long as it takes to empty, and the aggregator, without them, keeps results. So a
 * sender of contributions has 5 / 8 W of them under way, and credits return by quarters
 * of a window. A sender that waits for any has at least one that is not returned by
 * itself: 5 / 8 W, rounded up, is never less than such a quarter.
 */
#ifndef PIPELINE_LINK_LINK_H
#define PIPELINE_LINK_LINK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/snapshot.h"
#include "pipeline/link/arena.h"
#include "pipeline/link/frame.h"
#include "pipeline/link/advert.h"
#include "schedule/schedule.h"
#include "transport/transport.h"

#define TRIB_ENTRY_PAYLOAD 24
#define TRIB_OOB_NOTICE_TEXT 200
#define TRIB_OOB_NOTICE_SENTENCE_AT \
    196 /* of a report: the byte of text that says where
                                         * in text the sentence of its rank's failure
                                         * begins; 0: there is none */
#define TRIB_OOB_NOTICE_SENTENCE 60 /* bytes that it has at least */
#define TRIB_BIG_SLOTS 2
#define TRIB_SMALL_BYTES 4096
#define TRIB_LINK_FRAME 1 /* the upper byte of the immediate of a frame's write */
#define TRIB_LINK_CREDITS 2 /* the same of credits */
#define TRIB_LINK_MESSAGE 6 /* the same of a write into a mailbox, and of its credits */
#define TRIB_LINK_MESSAGE_CREDITS 7
#define TRIB_LINK_MESSAGE_TOKEN 16 /* tokens from here on are those of mailboxes */

/* The first cache line of a slot. The sender stores position last, and the receiver
 * reads it first. */
struct trib_entry {
    struct trib_frame frame;
    uint8_t payload[TRIB_ENTRY_PAYLOAD];
    uint32_t place; /* number of a large payload's big slot; short_path.h: a core */
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
    TRIB_OOB_NOTICE_FAILED, /* the sender's communicator has failed, because of text */
    TRIB_OOB_NOTICE_SURVIVOR, /* the sender's report in trib_comm_shrink: frame and text
                               * are a struct trib_survivor_report */
};

/* A notice outside of any lane, which needs no credit. version is odd during a
 * write. */
struct trib_oob_notice {
    _Atomic uint32_t version;
    uint32_t kind;
    int32_t status;
    uint32_t lost; /* FAILED: the rank whose loss is the cause, plus 1; 0: none is */
    struct trib_frame frame;
    char text[TRIB_OOB_NOTICE_TEXT];
    _Atomic uint32_t version_end;
    uint32_t unused2;
};
_Static_assert(sizeof(struct trib_oob_notice) == 256, "a notice is four cache lines");

/* The region of a peer's slots, or of its mailbox. Its owner stores ready last; over
 * transport writes an event tells. */
struct trib_slot_advert {
    struct trib_blob blob;
    _Atomic uint32_t ready;
    uint32_t unused[2];
};
_Static_assert(sizeof(struct trib_slot_advert) == 256, "an advert is four cache lines");

/* Regions of one peer that stay imported: the buffers of a large model in rotation, and
 * few beside the 65530 mappings that Linux allows a process. */
#define TRIB_IMPORTS 512
#define TRIB_IMPORT_BUCKETS 128 /* a power of two */

struct trib_import {
    struct trib_import *next; /* in its bucket */
    struct trib_blob blob;
    struct trib_remote *remote;
    uint8_t *base; /* NULL: no load/store reach */
    size_t len;    /* size of the region */
    uint64_t used; /* clock of the link at the last use */
};

struct trib_send_lane {
    uint32_t next;     /* position of the next frame, from 0 */
    uint32_t released; /* last credit seen */
    uint32_t place;    /* big slot of the next large payload */
    bool filled; /* the next entry is filled and still to be published */
    bool zcopied; /* the payload of the next entry has gone before it */
    uint64_t sent;     /* frames sent in all; counted with load/store reach */
    uint64_t place_end[TRIB_BIG_SLOTS]; /* `sent` after the last use of each */
    uint8_t *remote;   /* the peer's slots, or NULL without load/store reach */
    uint8_t *staging;  /* copy of the slots, source of transport writes */
};

struct trib_recv_lane {
    uint32_t next;     /* position of the next frame to look at, from 0 */
    uint32_t arrived;  /* frames counted by events; without load/store reach */
    uint32_t returned; /* last credit given */
    uint32_t skip;     /* frames to come that are dropped: see partial.h */
    bool owed;         /* credits are still to be returned: the transport was full */
    bool taken; /* link.seen has the entry of `next` */
    uint8_t *slots;
};

/* The payload of the next frame, where it is not behind its entry: it is posted
 * before. */
struct trib_zcopy {
    const struct trib_region *from; /* the caller's memory; NULL: the entry's slot in
                                     * staging */
    size_t from_off;
    const struct trib_remote *to; /* the peer's buffer; NULL: the slot of the entry */
    size_t to_off;
    size_t len; /* 0: there is none, or it was posted */
};

/* The memory from which a transport reads its writes to a peer. */
struct trib_outbox {
    const struct trib_region *region; /* NULL: none */
    uint8_t *base;
    size_t staging_off; /* offset of the copy of the peer's slots */
    size_t sources_off; /* offset of sources of writes beside frames */
};

/* Where a peer writes notices. With load/store reach all are in the first place. */
enum trib_oob_notice_place {
    TRIB_OOB_NOTICE_LAST_WORDS,
    TRIB_OOB_NOTICE_OF_WAITING,
    TRIB_OOB_NOTICE_PLACES,
};

struct trib_link {
    int peer;
    bool connected;
    bool mapped; /* load/store reach to the peer's arena */
    bool reads; /* also: each of the two reads memory of the other by its address */
    size_t stride; /* from a slot to the next */
    size_t small;  /* size of the payload that fits a slot; a multiple of 64 */
    uint32_t core; /* plus 1, of the peer, in its last short frame; 0: not said */
    bool lost;
    bool left; /* lost, as the peer has left */
    bool dead; /* lost, and its process has ended */
    bool lives; /* lost, as its connection was cut: its process runs */
    bool continues; /* lost, and the peer has continued the job without this rank */
    bool said_lost; /* another rank has said that the peer is lost */
    bool gone_out; /* the peer has said that it is lost itself: it ends, and has not
                    * continued without this rank */
    struct trib_transport *transport;
    struct trib_remote *arena; /* the peer's */
    size_t head_off;           /* offset of this rank's credits and notice in it */
    struct trib_remote *slots; /* the peer's, for this rank; NULL: not advertised yet */
    size_t slots_off;
    uint32_t window[TRIB_LANES]; /* most frames under way; 0: no slots advertised */
    uint32_t give_back_after;    /* number of released frames after which credits
                                  * return */
    bool opened;               /* this rank's slots exist */
    bool advertised; /* the peer's advert is here: an event told */
    bool advert_unsent; /* this rank's advert is still to go: the transport was full */
    bool waits; /* the peer's advert is to come: its arena is per link */
    struct trib_outbox outbox;
    struct trib_slot_advert *slot_advert_out; /* in the peer's arena, or NULL */
    struct trib_slot_advert *mailbox_out; /* the same of the mailbox */
    bool mailbox_advertised; /* an event told of the peer's mailbox */
    struct trib_send_lane send[TRIB_LANES];
    struct trib_recv_lane recv[TRIB_LANES];
    struct trib_zcopy zcopy[TRIB_LANES];
    struct trib_out *out; /* results to be sent before all others: see quorum.h */
    uint32_t out_frames;  /* frames of these results in all */
    uint32_t n_zcopies; /* writes out of the caller's memory that are under way */
    _Atomic uint32_t *my_credits; /* [lane]; with load/store reach the peer stores
                                   * them, else their events do */
    _Atomic uint32_t *peer_credits;      /* [lane], in the peer's arena, or NULL */
    struct trib_oob_notice *notice_out; /* in the peer's arena, or NULL */
    uint32_t notice_version;             /* version of the last notice sent; even */
    uint32_t notice_seen[TRIB_OOB_NOTICE_PLACES];
    uint32_t notice_told[TRIB_OOB_NOTICE_PLACES]; /* of the last event: the version's
                                                   * lower 24 bits; 0: none came */
    uint32_t notices_busy; /* of trib_link_notify, which the transport may still read */
    bool report_busy; /* the same of the last notice of trib_link_report */
    bool untold;      /* the transport refused the notice of a failure */
    uint64_t clock; /* clock of imports */
    int n_imports;
    struct trib_import *imports[TRIB_IMPORT_BUCKETS]; /* by a hash of the blob */
    struct trib_entry seen[TRIB_LANES]; /* copies of entries that have arrived:
                                         * trib_link_peek */
};

/**
 * trib_link_connect - bring a link up for notices, if it is not up.
 *
 * address, arena   what the peer told at start
 */
trib_status_t trib_link_connect(struct trib_link *l, struct trib_arena *a, int peer,
                                const struct trib_address *address,
                                const struct trib_arena_blob *arena);

/**
 * trib_link_open - make a connected link's slots for frames and advertise them, if that
 * was not done.
 *
 * errors   of registering the slots. A transport that is full is none: l->advert_unsent
 */
trib_status_t trib_link_open(struct trib_link *l, struct trib_arena *a);

/** trib_link_advertise - advertise the slots again after the transport was full. */
trib_status_t trib_link_advertise(struct trib_link *l, const struct trib_arena *a);

/**
 * trib_link_take_advert - look for the peer's advert; TRIB_INPROGRESS if none has come.
 *
 * errors    of importing its region, with the sentence of the transport
 */
trib_status_t trib_link_take_advert(struct trib_link *l, struct trib_arena *a);

/**
 * trib_link_advertise_mailbox - tell the peer of a region into which it may write
 * messages.
 *
 * source   in the region, at source_off; lies still as long as the region lasts
 * returns  TRIB_ERR_NO_RESOURCE: the transport is full, advertise again later
 */
trib_status_t trib_link_advertise_mailbox(struct trib_link *l,
                                          const struct trib_region *region,
                                          struct trib_slot_advert *source,
                                          size_t source_off);

/**
 * trib_link_take_mailbox - import the peer's mailbox; TRIB_INPROGRESS if no advert has
 * come.
 *
 * least    bytes of it that this rank will address
 * errors   of importing; TRIB_ERR_PROTOCOL: it cannot be mapped
 */
trib_status_t trib_link_take_mailbox(struct trib_link *l, const struct trib_arena *a,
                                     size_t least, struct trib_remote **out);

/** trib_link_close - close a link; its slots last until trib_arena_destroy, as writes
 * may be under way. */
void trib_link_close(struct trib_link *l, struct trib_arena *a);

/**
 * trib_link_import - the peer's region of a blob, from the link's cache or imported
 * now; NULL: none.
 *
 * err      says why not, or the transport does in its own; neither: such a blob cannot
 *          be
 *
 * Valid for this call and the next one of this link. What the peer has freed is dropped
 * when another region of it comes.
 */
struct trib_import *trib_link_import(struct trib_link *l, const struct trib_blob *blob,
                                     struct trib_error *err);

/** trib_link_drop_imports - release all regions that the link has imported. */
void trib_link_drop_imports(struct trib_link *l);

static inline bool trib_link_has_room(const struct trib_link *l, int lane, bool place)
{
    const struct trib_send_lane *s = &l->send[lane];
    uint32_t under_way = s->next - s->released;

    return under_way < l->window[lane] &&
           (!place || s->sent - under_way >= s->place_end[s->place]);
}

/** trib_link_can_send - true if there is a free slot for a frame with `bytes` of
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

/** trib_link_raw_full - true if as many frames are under way as elements without a
 * codec may have. */
static inline bool trib_link_raw_full(struct trib_link *l, const struct trib_arena *a,
                                      int lane)
{
    struct trib_send_lane *s = &l->send[lane];

    if (!a->raw_window || s->next - s->released < a->raw_window)
        return false;
    s->released = atomic_load_explicit(&l->my_credits[lane], memory_order_acquire);
    return s->next - s->released >= a->raw_window;
}

/* The offset of the entry of a position from the first slot of its lane. */
static inline size_t trib_slot_off(const struct trib_link *l,
                                   const struct trib_arena *a, uint32_t position)
{
    return (position & (a->slots - 1)) * l->stride;
}

/** trib_link_entry - the entry to fill for the next frame: the peer's own, or
 * staging. */
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

/** trib_link_to_send - the payload of the entry to fill, for `bytes` of payload. */
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
 * payload that lane's zcopy names, then the entry.
 */
trib_status_t trib_link_post(struct trib_link *l, const struct trib_arena *a, int lane);

/**
 * trib_link_publish - send the filled entry: its frame, and frame.bytes of payload.
 *
 * returns  TRIB_ERR_NO_RESOURCE: the transport is full, publish again later
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

/* The entry of the position that is received next, as the peer writes it. */
static inline struct trib_entry *trib_link_slot(const struct trib_link *l,
                                                const struct trib_arena *a, int lane)
{
    const struct trib_recv_lane *r = &l->recv[lane];

    return (struct trib_entry *)(r->slots + trib_slot_off(l, a, r->next));
}

/**
 * trib_link_peek - the next received entry of a lane, or NULL.
 *
 * It is a copy, made when the entry is seen first and the same until trib_link_release:
 * so what was checked of a frame holds, whatever its sender writes there meanwhile, and
 * a frame that is there does not go away.
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

/** trib_link_received - the payload of the entry that trib_link_peek gave. Up to
 * TRIB_ENTRY_PAYLOAD bytes are in the copy; the peer may go on writing to a longer
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
 * trib_link_release - release the entry that trib_link_peek gave.
 *
 * A credit is a store to a line of the peer, or even a write, so half a window, or a
 * quarter (above), is returned at a time: a sender that waits gets one as long as the
 * receiver goes on. Frames that name the sender's memory, and those whose payload is in
 * a place, are returned at once: the sender may wait for that.
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
 * trib_link_notify - write a notice to the peer; its text is cut to fit.
 *
 * One of waiting is left out while the transport still holds the last: another comes
 * soon.
 * returns  TRIB_OK also where there is nobody to tell; TRIB_ERR_NO_RESOURCE: the
 *          transport is full, notify again later; what else its write gives
 */
trib_status_t trib_link_notify(struct trib_link *l, struct trib_arena *a,
                               const struct trib_oob_notice *notice);

/**
 * trib_link_report - write a notice to the peer after trib_arena_make_reports, also
 * over a link that is connected and not open, and with load/store reach to a peer that
 * is lost: it may have been stopped, and go on.
 *
 * returns  as trib_link_notify; TRIB_ERR_NO_RESOURCE also while the transport still
 *          reads the last one
 */
trib_status_t trib_link_report(struct trib_link *l, const struct trib_arena *a,
                               const struct trib_oob_notice *notice);

/**
 * trib_link_withdraw - tell a mapped peer, also one that counts as lost, that memory
 * which was named to it may change from now on: this rank gives up all that is under
 * way.
 */
static inline void trib_link_withdraw(struct trib_link *l)
{
    if (!l->connected || !l->peer_credits)
        return;
    struct trib_credits *c = (struct trib_credits *)(void *)l->peer_credits;
    atomic_store_explicit(&c->withdrawn, 1, memory_order_relaxed);
    /* Before whatever the caller then does to its memory. */
    atomic_thread_fence(memory_order_seq_cst);
}

/** trib_link_is_withdrawn - true if memory that the peer had named may have changed
 * before it was read. */
static inline bool trib_link_is_withdrawn(const struct trib_link *l)
{
    const struct trib_credits *c = (const struct trib_credits *)(void *)l->my_credits;

    atomic_thread_fence(memory_order_acquire); /* behind all that was read */
    return atomic_load_explicit(&c->withdrawn, memory_order_relaxed) != 0;
}

/** trib_link_reread - have trib_link_notice give the newest notice of the peer once
 * more. */
static inline void trib_link_reread(struct trib_link *l)
{
    l->notice_seen[TRIB_OOB_NOTICE_LAST_WORDS] = 0;
}

/**
 * trib_link_notice - copy a new notice of rank `peer`; false if there is none.
 *
 * Also from peers to which this rank has not connected.
 */
bool trib_link_notice(struct trib_link *l, const struct trib_arena *a, int peer,
                      struct trib_oob_notice *out);

/** trib_link_credits_fit - true unless an event brings credits for frames that were not
 * sent. */
bool trib_link_credits_fit(const struct trib_link *l, const struct trib_event *event);

/**
 * trib_link_event - note an ARRIVED or WRITE_DONE event of this link.
 *
 * Returns whether an operation can go on by it: a notice is no progress of the peer.
 */
bool trib_link_event(struct trib_link *l, const struct trib_event *event);

#endif
