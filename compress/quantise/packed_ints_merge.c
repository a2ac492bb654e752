/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of packed integers without decoding, and sums that are quantised again. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "compress/quantise/packed_ints_parts.h"

/* Sums of a piece, as wide as the number of contributions requires: 1, 2 or 4 bytes. */
union sums {
    uint8_t codes[TRIB_PACKED_PIECE + 8];
    uint16_t narrow[TRIB_PACKED_PIECE];
    uint32_t wide[TRIB_PACKED_PIECE];
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
    /* modulo 2^8, which the sums do not reach */
    c->kernels->reduce[TRIB_I8][TRIB_SUM](&r);
}

static void add_word(const struct trib_codec *c, const struct trib_packed_ints *l,
                     const struct trib_encoded *w, size_t n, size_t at, size_t count,
                     int width, union sums *sums)
{
    uint8_t codes[TRIB_PACKED_PIECE + 8];
    struct trib_packed_header h;
    memcpy(&h, w->src, TRIB_PACKED_HEADER_BYTES);
    if (!trib_packed_header_fits(&h, l, n, w->len))
        return;
    const int bytes = h.bits > 8 ? h.bits / 8 : 1;
    const uint8_t *lanes = trib_packed_lanes_open(
        c, w->src + trib_packed_lanes_at(l, n), h.bits, at, count, codes);
    if (l->adds && h.kind == TRIB_PACKED_SYMBOLS)
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

/* Symbols count the sign bit: 0 for a minority, the highest symbol for a majority, 1
 * for a tie. */
static void count_votes(const struct trib_codec *c, union sums *sums, int width,
                        size_t count, uint32_t contributions)
{
    const uint32_t more = contributions / 2 + 1;
    /* or never */
    const uint32_t tie = contributions % 2 ? UINT32_MAX : contributions / 2;
    if (width == 1)
        c->kernels->packed_ints_vote(sums->codes, count, more,
                               tie < more ? tie : more + UINT8_MAX);
    for (size_t i = 0; width > 1 && i < count; i++) {
        const uint32_t sum = width == 4 ? sums->wide[i] : sums->narrow[i];
        /* written behind what is read */
        sums->codes[i] = (uint8_t)((sum >= more) + (sum >= tie));
    }
}

static void store_sums(const struct trib_codec *c, const struct trib_packed_header *h,
                       union sums *sums, int width, size_t count, uint8_t *dst)
{
    if (h->kind == TRIB_PACKED_VOTES)
        count_votes(c, sums, width, count, h->contributions);
    if (h->bits <= 8)
        c->kernels->bits_pack(dst, sums->codes, count, h->bits);
    else
        memcpy(dst, sums, trib_packed_lanes_bytes(count, h->bits));
}

static trib_status_t merged_header(const struct trib_codec *c,
                                   const struct trib_packed_ints *l,
                                   const struct trib_merge *m,
                                   struct trib_packed_header *h_out)
{
    uint64_t contributions = 0;
    for (size_t i = 0; i < m->n_words; i++) {
        const struct trib_encoded *w = &m->words[i];
        struct trib_packed_header h;
        if (!trib_packed_ints_valid(c, w->src, w->len, m->n))
            return TRIB_ERR_CODEC;
        memcpy(&h, w->src, TRIB_PACKED_HEADER_BYTES);
        contributions += h.contributions;
        if (h.divisor || h.kind == TRIB_PACKED_VOTES ||
            memcmp(w->src + TRIB_PACKED_HEADER_BYTES,
                   m->words[0].src + TRIB_PACKED_HEADER_BYTES,
                   trib_packed_lanes_at(l, m->n) - TRIB_PACKED_HEADER_BYTES) != 0)
            return TRIB_ERR_CODEC;
    }
    if (contributions > c->ranks)
        return TRIB_ERR_CODEC;
    const bool votes = m->final && trib_packed_rule(c)->votes;
    *h_out = (struct trib_packed_header){.kind = votes ? TRIB_PACKED_VOTES
                                                       : TRIB_PACKED_SUMS,
                                         .contributions = (uint32_t)contributions,
                                         .divisor = m->ranks};
    h_out->bits = (uint8_t)trib_packed_bits(c, l, h_out->kind, h_out->contributions);
    return TRIB_OK;
}

enum { SOURCES_MOST = 32 };

/* Find the symbols of each input from `at`. Return false unless all are one-byte
 * symbols that add their own value, of at most SOURCES_MOST inputs. */
static bool symbols_of(const struct trib_packed_ints *l, const struct trib_merge *m,
                       size_t at, const uint8_t **src_out)
{
    if (l->bits != 8 || l->adds || m->n_words > SOURCES_MOST)
        return false;
    for (size_t i = 0; i < m->n_words; i++) {
        struct trib_packed_header h;
        memcpy(&h, m->words[i].src, TRIB_PACKED_HEADER_BYTES);
        if (h.kind != TRIB_PACKED_SYMBOLS)
            return false;
        src_out[i] = m->words[i].src + trib_packed_lanes_at(l, m->n) + at;
    }
    return true;
}

/* Compute lanes [at, at + count) of the sum, `width` bytes each. */
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

/* ---- sums that are quantised again ----------------------------------------------- */

/* State of a requantisation; h is the header of the plain sum. */
struct renewal {
    const struct trib_codec *c;
    const struct trib_packed_ints *l;
    const struct trib_merge *m;
    const struct trib_packed_header *h;
    int width;
    struct trib_rng_keys rng_keys;
};

/* Compute the values of a piece of a bucket. */
static void sum_values(const struct renewal *r, size_t at, size_t count, float *x)
{
    const uint8_t *heads = r->m->words[0].src + TRIB_PACKED_HEADER_BYTES;
    union sums sums;
    struct trib_packed_piece p;
    float head[TRIB_LANE_HEADS_MAX];
    sum_lanes(r->c, r->l, r->m, at, count, r->width, &sums);
    memcpy(head, heads + at / r->l->bucket * r->l->heads * sizeof *head,
           r->l->heads * sizeof *head);
    trib_packed_open_grid(r->c, r->h, head, &p.grid);
    p.count = count;
    p.bytes = r->width;
    p.lanes = sums.codes;
    trib_packed_decode_piece(r->c, &p, x);
}

/* Write head and lanes of the bucket that starts at `at`. */
static void renew_bucket(struct renewal *r, size_t at, uint8_t *head_out, uint8_t *dst)
{
    const size_t n = trib_min(r->l->bucket, r->m->n - at);
    struct trib_shared_scale_args g;
    float x[TRIB_PACKED_PIECE], head = 0, part;
    for (size_t i = 0; i < n; i += TRIB_PACKED_PIECE) {
        const size_t count = trib_min(TRIB_PACKED_PIECE, n - i);
        sum_values(r, at + i, count, x);
        trib_packed_rule(r->c)->measure(r->c, x, count, &part);
        head = fmaxf(head, part);
    }
    memcpy(head_out, &head, sizeof head);
    const bool some = trib_packed_rule(r->c)->grid(r->c, &head, 1, &g);
    for (size_t i = 0; i < n; i += TRIB_PACKED_PIECE) {
        const struct trib_packed_source s = {.x = x,
                                             .n = trib_min(TRIB_PACKED_PIECE, n - i),
                                             .index = r->m->key.index + at + i};
        uint8_t *to = dst + trib_packed_lanes_bytes(i, r->l->bits);
        if (n > TRIB_PACKED_PIECE)
            sum_values(r, at + i, s.n, x);
        if (some)
            trib_packed_encode_symbols(r->c, r->l, &s, &r->rng_keys, &g, to);
        else
            trib_packed_encode_nothing(r->c, r->l, &s, &g, to);
    }
}

static bool requantises(const struct trib_codec *c, const struct trib_merge *m)
{
    return m->final && trib_packed_rule(c)->requantises &&
           c->param[TRIB_PARAM_RESULT] == TRIB_RESULT_REQUANTISED;
}

/* Write the merged chunk. A bucket has one head: the largest of its pieces' heads. */
static size_t renew(struct renewal *r, uint8_t *dst)
{
    const struct trib_packed_ints *l = r->l;
    const size_t n = r->m->n;
    const struct trib_packed_header h = {
        .bits = (uint8_t)l->bits, .kind = TRIB_PACKED_SYMBOLS, .contributions = 1};
    assert(l->heads == 1);
    memcpy(dst, &h, TRIB_PACKED_HEADER_BYTES);
    uint8_t *lanes = dst + trib_packed_lanes_at(l, n);
    for (size_t at = 0; at < n; at += l->bucket)
        renew_bucket(r, at,
                     dst + TRIB_PACKED_HEADER_BYTES + at / l->bucket * sizeof(float),
                     lanes + trib_packed_lanes_bytes(at, l->bits));
    return trib_packed_word_bytes(l, n, l->bits);
}

trib_status_t trib_packed_ints_merge(const struct trib_codec *c,
                                     const struct trib_merge *m, uint8_t *dst,
                                     size_t *len_out)
{
    const struct trib_packed_ints l = trib_packed_rule(c)->layout(c);
    const uint8_t *src[SOURCES_MOST];
    struct trib_packed_header h;
    union sums sums;
    *len_out = 0;
    if (m->n == 0)
        return TRIB_OK;
    const trib_status_t status = merged_header(c, &l, m, &h);
    if (status != TRIB_OK)
        return status;
    const size_t first = trib_packed_lanes_at(&l, m->n);
    const int width = sum_bytes((uint64_t)h.contributions * l.most);
    if (requantises(c, m)) {
        struct renewal r = {c, &l, m, &h, width, trib_rng_keys_new(&m->key)};
        *len_out = renew(&r, dst);
        return TRIB_OK;
    }
    memcpy(dst, &h, TRIB_PACKED_HEADER_BYTES);
    memcpy(dst + TRIB_PACKED_HEADER_BYTES, m->words[0].src + TRIB_PACKED_HEADER_BYTES,
           first - TRIB_PACKED_HEADER_BYTES);
    *len_out = trib_packed_word_bytes(&l, m->n, h.bits);
    if (h.bits == 16 && h.kind == TRIB_PACKED_SUMS && symbols_of(&l, m, 0, src)) {
        const struct trib_packed_ints_sum s = {src, m->n_words, m->n};
        c->kernels->packed_ints_sum_u8(dst + first, &s);
        return TRIB_OK;
    }
    for (size_t at = 0; at < m->n; at += TRIB_PACKED_PIECE) {
        const size_t count = trib_min(TRIB_PACKED_PIECE, m->n - at);
        sum_lanes(c, &l, m, at, count, width, &sums);
        store_sums(c, &h, &sums, width, count,
                   dst + first + trib_packed_lanes_bytes(at, h.bits));
    }
    return TRIB_OK;
}
