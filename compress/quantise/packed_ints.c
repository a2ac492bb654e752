/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "compress/quantise/packed_ints_parts.h"

/* Return the narrowest lane width for sums up to `most`. */
static int bits_for(uint64_t most)
{
    int bits = 1;
    while (bits < 8 && most >> bits)
        bits++;
    if (most >> bits)
        bits = 16;
    return most >> bits ? 32 : bits;
}

/* Bits of a finished vote: a tie needs a third symbol. */
static int vote_bits(uint32_t contributions)
{
    return contributions % 2 ? 1 : 2;
}

int trib_packed_bits(const struct trib_codec *c, const struct trib_packed_ints *l,
                   int kind, uint32_t contributions)
{
    switch (kind) {
    case TRIB_PACKED_SYMBOLS:
        return contributions == 1 ? l->bits : 0;
    case TRIB_PACKED_SUMS:
        return bits_for((uint64_t)contributions * l->most);
    default:
        return trib_packed_rule(c)->votes ? vote_bits(contributions) : 0;
    }
}

size_t trib_packed_ints_bytes(const struct trib_codec *c, size_t n)
{
    const struct trib_packed_ints l = trib_packed_rule(c)->layout(c);
    return trib_packed_word_bytes(&l, n, l.bits);
}

size_t trib_packed_ints_bound(const struct trib_codec *c, size_t n)
{
    const struct trib_packed_ints l = trib_packed_rule(c)->layout(c);
    const int sum = bits_for((uint64_t)c->ranks * l.most);
    return trib_packed_word_bytes(&l, n, sum > l.bits ? sum : l.bits);
}

bool trib_packed_ints_fit(const struct trib_codec *c, int ranks)
{
    const struct trib_packed_ints l = trib_packed_rule(c)->layout(c);
    return (uint64_t)ranks * l.most <= UINT32_MAX;
}

/* ---- encode --------------------------------------------------------------------- */

size_t trib_packed_ints_agreed_floats(const struct trib_codec *c, size_t n)
{
    const struct trib_packed_ints l = trib_packed_rule(c)->layout(c);
    return trib_packed_head_floats(&l, n);
}

void trib_packed_ints_propose(const struct trib_codec *c, const float *x, size_t n,
                      float *proposal_out)
{
    const struct trib_packed_ints l = trib_packed_rule(c)->layout(c);
    for (size_t i = 0; l.heads && i < n; i += l.bucket, proposal_out += l.heads)
        trib_packed_rule(c)->measure(c, x + i, trib_min(l.bucket, n - i), proposal_out);
}

void trib_packed_ints_propose_added(const struct trib_codec *c, const float *x,
                                    float *residual, size_t n, float *proposal_out)
{
    const struct trib_packed_ints l = trib_packed_rule(c)->layout(c);
    for (size_t i = 0; i < n; i += l.bucket, proposal_out += l.heads) {
        const size_t count = trib_min(l.bucket, n - i);
        if (trib_packed_rule(c)->measure_added) {
            trib_packed_rule(c)->measure_added(c, residual + i, x + i, count,
                                               proposal_out);
            continue;
        }
        c->kernels->axpy_f32(residual + i, x + i, 1.0f, count);
        trib_packed_rule(c)->measure(c, residual + i, count, proposal_out);
    }
}

/* Decode symbols of up to 16 bits, one or two bytes each. */
static void decode_symbols(const struct trib_codec *c, const struct trib_packed_ints *l,
                           const uint8_t *symbols, size_t n,
                           const struct trib_shared_scale_args *g, float *x)
{
    uint8_t points[TRIB_PACKED_PIECE];
    if (l->bits > 8) {
        c->kernels->shared_scale_decode_u16(x, symbols, n, g);
        return;
    }
    if (l->adds)
        c->kernels->grid_points(points, symbols, n, l->adds);
    c->kernels->shared_scale_decode(x, l->adds ? points : symbols, n, g);
}

void trib_packed_encode_symbols(const struct trib_codec *c,
                                const struct trib_packed_ints *l,
                                const struct trib_packed_source *s,
                                struct trib_rng_keys *rng_keys,
                                struct trib_shared_scale_args *g, uint8_t *dst)
{
    uint8_t codes[TRIB_PACKED_PIECE + 8];
    const size_t element = l->bits > 8 ? 2 : 1;
    for (size_t i = 0; i < s->n; i += TRIB_PACKED_PIECE) {
        const size_t count = trib_min(TRIB_PACKED_PIECE, s->n - i);
        uint8_t *to = l->bits < 8 ? codes : dst + i * element;
        for (size_t j = 0, at = i, same; j < count; j += same, at += same) {
            same =
                trib_min(trib_rng_keys_at(rng_keys, s->index + at, g->key), count - j);
            if (s->kept)
                trib_packed_rule(c)->keep(c, to + j * element, s->kept + at, same, g);
            else
                trib_packed_rule(c)->encode(c, to + j * element, s->x + at, same, g);
        }
        if (s->decoded)
            decode_symbols(c, l, to, count, g, s->decoded + i);
        if (l->bits < 8)
            c->kernels->bits_pack(dst + i / 8 * (size_t)l->bits, codes, count, l->bits);
    }
}

