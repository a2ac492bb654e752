/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The 128-bit vector of kernels_vec.h: NEON, which every AArch64 CPU has. vec256.h and
 * vec512.h define the same names. A vec is 16 untyped bytes; the suffix of a function
 * names the element type.
 */
#ifndef COMPRESS_KERNELS_VEC128_H
#define COMPRESS_KERNELS_VEC128_H

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#define VEC static inline __attribute__((always_inline, unused))
#define VEC_ISA "neon"
#define VEC_TABLE trib_kernels_neon

enum { VEC_BYTES = 16, VEC_LANES = 4 /* of 32 bits */ };

typedef uint32x4_t vec;

/* one instruction per line */
/* clang-format off */

VEC float32x4_t ps(vec v) { return vreinterpretq_f32_u32(v); }
VEC float64x2_t pd(vec v) { return vreinterpretq_f64_u32(v); }
VEC int32x4_t i32(vec v) { return vreinterpretq_s32_u32(v); }
VEC int64x2_t i64(vec v) { return vreinterpretq_s64_u32(v); }
VEC uint64x2_t u64(vec v) { return vreinterpretq_u64_u32(v); }
VEC int8x16_t i8(vec v) { return vreinterpretq_s8_u32(v); }
VEC vec of_ps(float32x4_t v) { return vreinterpretq_u32_f32(v); }
VEC vec of_pd(float64x2_t v) { return vreinterpretq_u32_f64(v); }
VEC vec of_i32(int32x4_t v) { return vreinterpretq_u32_s32(v); }
VEC vec of_i64(int64x2_t v) { return vreinterpretq_u32_s64(v); }
VEC vec of_u64(uint64x2_t v) { return vreinterpretq_u32_u64(v); }
VEC vec of_i8(int8x16_t v) { return vreinterpretq_u32_s8(v); }

/* whole vectors, unaligned; there are no non-temporal stores */
VEC vec v_load(const void *p) { return vreinterpretq_u32_u8(vld1q_u8(p)); }
VEC void v_store(void *p, vec v) { vst1q_u8(p, vreinterpretq_u8_u32(v)); }
VEC void v_stream(void *p, vec v) { v_store(p, v); }
VEC void v_fence(void) { }
VEC vec v_zero(void) { return vdupq_n_u32(0); }
VEC vec v_set_i32(uint32_t v) { return vdupq_n_u32(v); }
VEC vec v_set_f32(float v) { return of_ps(vdupq_n_f32(v)); }
VEC vec v_set_f64(double v) { return of_pd(vdupq_n_f64(v)); }
VEC vec v_iota(void)
{
    static const uint32_t lanes[VEC_LANES] = {0, 1, 2, 3};
    return vld1q_u32(lanes);
}

/* one element in the lowest lane, zero elsewhere */
VEC vec v_load1(const void *p, size_t bytes)
{
    uint64_t u = 0;
    memcpy(&u, p, bytes);
    return of_u64(vsetq_lane_u64(u, vdupq_n_u64(0), 0));
}

VEC void v_store1(void *p, vec v, size_t bytes)
{
    const uint64_t u = vgetq_lane_u64(u64(v), 0);
    memcpy(p, &u, bytes);
}

VEC vec v_add_f32(vec a, vec b) { return of_ps(vaddq_f32(ps(a), ps(b))); }
VEC vec v_sub_f32(vec a, vec b) { return of_ps(vsubq_f32(ps(a), ps(b))); }
VEC vec v_mul_f32(vec a, vec b) { return of_ps(vmulq_f32(ps(a), ps(b))); }
VEC vec v_div_f32(vec a, vec b) { return of_ps(vdivq_f32(ps(a), ps(b))); }

/* a < b || isnan(a) ? a : b; the instruction returns NaN for either NaN, and orders
 * zeros */
VEC vec v_min_f32(vec a, vec b)
{
    const vec no_nan = vceqq_f32(ps(a), ps(a));
    return vbslq_u32(vornq_u32(vcltq_f32(ps(a), ps(b)), no_nan), a, b);
}

VEC vec v_max_f32(vec a, vec b)
{
    const vec no_nan = vceqq_f32(ps(a), ps(a));
    return vbslq_u32(vornq_u32(vcgtq_f32(ps(a), ps(b)), no_nan), a, b);
}

VEC vec v_add_f64(vec a, vec b) { return of_pd(vaddq_f64(pd(a), pd(b))); }
VEC vec v_mul_f64(vec a, vec b) { return of_pd(vmulq_f64(pd(a), pd(b))); }
VEC vec v_div_f64(vec a, vec b) { return of_pd(vdivq_f64(pd(a), pd(b))); }

