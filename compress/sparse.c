/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The block of a sparse codec: some elements of n, or all of them where that is
 * smaller.
 *
 *     byte 0     kind: 0 dense, 1 gaps, 2 bitmap
 *     byte 1     values: 0 as the codec quantises, 1 f32
 *     byte 2-3   0
 *     byte 4-7   m, the number of elements that follow; dense: n
 *     then       m quantised values
 *     then       their positions (gaps.h); dense: nothing
 *
 * n = 0 is no bytes at all. A contribution has the codec's values; what merges several
 * (TRIB_ENCODE_EXACT) has all that is not zero, in f32, so that merging loses nothing.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "compress/gaps.h"
#include "compress/stages.h"

enum { HEADER_BYTES = 8, BATCH = TRIB_GAPS_GROUP };
enum { KIND_DENSE, KIND_GAPS, KIND_BITMAP, KINDS };
enum { VALUES_QUANTISED, VALUES_F32, VALUES };

struct header {
    uint8_t kind;
    uint8_t values;
    uint16_t zero;
    uint32_t count;
};
_Static_assert(sizeof(struct header) == HEADER_BYTES, "header has no holes");

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Dense is always allowed, so nothing is larger than it. */
size_t trib_sparse_bound(const struct trib_codec *c, size_t n)
{
    if (n == 0)
        return 0;
    return HEADER_BYTES + larger(c->stages.quantise->bytes(c, n), n * sizeof(float));
}

/* Two arrays of n + 64 words: positions, and candidates or values. */
size_t trib_sparse_scratch(const struct trib_codec *c, size_t n)
{
    (void)c;
    return n ? (2 * (n + 64) * sizeof(uint32_t) + 63) / 64 * 64 : 0;
}

/* The smallest layout for m positions of n, and its bytes behind the header. */
static uint8_t choose_kind(const uint32_t *positions, size_t m, size_t n,
                           const struct trib_quantise *q, const struct trib_codec *c)
{
    const size_t values = q->bytes(c, m);
    const size_t gaps = values + trib_gaps_bytes(positions, m);
    const size_t bitmap = values + (n + 7) / 8;
    const size_t sparse = gaps < bitmap ? gaps : bitmap;
    if (q->bytes(c, n) <= sparse)
        return KIND_DENSE;
    return gaps <= bitmap ? KIND_GAPS : KIND_BITMAP;
}

static void mark_sent(const struct trib_sent *sent, const uint32_t *positions, size_t m)
{
    for (size_t i = 0; i < m; i++) {
        const size_t at = sent->first + positions[i];
        sent->mask[at / 8] |= (uint8_t)(1u << at % 8);
        if (sent->clear)
            sent->clear[positions[i]] = 0.0f;
    }
}

void trib_sent_mark_all(const struct trib_sent *sent, size_t n)
{
    const size_t end = sent->first + n;
    size_t at = sent->first;
    for (; at < end && at % 8; at++)
        sent->mask[at / 8] |= (uint8_t)(1u << at % 8);
    if (at < end)
        memset(sent->mask + at / 8, 0xff, (end - at) / 8);
    for (at += (end - at) / 8 * 8; at < end; at++)
        sent->mask[at / 8] |= (uint8_t)(1u << at % 8);
    if (sent->clear)
        memset(sent->clear, 0, n * sizeof *sent->clear);
}

