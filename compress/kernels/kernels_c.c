/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reference table: kernels_scalar.h unchanged. Used on CPUs without a vector table,
 * and as the reference for the vector tables (tests/compress/kernels/check_kernels.c).
 */
#include "compress/kernels/kernels_scalar.h"
#include "compress/kernels/kernels_scalar_codec.h"
#include "compress/kernels/kernels_scalar_shared_scale.h"
#include "compress/kernels/kernels_scalar_quant.h"
#include "compress/kernels/kernels_scalar_select.h"
#include "compress/kernels/kernels_scalar_stratified.h"
#include "compress/kernels/kernels_scalar_factor.h"
#include "compress/kernels/kernels_scalar_feedback.h"
#include "compress/kernels/kernels_scalar_crc.h"
#include "compress/kernels/kernels_scalar_bounded.h"
#include "compress/kernels/kernels_scalar_exact.h"
#include "compress/kernels/kernels_scalar_gemm.h"
#include "compress/kernels/kernels_scalar_grid.h"
#include "compress/kernels/kernels_scalar_hadamard.h"
#include "compress/kernels/kernels_scalar_located.h"
#include "compress/kernels/kernels_scalar_numbers.h"

/* clang-format off */
#define REDUCE_FLOAT(op, type) \
    static void op##_##type(const struct trib_reduce_args *r) \
    { reduce_float(r, op##_float, load_##type, save_##type); }
#define REDUCE_DOUBLE(op) \
    static void op##_f64(const struct trib_reduce_args *r) \
    { reduce_double(r, op##_double); }
#define REDUCE_INT(op, type) \
    static void op##_##type(const struct trib_reduce_args *r) \
    { reduce_int(r, op##_int, format_##type); }
#define OPERATORS(kind, type) \
    kind(add, type) kind(min, type) kind(max, type) kind(mul, type)

OPERATORS(REDUCE_FLOAT, f32)
OPERATORS(REDUCE_FLOAT, f16)
OPERATORS(REDUCE_FLOAT, bf16)
REDUCE_DOUBLE(add) REDUCE_DOUBLE(min) REDUCE_DOUBLE(max) REDUCE_DOUBLE(mul)
OPERATORS(REDUCE_FLOAT, f8_e4m3)
OPERATORS(REDUCE_FLOAT, f8_e5m2)
OPERATORS(REDUCE_INT, i8)
OPERATORS(REDUCE_INT, i16)
OPERATORS(REDUCE_INT, i32)
OPERATORS(REDUCE_INT, i64)
#define REDUCE_UNSIGNED(type) \
    REDUCE_INT(add, type) REDUCE_INT(min, type) REDUCE_INT(max, type)
#define REDUCE_BITS(type) \
    REDUCE_INT(and, type) REDUCE_INT(or, type) REDUCE_INT(xor, type)
REDUCE_UNSIGNED(u8)
REDUCE_UNSIGNED(u16)
REDUCE_UNSIGNED(u32)
REDUCE_INT(add, u64)
static void min_u64(const struct trib_reduce_args *r)
{ reduce_int(r, min_unsigned, format_u64); }
static void max_u64(const struct trib_reduce_args *r)
{ reduce_int(r, max_unsigned, format_u64); }
REDUCE_BITS(u8)
REDUCE_BITS(u16)
REDUCE_BITS(u32)
REDUCE_BITS(u64)
REDUCE_BITS(truth8)
REDUCE_BITS(truth16)
REDUCE_BITS(truth32)
REDUCE_BITS(truth64)

/* Some scalar loops accept the index of their first element, or a format: here they
 * start at element 0. */
#define AXPY(type) \
    static void axpy_##type##_scalar(float *acc, const void *src, float weight, \
                                     size_t n) \
    { axpy_scalar(acc, src, weight, n, load_##type); }
#define ENCODE(name, input, args) \
    static void name##_scalar(uint8_t *codes, input *x, size_t n, \
                              const struct args *a) \
    { name##_scalar_from(codes, x, n, 0, a); }
#define HALF_RANDOM(type) \
    static void type##_random_scalar(void *dst, const float *src, size_t n, \
                                     const uint32_t key[2]) \
    { half_random_scalar_from(dst, src, n, 0, key, narrow_##type); }

AXPY(f32)
AXPY(f16)
AXPY(bf16)
ENCODE(qsgd_encode, const float, trib_qsgd_args)
ENCODE(natural_encode, const float, trib_natural_args)
ENCODE(dither_encode, const float, trib_dither_args)
ENCODE(f8_encode, const float, trib_f8)
ENCODE(grid_encode, const float, trib_grid)
ENCODE(shared_scale_encode, const float, trib_shared_scale_args)
ENCODE(shared_scale_encode_u16, const float, trib_shared_scale_args)
ENCODE(shared_scale_keep, float, trib_shared_scale_args)
ENCODE(shared_scale_keep_u16, float, trib_shared_scale_args)
HALF_RANDOM(f16)
HALF_RANDOM(bf16)
/* clang-format on */

static void copy_stream_scalar(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

static size_t select_ahead_scalar(const float *g, const float *d, size_t n,
                                  const struct trib_ahead *a, uint32_t *positions_out)
{
    return select_ahead_scalar_from(g, d, 0, n, a, positions_out);
}

static void packed_ints_sum_u8_scalar(uint8_t *sum,
                                      const struct trib_packed_ints_sum *s)
{
    packed_ints_sum_u8_scalar_from(sum, s, 0);
}

static void bits_pack_scalar(uint8_t *dst, uint8_t *codes, size_t n, int bits)
{
    assert(bits >= 1 && bits <= 8);
    trib_bits_pack(dst, codes, n, bits, 0);
}

static void bits_unpack_scalar(uint8_t *codes, const uint8_t *src, size_t n, int bits)
{
    assert(bits >= 1 && bits <= 8);
    trib_bits_unpack(codes, src, n, bits, 0);
}

#define VEC_ISA "c"
#define VEC_TABLE trib_kernels_c
#define KERNEL_OF(name) name##_scalar
#include "compress/kernels/kernels_table.h"
