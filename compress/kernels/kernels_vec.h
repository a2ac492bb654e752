/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels written once in terms of a vec (vec128.h, vec256.h, vec512.h).
 * kernels_neon.c, kernels_avx2.c and kernels_avx512.c make tables of them. Results
 * equal kernels_scalar.h bit for bit. Included once, after the vec; so are the other
 * kernels_vec_*.h.
 */
#include "compress/kernels/kernels_scalar.h"
#include "compress/kernels/kernels_scalar_codec.h"
#include "compress/kernels/kernels_scalar_shared_scale.h"
#include "compress/kernels/kernels_scalar_quant.h"
#include "compress/kernels/kernels_scalar_select.h"
#if defined(__x86_64__)
#include "compress/kernels/kernels_x86_crc.h"
#else
#include "compress/kernels/kernels_scalar_crc.h"
#endif
#include "compress/kernels/kernels_scalar_bounded.h"
#include "compress/kernels/kernels_scalar_exact.h"
#include "compress/kernels/kernels_scalar_factor.h"
#include "compress/kernels/kernels_scalar_gemm.h"
#include "compress/kernels/kernels_scalar_grid.h"
#include "compress/kernels/kernels_scalar_hadamard.h"
#include "compress/kernels/kernels_scalar_located.h"
#include "compress/kernels/kernels_scalar_numbers.h"

#include "compress/kernels/kernels_vec_narrow.h"
#include "compress/kernels/kernels_vec_reduce.h"

/* ---- conversions -------------------------------------------------------------- */

KERNEL void widen(float *dst, const void *src, size_t n, const struct vec_format f)
{
    const char *s = src;
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        v_store(dst + i, f.load(s + i * f.bytes));
    for (; i < n; i++)
        v_store1_4(dst + i, f.load1(s + i * f.bytes));
}

KERNEL void narrow(void *dst, const float *src, size_t n, const struct vec_format f)
{
    char *d = dst;
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        f.store(d + i * f.bytes, v_load(src + i));
    for (; i < n; i++)
        f.store1(d + i * f.bytes, v_load1_4(src + i));
}

KERNEL void axpy(float *acc, const void *src, float weight, size_t n,
                 const struct vec_format f)
{
    const char *s = src;
    const vec w = v_set_f32(weight);
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        v_store(acc + i,
                v_add_f32(v_load(acc + i), v_mul_f32(w, f.load(s + i * f.bytes))));
    for (; i < n; i++)
        v_store1_4(acc + i, v_add_f32(v_load1_4(acc + i),
                                      v_mul_f32(w, f.load1(s + i * f.bytes))));
}

/* clang-format off */
#define VEC_AXPY(type) \
    static void axpy_##type(float *acc, const void *src, float weight, size_t n) \
    { axpy(acc, src, weight, n, vec_##type); }
#define VEC_CONVERT(type) \
    static void to_f32_##type(float *dst, const void *src, size_t n) \
    { widen(dst, src, n, vec_##type); } \
    static void from_f32_##type(void *dst, const float *src, size_t n) \
    { narrow(dst, src, n, vec_##type); }

VEC_CONVERT(f16) VEC_CONVERT(bf16) VEC_CONVERT(f8_e4m3) VEC_CONVERT(f8_e5m2)
VEC_AXPY(f32) VEC_AXPY(f16) VEC_AXPY(bf16)
    /* clang-format on */

    static void copy_stream(void *dst, const void *src, size_t bytes)
{
    char *d = dst;
    const char *s = src;
    if (bytes < STREAM_MIN_BYTES) {
        memcpy(d, s, bytes);
        return;
    }
    size_t at = head_bytes(d, 64);
    memcpy(d, s, at);
    for (; at + 128 <= bytes; at += 128) {
        vec v[128 / VEC_BYTES];
        for (int u = 0; u < 128 / VEC_BYTES; u++)
            v[u] = v_load(s + at + u * VEC_BYTES);
        for (int u = 0; u < 128 / VEC_BYTES; u++)
            v_stream(d + at + u * VEC_BYTES, v[u]);
    }
    memcpy(d + at, s + at, bytes - at);
    v_fence();
}

#include "compress/kernels/kernels_vec_codec.h"
#include "compress/kernels/kernels_vec_shared_scale.h"
#include "compress/kernels/kernels_vec_select.h"
#include "compress/kernels/kernels_vec_bounded.h"
#include "compress/kernels/kernels_vec_factor.h"
#include "compress/kernels/kernels_vec_feedback.h"
#include "compress/kernels/kernels_vec_quant.h"
#include "compress/kernels/kernels_vec_gemm.h"
#include "compress/kernels/kernels_vec_grid.h"
#include "compress/kernels/kernels_vec_hadamard.h"
#include "compress/kernels/kernels_vec_stratified.h"

#define KERNEL_OF(name) name
#include "compress/kernels/kernels_table.h"
