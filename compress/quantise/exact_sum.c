/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exact: sums without rounding.
 *
 *     paper      Kulisch and Miranker 1981: an accumulator as wide as the numbers
 *     equation   C(x) = x; sums are exact and are rounded once, to nearest even, at the
 *                end
 *     wire       exact_sum.h
 *     random     nothing
 *     NaN, Inf   added as in IEEE 754: NaN if any contribution is NaN or both
 *                infinities occur, else the infinity; the NaN is always 0x7fc00000
 *     large      partial sums may exceed FLT_MAX; a finished sum above it is Inf
 *     state      none
 */
#include "compress/quantise/exact_sum.h"

#include <assert.h>
#include <string.h>

enum { HEADER_BYTES = 8, HEAD_BYTES = 8, BLOCK = TRIB_EXACT_BLOCK };

struct header {
    uint32_t contributions;
    uint32_t finished;
};
_Static_assert(sizeof(struct header) == HEADER_BYTES, "header has no padding");

struct head {
    uint32_t at;
    uint8_t form;
    uint8_t low;
    uint8_t top;
    uint8_t marked;
};
_Static_assert(sizeof(struct head) == HEAD_BYTES, "head has no padding");

static size_t blocks_of(size_t n)
{
    return n / BLOCK + (n % BLOCK != 0);
}

static size_t numbers_at(size_t n)
{
    return HEADER_BYTES + blocks_of(n) * HEAD_BYTES;
}

static size_t block_length(size_t n, size_t block)
{
    const size_t left = n - block * BLOCK;
    return left < BLOCK ? left : BLOCK;
}

static unsigned limbs_of(const struct head *h)
{
    return h->form - (unsigned)TRIB_EXACT_DOUBLES;
}

static size_t block_bytes(const struct head *h, size_t m)
{
    switch (h->form) {
    case TRIB_EXACT_NOTHING:
        return 0;
    case TRIB_EXACT_FLOATS:
        return m * sizeof(float);
    case TRIB_EXACT_DOUBLES:
        return m * sizeof(double);
    default:
        return m * (limbs_of(h) * sizeof(uint64_t) + (h->marked ? 1 : 0));
    }
}

size_t trib_exact_own_bound(const struct trib_codec *c, size_t n)
{
    (void)c;
    return n ? numbers_at(n) + n * sizeof(float) : 0;
}

size_t trib_exact_bound(const struct trib_codec *c, size_t n)
{
    if (c->ranks == 1)
        return trib_exact_own_bound(c, n);
    return n ? numbers_at(n) + n * (TRIB_EXACT_LIMBS * sizeof(uint64_t) + 1) : 0;
}

/* ---- one contribution ------------------------------------------------------------ */

/* Return a block of whole length, padded if x is shorter. */
static const float *whole_block(const float *x, size_t m, float *room)
{
    if (m == BLOCK)
        return x;
    memcpy(room, x, m * sizeof *x);
    memset(room + m, 0, (BLOCK - m) * sizeof *x);
    return room;
}

size_t trib_exact_encode(const struct trib_codec *c, const float *x, size_t n,
                         uint8_t *dst)
{
    const struct header header = {.contributions = 1};
    size_t at = numbers_at(n);
    if (n == 0)
        return 0;
    memcpy(dst, &header, sizeof header);
    for (size_t b = 0; b < blocks_of(n); b++) {
        const size_t m = block_length(n, b);
        struct trib_exact_range range;
        uint32_t bits[BLOCK];
        float room[BLOCK];
        c->kernels->exact_scan(whole_block(x + b * BLOCK, m, room), bits, &range);
        const bool some = range.low <= range.top;
        const struct head head = {.at = (uint32_t)at,
                                  .form = some || range.marked ? TRIB_EXACT_FLOATS
                                                               : TRIB_EXACT_NOTHING,
                                  .low = some ? (uint8_t)range.low : 0,
                                  .top = some ? (uint8_t)range.top : 0,
                                  .marked = range.marked};
        memcpy(dst + HEADER_BYTES + b * HEAD_BYTES, &head, sizeof head);
        memcpy(dst + at, bits, block_bytes(&head, m));
        at += block_bytes(&head, m);
    }
    return at;
}

