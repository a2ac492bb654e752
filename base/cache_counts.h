/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts of this process's cache of memory registrations, for its state pages
 * (transport/verbs/verbs_cache.h writes them). Each number is consistent by itself.
 */
#ifndef BASE_CACHE_COUNTS_H
#define BASE_CACHE_COUNTS_H

#include <stdatomic.h>
#include <stdint.h>

struct trib_cache_counts {
    _Atomic uint64_t limit; /* bytes that it may pin; 0: it is off */
    _Atomic uint64_t pinned; /* bytes of registered pages */
    _Atomic uint64_t hits; /* uses of memory that was registered before */
    _Atomic uint64_t misses; /* other uses: registered then, or copied through slots */
};

extern struct trib_cache_counts trib_cache_counts;

/** trib_cache_count - add n to a count; _set: set it. */
static inline void trib_cache_count(_Atomic uint64_t *count, uint64_t n)
{
    atomic_fetch_add_explicit(count, n, memory_order_relaxed);
}

static inline void trib_cache_count_set(_Atomic uint64_t *count, uint64_t value)
{
    atomic_store_explicit(count, value, memory_order_relaxed);
}

#endif
