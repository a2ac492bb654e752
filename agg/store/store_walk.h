/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A traversal of a vector's elements in order, by one of several threads.
 *
 * A vector has one lock per stripe of elements. A walk takes the next lock before it
 * releases the previous one, so no walk overtakes another. Several threads may thus
 * work on one vector: each walk sees all changes of the walks ahead of it and none of
 * those after it. Version, clock and all other metadata belong to the first stripe: a
 * walk reads and changes them where it begins.
 */
#ifndef AGG_STORE_STORE_WALK_H
#define AGG_STORE_STORE_WALK_H

#include <stdint.h>

struct trib_store_table;
struct trib_store_tick;
struct vector;

enum { TRIB_STORE_STRIPE = 65536 }; /* elements */

struct trib_store_walk {
    struct vector *v;
    uint64_t low, high; /* locked stripes: low to high - 1 */
    uint64_t began_ns; /* of two walks, the earlier is ahead */
    const struct trib_store_tick *tick; /* or NULL */
    uint64_t done; /* elements processed since the last tick */
};

/** trib_store_stripes - return the number of stripes of `count` elements, at least 1.
 */
static inline uint64_t trib_store_stripes(uint64_t count)
{
    return (count - 1) / TRIB_STORE_STRIPE + 1;
}

/** trib_store_walk_begin - wait for the first stripe of a vector and lock it; tick: or
 * NULL. */
void trib_store_walk_begin(const struct trib_store_table *table, uint32_t vector,
                           const struct trib_store_tick *tick,
                           struct trib_store_walk *walk);

/** trib_store_walk_to - lock elements `first` to `end` - 1 and unlock all before them.
 * A walk only moves forward. */
void trib_store_walk_to(struct trib_store_walk *walk, uint64_t first, uint64_t end);

/** trib_store_walk_did - count `n` processed elements, and call the tick about every
 * millisecond of work. */
void trib_store_walk_did(struct trib_store_walk *walk, uint64_t n);

/** trib_store_walk_end - unlock all stripes. */
void trib_store_walk_end(struct trib_store_walk *walk);

#endif
