/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slots that a communicator can afford if little memory may be locked, and those
 * that it needs where a round trip takes long.
 */
#ifndef COMM_SLOT_BUDGET_H
#define COMM_SLOT_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Slots of one link in one direction, and their payload in bytes. */
struct trib_slot_budget {
    uint32_t window;
    size_t chunk;
};

/**
 * trib_slot_budget_fit - the largest slots of `size` ranks that leave memory for other
 * uses.
 *
 * room     bytes that each rank can still register; SIZE_MAX: no limit. Slots stay as
 *          asked if they take at most half of it. They also stay if not even the
 *          smallest fit, because registering them then reports the reason
 * returns  the same on all ranks that pass the same
 */
struct trib_slot_budget trib_slot_budget_fit(struct trib_slot_budget asked, size_t room,
                                             int size);

/**
 * trib_slot_budget_is_ample - true if such slots for all links take at most half of the
 * memory.
 *
 * Links may then register their slots at their first use. If memory is scarce, all
 * slots are registered at the start, so that a communicator that begins can go on.
 */
bool trib_slot_budget_is_ample(struct trib_slot_budget w, size_t room, int size);

/**
 * trib_slot_budget_far - the slots of `size` ranks where a round trip takes long.
 *
 * The window grows until code words of a quarter of a chunk fill the link for a round
 * trip, at TRIB_FAR_BYTES_US; chunks stay. All slots of a rank take at most
 * TRIB_FAR_SLOTS_MAX bytes, if it has edges to all others.
 *
 * returns  `usual` up to TRIB_FAR_MIN_US; the same on all ranks that pass the same
 */
struct trib_slot_budget trib_slot_budget_far(struct trib_slot_budget usual,
                                             uint32_t round_trip_us, int size);

#define TRIB_FAR_MIN_US 500 /* round trips from here on are long */
#define TRIB_FAR_BYTES_US 250 /* bytes on the way for each us: 2 Gbit/s */
#define TRIB_FAR_SLOTS_MAX ((size_t)512 << 20)

#endif
