/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a decoded chunk gets into the result: by plain stores, or past the cache.
 *
 * A plain store first fetches the line that it overwrites. A store past the cache does
 * not, but where the line is in a cache, this takes three times as long as a plain
 * store. Nobody says which part of the last-level cache a process has, so both ways are
 * timed while a plan runs. The bits of the result are the same.
 */
#ifndef PIPELINE_PAYLOAD_RESULT_STORE_H
#define PIPELINE_PAYLOAD_RESULT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TRIB_PAST_CACHE_RESULT = 8 << 20, /* bytes of a result, from which both ways are
                                       * timed: shorter ones are in the cache */
    TRIB_PAST_CACHE_CHUNK = 16 << 10, /* bytes of a chunk, from which a store past the
                                       * cache pays for the wait at its end */
};

struct trib_result_store {
    float ns[2]; /* of an element: [0] by plain stores, [1] past the cache; 0: not
                  * known */
    uint32_t chunks;
};

/** trib_result_store_past - true if the next chunk should go past the cache. */
bool trib_result_store_past(struct trib_result_store *s);

/** trib_result_store_took - the time that a chunk of n elements took. */
void trib_result_store_took(struct trib_result_store *s, bool past, size_t n,
                            uint64_t ns);

#endif
