/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/encoded_pairs.h"

#include <assert.h>

enum {
    HEAD = 8, /* bytes before the positions */
    FAR = 65536, /* minimum distance of two positions that does not fit 2 bytes */
    SHORT_MAX = 65536, /* maximum elements of a chunk whose positions have 2 bytes */
};

enum form {
    ALL, /* no positions */
    BITMAP,
    LIST_16,
    LIST_32,
    GAPS, /* a list of distances */
};

static size_t bitmap_bytes(size_t n)
{
    return (n + 7) / 8;
}

static enum form form_of(size_t pairs, size_t n)
{
    const enum form list = n <= SHORT_MAX ? LIST_16 : LIST_32;

    if (pairs == n)
        return ALL;
    return bitmap_bytes(n) <= pairs * (list == LIST_16 ? 2 : 4) ? BITMAP : list;
}

static size_t gaps_bytes(size_t pairs, size_t far)
{
    return 2 * pairs + 4 * far;
}

/* Return the number of far distances: from the previous position, or from -1 for the
 * first one. */
static size_t count_far(const struct trib_pairs *p)
{
    size_t far = p->at[0] >= FAR - 1;

    for (size_t i = 1; i < p->n; i++)
        far += p->at[i] - p->at[i - 1] >= FAR;
    return far;
}

/* Return true if distances take fewer bytes than the list of u32, and set the number of
 * far distances. */
static bool in_gaps(const struct trib_pairs *p, size_t n, size_t *far_out)
{
    if (!p->n || form_of(p->n, n) != LIST_32)
        return false;
    *far_out = count_far(p);
    return gaps_bytes(p->n, *far_out) < 4 * p->n;
}

