/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/pack/index_gaps.h"

#include <string.h>

#include "compress/kernels/kernels.h"

/*
 * Packing by hand, and not by the library of that name: Debian 12 builds it without
 * vector code, and then it branches on every length. Nothing here does: a gap is always
 * moved as four bytes, of which the next one overwrites those too many.
 */
enum {
    GROUP = TRIB_INDEX_GAPS_GROUP,
    CONTROL_MAX = GROUP / 4,
    DATA_MAX = GROUP * 4,
    GROUP_BYTES_MAX = CONTROL_MAX + DATA_MAX,
    SLACK = 3, /* bytes read or written beyond the last gap */
};

static size_t group_of(size_t left)
{
    return left < GROUP ? left : GROUP;
}

size_t trib_index_gaps_bytes(const struct trib_kernels *kernels,
                             const uint32_t *positions, size_t m)
{
    /* groups are whole control bytes but for the last */
    return (m + 3) / 4 + m + kernels->index_gaps_long(positions, m);
}

/* Writes a gap; returns its bytes less one. */
static uint32_t gap_write(uint8_t *dst, uint32_t gap)
{
    memcpy(dst, &gap, sizeof gap);
    return (uint32_t)(gap > 0xff) + (gap > 0xffff) + (gap > 0xffffff);
}

static size_t group_encode(const uint32_t *gaps, size_t count, uint8_t *stream)
{
    uint8_t *data = stream + (count + 3) / 4;
    for (size_t j = 0; j < count; j += 4) {
        uint32_t control = 0;
        for (size_t i = j; i < j + 4 && i < count; i++) {
            const uint32_t more = gap_write(data, gaps[i]);
            control |= more << 2 * (i - j);
            data += more + 1;
        }
        stream[j / 4] = (uint8_t)control;
    }
    return (size_t)(data - stream);
}

size_t trib_index_gaps_encode(const uint32_t *positions, size_t m, uint8_t *dst)
{
    uint32_t gaps[GROUP];
    uint8_t stream[GROUP_BYTES_MAX + SLACK];
    uint32_t last = UINT32_MAX;
    const uint8_t *const start = dst;
    for (size_t i = 0; i < m; i += GROUP) {
        const size_t count = group_of(m - i);
        for (size_t j = 0; j < count; j++) {
            gaps[j] = positions[i + j] - last - 1;
            last = positions[i + j];
        }
        const size_t bytes = group_encode(gaps, count, stream);
        memcpy(dst, stream, bytes);
        dst += bytes;
    }
    return (size_t)(dst - start);
}

void trib_bitmap_encode(const uint32_t *positions, size_t m, size_t n, uint8_t *dst)
{
    const size_t words = n / 64;
    size_t i = 0;
    for (size_t w = 0; w < words; w++) {
        /* in a register: bits that follow in one byte of memory would wait for each
         * other */
        uint64_t word = 0;
        for (; i < m && positions[i] / 64 == w; i++)
            word |= UINT64_C(1) << positions[i] % 64;
        memcpy(dst + 8 * w, &word, sizeof word);
    }
    memset(dst + 8 * words, 0, (n % 64 + 7) / 8);
    for (; i < m; i++)
        dst[positions[i] / 8] |= (uint8_t)(1u << positions[i] % 8);
}

/* Data bytes that the control bytes of `count` gaps announce. */
static size_t group_data_bytes(const uint8_t *control, size_t count)
{
    size_t bytes = count, i = 0;
    for (; (i + 8) * 4 <= count; i += 8) {
        uint64_t w;
        memcpy(&w, control + i, sizeof w);
        w = (w & 0x3333333333333333u) + (w >> 2 & 0x3333333333333333u);
        w = (w & 0x0f0f0f0f0f0f0f0fu) + (w >> 4 & 0x0f0f0f0f0f0f0f0fu);
        bytes += w * 0x0101010101010101u >> 56; /* at most 8 times 12 */
    }
    for (size_t j = 4 * i; j < count; j++)
        bytes += control[j / 4] >> 2 * (j % 4) & 3u;
    return bytes;
}

static const uint32_t low_bytes[4] = {0xff, 0xffff, 0xffffff, 0xffffffff};

/* The gap at data, of which bytes - 1 is in the lowest bits of control. */
static uint32_t gap_read(const uint8_t *data, uint32_t control)
{
    uint32_t gap;
    memcpy(&gap, data, sizeof gap);
    return gap & low_bytes[control & 3];
}

/* Positions of `count` gaps from `at` on; returns what may follow. The data have SLACK
 * bytes beyond them. 64 bits: 256 gaps of 32 bits cannot wrap. */
static uint64_t group_decode(const uint8_t *controls, const uint8_t *data, size_t count,
                             uint64_t at, uint32_t out[GROUP])
{
    const uint8_t *a = data;
    size_t j = 0;
    for (; j + 4 <= count; j += 4) {
        const uint32_t control = controls[j / 4];
        const uint8_t *const b = a + (control & 3) + 1, *const c =
                                                            b + (control >> 2 & 3) + 1;
        const uint8_t *const d = c + (control >> 4 & 3) + 1;
        const uint64_t at_a = at + gap_read(a, control);
        const uint64_t at_b = at_a + 1 + gap_read(b, control >> 2);
        const uint64_t at_c = at_b + 1 + gap_read(c, control >> 4);
        const uint64_t at_d = at_c + 1 + gap_read(d, control >> 6);
        out[j] = (uint32_t)at_a, out[j + 1] = (uint32_t)at_b;
        out[j + 2] = (uint32_t)at_c, out[j + 3] = (uint32_t)at_d;
        at = at_d + 1;
        a = d + (control >> 6) + 1;
    }
    for (; j < count; j++) {
        const uint32_t control = controls[j / 4] >> 2 * (j % 4) & 3u;
        at += gap_read(a, control);
        out[j] = (uint32_t)at++;
        a += control + 1;
    }
    return at;
}

static size_t next_gaps(struct trib_positions *p, uint32_t out[GROUP])
{
    uint8_t controls[CONTROL_MAX], padded[DATA_MAX + SLACK];
    const size_t count = group_of(p->left), before = (count + 3) / 4;
    if (count == 0 || p->len < before)
        return 0;
    memcpy(controls, p->src, before); /* a peer may change those at src meanwhile */
    const size_t bytes = group_data_bytes(controls, count);
    const uint8_t *data = p->src + before;
    if (p->len - before < bytes)
        return 0;
    if (p->len - before < bytes + SLACK) {
        memset(padded + bytes, 0, SLACK);
        data = memcpy(padded, data, bytes);
    }
    const uint64_t at = group_decode(controls, data, count, p->next, out);
    if (at > p->n) /* rising, so the last is the largest */
        return 0;
    p->next = at;
    p->src += before + bytes;
    p->len -= before + bytes;
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