/* ---- reading an encoded chunk ---------------------------------------------------- */

/* A peer that shares memory may change the chunk at any time: each use reads a head
 * once and checks it against the length. */
static bool head_read(const struct trib_encoded *w, size_t n, size_t block,
                      struct head *h_out)
{
    memcpy(h_out, w->src + HEADER_BYTES + block * HEAD_BYTES, sizeof *h_out);
    return h_out->form < TRIB_EXACT_FORMS && h_out->low <= h_out->top &&
           h_out->top <= TRIB_EXACT_TOP_MAX && h_out->marked <= 1 &&
           h_out->at <= w->len &&
           block_bytes(h_out, block_length(n, block)) <= w->len - h_out->at;
}

/* n is not 0. Blocks must be contiguous. */
static bool word_valid(const struct trib_codec *c, const struct trib_encoded *w,
                       size_t n, struct header *header_out)
{
    size_t at = numbers_at(n);
    if (w->len < at)
        return false;
    memcpy(header_out, w->src, sizeof *header_out);
    if (header_out->contributions == 0 || header_out->contributions > c->ranks ||
        header_out->finished > 1)
        return false;
    for (size_t b = 0; b < blocks_of(n); b++) {
        struct head h;
        if (!head_read(w, n, b, &h) || h.at != at)
            return false;
        at += block_bytes(&h, block_length(n, b));
    }
    return at == w->len;
}

/* ---- sums of a block ------------------------------------------------------------- */

/* One block of the sum of all inputs. */
struct sum {
    const struct trib_codec *c;
    const struct trib_merge *m;
    uint32_t contributions;
    size_t block;
    size_t length;
    struct head head; /* of the sum */
    double acc[BLOCK];
    struct trib_exact_limbs limbs;
};

/* Return the bits of whole numbers below `contributions`. */
static unsigned bits_of(uint32_t contributions)
{
    return contributions > 1 ? 32 - (unsigned)__builtin_clz(contributions - 1) : 0;
}

static bool form_of_sum(struct sum *s)
{
    unsigned low = TRIB_EXACT_TOP_MAX + 1, top = 0, marked = 0;
    for (size_t i = 0; i < s->m->n_words; i++) {
        struct head h;
        if (!head_read(&s->m->words[i], s->m->n, s->block, &h))
            return false;
        marked |= h.marked;
        if (h.form == TRIB_EXACT_NOTHING)
            continue;
        low = h.low < low ? h.low : low;
        top = h.top > top ? h.top : top;
    }
    const bool some = low <= top;
    low = some ? low : 0;
    const unsigned bits = top - low + 24 + bits_of(s->contributions);
    const unsigned limbs = (bits + 1 + 63) / 64;
    s->head = (struct head){
        .low = (uint8_t)low, .top = (uint8_t)top, .marked = (uint8_t)marked};
    if (!some && !marked)
        s->head.form = TRIB_EXACT_NOTHING;
    else if (!marked && bits <= TRIB_EXACT_DOUBLE_BITS)
        s->head.form = TRIB_EXACT_DOUBLES;
    else
        s->head.form = (uint8_t)(TRIB_EXACT_DOUBLES + limbs);
    return limbs <= TRIB_EXACT_LIMBS;
}

/* Return aligned numbers of a whole block: src itself, or a zero-padded copy. */
static const void *numbers(const uint8_t *src, size_t bytes, size_t whole, void *room)
{
    if (bytes == whole && (uintptr_t)src % sizeof(double) == 0)
        return src;
    memcpy(room, src, bytes);
    memset((uint8_t *)room + bytes, 0, whole - bytes);
    return room;
}

