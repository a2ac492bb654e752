/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Vector kernels: one struct of function pointers. kernels_c.c is the reference and the
 * specification; kernels_avx2.c, kernels_avx512.c and kernels_neon.c replace functions
 * by faster ones. All tables produce the same bits.
 */
#ifndef COMPRESS_KERNELS_KERNELS_H
#define COMPRESS_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/types.h>

#define TRIB_REDUCE_MAX_SRC 8
#define TRIB_REDUCE_MAX_DST 8

/*
 * Arguments of a k-ary reduction:
 *
 *     dst[j][i] = scale(src[0][i] op src[1][i] op …), evaluated in this order
 *
 * n_src >= 1, n_dst >= 1. A dst may equal a src (same pointer) but not overlap it
 * otherwise. Pointers need no alignment, since user buffers may be unaligned. f16 and
 * bf16 accumulate in f32 and round once, to nearest even.
 *
 * ranks: 0, or the divisor of the sum (mean). Floats divide once in the accumulator's
 * precision; integers divide towards zero.
 *
 * weight (sums of f32, f16, bf16 only): NULL, or src[k] is multiplied by weight[k],
 * rounded after each product. The sum is then divided by divisor instead of ranks,
 * unless divisor is 0.
 *
 * stream: use fenced non-temporal stores where they help, because the destination will
 * not be read soon.
 */
struct trib_reduce_args {
    const void *src[TRIB_REDUCE_MAX_SRC];
    void *dst[TRIB_REDUCE_MAX_DST];
    int n_src;
    int n_dst;
    size_t n; /* elements */
    int ranks;
    bool stream;
    float divisor;
    const float *weight; /* [n_src] */
};

/* Vectors of one-byte lanes to sum. */
struct trib_packed_ints_sum {
    const uint8_t *const *src; /* [n_src] */
    size_t n_src; /* at least 1 */
    size_t n; /* lanes */
};

/*
 * Stochastic rounding to levels. Element i of a bucket becomes the code
 *     min(floor(|x| * scale + u), highest) | (x negative ? sign : 0)
 * with u in [0, 1) from the upper 24 bits of h:
 *     h = i * 0x9e3779b9 + key[0];  h ^= h >> 16;  h *= 0x7feb352d;  h ^= h >> 15;
 *     h += key[1];                  h *= 0x846ca68b
 * A code decodes to level * (1 / highest) * norm; qsgd_add multiplies that by weight.
 * For highest = 2^b - 1, b <= 7, highest * (1 / highest) is exactly 1 in float32.
 */
struct trib_qsgd_args {
    float scale; /* highest / norm */
    float norm;
    float weight;
    uint32_t highest;
    uint32_t sign; /* the bit above the level bits */
    uint32_t key[2];
};

/*
 * Rounding of magnitudes to powers of two. With h as in struct trib_qsgd_args, let h =
 * (h & random_mask) | fixed, y = |x| * scale and e the biased exponent of y. The level
 * is
 *     e > base:  min(((bits of y + (h >> 9)) >> 23) - base, highest)
 *     else       floor(y * steps + u), u in [0, 1) the upper 24 bits of h
 * and the code is level | (x negative ? sign : 0). Level l > 0 decodes to the float
 * with biased exponent l + base, times norm; natural_add multiplies that by weight. x
 * must be finite, and y * steps below 1 in the second case.
 */
struct trib_natural_args {
    float scale;
    float steps;
    float norm;
    float weight;
    int32_t base;
    int32_t highest;
    uint32_t sign; /* the bit above the level bits */
    uint32_t random_mask;
    uint32_t fixed;
    uint32_t key[2];
};

/*
 * Integers on an even grid. With h as in struct trib_qsgd_args, let
 * h = (h & random_mask) | fixed and u in [0, 1) its upper 24 bits. The symbol is
 *     floor(x * scale + shift + u), clamped to [low, high], plus offset
 * where NaN counts as low. A lane is a symbol or a sum of symbols. It decodes to
 * (lane - middle) * unit + base; shared_scale_add multiplies that by weight. low and
 * high are whole numbers; low + offset >= 0.
 */
