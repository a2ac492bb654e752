/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels of encodings with an error bound (bounded.h). Plain C: the compiler
 * vectorises most loops for each table. Bit planes have vector versions
 * (kernels_vec_bounded.h).
 */
#ifndef COMPRESS_KERNELS_KERNELS_SCALAR_BOUNDED_H
#define COMPRESS_KERNELS_KERNELS_SCALAR_BOUNDED_H

#include "compress/kernels/kernels_scalar.h"
#include "compress/quantise/bounded.h"

enum { BOUNDED_BLOCK = TRIB_BOUNDED_BLOCK };

/* Adding this leaves the integer of a number below 2^51 in the low bits of the sum. */
#define BOUNDED_ROUND 0x1.8p52

/* Call fn(i, count) for whole blocks, with a constant count, then for the rest. */
#define BOUNDED_BLOCKS(n, fn) \
    do { \
        size_t i = 0; \
        for (; i + BOUNDED_BLOCK <= (n); i += BOUNDED_BLOCK) \
            fn(i, BOUNDED_BLOCK); \
        fn(i, (n) - i); \
    } while (0)

KERNEL int32_t bounded_quantise_some(int32_t *restrict q, const float *restrict x,
                                     size_t n, const struct trib_bounded_grid *g)
{
    const int32_t largest = (int32_t)bits_of(g->largest);
    const double per_step = g->per_step;
    int32_t beyond = 0;
    double sum[BOUNDED_BLOCK];
    for (size_t i = 0; i < n; i++) {
        int32_t b;
        memcpy(&b, x + i, sizeof b);
        beyond |= largest - (b & INT32_MAX);
    }
    for (size_t i = 0; i < n; i++)
        sum[i] = (double)x[i] * per_step + BOUNDED_ROUND;
    for (size_t i = 0; i < n; i++) {
        int64_t b;
        memcpy(&b, sum + i, sizeof b);
        q[i] = (int32_t)b;
    }
    return beyond;
}

static bool bounded_quantise(int32_t *q, const float *x, size_t n,
                             const struct trib_bounded_grid *g)
{
    int32_t beyond = 0;

    assert(g->per_step > 0 && g->largest >= 0);
#define SOME(i, count) beyond |= bounded_quantise_some(q + (i), x + (i), count, g)
    BOUNDED_BLOCKS(n, SOME);
#undef SOME
    return beyond >= 0;
}

KERNEL void bounded_values_some(float *restrict x, const int32_t *restrict q, size_t n,
                                double step)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((double)q[i] * step);
}

static void bounded_values(float *x, const int32_t *q, size_t n, double step)
{
#define SOME(i, count) bounded_values_some(x + (i), q + (i), count, step)
    BOUNDED_BLOCKS(n, SOME);
#undef SOME
}

KERNEL void bounded_values_add_some(float *restrict acc, const int32_t *restrict q,
                                    size_t n, double step, float weight)
{
    for (size_t i = 0; i < n; i++)
        acc[i] += weight * (float)((double)q[i] * step);
}

static void bounded_values_add(float *acc, const int32_t *q, size_t n, double step,
                               float weight)
{
#define SOME(i, count) bounded_values_add_some(acc + (i), q + (i), count, step, weight)
    BOUNDED_BLOCKS(n, SOME);
#undef SOME
}

KERNEL int32_t bounded_sum_some(int32_t *restrict sum, const int32_t *restrict q,
                                size_t n)
{
    int32_t beyond = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t a = (uint32_t)sum[i], b = (uint32_t)q[i], s = a + b;
        beyond |= (int32_t)((a ^ s) & (b ^ s));
        sum[i] = (int32_t)s;
    }
    return beyond;
}

static bool bounded_sum(int32_t *sum, const int32_t *q, size_t n)
{
    int32_t beyond = 0;
#define SOME(i, count) beyond |= bounded_sum_some(sum + (i), q + (i), count)
    BOUNDED_BLOCKS(n, SOME);
#undef SOME
    return beyond >= 0;
}

/* Return the head for differences from least to most. */
KERNEL unsigned bounded_head(int32_t least, int32_t most)
{
    const uint32_t range = (uint32_t)most - (uint32_t)least;
    const unsigned w = range ? 32 - (unsigned)__builtin_clz(range) : 0;
    if (least >= -8 && least <= 7 && w <= 3)
        return ((unsigned)(least + 8) << 2) | w;
    const uint32_t beyond =
        (uint32_t)(least ^ least >> 31) | (uint32_t)(most ^ most >> 31);
    const unsigned centred = beyond ? 33 - (unsigned)__builtin_clz(beyond) : 1;
    return w + 1 < centred ? TRIB_BOUNDED_BASES + w
                           : TRIB_BOUNDED_CENTRED - 1 + centred;
}