static bool add_to_doubles(struct sum *s, const struct head *h, const uint8_t *src)
{
    const struct trib_kernels *k = s->c->kernels;
    double room[BLOCK];
    const size_t bytes = block_bytes(h, s->length);
    if (h->form == TRIB_EXACT_FLOATS)
        k->exact_add_floats(s->acc, numbers(src, bytes, BLOCK * sizeof(float), room));
    else if (h->form == TRIB_EXACT_DOUBLES)
        k->exact_add_doubles(s->acc, numbers(src, bytes, sizeof room, room));
    return h->form <= TRIB_EXACT_DOUBLES;
}

static bool add_to_limbs(struct sum *s, const struct head *h, const uint8_t *src)
{
    const struct trib_exact_range range = {h->low, h->top, h->marked};
    switch (h->form) {
    case TRIB_EXACT_NOTHING:
        return true;
    case TRIB_EXACT_FLOATS:
        return trib_exact_limbs_add_floats(&s->limbs, src, s->length);
    case TRIB_EXACT_DOUBLES:
        return trib_exact_limbs_add_doubles(&s->limbs, src, s->length);
    default:
        return trib_exact_limbs_add_limbs(&s->limbs, src, s->length, range,
                                          limbs_of(h));
    }
}

static bool add_words(struct sum *s)
{
    const bool doubles = s->head.form == TRIB_EXACT_DOUBLES;
    bool good = true;
    if (doubles)
        memset(s->acc, 0, sizeof s->acc);
    else
        trib_exact_limbs_open(&s->limbs, limbs_of(&s->head), s->head.low);
    for (size_t i = 0; i < s->m->n_words && good; i++) {
        const struct trib_encoded *w = &s->m->words[i];
        struct head h;
        good = head_read(w, s->m->n, s->block, &h) &&
               (doubles ? add_to_doubles : add_to_limbs)(s, &h, w->src + h.at);
    }
    return good;
}

static void store_sum(const struct sum *s, uint8_t *dst)
{
    const size_t plane = s->length * sizeof(uint64_t);
    if (s->head.form == TRIB_EXACT_DOUBLES) {
        memcpy(dst, s->acc, plane);
        return;
    }
    for (unsigned k = 0; k < s->limbs.limbs; k++, dst += plane)
        memcpy(dst, s->limbs.limb[k], plane);
    if (s->head.marked)
        memcpy(dst, s->limbs.marks, s->length);
}

/* x has room for a whole block. */
static void round_sum(const struct sum *s, uint32_t divisor, float *x)
{
    const struct trib_kernels *k = s->c->kernels;
    if (s->head.form != TRIB_EXACT_DOUBLES)
        trib_exact_limbs_round(&s->limbs, divisor, x, s->length);
    else if (divisor <= 1)
        k->exact_round(x, s->acc);
    else if (k->exact_divide(x, s->acc, divisor))
        for (size_t i = 0; i < s->length; i++)
            x[i] = trib_exact_round_double(s->acc[i], divisor);
}

/* Write a finished block: rounded, no longer to be added. */
static void finish_block(struct sum *s, uint8_t *dst)
{
    float x[BLOCK];
    round_sum(s, s->m->ranks, x);
    memcpy(dst, x, s->length * sizeof *x);
    s->head = (struct head){.form = TRIB_EXACT_FLOATS};
}

/* ---- merge ----------------------------------------------------------------------- */

static bool merged_header(const struct trib_codec *c, const struct trib_merge *m,
                          struct header *header_out)
{
    uint64_t contributions = 0;
    for (size_t i = 0; i < m->n_words; i++) {
        struct header h;
        if (!word_valid(c, &m->words[i], m->n, &h) || h.finished)
            return false;
        contributions += h.contributions;
    }
    *header_out = (struct header){(uint32_t)contributions, m->final};
    return contributions <= c->ranks;
}

