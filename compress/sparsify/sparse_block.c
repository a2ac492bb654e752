/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The block of a sparse codec: some of n elements, or all of them if that is smaller.
 *
 *     byte 0     kind: 0 dense, 1 gaps, 2 bitmap, 3 strata
 *     byte 1     values: 0 as the codec quantises, 1 f32
 *     byte 2-3   0
 *     byte 4-7   m, the number of elements that follow; dense: n
 *     then       m quantised values
 *     then       their positions (index_gaps.h); dense: nothing. A selection of whole
 *                units (blocks.c) has the indices of the units
 *
 *                strata (randomly drawn selections only): two keys of 4 bytes, which
 *                determine the m positions (stratified.h); m is at least 1
 *
 * n = 0 is encoded as no bytes. A contribution has the codec's values. A partial sum
 * (TRIB_ENCODE_EXACT) has all non-zero elements in f32, so that merging loses nothing.
 * A finished sum (TRIB_ENCODE_RESULT) is the same, or quantises all non-zero elements
 * (requantised), or selects from them (selected).
 */
#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/minmax.h"
#include "compress/pack/index_gaps.h"
#include "compress/quantise/packed_ints.h"
#include "compress/sparsify/selection.h"
#include "compress/sparsify/stratified.h"

enum {
    HEADER_BYTES = 8,
    KEYS_BYTES = 8,
    BATCH = TRIB_INDEX_GAPS_GROUP,
    LINE_FLOATS = 16
};
enum { KIND_DENSE, KIND_GAPS, KIND_BITMAP, KIND_STRATA, KINDS };
enum { VALUES_QUANTISED, VALUES_F32, VALUES };

struct header {
    uint8_t kind;
    uint8_t values;
    uint16_t zero;
    uint32_t count;
};
_Static_assert(sizeof(struct header) == HEADER_BYTES, "header has no padding");

static size_t units_of(size_t n, size_t unit)
{
    return n / unit + (n % unit != 0);
}

/* If the dense form is allowed, no block is larger than it. */
size_t trib_sparse_bound(const struct trib_codec *c, size_t n)
{
    if (n == 0)
        return 0;
    const size_t positions = c->stages.select->fixed ? KEYS_BYTES : 0;
    return HEADER_BYTES + trib_max(c->stages.quantise->bytes(c, n), n * sizeof(float)) +
           positions;
}

/* In chunks of this length each gap takes fewer than 4 bytes, and all together one byte
 * more. */
size_t trib_codec_selected_bound(const struct trib_codec *c, size_t n, int ranks)
{
    const struct trib_select *select = c->stages.select;
    const size_t whole = trib_codec_bound(c, n);
    if (!select->counted || c->param[TRIB_PARAM_RATIO] <= 0 || n == 0 ||
        n > TRIB_SELECTED_PIECE)
        return whole;
    const size_t unit = select->unit(c), units = units_of(n, unit);
    const size_t m = trib_min(trib_selection_part(c, units) * (size_t)ranks, units);
    const size_t count = trib_min(m * unit, n);
    const size_t values =
        trib_max(c->stages.quantise->bytes(c, count), count * sizeof(float));
    const size_t positions = trib_min(4 * m + 1, (units + 7) / 8) + KEYS_BYTES;
    return trib_min(HEADER_BYTES + values + positions, whole);
}

/* Positions, then candidates or values. */
size_t trib_sparse_scratch(const struct trib_codec *c, size_t n)
{
    (void)c;
    return n ? ((n + 64 + n + 256) * sizeof(uint32_t) + 63) / 64 * 64 : 0;
}

/* Return the elements of unit u. */
static size_t unit_length(size_t u, size_t n, size_t unit)
{
    return n - u * unit < unit ? n - u * unit : unit;
}

/* ---- encode --------------------------------------------------------------------- */

/* The input of a block: the m units of x at s.positions, with `count` elements. */
struct job {
    const struct trib_codec *c;
    const struct trib_quantise *q;
    const float *x;
    struct trib_selection s;
    size_t unit;
    size_t m;
    size_t count;
    bool whole; /* all non-zero elements, not a selection */
    bool drawn; /* positions from trib_stratified_of */
    struct trib_index_gaps gaps; /* otherwise */
};

