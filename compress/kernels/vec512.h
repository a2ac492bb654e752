/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The 512-bit vector that kernels_vec.h is written in: AVX-512 F, BW, DQ, VL. The names
 * are those of vec256.h.
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

/* an instruction a line */
/* clang-format off */

VEC __m512 ps(vec v) { return _mm512_castsi512_ps(v); }
VEC __m512d pd(vec v) { return _mm512_castsi512_pd(v); }
VEC vec of_ps(__m512 v) { return _mm512_castps_si512(v); }
VEC vec of_pd(__m512d v) { return _mm512_castpd_si512(v); }

/* whole vectors, as they are in memory */
VEC vec v_load(const void *p) { return _mm512_loadu_si512(p); }
VEC void v_store(void *p, vec v) { _mm512_storeu_si512(p, v); }
VEC void v_stream(void *p, vec v) { _mm512_stream_si512((void *)p, v); }
VEC void v_fence(void) { _mm_sfence(); }
VEC vec v_zero(void) { return _mm512_setzero_si512(); }
VEC vec v_set_i32(uint32_t v) { return _mm512_set1_epi32((int)v); }
VEC vec v_set_f32(float v) { return of_ps(_mm512_set1_ps(v)); }
VEC vec v_set_f64(double v) { return of_pd(_mm512_set1_pd(v)); }