VEC vec v_min_f64(vec a, vec b)
{
    const uint64x2_t no_nan = vceqq_f64(pd(a), pd(a));
    const uint64x2_t first = vornq_u64(vcltq_f64(pd(a), pd(b)), no_nan);
    return of_u64(vbslq_u64(first, u64(a), u64(b)));
}

VEC vec v_max_f64(vec a, vec b)
{
    const uint64x2_t no_nan = vceqq_f64(pd(a), pd(a));
    const uint64x2_t first = vornq_u64(vcgtq_f64(pd(a), pd(b)), no_nan);
    return of_u64(vbslq_u64(first, u64(a), u64(b)));
}

VEC vec v_add_i8(vec a, vec b) { return of_i8(vaddq_s8(i8(a), i8(b))); }
VEC vec v_min_i8(vec a, vec b) { return of_i8(vminq_s8(i8(a), i8(b))); }
VEC vec v_max_i8(vec a, vec b) { return of_i8(vmaxq_s8(i8(a), i8(b))); }
VEC vec v_add_i32(vec a, vec b) { return vaddq_u32(a, b); }
VEC vec v_mul_i32(vec a, vec b) { return vmulq_u32(a, b); }
VEC vec v_min_i32(vec a, vec b) { return of_i32(vminq_s32(i32(a), i32(b))); }
VEC vec v_max_i32(vec a, vec b) { return of_i32(vmaxq_s32(i32(a), i32(b))); }
VEC vec v_add_i64(vec a, vec b) { return of_i64(vaddq_s64(i64(a), i64(b))); }

VEC vec v_min_i64(vec a, vec b)
{
    return of_u64(vbslq_u64(vcltq_s64(i64(a), i64(b)), u64(a), u64(b)));
}

VEC vec v_max_i64(vec a, vec b)
{
    return of_u64(vbslq_u64(vcgtq_s64(i64(a), i64(b)), u64(a), u64(b)));
}

VEC uint8x16_t u8(vec v) { return vreinterpretq_u8_u32(v); }
VEC uint16x8_t u16(vec v) { return vreinterpretq_u16_u32(v); }
VEC int16x8_t i16(vec v) { return vreinterpretq_s16_u32(v); }
VEC vec of_u8(uint8x16_t v) { return vreinterpretq_u32_u8(v); }
VEC vec of_u16(uint16x8_t v) { return vreinterpretq_u32_u16(v); }
VEC vec of_i16(int16x8_t v) { return vreinterpretq_u32_s16(v); }
VEC vec v_add_i16(vec a, vec b) { return of_u16(vaddq_u16(u16(a), u16(b))); }
VEC vec v_mul_i16(vec a, vec b) { return of_u16(vmulq_u16(u16(a), u16(b))); }
VEC vec v_min_i16(vec a, vec b) { return of_i16(vminq_s16(i16(a), i16(b))); }
VEC vec v_max_i16(vec a, vec b) { return of_i16(vmaxq_s16(i16(a), i16(b))); }
VEC vec v_min_u8(vec a, vec b) { return of_u8(vminq_u8(u8(a), u8(b))); }
VEC vec v_max_u8(vec a, vec b) { return of_u8(vmaxq_u8(u8(a), u8(b))); }
VEC vec v_min_u16(vec a, vec b) { return of_u16(vminq_u16(u16(a), u16(b))); }
VEC vec v_max_u16(vec a, vec b) { return of_u16(vmaxq_u16(u16(a), u16(b))); }
VEC vec v_min_u32(vec a, vec b) { return vminq_u32(a, b); }
VEC vec v_max_u32(vec a, vec b) { return vmaxq_u32(a, b); }

VEC vec v_min_u64(vec a, vec b)
{
    return of_u64(vbslq_u64(vcltq_u64(u64(a), u64(b)), u64(a), u64(b)));
}

VEC vec v_max_u64(vec a, vec b)
{
    return of_u64(vbslq_u64(vcgtq_u64(u64(a), u64(b)), u64(a), u64(b)));
}

VEC vec v_and(vec a, vec b) { return vandq_u32(a, b); }
VEC vec v_or(vec a, vec b) { return vorrq_u32(a, b); }
VEC vec v_xor(vec a, vec b) { return veorq_u32(a, b); }
#define v_shl_i32(a, bits) vshlq_n_u32(a, bits)
#define v_shr_i32(a, bits) vshrq_n_u32(a, bits)

