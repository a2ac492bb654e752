/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Vector kernels: one struct of function pointers. kernels_c.c is the reference and the
 * specification; kernels_avx2.c, kernels_avx512.c and kernels_neon.c overwrite what
 * they do faster.
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
 * A k-ary reduction: every dst[j][i] = scale(src[0][i] op src[1][i] op … in this
 * order). n_src >= 1, n_dst >= 1. A dst may equal a src exactly (same pointer), never
 * overlap it otherwise. Pointers are aligned to nothing more than one byte: user
 * buffers may be unaligned. f16 and bf16 accumulate in f32 and round once, to nearest
 * even. ranks: 0 for none, else the number to divide by after the sum (mean): floats
 * divide once in the accumulator's precision, integers divide towards zero.
 * weight, of sums of f32, f16 and bf16 alone: NULL, or src[k] counts weight[k] times,
 * rounded after each product, and the sum is divided by divisor, unless that is 0, in
 * the place of ranks. stream: use non-temporal stores (and fence them) where they can
 * help: the destination will not be read soon.
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

/* Vectors of lanes, one byte each, that are to be summed. */
struct trib_packed_ints_sum {
    const uint8_t *const *src; /* [n_src] */
    size_t n_src;              /* at least 1 */
    size_t n;                  /* lanes */
};

/*
 * Random rounding to levels. Element i of a bucket becomes the code
 *     min(floor(|x| * scale + u), highest) | (x negative ? sign : 0)
 * with u in [0, 1), the upper 24 bits of h:
 *     h = i * 0x9e3779b9 + key[0];  h ^= h >> 16;  h *= 0x7feb352d;  h ^= h >> 15;
 *     h += key[1];                  h *= 0x846ca68b
 * and a code becomes level * (1 / highest) * norm, for qsgd_add times weight after
 * that. For highest = 2^b - 1, b <= 7, highest * (1 / highest) is exactly 1 in float32.
 */
struct trib_qsgd_args {
    float scale; /* highest / norm */
    float norm;
    float weight;
    uint32_t highest;
    uint32_t sign; /* the bit above the level's */
    uint32_t key[2];
};

/*
 * Rounding of magnitudes to powers of two. With h as above, h = (h & random_mask) |
 * fixed, y = |x| * scale and e its biased exponent, the level is
 *     e > base:  min(((bits of y + (h >> 9)) >> 23) - base, highest)
 *     else       floor(y * steps + u), u in [0, 1) the upper 24 bits of h
 * and the code level | (x negative ? sign : 0). Level l > 0 becomes the float with the
 * biased exponent l + base, times norm; for natural_add times weight after that. x is
 * finite, y * steps below 1 where it counts.
 */
struct trib_natural_args {
    float scale;
    float steps;
    float norm;
    float weight;
    int32_t base;
    int32_t highest;
    uint32_t sign; /* the bit above the level's */
    uint32_t random_mask;
    uint32_t fixed;
    uint32_t key[2];
};

/*
 * Integers on an even grid. With h as above, h = (h & random_mask) | fixed, u in [0, 1)
 * its upper 24 bits, the symbol is
 *     floor(x * scale + shift + u), at least low, at most high, plus offset
 * and low for a NaN. A lane, which is a symbol or the sum of several, becomes
 * (lane - middle) * unit + base, for shared_scale_add times weight after that. low,
 * high: whole numbers; low + offset >= 0.
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
 * Random rounding to levels of a table: level[0] = 0, rising to level[highest], each at
 * least
 * 1.07 times the one below. With y = |x| * scale, at most about level[highest] = 1,
 * level k is the highest that is not above y; the number of y's bits times factor, plus
 * offset, cut off, is k or k - 1, or below 0. The code is
 *     min(floor((y - level[k]) * per_gap[k] + u), 1) + k | (x negative ? sign : 0)
 * with u as above, and becomes its level times norm; for dither_add times weight after
 * that. Both tables have room for TRIB_LEVELS_MAX.
 */
