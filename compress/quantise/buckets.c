/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/quantise/buckets.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/minmax.h"
#include "compress/kernels/bitpack.h"
#include "compress/quantise/rng_keys.h"

enum { PIECE = 1024 }; /* codes in memory at a time; a multiple of 8 */

static const struct trib_bucketing *bucketing(const struct trib_codec *c)
{
    return c->stages.quantise->bucketing;
}

struct trib_buckets trib_buckets_layout(const struct trib_codec *c)
{
    const struct trib_bucketing *q = bucketing(c);
    return (struct trib_buckets){
        .bucket =
            q->undivided ? SIZE_MAX / 16 * 8 : (size_t)c->param[TRIB_PARAM_BUCKET],
        .head = q->head,
        .bits = q->bits ? q->bits : (int)c->param[TRIB_PARAM_BITS]};
}

size_t trib_buckets_heads(const struct trib_buckets *b, size_t n)
{
    return (n / b->bucket + (n % b->bucket != 0)) * b->head;
}

size_t trib_buckets_bytes(const struct trib_codec *c, size_t n)
{
    const struct trib_buckets b = trib_buckets_layout(c);
    return trib_buckets_heads(&b, n) + trib_bits_bytes(n, b.bits);
}

/* ---- encode --------------------------------------------------------------------- */

/* Quantise values of one bucket to one-byte codes; `index` is the first value's index
 * in the vector. */
static void quantise(const struct trib_codec *c, const float *x, size_t n,
                     struct trib_rng_keys *rng_keys, uint64_t index,
                     union trib_bucket_params *p, uint8_t *codes)
{
    uint32_t keys[2];
    for (size_t i = 0, same; i < n; i += same) {
        same = trib_min(trib_rng_keys_at(rng_keys, index + i, keys), n - i);
        bucketing(c)->encode(c->kernels, codes + i, x + i, same, keys, p);
    }
}

/* Encode and pack the values of one bucket. */
static void encode_codes(const struct trib_codec *c, const float *x, size_t n,
                         struct trib_rng_keys *rng_keys, uint64_t index,
                         union trib_bucket_params *p, int bits, uint8_t *dst)
{
    uint8_t codes[PIECE + 8];
    if (bits == 8) {
        quantise(c, x, n, rng_keys, index, p, dst);
        return;
    }
    for (size_t i = 0; i < n; i += PIECE) {
        const size_t count = trib_min(PIECE, n - i);
        quantise(c, x + i, count, rng_keys, index + i, p, codes);
        c->kernels->bits_pack(dst + i / 8 * (size_t)bits, codes, count, bits);
    }
}

void trib_buckets_encode(const struct trib_codec *c, const struct trib_values *v,
                         uint8_t *dst)
{
    const struct trib_bucketing *q = bucketing(c);
    const struct trib_buckets b = trib_buckets_layout(c);
    const uint64_t index = v->key.index + v->first;
    union trib_bucket_params p = q->params(c);
    struct trib_rng_keys rng_keys = trib_rng_keys_new(&v->key);
    uint8_t *head = dst + trib_buckets_heads(&b, v->first);
    uint8_t *codes = dst + trib_buckets_heads(&b, v->n) + v->first / 8 * (size_t)b.bits;
    assert(v->first % b.bucket == 0);
    for (size_t i = 0; i < v->count; i += b.bucket, head += b.head) {
        const float *x = v->x + i;
        const size_t count = trib_min(b.bucket, v->count - i);
        const uint32_t magnitude = c->kernels->max_magnitude(x, count);
        uint8_t *to = codes + i / 8 * (size_t)b.bits;
        if (q->measure(c, x, count, magnitude, &p, head))
            encode_codes(c, x, count, &rng_keys, index + i, &p, b.bits, to);
        else
            memset(to, 0, trib_bits_bytes(count, b.bits));
    }
}

