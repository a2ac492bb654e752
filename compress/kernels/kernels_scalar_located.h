/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MINLOC and MAXLOC: pairs of a value and an index of the same width. All instruction
 * sets use these loops.
 */
#ifndef COMPRESS_KERNELS_KERNELS_SCALAR_LOCATED_H
#define COMPRESS_KERNELS_KERNELS_SCALAR_LOCATED_H

#include <string.h>

#include "compress/kernels/kernels_scalar.h"

/* Comparison of the values of a dtype. */
struct located_format {
    size_t bytes; /* of a value, and of an index */
    /* unsigned number that orders like the values; equal for 0 and -0 */
    uint64_t (*key)(uint64_t bits);
    bool (*is_nan)(uint64_t bits); /* NULL: no NaN */
};

/* A pair, with a key in the operator's order: the smallest key wins. */
struct located {
    uint64_t key;
    int64_t index;
    uint64_t bits; /* of the value */
};

static inline uint64_t located_key_f32(uint64_t bits)
{
    const uint32_t b = bits == 0x80000000u ? 0 : (uint32_t)bits;

    return b >> 31 ? (uint32_t)~b : b | 0x80000000u;
}

static inline uint64_t located_key_f64(uint64_t bits)
{
    const uint64_t top = UINT64_C(1) << 63, b = bits == top ? 0 : bits;

    return b >> 63 ? ~b : b | top;
}

static inline uint64_t located_key_i32(uint64_t bits)
{
    return (uint32_t)bits ^ 0x80000000u;
}

static inline uint64_t located_key_i64(uint64_t bits)
{
    return bits ^ UINT64_C(1) << 63;
}

static inline uint64_t located_key_unsigned(uint64_t bits)
{
    return bits;
}

static inline bool located_nan_f32(uint64_t bits)
{
    return (bits & 0x7fffffffu) > 0x7f800000u;
}

static inline bool located_nan_f64(uint64_t bits)
{
    return (bits & INT64_MAX) > UINT64_C(0x7ff0000000000000);
}

static const struct located_format located_f32 = {4, located_key_f32, located_nan_f32};
static const struct located_format located_f64 = {8, located_key_f64, located_nan_f64};
static const struct located_format located_i32 = {4, located_key_i32, NULL};
static const struct located_format located_i64 = {8, located_key_i64, NULL};
static const struct located_format located_u32 = {4, located_key_unsigned, NULL};
static const struct located_format located_u64 = {8, located_key_unsigned, NULL};

KERNEL struct located located_load(const struct located_format f, const char *pair,
                                   bool largest)
{
    struct located l = {.bits = 0};
    uint64_t index = 0;

    memcpy(&l.bits, pair, f.bytes); /* little-endian */
    memcpy(&index, pair + f.bytes, f.bytes);
    l.index = f.bytes == 4 ? (int32_t)(uint32_t)index : (int64_t)index;
    l.key = largest ? ~f.key(l.bits) : f.key(l.bits);
    if (f.is_nan && f.is_nan(l.bits))
        l.key = 0;
    return l;
}

/* The bits break ties, so the result does not depend on the order of the ranks. */
KERNEL bool located_before(struct located a, struct located b)
{
    if (a.key != b.key)
        return a.key < b.key;
    return a.index != b.index ? a.index < b.index : a.bits < b.bits;
}

KERNEL void reduce_located(const struct trib_reduce_args *r,
                           const struct located_format f, bool largest)
{
    assert(reduce_is_valid(r) && !r->ranks && !r->weight);
    for (size_t at = 0; at < r->n / 2 * 2 * f.bytes; at += 2 * f.bytes) {
        struct located first = located_load(f, (const char *)r->src[0] + at, largest);
        for (int k = 1; k < r->n_src; k++) {
            const struct located l =
                located_load(f, (const char *)r->src[k] + at, largest);
            if (located_before(l, first))
                first = l;
        }
        for (int j = 0; j < r->n_dst; j++) {
            memcpy((char *)r->dst[j] + at, &first.bits, f.bytes);
            memcpy((char *)r->dst[j] + at + f.bytes, &first.index, f.bytes);
        }
    }
}

/* clang-format off */
#define REDUCE_LOCATED(type) \
    static void minloc_##type(const struct trib_reduce_args *r) \
    { reduce_located(r, located_##type, false); } \
    static void maxloc_##type(const struct trib_reduce_args *r) \
    { reduce_located(r, located_##type, true); }

REDUCE_LOCATED(f32) REDUCE_LOCATED(f64) REDUCE_LOCATED(i32)
REDUCE_LOCATED(i64) REDUCE_LOCATED(u32) REDUCE_LOCATED(u64)
/* clang-format on */

#endif
