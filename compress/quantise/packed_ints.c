/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/quantise/packed_ints.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "compress/pack/bitpack.h"
#include "compress/quantise/rng_keys.h"

enum { HEADER_BYTES = 12, PIECE = 1024 };
enum { KIND_SYMBOLS, KIND_SUMS, KIND_VOTES, KINDS };

struct header {
    uint8_t bits;
    uint8_t kind;
    uint16_t zero;
    uint32_t contributions;
    uint32_t divisor;
};
_Static_assert(sizeof(struct header) == HEADER_BYTES, "header has no holes");

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static const struct trib_packed_ints_rule *rule_of(const struct trib_codec *c)
{
    return c->stages.quantise->packed_ints;
}

static size_t head_floats(const struct trib_packed_ints *l, size_t n)
{
    return (n / l->bucket + (n % l->bucket != 0)) * l->heads;
}

/* The offset of the packed integers. */
static size_t packed_ints_at(const struct trib_packed_ints *l, size_t n)
{
    return HEADER_BYTES + head_floats(l, n) * sizeof(float);
}

static size_t packed_ints_bytes(size_t n, int bits)
{
    return bits <= 8 ? trib_bits_bytes(n, bits) : n * (size_t)bits / 8;
}

static size_t word_bytes(const struct trib_packed_ints *l, size_t n, int bits)
{
    return n ? packed_ints_at(l, n) + packed_ints_bytes(n, bits) : 0;
}

/* The narrowest lanes for sums up to `most`. */
static int bits_for(uint64_t most)
{
    int bits = 1;
    while (bits < 8 && most >> bits)
        bits++;
    if (most >> bits)
        bits = 16;
    return most >> bits ? 32 : bits;
}

/* Bits of a finished vote: a tie takes a third symbol. */
static int vote_bits(uint32_t contributions)
{
    return contributions % 2 ? 1 : 2;
}

/* The width of the integers in such a word; 0 if no word is such. */
static int bits_of(const struct trib_codec *c, const struct trib_packed_ints *l,
                   int kind, uint32_t contributions)
{
    switch (kind) {
    case KIND_SYMBOLS:
        return contributions == 1 ? l->bits : 0;
    case KIND_SUMS:
        return bits_for((uint64_t)contributions * l->most);
    default:
        return rule_of(c)->votes ? vote_bits(contributions) : 0;
    }
}

size_t trib_packed_ints_bytes(const struct trib_codec *c, size_t n)
{
    const struct trib_packed_ints l = rule_of(c)->layout(c);
    return word_bytes(&l, n, l.bits);
}

size_t trib_packed_ints_bound(const struct trib_codec *c, size_t n)
{
    const struct trib_packed_ints l = rule_of(c)->layout(c);
    const int sum = bits_for((uint64_t)c->ranks * l.most);
    return word_bytes(&l, n, sum > l.bits ? sum : l.bits);
}

bool trib_packed_ints_fit(const struct trib_codec *c, int ranks)
{
    const struct trib_packed_ints l = rule_of(c)->layout(c);
    return (uint64_t)ranks * l.most <= UINT32_MAX;
}

/* ---- encode --------------------------------------------------------------------- */

size_t trib_packed_ints_agreed_floats(const struct trib_codec *c, size_t n)
{
    const struct trib_packed_ints l = rule_of(c)->layout(c);
    return head_floats(&l, n);
}

void trib_packed_ints_propose(const struct trib_codec *c, const float *x, size_t n,
                      float *proposal_out)
{
    const struct trib_packed_ints l = rule_of(c)->layout(c);
    for (size_t i = 0; l.heads && i < n; i += l.bucket, proposal_out += l.heads)
        rule_of(c)->measure(c, x + i, min_size(l.bucket, n - i), proposal_out);
}

void trib_packed_ints_propose_added(const struct trib_codec *c, const float *x,
                                    float *residual, size_t n, float *proposal_out)
{
    const struct trib_packed_ints l = rule_of(c)->layout(c);
    for (size_t i = 0; i < n; i += l.bucket, proposal_out += l.heads) {
        const size_t count = min_size(l.bucket, n - i);
        if (rule_of(c)->measure_added) {
            rule_of(c)->measure_added(c, residual + i, x + i, count, proposal_out);
            continue;
        }
        c->kernels->axpy_f32(residual + i, x + i, 1.0f, count);
        rule_of(c)->measure(c, residual + i, count, proposal_out);
    }
}