/* The norm as a double: elements near FLT_MAX may have a norm above it. */
static double l2_of(const struct trib_codec *c, const float *x, size_t n)
{
    const float squares = c->kernels->sum_squares(x, n);
    if (squares > 0x1p-80f && squares <= FLT_MAX)
        return (double)sqrtf(squares);
    double sum = 0; /* the squares are outside the range of f32 */
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

float trib_bucket_l2(const struct trib_codec *c, const float *x, size_t n)
{
    const double norm = l2_of(c, x, n);
    return norm < (double)FLT_MAX ? (float)norm : FLT_MAX;
}

static float norm_of(const struct trib_codec *c, const float *x, size_t n,
                     uint32_t magnitude)
{
    float norm;
    memcpy(&norm, &magnitude, sizeof norm);
    if (c->param[TRIB_PARAM_NORM] != TRIB_NORM_MAX)
        norm = fmaxf(norm, trib_bucket_l2(c, x, n));
    return fmaxf(norm, TRIB_SMALLEST_NORM);
}

float trib_bucket_clip(const struct trib_codec *c, const float *x, size_t n, float norm)
{
    const double most = c->param[TRIB_PARAM_CLIP] * (l2_of(c, x, n) / sqrt((double)n));
    return fmaxf((double)norm <= most ? norm : (float)most, TRIB_SMALLEST_NORM);
}

/* The error is at most |x|_1 times the norm, which is at most clip root mean squares. A
 * large clip has no effect on a bucket. */
double trib_bucket_clip_error(const struct trib_codec *c)
{
    const double clip = c->param[TRIB_PARAM_CLIP], bucket = c->param[TRIB_PARAM_BUCKET];

    return clip * clip >= bucket ? trib_grid_error(bucket, 1) : clip + 1;
}

bool trib_bucket_measure_norm(const struct trib_codec *c, const float *x, size_t n,
                              uint32_t magnitude, float *norm_out, uint8_t *head_out)
{
    const bool finite = magnitude < 0x7f800000u;
    if (magnitude && finite)
        *norm_out = norm_of(c, x, n, magnitude);
    else
        *norm_out = finite ? 0.0f : NAN;
    memcpy(head_out, norm_out, sizeof *norm_out);
    return magnitude && finite;
}

float trib_bucket_scale(float norm)
{
    const float scale = 1.0f / norm;
    return scale * norm < 1.0f ? nextafterf(scale, INFINITY) : scale;
}

void trib_buckets_quantise(const struct trib_codec *c, const struct trib_encode *in,
                           uint8_t *heads_out, uint8_t *codes_out)
{
    const struct trib_bucketing *q = bucketing(c);
    const struct trib_buckets b = trib_buckets_layout(c);
    union trib_bucket_params p = q->params(c);
    struct trib_rng_keys rng_keys = trib_rng_keys_new(&in->key);
    for (size_t i = 0; i < in->n; i += b.bucket, heads_out += b.head) {
        const size_t count = trib_min(b.bucket, in->n - i);
        const uint32_t magnitude = c->kernels->max_magnitude(in->x + i, count);
        if (q->measure(c, in->x + i, count, magnitude, &p, heads_out))
            quantise(c, in->x + i, count, &rng_keys, in->key.index + i, &p,
                     codes_out + i);
        else
            memset(codes_out + i, 0, count);
    }
}

/* ---- decode --------------------------------------------------------------------- */

/* A piece of a bucket within the requested range, and its codes. */
struct piece {
    size_t at; /* in the range */
    size_t count;
    const uint8_t *codes; /* one per byte */
    uint8_t unpacked[PIECE + 8];
};

/* Advance p to the next piece and open its head; false: end of the range. p is zero at
 * first. */
static bool next_piece(const struct trib_codec *c, const struct trib_buckets *b,
                       const struct trib_code *code, union trib_bucket_params *params,
                       struct piece *p)
{
    p->at += p->count;
    const size_t at = code->first + p->at, in_bucket = b->bucket - at % b->bucket;
    const uint8_t *codes = code->src + trib_buckets_heads(b, code->n);
    p->count = trib_min(PIECE, trib_min(in_bucket, code->count - p->at));
    if (!p->count)
        return false;
    assert(at % 8 == 0);
    bucketing(c)->open(code->src + at / b->bucket * b->head, params);
    p->codes = codes + at / 8 * (size_t)b->bits;
    if (b->bits == 8)
        return true;
    c->kernels->bits_unpack(p->unpacked, p->codes, p->count, b->bits);
    p->codes = p->unpacked;
    return true;
}

void trib_buckets_decode(const struct trib_codec *c, const struct trib_code *code,
                         float *x)
{
    const struct trib_bucketing *q = bucketing(c);
    const struct trib_buckets b = trib_buckets_layout(c);
    union trib_bucket_params params = q->params(c);
    struct piece p;
    p.at = p.count = 0;
    while (next_piece(c, &b, code, &params, &p))
        q->decode(c->kernels, x + p.at, p.codes, p.count, &params);
}

void trib_buckets_add(const struct trib_codec *c, const struct trib_code *code,
                      float weight, float *acc)
{
    const struct trib_bucketing *q = bucketing(c);
    const struct trib_buckets b = trib_buckets_layout(c);
    union trib_bucket_params params = q->params(c);
    struct piece p;
    p.at = p.count = 0;
    while (next_piece(c, &b, code, &params, &p))
        q->add(c->kernels, acc + p.at, p.codes, p.count, weight, &params);
}

struct trib_dequantise trib_dequantise_open(const struct trib_codec *c,
                                            const uint8_t *heads)
{
    const struct trib_buckets b = trib_buckets_layout(c);
    return (struct trib_dequantise){.codec = c,
                                    .heads = heads,
                                    .bucket = b.bucket,
                                    .head = b.head,
                                    .params = bucketing(c)->params(c)};
}

static void enter_bucket(struct trib_dequantise *d)
{
    if (d->at % d->bucket == 0)
        bucketing(d->codec)->open(d->heads + d->at / d->bucket * d->head, &d->params);
}

void trib_dequantise(struct trib_dequantise *d, const uint8_t *codes, size_t count,
                     float *x)
{
    enter_bucket(d);
    bucketing(d->codec)->decode(d->codec->kernels, x, codes, count, &d->params);
    d->at += count;
}

void trib_dequantise_add(struct trib_dequantise *d, const uint8_t *codes, size_t count,
                         float weight, float *acc)
{
    enter_bucket(d);
    bucketing(d->codec)->add(d->codec->kernels, acc, codes, count, weight, &d->params);
    d->at += count;
}
