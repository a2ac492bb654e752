/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slot sizes for communicators with little lockable memory or long round trips.
 */
#ifndef COMM_CORE_SLOT_BUDGET_H
#define COMM_CORE_SLOT_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Slots of one link in one direction, and their payload in bytes. */
struct trib_slot_budget {
    uint32_t window;
    size_t chunk;
};

/**
 * trib_slot_budget_fit - return the largest slots of `size` ranks that leave memory for
 * other uses.
 *
 * room     bytes that each rank can still register; SIZE_MAX: no limit. Slots are
 *          unchanged if they take at most half of it. They are also unchanged if even
 *          the smallest do not fit, because registering them then reports the reason
 * returns  equal on all ranks that pass equal arguments
 */
struct trib_slot_budget trib_slot_budget_fit(struct trib_slot_budget asked, size_t room,
                                             int size);

/**
 * trib_slot_budget_many - return the slots of `size` ranks over a network, so that a
 * rank with links to TRIB_MANY_RANKS - 1 others, or to all, registers at most
 * TRIB_MANY_SLOTS_MAX for them.
 *
 * Chunks shrink to TRIB_MANY_CHUNK first, then the window to 2, then chunks again. With
 * so many ranks most algorithms cut vectors into shorter chunks anyway. More ranks than
 * TRIB_MANY_RANKS get the same slots as that number: two of 60 KiB still fill a port of
 * 100 Gbit/s during a round trip of 10 us.
 *
 * returns  `usual` if it fits; equal on all ranks that pass equal arguments
 */
struct trib_slot_budget trib_slot_budget_many(struct trib_slot_budget usual, int size);

#define TRIB_MANY_SLOTS_MAX ((size_t)512 * 1000 * 1000)
#define TRIB_MANY_CHUNK 65536
#define TRIB_MANY_RANKS 1024

/**
 * trib_slot_budget_is_ample - return true if these slots for all links take at most
 * half of the memory.
 *
 * Links may then register their slots on first use. If memory is scarce, all slots are
 * registered at the start, so a communicator that starts can continue.
 */
bool trib_slot_budget_is_ample(struct trib_slot_budget w, size_t room, int size);

/**
 * trib_slot_budget_far - return the slots of `size` ranks when the round trip is long.
 *
 * The window grows until encoded chunks of a quarter of the chunk size fill the link
 * for a round trip, at TRIB_FAR_BYTES_US; the chunk size is unchanged. All slots of a
 * rank take at most TRIB_FAR_SLOTS_MAX bytes if it has links to all others.
 *
 * returns  `usual` up to TRIB_FAR_MIN_US; equal on all ranks that pass equal arguments
 */
struct trib_slot_budget trib_slot_budget_far(struct trib_slot_budget usual,
                                             uint32_t round_trip_us, int size);

#define TRIB_FAR_MIN_US 500 /* round trips from this length on are long */
#define TRIB_FAR_BYTES_US 250 /* bytes in flight per us: 2 Gbit/s */
#define TRIB_FAR_SLOTS_MAX ((size_t)512 << 20)

#endif
