/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mailbox: memory for the messages between two ranks, separate from the lanes of
 * their link.
 *
 *     | credits 64 | slot 0 … S-1 |      slot = | struct trib_message | payload |
 *
 * Each of the two ranks has such a region, and the other rank writes to it. It is
 * allocated with the first plan that sends to or receives from that rank, and announced
 * by an advert in the peer's arena. Nothing can be sent before the peer's advert has
 * arrived. If the peer is reached by writes, a copy of the slots, which the transport
 * reads, and the source of the advert follow the slots; credits are then sent in
 * immediates.
 *
 * A receiver takes entries in order and keeps none in its slot, whether or not a
 * receive is posted for them. A single message therefore never blocks a mailbox.
 */
#ifndef PIPELINE_P2P_MAILBOX_H
#define PIPELINE_P2P_MAILBOX_H

#include "pipeline/link/link.h"
#include "pipeline/p2p/message.h"

enum {
    TRIB_MAILBOX_SLOTS = 16, /* maximum: the window of links is the other limit */
    TRIB_MAILBOX_SLOT_BYTES = 32768, /* maximum: the chunk is the other limit */
};

struct trib_mailbox_credits {
    _Atomic uint32_t released; /* entries taken out of their slots */
    _Atomic uint32_t consumed; /* eager entries that were matched with a receive */
    uint32_t unused[14];
};

struct trib_mailbox {
    struct trib_link *link;
    const struct trib_arena *arena;
    uint32_t slots; /* a power of two */
    size_t slot_bytes;
    struct trib_region *region; /* this rank's */
    uint8_t *base;
    struct trib_remote *remote; /* the peer's; NULL: not advertised yet */
    uint8_t *remote_base; /* NULL: reached by writes */
    bool advert_unsent;
    bool unposted; /* the next entry is filled, but the transport was full */
    uint32_t sent; /* entries sent */
    uint32_t written; /* sent entries whose source memory may be reused; over writes */
    uint32_t sent_eager;
    uint32_t released_seen, consumed_seen; /* credits at the last check */
    uint32_t bytes; /* payload size of the newest filled entry; reading it from the
                     * entry would wait for a cache line of the peer */
    uint32_t taken; /* entries taken */
    uint32_t arrived; /* entries reported by events; over writes */
    uint32_t consumed;
    uint32_t returned[2]; /* credits sent to the peer: taken, consumed */
    struct trib_message seen; /* copy of the entry that trib_mailbox_peek returned */
    bool has_seen;
};

/** trib_mailbox_open - allocate this rank's memory for a connected link; errors of
 * allocation. */
trib_status_t trib_mailbox_open(struct trib_mailbox *m, struct trib_link *l,
                                const struct trib_arena *a);
void trib_mailbox_close(struct trib_mailbox *m);

/** trib_mailbox_bytes - return the memory of an open mailbox. */
size_t trib_mailbox_bytes(const struct trib_mailbox *m);

/** trib_mailbox_join - send the advert and import the peer's mailbox, without blocking;
 * TRIB_INPROGRESS: the peer's advert has not arrived. */
trib_status_t trib_mailbox_join(struct trib_mailbox *m);

/** trib_mailbox_has_room - return true if an entry can be filled. */
bool trib_mailbox_has_room(struct trib_mailbox *m);

/** trib_mailbox_takes_eager - return true if fewer than `most` eager entries are known
 * to be unmatched. */
bool trib_mailbox_takes_eager(struct trib_mailbox *m, uint32_t most);

/** trib_mailbox_next - return the entry to fill, and the address of its payload of
 * `bytes` bytes. */
struct trib_message *trib_mailbox_next(struct trib_mailbox *m, size_t bytes,
                                       uint8_t **payload_out);

/** trib_mailbox_post - send the filled entry. TRIB_ERR_NO_RESOURCE: m->unposted is set;
 * post the entry again before filling another. */
trib_status_t trib_mailbox_post(struct trib_mailbox *m);

/** trib_mailbox_peek - return a copy of the next arrived entry, and its payload, which
 * the peer may still change; NULL: none has arrived. */
const struct trib_message *trib_mailbox_peek(struct trib_mailbox *m,
                                             const uint8_t **payload_out);

/** trib_mailbox_release - release the slot of that entry. */
void trib_mailbox_release(struct trib_mailbox *m);

/** trib_mailbox_pay - return credits, if there are enough of them. */
void trib_mailbox_pay(struct trib_mailbox *m);

/** trib_mailbox_event - handle an event of a mailbox. Return false if an entry arrived
 * twice, or if credits exceed the number of sent entries. */
bool trib_mailbox_event(struct trib_mailbox *m, const struct trib_event *event);

#endif