static size_t whole(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* Return the number of bytes before the values of an encoding without distances. */
static size_t values_at(size_t pairs, size_t n)
{
    const size_t bytes[] = {[ALL] = 0,
                            [BITMAP] = bitmap_bytes(n),
                            [LIST_16] = 2 * pairs,
                            [LIST_32] = 4 * pairs};

    return HEAD + whole(bytes[form_of(pairs, n)]);
}

size_t trib_encoded_pairs_bytes(size_t pairs, size_t n, size_t element)
{
    assert(pairs <= n);
    return pairs ? values_at(pairs, n) + pairs * element : 0;
}

size_t trib_encoded_pairs_length(const struct trib_pairs *p, size_t n, size_t element)
{
    size_t far;

    return in_gaps(p, n, &far) ? HEAD + whole(gaps_bytes(p->n, far)) + p->n * element
                               : trib_encoded_pairs_bytes(p->n, n, element);
}

size_t trib_encoded_pairs_bound(size_t n, size_t element)
{
    return HEAD + (bitmap_bytes(n) + 7) / 8 * 8 + n * element;
}

/* Write 64 bits at a time, into zeroed memory of a multiple of 8 bytes. */
static void write_bitmap(const struct trib_pairs *p, uint8_t *to)
{
    uint64_t bits;

    for (size_t i = 0; i < p->n;) {
        const uint32_t word = p->at[i] / 64;
        const bool all = trib_pair_block(p, i);
        for (bits = 0; !all && i < p->n && p->at[i] / 64 == word; i++)
            bits |= UINT64_C(1) << p->at[i] % 64;
        if (all) {
            bits = UINT64_MAX;
            i += 64;
        }
        memcpy(to + (size_t)word * sizeof(bits), &bits, sizeof(bits));
    }
}

static void write_positions(const struct trib_pairs *p, size_t n, uint8_t *to)
{
    const enum form form = form_of(p->n, n);

    if (form == BITMAP)
        write_bitmap(p, to);
    for (size_t i = 0; form == LIST_16 && i < p->n; i++) {
        const uint16_t at = (uint16_t)p->at[i];
        memcpy(to + i * sizeof(at), &at, sizeof(at));
    }
    if (form == LIST_32)
        memcpy(to, p->at, p->n * sizeof(*p->at));
}

static void write_gaps(const struct trib_pairs *p, uint8_t *to)
{
    uint32_t next = 0; /* the previous position plus 1 */

    for (size_t i = 0; i < p->n; i++) {
        const uint32_t gap = p->at[i] - next + 1;
        const uint16_t near = gap < FAR ? (uint16_t)gap : 0;
        memcpy(to, &near, sizeof(near));
        to += sizeof(near);
        if (!near) {
            memcpy(to, &gap, sizeof(gap));
            to += sizeof(gap);
        }
        next = p->at[i] + 1;
    }
}

void trib_encoded_pairs_write(const struct trib_pairs *p, size_t n, size_t element,
                              uint8_t *word)
{
    size_t far = 0;

    if (!p->n)
        return;
    const bool gaps = in_gaps(p, n, &far);
    const size_t values =
        gaps ? HEAD + whole(gaps_bytes(p->n, far)) : values_at(p->n, n);
    const uint32_t head[2] = {(uint32_t)p->n, gaps ? (uint32_t)far + 1 : 0};
    assert(p->n <= n && p->at[p->n - 1] < n);
    memset(word, 0, values);
    memcpy(word, head, sizeof(head));
    if (gaps)
        write_gaps(p, word + HEAD);
    else
        write_positions(p, n, word + HEAD);
    memcpy(word + values, p->values, p->n * element);
}

static bool read_bitmap(const uint8_t *from, size_t n, size_t pairs, uint32_t *at)
{
    size_t found = 0;

    for (size_t i = 0; i < n; i += 64) {
        const size_t left = bitmap_bytes(n) - i / 8;
        uint64_t bits = 0;
        if (left >= sizeof(bits))
            memcpy(&bits, from + i / 8, sizeof(bits));
        else
            memcpy(&bits, from + i / 8, left);
        if (bits == UINT64_MAX && pairs - found >= 64 && n - i >= 64) {
            for (uint32_t k = 0; k < 64; k++)
                at[found + k] = (uint32_t)i + k;
            found += 64;
            continue;
        }
        for (; bits; bits &= bits - 1) {
            const size_t position = i + (size_t)__builtin_ctzll(bits);
            if (found == pairs || position >= n)
                return false;
            at[found++] = (uint32_t)position;
        }
    }
    return found == pairs;
}

/* Read each position once: the peer may change it after this check. */
static bool read_list(const uint8_t *from, size_t width, size_t n, size_t pairs,
                      uint32_t *at)
{
    bool rises = true;

    assert(pairs > 0);
    for (size_t i = 0; width == sizeof(uint16_t) && i < pairs; i++) {
        uint16_t position;
        memcpy(&position, from + i * sizeof(position), sizeof(position));
        at[i] = position;
    }
    if (width != sizeof(uint16_t))
        memcpy(at, from, pairs * sizeof(*at));
    for (size_t i = 1; i < pairs; i++)
        rises &= at[i] > at[i - 1];
    return rises && at[pairs - 1] < n;
}

/* Read distances, `far` of them far; each byte once. */
static bool read_gaps(const uint8_t *from, size_t n, size_t pairs, size_t far,
                      uint32_t *at)
{
    uint64_t next = 0;

    for (size_t i = 0; i < pairs; i++) {
        uint16_t near;
        uint32_t gap;
        memcpy(&near, from, sizeof(near));
        from += sizeof(near);
        gap = near;
        if (!near) {
            if (!far--)
                return false;
            memcpy(&gap, from, sizeof(gap));
            from += sizeof(gap);
            if (gap < FAR)
                return false;
        }
        next += gap;
        if (next > n)
            return false;
        at[i] = (uint32_t)(next - 1);
    }
    return far == 0;
}

/* Read the positions of an encoding with distances. */
static bool read_far(const uint8_t *word, size_t bytes, size_t n, size_t element,
                     const uint32_t head[2], struct trib_pairs *out, uint32_t *at)
{
    const size_t pairs = head[0], far = head[1] - 1;
    const size_t values = HEAD + whole(gaps_bytes(pairs, far));

    if (form_of(pairs, n) != LIST_32 || far > pairs ||
        gaps_bytes(pairs, far) >= 4 * pairs || bytes != values + pairs * element)
        return false;
    out->n = pairs;
    out->values = word + values;
    return read_gaps(word + HEAD, n, pairs, far, at);
}

bool trib_encoded_pairs_read(const uint8_t *word, size_t bytes, size_t n,
                             size_t element, uint32_t *at, struct trib_pairs *out)
{
    uint32_t head[2];
    bool valid = true;

    *out = (struct trib_pairs){.at = at};
    if (!bytes)
        return true;
    if (bytes < HEAD)
        return false;
    memcpy(head, word, sizeof(head));
    const size_t pairs = head[0];
    if (!pairs || pairs > n)
        return false;
    if (head[1])
        return read_far(word, bytes, n, element, head, out, at);
    if (bytes != trib_encoded_pairs_bytes(pairs, n, element))
        return false;
    const enum form form = form_of(pairs, n);
    for (size_t i = 0; form == ALL && i < n; i++)
        at[i] = (uint32_t)i;
    if (form == BITMAP)
        valid = read_bitmap(word + HEAD, n, pairs, at);
    else if (form != ALL)
        valid = read_list(word + HEAD, form == LIST_16 ? 2 : 4, n, pairs, at);
    out->n = pairs;
    out->values = word + values_at(pairs, n);
    return valid;
}