VEC vec v_iota(void)
{
    return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

/* one element in the lowest lane, zero elsewhere */
VEC vec v_load1(const void *p, size_t bytes)
{
    uint64_t u = 0;
    memcpy(&u, p, bytes);
    return _mm512_zextsi128_si512(_mm_cvtsi64_si128((long long)u));
}

VEC void v_store1(void *p, vec v, size_t bytes)
{
    const uint64_t u = (uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(v));
    memcpy(p, &u, bytes);
}

VEC vec v_add_f32(vec a, vec b) { return of_ps(_mm512_add_ps(ps(a), ps(b))); }
VEC vec v_mul_f32(vec a, vec b) { return of_ps(_mm512_mul_ps(ps(a), ps(b))); }
VEC vec v_div_f32(vec a, vec b) { return of_ps(_mm512_div_ps(ps(a), ps(b))); }

/* a < b || isnan(a) ? a : b; the instruction alone gives b for any NaN */
VEC vec v_min_f32(vec a, vec b)
{
    const __mmask16 nan = _mm512_cmp_ps_mask(ps(a), ps(a), _CMP_UNORD_Q);
    return of_ps(_mm512_mask_mov_ps(_mm512_min_ps(ps(a), ps(b)), nan, ps(a)));
}

VEC vec v_max_f32(vec a, vec b)
{
    const __mmask16 nan = _mm512_cmp_ps_mask(ps(a), ps(a), _CMP_UNORD_Q);
    return of_ps(_mm512_mask_mov_ps(_mm512_max_ps(ps(a), ps(b)), nan, ps(a)));
}

VEC vec v_add_f64(vec a, vec b) { return of_pd(_mm512_add_pd(pd(a), pd(b))); }
VEC vec v_mul_f64(vec a, vec b) { return of_pd(_mm512_mul_pd(pd(a), pd(b))); }
VEC vec v_div_f64(vec a, vec b) { return of_pd(_mm512_div_pd(pd(a), pd(b))); }

VEC vec v_min_f64(vec a, vec b)
{
    const __mmask8 nan = _mm512_cmp_pd_mask(pd(a), pd(a), _CMP_UNORD_Q);
    return of_pd(_mm512_mask_mov_pd(_mm512_min_pd(pd(a), pd(b)), nan, pd(a)));
}

VEC vec v_max_f64(vec a, vec b)
{
    const __mmask8 nan = _mm512_cmp_pd_mask(pd(a), pd(a), _CMP_UNORD_Q);
    return of_pd(_mm512_mask_mov_pd(_mm512_max_pd(pd(a), pd(b)), nan, pd(a)));
}

VEC vec v_add_i8(vec a, vec b) { return _mm512_add_epi8(a, b); }
VEC vec v_min_i8(vec a, vec b) { return _mm512_min_epi8(a, b); }
VEC vec v_max_i8(vec a, vec b) { return _mm512_max_epi8(a, b); }
VEC vec v_add_i32(vec a, vec b) { return _mm512_add_epi32(a, b); }
VEC vec v_mul_i32(vec a, vec b) { return _mm512_mullo_epi32(a, b); }
VEC vec v_min_i32(vec a, vec b) { return _mm512_min_epi32(a, b); }
VEC vec v_max_i32(vec a, vec b) { return _mm512_max_epi32(a, b); }
VEC vec v_add_i64(vec a, vec b) { return _mm512_add_epi64(a, b); }
VEC vec v_min_i64(vec a, vec b) { return _mm512_min_epi64(a, b); }
VEC vec v_max_i64(vec a, vec b) { return _mm512_max_epi64(a, b); }
VEC vec v_and(vec a, vec b) { return _mm512_and_si512(a, b); }
VEC vec v_or(vec a, vec b) { return _mm512_or_si512(a, b); }
VEC vec v_xor(vec a, vec b) { return _mm512_xor_si512(a, b); }
#define v_shl_i32(a, bits) _mm512_slli_epi32(a, bits)
#define v_shr_i32(a, bits) _mm512_srli_epi32(a, bits)

/* half-width elements, one per 32-bit lane; in memory they take VEC_BYTES / 2 */
VEC vec v_load_f16(const void *p)
{
    return of_ps(_mm512_cvtph_ps(_mm256_loadu_si256((const void *)p)));
}

VEC __m256i v_pack_f16(vec v)
{
    return _mm512_cvtps_ph(ps(v), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

VEC vec v_load_bf16(const void *p)
{
    const __m256i h = _mm256_loadu_si256((const void *)p);
    return _mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16);
}

VEC __m256i v_pack_bf16(vec v)
{
    const vec odd = _mm512_and_si512(_mm512_srli_epi32(v, 16), _mm512_set1_epi32(1));
    const vec up =
        _mm512_add_epi32(v, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const vec quiet = _mm512_or_si512(v, _mm512_set1_epi32(0x400000));
    const __mmask16 nan = _mm512_cmp_ps_mask(ps(v), ps(v), _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(
        _mm512_srli_epi32(_mm512_mask_mov_epi32(up, nan, quiet), 16));
}

VEC void v_store_half(void *p, __m256i h) { _mm256_storeu_si256((void *)p, h); }
VEC void v_stream_half(void *p, __m256i h) { _mm256_stream_si256((void *)p, h); }
VEC void v_store_f16(void *p, vec v) { v_store_half(p, v_pack_f16(v)); }
VEC void v_store_bf16(void *p, vec v) { v_store_half(p, v_pack_bf16(v)); }
VEC void v_stream_f16(void *p, vec v) { v_stream_half(p, v_pack_f16(v)); }
VEC void v_stream_bf16(void *p, vec v) { v_stream_half(p, v_pack_bf16(v)); }

VEC vec v_load1_f16(const void *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return _mm512_zextsi128_si512(_mm_castps_si128(_mm_cvtph_ps(_mm_cvtsi32_si128(h))));
}

VEC vec v_load1_bf16(const void *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)((uint32_t)h << 16)));
}

VEC void v_store1_half(void *p, __m256i h)
{
    const uint16_t u = (uint16_t)_mm_cvtsi128_si32(_mm256_castsi256_si128(h));
    memcpy(p, &u, sizeof u);
}

VEC void v_store1_f16(void *p, vec v) { v_store1_half(p, v_pack_f16(v)); }
VEC void v_store1_bf16(void *p, vec v) { v_store1_half(p, v_pack_bf16(v)); }

/* ---- for codecs ---------------------------------------------------------------- */

/* towards minus infinity, to integers that fit */
VEC vec v_floor_i32(vec v)
{
    return _mm512_cvt_roundps_epi32(ps(v), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
/* v > low ? v : low, then v < high ? v : high */
VEC vec v_clamp_f32(vec v, vec low, vec high)
{
    return of_ps(_mm512_min_ps(_mm512_max_ps(ps(v), ps(low)), ps(high)));
}
VEC vec v_sub_i32(vec a, vec b) { return _mm512_sub_epi32(a, b); }
VEC vec v_add_i16(vec a, vec b) { return _mm512_add_epi16(a, b); }

VEC vec v_sub_f32(vec a, vec b) { return of_ps(_mm512_sub_ps(ps(a), ps(b))); }
/* lanes of a table; of one in memory */
VEC vec v_pick_f32(vec table, vec i) { return _mm512_permutexvar_epi32(i, table); }
VEC vec v_gather_f32(const float *p, vec i)
{
    return of_ps(_mm512_i32gather_ps(i, p, 4));
}
VEC vec v_to_f32(vec v) { return of_ps(_mm512_cvtepi32_ps(v)); }
VEC vec v_truncate(vec v) { return _mm512_cvttps_epi32(ps(v)); }
/* all ones where negative */
VEC vec v_sign_i32(vec v) { return _mm512_srai_epi32(v, 31); }
VEC vec v_shl_any_i32(vec v, int bits)
{
    return _mm512_sll_epi32(v, _mm_cvtsi32_si128(bits));
}

VEC vec v_shr_any_i32(vec v, int bits)
{
    return _mm512_srl_epi32(v, _mm_cvtsi32_si128(bits));
}

/* the lower halves of the lanes, which are below 65536; VEC_BYTES / 2 of them */
VEC void v_store_u16(void *p, vec v) { v_store_half(p, _mm512_cvtepi32_epi16(v)); }

/* the largest of the lanes, signed */
VEC uint32_t v_max_lane_i32(vec v) { return (uint32_t)_mm512_reduce_max_epi32(v); }

/* one bit a lane where a >= b, signed */
VEC uint32_t v_at_least_i32(vec a, vec b) { return _mm512_cmpge_epi32_mask(a, b); }

/* v where key < limit, else 0 */
VEC vec v_keep_below_i32(vec v, vec key, vec limit)
{
    return _mm512_maskz_mov_epi32(_mm512_cmplt_epi32_mask(key, limit), v);
}

/* 0 for what is NaN or Inf; a nibble a class: NaN (0, 1) and Inf (4, 5) become 0 (8) */
VEC vec v_finite_f32(vec v)
{
    return of_ps(_mm512_fixupimm_ps(ps(v), ps(v), _mm512_set1_epi32(0x00880088), 0));
}

/* the lanes of v named by mask, in order; writes a whole vec */
VEC void v_compress_i32(uint32_t *p, vec v, uint32_t mask)
{
    /* to a register first: the form with a memory operand is slow on Zen 4 */
    v_store(p, _mm512_maskz_compress_epi32((__mmask16)mask, v));
}

/* the lowest bytes of the lanes of a, b, c, d, in order; the lanes are below 256 */
VEC void v_store_u8x4(uint8_t *p, vec a, vec b, vec c, vec d)
{
    /* packs work within 128 bits: a0 b0 c0 d0 a1 b1 …, four bytes each */
    const vec packed =
        _mm512_packus_epi16(_mm512_packus_epi32(a, b), _mm512_packus_epi32(c, d));
    const vec order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    v_store(p, _mm512_permutexvar_epi32(order, packed));
}

/* of one; VEC_LANES bytes */
VEC void v_store_u8(uint8_t *p, vec v)
{
    _mm_storeu_si128((void *)p, _mm512_cvtepi32_epi8(v));
}

VEC vec v_set_i64(uint64_t v) { return _mm512_set1_epi64((long long)v); }
VEC vec v_shl_any_i64(vec v, int bits)
{
    return _mm512_sll_epi64(v, _mm_cvtsi32_si128(bits));
}
VEC vec v_shr_any_i64(vec v, int bits)
{
    return _mm512_srl_epi64(v, _mm_cvtsi32_si128(bits));
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

/* 16-bit elements, one per 32-bit lane */
VEC vec v_load_u16(const uint8_t *p)
{
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p));
}

/* the lower bytes of 16-bit lanes, whose upper ones are 0; VEC_BYTES / 2 of them */
VEC void v_store_u16_u8(uint8_t *p, vec v)
{
    _mm256_storeu_si256((void *)p, _mm512_cvtepi16_epi8(v));
}

/* bytes, one per 16 bits */
VEC vec v_load_u8_u16(const uint8_t *p)
{
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)p));
}

#endif
