/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Vector kernels: one struct of function pointers. kernels_c.c is the reference and the
 * specification; kernels_avx2.c and kernels_avx512.c overwrite what they do faster.
 */
#ifndef COMPRESS_KERNELS_H
#define COMPRESS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/types.h>

#define TRIB_REDUCE_MAX_SRC 8
#define TRIB_REDUCE_MAX_DST 8

/*
 * A k-ary reduction: every dst[j][i] = scale(src[0][i] op src[1][i] op … in this order).
 * n_src >= 1, n_dst >= 1. A dst may equal a src exactly (same pointer), never overlap it
 * otherwise. Pointers are aligned to nothing more than one byte: user buffers may be
 * unaligned. f16 and bf16 accumulate in f32 and round once, to nearest even.
 * ranks: 0 for none, else the number to divide by after the sum (mean): floats multiply
 * by 1/ranks in the accumulator's precision, integers divide towards zero.
 * stream: use non-temporal stores (and fence them) where they can help: the destination
 * will not be read soon.
 */
struct trib_reduce {
    const void *src[TRIB_REDUCE_MAX_SRC];
    void *dst[TRIB_REDUCE_MAX_DST];
    int n_src;
    int n_dst;
    size_t n; /* elements */
    int ranks;
    bool stream;
};

typedef void (*trib_reduce_fn)(const struct trib_reduce *r);

struct trib_kernels {
    const char *isa; /* "c", "avx2", "avx512" */
    /* op MEAN has the same function as SUM */
    trib_reduce_fn reduce[TRIB_DTYPE_COUNT][TRIB_OP_COUNT];
    /* dtype <-> f32; f16 and bf16 round to nearest even; NaN stays NaN. To integers:
     * nearest even, saturated, NaN gives 0 */
    void (*to_f32[TRIB_DTYPE_COUNT])(float *dst, const void *src, size_t n);
    void (*from_f32[TRIB_DTYPE_COUNT])(void *dst, const float *src, size_t n);
    /* copy that may bypass the cache; any alignment */
    void (*copy_stream)(void *dst, const void *src, size_t bytes);
    /* acc += weight * src, src in f32, f16 or bf16; rounded after the product and the sum */
    void (*axpy_f32)(float *acc, const void *src, float weight, size_t n);
    void (*axpy_f16)(float *acc, const void *src, float weight, size_t n);
    void (*axpy_bf16)(float *acc, const void *src, float weight, size_t n);
};

/**
 * trib_kernels_get - the table for an instruction set.
 *
 * isa      "auto" or NULL: the best of this CPU; "c", "avx2", "avx512"
 * returns  NULL if this CPU or build lacks it
 */
const struct trib_kernels *trib_kernels_get(const char *isa);

#endif
