/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/pack/varlen.h"

#include <assert.h>
#include <string.h>

#include "compress/kernels/bitpack.h"
#include "compress/quantise/buckets.h"

enum { PIECE = 1024, CODES_ROOM = 64 };

static const struct trib_varlen *varlen(const struct trib_codec *c)
{
    return c->stages.pack->varlen;
}

/* At most one byte more than at fixed width. */
size_t trib_varlen_bound(const struct trib_codec *c, size_t n)
{
    return n ? 1 + trib_buckets_bytes(c, n) : 0;
}

static size_t codes_room(size_t n)
{
    return (n + CODES_ROOM + 63) / 64 * 64;
}

size_t trib_varlen_scratch(const struct trib_codec *c, size_t n)
{
    return n ? codes_room(n) + (varlen(c)->work + 63) / 64 * 64 : 0;
}

/* Replace minus zero by zero: its sign would cost as many bits as any. */
static void drop_signs_of_zeros(uint8_t *codes, size_t n, int bits)
{
    const uint8_t levels = (uint8_t)((1u << (bits - 1)) - 1);
    for (size_t i = 0; i < n; i++)
        codes[i] = codes[i] & levels ? codes[i] : 0;
}

size_t trib_varlen_encode(const struct trib_codec *c, const struct trib_encode *in,
                            uint8_t *dst)
{
    const struct trib_buckets b = trib_buckets_layout(c);
    const size_t n = in->n, heads = trib_buckets_heads(&b, n);
    const size_t fixed = trib_bits_bytes(n, b.bits);
    enum trib_codes_kind kind = TRIB_CODES_BITS;
    if (n == 0)
        return 0;
    const struct trib_codes codes = {.codes = in->scratch,
                                     .n = n,
                                     .bits = b.bits,
                                     .work = (uint8_t *)in->scratch + codes_room(n)};
    trib_buckets_quantise(c, in, dst + 1, codes.codes);
    drop_signs_of_zeros(codes.codes, n, b.bits);
    size_t bytes = varlen(c)->write(&codes, dst + 1 + heads, fixed, &kind);
    assert(bytes < fixed);
    if (bytes == 0) {
        c->kernels->bits_pack(dst + 1 + heads, codes.codes, n, b.bits);
        bytes = fixed;
    }
    dst[0] = (uint8_t)kind;
    return 1 + heads + bytes;
}

/* ---- decode ---------------------------------------------------------------------- */

static bool bits_read(struct trib_code_reader *r, uint8_t *codes, size_t count)
{
    const size_t at = r->known / 8 * (size_t)r->bits; /* whole bytes: see buckets.h */
    trib_bits_unpack(codes, r->stream.src + at, count, r->bits, 0);
    r->known += count;
    return true;
}

static bool bits_done(struct trib_code_reader *r)
{
    (void)r; /* the length was checked at the start */
    return true;
}

static bool groups_done(struct trib_code_reader *r)
{
    return r->stream.at == 8 * r->stream.len && r->taken == r->held;
}

static const struct {
    bool (*read)(struct trib_code_reader *r, uint8_t *codes, size_t count);
    bool (*done)(struct trib_code_reader *r);
} kinds[TRIB_CODES_KINDS] = {
    [TRIB_CODES_BITS] = {bits_read, bits_done},
    [TRIB_CODES_GAPS] = {trib_omega_gaps_read, trib_omega_gaps_done},
    [TRIB_CODES_DENSE] = {trib_omega_dense_read, trib_omega_dense_done},
    [TRIB_CODES_GROUPS] = {trib_groups_read, groups_done},
};

static void reader_open(struct trib_code_reader *r, const uint8_t *src, size_t len,
                        size_t n, int bits)
{
    memset(r, 0, offsetof(struct trib_code_reader, group));
    r->stream.src = src;
    r->stream.len = len;
    r->n = n;
    r->bits = bits;
}

trib_status_t trib_varlen_decode(const struct trib_codec *c,
                                   const struct trib_decode *d)
{
    const struct trib_buckets b = trib_buckets_layout(c);
    const size_t start = 1 + trib_buckets_heads(&b, d->n);
    uint8_t codes[PIECE + 8];
    struct trib_code_reader r;
    if (d->n == 0)
        return d->len == 0 ? TRIB_OK : TRIB_ERR_CODEC;
    if (d->len < start)
        return TRIB_ERR_CODEC;
    uint8_t kind; /* a copy, read only once */
    memcpy(&kind, d->src, sizeof kind);
    if (kind >= TRIB_CODES_KINDS)
        return TRIB_ERR_CODEC;
    if (kind == TRIB_CODES_BITS && d->len - start != trib_bits_bytes(d->n, b.bits))
        return TRIB_ERR_CODEC;
    reader_open(&r, d->src + start, d->len - start, d->n, b.bits);
    struct trib_dequantise q = trib_dequantise_open(c, d->src + 1);
    for (size_t at = 0, count; at < d->n; at += count) {
        count = b.bucket - at % b.bucket;
        count = count < PIECE ? count : PIECE;
        count = count < d->n - at ? count : d->n - at;
        if (!kinds[kind].read(&r, codes, count))
            return TRIB_ERR_CODEC;
        if (d->overwrite)
            trib_dequantise(&q, codes, count, d->x + at);
        else
            trib_dequantise_add(&q, codes, count, d->weight, d->x + at);
    }
    return kinds[kind].done(&r) ? TRIB_OK : TRIB_ERR_CODEC;
}
