/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/transform/rotated.h"

#include <math.h>

#include "base/minmax.h"
#include "compress/transform/hadamard.h"
#include "compress/quantise/packed_ints.h"

const struct trib_transform trib_transform_hadamard = {
    .name = "hadamard", .params = TRIB_PARAM_BIT(ROTATION), .rotates = true};

static size_t block_of(const struct trib_codec *c)
{
    return (size_t)c->param[TRIB_PARAM_ROTATION];
}

static const struct trib_packed_ints_rule *rule_of(const struct trib_codec *c)
{
    return c->stages.quantise->packed_ints;
}

size_t trib_rotated_unit(const struct trib_codec *c)
{
    const size_t block = block_of(c), bucket = trib_quantise_bucket(c);
    return block > bucket ? block : bucket;
}

const char *trib_rotated_refusal(const struct trib_codec *c)
{
    const size_t block = block_of(c), bucket = trib_quantise_bucket(c);
    if (c->param[TRIB_PARAM_PACK] != TRIB_PACK_BITS)
        return "rotated values have a fixed width; use pack=bits";
    if (block % bucket != 0 && bucket % block != 0)
        return "one of bucket and block must be a multiple of the other; use a bucket "
               "that is a power of two";
    return NULL;
}

/* A window of a vector, and of its agreed floats. */
struct window {
    size_t length; /* of all windows but the last */
    size_t at;
    size_t count; /* elements */
    size_t heads; /* agreed floats before it */
};

static struct window window_first(const struct trib_codec *c, size_t n)
{
    const size_t unit = trib_rotated_unit(c),
                 length = TRIB_ROTATED_WINDOW / unit * unit;
    return (struct window){.length = length, .count = trib_min(length, n)};
}

static void window_next(const struct trib_codec *c, struct window *w, size_t n)
{
    w->heads += rule_of(c) ? trib_packed_ints_agreed_floats(c, w->count) : 0;
    w->at += w->count;
    w->count = trib_min(w->length, n - w->at);
}

static struct trib_rht rotation(const struct trib_codec *c)
{
    return trib_rht_create(0, 0, 0, ilogb(c->param[TRIB_PARAM_ROTATION]));
}

static void rotate(const struct trib_codec *c, const struct trib_rht *r, float *z,
                   const float *x, size_t n)
{
    const size_t block = block_of(c);
    for (size_t i = 0; i < n; i += block)
        trib_rht_forward(c->kernels, r, z + i, x + i, trib_min(block, n - i));
}

static void rotate_back(const struct trib_codec *c, const struct trib_rht *r, float *x,
                        size_t n)
{
    const size_t block = block_of(c);
    for (size_t i = 0; i < n; i += block)
        trib_rht_inverse(c->kernels, r, x + i, x + i, trib_min(block, n - i));
}

/* ---- encode --------------------------------------------------------------------- */

void trib_rotated_propose(const struct trib_codec *c, const float *x, size_t n,
                        float *proposal_out)
{
    float z[TRIB_ROTATED_WINDOW];
    const struct trib_rht r = rotation(c);
    if (rule_of(c)->measures_unrotated) {
        trib_packed_ints_propose(c, x, n, proposal_out);
        return;
    }
    for (struct window w = window_first(c, n); w.count; window_next(c, &w, n)) {
        rotate(c, &r, z, x + w.at, w.count);
        trib_packed_ints_propose(c, z, w.count, proposal_out + w.heads);
    }
}

void trib_rotated_propose_added(const struct trib_codec *c, const float *x,
                              float *residual, size_t n, float *proposal_out)
{
    for (struct window w = window_first(c, n); w.count; window_next(c, &w, n)) {
        c->kernels->axpy_f32(residual + w.at, x + w.at, 1.0f, w.count);
        trib_rotated_propose(c, residual + w.at, w.count, proposal_out + w.heads);
    }
}

/* Subtract R^-1 z from the residual while both are in the cache. */
static void take_off(const struct trib_codec *c, const struct trib_rht *r,
                     float *residual, float *z, size_t n)
{
    rotate_back(c, r, z, n);
    c->kernels->axpy_f32(residual, z, -1.0f, n);
    c->kernels->drop_not_finite(residual, n);
}

void trib_rotated_encode(const struct trib_codec *c, const struct trib_encode *in,
                         float *residual, uint8_t *dst)
{
    float z[TRIB_ROTATED_WINDOW], own[TRIB_ROTATED_WINDOW / TRIB_ROTATED_BLOCK_MIN];
    const struct trib_rht r = rotation(c);
    const bool unrotated = rule_of(c) && rule_of(c)->measures_unrotated;
    for (struct window w = window_first(c, in->n); w.count; window_next(c, &w, in->n)) {
        struct trib_values v = {.x = z,
                                .n = in->n,
                                .first = w.at,
                                .count = w.count,
                                .key = in->key,
                                .decoded = residual ? z : NULL};
        if (in->agreed) {
            v.agreed = in->agreed + w.heads;
        } else if (unrotated) {
            trib_packed_ints_propose(c, in->x + w.at, w.count, own);
            v.agreed = own;
        }
        rotate(c, &r, z, in->x + w.at, w.count);
        c->stages.quantise->encode(c, &v, dst);
        if (residual)
            take_off(c, &r, residual + w.at, z, w.count);
    }
}

/* ---- decode --------------------------------------------------------------------- */

static struct trib_code part_of(const struct trib_code *whole, const struct window *w)
{
    return (struct trib_code){whole->src, whole->len, whole->n, w->at, w->count};
}

void trib_rotated_decode(const struct trib_codec *c, const struct trib_code *whole,
                         float *x)
{
    const struct trib_rht r = rotation(c);
    const size_t n = whole->n;
    for (struct window w = window_first(c, n); w.count; window_next(c, &w, n)) {
        const struct trib_code code = part_of(whole, &w);
        c->stages.quantise->decode(c, &code, x + w.at);
        rotate_back(c, &r, x + w.at, w.count);
    }
}

void trib_rotated_add(const struct trib_codec *c, const struct trib_code *whole,
                      float weight, float *acc)
{
    float x[TRIB_ROTATED_WINDOW];
    const struct trib_rht r = rotation(c);
    const size_t n = whole->n;
    for (struct window w = window_first(c, n); w.count; window_next(c, &w, n)) {
        const struct trib_code code = part_of(whole, &w);
        c->stages.quantise->decode(c, &code, x);
        rotate_back(c, &r, x, w.count);
        c->kernels->axpy_f32(acc + w.at, x, weight, w.count);
    }
}