struct trib_shared_scale_args {
    float scale;
    float shift;
    float low;
    float high;
    uint32_t offset;
    uint32_t random_mask;
    uint32_t fixed;
    uint32_t key[2];
    uint32_t middle;
    float unit;
    float base;
    float weight;
};

/*
 * Stochastic rounding to a table of levels: level[0] = 0, rising to level[highest],
 * each at least 1.07 times the previous one. Let y = |x| * scale, at most about
 * level[highest] = 1, and level k the highest level not above y. Truncating (the bits
 * of y as an integer) * factor + offset yields k, k - 1 or a negative number. The code
 * is
 *     min(floor((y - level[k]) * per_gap[k] + u), 1) + k | (x negative ? sign : 0)
 * with u as in struct trib_qsgd_args. It decodes to its level times norm; dither_add
 * multiplies that by weight. Both tables have room for TRIB_LEVELS_MAX entries.
 */
struct trib_dither_args {
    const float *level;
    const float *per_gap; /* 1 / (level[k + 1] - level[k]); 0 for the highest */
    float scale;
    float norm;
    float weight;
    float factor;
    float offset;
    int32_t highest;
    uint32_t sign; /* the bit above the level bits */
    uint32_t key[2];
};

/*
 * 8-bit floats, sign above exponent and mantissa: OCP FP8 E4M3 (bias 7, no Inf, NaN
 * 0x7f, largest 448) or E5M2 (bias 15, largest 57344). |x| * scale is rounded to
 * nearest even or stochastically (h as in struct trib_qsgd_args, unbiased) to one of
 * its two neighbours, and saturates. x must be finite. A code decodes to its value
 * times norm; f8_add multiplies that by weight.
 */
struct trib_f8 {
    float scale;
    float norm;
    float weight;
    bool e5m2;
    bool random;
    uint32_t key[2];
};

/* Sums of the elements with and without the sign bit, in 16 lanes as in sum_squares. */
struct trib_sums {
    float positive;
    float negative;
    size_t n_negative;
};

/* Values of the codes 0 and 1; pair_add multiplies them by weight. */
struct trib_pair {
    float value[2];
    float weight;
};

/* wa * a + wb * b, rounded after each product and after the sum. */
struct trib_combine {
    const float *a;
    const float *b;
    float wa;
    float wb;
};

/* Condition of select_ahead. */
struct trib_ahead {
    float factor;
    uint32_t least; /* smallest magnitude */
    uint32_t first; /* position of the first element */
};

enum { TRIB_HADAMARD_LOG2_MAX = 15 };

/*
 * One block of the randomised Hadamard transform, n = 2^log2_n floats.
 *     forward  z = scale * (H (s o y))        inverse  z = s o (scale * (H y))
 * H[i][j] is -1 if i & j has an odd number of set bits, else 1. Butterflies (a, b) ->
 * (a + b, a - b) run from distance n / 2 down to 1; scaling comes last. With scale =
 * 2^(-log2_n / 2) both directions are orthonormal, and each inverts the other up to
 * rounding. s is -1 where bit (first + i) % 32 of h is set, h being the hash of the
 * counter c = (first + i) / 32, lower 32 bits:
 *     h = c * 0x9e3779b9 + key[0];  h ^= h >> 16;  h *= 0x7feb352d;  h ^= h >> 15;
 *     h += key[1];                  h *= 0x846ca68b;  h ^= h >> 16
 */
struct trib_hadamard {
    uint64_t first; /* index of element 0 */
    uint32_t key[2];
    float scale;
    int log2_n; /* 0 … TRIB_HADAMARD_LOG2_MAX */
    bool inverse;
};

enum { TRIB_GRID_SYMBOLS = 16, TRIB_GRID_POINTS_MAX = 31 };

/*
 * Stochastic rounding to a subset of the points 0 … highest of an even grid: value[],
 * rising from value[0] = 0 to value[15] = highest. x lies at
 *     p = min(max(x * scale + middle, 0), highest)        (NaN: at 0)
 * With value[j] <= p < value[j + 1] the symbol is j + 1 if u * (value[j + 1] -
 * value[j]) is below p - value[j], else j; u as in struct trib_qsgd_args. So the mean
 * of value[symbol] is p, and a point of value[] is reproduced exactly.
 */