void trib_packed_encode_nothing(const struct trib_codec *c,
                                const struct trib_packed_ints *l,
                                const struct trib_packed_source *s,
                                struct trib_shared_scale_args *g, uint8_t *dst)
{
    static const uint8_t zeros[2 * TRIB_PACKED_PIECE];
    memset(dst, 0, trib_packed_lanes_bytes(s->n, l->bits));
    g->weight = -1.0f;
    for (size_t i = 0; s->kept && i < s->n; i += TRIB_PACKED_PIECE) {
        const size_t count = trib_min(TRIB_PACKED_PIECE, s->n - i);
        c->kernels->shared_scale_add(s->kept + i, zeros, count, g);
        c->kernels->drop_not_finite(s->kept + i, count);
    }
    for (size_t i = 0; s->decoded && i < s->n; i += TRIB_PACKED_PIECE)
        decode_symbols(c, l, zeros, trib_min(TRIB_PACKED_PIECE, s->n - i), g,
                       s->decoded + i);
}

bool trib_packed_ints_keeps(const struct trib_codec *c)
{
    return trib_packed_rule(c)->keep;
}

void trib_packed_ints_encode(const struct trib_codec *c, const struct trib_values *v,
                       uint8_t *dst)
{
    const struct trib_packed_ints l = trib_packed_rule(c)->layout(c);
    const struct trib_packed_header h = {
        .bits = (uint8_t)l.bits, .kind = TRIB_PACKED_SYMBOLS, .contributions = 1};
    struct trib_rng_keys rng_keys = trib_rng_keys_new(&v->key);
    float head[TRIB_LANE_HEADS_MAX];
    const float *share = v->agreed;
    if (v->n == 0)
        return;
    uint8_t *heads = dst + trib_packed_lanes_at(&l, v->first);
    uint8_t *lanes = dst + trib_packed_lanes_at(&l, v->n) +
                     trib_packed_lanes_bytes(v->first, l.bits);
    assert(v->first % l.bucket == 0);
    memcpy(dst, &h, TRIB_PACKED_HEADER_BYTES);
    for (size_t i = 0; i < v->count; i += l.bucket) {
        const struct trib_packed_source s = {.x = v->x + i,
                                             .kept = v->kept ? v->kept + i : NULL,
                                             .decoded =
                                                 v->decoded ? v->decoded + i : NULL,
                                             .n = trib_min(l.bucket, v->count - i),
                                             .index = v->key.index + v->first + i};
        uint8_t *to = lanes + trib_packed_lanes_bytes(i, l.bits);
        struct trib_shared_scale_args g;
        if (share)
            memcpy(head, share, l.heads * sizeof *head);
        else
            trib_packed_rule(c)->measure(c, s.x, s.n, head);
        memcpy(heads, head, l.heads * sizeof *head);
        heads += l.heads * sizeof *head;
        share = share ? share + l.heads : NULL;
        if (trib_packed_rule(c)->grid(c, head, 1, &g))
            trib_packed_encode_symbols(c, &l, &s, &rng_keys, &g, to);
        else
            trib_packed_encode_nothing(c, &l, &s, &g, to);
    }
}

/* ---- decode --------------------------------------------------------------------- */

bool trib_packed_ints_valid(const struct trib_codec *c, const uint8_t *src, size_t len,
                      size_t n)
{
    const struct trib_packed_ints l = trib_packed_rule(c)->layout(c);
    struct trib_packed_header h;
    if (n == 0)
        return len == 0;
    if (len < TRIB_PACKED_HEADER_BYTES)
        return false;
    memcpy(&h, src, TRIB_PACKED_HEADER_BYTES);
    return h.zero == 0 && h.kind < TRIB_PACKED_KINDS && h.contributions > 0 &&
           h.contributions <= c->ranks && h.bits > 0 &&
           h.bits == trib_packed_bits(c, &l, h.kind, h.contributions) &&
           len == trib_packed_word_bytes(&l, n, h.bits);
}

const uint8_t *trib_packed_lanes_open(const struct trib_codec *c, const uint8_t *lanes,
                                 int bits, size_t at, size_t count, uint8_t *codes)
{
    if (bits >= 8)
        return lanes + at * (size_t)bits / 8;
    assert(at % 8 == 0);
    c->kernels->bits_unpack(codes, lanes + at / 8 * (size_t)bits, count, bits);
    return codes;
}

