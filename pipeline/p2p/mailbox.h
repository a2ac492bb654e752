/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mailbox: the memory by which two ranks exchange messages beside their link's lanes.
 *
 *     | credits 64 | slot 0 … S-1 |      slot = | struct trib_message | payload |
 *
 * Each of the two has such a region, into which the other one writes, made with its
 * first plan that sends to or receives from that rank, and told of by an advert in the
 * peer's arena. Until the peer's advert has come, nothing can be sent. Where the peer
 * is reached by writes, behind the slots are a copy of them, from which the transport
 * reads, and the source of the advert; credits then travel in immediates.
 *
 * A receiver takes entries in their order and keeps none in its slot, whether there is
 * a receive for them or not. So a mailbox never stands still because of one message.
 */
#ifndef PIPELINE_P2P_MAILBOX_H
#define PIPELINE_P2P_MAILBOX_H

#include "pipeline/link/link.h"
#include "pipeline/p2p/message.h"

enum {
    TRIB_MAILBOX_SLOTS = 16, /* at most: the window of links is the other limit */
    TRIB_MAILBOX_SLOT_BYTES = 32768, /* the same; the chunk is the other limit */
};

struct trib_mailbox_credits {
    _Atomic uint32_t released; /* entries that the receiver has taken */
    _Atomic uint32_t consumed; /* of the eager ones, those that found their receive */
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
    uint8_t *remote_base; /* NULL: it is reached by writes */
    bool advert_unsent;
    bool unposted; /* the next entry is filled, and the transport had no room */
    uint32_t sent; /* entries */
    uint32_t written; /* of these, whose memory may change: over writes */
    uint32_t sent_eager;
    uint32_t released_seen, consumed_seen; /* credits when they were looked at last */
    uint32_t bytes; /* payload of the entry that was filled last: to read it there
                     * would wait for a line of the peer */
    uint32_t taken; /* entries */
    uint32_t arrived; /* of which events told; over writes */
    uint32_t consumed;
    uint32_t returned[2]; /* credits as the peer knows them: taken, consumed */
    struct trib_message seen; /* copy of the entry that trib_mailbox_peek gave */
    bool has_seen;
};

/** trib_mailbox_open - make this rank's memory of a connected link; errors of
 * allocating it. */
trib_status_t trib_mailbox_open(struct trib_mailbox *m, struct trib_link *l,
                                const struct trib_arena *a);
void trib_mailbox_close(struct trib_mailbox *m);

/** trib_mailbox_bytes - the memory of a mailbox that is open. */
size_t trib_mailbox_bytes(const struct trib_mailbox *m);

/** trib_mailbox_join - send the advert and take the peer's, as far as is possible now;
 * TRIB_INPROGRESS: it has not come. */
trib_status_t trib_mailbox_join(struct trib_mailbox *m);

/** trib_mailbox_has_room - true if an entry can be filled. */
bool trib_mailbox_has_room(struct trib_mailbox *m);

/** trib_mailbox_takes_eager - true if fewer than `most` eager entries have not found
 * their receive, as far as is known. */
bool trib_mailbox_takes_eager(struct trib_mailbox *m, uint32_t most);

/** trib_mailbox_next - the entry to fill, and where its payload of `bytes` goes. */
struct trib_message *trib_mailbox_next(struct trib_mailbox *m, size_t bytes,
                                       uint8_t **payload_out);

/** trib_mailbox_post - send the filled entry. TRIB_ERR_NO_RESOURCE: m->unposted, post
 * it again before another is filled. */
trib_status_t trib_mailbox_post(struct trib_mailbox *m);

/** trib_mailbox_peek - a copy of the next entry that has arrived, and its payload,
 * which a peer may go on changing; NULL: none has. */
const struct trib_message *trib_mailbox_peek(struct trib_mailbox *m,
                                             const uint8_t **payload_out);

/** trib_mailbox_release - give the slot of that entry back. */
void trib_mailbox_release(struct trib_mailbox *m);

/** trib_mailbox_pay - return credits, if there are enough of them. */
void trib_mailbox_pay(struct trib_mailbox *m);

/** trib_mailbox_event - note an event of a mailbox. false: an entry has come twice, or
 * credits for more than was sent. */
bool trib_mailbox_event(struct trib_mailbox *m, const struct trib_event *event);

#endif
