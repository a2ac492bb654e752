/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/core/slot_budget.h"

#include <assert.h>

#include "base/minmax.h"
#include "pipeline/link/link.h"

enum {
    CHUNK_MIN = 4096, /* smallest TRIB_CHUNK */
    WINDOW_GOOD = 2, /* one chunk on the wire while another is summed */
    WINDOW_MAX = 256, /* largest TRIB_WINDOW */
    CODED = 4, /* bytes of a chunk per encoded byte */
};

static bool fits(struct trib_slot_budget w, size_t room, int size)
{
    return trib_arena_pinned(w.window, w.chunk, size) <= room;
}

/* Return the next smaller power of two. A link's slots are a power of two, so other
 * windows save nothing. */
static uint32_t smaller(uint32_t window)
{
    uint32_t w = 1;

    while (2 * w < window)
        w *= 2;
    return w;
}

/* Shrink the window first, which is free while credits return quickly; then the chunks,
 * which costs messages; finally drop the overlap. */
struct trib_slot_budget trib_slot_budget_fit(struct trib_slot_budget asked, size_t room,
                                             int size)
{
    struct trib_slot_budget w = asked;
    size_t half = room / 2; /* the rest is for queues, more communicators, trib_alloc */

    assert(asked.window > 0 && asked.chunk > 0 && size > 0);
    while (!fits(w, half, size) && w.window > WINDOW_GOOD)
        w.window = smaller(w.window);
    while (!fits(w, half, size) && w.chunk > CHUNK_MIN)
        w.chunk = w.chunk / 2 > CHUNK_MIN ? w.chunk / 2 / 64 * 64 : CHUNK_MIN;
    if (!fits(w, half, size))
        w.window = 1;
    return fits(w, room, size) ? w : asked;
}

/* Return the longest chunk between `least` and the asked one with which a link takes at
 * most `bytes`; `least` if none does. */
static size_t longest_chunk(struct trib_slot_budget w, size_t least, size_t bytes)
{
    while (w.chunk > least && trib_link_bytes(w.window, w.chunk, false) > bytes)
        w.chunk = w.chunk - least > CHUNK_MIN ? w.chunk - CHUNK_MIN : least;
    return w.chunk;
}

struct trib_slot_budget trib_slot_budget_many(struct trib_slot_budget usual, int size)
{
    const int peers = (size < TRIB_MANY_RANKS ? size : TRIB_MANY_RANKS) - 1;
    const size_t bytes = TRIB_MANY_SLOTS_MAX / (size_t)(peers > 0 ? peers : 1);
    struct trib_slot_budget w = usual;

    assert(usual.window > 0 && usual.chunk > 0 && size > 0);
    for (;; w.window = smaller(w.window)) {
        const bool last = w.window <= WINDOW_GOOD;
        const size_t least = last ? CHUNK_MIN : TRIB_MANY_CHUNK;
        w.chunk = longest_chunk((struct trib_slot_budget){w.window, usual.chunk},
                                trib_min(least, usual.chunk), bytes);
        if (last || trib_link_bytes(w.window, w.chunk, false) <= bytes)
            return w;
    }
}

bool trib_slot_budget_is_ample(struct trib_slot_budget w, size_t room, int size)
{
    size_t edge = trib_link_bytes(w.window, w.chunk, false);

    assert(size > 0);
    return trib_arena_heads(size) + edge * (size_t)(size - 1) <= room / 2;
}

struct trib_slot_budget trib_slot_budget_far(struct trib_slot_budget usual,
                                             uint32_t round_trip_us, int size)
{
    const uint64_t bytes = (uint64_t)round_trip_us * TRIB_FAR_BYTES_US;
    const size_t edges = size > 1 ? (size_t)(size - 1) : 1;
    struct trib_slot_budget w = usual;

    assert(usual.window > 0 && usual.chunk > 0);
    if (round_trip_us < TRIB_FAR_MIN_US)
        return usual;
    while (2 * w.window <= WINDOW_MAX && w.window * (usual.chunk / CODED) < bytes &&
           trib_link_bytes(2 * w.window, w.chunk, false) <= TRIB_FAR_SLOTS_MAX / edges)
        w.window *= 2;
    return w;
}