struct trib_grid {
    float scale;
    float middle;
    float highest;
    uint32_t key[2];
    uint8_t value[TRIB_GRID_SYMBOLS];
    /* indexed by floor(p): j | value[j] << 8 | (value[j + 1] - value[j]) << 16 */
    uint32_t cell[TRIB_GRID_POINTS_MAX + 1];
};

enum { TRIB_GEMM_SCRATCH = 640 << 10 }; /* bytes, 64-aligned */

/*
 * C = A B, or C += A B. A is m x k, B is k x n, C is m x n; m, n and k may be 0.
 * Row-major: element (i, j) of A is at a[i * lda + j], or at a[j * lda + i] if
 * a_transposed; B likewise; element (i, j) of C is at c[i * ldc + j]. C must not
 * overlap A or B.
 *
 * Each element of C starts as s = 0, or as its old value if `add`. Then s =
 * fma(A[i][p], B[p][j], s) for p = 0, 1 … k - 1. One rounding per term gives the same
 * bits on all instruction sets and thus on all ranks.
 */
struct trib_gemm {
    size_t m, n, k;
    const float *a, *b;
    float *c;
    size_t lda, ldb, ldc;
    bool a_transposed, b_transposed;
    bool add;
    void *scratch; /* TRIB_GEMM_SCRATCH */
};

/* Consecutive rows of a matrix, and the few factors that multiply each row. */
struct trib_factors {
    const float *factors; /* factor k, with cols elements, starts at factors[k * ld] */
    size_t ld;
    size_t rank;
    size_t rows, cols;
};

struct trib_exact_range;
struct trib_bounded_grid;
struct trib_numbers;
struct trib_stratified;

/* Three functions: encode n elements to n one-byte codes, decode them, and decode and
 * add them to acc. */
#define TRIB_CODES(name, args) \
    void (*name##_encode)(uint8_t *codes, const float *x, size_t n, \
                          const struct args *a); \
    void (*name##_decode)(float *x, const uint8_t *codes, size_t n, \
                          const struct args *a); \
    void (*name##_add)(float *acc, const uint8_t *codes, size_t n, \
                       const struct args *a)

typedef void (*trib_reduce_fn)(const struct trib_reduce_args *r);

struct trib_kernels {
    const char *isa; /* "c", "avx2", "avx512", "neon" */
    /* MEAN uses the function of SUM */
    trib_reduce_fn reduce[TRIB_DTYPE_COUNT][TRIB_OP_COUNT];
    /* Convert dtype <-> f32. f16 and bf16 round to nearest even; NaN stays NaN.
     * Integers: nearest even, saturated, NaN becomes 0. */
    void (*to_f32[TRIB_DTYPE_COUNT])(float *dst, const void *src, size_t n);
    void (*from_f32[TRIB_DTYPE_COUNT])(void *dst, const float *src, size_t n);
    /* copy that may bypass the cache; any alignment */
    void (*copy_stream)(void *dst, const void *src, size_t bytes);
    /* acc += weight * src, with src f32, f16 or bf16; rounded after the product and
     * after the sum */
    void (*axpy_f32)(float *acc, const void *src, float weight, size_t n);
    void (*axpy_f16)(float *acc, const void *src, float weight, size_t n);
    void (*axpy_bf16)(float *acc, const void *src, float weight, size_t n);

