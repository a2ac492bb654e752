/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The 256-bit vector that kernels_vec.h is written in: AVX2, F16C. vec512.h has the
 * same names, 512 bits wide. A vec is 32 bytes without a type; the suffix of a function
 * says what it takes them for.
 */
#ifndef COMPRESS_KERNELS_VEC256_H
#define COMPRESS_KERNELS_VEC256_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define VEC static inline __attribute__((always_inline, unused))
#define VEC_ISA "avx2"
#define VEC_TABLE trib_kernels_avx2

enum { VEC_BYTES = 32, VEC_LANES = 8 /* of 32 bits */ };

typedef __m256i vec;

/* an instruction a line */
/* clang-format off */

VEC __m256 ps(vec v) { return _mm256_castsi256_ps(v); }
VEC __m256d pd(vec v) { return _mm256_castsi256_pd(v); }
VEC vec of_ps(__m256 v) { return _mm256_castps_si256(v); }
VEC vec of_pd(__m256d v) { return _mm256_castpd_si256(v); }

/* whole vectors, as they are in memory */
VEC vec v_load(const void *p) { return _mm256_loadu_si256((const __m256i_u *)p); }
VEC void v_store(void *p, vec v) { _mm256_storeu_si256((__m256i_u *)p, v); }
VEC void v_stream(void *p, vec v) { _mm256_stream_si256((__m256i *)p, v); }
VEC void v_fence(void) { _mm_sfence(); }
VEC vec v_zero(void) { return _mm256_setzero_si256(); }
VEC vec v_set_i32(uint32_t v) { return _mm256_set1_epi32((int)v); }
VEC vec v_set_f32(float v) { return of_ps(_mm256_set1_ps(v)); }
VEC vec v_set_f64(double v) { return of_pd(_mm256_set1_pd(v)); }
VEC vec v_iota(void) { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }

/* one element in the lowest lane, zero elsewhere */
VEC vec v_load1(const void *p, size_t bytes)
{
    uint64_t u = 0;
    memcpy(&u, p, bytes);
    return _mm256_zextsi128_si256(_mm_cvtsi64_si128((long long)u));
}

VEC void v_store1(void *p, vec v, size_t bytes)
{
    const uint64_t u = (uint64_t)_mm_cvtsi128_si64(_mm256_castsi256_si128(v));
    memcpy(p, &u, bytes);
}

VEC vec v_add_f32(vec a, vec b) { return of_ps(_mm256_add_ps(ps(a), ps(b))); }
VEC vec v_mul_f32(vec a, vec b) { return of_ps(_mm256_mul_ps(ps(a), ps(b))); }
VEC vec v_div_f32(vec a, vec b) { return of_ps(_mm256_div_ps(ps(a), ps(b))); }

/* a < b || isnan(a) ? a : b; the instruction alone gives b for any NaN */
VEC vec v_min_f32(vec a, vec b)
{
    const __m256 nan = _mm256_cmp_ps(ps(a), ps(a), _CMP_UNORD_Q);
    return of_ps(_mm256_blendv_ps(_mm256_min_ps(ps(a), ps(b)), ps(a), nan));
}

VEC vec v_max_f32(vec a, vec b)
{
    const __m256 nan = _mm256_cmp_ps(ps(a), ps(a), _CMP_UNORD_Q);
    return of_ps(_mm256_blendv_ps(_mm256_max_ps(ps(a), ps(b)), ps(a), nan));
}

VEC vec v_add_f64(vec a, vec b) { return of_pd(_mm256_add_pd(pd(a), pd(b))); }
VEC vec v_mul_f64(vec a, vec b) { return of_pd(_mm256_mul_pd(pd(a), pd(b))); }
VEC vec v_div_f64(vec a, vec b) { return of_pd(_mm256_div_pd(pd(a), pd(b))); }

VEC vec v_min_f64(vec a, vec b)
{
    const __m256d nan = _mm256_cmp_pd(pd(a), pd(a), _CMP_UNORD_Q);
    return of_pd(_mm256_blendv_pd(_mm256_min_pd(pd(a), pd(b)), pd(a), nan));
}

VEC vec v_max_f64(vec a, vec b)
{
    const __m256d nan = _mm256_cmp_pd(pd(a), pd(a), _CMP_UNORD_Q);
    return of_pd(_mm256_blendv_pd(_mm256_max_pd(pd(a), pd(b)), pd(a), nan));
}

VEC vec v_add_i8(vec a, vec b) { return _mm256_add_epi8(a, b); }
VEC vec v_min_i8(vec a, vec b) { return _mm256_min_epi8(a, b); }
VEC vec v_max_i8(vec a, vec b) { return _mm256_max_epi8(a, b); }
VEC vec v_add_i32(vec a, vec b) { return _mm256_add_epi32(a, b); }
VEC vec v_mul_i32(vec a, vec b) { return _mm256_mullo_epi32(a, b); }
VEC vec v_min_i32(vec a, vec b) { return _mm256_min_epi32(a, b); }
VEC vec v_max_i32(vec a, vec b) { return _mm256_max_epi32(a, b); }
VEC vec v_add_i64(vec a, vec b) { return _mm256_add_epi64(a, b); }

