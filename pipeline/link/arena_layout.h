/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The layout of an arena (drawn in link.h), and of the memory that this rank's writes
 * are read from. Only arena.c and link.c include this header.
 */
#ifndef PIPELINE_LINK_ARENA_LAYOUT_H
#define PIPELINE_LINK_ARENA_LAYOUT_H

#include <assert.h>

#include "pipeline/link/billboard.h"
#include "pipeline/link/link.h"

static inline size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

#define CREDITS_OFF 0
#define NOTICE_OFF sizeof(struct trib_credits)
#define ADVERT_OFF (NOTICE_OFF + sizeof(struct trib_oob_notice))
#define MAILBOX_OFF (ADVERT_OFF + sizeof(struct trib_slot_advert))
#define WAITING_OFF (MAILBOX_OFF + sizeof(struct trib_slot_advert))
#define LANES_OFF (WAITING_OFF + sizeof(struct trib_oob_notice))
#define HEAD_BYTES LANES_OFF /* size of a block without lanes */

/* Small slots and big places fit in the space of S full slots: S (64 + bytes) >= S (64
 * + bytes / 2) + 2 bytes for S >= 4. */
static inline size_t small_bytes(const struct trib_arena *a, bool mapped)
{
    size_t small = a->slot_bytes / 128 * 64;

    if (!mapped || a->slots < 4 || !small)
        return a->slot_bytes;
    return small < TRIB_SMALL_BYTES ? small : TRIB_SMALL_BYTES;
}

/* Return the size of all lanes of one direction; mapped: with load/store reach. */
static inline size_t both_lanes_bytes(const struct trib_arena *a, bool mapped)
{
    size_t small = small_bytes(a, mapped);
    size_t places = small < a->slot_bytes ? TRIB_BIG_SLOTS * a->slot_bytes : 0;

    return TRIB_LANES * ((sizeof(struct trib_entry) + small) * a->slots + places);
}

/* Return the offset of a lane from the first slot of the first lane. */
static inline size_t lane_off(const struct trib_arena *a, int lane, bool mapped)
{
    assert(lane >= 0 && lane < TRIB_LANES);
    return (size_t)lane * (both_lanes_bytes(a, mapped) / TRIB_LANES);
}

static inline void size_up(struct trib_arena *a)
{
    assert(a->window > 0);
    a->slots = 1;
    while (a->slots < a->window)
        a->slots *= 2;
    a->slot_bytes = round_up(a->slot_bytes, 64);
    a->block_bytes = round_up(LANES_OFF + both_lanes_bytes(a, false), 4096);
    assert((a->slots & (a->slots - 1)) == 0 && a->slots >= a->window);
}

/* Return the index of rank `peer` among the peers of rank `self`, which skips
 * itself. */
static inline size_t place_of(int self, int peer)
{
    assert(peer != self && peer >= 0);
    return (size_t)(peer - (peer > self));
}

static inline size_t block_off(const struct trib_arena *a, int self, int peer)
{
    return a->block_bytes * place_of(self, peer);
}

static inline size_t others(int size)
{
    return (size_t)(size > 1 ? size - 1 : 1);
}

static inline size_t blocks_bytes(const struct trib_arena *a)
{
    return a->block_bytes * others(a->size);
}

/* Return the offset of the billboard in the arena of rank 0, if it has one. */
static inline size_t billboard_off(const struct trib_arena *a)
{
    return blocks_bytes(a);
}

/* Return the offset, in this rank's arena, of the block that rank `peer` writes. */
static inline size_t own_head_off(const struct trib_arena *a, int peer)
{
    return a->per_link ? HEAD_BYTES * place_of(a->self, peer)
                       : block_off(a, a->self, peer);
}

/* Return the offset of the abort notice for peers whose links were never open; it
 * follows the heads. */
static inline size_t abort_notice_off(int size)
{
    return HEAD_BYTES * others(size);
}

/*
 * Source memory of all writes to a peer other than frames. A transport may read a
 * source until the write completes, so each must stay unchanged until then. A waiting
 * notice is written only after the previous one completed; the abort notice and the
 * advert are sent once.
 */
struct sources {
    struct trib_oob_notice waiting;
    struct trib_oob_notice failed;
    struct trib_slot_advert slot_advert;
};

static inline size_t sources_off(const struct trib_arena *a, int peer)
{
    assert(peer >= 0 && peer <= a->size);
    return blocks_bytes(a) + sizeof(struct sources) * (size_t)peer;
}

/* Return the size of staging: the entries of all peers as in the arena, then the
 * sources for each peer. */
static inline size_t staging_bytes(const struct trib_arena *a)
{
    return sources_off(a, a->size);
}

/* Return the memory of one link: its slots, and without load/store reach also a copy of
 * the peer's slots, and sources. */
static inline size_t link_bytes(const struct trib_arena *a, bool mapped)
{
    size_t lanes = both_lanes_bytes(a, mapped);

    return round_up(mapped ? LANES_OFF + lanes : 2 * lanes + sizeof(struct sources),
                    4096);
}

#endif