/* A bucket to be encoded. */
struct source {
    const float *x;
    float *kept; /* x, if it is to become what is left of it */
    float *told; /* x, if it is to become what the symbols say */
    size_t n;
    uint64_t index; /* number of the first value in the vector */
};

/* Decodes symbols of up to 16 bits, one or two bytes each. */
static void tell(const struct trib_codec *c, const struct trib_packed_ints *l,
                 const uint8_t *symbols, size_t n,
                 const struct trib_shared_scale_args *g, float *x)
{
    uint8_t points[PIECE];
    if (l->bits > 8) {
        c->kernels->shared_scale_decode_u16(x, symbols, n, g);
        return;
    }
    if (l->adds)
        c->kernels->grid_points(points, symbols, n, l->adds);
    c->kernels->shared_scale_decode(x, l->adds ? points : symbols, n, g);
}

static void encode_symbols(const struct trib_codec *c, const struct trib_packed_ints *l,
                           const struct source *s, struct trib_rng_keys *rng_keys,
                           struct trib_shared_scale_args *g, uint8_t *dst)
{
    uint8_t codes[PIECE + 8];
    const size_t element = l->bits > 8 ? 2 : 1;
    for (size_t i = 0; i < s->n; i += PIECE) {
        const size_t count = min_size(PIECE, s->n - i);
        uint8_t *to = l->bits < 8 ? codes : dst + i * element;
        for (size_t j = 0, at = i, same; j < count; j += same, at += same) {
            same =
                min_size(trib_rng_keys_at(rng_keys, s->index + at, g->key), count - j);
            if (s->kept)
                rule_of(c)->keep(c, to + j * element, s->kept + at, same, g);
            else
                rule_of(c)->encode(c, to + j * element, s->x + at, same, g);
        }
        if (s->told)
            tell(c, l, to, count, g, s->told + i);
        if (l->bits < 8)
            c->kernels->bits_pack(dst + i / 8 * (size_t)l->bits, codes, count, l->bits);
    }
}

/* A bucket of symbols 0, and what they leave. */
static void encode_nothing(const struct trib_codec *c, const struct trib_packed_ints *l,
                           const struct source *s, struct trib_shared_scale_args *g,
                           uint8_t *dst)
{
    static const uint8_t zeros[2 * PIECE];
    memset(dst, 0, packed_ints_bytes(s->n, l->bits));
    g->weight = -1.0f;
    for (size_t i = 0; s->kept && i < s->n; i += PIECE) {
        const size_t count = min_size(PIECE, s->n - i);
        c->kernels->shared_scale_add(s->kept + i, zeros, count, g);
        c->kernels->drop_not_finite(s->kept + i, count);
    }
    for (size_t i = 0; s->told && i < s->n; i += PIECE)
        tell(c, l, zeros, min_size(PIECE, s->n - i), g, s->told + i);
}

bool trib_packed_ints_keeps(const struct trib_codec *c)
{
    return rule_of(c)->keep;
}

void trib_packed_ints_encode(const struct trib_codec *c, const struct trib_values *v,
                       uint8_t *dst)
{
    const struct trib_packed_ints l = rule_of(c)->layout(c);
    const struct header h = {
        .bits = (uint8_t)l.bits, .kind = KIND_SYMBOLS, .contributions = 1};
    struct trib_rng_keys rng_keys = trib_rng_keys_new(&v->key);
    float head[TRIB_LANE_HEADS_MAX];
    const float *share = v->agreed;
    if (v->n == 0)
        return;
    uint8_t *heads = dst + packed_ints_at(&l, v->first);
    uint8_t *lanes =
        dst + packed_ints_at(&l, v->n) + packed_ints_bytes(v->first, l.bits);
    assert(v->first % l.bucket == 0);
    memcpy(dst, &h, HEADER_BYTES);
    for (size_t i = 0; i < v->count; i += l.bucket) {
        const struct source s = {.x = v->x + i,
                                 .kept = v->kept ? v->kept + i : NULL,
                                 .told = v->told ? v->told + i : NULL,
                                 .n = min_size(l.bucket, v->count - i),
                                 .index = v->key.index + v->first + i};
        uint8_t *to = lanes + packed_ints_bytes(i, l.bits);
        struct trib_shared_scale_args g;
        if (share)
            memcpy(head, share, l.heads * sizeof *head);
        else
            rule_of(c)->measure(c, s.x, s.n, head);
        memcpy(heads, head, l.heads * sizeof *head);
        heads += l.heads * sizeof *head;
        share = share ? share + l.heads : NULL;
        if (rule_of(c)->grid(c, head, 1, &g))
            encode_symbols(c, &l, &s, &rng_keys, &g, to);
        else
            encode_nothing(c, &l, &s, &g, to);
    }
}