VEC vec v_min_i64(vec a, vec b)
{
    return _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b));
}

VEC vec v_max_i64(vec a, vec b)
{
    return _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(a, b));
}

VEC vec v_and(vec a, vec b) { return _mm256_and_si256(a, b); }
VEC vec v_or(vec a, vec b) { return _mm256_or_si256(a, b); }
VEC vec v_xor(vec a, vec b) { return _mm256_xor_si256(a, b); }
#define v_shl_i32(a, bits) _mm256_slli_epi32(a, bits)
#define v_shr_i32(a, bits) _mm256_srli_epi32(a, bits)

/* half-width elements, one per 32-bit lane; in memory they take VEC_BYTES / 2 */
VEC vec v_load_f16(const void *p)
{
    return of_ps(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)p)));
}

VEC __m128i v_pack_f16(vec v)
{
    return _mm256_cvtps_ph(ps(v), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

VEC vec v_load_bf16(const void *p)
{
    const __m128i h = _mm_loadu_si128((const __m128i_u *)p);
    return _mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16);
}

VEC __m128i v_pack_bf16(vec v)
{
    const vec odd = _mm256_and_si256(_mm256_srli_epi32(v, 16), _mm256_set1_epi32(1));
    const vec up =
        _mm256_add_epi32(v, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const vec quiet = _mm256_or_si256(v, _mm256_set1_epi32(0x400000));
    const __m256 nan = _mm256_cmp_ps(ps(v), ps(v), _CMP_UNORD_Q);
    const vec r = of_ps(_mm256_blendv_ps(ps(up), ps(quiet), nan));
    const vec h = _mm256_srli_epi32(r, 16);
    /* packs within 128-bit halves: bring quadwords 0 and 2 together */
    const vec packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(h, h), 0x08);
    return _mm256_castsi256_si128(packed);
}

VEC void v_store_half(void *p, __m128i h) { _mm_storeu_si128((__m128i_u *)p, h); }
VEC void v_stream_half(void *p, __m128i h) { _mm_stream_si128((__m128i *)p, h); }
VEC void v_store_f16(void *p, vec v) { v_store_half(p, v_pack_f16(v)); }
VEC void v_store_bf16(void *p, vec v) { v_store_half(p, v_pack_bf16(v)); }
VEC void v_stream_f16(void *p, vec v) { v_stream_half(p, v_pack_f16(v)); }
VEC void v_stream_bf16(void *p, vec v) { v_stream_half(p, v_pack_bf16(v)); }

VEC vec v_load1_f16(const void *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return of_ps(_mm256_zextps128_ps256(_mm_cvtph_ps(_mm_cvtsi32_si128(h))));
}

VEC vec v_load1_bf16(const void *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return _mm256_zextsi128_si256(_mm_cvtsi32_si128((int)((uint32_t)h << 16)));
}

VEC void v_store1_half(void *p, __m128i h)
{
    const uint16_t u = (uint16_t)_mm_cvtsi128_si32(h);
    memcpy(p, &u, sizeof u);
}

VEC void v_store1_f16(void *p, vec v) { v_store1_half(p, v_pack_f16(v)); }
VEC void v_store1_bf16(void *p, vec v) { v_store1_half(p, v_pack_bf16(v)); }

/* ---- for codecs ---------------------------------------------------------------- */

/* towards minus infinity, to integers that fit */
VEC vec v_floor_i32(vec v) { return _mm256_cvttps_epi32(_mm256_floor_ps(ps(v))); }
/* v > low ? v : low, then v < high ? v : high */
VEC vec v_clamp_f32(vec v, vec low, vec high)
{
    return of_ps(_mm256_min_ps(_mm256_max_ps(ps(v), ps(low)), ps(high)));
}
VEC vec v_sub_i32(vec a, vec b) { return _mm256_sub_epi32(a, b); }
VEC vec v_add_i16(vec a, vec b) { return _mm256_add_epi16(a, b); }

VEC vec v_sub_f32(vec a, vec b) { return of_ps(_mm256_sub_ps(ps(a), ps(b))); }
/* lanes of a table; of one in memory */
VEC vec v_pick_f32(vec table, vec i) { return _mm256_permutevar8x32_epi32(table, i); }
VEC vec v_gather_f32(const float *p, vec i)
{
    return of_ps(_mm256_i32gather_ps(p, i, 4));
}
VEC vec v_to_f32(vec v) { return of_ps(_mm256_cvtepi32_ps(v)); }
VEC vec v_truncate(vec v) { return _mm256_cvttps_epi32(ps(v)); }
/* all ones where negative */
VEC vec v_sign_i32(vec v) { return _mm256_srai_epi32(v, 31); }
VEC vec v_shl_any_i32(vec v, int bits)
{
    return _mm256_sll_epi32(v, _mm_cvtsi32_si128(bits));
}

VEC vec v_shr_any_i32(vec v, int bits)
{
    return _mm256_srl_epi32(v, _mm_cvtsi32_si128(bits));
}

/* the lower halves of the lanes, which are below 65536; VEC_BYTES / 2 of them */
VEC void v_store_u16(void *p, vec v)
{
    /* packs within 128-bit halves: bring quadwords 0 and 2 together */
    const vec packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(v, v), 0x08);
    v_store_half(p, _mm256_castsi256_si128(packed));
}