void trib_packed_open_grid(const struct trib_codec *c,
                           const struct trib_packed_header *h, const float *head,
                           struct trib_shared_scale_args *g)
{
    if (h->kind == TRIB_PACKED_VOTES) {
        const bool tie = h->bits == 2;
        g->middle = tie ? 1 : 0;
        g->unit = tie ? -1.0f : -2.0f;
        g->base = tie ? 0.0f : 1.0f;
        return;
    }
    (void)trib_packed_rule(c)->grid(c, head, h->contributions, g);
    if (h->divisor) {
        g->unit /= (float)h->divisor;
        g->base /= (float)h->divisor;
    }
}

/* Prepare for the first piece; false: there is none. */
static bool pieces_open(const struct trib_packed_ints *l, const struct trib_code *code,
                        struct trib_packed_piece *p)
{
    p->at = p->count = 0;
    if (code->len < TRIB_PACKED_HEADER_BYTES)
        return false; /* an encoding of no elements */
    memcpy(&p->header, code->src, TRIB_PACKED_HEADER_BYTES);
    return trib_packed_header_fits(&p->header, l, code->n, code->len);
}

/* Advance p to the next piece; false: end of the range. */
static bool next_piece(const struct trib_codec *c, const struct trib_packed_ints *l,
                       const struct trib_code *code, struct trib_packed_piece *p)
{
    const struct trib_packed_header h = p->header;
    float head[TRIB_LANE_HEADS_MAX];
    p->at += p->count;
    const size_t at = code->first + p->at, in_bucket = l->bucket - at % l->bucket;
    p->count = trib_min(TRIB_PACKED_PIECE, trib_min(in_bucket, code->count - p->at));
    if (!p->count)
        return false;
    memcpy(head,
           code->src + TRIB_PACKED_HEADER_BYTES +
               at / l->bucket * l->heads * sizeof *head,
           l->heads * sizeof *head);
    trib_packed_open_grid(c, &h, head, &p->grid);
    p->bytes = h.bits > 8 ? h.bits / 8 : 1;
    p->lanes = trib_packed_lanes_open(c, code->src + trib_packed_lanes_at(l, code->n),
                                      h.bits, at, p->count, p->codes);
    if (l->adds && h.kind == TRIB_PACKED_SYMBOLS)
        c->kernels->grid_points(p->codes, p->codes, p->count, l->adds);
    return true;
}

static float value_u32(const struct trib_packed_piece *p, size_t i)
{
    uint32_t lane;
    memcpy(&lane, p->lanes + i * sizeof lane, sizeof lane);
    return (float)((double)lane - (double)p->grid.middle) * p->grid.unit + p->grid.base;
}

void trib_packed_decode_piece(const struct trib_codec *c,
                              const struct trib_packed_piece *p, float *x)
{
    if (p->bytes == 1)
        c->kernels->shared_scale_decode(x, p->lanes, p->count, &p->grid);
    else if (p->bytes == 2)
        c->kernels->shared_scale_decode_u16(x, p->lanes, p->count, &p->grid);
    for (size_t i = 0; p->bytes == 4 && i < p->count; i++)
        x[i] = value_u32(p, i);
}

static void add_piece(const struct trib_codec *c, const struct trib_packed_piece *p,
                      float *acc)
{
    if (p->bytes == 1)
        c->kernels->shared_scale_add(acc, p->lanes, p->count, &p->grid);
    else if (p->bytes == 2)
        c->kernels->shared_scale_add_u16(acc, p->lanes, p->count, &p->grid);
    for (size_t i = 0; p->bytes == 4 && i < p->count; i++)
        acc[i] += p->grid.weight * value_u32(p, i);
}

void trib_packed_ints_decode(const struct trib_codec *c, const struct trib_code *code,
                       float *x)
{
    const struct trib_packed_ints l = trib_packed_rule(c)->layout(c);
    struct trib_packed_piece p;
    if (!pieces_open(&l, code, &p))
        memset(x, 0, code->count * sizeof *x);
    else
        while (next_piece(c, &l, code, &p))
            trib_packed_decode_piece(c, &p, x + p.at);
}

void trib_packed_ints_add(const struct trib_codec *c, const struct trib_code *code,
                    float weight, float *acc)
{
    const struct trib_packed_ints l = trib_packed_rule(c)->layout(c);
    struct trib_packed_piece p;
    if (!pieces_open(&l, code, &p))
        return;
    while (next_piece(c, &l, code, &p)) {
        p.grid.weight = weight;
        add_piece(c, &p, acc + p.at);
    }
}