trib_status_t trib_exact_merge(const struct trib_codec *c, const struct trib_merge *m,
                               uint8_t *dst, size_t *len_out)
{
    size_t at = numbers_at(m->n);
    struct header header;
    *len_out = 0;
    if (m->n == 0)
        return TRIB_OK;
    if (!merged_header(c, m, &header))
        return TRIB_ERR_CODEC;
    if (m->n_words == 1 && !m->final) { /* it already is the sum */
        memcpy(dst, m->words->src, *len_out = m->words->len);
        return TRIB_OK;
    }
    memcpy(dst, &header, sizeof header);
    struct sum s = {.c = c, .m = m, .contributions = header.contributions};
    for (s.block = 0; s.block < blocks_of(m->n); s.block++) {
        s.length = block_length(m->n, s.block);
        if (!form_of_sum(&s))
            return TRIB_ERR_CODEC;
        if (s.head.form != TRIB_EXACT_NOTHING) {
            if (!add_words(&s))
                return TRIB_ERR_CODEC;
            if (m->final)
                finish_block(&s, dst + at);
            else
                store_sum(&s, dst + at);
        }
        s.head.at = (uint32_t)at;
        memcpy(dst + HEADER_BYTES + s.block * HEAD_BYTES, &s.head, sizeof s.head);
        at += block_bytes(&s.head, s.length);
    }
    *len_out = at;
    return TRIB_OK;
}

/* ---- decode ---------------------------------------------------------------------- */

/* Decode the block of one encoded chunk to its values. */
static bool open_block(struct sum *s, float *x)
{
    const struct trib_encoded *w = s->m->words;
    if (!head_read(w, s->m->n, s->block, &s->head))
        return false;
    if (s->head.form == TRIB_EXACT_NOTHING) {
        memset(x, 0, s->length * sizeof *x);
        return true;
    }
    if (s->head.form == TRIB_EXACT_FLOATS) {
        memcpy(x, w->src + s->head.at, s->length * sizeof *x);
        return true;
    }
    if (!add_words(s))
        return false;
    round_sum(s, 1, x);
    return true;
}

/* Add to x, or overwrite x if weight is NULL. Stop early if a peer has changed the
 * chunk since its validation. */
static void decode_blocks(const struct trib_codec *c, const struct trib_code *code,
                          const float *weight, float *x)
{
    struct trib_encoded word = {code->src, code->len};
    const struct trib_merge m = {.words = &word, .n_words = 1, .n = code->n};
    struct sum s = {.c = c, .m = &m};
    float part[BLOCK];
    assert(code->first == 0 && code->count == code->n);
    for (s.block = 0; s.block < blocks_of(code->n); s.block++, x += BLOCK) {
        s.length = block_length(code->n, s.block);
        if (!open_block(&s, part))
            return;
        if (weight)
            c->kernels->axpy_f32(x, part, *weight, s.length);
        else
            memcpy(x, part, s.length * sizeof *x);
    }
}

bool trib_exact_valid(const struct trib_codec *c, const uint8_t *src, size_t len,
                      size_t n)
{
    const struct trib_encoded word = {src, len};
    struct header header;
    return n ? word_valid(c, &word, n, &header) : len == 0;
}

/* ---- the stage ------------------------------------------------------------------- */

static void encode(const struct trib_codec *c, const struct trib_values *v,
                   uint8_t *dst)
{
    assert(v->first == 0 && v->count == v->n);
    (void)trib_exact_encode(c, v->x, v->n, dst);
}

static void decode(const struct trib_codec *c, const struct trib_code *code, float *x)
{
    decode_blocks(c, code, NULL, x);
}

static void decode_add(const struct trib_codec *c, const struct trib_code *code,
                       float weight, float *acc)
{
    decode_blocks(c, code, &weight, acc);
}

static const struct trib_quantise *resolve(struct trib_codec *c,
                                           const char **refusal_out)
{
    if (c->param[TRIB_PARAM_EF] > 0)
        *refusal_out =
            "the codec is lossless, so error feedback has no effect; use ef=0";
    return c->stages.quantise;
}

const struct trib_quantise trib_quantise_wide = {
    .name = "wide",
    .bytes = trib_exact_own_bound,
    .encode = encode,
    .decode = decode,
    .decode_add = decode_add,
    .delta = trib_delta_exact,
    .resolve = resolve,
    .exact = true,
};
