/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/slot_budget.h"

#include <assert.h>

#include "pipeline/link/link.h"

enum {
    CHUNK_MIN = 4096, /* smallest TRIB_CHUNK */
    WINDOW_GOOD = 2, /* one chunk on the wire while another is summed */
};

static bool fits(struct trib_slot_budget w, size_t room, int size)
{
    return trib_arena_pinned(w.window, w.chunk, size) <= room;
}

/* The next smaller power of two: a link has a power of two of slots, so other windows
 * save nothing. */
static uint32_t smaller(uint32_t window)
{
    uint32_t w = 1;

    while (2 * w < window)
        w *= 2;
    return w;
}

/* Shrink the window first, which costs nothing while credits return quickly; then the
 * chunks, which costs messages; at last give up the overlap. */
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

bool trib_slot_budget_is_ample(struct trib_slot_budget w, size_t room, int size)
{
    size_t edge = trib_link_bytes(w.window, w.chunk, false);

    assert(size > 0);
    return trib_arena_heads(size) + edge * (size_t)(size - 1) <= room / 2;
}
