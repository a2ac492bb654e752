/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part of kernels_scalar.h: positions drawn from strata (stratified.h).
 */
#ifndef COMPRESS_KERNELS_KERNELS_SCALAR_STRATIFIED_H
#define COMPRESS_KERNELS_KERNELS_SCALAR_STRATIFIED_H

#include "compress/kernels/kernels_scalar_codec.h"
#include "compress/sparsify/stratified.h"

/* Start of stratum j, and the remainder of j n / k; the next stratum follows by
 * additions. */
struct stratified_cursor {
    uint64_t at;
    uint64_t left;
};

KERNEL struct stratified_cursor stratified_cursor_at(const struct trib_stratified *s,
                                                     size_t j)
{
    const uint64_t jn = (uint64_t)j * s->n;
    return (struct stratified_cursor){jn / s->k, jn % s->k};
}

/* Return the size of the stratum at the cursor, and advance the cursor. */
KERNEL uint64_t stratified_next_size(struct stratified_cursor *c,
                                     const struct trib_stratified *s,
                                     struct stratified_cursor stride)
{
    c->left += stride.left;
    const uint64_t carry = c->left >= s->k, size = stride.at + carry;
    c->left -= carry ? s->k : 0;
    c->at += size;
    return size;
}

KERNEL void stratified_positions_scalar(const struct trib_stratified *s, size_t first,
                                    size_t count, uint32_t *positions_out)
{
    assert(s->k > 0 && s->k <= s->n && s->n <= UINT32_MAX);
    assert(first <= s->k && count <= s->k - first);
    const struct stratified_cursor stride = stratified_cursor_at(s, 1);
    struct stratified_cursor c = stratified_cursor_at(s, first);
    for (size_t i = 0; i < count; i++) {
        uint32_t h = random_hash((uint32_t)(first + i), s->keys);
        const uint64_t at = c.at, size = stratified_next_size(&c, s, stride);
        h ^= h >> 16;
        positions_out[i] = (uint32_t)(at + (h * size >> 32));
    }
}

#endif
