/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/transform/hadamard.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"

/* A stream that belongs to no rank. */
enum { SHARED_STREAM = INT32_MAX };

struct trib_rht trib_rht_create(uint64_t seed, uint32_t step, uint64_t first,
                                int log2_block)
{
    const struct trib_rng rng = {seed, SHARED_STREAM, step};
    const struct trib_rng_block r = trib_rng_draw4(rng, 0);
    assert(log2_block >= 0 && log2_block <= TRIB_HADAMARD_LOG2_MAX);
    return (struct trib_rht){.first = first,
                             .key = {r.word[0], r.word[1]},
                             .last_key = {r.word[2], r.word[3]},
                             .log2_block = log2_block};
}

/* Parameters of the first block, for vectors of n elements; n >= 1. */
static struct trib_hadamard block_of(const struct trib_rht *t, size_t n)
{
    struct trib_hadamard h = {.first = t->first, .log2_n = t->log2_block};
    while (n >> h.log2_n == 0)
        h.log2_n--;
    h.scale = (float)(1 / sqrt((double)((size_t)1 << h.log2_n)));
    memcpy(h.key, t->key, sizeof h.key);
    return h;
}

/* The block that covers the end of the vector, if whole blocks leave a remainder. */
static struct trib_hadamard last_of(const struct trib_rht *t, struct trib_hadamard h,
                                    size_t n)
{
    h.first = t->first + n - ((size_t)1 << h.log2_n);
    memcpy(h.key, t->last_key, sizeof h.key);
    return h;
}

void trib_rht_forward(const struct trib_kernels *k, const struct trib_rht *t, float *z,
                      const float *y, size_t n)
{
    if (!n)
        return;
    struct trib_hadamard h = block_of(t, n);
    const size_t block = (size_t)1 << h.log2_n, whole = n / block * block;
    for (size_t i = 0; i < whole; i += block) {
        h.first = t->first + i;
        k->hadamard(z + i, y + i, &h);
    }
    if (whole == n)
        return;
    const struct trib_hadamard last = last_of(t, h, n);
    memmove(z + whole, y + whole, (n - whole) * sizeof *z);
    k->hadamard(z + n - block, z + n - block, &last);
}

void trib_rht_inverse(const struct trib_kernels *k, const struct trib_rht *t, float *z,
                      const float *y, size_t n)
{
    if (!n)
        return;
    struct trib_hadamard h = block_of(t, n);
    h.inverse = true;
    const size_t block = (size_t)1 << h.log2_n, whole = n / block * block;
    size_t apart = whole; /* elements before this are still in y */
    if (whole < n) {
        const struct trib_hadamard last = last_of(t, h, n);
        apart = whole - block;
        memmove(z + apart, y + apart, (n - block - apart) * sizeof *z);
        k->hadamard(z + n - block, y + n - block, &last);
    }
    for (size_t i = 0; i < whole; i += block) {
        h.first = t->first + i;
        k->hadamard(z + i, (i < apart ? y : z) + i, &h);
    }
}
