/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pack "omega": Elias omega codes, of the non-zero codes or of all codes.
 *
 *     paper      Alistarh, Grubic, Li, Tomioka, Vojnovic, NeurIPS 2017, section 3.2 and
 *                appendix A: the sparse regime, the dense one
 *     wire       elias_omega.h, highest bit of a byte first, padded with zeros to a
 *                whole byte
 *                gaps:  for each non-zero code omega(its position minus that of the
 *                       previous one, or minus -1), its sign, omega(its level); at the
 *                       end omega(n minus the position of the last one)
 *                dense: for each code omega(its level + 1), and its sign if the level
 *                       is not 0
 *     choice     the shorter form, named by byte 0 of the block (varlen.h)
 *     state      none
 */
#include <string.h>

#include "compress/pack/varlen.h"

enum { LEVELS = TRIB_LEVELS_MAX, SHORT_GAPS = 64 };

/* Precomputed omega codes of each code's level and sign. */
struct table {
    struct trib_omega dense[2 * LEVELS];
    struct trib_omega sparse[2 * LEVELS];
    struct trib_omega gap[SHORT_GAPS]; /* indices start at 1 */
};

static struct trib_omega with_sign(struct trib_omega o, bool first, unsigned sign)
{
    if (first)
        o.code |= (uint64_t)sign << o.bits;
    else
        o.code = o.code << 1 | sign;
    o.bits++;
    return o;
}

static void table_make(struct table *t, int bits)
{
    const unsigned levels = 1u << (bits - 1);
    t->dense[0] = trib_omega_of(1);
    for (unsigned gap = 1; gap < SHORT_GAPS; gap++)
        t->gap[gap] = trib_omega_of(gap);
    for (unsigned sign = 0; sign < 2; sign++) {
        for (unsigned level = 1; level < levels; level++) {
            t->dense[sign * levels + level] =
                with_sign(trib_omega_of(level + 1), false, sign);
            t->sparse[sign * levels + level] =
                with_sign(trib_omega_of(level), true, sign);
        }
    }
}

static size_t dense_bits(const struct trib_codes *in, const struct table *t)
{
    size_t count[2 * LEVELS] = {0}, bits = 0;
    for (size_t i = 0; i < in->n; i++)
        count[in->codes[i]]++;
    for (int i = 0; i < 1 << in->bits; i++)
        bits += count[i] ? count[i] * (size_t)t->dense[i].bits : 0;
    return bits;
}

static struct trib_omega gap_of(const struct table *t, size_t gap)
{
    return gap < SHORT_GAPS ? t->gap[gap] : trib_omega_of(gap);
}

/* Return the position of the first non-zero code from i; n: none. */
static size_t next_of(const struct trib_codes *in, size_t i)
{
    uint64_t eight = 0;
    for (; i + sizeof eight <= in->n; i += sizeof eight) {
        memcpy(&eight, in->codes + i, sizeof eight);
        if (eight)
            return i + (size_t)__builtin_ctzll(eight) / 8;
    }
    while (i < in->n && !in->codes[i])
        i++;
    return i;
}

static size_t gaps_bits(const struct trib_codes *in, const struct table *t)
{
    size_t bits = 0, before = 0; /* position after the last non-zero code */
    for (size_t i = next_of(in, 0); i < in->n; i = next_of(in, before)) {
        bits += (size_t)(gap_of(t, i + 1 - before).bits + t->sparse[in->codes[i]].bits);
        before = i + 1;
    }
    return bits + (size_t)gap_of(t, in->n + 1 - before).bits;
}

static uint8_t *dense_write(const struct trib_codes *in, const struct table *t,
                            uint8_t *dst)
{
    struct trib_bit_writer w = {.at = dst};
    for (size_t i = 0; i < in->n; i++)
        trib_bits_put(&w, t->dense[in->codes[i]]);
    return trib_bits_end(&w);
}