/* ---- decode --------------------------------------------------------------------- */

bool trib_packed_ints_valid(const struct trib_codec *c, const uint8_t *src, size_t len,
                      size_t n)
{
    const struct trib_packed_ints l = rule_of(c)->layout(c);
    struct header h;
    if (n == 0)
        return len == 0;
    if (len < HEADER_BYTES)
        return false;
    memcpy(&h, src, HEADER_BYTES);
    return h.zero == 0 && h.kind < KINDS && h.contributions > 0 &&
           h.contributions <= c->ranks && h.bits > 0 &&
           h.bits == bits_of(c, &l, h.kind, h.contributions) &&
           len == word_bytes(&l, n, h.bits);
}

/* A piece of a word, within one bucket: its lanes as bytes, 16 or 32 bits, and its
 * grid. */
struct piece {
    struct header header; /* of the word */
    size_t at; /* in the range asked for */
    size_t count;
    int bytes; /* of a lane */
    const uint8_t *lanes;
    struct trib_shared_scale_args grid;
    uint8_t codes[PIECE + 8];
};

/* Lanes [at, at + count) of a word, one to four bytes each; they may be in codes. */
static const uint8_t *packed_ints_open(const struct trib_codec *c, const uint8_t *lanes,
                                 int bits, size_t at, size_t count, uint8_t *codes)
{
    if (bits >= 8)
        return lanes + at * (size_t)bits / 8;
    assert(at % 8 == 0);
    c->kernels->bits_unpack(codes, lanes + at / 8 * (size_t)bits, count, bits);
    return codes;
}

static void open_grid(const struct trib_codec *c, const struct header *h,
                      const float *head, struct trib_shared_scale_args *g)
{
    if (h->kind == KIND_VOTES) {
        const bool tie = h->bits == 2;
        g->middle = tie ? 1 : 0;
        g->unit = tie ? -1.0f : -2.0f;
        g->base = tie ? 0.0f : 1.0f;
        return;
    }
    (void)rule_of(c)->grid(c, head, h->contributions, g);
    if (h->divisor) {
        g->unit /= (float)h->divisor;
        g->base /= (float)h->divisor;
    }
}

/* A peer may have changed the header since the word was found valid. */
static bool header_fits(const struct header *h, const struct trib_packed_ints *l,
                        size_t n, size_t len)
{
    return word_bytes(l, n, h->bits) == len;
}

/* Before the first piece; false: none can be had. */
static bool pieces_open(const struct trib_packed_ints *l, const struct trib_code *code,
                        struct piece *p)
{
    p->at = p->count = 0;
    if (code->len < HEADER_BYTES)
        return false; /* of no elements */
    memcpy(&p->header, code->src, HEADER_BYTES);
    return header_fits(&p->header, l, code->n, code->len);
}

/* The piece behind p; false: the range is done. */
static bool next_piece(const struct trib_codec *c, const struct trib_packed_ints *l,
                       const struct trib_code *code, struct piece *p)
{
    const struct header h = p->header;
    float head[TRIB_LANE_HEADS_MAX];
    p->at += p->count;
    const size_t at = code->first + p->at, in_bucket = l->bucket - at % l->bucket;
    p->count = min_size(PIECE, min_size(in_bucket, code->count - p->at));
    if (!p->count)
        return false;
    memcpy(head, code->src + HEADER_BYTES + at / l->bucket * l->heads * sizeof *head,
           l->heads * sizeof *head);
    open_grid(c, &h, head, &p->grid);
    p->bytes = h.bits > 8 ? h.bits / 8 : 1;
    p->lanes = packed_ints_open(c, code->src + packed_ints_at(l, code->n), h.bits, at,
                                p->count, p->codes);
    if (l->adds && h.kind == KIND_SYMBOLS)
        c->kernels->grid_points(p->codes, p->codes, p->count, l->adds);
    return true;
}

