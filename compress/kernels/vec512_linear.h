/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More of vec512.h: linear transforms and table look-ups. Defines the names of
 * vec256_linear.h.
 */
#ifndef COMPRESS_KERNELS_VEC512_LINEAR_H
#define COMPRESS_KERNELS_VEC512_LINEAR_H

#include <immintrin.h>

#include "compress/kernels/vec512.h"

/* clang-format off */

/* a * b + c, rounded once */
VEC vec v_fma_f32(vec a, vec b, vec c)
{
    return of_ps(_mm512_fmadd_ps(ps(a), ps(b), ps(c)));
}

/* negate lane j if bit j is set */
VEC vec v_flip_signs(vec v, uint32_t bits)
{
    return _mm512_mask_xor_epi32(v, (__mmask16)bits, v, _mm512_set1_epi32(INT32_MIN));
}

/* (a, b) -> (a + b, a - b) for lanes 8, then 4, 2 and 1 apart. A product with 1 or -1
 * is exact, so only the sum is rounded. */
VEC vec v_butterfly_lanes(vec v)
{
    const __m512 one = _mm512_set1_ps(1.0f), minus = _mm512_set1_ps(-1.0f);
    const __m512 d8 = _mm512_mask_mov_ps(one, 0xff00, minus);
    const __m512 d4 = _mm512_mask_mov_ps(one, 0xf0f0, minus);
    const __m512 d2 = _mm512_mask_mov_ps(one, 0xcccc, minus);
    const __m512 d1 = _mm512_mask_mov_ps(one, 0xaaaa, minus);
    __m512 x = ps(v);
    x = _mm512_fmadd_ps(x, d8, _mm512_shuffle_f32x4(x, x, _MM_SHUFFLE(1, 0, 3, 2)));
    x = _mm512_fmadd_ps(x, d4, _mm512_shuffle_f32x4(x, x, _MM_SHUFFLE(2, 3, 0, 1)));
    x = _mm512_fmadd_ps(x, d2, _mm512_permute_ps(x, _MM_SHUFFLE(1, 0, 3, 2)));
    x = _mm512_fmadd_ps(x, d1, _mm512_permute_ps(x, _MM_SHUFFLE(2, 3, 0, 1)));
    return of_ps(x);
}

enum { V_TILE_ROWS = 12 /* by two vecs; fits into 32 registers */ };

/* lane j of vec i becomes lane i of vec j */
VEC void v_transpose(vec t[16])
{
    __m512 a[16], b[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 2) {
        a[i] = _mm512_unpacklo_ps(ps(t[i]), ps(t[i + 1]));
        a[i + 1] = _mm512_unpackhi_ps(ps(t[i]), ps(t[i + 1]));
    }
    /* b[4 * i + j]: columns j, j + 4, j + 8, j + 12 of rows 4 i … 4 i + 3 */
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 4) {
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            const __m512d low = _mm512_castps_pd(a[i + j]),
                          high = _mm512_castps_pd(a[i + j + 2]);
            b[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
            b[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
        }
    }
#pragma GCC unroll 16
    for (int j = 0; j < 4; j++) {
        const __m512 low = _mm512_shuffle_f32x4(b[j], b[4 + j], 0x88);
        const __m512 low2 = _mm512_shuffle_f32x4(b[8 + j], b[12 + j], 0x88);
        const __m512 high = _mm512_shuffle_f32x4(b[j], b[4 + j], 0xdd);
        const __m512 high2 = _mm512_shuffle_f32x4(b[8 + j], b[12 + j], 0xdd);
        t[j] = of_ps(_mm512_shuffle_f32x4(low, low2, 0x88));
        t[8 + j] = of_ps(_mm512_shuffle_f32x4(low, low2, 0xdd));
        t[4 + j] = of_ps(_mm512_shuffle_f32x4(high, high2, 0x88));
        t[12 + j] = of_ps(_mm512_shuffle_f32x4(high, high2, 0xdd));
    }
}

/* the upper halves of the products, unsigned */
VEC vec v_mul_high_u32(vec a, vec b)
{
    const vec even = _mm512_srli_epi64(_mm512_mul_epu32(a, b), 32);
    const vec odd =
        _mm512_mul_epu32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32));
    return _mm512_mask_mov_epi32(even, 0xaaaa, odd);
}

/* v + 1 where a < b */
VEC vec v_count_less_f32(vec v, vec a, vec b)
{
    const __mmask16 less = _mm512_cmp_ps_mask(ps(a), ps(b), _CMP_LT_OQ);
    return _mm512_mask_add_epi32(v, less, v, _mm512_set1_epi32(1));
}

/* a table of 32 words; look up the lanes of i, below 32 */
struct vec_table32 {
    vec part[2];
};

VEC struct vec_table32 v_table32(const uint32_t *words)
{
    return (struct vec_table32){{v_load(words), v_load(words + 16)}};
}

VEC vec v_look_up32(const struct vec_table32 *t, vec i)
{
    return _mm512_permutex2var_epi32(t->part[0], i, t->part[1]);
}

/* a table of 16 bytes; look up the bytes of i, below 16 */
VEC vec v_table16(const uint8_t *bytes)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)bytes));
}

VEC vec v_look_up16(vec table, vec i) { return _mm512_shuffle_epi8(table, i); }

#endif