/* the largest of the lanes, signed */
VEC uint32_t v_max_lane_i32(vec v)
{
    __m128i h =
        _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    h = _mm_max_epi32(h, _mm_shuffle_epi32(h, 0x4e));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epi32(h, _mm_shuffle_epi32(h, 0xb1)));
}

/* one bit a lane where a >= b, signed */
VEC uint32_t v_at_least_i32(vec a, vec b)
{
    return 0xffu & ~(uint32_t)_mm256_movemask_ps(ps(_mm256_cmpgt_epi32(b, a)));
}

/* v where key < limit, else 0 */
VEC vec v_keep_below_i32(vec v, vec key, vec limit)
{
    return _mm256_and_si256(v, _mm256_cmpgt_epi32(limit, key));
}

/* 0 for what is NaN or Inf */
VEC vec v_finite_f32(vec v)
{
    const vec magnitude = _mm256_and_si256(v, _mm256_set1_epi32(INT32_MAX));
    return v_keep_below_i32(v, magnitude, _mm256_set1_epi32(0x7f800000));
}

/* the lanes of v named by mask, in order; writes a whole vec */
VEC void v_compress_i32(uint32_t *p, vec v, uint32_t mask)
{
    const uint64_t lanes = _pdep_u64(mask, 0x0101010101010101u) * 0xff;
    const uint64_t order = _pext_u64(0x0706050403020100u, lanes);
    const vec from = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)order));
    v_store(p, _mm256_permutevar8x32_epi32(v, from));
}

/* the lowest bytes of the lanes of a, b, c, d, in order; the lanes are below 256 */
VEC void v_store_u8x4(uint8_t *p, vec a, vec b, vec c, vec d)
{
    /* packs work within 128-bit halves: a0 b0 c0 d0 a1 b1 c1 d1, four bytes each */
    const vec packed =
        _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d));
    const vec order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    v_store(p, _mm256_permutevar8x32_epi32(packed, order));
}

/* of one; VEC_LANES bytes */
VEC void v_store_u8(uint8_t *p, vec v)
{
    const __m128i low = _mm256_castsi256_si128(v),
                  high = _mm256_extracti128_si256(v, 1);
    const __m128i words = _mm_packus_epi32(low, high);
    _mm_storel_epi64((void *)p, _mm_packus_epi16(words, words));
}

VEC vec v_set_i64(uint64_t v) { return _mm256_set1_epi64x((long long)v); }
VEC vec v_shl_any_i64(vec v, int bits)
{
    return _mm256_sll_epi64(v, _mm_cvtsi32_si128(bits));
}
VEC vec v_shr_any_i64(vec v, int bits)
{
    return _mm256_srl_epi64(v, _mm_cvtsi32_si128(bits));
}

VEC long long word_at(const uint8_t *p)
{
    long long w;
    memcpy(&w, p, sizeof w);
    return w;
}

/* 64-bit words that begin every `stride` bytes; stored from the first on, so that what
 * a word has beyond its stride is overwritten */
VEC vec v_load_words(const uint8_t *p, size_t stride)
{
    return _mm256_setr_epi64x(word_at(p), word_at(p + stride), word_at(p + 2 * stride),
                              word_at(p + 3 * stride));
}

VEC void v_store_words(uint8_t *p, vec v, size_t stride)
{
    const __m128i low = _mm256_castsi256_si128(v),
                  high = _mm256_extracti128_si256(v, 1);
    _mm_storel_epi64((void *)p, low);
    _mm_storel_epi64((void *)(p + stride), _mm_unpackhi_epi64(low, low));
    _mm_storel_epi64((void *)(p + 2 * stride), high);
    _mm_storel_epi64((void *)(p + 3 * stride), _mm_unpackhi_epi64(high, high));
}

VEC vec v_load_u8(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
}

/* 16-bit elements, one per 32-bit lane */
VEC vec v_load_u16(const uint8_t *p)
{
    return _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p));
}

/* the lower bytes of 16-bit lanes, whose upper ones are 0; VEC_BYTES / 2 of them */
VEC void v_store_u16_u8(uint8_t *p, vec v)
{
    const __m128i low = _mm256_castsi256_si128(v),
                  high = _mm256_extracti128_si256(v, 1);
    _mm_storeu_si128((void *)p, _mm_packus_epi16(low, high));
}

/* bytes, one per 16 bits */
VEC vec v_load_u8_u16(const uint8_t *p)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)p));
}

#endif