    /* Return the largest magnitude: the bits of |x|, which order like |x|, NaN above
     * Inf. */
    uint32_t (*max_magnitude)(const float *x, size_t n); /* 0 for n = 0 */
    /* sum of x[i]^2 in 16 lanes (lane i % 16), then lanes added pairwise by halves */
    float (*sum_squares)(const float *x, size_t n);
    /* Write the positions with magnitude >= threshold in increasing order; return their
     * number. Needs room for n + 16: up to 16 entries past the result are
     * overwritten. */
    size_t (*select_at_least)(const float *x, size_t n, uint32_t threshold,
                              uint32_t *positions_out);
    /* acc += x, then select_at_least of acc. zeros: NULL, or n floats to set to 0 while
     * the data is in the cache; may be x. */
    size_t (*add_select)(float *acc, const float *x, float *zeros, size_t n,
                         uint32_t threshold, uint32_t *positions_out);
    /* acc += x, then max_magnitude of acc */
    uint32_t (*add_max)(float *acc, const float *x, size_t n);
    /* As select_at_least, for the positions where g is not 0 and the magnitude of g +
     * factor * d is at least `least`; rounded after the product and after the sum. */
    size_t (*select_ahead)(const float *g, const float *d, size_t n,
                           const struct trib_ahead *a, uint32_t *positions_out);
    /* Positions of stratified.h, for strata first … first + count - 1 of s->k. */
    void (*stratified_positions)(const struct trib_stratified *s, size_t first,
                                 size_t count, uint32_t *positions_out);
    /* Write the indices of the blocks of `block` elements that contain a non-zero, in
     * increasing order; return their number. The last block may be shorter. Needs room
     * for all. */
    size_t (*blocks_nonzero)(const float *x, size_t n, size_t block,
                             uint32_t *numbers_out);
    /* set NaN and Inf to 0 */
    void (*drop_not_finite)(float *x, size_t n);
    TRIB_CODES(qsgd, trib_qsgd_args);
    TRIB_CODES(natural, trib_natural_args);
    /* the largest of x and of -x; x finite, n > 0 */
    void (*range)(const float *x, size_t n, float out[2]);
    /* one symbol or lane per byte; u16: per two bytes, unaligned */
    void (*shared_scale_encode)(uint8_t *symbols, const float *x, size_t n,
                        const struct trib_shared_scale_args *g);
    void (*shared_scale_encode_u16)(uint8_t *symbols, const float *x, size_t n,
                            const struct trib_shared_scale_args *g);
    /* As shared_scale_encode, and replace x by its residual: x - value of its symbol,
     * or 0 if that is not finite. */
    void (*shared_scale_keep)(uint8_t *symbols, float *x, size_t n,
                          const struct trib_shared_scale_args *g);
    void (*shared_scale_keep_u16)(uint8_t *symbols, float *x, size_t n,
                              const struct trib_shared_scale_args *g);
    void (*shared_scale_decode)(float *x, const uint8_t *lanes, size_t n,
                        const struct trib_shared_scale_args *g);
    void (*shared_scale_decode_u16)(float *x, const uint8_t *lanes, size_t n,
                            const struct trib_shared_scale_args *g);
    void (*shared_scale_add)(float *acc, const uint8_t *lanes, size_t n,
                     const struct trib_shared_scale_args *g);
    void (*shared_scale_add_u16)(float *acc, const uint8_t *lanes, size_t n,
                         const struct trib_shared_scale_args *g);
    /* sum += lanes, modulo 2^16 */
    void (*packed_ints_add_u8)(uint16_t *sum, const uint8_t *lanes, size_t n);
    void (*packed_ints_add_u16)(uint16_t *sum, const uint8_t *lanes, size_t n);
    /* unaligned sums of 16 bits each, modulo 2^16 */
    void (*packed_ints_sum_u8)(uint8_t *sum, const struct trib_packed_ints_sum *s);
    /* Replace each lane by the number of thresholds it reaches (0 to 2); both are below
     * 2^31. */
    void (*packed_ints_vote)(uint8_t *lanes, size_t n, uint32_t more, uint32_t tie);
    void (*sums_by_sign)(const float *x, size_t n, struct trib_sums *out);
    /* 1: sign bit set */
    void (*signs_encode)(uint8_t *codes, const float *x, size_t n);
    void (*pair_decode)(float *x, const uint8_t *codes, size_t n,
                        const struct trib_pair *pair);
    void (*pair_add)(float *acc, const uint8_t *codes, size_t n,
                     const struct trib_pair *pair);
    /* v = keep * v + take * x; a NaN or Inf in v counts as 0 */
    void (*average)(float *v, const float *x, size_t n, float keep, float take);
    /* out may be a or b */
    void (*combine)(float *out, const struct trib_combine *c, size_t n);
    TRIB_CODES(dither, trib_dither_args);
    /* Stochastic, unbiased rounding to one of the two neighbours, with the hash of
     * struct trib_qsgd_args. Beyond the largest finite number as from_f32. */
    void (*f16_random)(void *dst, const float *src, size_t n, const uint32_t key[2]);
    void (*bf16_random)(void *dst, const float *src, size_t n, const uint32_t key[2]);
    TRIB_CODES(f8, trib_f8);
    /* compress/kernels/bitpack.h. codes has room for n rounded up to 8; the padding is
     * overwritten. */
    void (*bits_pack)(uint8_t *dst, uint8_t *codes, size_t n, int bits);
    void (*bits_unpack)(uint8_t *codes, const uint8_t *src, size_t n, int bits);
    /* z may be y */
    void (*hadamard)(float *z, const float *y, const struct trib_hadamard *h);
    /* one symbol per byte */
    void (*grid_encode)(uint8_t *symbols, const float *x, size_t n,
                        const struct trib_grid *g);
    /* points[i] = value[symbols[i] & 15]; points may be symbols */
    void (*grid_points)(uint8_t *points, const uint8_t *symbols, size_t n,
                        const uint8_t value[TRIB_GRID_SYMBOLS]);
    void (*gemm)(const struct trib_gemm *g);
    /* out[r * rank + k] = row r times factor k: fma in 16 lanes (lane i % 16), then
     * lanes added pairwise by halves. x: NULL, or as many elements as m, which are
     * first added to m. */
    void (*project_rows)(float *m, const float *x, const struct trib_factors *f,
                         float *out);
    /* Subtract from row r the sum of weights[r * rank + k] times factor k, computed as
     * in gemm; non-finite results become 0. */
    void (*take_rows)(float *m, const struct trib_factors *f, const float *weights);
    /* For exact_sum.h; all of TRIB_EXACT_BLOCK numbers. Write the bits of x without
     * signs of zeros and NaN payloads, and the range of the finite numbers. */
    void (*exact_scan)(const float *x, uint32_t *bits_out,
                       struct trib_exact_range *range_out);
    void (*exact_add_floats)(double *acc, const float *x);
    void (*exact_add_doubles)(double *acc, const double *x);
    void (*exact_round)(float *x, const double *acc);
    /* x = acc / divisor; true: some results may not be the nearest float32 */
    bool (*exact_divide)(float *x, const double *acc, double divisor);
    /* For bounded.h. q = x / step, to nearest even; false if an integer is out of
     * range: q is then undefined. */
    bool (*bounded_quantise)(int32_t *q, const float *x, size_t n,
                             const struct trib_bounded_grid *g);
    void (*bounded_values)(float *x, const int32_t *q, size_t n, double step);
    void (*bounded_values_add)(float *acc, const int32_t *q, size_t n, double step,
                               float weight);
    /* sum += q; false on overflow of 32 bits */
    bool (*bounded_sum)(int32_t *sum, const int32_t *q, size_t n);
    /* d[i] = q[i] - q[i - 1], modulo 2^32; d[0] = d[1], or 0 if n is 1. n > 0. Return
     * false if all integers are 0. */
    bool (*bounded_differences)(int32_t *d, const int32_t *q, size_t n);
    /* Pack whole blocks; return the bytes of the codes. */
    size_t (*bounded_pack)(uint8_t *codes, uint8_t *heads, const int32_t *d,
                           size_t blocks);
    /* `before` precedes the first integer. heads must be below TRIB_BOUNDED_HEADS, and
     * codes as long as the heads require. */
    void (*bounded_unpack)(int32_t *q, const uint8_t *heads, const uint8_t *codes,
                           size_t blocks, uint32_t before);
    /* CRC-32C (Castagnoli), continued from crc, the CRC of the preceding bytes; 0:
     * none. Any alignment. */
    uint32_t (*crc32c)(uint32_t crc, const void *src, size_t bytes);
    /* vector_stats.h */
    void (*numbers_add)(const float *x, size_t n, struct trib_numbers *out);
};

/**
 * trib_kernels_get - return the table of an instruction set.
 *
 * isa      "auto" or NULL: the best for this CPU; "c", "avx2", "avx512", "neon"
 * returns  NULL if the CPU or the build does not support it
 */
const struct trib_kernels *trib_kernels_get(const char *isa);

#endif