/* True if all j->m positions are drawn ones; writes the drawn ones to s.work. */
static bool all_drawn(const struct job *j, const struct trib_stratified *strata)
{
    const uint32_t *drawn = j->s.work, *positions = j->s.positions;
    size_t i = 0;
    trib_stratified_positions(j->c->kernels, strata, 0, strata->k, j->s.work);
    for (size_t d = 0; i < j->m && d < strata->k && drawn[d] <= positions[i]; d++)
        i += drawn[d] == positions[i];
    return i == j->m;
}

/* Use the drawn positions if they are shorter: sums of the ranks' selections are
 * non-zero at these positions only. */
static void prefer_drawn(struct job *j)
{
    const struct trib_stratified strata = trib_stratified_of(j->c, &j->s);
    const size_t with = j->q->bytes(j->c, strata.k) + KEYS_BYTES;
    if (strata.k == 0 || j->m > strata.k ||
        with > j->q->bytes(j->c, j->m) +
                   trib_index_gaps_measure(j->s.positions, j->m).bytes ||
        !all_drawn(j, &strata))
        return;
    j->m = strata.k;
    memcpy(j->s.positions, j->s.work, j->m * sizeof *j->s.positions);
    j->drawn = true;
}

static void choose(struct job *j)
{
    const struct trib_select *select = j->c->stages.select;
    const uint32_t *positions = j->s.positions;
    j->unit = select->unit(j->c);
    if (j->whole && j->unit > 1)
        j->m = j->c->kernels->blocks_nonzero(j->x, j->s.n, j->unit, j->s.positions);
    else if (j->whole)
        j->m = j->c->kernels->select_at_least(j->x, j->s.n, 1, j->s.positions);
    else
        j->m = select->choose(j->c, &j->s);
    j->drawn = !j->whole && select->drawn && j->m;
    if (j->whole && select->drawn)
        prefer_drawn(j);
    j->count = j->m ? (j->m - 1) * j->unit +
                          unit_length(positions[j->m - 1], j->s.n, j->unit)
                    : 0;
}