static float value_u32(const struct piece *p, size_t i)
{
    uint32_t lane;
    memcpy(&lane, p->lanes + i * sizeof lane, sizeof lane);
    return (float)((double)lane - (double)p->grid.middle) * p->grid.unit + p->grid.base;
}

static void decode_piece(const struct trib_codec *c, const struct piece *p, float *x)
{
    if (p->bytes == 1)
        c->kernels->shared_scale_decode(x, p->lanes, p->count, &p->grid);
    else if (p->bytes == 2)
        c->kernels->shared_scale_decode_u16(x, p->lanes, p->count, &p->grid);
    for (size_t i = 0; p->bytes == 4 && i < p->count; i++)
        x[i] = value_u32(p, i);
}

static void add_piece(const struct trib_codec *c, const struct piece *p, float *acc)
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
    const struct trib_packed_ints l = rule_of(c)->layout(c);
    struct piece p;
    if (!pieces_open(&l, code, &p))
        memset(x, 0, code->count * sizeof *x);
    else
        while (next_piece(c, &l, code, &p))
            decode_piece(c, &p, x + p.at);
}

void trib_packed_ints_add(const struct trib_codec *c, const struct trib_code *code,
                    float weight, float *acc)
{
    const struct trib_packed_ints l = rule_of(c)->layout(c);
    struct piece p;
    if (!pieces_open(&l, code, &p))
        return;
    while (next_piece(c, &l, code, &p)) {
        p.grid.weight = weight;
        add_piece(c, &p, acc + p.at);
    }
}

/* ---- merge ---------------------------------------------------------------------- */

/* Sums of a piece, as wide as the contributions want: 1, 2 or 4 bytes. */
union sums {
    uint8_t codes[PIECE + 8];
    uint16_t narrow[PIECE];
    uint32_t wide[PIECE];
};

static int sum_bytes(uint64_t most)
{
    return most <= UINT8_MAX ? 1 : most <= UINT16_MAX ? 2 : 4;
}

static void add_wide(uint32_t *sum, const uint8_t *lanes, int bytes, size_t n)
{
    uint16_t half;
    uint32_t whole;
    for (size_t i = 0; bytes == 1 && i < n; i++)
        sum[i] += lanes[i];
    for (size_t i = 0; bytes == 2 && i < n; i++) {
        memcpy(&half, lanes + 2 * i, sizeof half);
        sum[i] += half;
    }
    for (size_t i = 0; bytes == 4 && i < n; i++) {
        memcpy(&whole, lanes + 4 * i, sizeof whole);
        sum[i] += whole;
    }
}

static void add_bytes(const struct trib_codec *c, uint8_t *sum, const uint8_t *lanes,
                      size_t n)
{
    const struct trib_reduce_args r = {
        .src = {sum, lanes}, .dst = {sum}, .n_src = 2, .n_dst = 1, .n = n};
    c->kernels->reduce[TRIB_I8][TRIB_SUM](&r); /* modulo 2^8, which they stay below */
}

static void add_word(const struct trib_codec *c, const struct trib_packed_ints *l,
                     const struct trib_encoded *w, size_t n, size_t at, size_t count,
                     int width, union sums *sums)
{
    uint8_t codes[PIECE + 8];
    struct header h;
    memcpy(&h, w->src, HEADER_BYTES);
    if (!header_fits(&h, l, n, w->len))
        return;
    const int bytes = h.bits > 8 ? h.bits / 8 : 1;
    const uint8_t *lanes =
        packed_ints_open(c, w->src + packed_ints_at(l, n), h.bits, at, count, codes);
    if (l->adds && h.kind == KIND_SYMBOLS)
        c->kernels->grid_points(codes, codes, count, l->adds);
    if (width == 4)
        add_wide(sums->wide, lanes, bytes, count);
    else if (width == 1)
        add_bytes(c, sums->codes, lanes, count);
    else if (bytes == 1)
        c->kernels->packed_ints_add_u8(sums->narrow, lanes, count);
    else
        c->kernels->packed_ints_add_u16(sums->narrow, lanes, count);
}

/* Symbols stand for a sign: 0 where less than half have one, the highest for more,
 * between them for a tie. */
