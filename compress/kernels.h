/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Vector kernels: one struct of function pointers. kernels_c.c is the reference and the
 * specification; kernels_avx2.c, kernels_avx512.c and kernels_neon.c overwrite what they do
 * faster.
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
 * A k-ary reduction: every dst[j][i] = scale(src[0][i] op src[1][i] op … in this
 * order). n_src >= 1, n_dst >= 1. A dst may equal a src exactly (same pointer), never
 * overlap it otherwise. Pointers are aligned to nothing more than one byte: user
 * buffers may be unaligned. f16 and bf16 accumulate in f32 and round once, to nearest
 * even. ranks: 0 for none, else the number to divide by after the sum (mean): floats
 * multiply by 1/ranks in the accumulator's precision, integers divide towards zero.
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

/*
 * Random rounding to levels. Element i of a bucket becomes the code
 *     min(floor(|x| * scale + u), highest) | (x negative ? sign : 0)
 * with u in [0, 1), the upper 24 bits of h:
 *     h = i * 0x9e3779b9 + key[0];  h ^= h >> 16;  h *= 0x7feb352d;  h ^= h >> 15;
 *     h += key[1];                  h *= 0x846ca68b
 * and a code becomes level * (1 / highest) * norm, for levels_add times weight after
 * that. For highest = 2^b - 1, b <= 7, highest * (1 / highest) is exactly 1 in float32.
 */
struct trib_levels {
    float scale; /* highest / norm */
    float norm;
    float weight;
    uint32_t highest;
    uint32_t sign; /* the bit above the level's */
    uint32_t key[2];
};

/*
 * Rounding of magnitudes to powers of two. With h as above, h = (h & noise) | fixed,
 * y = |x| * scale and e its biased exponent, the level is
 *     e > base:  min(((bits of y + (h >> 9)) >> 23) - base, highest)
 *     else       floor(y * steps + u), u in [0, 1) the upper 24 bits of h
 * and the code level | (x negative ? sign : 0). Level l > 0 becomes the float with the
 * biased exponent l + base, times norm; for octaves_add times weight after that. x is
 * finite, y * steps below 1 where it counts.
 */
struct trib_octaves {
    float scale;
    float steps;
    float norm;
    float weight;
    int32_t base;
    int32_t highest;
    uint32_t sign; /* the bit above the level's */
    uint32_t noise;
    uint32_t fixed;
    uint32_t key[2];
};

/*
 * Random rounding to levels of a table: level[0] = 0, rising to level[highest], each at least
 * 1.07 times the one below. With y = |x| * scale, at most about level[highest] = 1, level k is
 * the highest that is not above y; the number of y's bits times factor, plus offset, cut off,
 * is k or k - 1, or below 0. The code is
 *     min(floor((y - level[k]) * per_gap[k] + u), 1) + k | (x negative ? sign : 0)
 * with u as above, and becomes its level times norm; for powers_add times weight after that.
 * Both tables have room for TRIB_LEVELS_MAX.
 */
struct trib_powers {
    const float *level;
    const float *per_gap; /* 1 / (level[k + 1] - level[k]); of the highest 0 */
    float scale;
    float norm;
    float weight;
    float factor;
    float offset;
    int32_t highest;
    uint32_t sign; /* the bit above the level's */
    uint32_t key[2];
};

/*
 * Floats of 8 bits, the sign above exponent and mantissa: OCP FP8 E4M3 (bias 7, no Inf, NaN
 * 0x7f, largest 448) or E5M2 (bias 15, largest 57344). |x| * scale is rounded to nearest
 * even or, with h as above, at random between its two neighbours so that the mean is right;
 * above the largest it becomes that. x is finite. A code becomes its value times norm; for
 * f8_add times weight after that.
 */
struct trib_f8 {
    float scale;
    float norm;
    float weight;
    bool e5m2;
    bool random;
    uint32_t key[2];
};

/* Of the elements without and with a sign; sums in 16 lanes as for sum_squares. */
struct trib_sums {
    float positive;
    float negative;
    size_t n_negative;
};

/* What the codes 0 and 1 mean; for pair_add times weight. */
struct trib_pair {
    float value[2];
    float weight;
};

typedef void (*trib_reduce_fn)(const struct trib_reduce *r);

