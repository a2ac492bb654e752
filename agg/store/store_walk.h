/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A walk over the elements of a vector, in their order, by one of several threads.
 *
 * A vector has a lock for each stripe of its elements. A walk takes the next one before
 * it lets go of the last, so no walk overtakes another: each sees all that those before
 * it have done, and nothing of those behind it, though they work on one vector at once.
 * Version, clock and all else that is not an element belong to the first stripe: a walk
 * reads and changes them where it begins.
 */
#ifndef AGG_STORE_STORE_WALK_H
#define AGG_STORE_STORE_WALK_H

#include <stdint.h>

struct trib_store_table;
struct vector;

enum { TRIB_STORE_STRIPE = 65536 }; /* elements */

struct trib_store_walk {
    struct vector *v;
    uint64_t low, high; /* stripes that it holds: from low to high - 1 */
    uint64_t began_ns; /* of two walks over a vector, the earlier one is ahead */
};

/** trib_store_stripes - the number of stripes of so many elements, at least 1. */
static inline uint64_t trib_store_stripes(uint64_t count)
{
    return (count - 1) / TRIB_STORE_STRIPE + 1;
}

/** trib_store_walk_begin - wait for the first stripe of a vector, and hold it. */
void trib_store_walk_begin(const struct trib_store_table *table, uint32_t vector,
                           struct trib_store_walk *walk);

/** trib_store_walk_to - hold the elements from `first` to `end` - 1, of which none is
 * before those that it held, and let go of what is before them. */
void trib_store_walk_to(struct trib_store_walk *walk, uint64_t first, uint64_t end);

/** trib_store_walk_end - let go of all. */
void trib_store_walk_end(struct trib_store_walk *walk);

#endif