static void count_votes(const struct trib_codec *c, union sums *sums, int width,
                        size_t count, uint32_t contributions)
{
    const uint32_t more = contributions / 2 + 1;
    const uint32_t tie = contributions % 2 ? UINT32_MAX : contributions / 2; /* or
                                                                              * never */
    if (width == 1)
        c->kernels->packed_ints_vote(sums->codes, count, more,
                               tie < more ? tie : more + UINT8_MAX);
    for (size_t i = 0; width > 1 && i < count; i++) {
        const uint32_t sum = width == 4 ? sums->wide[i] : sums->narrow[i];
        sums->codes[i] = (uint8_t)((sum >= more) + (sum >= tie)); /* behind what is
                                                                   * read */
    }
}

static void store_sums(const struct trib_codec *c, const struct header *h,
                       union sums *sums, int width, size_t count, uint8_t *dst)
{
    if (h->kind == KIND_VOTES)
        count_votes(c, sums, width, count, h->contributions);
    if (h->bits <= 8)
        c->kernels->bits_pack(dst, sums->codes, count, h->bits);
    else
        memcpy(dst, sums, packed_ints_bytes(count, h->bits));
}

static trib_status_t merged_header(const struct trib_codec *c,
                                   const struct trib_packed_ints *l,
                                   const struct trib_merge *m, struct header *h_out)
{
    uint64_t contributions = 0;
    for (size_t i = 0; i < m->n_words; i++) {
        const struct trib_encoded *w = &m->words[i];
        struct header h;
        if (!trib_packed_ints_valid(c, w->src, w->len, m->n))
            return TRIB_ERR_CODEC;
        memcpy(&h, w->src, HEADER_BYTES);
        contributions += h.contributions;
        if (h.divisor || h.kind == KIND_VOTES ||
            memcmp(w->src + HEADER_BYTES, m->words[0].src + HEADER_BYTES,
                   packed_ints_at(l, m->n) - HEADER_BYTES) != 0)
            return TRIB_ERR_CODEC;
    }
    if (contributions > c->ranks)
        return TRIB_ERR_CODEC;
    const bool votes = m->final && rule_of(c)->votes;
    *h_out = (struct header){.kind = votes ? KIND_VOTES : KIND_SUMS,
                             .contributions = (uint32_t)contributions,
                             .divisor = m->ranks};
    h_out->bits = (uint8_t)bits_of(c, l, h_out->kind, h_out->contributions);
    return TRIB_OK;
}

enum { SOURCES_MOST = 32 };

/* Finds the integers of each word from `at` on, if they are symbols of one byte that
 * count for themselves; false if some are not, or they are too many. */
static bool symbols_of(const struct trib_packed_ints *l, const struct trib_merge *m,
                       size_t at, const uint8_t **src_out)
{
    if (l->bits != 8 || l->adds || m->n_words > SOURCES_MOST)
        return false;
    for (size_t i = 0; i < m->n_words; i++) {
        struct header h;
        memcpy(&h, m->words[i].src, HEADER_BYTES);
        if (h.kind != KIND_SYMBOLS)
            return false;
        src_out[i] = m->words[i].src + packed_ints_at(l, m->n) + at;
    }
    return true;
}

/* Lanes [at, at + count) of the sum, `width` bytes each. */
static void sum_lanes(const struct trib_codec *c, const struct trib_packed_ints *l,
                      const struct trib_merge *m, size_t at, size_t count, int width,
                      union sums *sums)
{
    const uint8_t *src[SOURCES_MOST];
    if (width == 2 && symbols_of(l, m, at, src)) {
        const struct trib_packed_ints_sum s = {
            .src = src, .n_src = m->n_words, .n = count};
        c->kernels->packed_ints_sum_u8(sums->codes, &s);
        return;
    }
    memset(sums, 0, count * (size_t)width);
    for (size_t i = 0; i < m->n_words; i++)
        add_word(c, l, &m->words[i], m->n, at, count, width, sums);
}

/* ---- sums that are quantised anew ------------------------------------------------ */

/* The recoding of words of these integers; h is the header that the sum would have. */
struct renewal {
    const struct trib_codec *c;
    const struct trib_packed_ints *l;
    const struct trib_merge *m;
    const struct header *h;
    int width;
    struct trib_rng_keys rng_keys;
};

