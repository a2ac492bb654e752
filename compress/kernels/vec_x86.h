/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions with the same instructions in 256 and 512 bits. vec256.h and vec512.h
 * include this file after they have defined MM(name), the intrinsic `name` of their
 * width, the types, the casts, the loads and the stores.
 */
/* one instruction per line */
/* clang-format off */

VEC void v_fence(void) { _mm_sfence(); }
VEC vec v_set_i32(uint32_t v) { return MM(set1_epi32)((int)v); }
VEC vec v_set_f32(float v) { return of_ps(MM(set1_ps)(v)); }
VEC vec v_set_f64(double v) { return of_pd(MM(set1_pd)(v)); }

/* one element in the lowest lane, zero elsewhere */
VEC vec v_load1(const void *p, size_t bytes)
{
    uint64_t u = 0;
    memcpy(&u, p, bytes);
    return from128(_mm_cvtsi64_si128((long long)u));
}

VEC void v_store1(void *p, vec v, size_t bytes)
{
    const uint64_t u = (uint64_t)_mm_cvtsi128_si64(low128(v));
    memcpy(p, &u, bytes);
}

VEC vec v_add_f32(vec a, vec b) { return of_ps(MM(add_ps)(ps(a), ps(b))); }
VEC vec v_mul_f32(vec a, vec b) { return of_ps(MM(mul_ps)(ps(a), ps(b))); }
VEC vec v_div_f32(vec a, vec b) { return of_ps(MM(div_ps)(ps(a), ps(b))); }
VEC vec v_add_f64(vec a, vec b) { return of_pd(MM(add_pd)(pd(a), pd(b))); }
VEC vec v_mul_f64(vec a, vec b) { return of_pd(MM(mul_pd)(pd(a), pd(b))); }
VEC vec v_div_f64(vec a, vec b) { return of_pd(MM(div_pd)(pd(a), pd(b))); }

/* a < b || isnan(a) ? a : b, and a > b …; the instructions alone return b for any
 * NaN */
VEC vec v_min_f32(vec a, vec b) { return v_or_nan_f32(a, MM(min_ps)(ps(a), ps(b))); }
VEC vec v_max_f32(vec a, vec b) { return v_or_nan_f32(a, MM(max_ps)(ps(a), ps(b))); }
VEC vec v_min_f64(vec a, vec b) { return v_or_nan_f64(a, MM(min_pd)(pd(a), pd(b))); }
VEC vec v_max_f64(vec a, vec b) { return v_or_nan_f64(a, MM(max_pd)(pd(a), pd(b))); }

VEC vec v_add_i8(vec a, vec b) { return MM(add_epi8)(a, b); }
VEC vec v_min_i8(vec a, vec b) { return MM(min_epi8)(a, b); }
VEC vec v_max_i8(vec a, vec b) { return MM(max_epi8)(a, b); }
VEC vec v_add_i32(vec a, vec b) { return MM(add_epi32)(a, b); }
VEC vec v_mul_i32(vec a, vec b) { return MM(mullo_epi32)(a, b); }
VEC vec v_min_i32(vec a, vec b) { return MM(min_epi32)(a, b); }
VEC vec v_max_i32(vec a, vec b) { return MM(max_epi32)(a, b); }
VEC vec v_add_i64(vec a, vec b) { return MM(add_epi64)(a, b); }
VEC vec v_add_i16(vec a, vec b) { return MM(add_epi16)(a, b); }
VEC vec v_mul_i16(vec a, vec b) { return MM(mullo_epi16)(a, b); }
VEC vec v_min_i16(vec a, vec b) { return MM(min_epi16)(a, b); }
VEC vec v_max_i16(vec a, vec b) { return MM(max_epi16)(a, b); }
VEC vec v_min_u8(vec a, vec b) { return MM(min_epu8)(a, b); }
VEC vec v_max_u8(vec a, vec b) { return MM(max_epu8)(a, b); }
VEC vec v_min_u16(vec a, vec b) { return MM(min_epu16)(a, b); }
VEC vec v_max_u16(vec a, vec b) { return MM(max_epu16)(a, b); }
VEC vec v_min_u32(vec a, vec b) { return MM(min_epu32)(a, b); }
VEC vec v_max_u32(vec a, vec b) { return MM(max_epu32)(a, b); }
#define v_shl_i32(a, bits) MM(slli_epi32)(a, bits)
#define v_shr_i32(a, bits) MM(srli_epi32)(a, bits)

