/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This file makes a table of kernels. A source includes it once, after its functions,
 * and defines before that:
 *
 * VEC_TABLE        the name of the table
 * VEC_ISA          the name of the instruction set
 * KERNEL_OF(name)  the function for `name`
 */
#include "compress/kernels/kernels_tables.h"

/* Rows of integers. Products without sign are those with one. */
#define TRUTH(bits) and_truth##bits, or_truth##bits, xor_truth##bits
#define INTEGERS(type, product, bits, ...) \
    { \
        add_##type, add_##type, min_##type, max_##type, mul_##product, NULL, NULL, \
            NULL, and_u##bits, or_u##bits, xor_u##bits, TRUTH(bits), __VA_ARGS__ \
    }
#define LOCATED(type) [TRIB_MINLOC] = minloc_##type, [TRIB_MAXLOC] = maxloc_##type

const struct trib_kernels VEC_TABLE =
    {
        .isa = VEC_ISA,
        .reduce =
            {
                [TRIB_F32] = {add_f32, add_f32, min_f32, max_f32, mul_f32,
                              LOCATED(f32)},
                [TRIB_F64] = {add_f64, add_f64, min_f64, max_f64, mul_f64,
                              LOCATED(f64)},
                [TRIB_F16] = {add_f16, add_f16, min_f16, max_f16, mul_f16},
                [TRIB_BF16] = {add_bf16, add_bf16, min_bf16, max_bf16, mul_bf16},
                [TRIB_I8] = INTEGERS(i8, i8, 8, NULL),
                [TRIB_I32] = INTEGERS(i32, i32, 32, LOCATED(i32)),
                [TRIB_I64] = INTEGERS(i64, i64, 64, LOCATED(i64)),
                [TRIB_U8] = INTEGERS(u8, i8, 8, NULL),
                [TRIB_I16] = INTEGERS(i16, i16, 16, NULL),
                [TRIB_U16] = INTEGERS(u16, i16, 16, NULL),
                [TRIB_U32] = INTEGERS(u32, i32, 32, LOCATED(u32)),
                [TRIB_U64] = INTEGERS(u64, i64, 64, LOCATED(u64)),
                [TRIB_BOOL] = {or_truth8, NULL, and_truth8, or_truth8, and_truth8, NULL,
                               NULL, NULL, TRUTH(8), TRUTH(8)},
                [TRIB_F8_E4M3] = {add_f8_e4m3, add_f8_e4m3, min_f8_e4m3, max_f8_e4m3,
                                  mul_f8_e4m3},
                [TRIB_F8_E5M2] = {add_f8_e5m2, add_f8_e5m2, min_f8_e5m2, max_f8_e5m2,
                                  mul_f8_e5m2},
            },
        .to_f32 = {to_f32_f32_scalar, to_f32_f64_scalar, KERNEL_OF(to_f32_f16),
                   KERNEL_OF(to_f32_bf16), to_f32_i8_scalar, to_f32_i32_scalar,
                   to_f32_i64_scalar, to_f32_u8_scalar, to_f32_i16_scalar,
                   to_f32_u16_scalar, to_f32_u32_scalar, to_f32_u64_scalar,
                   to_f32_truth8_scalar, KERNEL_OF(to_f32_f8_e4m3),
                   KERNEL_OF(to_f32_f8_e5m2)},
        .from_f32 = {from_f32_f32_scalar, from_f32_f64_scalar, KERNEL_OF(from_f32_f16),
                     KERNEL_OF(from_f32_bf16), from_f32_i8_scalar, from_f32_i32_scalar,
                     from_f32_i64_scalar, from_f32_u8_scalar, from_f32_i16_scalar,
                     from_f32_u16_scalar, from_f32_u32_scalar, from_f32_u64_scalar,
                     from_f32_truth8_scalar, KERNEL_OF(from_f32_f8_e4m3),
                     KERNEL_OF(from_f32_f8_e5m2)},
        .copy_stream = KERNEL_OF(copy_stream),
        .axpy_f32 = KERNEL_OF(axpy_f32),
        .axpy_f16 = KERNEL_OF(axpy_f16),
        .axpy_bf16 = KERNEL_OF(axpy_bf16),
        .max_magnitude = KERNEL_OF(max_magnitude),
        .sum_squares = KERNEL_OF(sum_squares),
        .select_at_least = KERNEL_OF(select_at_least),
        .add_select = KERNEL_OF(add_select),
        .add_max = KERNEL_OF(add_max),
        .select_ahead = KERNEL_OF(select_ahead),
        .stratified_positions = KERNEL_OF(stratified_positions),
        .blocks_nonzero = KERNEL_OF(blocks_nonzero),
        .drop_not_finite = KERNEL_OF(drop_not_finite),
        .qsgd_encode = KERNEL_OF(qsgd_encode),
        .qsgd_decode = KERNEL_OF(qsgd_decode),
        .qsgd_add = KERNEL_OF(qsgd_add),
        .natural_encode = KERNEL_OF(natural_encode),
        .natural_decode = KERNEL_OF(natural_decode),
        .natural_add = KERNEL_OF(natural_add),
        .range = KERNEL_OF(range),
        .shared_scale_encode = KERNEL_OF(shared_scale_encode),
        .shared_scale_encode_u16 = KERNEL_OF(shared_scale_encode_u16),
        .shared_scale_keep = KERNEL_OF(shared_scale_keep),
        .shared_scale_keep_u16 = KERNEL_OF(shared_scale_keep_u16),
        .shared_scale_decode = KERNEL_OF(shared_scale_decode),
        .shared_scale_decode_u16 = KERNEL_OF(shared_scale_decode_u16),
        .shared_scale_add = KERNEL_OF(shared_scale_add),
        .shared_scale_add_u16 = KERNEL_OF(shared_scale_add_u16),
        .packed_ints_add_u8 = KERNEL_OF(packed_ints_add_u8),
        .packed_ints_add_u16 = KERNEL_OF(packed_ints_add_u16),
        .packed_ints_sum_u8 = KERNEL_OF(packed_ints_sum_u8),
        .packed_ints_vote = KERNEL_OF(packed_ints_vote),
        .sums_by_sign = KERNEL_OF(sums_by_sign),
        .signs_encode = KERNEL_OF(signs_encode),
        .pair_decode = KERNEL_OF(pair_decode),
        .pair_add = KERNEL_OF(pair_add),
        .average = KERNEL_OF(average),
        .combine = KERNEL_OF(combine),
        .dither_encode = KERNEL_OF(dither_encode),
        .dither_decode = KERNEL_OF(dither_decode),
        .dither_add = KERNEL_OF(dither_add),
        .f16_random = KERNEL_OF(f16_random),
        .bf16_random = KERNEL_OF(bf16_random),
        .f8_encode = KERNEL_OF(f8_encode),
        .f8_decode = KERNEL_OF(f8_decode),
        .f8_add = KERNEL_OF(f8_add),
        .bits_pack = KERNEL_OF(bits_pack),
        .bits_unpack = KERNEL_OF(bits_unpack),
        .hadamard = KERNEL_OF(hadamard),
        .grid_encode = KERNEL_OF(grid_encode),
        .grid_points = KERNEL_OF(grid_points),
        .gemm = KERNEL_OF(gemm),
        .exact_scan = exact_scan,
        .exact_add_floats = exact_add_floats,
        .exact_add_doubles = exact_add_doubles,
        .exact_round = exact_round,
        .exact_divide = exact_divide,
        .crc32c = crc32c,
        .numbers_add = numbers_add,
};
