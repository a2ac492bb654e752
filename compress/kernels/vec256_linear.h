/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More of vec256.h: linear transforms and table look-ups. vec512_linear.h defines the
 * same names.
 */
#ifndef COMPRESS_KERNELS_VEC256_LINEAR_H
#define COMPRESS_KERNELS_VEC256_LINEAR_H

#include <immintrin.h>

#include "compress/kernels/vec256.h"

/* clang-format off */

/* a * b + c, rounded once */
VEC vec v_fma_f32(vec a, vec b, vec c)
{
    return of_ps(_mm256_fmadd_ps(ps(a), ps(b), ps(c)));
}

/* negate lane j if bit j is set */
VEC vec v_flip_signs(vec v, uint32_t bits)
{
    const vec at = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    const vec minus = _mm256_sllv_epi32(_mm256_set1_epi32((int)bits), at);
    return _mm256_xor_si256(v, _mm256_and_si256(minus, _mm256_set1_epi32(INT32_MIN)));
}

/* (a, b) -> (a + b, a - b) for lanes 4, then 2, then 1 apart. A product with 1 or -1 is
 * exact, so only the sum is rounded. */
VEC vec v_butterfly_lanes(vec v)
{
    const __m256 far = _mm256_setr_ps(1, 1, 1, 1, -1, -1, -1, -1);
    const __m256 mid = _mm256_setr_ps(1, 1, -1, -1, 1, 1, -1, -1);
    const __m256 near = _mm256_setr_ps(1, -1, 1, -1, 1, -1, 1, -1);
    __m256 x = ps(v);
    x = _mm256_fmadd_ps(x, far, _mm256_permute2f128_ps(x, x, 1));
    x = _mm256_fmadd_ps(x, mid, _mm256_permute_ps(x, _MM_SHUFFLE(1, 0, 3, 2)));
    x = _mm256_fmadd_ps(x, near, _mm256_permute_ps(x, _MM_SHUFFLE(2, 3, 0, 1)));
    return of_ps(x);
}

enum { V_TILE_ROWS = 6 /* by two vecs; fits into 16 registers */ };

/* lane j of vec i becomes lane i of vec j */
VEC void v_transpose(vec t[8])
{
    __m256 a[8], b[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm256_unpacklo_ps(ps(t[i]), ps(t[i + 1]));
        a[i + 1] = _mm256_unpackhi_ps(ps(t[i]), ps(t[i + 1]));
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 4) {
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            const __m256d low = _mm256_castps_pd(a[i + j]),
                          high = _mm256_castps_pd(a[i + j + 2]);
            b[i + 2 * j] = _mm256_castpd_ps(_mm256_unpacklo_pd(low, high));
            b[i + 2 * j + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low, high));
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[i] = of_ps(_mm256_permute2f128_ps(b[i], b[i + 4], 0x20));
        t[i + 4] = of_ps(_mm256_permute2f128_ps(b[i], b[i + 4], 0x31));
    }
}

/* the upper halves of the products, unsigned */
VEC vec v_mul_high_u32(vec a, vec b)
{
    const vec even = _mm256_srli_epi64(_mm256_mul_epu32(a, b), 32);
    const vec odd =
        _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
    return _mm256_blend_epi32(even, odd, 0xaa);
}

/* v + 1 where a < b */
VEC vec v_count_less_f32(vec v, vec a, vec b)
{
    const __m256 less = _mm256_cmp_ps(ps(a), ps(b), _CMP_LT_OQ);
    return _mm256_sub_epi32(v, of_ps(less));
}

/* a table of 32 words; look up the lanes of i, below 32 */
struct vec_table32 {
    vec part[4];
};

VEC struct vec_table32 v_table32(const uint32_t *words)
{
    return (struct vec_table32){
        {v_load(words), v_load(words + 8), v_load(words + 16), v_load(words + 24)}};
}

VEC vec v_look_up32(const struct vec_table32 *t, vec i)
{
    const __m256 bit3 = ps(v_shl_i32(i, 28)), bit4 = ps(v_shl_i32(i, 27));
    const __m256 low =
        _mm256_blendv_ps(ps(_mm256_permutevar8x32_epi32(t->part[0], i)),
                         ps(_mm256_permutevar8x32_epi32(t->part[1], i)), bit3);
    const __m256 high =
        _mm256_blendv_ps(ps(_mm256_permutevar8x32_epi32(t->part[2], i)),
                         ps(_mm256_permutevar8x32_epi32(t->part[3], i)), bit3);
    return of_ps(_mm256_blendv_ps(low, high, bit4));
}

/* a table of 16 bytes; look up the bytes of i, below 16 */
VEC vec v_table16(const uint8_t *bytes)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i_u *)bytes));
}

VEC vec v_look_up16(vec table, vec i) { return _mm256_shuffle_epi8(table, i); }

#endif
