/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reference table: kernels_scalar.h as it stands. Used where the CPU has nothing
 * better, and as the judge of the vector tables
 * (tests/compress/kernels/check_kernels.c).
 */
#include "compress/kernels/kernels_scalar.h"
#include "compress/kernels/kernels_scalar_codec.h"
#include "compress/kernels/kernels_scalar_shared_scale.h"
#include "compress/kernels/kernels_scalar_quant.h"
#include "compress/kernels/kernels_scalar_select.h"
#include "compress/kernels/kernels_scalar_stratified.h"
#include "compress/kernels/kernels_scalar_feedback.h"
#include "compress/kernels/kernels_scalar_crc.h"
#include "compress/kernels/kernels_scalar_exact.h"
#include "compress/kernels/kernels_scalar_gemm.h"
#include "compress/kernels/kernels_scalar_grid.h"
#include "compress/kernels/kernels_scalar_hadamard.h"
#include "compress/kernels/kernels_scalar_numbers.h"
#include "compress/kernels/kernels_tables.h"

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
OPERATORS(REDUCE_INT, i8)
OPERATORS(REDUCE_INT, i32)
OPERATORS(REDUCE_INT, i64)
    /* clang-format on */

    static void axpy_f32(float *acc, const void *src, float weight, size_t n)
{
    axpy_scalar(acc, src, weight, n, load_f32);
}

static void axpy_f16(float *acc, const void *src, float weight, size_t n)
{
    axpy_scalar(acc, src, weight, n, load_f16);
}

static void axpy_bf16(float *acc, const void *src, float weight, size_t n)
{
    axpy_scalar(acc, src, weight, n, load_bf16);
}