static uint8_t *gaps_write(const struct trib_codes *in, const struct table *t,
                           uint8_t *dst)
{
    struct trib_bit_writer w = {.at = dst};
    size_t before = 0;
    for (size_t i = next_of(in, 0); i < in->n; i = next_of(in, before)) {
        trib_bits_put(&w, gap_of(t, i + 1 - before));
        trib_bits_put(&w, t->sparse[in->codes[i]]);
        before = i + 1;
    }
    trib_bits_put(&w, gap_of(t, in->n + 1 - before));
    return trib_bits_end(&w);
}

static size_t omega_write(const struct trib_codes *in, uint8_t *dst, size_t limit,
                          enum trib_codes_kind *kind_out)
{
    struct table t;
    table_make(&t, in->bits);
    const size_t dense = dense_bits(in, &t), gaps = gaps_bits(in, &t);
    const size_t bytes = ((dense < gaps ? dense : gaps) + 7) / 8;
    if (bytes >= limit)
        return 0;
    *kind_out = dense < gaps ? TRIB_CODES_DENSE : TRIB_CODES_GAPS;
    const uint8_t *end =
        dense < gaps ? dense_write(in, &t, dst) : gaps_write(in, &t, dst);
    return (size_t)(end - dst);
}

const struct trib_varlen trib_varlen_omega = {.write = omega_write};

/* ---- read ------------------------------------------------------------------------ */

static uint64_t highest_of(const struct trib_code_reader *r)
{
    return (1u << (r->bits - 1)) - 1;
}

bool trib_omega_dense_read(struct trib_code_reader *r, uint8_t *codes, size_t count)
{
    const uint64_t highest = highest_of(r);
    r->known += count;
    for (size_t i = 0; i < count; i++) {
        uint64_t w = trib_bits_peek(&r->stream), k;
        size_t used;
        if (!trib_omega_take(&w, &used, &k) || k > highest + 1)
            return false;
        const uint64_t sign = k > 1 ? w >> 63 : 0;
        r->stream.at += used + (k > 1);
        codes[i] = (uint8_t)((k - 1) | sign << (r->bits - 1));
    }
    return r->stream.at <= 8 * r->stream.len;
}

/* Read the number of zeros that follow, and the code after them. A window has 57 bits,
 * a gap at most 43, sign and level at most 15. */
static bool gap_read(struct trib_code_reader *r)
{
    uint64_t w = trib_bits_peek(&r->stream), gap, level;
    size_t used;
    if (r->ended || !trib_omega_take(&w, &used, &gap) || gap - 1 > r->n - r->known)
        return false;
    r->stream.at += used;
    r->zeros = (size_t)gap - 1;
    r->known += r->zeros;
    r->next = 0;
    r->ended = r->known == r->n;
    if (r->ended)
        return r->stream.at <= 8 * r->stream.len;
    if (used > 40)
        w = trib_bits_peek(&r->stream);
    const uint64_t sign = w >> 63;
    w <<= 1;
    if (!trib_omega_take(&w, &used, &level) || level > highest_of(r))
        return false;
    r->stream.at += 1 + used;
    r->next = (uint8_t)(level | sign << (r->bits - 1));
    r->known++;
    return r->stream.at <= 8 * r->stream.len;
}

bool trib_omega_gaps_read(struct trib_code_reader *r, uint8_t *codes, size_t count)
{
    for (size_t i = 0; i < count;) {
        if (r->zeros) {
            const size_t zeros = r->zeros < count - i ? r->zeros : count - i;
            memset(codes + i, 0, zeros);
            r->zeros -= zeros;
            i += zeros;
        } else if (r->next) {
            codes[i++] = r->next;
            r->next = 0;
        } else if (!gap_read(r)) {
            return false;
        }
    }
    return true;
}

bool trib_omega_dense_done(struct trib_code_reader *r)
{
    return trib_bits_done(&r->stream);
}

bool trib_omega_gaps_done(struct trib_code_reader *r)
{
    return (r->ended || gap_read(r)) && r->ended && trib_bits_done(&r->stream);
}

const struct trib_pack trib_pack_omega = {.name = "omega",
                                          .varlen = &trib_varlen_omega};
