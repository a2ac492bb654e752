/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The 512-bit vector of kernels_vec.h: AVX-512 F, BW, DQ, VL. Defines the names of
 * vec256.h.
 */
#ifndef COMPRESS_KERNELS_VEC512_H
#define COMPRESS_KERNELS_VEC512_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define VEC static inline __attribute__((always_inline, unused))
#define VEC_ISA "avx512"
#define VEC_TABLE trib_kernels_avx512

enum { VEC_BYTES = 64, VEC_LANES = 16 /* of 32 bits */ };

typedef __m512i vec;
typedef __m256i vec_half;
#define MM(name) _mm512_##name

/* one instruction per line */
/* clang-format off */

VEC __m512 ps(vec v) { return _mm512_castsi512_ps(v); }
VEC __m512d pd(vec v) { return _mm512_castsi512_pd(v); }
VEC vec of_ps(__m512 v) { return _mm512_castps_si512(v); }
VEC vec of_pd(__m512d v) { return _mm512_castpd_si512(v); }
VEC __m128i low128(vec v) { return _mm512_castsi512_si128(v); }
VEC vec from128(__m128i v) { return _mm512_zextsi128_si512(v); }

/* whole vectors; loads and stores are unaligned */
VEC vec v_load(const void *p) { return _mm512_loadu_si512(p); }
VEC void v_store(void *p, vec v) { _mm512_storeu_si512(p, v); }
VEC void v_stream(void *p, vec v) { _mm512_stream_si512((void *)p, v); }
VEC vec v_zero(void) { return _mm512_setzero_si512(); }

VEC vec v_iota(void)
{
    return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

VEC vec v_and(vec a, vec b) { return _mm512_and_si512(a, b); }
VEC vec v_or(vec a, vec b) { return _mm512_or_si512(a, b); }
VEC vec v_xor(vec a, vec b) { return _mm512_xor_si512(a, b); }

/* half-width elements, one per 32-bit lane; VEC_BYTES / 2 in memory */
VEC vec_half v_load_half(const void *p) { return _mm256_loadu_si256(p); }
VEC void v_store_half(void *p, vec_half h) { _mm256_storeu_si256((void *)p, h); }
VEC void v_stream_half(void *p, vec_half h) { _mm256_stream_si256((void *)p, h); }

VEC vec_half v_pack_bf16(vec v)
{
    const vec odd = _mm512_and_si512(_mm512_srli_epi32(v, 16), _mm512_set1_epi32(1));
    const vec up =
        _mm512_add_epi32(v, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const vec quiet = _mm512_or_si512(v, _mm512_set1_epi32(0x400000));
    const __mmask16 nan = _mm512_cmp_ps_mask(ps(v), ps(v), _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(
        _mm512_srli_epi32(_mm512_mask_mov_epi32(up, nan, quiet), 16));
}

VEC void v_store1_half(void *p, vec_half h)
{
    const uint16_t u = (uint16_t)_mm_cvtsi128_si32(_mm256_castsi256_si128(h));
    memcpy(p, &u, sizeof u);
}

/* r, but a where a is NaN */
VEC vec v_or_nan_f32(vec a, __m512 r)
{
    const __mmask16 nan = _mm512_cmp_ps_mask(ps(a), ps(a), _CMP_UNORD_Q);
    return of_ps(_mm512_mask_mov_ps(r, nan, ps(a)));
}

VEC vec v_or_nan_f64(vec a, __m512d r)
{
    const __mmask8 nan = _mm512_cmp_pd_mask(pd(a), pd(a), _CMP_UNORD_Q);
    return of_pd(_mm512_mask_mov_pd(r, nan, pd(a)));
}

#include "compress/kernels/vec_x86.h"

VEC vec v_min_i64(vec a, vec b) { return _mm512_min_epi64(a, b); }
VEC vec v_max_i64(vec a, vec b) { return _mm512_max_epi64(a, b); }

VEC vec v_min_u64(vec a, vec b) { return _mm512_min_epu64(a, b); }
VEC vec v_max_u64(vec a, vec b) { return _mm512_max_epu64(a, b); }

/* ---- for codecs ---------------------------------------------------------------- */

/* round towards minus infinity, to integers in range */
VEC vec v_floor_i32(vec v)
{
    return _mm512_cvt_roundps_epi32(ps(v), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}

/* look up lanes in a table in a vec; in a table in memory */
VEC vec v_pick_f32(vec table, vec i) { return _mm512_permutexvar_epi32(i, table); }

VEC vec v_gather_f32(const float *p, vec i)
{
    return of_ps(_mm512_i32gather_ps(i, p, 4));
}

/* the lower halves of the lanes, which are below 65536; stores VEC_BYTES / 2 */
VEC void v_store_u16(void *p, vec v) { v_store_half(p, _mm512_cvtepi32_epi16(v)); }

/* the largest of the lanes, signed */
VEC uint32_t v_max_lane_i32(vec v) { return (uint32_t)_mm512_reduce_max_epi32(v); }

/* prefix sum of the lanes; the last lane, in all lanes */
VEC vec v_prefix_i32(vec v)
{
    const vec zero = _mm512_setzero_si512();
    v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 15));
    v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 14));
    v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 12));
    return _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 8));
}

