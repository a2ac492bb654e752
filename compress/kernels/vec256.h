/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The 256-bit vector of kernels_vec.h: AVX2, F16C. vec512.h defines the same names for
 * 512 bits. A vec is 32 untyped bytes; the suffix of a function names the element type.
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
typedef __m128i vec_half;
#define MM(name) _mm256_##name

/* one instruction per line */
/* clang-format off */

VEC __m256 ps(vec v) { return _mm256_castsi256_ps(v); }
VEC __m256d pd(vec v) { return _mm256_castsi256_pd(v); }
VEC vec of_ps(__m256 v) { return _mm256_castps_si256(v); }
VEC vec of_pd(__m256d v) { return _mm256_castpd_si256(v); }
VEC __m128i low128(vec v) { return _mm256_castsi256_si128(v); }
VEC vec from128(__m128i v) { return _mm256_zextsi128_si256(v); }

/* whole vectors; loads and stores are unaligned */
VEC vec v_load(const void *p) { return _mm256_loadu_si256((const __m256i_u *)p); }
VEC void v_store(void *p, vec v) { _mm256_storeu_si256((__m256i_u *)p, v); }
VEC void v_stream(void *p, vec v) { _mm256_stream_si256((__m256i *)p, v); }
VEC vec v_zero(void) { return _mm256_setzero_si256(); }
VEC vec v_iota(void) { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
VEC vec v_and(vec a, vec b) { return _mm256_and_si256(a, b); }
VEC vec v_or(vec a, vec b) { return _mm256_or_si256(a, b); }
VEC vec v_xor(vec a, vec b) { return _mm256_xor_si256(a, b); }

/* half-width elements, one per 32-bit lane; VEC_BYTES / 2 in memory */
VEC vec_half v_load_half(const void *p) { return _mm_loadu_si128((const void *)p); }
VEC void v_store_half(void *p, vec_half h) { _mm_storeu_si128((__m128i_u *)p, h); }
VEC void v_stream_half(void *p, vec_half h) { _mm_stream_si128((__m128i *)p, h); }

VEC vec_half v_pack_bf16(vec v)
{
    const vec odd = _mm256_and_si256(_mm256_srli_epi32(v, 16), _mm256_set1_epi32(1));
    const vec up =
        _mm256_add_epi32(v, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const vec quiet = _mm256_or_si256(v, _mm256_set1_epi32(0x400000));
    const __m256 nan = _mm256_cmp_ps(ps(v), ps(v), _CMP_UNORD_Q);
    const vec r = of_ps(_mm256_blendv_ps(ps(up), ps(quiet), nan));
    const vec h = _mm256_srli_epi32(r, 16);
    /* packs within 128-bit halves: move quadwords 0 and 2 together */
    const vec packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(h, h), 0x08);
    return _mm256_castsi256_si128(packed);
}

VEC void v_store1_half(void *p, vec_half h)
{
    const uint16_t u = (uint16_t)_mm_cvtsi128_si32(h);
    memcpy(p, &u, sizeof u);
}

/* r, but a where a is NaN */
VEC vec v_or_nan_f32(vec a, __m256 r)
{
    return of_ps(_mm256_blendv_ps(r, ps(a), _mm256_cmp_ps(ps(a), ps(a), _CMP_UNORD_Q)));
}

VEC vec v_or_nan_f64(vec a, __m256d r)
{
    return of_pd(_mm256_blendv_pd(r, pd(a), _mm256_cmp_pd(pd(a), pd(a), _CMP_UNORD_Q)));
}

#include "compress/kernels/vec_x86.h"

VEC vec v_min_i64(vec a, vec b)
{
    return _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b));
}

VEC vec v_max_i64(vec a, vec b)
{
    return _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(a, b));
}

VEC vec v_above_u64(vec a, vec b)
{
    const vec least = _mm256_set1_epi64x(INT64_MIN);
    return _mm256_cmpgt_epi64(_mm256_xor_si256(a, least), _mm256_xor_si256(b, least));
}

VEC vec v_min_u64(vec a, vec b) { return _mm256_blendv_epi8(a, b, v_above_u64(a, b)); }
VEC vec v_max_u64(vec a, vec b) { return _mm256_blendv_epi8(b, a, v_above_u64(a, b)); }

/* ---- for codecs ---------------------------------------------------------------- */

/* round towards minus infinity, to integers in range */
VEC vec v_floor_i32(vec v) { return _mm256_cvttps_epi32(_mm256_floor_ps(ps(v))); }

