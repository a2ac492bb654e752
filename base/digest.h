/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Digests of texts and structs that ranks compare; not for secrets.
 */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include <xxhash.h>

/** trib_digest - return 64 bits; equal on all machines of the same byte order. */
static inline uint64_t trib_digest(const void *bytes, size_t len)
{
    return XXH3_64bits(bytes, len);
}

/** trib_digest_seeded - chain digests: seed with the previous one. */
static inline uint64_t trib_digest_seeded(const void *bytes, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, len, seed);
}

/** trib_digest32 - return the lower half, for frames with room for 32 bits only. */
static inline uint32_t trib_digest32(const void *bytes, size_t len)
{
    return (uint32_t)trib_digest(bytes, len);
}

#endif
