/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels written once in terms of a vec (vec128.h, vec256.h, vec512.h) and made into a
 * table by kernels_neon.c, kernels_avx2.c and kernels_avx512.c. Same results as
 * kernels_scalar.h, bit for bit. Included once, after the vec; so are the other
 * kernels_vec_*.h.
 */
#include "compress/kernels/kernels_scalar.h"
#include "compress/kernels/kernels_scalar_codec.h"
#include "compress/kernels/kernels_scalar_shared_scale.h"
#include "compress/kernels/kernels_scalar_quant.h"
#include "compress/kernels/kernels_scalar_select.h"
#if defined(__x86_64__)
#include "compress/kernels/kernels_x86_crc.h"
#else
#include "compress/kernels/kernels_scalar_crc.h"
#endif
#include "compress/kernels/kernels_scalar_exact.h"
#include "compress/kernels/kernels_scalar_gemm.h"
#include "compress/kernels/kernels_scalar_grid.h"
#include "compress/kernels/kernels_scalar_hadamard.h"
#include "compress/kernels/kernels_scalar_numbers.h"
#include "compress/kernels/kernels_tables.h"

#include "compress/kernels/kernels_vec_reduce.h"

/* ---- conversions -------------------------------------------------------------- */

KERNEL void widen(float *dst, const void *src, size_t n, const struct vec_format f)
{
    const char *s = src;
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        v_store(dst + i, f.load(s + i * f.bytes));
    for (; i < n; i++)
        v_store1_4(dst + i, f.load1(s + i * f.bytes));
}

KERNEL void narrow(void *dst, const float *src, size_t n, const struct vec_format f)
{
    char *d = dst;
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        f.store(d + i * f.bytes, v_load(src + i));
    for (; i < n; i++)
        f.store1(d + i * f.bytes, v_load1_4(src + i));
}

static void to_f32_f16(float *dst, const void *src, size_t n)
{
    widen(dst, src, n, vec_f16);
}

static void to_f32_bf16(float *dst, const void *src, size_t n)
{
    widen(dst, src, n, vec_bf16);
}

static void from_f32_f16(void *dst, const float *src, size_t n)
{
    narrow(dst, src, n, vec_f16);
}

static void from_f32_bf16(void *dst, const float *src, size_t n)
{
    narrow(dst, src, n, vec_bf16);
}

KERNEL void axpy(float *acc, const void *src, float weight, size_t n,
                 const struct vec_format f)
{
    const char *s = src;
    const vec w = v_set_f32(weight);
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        v_store(acc + i,
                v_add_f32(v_load(acc + i), v_mul_f32(w, f.load(s + i * f.bytes))));
    for (; i < n; i++)
        v_store1_4(acc + i, v_add_f32(v_load1_4(acc + i),
                                      v_mul_f32(w, f.load1(s + i * f.bytes))));
}

static void axpy_f32(float *acc, const void *src, float weight, size_t n)
{
    axpy(acc, src, weight, n, vec_f32);
}

static void axpy_f16(float *acc, const void *src, float weight, size_t n)
{
    axpy(acc, src, weight, n, vec_f16);
}

static void axpy_bf16(float *acc, const void *src, float weight, size_t n)
{
    axpy(acc, src, weight, n, vec_bf16);
}

static void copy_stream(void *dst, const void *src, size_t bytes)
{
    char *d = dst;
    const char *s = src;
    if (bytes < STREAM_MIN_BYTES) {
        memcpy(d, s, bytes);
        return;
    }
    size_t at = head_bytes(d, 64);
    memcpy(d, s, at);
    for (; at + 128 <= bytes; at += 128) {
        vec v[128 / VEC_BYTES];
        for (int u = 0; u < 128 / VEC_BYTES; u++)
            v[u] = v_load(s + at + u * VEC_BYTES);
        for (int u = 0; u < 128 / VEC_BYTES; u++)
            v_stream(d + at + u * VEC_BYTES, v[u]);
    }
    memcpy(d + at, s + at, bytes - at);
    v_fence();
}

