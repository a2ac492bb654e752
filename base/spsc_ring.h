/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of fixed-size records from one producer to one consumer, in memory that both
 * map: threads of one process or two processes. No pointers inside, no locks.
 *
 *     shared   | tail (producer's) | head (consumer's) | record 0 | record 1 | …
 *                line 0              line 1              line 2 …
 *
 * Records [head, tail) are full. Both counters only grow (modulo 2^32); the record of
 * counter c is c & mask. Each side keeps a private copy of the other's counter and
 * reads the shared one only when the copy says full or empty, so that a cache line
 * changes owner once per batch, not per record.
 *
 * Ordering. The store-release of tail in trib_ring_commit pairs with the load-acquire
 * in trib_ring_peek: the record's bytes are visible before the counter that announces
 * them. The store-release of head in trib_ring_release pairs with the load-acquire in
 * trib_ring_reserve: the consumer has read a record before the producer overwrites it.
 *
 * A peer's memory is not trusted: size and mask are private to each side, so a wild
 * counter can cost records, never an access outside the ring.
 */
#ifndef BASE_SPSC_RING_H
#define BASE_SPSC_RING_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cpu.h"

struct trib_ring_shared {
    _Alignas(TRIB_CACHE_LINE) _Atomic uint32_t tail;
    _Alignas(TRIB_CACHE_LINE) _Atomic uint32_t head;
    _Alignas(TRIB_CACHE_LINE) char records[];
};

/* One side's view; private to that side's thread. */
struct trib_ring {
    struct trib_ring_shared *shared;
    uint32_t mine;   /* own counter: the producer's tail, the consumer's head */
    uint32_t theirs; /* the other's, as last seen */
    uint32_t mask;   /* records - 1 */
    uint32_t stride; /* bytes of a record */
};

/** trib_ring_bytes - shared memory that n records (a power of two) of `stride` need. */
static inline size_t trib_ring_bytes(uint32_t n, uint32_t stride)
{
    return sizeof(struct trib_ring_shared) + (size_t)n * stride;
}

/** trib_ring_format - make memory an empty ring; one side, before either attaches. */
static inline void trib_ring_format(void *memory)
{
    struct trib_ring_shared *shared = memory;

    assert((uintptr_t)memory % TRIB_CACHE_LINE == 0);
    atomic_store_explicit(&shared->tail, 0, memory_order_relaxed);
    atomic_store_explicit(&shared->head, 0, memory_order_release);
}

/** trib_ring_attach - become one side of a formatted ring; both give the same n,
 * stride. */
static inline void trib_ring_attach(struct trib_ring *ring, void *memory, uint32_t n,
                                    uint32_t stride)
{
    assert(n && (n & (n - 1)) == 0 && stride);
    *ring = (struct trib_ring){.shared = memory, .mask = n - 1, .stride = stride};
}

static inline void *trib_ring_record(const struct trib_ring *ring, uint32_t counter)
{
    return ring->shared->records + (size_t)(counter & ring->mask) * ring->stride;
}

/** trib_ring_reserve - producer: the next record to fill; NULL if the ring is full. */
static inline void *trib_ring_reserve(struct trib_ring *ring)
{
    if (ring->mine - ring->theirs > ring->mask) {
        ring->theirs = atomic_load_explicit(&ring->shared->head, memory_order_acquire);
        if (ring->mine - ring->theirs > ring->mask)
            return NULL;
    }
    return trib_ring_record(ring, ring->mine);
}

/** trib_ring_commit - producer: the reserved record is filled; the consumer sees it. */
static inline void trib_ring_commit(struct trib_ring *ring)
{
    atomic_store_explicit(&ring->shared->tail, ++ring->mine, memory_order_release);
}

/** trib_ring_peek - consumer: the oldest record, in place; NULL if the ring is
 * empty. */
static inline const void *trib_ring_peek(struct trib_ring *ring)
{
    if (ring->mine == ring->theirs) {
        ring->theirs = atomic_load_explicit(&ring->shared->tail, memory_order_acquire);
        if (ring->mine == ring->theirs)
            return NULL;
    }
    return trib_ring_record(ring, ring->mine);
}

/** trib_ring_release - consumer: done with the peeked record; it may be overwritten. */
static inline void trib_ring_release(struct trib_ring *ring)
{
    atomic_store_explicit(&ring->shared->head, ++ring->mine, memory_order_release);
}

#endif