/* half-width elements, one per 32-bit lane; VEC_BYTES / 2 in memory */
VEC uint16x4_t load_half(const void *p) { return vreinterpret_u16_u8(vld1_u8(p)); }

VEC vec v_load_f16(const void *p)
{
    return of_ps(vcvt_f32_f16(vreinterpret_f16_u16(load_half(p))));
}

VEC uint16x4_t v_pack_f16(vec v) { return vreinterpret_u16_f16(vcvt_f16_f32(ps(v))); }
VEC vec v_load_bf16(const void *p) { return vshll_n_u16(load_half(p), 16); }

VEC uint16x4_t v_pack_bf16(vec v)
{
    const vec odd = vandq_u32(vshrq_n_u32(v, 16), vdupq_n_u32(1));
    const vec up = vaddq_u32(v, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    const vec quiet = vorrq_u32(v, vdupq_n_u32(0x400000));
    const vec no_nan = vceqq_f32(ps(v), ps(v));
    return vshrn_n_u32(vbslq_u32(no_nan, up, quiet), 16);
}

VEC void v_store_half(void *p, uint16x4_t h) { vst1_u8(p, vreinterpret_u8_u16(h)); }
VEC void v_store_f16(void *p, vec v) { v_store_half(p, v_pack_f16(v)); }
VEC void v_store_bf16(void *p, vec v) { v_store_half(p, v_pack_bf16(v)); }
VEC void v_stream_f16(void *p, vec v) { v_store_f16(p, v); }
VEC void v_stream_bf16(void *p, vec v) { v_store_bf16(p, v); }

VEC vec v_load1_f16(const void *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return of_ps(
        vcvt_f32_f16(vreinterpret_f16_u16(vset_lane_u16(h, vdup_n_u16(0), 0))));
}

VEC vec v_load1_bf16(const void *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return vsetq_lane_u32((uint32_t)h << 16, vdupq_n_u32(0), 0);
}

VEC void v_store1_half(void *p, uint16x4_t h)
{
    const uint16_t u = vget_lane_u16(h, 0);
    memcpy(p, &u, sizeof u);
}

VEC void v_store1_f16(void *p, vec v) { v_store1_half(p, v_pack_f16(v)); }
VEC void v_store1_bf16(void *p, vec v) { v_store1_half(p, v_pack_bf16(v)); }

/* ---- for codecs ---------------------------------------------------------------- */

/* round towards minus infinity, to integers in range */
VEC vec v_floor_i32(vec v) { return of_i32(vcvtmq_s32_f32(ps(v))); }
/* v > low ? v : low, then v < high ? v : high */
VEC vec v_clamp_f32(vec v, vec low, vec high)
{
    const vec above = vbslq_u32(vcgtq_f32(ps(v), ps(low)), v, low);
    return vbslq_u32(vcltq_f32(ps(above), ps(high)), above, high);
}
VEC vec v_sub_i32(vec a, vec b) { return vsubq_u32(a, b); }

/* look up lanes in a table in a vec; in a table in memory */
VEC vec v_pick_f32(vec table, vec i)
{
    const vec bytes = vaddq_u32(vmulq_u32(i, vdupq_n_u32(0x04040404u)),
                                vdupq_n_u32(0x03020100u));
    return vreinterpretq_u32_u8(
        vqtbl1q_u8(vreinterpretq_u8_u32(table), vreinterpretq_u8_u32(bytes)));
}

VEC vec v_gather_f32(const float *p, vec i)
{
    const float lane[VEC_LANES] = {p[vgetq_lane_u32(i, 0)], p[vgetq_lane_u32(i, 1)],
                                   p[vgetq_lane_u32(i, 2)], p[vgetq_lane_u32(i, 3)]};
    return v_load(lane);
}

VEC vec v_to_f32(vec v) { return of_ps(vcvtq_f32_s32(i32(v))); }
VEC vec v_truncate(vec v) { return of_i32(vcvtq_s32_f32(ps(v))); }
/* all ones where negative */
VEC vec v_sign_i32(vec v) { return of_i32(vshrq_n_s32(i32(v), 31)); }
VEC vec v_shl_any_i32(vec v, int bits) { return vshlq_u32(v, vdupq_n_s32(bits)); }
VEC vec v_shr_any_i32(vec v, int bits) { return vshlq_u32(v, vdupq_n_s32(-bits)); }

/* the lower halves of the lanes, which are below 65536; stores VEC_BYTES / 2 */
VEC void v_store_u16(void *p, vec v) { v_store_half(p, vmovn_u32(v)); }

/* the largest of the lanes, signed */
VEC uint32_t v_max_lane_i32(vec v) { return (uint32_t)vmaxvq_s32(i32(v)); }

/* prefix sum of the lanes; the last lane, in all lanes */
VEC vec v_prefix_i32(vec v)
{
    const vec zero = vdupq_n_u32(0);
    v = vaddq_u32(v, vextq_u32(zero, v, 3));
    return vaddq_u32(v, vextq_u32(zero, v, 2));
}

VEC vec v_last_i32(vec v) { return vdupq_laneq_u32(v, 3); }

/* one bit per lane where a >= b, signed */
VEC uint32_t v_at_least_i32(vec a, vec b)
{
    static const uint32_t bits[VEC_LANES] = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(vcgeq_s32(i32(a), i32(b)), vld1q_u32(bits)));
}