/* Choose the smallest layout. */
static uint8_t choose_kind(struct job *j)
{
    if (j->drawn)
        return KIND_STRATA;
    j->gaps = trib_index_gaps_measure(j->s.positions, j->m);
    const size_t gaps = j->gaps.bytes;
    const size_t bitmap = (units_of(j->s.n, j->unit) + 7) / 8;
    const size_t sparse = j->q->bytes(j->c, j->count) + (gaps < bitmap ? gaps : bitmap);
    const bool may_be_dense = j->q == &trib_quantise_f32 || !j->c->stages.select->fixed;
    if (may_be_dense && j->q->bytes(j->c, j->s.n) <= sparse)
        return KIND_DENSE;
    return gaps <= bitmap ? KIND_GAPS : KIND_BITMAP;
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

/* Mark one unit as sent: an element or a block. */
static void mark_unit(const struct trib_sent *sent, size_t first, size_t length)
{
    for (size_t at = sent->first + first; at < sent->first + first + length; at++)
        sent->mask[at / 8] |= (uint8_t)(1u << at % 8);
    if (sent->clear)
        memset(sent->clear + first, 0, length * sizeof *sent->clear);
}

static void mark_sent(const struct job *j, const struct trib_sent *sent)
{
    for (size_t i = 0; i < j->m; i++)
        mark_unit(sent, j->s.positions[i] * j->unit,
                  unit_length(j->s.positions[i], j->s.n, j->unit));
}

static void gather(const struct job *j, float *values)
{
    const uint32_t *positions = j->s.positions;
    if (j->unit == 1) {
        for (size_t i = 0; i < j->m; i++)
            values[i] = j->x[positions[i]];
        return;
    }
    for (size_t i = 0; i < j->m; i++) {
        const size_t length = unit_length(positions[i], j->s.n, j->unit);
        memcpy(values, j->x + positions[i] * j->unit, length * sizeof *values);
        values += length;
    }
}

/* Subtract the decoded values from the residual. If the result has NaN or Inf, drop the
 * unselected ones too, since the receivers see that the block is bad. */
static void subtract(const struct job *j, const float *sent)
{
    bool finite = true;

    for (size_t i = 0; j->unit == 1 && i < j->m; i++) {
        float *x = j->s.residual + j->s.positions[i];
        *x -= sent[i];
        finite &= isfinite(*x) != 0;
    }
    for (size_t i = 0; j->unit > 1 && i < j->m; i++) {
        const size_t length = unit_length(j->s.positions[i], j->s.n, j->unit);
        float *x = j->s.residual + j->s.positions[i] * j->unit;
        for (size_t k = 0; k < length; k++) {
            x[k] -= *sent++;
            finite &= isfinite(x[k]) != 0;
        }
    }
    if (!finite)
        j->c->kernels->drop_not_finite(j->s.residual, j->s.n);
}

static void quantise(const struct job *j, const float *x, size_t n, uint8_t *dst)
{
    const struct trib_values v = {.x = x, .n = n, .count = n, .key = *j->s.key};
    j->q->encode(j->c, &v, dst);
}

static size_t encode_values(const struct job *j, uint8_t *dst)
{
    const struct trib_code code = {dst, j->q->bytes(j->c, j->count), j->count, 0,
                                   j->count};
    /* the candidates are no longer needed */
    float *values = (float *)(void *)j->s.work;
    gather(j, values);
    if (j->q == j->c->stages.quantise)
        j->c->stages.select->adjust(j->c, &j->s, j->count, values);
    quantise(j, values, j->count, dst);
    if (j->s.residual) {
        j->q->decode(j->c, &code, values);
        subtract(j, values);
    }
    return code.len;
}

static size_t encode_dense(const struct job *j, uint8_t *dst)
{
    const struct trib_code code = {dst, j->q->bytes(j->c, j->s.n), j->s.n, 0, j->s.n};
    quantise(j, j->x, j->s.n, dst);
    if (j->s.residual) {
        j->q->decode_add(j->c, &code, -1.0f, j->s.residual);
        j->c->kernels->drop_not_finite(j->s.residual, j->s.n);
    }
    return code.len;
}

static size_t encode_positions(const struct job *j, uint8_t kind, uint8_t *dst)
{
    const size_t units = units_of(j->s.n, j->unit);
    if (kind == KIND_STRATA) {
        const struct trib_stratified strata = trib_stratified_of(j->c, &j->s);
        memcpy(dst, strata.keys, KEYS_BYTES);
        return KEYS_BYTES;
    }
    if (kind == KIND_BITMAP) {
        trib_bitmap_encode(j->s.positions, j->m, units, dst);
        return (units + 7) / 8;
    }
    return trib_index_gaps_encode(j->s.positions, j->m, j->gaps.low_bits, dst);
}

size_t trib_sparse_encode(const struct trib_codec *c, const struct trib_encode *in,
                          float *residual, uint8_t *dst)
{
    const bool result = in->mode == TRIB_ENCODE_RESULT;
    const int rule = result ? (int)c->param[TRIB_PARAM_RESULT] : TRIB_RESULT_SELECTED;
    const bool exact = in->mode == TRIB_ENCODE_EXACT || rule == TRIB_RESULT_SUMS;
    const size_t n = in->n;
    struct job j = {.c = c,
                    .q = exact ? &trib_quantise_f32 : c->stages.quantise,
                    .x = residual ? residual : in->x,
                    .s = {.x = in->x,
                          .residual = residual,
                          .n = n,
                          .total = in->total,
                          .key = &in->key,
                          .carried = residual ? in->carried : NULL,
                          .zeros = residual ? in->zeros : NULL,
                          .of_sum = exact || result},
                    .whole = exact || rule == TRIB_RESULT_REQUANTISED};
    if (n == 0)
        return 0;
    assert(n <= UINT32_MAX - 64 && c->stages.transform == &trib_transform_none);
    j.s.positions = in->scratch;
    j.s.work = j.s.positions + n + 64;
    choose(&j);

    struct header h = {.kind = choose_kind(&j),
                       .values = exact ? VALUES_F32 : VALUES_QUANTISED};
    h.count = (uint32_t)(h.kind == KIND_DENSE ? n : j.count);
    memcpy(dst, &h, HEADER_BYTES);
    if (in->sent && h.kind == KIND_DENSE)
        trib_sent_mark_all(in->sent, n);
    else if (in->sent)
        mark_sent(&j, in->sent);
    if (h.kind == KIND_DENSE)
        return HEADER_BYTES + encode_dense(&j, dst + HEADER_BYTES);
    const size_t len = HEADER_BYTES + encode_values(&j, dst + HEADER_BYTES);
    return len + encode_positions(&j, h.kind, dst + len);
}

/* ---- decode --------------------------------------------------------------------- */

static bool header_read(const struct trib_codec *c, const struct trib_decode *d,
                        struct header *h_out)
{
    if (d->len < HEADER_BYTES)
        return false;
    memcpy(h_out, d->src, HEADER_BYTES);
    if (h_out->kind == KIND_STRATA && (!c->stages.select->drawn || h_out->count == 0))
        return false;
    return h_out->kind < KINDS && h_out->values < VALUES && h_out->zero == 0 &&
           h_out->count <= d->n && (h_out->kind != KIND_DENSE || h_out->count == d->n);
}

/* Set the marked elements to 0, and clear the marks. */
static void clear_marked(const struct trib_decode *d)
{
    for (size_t w = 0; w < trib_marked_words(d->n); w++) {
        for (uint64_t left = d->lines[w]; left; left &= left - 1) {
            const size_t line = w * 64 + (size_t)__builtin_ctzll(left);
            const size_t at = line * TRIB_MARKED;
            if (at + TRIB_MARKED <= d->n)
                memset(d->x + at, 0, TRIB_MARKED * sizeof *d->x);
            for (size_t i = at; at + TRIB_MARKED > d->n && i < d->n; i++)
                d->x[i] = 0.0f;
        }
        d->lines[w] = 0;
    }
}

static void mark(const struct trib_decode *d, size_t first, size_t count)
{
    const size_t end = (first + count - 1) / TRIB_MARKED;
    for (size_t line = first / TRIB_MARKED; d->lines && count && line <= end; line++)
        d->lines[line / 64] |= 1ull << line % 64;
}

static void scatter(const struct trib_decode *d, const uint32_t *positions,
                    const float *values, size_t count)
{
    for (size_t j = 0; d->lines && j < count; j++) {
        const size_t line = positions[j] / TRIB_MARKED;
        d->lines[line / 64] |= 1ull << line % 64;
    }
    if (d->overwrite) {
        for (size_t j = 0; j < count; j++)
            d->x[positions[j]] = values[j];
        return;
    }
    for (size_t j = 0; j < count; j++)
        d->x[positions[j]] += d->weight * values[j];
}

static void decode_elements(const struct trib_codec *c, const struct trib_quantise *q,
                            const struct trib_decode *d, struct trib_code *code)
{
    if (d->overwrite)
        q->decode(c, code, d->x);
    else
        q->decode_add(c, code, d->weight, d->x);
}

/* Decode units at m positions, with values from code->first; false: too few values. */
static bool scatter_units(const struct trib_codec *c, const struct trib_quantise *q,
                          const struct trib_decode *d, const uint32_t *positions,
                          size_t m, struct trib_code *code)
{
    const size_t unit = c->stages.select->unit(c);
    struct trib_decode to = *d;
    for (size_t i = 0; i < m; i++) {
        code->count = unit_length(positions[i], d->n, unit);
        if (code->count > code->n - code->first)
            return false;
        to.x = d->x + positions[i] * unit;
        mark(d, positions[i] * unit, code->count);
        decode_elements(c, q, &to, code);
        code->first += code->count;
    }
    return true;
}

static bool scatter_all_units(const struct trib_codec *c, const struct trib_quantise *q,
                              const struct trib_decode *d, struct trib_positions *p,
                              struct trib_code *code)
{
    uint32_t positions[BATCH];
    size_t m;
    while ((m = trib_positions_next(p, positions)) > 0)
        if (!scatter_units(c, q, d, positions, m, code))
            return false;
    return true;
}

/* Read the next positions. With fetch, prefetch their elements into the second-level
 * cache, which supports more outstanding misses than the first. */
static size_t next_ahead(const struct trib_decode *d, struct trib_positions *p,
                         bool fetch, uint32_t positions_out[BATCH])
{
    const size_t m = trib_positions_next(p, positions_out);
    for (size_t i = 0; fetch && i < m; i++)
        __builtin_prefetch(d->x + positions_out[i], 0, 2);
    return m;
}

/* Distant elements are a cache miss each: prefetch those of a batch while the previous
 * batch is added. Elements just set to 0 are already in the cache. */
static void scatter_elements(const struct trib_codec *c, const struct trib_quantise *q,
                             const struct trib_decode *d, struct trib_positions *p,
                             struct trib_code *code)
{
    const bool fetch = (!d->overwrite || d->zeros || d->lines) &&
                       p->left < p->n / LINE_FLOATS;
    uint32_t positions[2][BATCH];
    float values[BATCH];
    size_t m = next_ahead(d, p, fetch, positions[0]);
    for (int turn = 0; m > 0; turn = !turn, code->first += code->count) {
        code->count = m;
        m = next_ahead(d, p, fetch, positions[!turn]);
        q->decode(c, code, values);
        scatter(d, positions[turn], values, code->count);
    }
}

static trib_status_t decode_drawn(const struct trib_codec *c,
                                  const struct trib_quantise *q,
                                  const struct trib_decode *d, const struct header *h)
{
    const size_t bytes = q->bytes(c, h->count);
    struct trib_code code = {.src = d->src + HEADER_BYTES, .len = bytes, .n = h->count};
    struct trib_stratified strata = {.n = d->n, .k = h->count};
    uint32_t positions[BATCH];
    float values[BATCH];
    if (d->len - HEADER_BYTES - bytes != KEYS_BYTES)
        return TRIB_ERR_CODEC;
    memcpy(strata.keys, code.src + bytes, KEYS_BYTES);
    for (; code.first < code.n; code.first += code.count) {
        code.count = code.n - code.first < BATCH ? code.n - code.first : BATCH;
        trib_stratified_positions(c->kernels, &strata, code.first, code.count,
                                  positions);
        q->decode(c, &code, values);
        scatter(d, positions, values, code.count);
    }
    return TRIB_OK;
}

static trib_status_t decode_positions(const struct trib_codec *c,
                                      const struct trib_quantise *q,
                                      const struct trib_decode *d,
                                      const struct header *h)
{
    const size_t bytes = q->bytes(c, h->count), unit = c->stages.select->unit(c);
    const size_t units = units_of(d->n, unit);
    struct trib_code code = {.src = d->src + HEADER_BYTES, .len = bytes, .n = h->count};
    struct trib_positions p = {.n = units, .left = units_of(h->count, unit)};
    if (!trib_positions_open(&p, code.src + bytes, d->len - HEADER_BYTES - bytes,
                             h->kind == KIND_BITMAP))
        return TRIB_ERR_CODEC;
    if (unit == 1)
        scatter_elements(c, q, d, &p, &code);
    else if (!scatter_all_units(c, q, d, &p, &code))
        return TRIB_ERR_CODEC;
    return code.first == code.n && trib_positions_done(&p) ? TRIB_OK : TRIB_ERR_CODEC;
}

trib_status_t trib_sparse_decode(const struct trib_codec *c,
                                 const struct trib_decode *d)
{
    struct header h;
    if (d->n == 0)
        return d->len == 0 ? TRIB_OK : TRIB_ERR_CODEC;
    if (!header_read(c, d, &h))
        return TRIB_ERR_CODEC;
    const struct trib_quantise *q =
        h.values == VALUES_F32 ? &trib_quantise_f32 : c->stages.quantise;
    const size_t values = q->bytes(c, h.count);
    if (d->len - HEADER_BYTES < values)
        return TRIB_ERR_CODEC;
    if (q->packed_ints &&
        !trib_packed_ints_valid(c, d->src + HEADER_BYTES, values, h.count))
        return TRIB_ERR_CODEC;
    if (h.kind == KIND_DENSE) {
        struct trib_code code = {d->src + HEADER_BYTES, values, d->n, 0, d->n};
        if (d->len - HEADER_BYTES != values)
            return TRIB_ERR_CODEC;
        mark(d, 0, d->n);
        decode_elements(c, q, d, &code);
        return TRIB_OK;
    }
    if (d->overwrite && d->lines)
        clear_marked(d);
    else if (d->overwrite && !d->zeros)
        memset(d->x, 0, d->n * sizeof *d->x);
    if (h.kind == KIND_STRATA)
        return decode_drawn(c, q, d, &h);
    return decode_positions(c, q, d, &h);
}