struct trib_dither_args {
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
 * Floats of 8 bits, the sign above exponent and mantissa: OCP FP8 E4M3 (bias 7, no Inf,
 * NaN 0x7f, largest 448) or E5M2 (bias 15, largest 57344). |x| * scale is rounded to
 * nearest even or, with h as above, at random between its two neighbours so that the
 * mean is right; above the largest it becomes that. x is finite. A code becomes its
 * value times norm; for f8_add times weight after that.
 */
struct trib_f8 {
    float scale;
    float norm;
    float weight;
    bool e5m2;
    bool random;
    uint32_t key[2];
};

/* Sums of the elements without and with a sign, in 16 lanes as for sum_squares. */
struct trib_sums {
    float positive;
    float negative;
    size_t n_negative;
};

/* The values of the codes 0 and 1; for pair_add times weight. */
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

/* The condition of select_ahead. */
struct trib_ahead {
    float factor;
    uint32_t least; /* magnitude */
    uint32_t first; /* position of the first element */
};

enum { TRIB_HADAMARD_LOG2_MAX = 15 };

/*
 * One block of the randomised Hadamard transform, n = 2^log2_n floats.
 *     forward  z = scale * (H (s o y))        inverse  z = s o (scale * (H y))
 * H[i][j] is -1 where i & j has an odd number of bits, else 1. Butterflies
 * (a, b) -> (a + b, a - b) run from distance n / 2 down to 1, then comes the scale.
 * With scale = 2^(-log2_n / 2) both are orthonormal, each undoes the other to rounding.
 * s is -1 where bit (first + i) % 32 of h is set, h the hash of the counter
 * c = (first + i) / 32, its lower 32 bits:
 *     h = c * 0x9e3779b9 + key[0];  h ^= h >> 16;  h *= 0x7feb352d;  h ^= h >> 15;
 *     h += key[1];                  h *= 0x846ca68b;  h ^= h >> 16
 */
struct trib_hadamard {
    uint64_t first; /* number of element 0 */
    uint32_t key[2];
    float scale;
    int log2_n; /* 0 … TRIB_HADAMARD_LOG2_MAX */
    bool inverse;
};

enum { TRIB_GRID_SYMBOLS = 16, TRIB_GRID_POINTS_MAX = 31 };

/*
 * Random rounding to some of the points 0 … highest of an even grid, those in value[],
 * which rise from value[0] = 0 to value[15] = highest. x lies at
 *     p = min(max(x * scale + middle, 0), highest)        (NaN: at 0)
 * With value[j] <= p < value[j + 1] the symbol is j + 1 if u * (value[j + 1] -
 * value[j]) is below p - value[j], else j; u as for struct trib_qsgd_args. So the mean
 * of value[symbol] is p, and a point of value[] is hit exactly.
 */
struct trib_grid {
    float scale;
    float middle;
    float highest;
    uint32_t key[2];
    uint8_t value[TRIB_GRID_SYMBOLS];
    /* of floor(p): j | value[j] << 8 | (value[j + 1] - value[j]) << 16 */
    uint32_t cell[TRIB_GRID_POINTS_MAX + 1];
};

enum { TRIB_GEMM_SCRATCH = 640 << 10 }; /* bytes, aligned to 64 */

/*
 * C = A B, or C += A B. A is m x k, B is k x n, C is m x n; any of m, n, k may be 0.
 * Row-major: element (i, j) of A is at a[i * lda + j], where a_transposed at
 * a[j * lda + i]; B likewise; that of C is at c[i * ldc + j]. C overlaps nothing else.
 *
 * An element of C is s = 0, or where add what it was, then s = fma(A[i][p], B[p][j], s)
 * for p = 0, 1 … k - 1: one rounding a term, so that all instruction sets, and hence
 * all ranks, get the same bits.
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

/* Rows of a matrix, one behind the other, and the few factors that each is multiplied
 * by. */
struct trib_factors {
    const float *factors; /* factor k, of cols elements, begins at factors[k * ld] */
    size_t ld;
    size_t rank;
    size_t rows, cols;
};

struct trib_exact_range;
struct trib_bounded_grid;
struct trib_numbers;
struct trib_stratified;

/* Three functions: from n elements to as many codes of a byte, back, and back to be
 * added to acc. */
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
    /* acc += x, and select_at_least of that. zeros: NULL, or n floats that become 0, x
     * itself among others: it is in the cache then */
    size_t (*add_select)(float *acc, const float *x, float *zeros, size_t n,
                         uint32_t threshold, uint32_t *positions_out);
    /* acc += x, and max_magnitude of that */
    uint32_t (*add_max)(float *acc, const float *x, size_t n);
    /* Selects as select_at_least does: the positions where g is not 0 and the magnitude
     * of g + factor * d, rounded after the product and the sum, is at least `least` */
    size_t (*select_ahead)(const float *g, const float *d, size_t n,
                           const struct trib_ahead *a, uint32_t *positions_out);
    /* Those of stratified.h, in strata first … first + count - 1 of s->k */
    void (*stratified_positions)(const struct trib_stratified *s, size_t first,
                                 size_t count, uint32_t *positions_out);
    /* Numbers of the blocks of `block` elements, the last maybe shorter, in which not
     * all magnitudes are 0, rising; returns how many. Room for all. */
    size_t (*blocks_nonzero)(const float *x, size_t n, size_t block,
                             uint32_t *numbers_out);
    /* elements that are NaN or Inf become 0 */
    void (*drop_not_finite)(float *x, size_t n);
    TRIB_CODES(qsgd, trib_qsgd_args);
    TRIB_CODES(natural, trib_natural_args);
    /* the largest of x and of -x; x is finite, n > 0 */
    void (*range)(const float *x, size_t n, float out[2]);
    /* one symbol or lane a byte; u16: two bytes, at any address */
    void (*shared_scale_encode)(uint8_t *symbols, const float *x, size_t n,
                        const struct trib_shared_scale_args *g);
    void (*shared_scale_encode_u16)(uint8_t *symbols, const float *x, size_t n,
                            const struct trib_shared_scale_args *g);
    /* The same, and x becomes what that leaves of it: x - value of its symbol, 0 for
     * what is not finite. */
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
    /* at any address, 16 bits each, modulo 2^16 */
    void (*packed_ints_sum_u8)(uint8_t *sum, const struct trib_packed_ints_sum *s);
    /* a lane becomes how many of two thresholds it reaches, both below 2^31 */
    void (*packed_ints_vote)(uint8_t *lanes, size_t n, uint32_t more, uint32_t tie);
    void (*sums_by_sign)(const float *x, size_t n, struct trib_sums *out);
    void (*signs_encode)(uint8_t *codes, const float *x, size_t n); /* 1: has a sign */
    void (*pair_decode)(float *x, const uint8_t *codes, size_t n,
                        const struct trib_pair *pair);
    void (*pair_add)(float *acc, const uint8_t *codes, size_t n,
                     const struct trib_pair *pair);
    /* v = keep * v + take * x; a v that is NaN or Inf counts as 0 */
    void (*average)(float *v, const float *x, size_t n, float keep, float take);
    /* out may be a or b */
    void (*combine)(float *out, const struct trib_combine *c, size_t n);
    TRIB_CODES(dither, trib_dither_args);
    /* To one of the two neighbours, so that the mean is right, by the hash above.
     * Beyond the largest finite number as from_f32. */
    void (*f16_random)(void *dst, const float *src, size_t n, const uint32_t key[2]);
    void (*bf16_random)(void *dst, const float *src, size_t n, const uint32_t key[2]);
    TRIB_CODES(f8, trib_f8);
    /* compress/pack/bitpack.h: codes has room for n rounded up to 8 and is changed
     * there */
    void (*bits_pack)(uint8_t *dst, uint8_t *codes, size_t n, int bits);
    void (*bits_unpack)(uint8_t *codes, const uint8_t *src, size_t n, int bits);
    /* z may be y */
    void (*hadamard)(float *z, const float *y, const struct trib_hadamard *h);
    /* a symbol a byte */
    void (*grid_encode)(uint8_t *symbols, const float *x, size_t n,
                        const struct trib_grid *g);
    /* points[i] = value[symbols[i] & 15]; points may be symbols */
    void (*grid_points)(uint8_t *points, const uint8_t *symbols, size_t n,
                        const uint8_t value[TRIB_GRID_SYMBOLS]);
    void (*gemm)(const struct trib_gemm *g);
    /* out[r * rank + k] = row r times factor k: fma in 16 lanes, lane i % 16, then
     * lanes pairwise by halves. x: NULL, or as many elements as m, to which they are
     * added before */
    void (*project_rows)(float *m, const float *x, const struct trib_factors *f,
                         float *out);
    /* Row r -= the sum of weights[r * rank + k] times factor k, as gemm makes it; what
     * is not finite then becomes 0 */
    void (*take_rows)(float *m, const struct trib_factors *f, const float *weights);
    /* exact_sum.h; all of TRIB_EXACT_BLOCK numbers. Bits of x without signs of zeros
     * and payloads of NaN, and the range of what is finite. */
    void (*exact_scan)(const float *x, uint32_t *bits_out,
                       struct trib_exact_range *range_out);
    void (*exact_add_floats)(double *acc, const float *x);
    void (*exact_add_doubles)(double *acc, const double *x);
    void (*exact_round)(float *x, const double *acc);
    /* x = acc / divisor; true: some may not be the nearest float32 */
    bool (*exact_divide)(float *x, const double *acc, double divisor);
    /* bounded.h. q = x / step, to nearest even; false if some have no integer: then q
     * is any. */
    bool (*bounded_quantise)(int32_t *q, const float *x, size_t n,
                             const struct trib_bounded_grid *g);
    void (*bounded_values)(float *x, const int32_t *q, size_t n, double step);
    void (*bounded_values_add)(float *acc, const int32_t *q, size_t n, double step,
                               float weight);
    /* sum += q; false if one is beyond 32 bits */
    bool (*bounded_sum)(int32_t *sum, const int32_t *q, size_t n);
    /* d[i] = q[i] - q[i - 1], modulo 2^32; d[0] is d[1], or 0 of one integer. n > 0;
     * false: all integers are 0 */
    bool (*bounded_differences)(int32_t *d, const int32_t *q, size_t n);
    /* Whole blocks; returns the bytes of the codes. */
    size_t (*bounded_pack)(uint8_t *codes, uint8_t *heads, const int32_t *d,
                           size_t blocks);
    /* From the integer before the first; heads are below TRIB_BOUNDED_HEADS, and codes
     * has as many words as they say. */
    void (*bounded_unpack)(int32_t *q, const uint8_t *heads, const uint8_t *codes,
                           size_t blocks, uint32_t before);
    /* CRC-32C (Castagnoli) of bytes behind others whose sum is crc; 0: of nothing. Any
     * alignment */
    uint32_t (*crc32c)(uint32_t crc, const void *src, size_t bytes);
    /* vector_stats.h */
    void (*numbers_add)(const float *x, size_t n, struct trib_numbers *out);
};

/**
 * trib_kernels_get - the table for an instruction set.
 *
 * isa      "auto" or NULL: the best of this CPU; "c", "avx2", "avx512", "neon"
 * returns  NULL if this CPU or build lacks it
 */
const struct trib_kernels *trib_kernels_get(const char *isa);

#endif
