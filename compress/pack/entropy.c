/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pack "entropy": codes at about the number of bits given by their frequencies.
 *
 *     paper      Duda: "Asymmetric numeral systems", arXiv 1311.2540, as in htscodecs:
 *                static rANS of order 0, 4 states, 12-bit frequencies (CRAM 3.1
 *                specification, "rANS Nx16")
 *     wire       groups of 16384 codes, the last one shorter: 2 bytes L, little-endian,
 *                then L bytes of htscodecs' stream without its size; L = 0: fixed width
 *                (bitpack.h)
 *     untrusted  the library only sees streams of this kind: without transforms it
 *                allocates nothing, and its time is bounded by the group. It reads a
 *                copy padded with zeros
 *     state      none
 */
#include <string.h>

#include <htscodecs/rANS_static4x16.h>

#include "base/minmax.h"
#include "compress/kernels/bitpack.h"
#include "compress/pack/varlen.h"

enum {
    HEAD = 2, /* bytes of L */
    STREAM_KIND = RANS_ORDER_NOSZ, /* its first byte */
    STREAM_ROOM = 20000, /* rans_compress_bound_4x16(TRIB_GROUP), rounded up */
    PADDING = 64,
};

/* Compress a group to work; return 0 if the result is not shorter than `limit`. */
static size_t stream_make(uint8_t *codes, size_t n, uint8_t *work, size_t limit)
{
    unsigned bytes = STREAM_ROOM;
    if (!rans_compress_to_4x16(codes, (unsigned)n, work, &bytes, STREAM_KIND) ||
        work[0] != STREAM_KIND || bytes >= limit)
        return 0;
    return bytes;
}

static size_t entropy_write(const struct trib_codes *in, uint8_t *dst, size_t limit,
                            enum trib_codes_kind *kind_out)
{
    size_t at = 0;
    for (size_t i = 0; i < in->n; i += TRIB_GROUP) {
        const size_t count = trib_min(TRIB_GROUP, in->n - i);
        const size_t fixed = trib_bits_bytes(count, in->bits);
        const size_t stream = stream_make(in->codes + i, count, in->work, fixed);
        const size_t bytes = stream ? stream : fixed;
        const uint16_t head = (uint16_t)stream;
        if (at + HEAD + bytes >= limit)
            return 0;
        memcpy(dst + at, &head, HEAD);
        at += HEAD;
        if (stream)
            memcpy(dst + at, in->work, stream);
        else /* clears codes up to a multiple of 8, which every group but the last is */
            trib_bits_pack(dst + at, in->codes + i, count, in->bits, 0);
        at += bytes;
    }
    *kind_out = TRIB_CODES_GROUPS;
    return at;
}

const struct trib_varlen trib_varlen_entropy = {.work = STREAM_ROOM,
                                                    .write = entropy_write};

/* ---- read ------------------------------------------------------------------------ */

static bool stream_read(const uint8_t *src, size_t len, uint8_t *codes, size_t count)
{
    uint8_t copy[TRIB_GROUP + PADDING];
    unsigned n = (unsigned)count;
    if (len > TRIB_GROUP)
        return false;
    memcpy(copy, src, len);
    if (copy[0] != STREAM_KIND)
        return false;
    memset(copy + len, 0, PADDING);
    return rans_uncompress_to_4x16(copy, (unsigned)len, codes, &n) && n == count;
}

static bool group_read(struct trib_code_reader *r)
{
    const uint8_t *src = r->stream.src + r->stream.at / 8;
    const size_t left = r->stream.len - r->stream.at / 8;
    const size_t count = trib_min(TRIB_GROUP, r->n - r->known);
    uint16_t head;
    if (left < HEAD)
        return false;
    memcpy(&head, src, HEAD);
    const size_t bytes = head ? head : trib_bits_bytes(count, r->bits);
    if (left - HEAD < bytes)
        return false;
    if (!head)
        trib_bits_unpack(r->group, src + HEAD, count, r->bits, 0);
    else if (!stream_read(src + HEAD, bytes, r->group, count))
        return false;
    r->stream.at += 8 * (HEAD + bytes);
    r->known += count;
    r->taken = 0;
    r->held = count;
    return true;
}

bool trib_groups_read(struct trib_code_reader *r, uint8_t *codes, size_t count)
{
    for (size_t i = 0, some; i < count; i += some) {
        if (r->taken == r->held && !group_read(r))
            return false;
        some = trib_min(count - i, r->held - r->taken);
        memcpy(codes + i, r->group + r->taken, some);
        r->taken += some;
    }
    return true;
}

const struct trib_pack trib_pack_entropy = {.name = "entropy",
                                            .varlen = &trib_varlen_entropy};