/* half-width elements, one per 32-bit lane; VEC_BYTES / 2 in memory */
VEC vec v_load_f16(const void *p)
{
    return of_ps(MM(cvtph_ps)(v_load_half(p)));
}

VEC vec_half v_pack_f16(vec v)
{
    return MM(cvtps_ph)(ps(v), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

VEC vec v_load_bf16(const void *p)
{
    return MM(slli_epi32)(MM(cvtepu16_epi32)(v_load_half(p)), 16);
}

VEC void v_store_f16(void *p, vec v) { v_store_half(p, v_pack_f16(v)); }
VEC void v_store_bf16(void *p, vec v) { v_store_half(p, v_pack_bf16(v)); }
VEC void v_stream_f16(void *p, vec v) { v_stream_half(p, v_pack_f16(v)); }
VEC void v_stream_bf16(void *p, vec v) { v_stream_half(p, v_pack_bf16(v)); }

VEC vec v_load1_f16(const void *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return from128(_mm_castps_si128(_mm_cvtph_ps(_mm_cvtsi32_si128(h))));
}

VEC vec v_load1_bf16(const void *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return from128(_mm_cvtsi32_si128((int)((uint32_t)h << 16)));
}

VEC void v_store1_f16(void *p, vec v) { v_store1_half(p, v_pack_f16(v)); }
VEC void v_store1_bf16(void *p, vec v) { v_store1_half(p, v_pack_bf16(v)); }

/* v > low ? v : low, then v < high ? v : high */
VEC vec v_clamp_f32(vec v, vec low, vec high)
{
    return of_ps(MM(min_ps)(MM(max_ps)(ps(v), ps(low)), ps(high)));
}

VEC vec v_sub_i32(vec a, vec b) { return MM(sub_epi32)(a, b); }
VEC vec v_sub_f32(vec a, vec b) { return of_ps(MM(sub_ps)(ps(a), ps(b))); }
VEC vec v_to_f32(vec v) { return of_ps(MM(cvtepi32_ps)(v)); }
VEC vec v_truncate(vec v) { return MM(cvttps_epi32)(ps(v)); }

/* all ones where negative */
VEC vec v_sign_i32(vec v) { return MM(srai_epi32)(v, 31); }

VEC vec v_shl_any_i32(vec v, int bits)
{
    return MM(sll_epi32)(v, _mm_cvtsi32_si128(bits));
}

VEC vec v_shr_any_i32(vec v, int bits)
{
    return MM(srl_epi32)(v, _mm_cvtsi32_si128(bits));
}

VEC vec v_shl_any_i64(vec v, int bits)
{
    return MM(sll_epi64)(v, _mm_cvtsi32_si128(bits));
}

VEC vec v_shr_any_i64(vec v, int bits)
{
    return MM(srl_epi64)(v, _mm_cvtsi32_si128(bits));
}

VEC long long word_at(const uint8_t *p)
{
    long long w;
    memcpy(&w, p, sizeof w);
    return w;
}

/* 16-bit elements, one per 32-bit lane */
VEC vec v_load_u16(const uint8_t *p)
{
    return MM(cvtepu16_epi32)(v_load_half(p));
}

/* bytes, one per 16-bit lane */
VEC vec v_load_u8_u16(const uint8_t *p)
{
    return MM(cvtepu8_epi16)(v_load_half(p));
}