#include "compress/kernels/kernels_vec_codec.h"
#include "compress/kernels/kernels_vec_shared_scale.h"
#include "compress/kernels/kernels_vec_select.h"
#include "compress/kernels/kernels_vec_feedback.h"
#include "compress/kernels/kernels_vec_quant.h"
#include "compress/kernels/kernels_vec_gemm.h"
#include "compress/kernels/kernels_vec_grid.h"
#include "compress/kernels/kernels_vec_hadamard.h"
#include "compress/kernels/kernels_vec_stratified.h"

const struct trib_kernels VEC_TABLE = {
    .isa = VEC_ISA,
    .reduce =
        {
            [TRIB_F32] = {add_f32, add_f32, min_f32, max_f32, mul_f32},
            [TRIB_F64] = {add_f64, add_f64, min_f64, max_f64, mul_f64},
            [TRIB_F16] = {add_f16, add_f16, min_f16, max_f16, mul_f16},
            [TRIB_BF16] = {add_bf16, add_bf16, min_bf16, max_bf16, mul_bf16},
            [TRIB_I8] = {add_i8, add_i8, min_i8, max_i8, mul_i8},
            [TRIB_I32] = {add_i32, add_i32, min_i32, max_i32, mul_i32},
            [TRIB_I64] = {add_i64, add_i64, min_i64, max_i64, mul_i64},
        },
    .to_f32 = {to_f32_scalar_f32, to_f32_scalar_f64, to_f32_f16, to_f32_bf16,
               to_f32_scalar_i8, to_f32_scalar_i32, to_f32_scalar_i64},
    .from_f32 = {from_f32_scalar_f32, from_f32_scalar_f64, from_f32_f16, from_f32_bf16,
                 from_f32_scalar_i8, from_f32_scalar_i32, from_f32_scalar_i64},
    .copy_stream = copy_stream,
    .axpy_f32 = axpy_f32,
    .axpy_f16 = axpy_f16,
    .axpy_bf16 = axpy_bf16,
    .max_magnitude = max_magnitude,
    .sum_squares = sum_squares,
    .select_at_least = select_at_least,
    .add_select = add_select,
    .add_max = add_max,
    .select_ahead = select_ahead,
    .stratified_positions = stratified_positions,
    .index_gaps_long = index_gaps_long,
    .blocks_nonzero = blocks_nonzero,
    .drop_not_finite = drop_not_finite,
    .qsgd_encode = qsgd_encode,
    .qsgd_decode = qsgd_decode,
    .qsgd_add = qsgd_add,
    .natural_encode = natural_encode,
    .natural_decode = natural_decode,
    .natural_add = natural_add,
    .range = range,
    .shared_scale_encode = shared_scale_encode,
    .shared_scale_encode_u16 = shared_scale_encode_u16,
    .shared_scale_keep = shared_scale_keep,
    .shared_scale_keep_u16 = shared_scale_keep_u16,
    .shared_scale_decode = shared_scale_decode,
    .shared_scale_decode_u16 = shared_scale_decode_u16,
    .shared_scale_add = shared_scale_add,
    .shared_scale_add_u16 = shared_scale_add_u16,
    .packed_ints_add_u8 = packed_ints_add_u8,
    .packed_ints_add_u16 = packed_ints_add_u16,
    .packed_ints_sum_u8 = packed_ints_sum_u8,
    .packed_ints_vote = packed_ints_vote,
    .sums_by_sign = sums_by_sign,
    .signs_encode = signs_encode,
    .pair_decode = pair_decode,
    .pair_add = pair_add,
    .average = average,
    .combine = combine,
    .dither_encode = dither_encode,
    .dither_decode = dither_decode,
    .dither_add = dither_add,
    .f16_random = f16_random,
    .bf16_random = bf16_random,
    .f8_encode = f8_encode,
    .f8_decode = f8_decode,
    .f8_add = f8_add,
    .bits_pack = bits_pack,
    .bits_unpack = bits_unpack,
    .hadamard = hadamard,
    .grid_encode = grid_encode,
    .grid_points = grid_points,
    .gemm = gemm,
    .exact_scan = exact_scan,
    .exact_add_floats = exact_add_floats,
    .exact_add_doubles = exact_add_doubles,
    .exact_round = exact_round,
    .exact_divide = exact_divide,
    .crc32c = crc32c,
    .numbers_add = numbers_add,
};
