/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QSGD: each bucket is a norm and, per element, a sign and one of s + 1 levels, chosen
 * at random between the two neighbours so that the mean is right.
 *
 *     paper      Alistarh, Grubic, Li, Tomioka, Vojnovic, NeurIPS 2017, eq. (3.1)
 *     equation   y = |x_i| s / norm;  C(x)_i = sign(x_i) norm floor(y + u) / s,
 *                u uniform in [0, 1);  s = 2^(bits-1) - 1;  norm = l2 or max of the
 * bucket wire       n elements are B = ceil(n / bucket) buckets; little-endian
 *
 *                | B norms, f32 each | n codes of `bits` bits, no holes (bitpack.h) |
 *
 *                code: bits 0 … bits-2 the level, bit bits-1 the sign
 *     bias       none (u is a multiple of 2^-24: below 2^-24 of a level rounds down);
 *                E|C(x) - x|^2 <= w |x|^2 with w = min(bucket / 4s^2, sqrt(bucket) /
 * s), for max only the first; delta = 1 / (1 - w) where w < 1 random     Philox
 * (base/rng.h) gives two keys a bucket, from the number of its first element; kernels.h
 * says how they and the place in the bucket make u NaN, Inf   a bucket with either has
 * the norm NaN and decodes to NaN, whole small      norms below 2^-100 count as 2^-100:
 * unbiased, but not within w state      none
 */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "compress/bitpack.h"
#include "compress/stages.h"

enum { PIECE = 1024 }; /* codes unpacked at a time; a multiple of 8 */

static const float SMALLEST_NORM = 0x1p-100f;

struct levels_params {
    int bits;
    size_t bucket;
    struct trib_levels levels;
};

