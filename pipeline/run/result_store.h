/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a decoded chunk is written to the result: by plain stores, or past the cache.
 *
 * A plain store first fetches the cache line that it overwrites. A store past the cache
 * does not, but if the line is cached, it takes three times as long as a plain store. A
 * process cannot know its share of the last-level cache, so both kinds are timed while
 * a plan runs. The bits of the result are the same.
 */
#ifndef PIPELINE_RUN_RESULT_STORE_H
#define PIPELINE_RUN_RESULT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TRIB_PAST_CACHE_RESULT = 8 << 20, /* bytes of a result from which on both kinds are
                                       * timed: shorter results are cached */
    TRIB_PAST_CACHE_CHUNK = 16 << 10, /* bytes of a chunk from which on stores past the
                                       * cache outweigh the final fence */
};

struct trib_result_store {
    float ns[2]; /* per element: [0] by plain stores, [1] past the cache; 0: unknown */
    uint32_t chunks;
};

/** trib_result_store_past - return true if the next chunk should be stored past the
 * cache. */
bool trib_result_store_past(struct trib_result_store *s);

/** trib_result_store_took - record the time for a chunk of n elements. */
void trib_result_store_took(struct trib_result_store *s, bool past, size_t n,
                            uint64_t ns);

#endif