/* Values of a piece of a bucket. */
static void sum_values(const struct renewal *r, size_t at, size_t count, float *x)
{
    const uint8_t *heads = r->m->words[0].src + HEADER_BYTES;
    union sums sums;
    struct piece p;
    float head[TRIB_LANE_HEADS_MAX];
    sum_lanes(r->c, r->l, r->m, at, count, r->width, &sums);
    memcpy(head, heads + at / r->l->bucket * r->l->heads * sizeof *head,
           r->l->heads * sizeof *head);
    open_grid(r->c, r->h, head, &p.grid);
    p.count = count;
    p.bytes = r->width;
    p.lanes = sums.codes;
    decode_piece(r->c, &p, x);
}

/* The bucket from `at` on: its head, and its lanes. */
static void renew_bucket(struct renewal *r, size_t at, uint8_t *head_out, uint8_t *dst)
{
    const size_t n = min_size(r->l->bucket, r->m->n - at);
    struct trib_shared_scale_args g;
    float x[PIECE], head = 0, part;
    for (size_t i = 0; i < n; i += PIECE) {
        const size_t count = min_size(PIECE, n - i);
        sum_values(r, at + i, count, x);
        rule_of(r->c)->measure(r->c, x, count, &part);
        head = fmaxf(head, part);
    }
    memcpy(head_out, &head, sizeof head);
    const bool some = rule_of(r->c)->grid(r->c, &head, 1, &g);
    for (size_t i = 0; i < n; i += PIECE) {
        const struct source s = {
            .x = x, .n = min_size(PIECE, n - i), .index = r->m->key.index + at + i};
        uint8_t *to = dst + packed_ints_bytes(i, r->l->bits);
        if (n > PIECE)
            sum_values(r, at + i, s.n, x);
        if (some)
            encode_symbols(r->c, r->l, &s, &r->rng_keys, &g, to);
        else
            encode_nothing(r->c, r->l, &s, &g, to);
    }
}

static bool requantises(const struct trib_codec *c, const struct trib_merge *m)
{
    return m->final && rule_of(c)->requantises &&
           c->param[TRIB_PARAM_RESULT] == TRIB_RESULT_REQUANTISED;
}

/* One head a bucket, of which the largest of its parts' is the whole's. */
static size_t renew(struct renewal *r, uint8_t *dst)
{
    const struct trib_packed_ints *l = r->l;
    const size_t n = r->m->n;
    const struct header h = {
        .bits = (uint8_t)l->bits, .kind = KIND_SYMBOLS, .contributions = 1};
    assert(l->heads == 1);
    memcpy(dst, &h, HEADER_BYTES);
    uint8_t *lanes = dst + packed_ints_at(l, n);
    for (size_t at = 0; at < n; at += l->bucket)
        renew_bucket(r, at, dst + HEADER_BYTES + at / l->bucket * sizeof(float),
                     lanes + packed_ints_bytes(at, l->bits));
    return word_bytes(l, n, l->bits);
}

trib_status_t trib_packed_ints_merge(const struct trib_codec *c,
                                     const struct trib_merge *m, uint8_t *dst,
                                     size_t *len_out)
{
    const struct trib_packed_ints l = rule_of(c)->layout(c);
    const uint8_t *src[SOURCES_MOST];
    struct header h;
    union sums sums;
    *len_out = 0;
    if (m->n == 0)
        return TRIB_OK;
    const trib_status_t status = merged_header(c, &l, m, &h);
    if (status != TRIB_OK)
        return status;
    const size_t first = packed_ints_at(&l, m->n);
    const int width = sum_bytes((uint64_t)h.contributions * l.most);
    if (requantises(c, m)) {
        struct renewal r = {c, &l, m, &h, width, trib_rng_keys_new(&m->key)};
        *len_out = renew(&r, dst);
        return TRIB_OK;
    }
    memcpy(dst, &h, HEADER_BYTES);
    memcpy(dst + HEADER_BYTES, m->words[0].src + HEADER_BYTES, first - HEADER_BYTES);
    *len_out = word_bytes(&l, m->n, h.bits);
    if (h.bits == 16 && h.kind == KIND_SUMS && symbols_of(&l, m, 0, src)) {
        const struct trib_packed_ints_sum s = {src, m->n_words, m->n};
        c->kernels->packed_ints_sum_u8(dst + first, &s);
        return TRIB_OK;
    }
    for (size_t at = 0; at < m->n; at += PIECE) {
        const size_t count = min_size(PIECE, m->n - at);
        sum_lanes(c, &l, m, at, count, width, &sums);
        store_sums(c, &h, &sums, width, count,
                   dst + first + packed_ints_bytes(at, h.bits));
    }
    return TRIB_OK;
}