size_t trib_sparse_encode(const struct trib_codec *c, const struct trib_encode *in,
                          uint8_t *dst)
{
    const size_t n = in->n;
    const bool exact = in->mode == TRIB_ENCODE_EXACT;
    const struct trib_quantise *q = exact ? &trib_quantise_f32 : c->stages.quantise;
    if (n == 0)
        return 0;
    assert(n <= UINT32_MAX - 64);
    uint32_t *positions = in->scratch;
    uint32_t *work = positions + n + 64;
    float *values = (float *)(void *)work; /* candidates are gone by then */
    const float *x = c->stages.transform->apply(c, in->x, n, in->scratch);
    const size_t m = exact ? c->kernels->select_at_least(x, n, 1, positions)
                           : c->stages.select->choose(c, x, n, positions, work);

    struct header h = {.kind = choose_kind(positions, m, n, q, c),
                       .values = exact ? VALUES_F32 : VALUES_QUANTISED};
    h.count = (uint32_t)(h.kind == KIND_DENSE ? n : m);
    memcpy(dst, &h, HEADER_BYTES);
    uint8_t *at = dst + HEADER_BYTES;
    if (in->sent && h.kind == KIND_DENSE)
        trib_sent_mark_all(in->sent, n);
    else if (in->sent)
        mark_sent(in->sent, positions, m);
    if (h.kind == KIND_DENSE) {
        q->encode(c, x, n, &in->key, at);
        return HEADER_BYTES + q->bytes(c, n);
    }
    for (size_t i = 0; i < m; i++)
        values[i] = x[positions[i]];
    q->encode(c, values, m, &in->key, at);
    at += q->bytes(c, m);
    if (h.kind == KIND_BITMAP) {
        trib_bitmap_encode(positions, m, n, at);
        return (size_t)(at - dst) + (n + 7) / 8;
    }
    trib_gaps_encode(positions, m, at);
    return (size_t)(at - dst) + trib_gaps_bytes(positions, m);
}

static bool header_read(const struct trib_sparse_decode *d, struct header *h_out)
{
    if (d->len < HEADER_BYTES)
        return false;
    memcpy(h_out, d->src, HEADER_BYTES);
    return h_out->kind < KINDS && h_out->values < VALUES && h_out->zero == 0 &&
           h_out->count <= d->n && (h_out->kind != KIND_DENSE || h_out->count == d->n);
}

static void scatter(const struct trib_sparse_decode *d, const uint32_t *positions,
                    const float *values, size_t count)
{
    if (d->overwrite) {
        for (size_t j = 0; j < count; j++)
            d->x[positions[j]] = values[j];
        return;
    }
    for (size_t j = 0; j < count; j++)
        d->x[positions[j]] += d->weight * values[j];
    for (size_t j = 0; d->drop && j < count; j++)
        if (!isfinite(d->x[positions[j]]))
            d->x[positions[j]] = 0.0f;
}

static trib_status_t decode_positions(const struct trib_codec *c,
                                      const struct trib_quantise *q,
                                      const struct trib_sparse_decode *d,
                                      const struct header *h)
{
    const size_t bytes = q->bytes(c, h->count);
    struct trib_code code = {.src = d->src + HEADER_BYTES, .n = h->count};
    struct trib_positions p = {.src = code.src + bytes,
                               .len = d->len - HEADER_BYTES - bytes,
                               .n = d->n,
                               .left = h->count,
                               .bitmap = h->kind == KIND_BITMAP};
    uint32_t positions[BATCH];
    float values[BATCH];
    if (p.bitmap && p.len != (d->n + 7) / 8)
        return TRIB_ERR_CODEC;
    while ((code.count = trib_positions_next(&p, positions)) > 0) {
        q->decode(c, &code, values);
        scatter(d, positions, values, code.count);
        code.first += code.count;
    }
    return trib_positions_done(&p) ? TRIB_OK : TRIB_ERR_CODEC;
}

trib_status_t trib_sparse_decode(const struct trib_codec *c,
                                 const struct trib_sparse_decode *d)
{
    struct header h;
    if (d->n == 0)
        return d->len == 0 ? TRIB_OK : TRIB_ERR_CODEC;
    if (!header_read(d, &h))
        return TRIB_ERR_CODEC;
    const struct trib_quantise *q =
        h.values == VALUES_F32 ? &trib_quantise_f32 : c->stages.quantise;
    const size_t values = q->bytes(c, h.count);
    if (d->len - HEADER_BYTES < values)
        return TRIB_ERR_CODEC;
    if (h.kind == KIND_DENSE) {
        const struct trib_code code = {d->src + HEADER_BYTES, d->n, 0, d->n};
        if (d->len - HEADER_BYTES != values)
            return TRIB_ERR_CODEC;
        if (d->overwrite)
            q->decode(c, &code, d->x);
        else
            q->decode_add(c, &code, d->weight, d->x);
        if (d->drop)
            c->kernels->drop_not_finite(d->x, d->n);
        return TRIB_OK;
    }
    if (d->overwrite)
        memset(d->x, 0, d->n * sizeof *d->x);
    return decode_positions(c, q, d, &h);
}