struct trib_kernels {
    const char *isa; /* "c", "avx2", "avx512", "neon" */
    /* op MEAN has the same function as SUM */
    trib_reduce_fn reduce[TRIB_DTYPE_COUNT][TRIB_OP_COUNT];
    /* dtype <-> f32; f16 and bf16 round to nearest even; NaN stays NaN. To integers:
     * nearest even, saturated, NaN gives 0 */
    void (*to_f32[TRIB_DTYPE_COUNT])(float *dst, const void *src, size_t n);
    void (*from_f32[TRIB_DTYPE_COUNT])(void *dst, const float *src, size_t n);
    /* copy that may bypass the cache; any alignment */
    void (*copy_stream)(void *dst, const void *src, size_t bytes);
    /* acc += weight * src, src in f32, f16 or bf16; rounded after the product and the
     * sum */
    void (*axpy_f32)(float *acc, const void *src, float weight, size_t n);
    void (*axpy_f16)(float *acc, const void *src, float weight, size_t n);
    void (*axpy_bf16)(float *acc, const void *src, float weight, size_t n);

    /* magnitude: the bits of |x|. They order as |x| does, NaN above Inf. */
    uint32_t (*max_magnitude)(const float *x, size_t n); /* 0 for n = 0 */
    /* sum of x[i]^2 in 16 lanes, lane i % 16, then lanes pairwise by halves */
    float (*sum_squares)(const float *x, size_t n);
    /* Positions with magnitude >= threshold, rising; returns how many. Room for n + 16:
     * writes up to 16 beyond what it returns. */
    size_t (*select_at_least)(const float *x, size_t n, uint32_t threshold,
                              uint32_t *positions_out);
    /* elements that are NaN or Inf become 0 */
    void (*drop_not_finite)(float *x, size_t n);
    /* one code a byte, from n elements, and back */
    void (*levels_encode)(uint8_t *codes, const float *x, size_t n,
                          const struct trib_levels *l);
    void (*levels_decode)(float *x, const uint8_t *codes, size_t n,
                          const struct trib_levels *l);
    void (*levels_add)(float *acc, const uint8_t *codes, size_t n,
                       const struct trib_levels *l);
    void (*octaves_encode)(uint8_t *codes, const float *x, size_t n,
                           const struct trib_octaves *o);
    void (*octaves_decode)(float *x, const uint8_t *codes, size_t n,
                           const struct trib_octaves *o);
    void (*octaves_add)(float *acc, const uint8_t *codes, size_t n,
                        const struct trib_octaves *o);
    void (*sums_by_sign)(const float *x, size_t n, struct trib_sums *out);
    void (*signs_encode)(uint8_t *codes, const float *x, size_t n); /* 1: has a sign */
    void (*pair_decode)(float *x, const uint8_t *codes, size_t n,
                        const struct trib_pair *pair);
    void (*pair_add)(float *acc, const uint8_t *codes, size_t n,
                     const struct trib_pair *pair);
    void (*powers_encode)(uint8_t *codes, const float *x, size_t n,
                          const struct trib_powers *p);
    void (*powers_decode)(float *x, const uint8_t *codes, size_t n,
                          const struct trib_powers *p);
    void (*powers_add)(float *acc, const uint8_t *codes, size_t n,
                       const struct trib_powers *p);
    /* To one of the two neighbours, so that the mean is right, by the hash above. Beyond the
     * largest finite number as from_f32. */
    void (*f16_random)(void *dst, const float *src, size_t n, const uint32_t key[2]);
    void (*bf16_random)(void *dst, const float *src, size_t n, const uint32_t key[2]);
    void (*f8_encode)(uint8_t *codes, const float *x, size_t n, const struct trib_f8 *f);
    void (*f8_decode)(float *x, const uint8_t *codes, size_t n, const struct trib_f8 *f);
    void (*f8_add)(float *acc, const uint8_t *codes, size_t n, const struct trib_f8 *f);
    /* compress/bitpack.h: codes has room for n rounded up to 8 and is changed there */
    void (*bits_pack)(uint8_t *dst, uint8_t *codes, size_t n, int bits);
    void (*bits_unpack)(uint8_t *codes, const uint8_t *src, size_t n, int bits);
};

/**
 * trib_kernels_get - the table for an instruction set.
 *
 * isa      "auto" or NULL: the best of this CPU; "c", "avx2", "avx512", "neon"
 * returns  NULL if this CPU or build lacks it
 */
const struct trib_kernels *trib_kernels_get(const char *isa);

#endif