VEC vec v_last_i32(vec v) { return _mm512_permutexvar_epi32(_mm512_set1_epi32(15), v); }

/* one bit per lane where a >= b, signed */
VEC uint32_t v_at_least_i32(vec a, vec b) { return _mm512_cmpge_epi32_mask(a, b); }

/* v where key < limit, else 0 */
VEC vec v_keep_below_i32(vec v, vec key, vec limit)
{
    return _mm512_maskz_mov_epi32(_mm512_cmplt_epi32_mask(key, limit), v);
}

/* 0 for NaN and Inf; one nibble per class: NaN (0, 1) and Inf (4, 5) become 0 (8) */
VEC vec v_finite_f32(vec v)
{
    return of_ps(_mm512_fixupimm_ps(ps(v), ps(v), _mm512_set1_epi32(0x00880088), 0));
}

/* the lanes of v selected by mask, in order; writes a whole vec */
VEC void v_compress_i32(uint32_t *p, vec v, uint32_t mask)
{
    /* via a register: the form with a memory operand is slow on Zen 4 */
    v_store(p, _mm512_maskz_compress_epi32((__mmask16)mask, v));
}

/* the lanes of a, b, c, d as bytes, in order; lanes are below 256 */
VEC void v_store_u8x4(uint8_t *p, vec a, vec b, vec c, vec d)
{
    /* packs within 128 bits: a0 b0 c0 d0 a1 b1 …, four bytes each */
    const vec packed =
        _mm512_packus_epi16(_mm512_packus_epi32(a, b), _mm512_packus_epi32(c, d));
    const vec order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    v_store(p, _mm512_permutexvar_epi32(order, packed));
}

/* the lanes of one vec as VEC_LANES bytes */
VEC void v_store_u8(uint8_t *p, vec v)
{
    _mm_storeu_si128((void *)p, _mm512_cvtepi32_epi8(v));
}

VEC vec v_set_i64(uint64_t v) { return _mm512_set1_epi64((long long)v); }

#define V_BITS 1

/* expand VEC_BYTES bits to bytes of 0 or 1 */
VEC vec v_open_bits(const uint8_t *p)
{
    return _mm512_maskz_set1_epi8(word_at(p), 1);
}

/* collect the lowest bit of each byte */
VEC void v_close_bits(uint8_t *p, vec v)
{
    const uint64_t bits = _mm512_test_epi8_mask(v, _mm512_set1_epi8(1));
    memcpy(p, &bits, sizeof bits);
}

/* 64-bit words that start every `stride` bytes; stored in order, so that each
 * overwrites what the previous one wrote beyond its stride */
VEC vec v_load_words(const uint8_t *p, size_t stride)
{
    return _mm512_setr_epi64(word_at(p), word_at(p + stride), word_at(p + 2 * stride),
                             word_at(p + 3 * stride), word_at(p + 4 * stride),
                             word_at(p + 5 * stride), word_at(p + 6 * stride),
                             word_at(p + 7 * stride));
}

VEC void v_store_pair(uint8_t *p, __m128i v, size_t stride)
{
    _mm_storel_epi64((void *)p, v);
    _mm_storel_epi64((void *)(p + stride), _mm_unpackhi_epi64(v, v));
}

VEC void v_store_words(uint8_t *p, vec v, size_t stride)
{
    v_store_pair(p, _mm512_castsi512_si128(v), stride);
    v_store_pair(p + 2 * stride, _mm512_extracti32x4_epi32(v, 1), stride);
    v_store_pair(p + 4 * stride, _mm512_extracti32x4_epi32(v, 2), stride);
    v_store_pair(p + 6 * stride, _mm512_extracti32x4_epi32(v, 3), stride);
}

VEC vec v_load_u8(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p));
}

/* 16-bit lanes, below 256, as bytes; stores VEC_BYTES / 2 */
VEC void v_store_u16_u8(uint8_t *p, vec v)
{
    _mm256_storeu_si256((void *)p, _mm512_cvtepi16_epi8(v));
}

#endif