/* v where key < limit, else 0 */
VEC vec v_keep_below_i32(vec v, vec key, vec limit)
{
    return vandq_u32(v, vcltq_s32(i32(key), i32(limit)));
}

/* 0 for NaN and Inf */
VEC vec v_finite_f32(vec v)
{
    const vec magnitude = vandq_u32(v, vdupq_n_u32(INT32_MAX));
    return v_keep_below_i32(v, magnitude, vdupq_n_u32(0x7f800000u));
}

/* the lanes of v selected by mask, in order; writes up to a whole vec */
VEC void v_compress_i32(uint32_t *p, vec v, uint32_t mask)
{
    uint32_t lane[VEC_LANES];
    vst1q_u32(lane, v);
    for (int i = 0; i < VEC_LANES; i++, mask >>= 1) {
        *p = lane[i];
        p += mask & 1;
    }
}

/* the lanes of a, b, c, d as bytes, in order; lanes are below 256 */
VEC void v_store_u8x4(uint8_t *p, vec a, vec b, vec c, vec d)
{
    const uint16x8_t low = vcombine_u16(vmovn_u32(a), vmovn_u32(b));
    const uint16x8_t high = vcombine_u16(vmovn_u32(c), vmovn_u32(d));
    vst1q_u8(p, vcombine_u8(vmovn_u16(low), vmovn_u16(high)));
}

/* the lanes of one vec as VEC_LANES bytes */
VEC void v_store_u8(uint8_t *p, vec v)
{
    const uint16x4_t half = vmovn_u32(v);
    const uint8x8_t bytes = vmovn_u16(vcombine_u16(half, half));
    const uint32_t four = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
    memcpy(p, &four, sizeof four);
}

VEC vec v_set_i64(uint64_t v) { return of_u64(vdupq_n_u64(v)); }
VEC vec v_shl_any_i64(vec v, int bits)
{
    return of_u64(vshlq_u64(u64(v), vdupq_n_s64(bits)));
}
VEC vec v_shr_any_i64(vec v, int bits)
{
    return of_u64(vshlq_u64(u64(v), vdupq_n_s64(-bits)));
}

/* 64-bit words that start every `stride` bytes; stored in order, so that each
 * overwrites what the previous one wrote beyond its stride */
VEC vec v_load_words(const uint8_t *p, size_t stride)
{
    return vreinterpretq_u32_u8(vcombine_u8(vld1_u8(p), vld1_u8(p + stride)));
}

VEC void v_store_words(uint8_t *p, vec v, size_t stride)
{
    const uint8x16_t bytes = vreinterpretq_u8_u32(v);
    vst1_u8(p, vget_low_u8(bytes));
    vst1_u8(p + stride, vget_high_u8(bytes));
}

VEC vec v_load_u8(const uint8_t *p)
{
    uint32_t four;
    memcpy(&four, p, sizeof four);
    const uint8x8_t bytes = vreinterpret_u8_u32(vdup_n_u32(four));
    return vmovl_u16(vget_low_u16(vmovl_u8(bytes)));
}

/* 16-bit elements, one per 32-bit lane */
VEC vec v_load_u16(const uint8_t *p) { return vmovl_u16(load_half(p)); }

/* 16-bit lanes, below 256, as bytes; stores VEC_BYTES / 2 */
VEC void v_store_u16_u8(uint8_t *p, vec v)
{
    vst1_u8(p, vmovn_u16(vreinterpretq_u16_u32(v)));
}

/* bytes, one per 16-bit lane */
VEC vec v_load_u8_u16(const uint8_t *p)
{
    return vreinterpretq_u32_u16(vmovl_u8(vld1_u8(p)));
}

#endif