/* look up lanes in a table in a vec; in a table in memory */
VEC vec v_pick_f32(vec table, vec i) { return _mm256_permutevar8x32_epi32(table, i); }

VEC vec v_gather_f32(const float *p, vec i)
{
    return of_ps(_mm256_i32gather_ps(p, i, 4));
}

/* the lower halves of the lanes, which are below 65536; stores VEC_BYTES / 2 */
VEC void v_store_u16(void *p, vec v)
{
    /* packs within 128-bit halves: move quadwords 0 and 2 together */
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

/* prefix sum of the lanes; the last lane, in all lanes */
VEC vec v_prefix_i32(vec v)
{
    v = _mm256_add_epi32(v, _mm256_slli_si256(v, 4));
    v = _mm256_add_epi32(v, _mm256_slli_si256(v, 8));
    const vec low = _mm256_permute2x128_si256(v, v, 0x08); /* moved to the upper half */
    return _mm256_add_epi32(v, _mm256_shuffle_epi32(low, 0xff));
}

VEC vec v_last_i32(vec v)
{
    return _mm256_permutevar8x32_epi32(v, _mm256_set1_epi32(7));
}

/* one bit per lane where a >= b, signed */
VEC uint32_t v_at_least_i32(vec a, vec b)
{
    return 0xffu & ~(uint32_t)_mm256_movemask_ps(ps(_mm256_cmpgt_epi32(b, a)));
}

/* v where key < limit, else 0 */
VEC vec v_keep_below_i32(vec v, vec key, vec limit)
{
    return _mm256_and_si256(v, _mm256_cmpgt_epi32(limit, key));
}

/* 0 for NaN and Inf */
VEC vec v_finite_f32(vec v)
{
    const vec magnitude = _mm256_and_si256(v, _mm256_set1_epi32(INT32_MAX));
    return v_keep_below_i32(v, magnitude, _mm256_set1_epi32(0x7f800000));
}

/* the lanes of v selected by mask, in order; writes a whole vec */
VEC void v_compress_i32(uint32_t *p, vec v, uint32_t mask)
{
    const uint64_t lanes = _pdep_u64(mask, 0x0101010101010101u) * 0xff;
    const uint64_t order = _pext_u64(0x0706050403020100u, lanes);
    const vec from = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)order));
    v_store(p, _mm256_permutevar8x32_epi32(v, from));
}

/* the lanes of a, b, c, d as bytes, in order; lanes are below 256 */
VEC void v_store_u8x4(uint8_t *p, vec a, vec b, vec c, vec d)
{
    /* packs within 128-bit halves: a0 b0 c0 d0 a1 b1 c1 d1, four bytes each */
    const vec packed =
        _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d));
    const vec order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    v_store(p, _mm256_permutevar8x32_epi32(packed, order));
}

/* the lanes of one vec as VEC_LANES bytes */
VEC void v_store_u8(uint8_t *p, vec v)
{
    const __m128i low = _mm256_castsi256_si128(v),
                  high = _mm256_extracti128_si256(v, 1);
    const __m128i words = _mm_packus_epi32(low, high);
    _mm_storel_epi64((void *)p, _mm_packus_epi16(words, words));
}

VEC vec v_set_i64(uint64_t v) { return _mm256_set1_epi64x((long long)v); }

#define V_BITS 1

/* expand VEC_BYTES bits to bytes of 0 or 1 */
VEC vec v_open_bits(const uint8_t *p)
{
    const __m256i byte = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202,
                                            0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    int32_t bits;
    memcpy(&bits, p, sizeof bits);
    const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32(bits), byte);
    return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit),
                            _mm256_set1_epi8(1));
}

/* collect the lowest bit of each byte */
VEC void v_close_bits(uint8_t *p, vec v)
{
    const int32_t bits = _mm256_movemask_epi8(_mm256_slli_epi16(v, 7));
    memcpy(p, &bits, sizeof bits);
}

/* 64-bit words that start every `stride` bytes; stored in order, so that each
 * overwrites what the previous one wrote beyond its stride */
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

/* 16-bit lanes, below 256, as bytes; stores VEC_BYTES / 2 */
VEC void v_store_u16_u8(uint8_t *p, vec v)
{
    const __m128i low = _mm256_castsi256_si128(v),
                  high = _mm256_extracti128_si256(v, 1);
    _mm_storeu_si128((void *)p, _mm_packus_epi16(low, high));
}

#endif