static void copy_stream(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

static uint32_t max_magnitude(const float *x, size_t n)
{
    return max_magnitude_scalar(x, n);
}

static float sum_squares(const float *x, size_t n)
{
    return sum_squares_scalar(x, n);
}

static size_t select_at_least(const float *x, size_t n, uint32_t threshold,
                              uint32_t *positions_out)
{
    return select_at_least_scalar(x, n, threshold, positions_out);
}

static size_t add_select(float *acc, const float *x, size_t n, uint32_t threshold,
                         uint32_t *positions_out)
{
    return add_select_scalar(acc, x, n, threshold, positions_out);
}

static uint32_t add_max(float *acc, const float *x, size_t n)
{
    return add_max_scalar(acc, x, n);
}

static size_t select_ahead(const float *g, const float *d, size_t n,
                           const struct trib_ahead *a, uint32_t *positions_out)
{
    return select_ahead_scalar(g, d, 0, n, a, positions_out);
}

static size_t index_gaps_long(const uint32_t *positions, size_t m)
{
    return index_gaps_long_scalar(positions, 0, m);
}

static size_t blocks_nonzero(const float *x, size_t n, size_t block,
                             uint32_t *numbers_out)
{
    return blocks_nonzero_scalar(x, n, block, numbers_out);
}

static void drop_not_finite(float *x, size_t n)
{
    drop_not_finite_scalar(x, n);
}

static void qsgd_encode(uint8_t *codes, const float *x, size_t n,
                          const struct trib_qsgd_args *l)
{
    qsgd_encode_scalar(codes, x, n, 0, l);
}

static void qsgd_decode(float *x, const uint8_t *codes, size_t n,
                          const struct trib_qsgd_args *l)
{
    qsgd_decode_scalar(x, codes, n, l);
}

static void qsgd_add(float *acc, const uint8_t *codes, size_t n,
                       const struct trib_qsgd_args *l)
{
    qsgd_add_scalar(acc, codes, n, l);
}

static void natural_encode(uint8_t *codes, const float *x, size_t n,
                           const struct trib_natural_args *o)
{
    natural_encode_scalar(codes, x, n, 0, o);
}

static void natural_decode(float *x, const uint8_t *codes, size_t n,
                           const struct trib_natural_args *o)
{
    natural_decode_scalar(x, codes, n, o);
}

static void natural_add(float *acc, const uint8_t *codes, size_t n,
                        const struct trib_natural_args *o)
{
    natural_add_scalar(acc, codes, n, o);
}

static void range(const float *x, size_t n, float out[2])
{
    range_scalar(x, n, out);
}

static void shared_scale_encode(uint8_t *symbols, const float *x, size_t n,
                            const struct trib_shared_scale_args *g)
{
    shared_scale_encode_scalar(symbols, x, n, 0, g);
}

static void shared_scale_encode_u16(uint8_t *symbols, const float *x, size_t n,
                                const struct trib_shared_scale_args *g)
{
    shared_scale_encode_u16_scalar(symbols, x, n, 0, g);
}

static void shared_scale_keep(uint8_t *symbols, float *x, size_t n,
                          const struct trib_shared_scale_args *g)
{
    shared_scale_keep_scalar(symbols, x, n, 0, g);
}

static void shared_scale_keep_u16(uint8_t *symbols, float *x, size_t n,
                              const struct trib_shared_scale_args *g)
{
    shared_scale_keep_u16_scalar(symbols, x, n, 0, g);
}

static void shared_scale_decode(float *x, const uint8_t *lanes, size_t n,
                            const struct trib_shared_scale_args *g)
{
    shared_scale_decode_scalar(x, lanes, n, g);
}

static void shared_scale_decode_u16(float *x, const uint8_t *lanes, size_t n,
                                const struct trib_shared_scale_args *g)
{
    shared_scale_decode_u16_scalar(x, lanes, n, g);
}

static void shared_scale_add(float *acc, const uint8_t *lanes, size_t n,
                         const struct trib_shared_scale_args *g)
{
    shared_scale_add_scalar(acc, lanes, n, g);
}

static void shared_scale_add_u16(float *acc, const uint8_t *lanes, size_t n,
                             const struct trib_shared_scale_args *g)
{
    shared_scale_add_u16_scalar(acc, lanes, n, g);
}

static void packed_ints_add_u8(uint16_t *sum, const uint8_t *lanes, size_t n)
{
    packed_ints_add_u8_scalar(sum, lanes, n);
}

static void packed_ints_add_u16(uint16_t *sum, const uint8_t *lanes, size_t n)
{
    packed_ints_add_u16_scalar(sum, lanes, n);
}

static void stratified_positions(const struct trib_stratified *s, size_t first,
                                 size_t count, uint32_t *positions_out)
{
    stratified_positions_scalar(s, first, count, positions_out);
}

static void packed_ints_sum_u8(uint8_t *sum, const struct trib_packed_ints_sum *s)
{
    packed_ints_sum_u8_scalar(sum, s, 0);
}

static void packed_ints_vote(uint8_t *lanes, size_t n, uint32_t more, uint32_t tie)
{
    packed_ints_vote_scalar(lanes, n, more, tie);
}

static void sums_by_sign(const float *x, size_t n, struct trib_sums *out)
{
    sums_by_sign_scalar(x, n, out);
}

static void signs_encode(uint8_t *codes, const float *x, size_t n)
{
    signs_encode_scalar(codes, x, n);
}

static void pair_decode(float *x, const uint8_t *codes, size_t n,
                        const struct trib_pair *pair)
{
    pair_decode_scalar(x, codes, n, pair);
}

static void pair_add(float *acc, const uint8_t *codes, size_t n,
                     const struct trib_pair *pair)
{
    pair_add_scalar(acc, codes, n, pair);
}

static void average(float *v, const float *x, size_t n, float keep, float take)
{
    average_scalar(v, x, n, keep, take);
}

static void combine(float *out, const struct trib_combine *c, size_t n)
{
    combine_scalar(out, c, n);
}

static void dither_encode(uint8_t *codes, const float *x, size_t n,
                          const struct trib_dither_args *p)
{
    dither_encode_scalar(codes, x, n, 0, p);
}

static void dither_decode(float *x, const uint8_t *codes, size_t n,
                          const struct trib_dither_args *p)
{
    dither_decode_scalar(x, codes, n, p);
}

static void dither_add(float *acc, const uint8_t *codes, size_t n,
                       const struct trib_dither_args *p)
{
    dither_add_scalar(acc, codes, n, p);
}

static void f16_random(void *dst, const float *src, size_t n, const uint32_t key[2])
{
    half_random_scalar(dst, src, n, 0, key, narrow_f16);
}

static void bf16_random(void *dst, const float *src, size_t n, const uint32_t key[2])
{
    half_random_scalar(dst, src, n, 0, key, narrow_bf16);
}

static void f8_encode(uint8_t *codes, const float *x, size_t n, const struct trib_f8 *f)
{
    f8_encode_scalar(codes, x, n, 0, f);
}

static void f8_decode(float *x, const uint8_t *codes, size_t n, const struct trib_f8 *f)
{
    f8_decode_scalar(x, codes, n, f);
}

static void f8_add(float *acc, const uint8_t *codes, size_t n, const struct trib_f8 *f)
{
    f8_add_scalar(acc, codes, n, f);
}

static void bits_pack(uint8_t *dst, uint8_t *codes, size_t n, int bits)
{
    trib_bits_pack(dst, codes, n, bits, 0);
}

static void bits_unpack(uint8_t *codes, const uint8_t *src, size_t n, int bits)
{
    trib_bits_unpack(codes, src, n, bits, 0);
}

static void hadamard(float *z, const float *y, const struct trib_hadamard *h)
{
    hadamard_scalar(z, y, h);
}

static void grid_encode(uint8_t *symbols, const float *x, size_t n,
                        const struct trib_grid *g)
{
    grid_encode_scalar(symbols, x, n, 0, g);
}

static void grid_points(uint8_t *points, const uint8_t *symbols, size_t n,
                        const uint8_t value[TRIB_GRID_SYMBOLS])
{
    grid_points_scalar(points, symbols, n, value);
}

static void gemm(const struct trib_gemm *g)
{
    gemm_scalar(g);
}

const struct trib_kernels trib_kernels_c = {
    .isa = "c",
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
    .to_f32 = {to_f32_scalar_f32, to_f32_scalar_f64, to_f32_scalar_f16,
               to_f32_scalar_bf16, to_f32_scalar_i8, to_f32_scalar_i32,
               to_f32_scalar_i64},
    .from_f32 = {from_f32_scalar_f32, from_f32_scalar_f64, from_f32_scalar_f16,
                 from_f32_scalar_bf16, from_f32_scalar_i8, from_f32_scalar_i32,
                 from_f32_scalar_i64},
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