/* Return the base of a head that does not store it with the codes. */
KERNEL uint32_t bounded_base(unsigned head)
{
    return head < TRIB_BOUNDED_BASES
               ? (head >> 2) - 8
               : -(UINT32_C(1) << (head - TRIB_BOUNDED_CENTRED));
}

/* Encode the differences of a block and return the end of the codes. plane() extracts
 * bit k of all codes. */
KERNEL uint8_t *bounded_block_pack(uint8_t *dst, const int32_t *d, uint8_t *head_out,
                                   uint32_t (*plane)(const uint32_t *codes, unsigned k))
{
    uint32_t codes[BOUNDED_BLOCK];
    int32_t least = d[0], most = d[0];
    for (size_t i = 0; i < BOUNDED_BLOCK; i++) {
        least = d[i] < least ? d[i] : least;
        most = d[i] > most ? d[i] : most;
    }
    const unsigned head = bounded_head(least, most);
    const bool based = head >= TRIB_BOUNDED_BASES && head < TRIB_BOUNDED_CENTRED;
    const uint32_t base = based ? (uint32_t)least : bounded_base(head);
    const unsigned width = trib_bounded_words(head) - based;
    *head_out = (uint8_t)head;
    if (based) {
        memcpy(dst, &base, sizeof base);
        dst += sizeof base;
    }
    for (size_t i = 0; i < BOUNDED_BLOCK; i++)
        codes[i] = (uint32_t)d[i] - base;
    for (unsigned k = 0; k < width; k++) {
        const uint32_t bits = plane(codes, k);
        memcpy(dst, &bits, sizeof bits);
        dst += sizeof bits;
    }
    return dst;
}

KERNEL size_t bounded_pack_by(uint8_t *codes, uint8_t *heads, const int32_t *d,
                              size_t blocks,
                              uint32_t (*plane)(const uint32_t *codes, unsigned k))
{
    uint8_t *at = codes;
    for (size_t b = 0; b < blocks; b++)
        at = bounded_block_pack(at, d + b * BOUNDED_BLOCK, heads + b, plane);
    return (size_t)(at - codes);
}

KERNEL uint32_t bounded_plane(const uint32_t *codes, unsigned k)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < BOUNDED_BLOCK; i++)
        bits |= (codes[i] >> k & 1) << i;
    return bits;
}

KERNEL size_t bounded_pack_scalar(uint8_t *codes, uint8_t *heads, const int32_t *d,
                                  size_t blocks)
{
    return bounded_pack_by(codes, heads, d, blocks, bounded_plane);
}

/* d[i] = q[i] - q[i - 1] for n integers, where q[-1] exists. Return 0 if all q are
 * 0. */
KERNEL int32_t bounded_differences_some(int32_t *restrict d, const int32_t *restrict q,
                                        size_t n)
{
    int32_t any = 0;
    for (size_t i = 0; i < n; i++) {
        d[i] = (int32_t)((uint32_t)q[i] - (uint32_t)q[(ptrdiff_t)i - 1]);
        any |= q[i];
    }
    return any;
}

static bool bounded_differences(int32_t *d, const int32_t *q, size_t n)
{
    int32_t any = q[0];

    assert(n > 0);
#define SOME(i, count) any |= bounded_differences_some(d + 1 + (i), q + 1 + (i), count)
    BOUNDED_BLOCKS(n - 1, SOME);
#undef SOME
    d[0] = n > 1 ? d[1] : 0;
    return any;
}

/* Decode the differences of a block; return the end of its codes. */
KERNEL const uint8_t *bounded_block_unpack(uint32_t *d, unsigned head,
                                           const uint8_t *codes)
{
    assert(head < TRIB_BOUNDED_HEADS);
    unsigned width = trib_bounded_words(head);
    uint32_t base, bits;
    if (head >= TRIB_BOUNDED_BASES && head < TRIB_BOUNDED_CENTRED) {
        memcpy(&base, codes, sizeof base);
        codes += sizeof base;
        width--;
    } else {
        base = bounded_base(head);
    }
    for (size_t i = 0; i < BOUNDED_BLOCK; i++)
        d[i] = base;
    for (unsigned k = 0; k < width; k++, codes += sizeof bits) {
        memcpy(&bits, codes, sizeof bits);
        for (uint32_t i = 0; i < BOUNDED_BLOCK; i++)
            d[i] += (bits >> i & 1) << k;
    }
    return codes;
}

KERNEL void bounded_unpack_scalar(int32_t *q, const uint8_t *heads,
                                  const uint8_t *codes, size_t blocks, uint32_t before)
{
    uint32_t d[BOUNDED_BLOCK];
    for (size_t b = 0; b < blocks; b++) {
        codes = bounded_block_unpack(d, heads[b], codes);
        for (size_t i = 0; i < BOUNDED_BLOCK; i++)
            q[b * BOUNDED_BLOCK + i] = (int32_t)(before += d[i]);
    }
}

#endif
