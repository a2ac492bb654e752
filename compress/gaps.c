/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/gaps.h"

#include <string.h>

#include <streamvbyte.h>

enum {
    GROUP = TRIB_GAPS_GROUP,
    GROUP_BYTES_MAX = GROUP / 4 + GROUP * 4,
    READ_SLACK = 16, /* stream-vbyte loads whole vectors */
};

static size_t group_of(size_t left)
{
    return left < GROUP ? left : GROUP;
}

size_t trib_gaps_bytes(const uint32_t *positions, size_t m)
{
    /* groups are whole control bytes but for the last */
    size_t bytes = (m + 3) / 4 + m;
    uint32_t last = UINT32_MAX;
    for (size_t i = 0; i < m; i++) {
        const uint32_t gap = positions[i] - last - 1;
        last = positions[i];
        bytes += (size_t)(gap > 0xff) + (gap > 0xffff) + (gap > 0xffffff);
    }
    return bytes;
}

void trib_gaps_encode(const uint32_t *positions, size_t m, uint8_t *dst)
{
    uint32_t gaps[GROUP];
    uint8_t stream[GROUP_BYTES_MAX + READ_SLACK];
    uint32_t last = UINT32_MAX;
    for (size_t i = 0; i < m; i += GROUP) {
        const size_t count = group_of(m - i);
        for (size_t j = 0; j < count; j++) {
            gaps[j] = positions[i + j] - last - 1;
            last = positions[i + j];
        }
        const size_t bytes = streamvbyte_encode(gaps, (uint32_t)count, stream);
        memcpy(dst, stream, bytes);
        dst += bytes;
    }
}

void trib_bitmap_encode(const uint32_t *positions, size_t m, size_t n, uint8_t *dst)
{
    memset(dst, 0, (n + 7) / 8);
    for (size_t i = 0; i < m; i++)
        dst[positions[i] / 8] |= (uint8_t)(1u << positions[i] % 8);
}

/* Data bytes that the control bytes of `count` gaps announce. */
static size_t group_data_bytes(const uint8_t *control, size_t count)
{
    size_t bytes = count;
    for (size_t i = 0; i < count / 4; i++)
        bytes += (control[i] & 3u) + (control[i] >> 2 & 3u) + (control[i] >> 4 & 3u) +
                 (control[i] >> 6);
    for (size_t j = count / 4 * 4; j < count; j++)
        bytes += control[j / 4] >> 2 * (j % 4) & 3u;
    return bytes;
}

/* The library trusts its input, so the length is checked first and it gets room to read
 * past the end. Returns the bytes of the group, 0 if there are not so many. */
static size_t group_decode(const struct trib_positions *p, size_t count,
                           uint32_t gaps_out[GROUP])
{
    uint8_t padded[GROUP_BYTES_MAX + READ_SLACK];
    const size_t control = (count + 3) / 4;
    if (p->len < control)
        return 0;
    const size_t bytes = control + group_data_bytes(p->src, count);
    if (p->len < bytes)
        return 0;
    const uint8_t *src = p->src;
    if (p->len < bytes + READ_SLACK) {
        memset(padded + bytes, 0, READ_SLACK);
        src = memcpy(padded, p->src, bytes);
    }
    streamvbyte_decode(src, gaps_out, (uint32_t)count);
    return bytes;
}

static size_t next_gaps(struct trib_positions *p, uint32_t out[GROUP])
{
    uint32_t gaps[GROUP];
    const size_t count = group_of(p->left);
    const size_t bytes = count ? group_decode(p, count, gaps) : 0;
    if (bytes == 0)
        return 0;
    /* 64 bits: 256 gaps of 32 bits cannot wrap; rising, so the last is the largest */
    uint64_t at = p->next;
    for (size_t j = 0; j < count; j++) {
        at += gaps[j];
        out[j] = (uint32_t)at;
        at++;
    }
    if (at > p->n)
        return 0;
    p->next = at;
    p->src += bytes;
    p->len -= bytes;
    p->left -= count;
    return count;
}

/* Loads the next (up to) 64 bits of the bitmap. */
static bool bitmap_refill(struct trib_positions *p)
{
    const size_t bytes = p->len < 8 ? p->len : 8;
    if (bytes == 0)
        return false;
    p->word = 0;
    memcpy(&p->word, p->src, bytes);
    p->src += bytes;
    p->len -= bytes;
    p->next += 64;
    return true;
}

static size_t next_bits(struct trib_positions *p, uint32_t out[GROUP])
{
    const size_t count = group_of(p->left);
    for (size_t j = 0; j < count; j++) {
        while (p->word == 0)
            if (!bitmap_refill(p))
                return 0;
        const uint64_t at = p->next - 64 + (uint64_t)__builtin_ctzll(p->word);
        if (at >= p->n)
            return 0;
        out[j] = (uint32_t)at;
        p->word &= p->word - 1;
    }
    p->left -= count;
    return count;
}

size_t trib_positions_next(struct trib_positions *p, uint32_t out[GROUP])
{
    return p->bitmap ? next_bits(p, out) : next_gaps(p, out);
}

bool trib_positions_done(const struct trib_positions *p)
{
    if (p->left || p->word)
        return false;
    for (size_t i = 0; i < p->len; i++)
        if (!p->bitmap || p->src[i])
            return false;
    return true;
}
