/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More of vec128.h: linear transforms and table look-ups. Defines the names of
 * vec256_linear.h.
 */
#ifndef COMPRESS_KERNELS_VEC128_LINEAR_H
#define COMPRESS_KERNELS_VEC128_LINEAR_H

#include "compress/kernels/vec128.h"

/* clang-format off */

/* a * b + c, rounded once */
VEC vec v_fma_f32(vec a, vec b, vec c) { return of_ps(vfmaq_f32(ps(c), ps(a), ps(b))); }

/* negate lane j if bit j is set */
VEC vec v_flip_signs(vec v, uint32_t bits)
{
    static const int32_t at[VEC_LANES] = {31, 30, 29, 28};
    const vec minus = vshlq_u32(vdupq_n_u32(bits), vld1q_s32(at));
    return veorq_u32(v, vandq_u32(minus, vdupq_n_u32(0x80000000u)));
}

/* (a, b) -> (a + b, a - b) for lanes 2, then 1 apart. A product with 1 or -1 is exact,
 * so only the sum is rounded. */
VEC vec v_butterfly_lanes(vec v)
{
    static const float far[VEC_LANES] = {1, 1, -1, -1},
                       near[VEC_LANES] = {1, -1, 1, -1};
    float32x4_t x = ps(v);
    x = vfmaq_f32(vextq_f32(x, x, 2), x, vld1q_f32(far));
    x = vfmaq_f32(vrev64q_f32(x), x, vld1q_f32(near));
    return of_ps(x);
}

enum { V_TILE_ROWS = 12 /* by two vecs; fits into 32 registers */ };

/* lane j of vec i becomes lane i of vec j */
VEC void v_transpose(vec t[4])
{
    /* lanes 0 and 2 of two vecs; lanes 1 and 3 */
    const vec a0 = vtrn1q_u32(t[0], t[1]), a1 = vtrn2q_u32(t[0], t[1]);
    const vec b0 = vtrn1q_u32(t[2], t[3]), b1 = vtrn2q_u32(t[2], t[3]);
    t[0] = of_u64(vtrn1q_u64(u64(a0), u64(b0)));
    t[1] = of_u64(vtrn1q_u64(u64(a1), u64(b1)));
    t[2] = of_u64(vtrn2q_u64(u64(a0), u64(b0)));
    t[3] = of_u64(vtrn2q_u64(u64(a1), u64(b1)));
}

/* the upper halves of the products, unsigned */
VEC vec v_mul_high_u32(vec a, vec b)
{
    const uint64x2_t low = vmull_u32(vget_low_u32(a), vget_low_u32(b));
    return vcombine_u32(vshrn_n_u64(low, 32), vshrn_n_u64(vmull_high_u32(a, b), 32));
}

/* v + 1 where a < b */
VEC vec v_count_less_f32(vec v, vec a, vec b)
{
    return vsubq_u32(v, vcltq_f32(ps(a), ps(b)));
}

/* a table of 32 words; look up the lanes of i, below 32 */
struct vec_table32 {
    uint8x16x4_t part[2];
};

VEC struct vec_table32 v_table32(const uint32_t *words)
{
    struct vec_table32 t;
    for (int i = 0; i < 8; i++)
        t.part[i / 4].val[i % 4] = vreinterpretq_u8_u32(v_load(words + 4 * i));
    return t;
}

VEC vec v_look_up32(const struct vec_table32 *t, vec i)
{
    const vec bytes = vaddq_u32(vmulq_u32(i, vdupq_n_u32(0x04040404u)),
                                vdupq_n_u32(0x03020100u));
    const uint8x16_t at = vreinterpretq_u8_u32(bytes);
    /* an index outside the part yields 0 */
    const uint8x16_t low = vqtbl4q_u8(t->part[0], at);
    const uint8x16_t high = vqtbl4q_u8(t->part[1], vsubq_u8(at, vdupq_n_u8(64)));
    return vreinterpretq_u32_u8(vorrq_u8(low, high));
}

/* a table of 16 bytes; look up the bytes of i, below 16 */
VEC vec v_table16(const uint8_t *bytes) { return v_load(bytes); }

VEC vec v_look_up16(vec table, vec i)
{
    return vreinterpretq_u32_u8(
        vqtbl1q_u8(vreinterpretq_u8_u32(table), vreinterpretq_u8_u32(i)));
}

#endif