static struct levels_params params_of(const struct trib_codec *c)
{
    const int bits = (int)c->param[TRIB_PARAM_BITS];
    return (struct levels_params){
        .bits = bits,
        .bucket = (size_t)c->param[TRIB_PARAM_BUCKET],
        .levels = {.highest = (1u << (bits - 1)) - 1, .sign = 1u << (bits - 1)},
    };
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t norms_bytes(const struct levels_params *p, size_t n)
{
    return (n / p->bucket + (n % p->bucket != 0)) * sizeof(float);
}

static size_t bytes_levels(const struct trib_codec *c, size_t n)
{
    const struct levels_params p = params_of(c);
    return norms_bytes(&p, n) + trib_bits_bytes(n, p.bits);
}

static float l2_norm(const struct trib_kernels *k, const float *x, size_t n)
{
    const float squares = k->sum_squares(x, n);
    if (squares > 0x1p-80f && squares <= FLT_MAX)
        return sqrtf(squares);
    double sum = 0; /* the squares left the range of f32 */
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum < (double)FLT_MAX * (double)FLT_MAX ? (float)sqrt(sum) : FLT_MAX;
}

/* Of a bucket that is not all zero. Never below the largest element, nor SMALLEST_NORM.
 */
static float norm_of(const struct trib_codec *c, const float *x, size_t n,
                     float largest)
{
    float norm = largest;
    if (c->param[TRIB_PARAM_NORM] != TRIB_NORM_MAX)
        norm = fmaxf(norm, l2_norm(c->kernels, x, n));
    return fmaxf(norm, SMALLEST_NORM);
}

/* Packs the codes of one bucket with norm l->norm; dst begins at a whole byte. */
static void encode_bucket(const struct trib_codec *c, const float *x, size_t n,
                          struct trib_levels l, uint8_t *dst)
{
    const int bits = (int)c->param[TRIB_PARAM_BITS];
    uint8_t codes[PIECE + 8];
    l.scale = (float)l.highest / l.norm;
    for (size_t i = 0; i < n; i += PIECE) {
        const size_t count = min_size(PIECE, n - i);
        c->kernels->levels_encode(codes, x + i, count, &l);
        c->kernels->bits_pack(dst + i / 8 * (size_t)bits, codes, count, bits);
        l.key[0] += PIECE * 0x9e3779b9u; /* the hash goes on counting */
    }
}

static void encode_levels(const struct trib_codec *c, const float *x, size_t n,
                          const struct trib_encode_key *key, uint8_t *dst)
{
    struct levels_params p = params_of(c);
    const struct trib_rng rng = {key->seed, key->stream, key->step};
    uint8_t *codes = dst + norms_bytes(&p, n);
    for (size_t i = 0; i < n; i += p.bucket, dst += sizeof(float)) {
        const size_t count = min_size(p.bucket, n - i);
        const uint32_t magnitude = c->kernels->max_magnitude(x + i, count);
        uint8_t *to = codes + i / 8 * (size_t)p.bits;
        p.levels.norm = 0.0f;
        if (magnitude == 0 || magnitude >= 0x7f800000u) {
            memset(to, 0, trib_bits_bytes(count, p.bits));
            if (magnitude)
                p.levels.norm = NAN;
        } else {
            const struct trib_rng_block r = trib_rng_draw4(rng, key->index + i);
            float largest;
            memcpy(&largest, &magnitude, sizeof largest);
            memcpy(p.levels.key, r.word, sizeof p.levels.key);
            p.levels.norm = norm_of(c, x + i, count, largest);
            encode_bucket(c, x + i, count, p.levels, to);
        }
        memcpy(dst, &p.levels.norm, sizeof(float));
    }
}

/* The next piece of a range: within one bucket and within the codes buffer. */
static size_t next_piece(const struct levels_params *p, const struct trib_code *code,
                         size_t done)
{
    const size_t at = code->first + done;
    const size_t in_bucket = p->bucket - at % p->bucket;
    return min_size(min_size(PIECE, in_bucket), code->count - done);
}

/* The norm of the piece of `count` from element `at` on; its codes, unpacked. */
static float unpack_piece(const struct trib_codec *c, const struct trib_code *code,
                          size_t at, size_t count, uint8_t codes_out[PIECE + 8])
{
    const struct levels_params p = params_of(c);
    const uint8_t *codes =
        code->src + norms_bytes(&p, code->n) + at / 8 * (size_t)p.bits;
    float norm;
    assert(at % 8 == 0);
    memcpy(&norm, code->src + at / p.bucket * sizeof(float), sizeof(float));
    c->kernels->bits_unpack(codes_out, codes, count, p.bits);
    return norm;
}

static void decode_levels(const struct trib_codec *c, const struct trib_code *code,
                          float *x)
{
    struct levels_params p = params_of(c);
    uint8_t codes[PIECE + 8];
    for (size_t i = 0, count; i < code->count; i += count) {
        count = next_piece(&p, code, i);
        p.levels.norm = unpack_piece(c, code, code->first + i, count, codes);
        c->kernels->levels_decode(x + i, codes, count, &p.levels);
    }
}

static void add_levels(const struct trib_codec *c, const struct trib_code *code,
                       float weight, float *acc)
{
    struct levels_params p = params_of(c);
    uint8_t codes[PIECE + 8];
    p.levels.weight = weight;
    for (size_t i = 0, count; i < code->count; i += count) {
        count = next_piece(&p, code, i);
        p.levels.norm = unpack_piece(c, code, code->first + i, count, codes);
        c->kernels->levels_add(acc + i, codes, count, &p.levels);
    }
}

static double delta_levels(const struct trib_codec *c)
{
    const struct levels_params p = params_of(c);
    const double s = p.levels.highest, bucket = (double)p.bucket;
    double w = bucket / (4 * s * s);
    if (c->param[TRIB_PARAM_NORM] != TRIB_NORM_MAX)
        w = fmin(w, sqrt(bucket) / s);
    return w < 1 ? 1 / (1 - w) : 0;
}

const struct trib_quantise trib_quantise_levels = {
    .name = "levels",
    .params = TRIB_PARAM_BIT(BITS) | TRIB_PARAM_BIT(BUCKET) | TRIB_PARAM_BIT(NORM),
    .bytes = bytes_levels,
    .encode = encode_levels,
    .decode = decode_levels,
    .decode_add = add_levels,
    .delta = delta_levels,
};
