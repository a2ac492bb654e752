/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part of kernels_scalar.h: the randomised Hadamard transform of one block.
 */
#ifndef COMPRESS_KERNELS_KERNELS_SCALAR_HADAMARD_H
#define COMPRESS_KERNELS_KERNELS_SCALAR_HADAMARD_H

#include "compress/kernels/kernels_scalar_codec.h"

enum { HADAMARD_WORDS = (1 << TRIB_HADAMARD_LOG2_MAX) / 32 };

/* 32 signs, for the elements from 32 * c */
KERNEL uint32_t hadamard_hash(uint32_t c, const uint32_t key[2])
{
    const uint32_t h = random_hash(c, key);
    return h ^ h >> 16;
}

/* Bit i % 32 of words_out[i / 32] is set if element i of the block has a minus. */
KERNEL void hadamard_signs(const struct trib_hadamard *h,
                           uint32_t words_out[HADAMARD_WORDS])
{
    const size_t n = (size_t)1 << h->log2_n;
    const int shift = (int)(h->first % 32);
    uint32_t c = (uint32_t)(h->first / 32), word = hadamard_hash(c, h->key);
    for (size_t i = 0; i < n; i += 32) {
        const uint32_t next = hadamard_hash(++c, h->key);
        words_out[i / 32] = (uint32_t)(((uint64_t)next << 32 | word) >> shift);
        word = next;
    }
}

KERNEL float hadamard_signed(float v, const uint32_t *words, size_t i)
{
    return float_of(bits_of(v) ^ words[i / 32] >> (i % 32) << 31);
}

KERNEL void hadamard_scalar(float *z, const float *y, const struct trib_hadamard *h)
{
    assert(h->log2_n >= 0 && h->log2_n <= TRIB_HADAMARD_LOG2_MAX);
    const size_t n = (size_t)1 << h->log2_n;
    uint32_t words[HADAMARD_WORDS];
    hadamard_signs(h, words);
    for (size_t i = 0; i < n; i++)
        z[i] = h->inverse ? y[i] : hadamard_signed(y[i], words, i);
    for (size_t far = n / 2; far; far /= 2) {
        for (size_t i = 0; i < n; i++) {
            if (i & far)
                continue;
            const float a = z[i], b = z[i + far];
            z[i] = a + b;
            z[i + far] = a - b;
        }
    }
    for (size_t i = 0; i < n; i++) {
        const float v = z[i] * h->scale;
        z[i] = h->inverse ? hadamard_signed(v, words, i) : v;
    }
}

#endif
