/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Token bucket, stored as the time until which tokens are used up; 0 is a full bucket.
 * For one thread.
 */
#ifndef BASE_TOKEN_BUCKET_H
#define BASE_TOKEN_BUCKET_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/** trib_token_bucket_take - take a token; false: none before *used_until_ns +
 * each_ns. */
static inline bool trib_token_bucket_take(uint64_t *used_until_ns, uint64_t now_ns,
                                  uint64_t each_ns, uint64_t at_once)
{
    assert(each_ns > 0 && at_once > 0);
    if (now_ns - *used_until_ns > at_once * each_ns)
        *used_until_ns = now_ns - at_once * each_ns;
    if (now_ns - *used_until_ns < each_ns)
        return false;
    *used_until_ns += each_ns;
    return true;
}

#endif
