/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/plain.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Decode the character at `at`; return its bytes, or 0 for invalid UTF-8. */
static int decode(const uint8_t *at, uint32_t *out)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const int n = at[0] < 0x80       ? 1
                  : at[0] >> 5 == 6  ? 2
                  : at[0] >> 4 == 14 ? 3
                  : at[0] >> 3 == 30 ? 4
                                     : 0;

    *out = n < 2 ? at[0] : at[0] & (0xffu >> (n + 1));
    for (int i = 1; i < n; i++) {
        if (at[i] >> 6 != 2) /* also true at the end of the text */
            return 0;
        *out = *out << 6 | (at[i] & 0x3f);
    }
    const bool surrogate = *out >= 0xd800 && *out <= 0xdfff;
    return n && *out >= least[n] && *out <= 0x10ffff && !surrogate ? n : 0;
}

static bool is_plain(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } not[] = {
        {0, 0x1f},          {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},
        {0x200b, 0x200f},   {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff},
        {0xfff0, 0xfffb},   {0xfffe, 0xffff}, {0xe0000, 0xe0fff},
    };

    for (size_t i = 0; i < sizeof(not) / sizeof(*not); i++)
        if (c >= not[i].first && c <= not[i].last)
            return false;
    return true;
}

/* Write the next piece, at most 4 bytes, and return the input bytes consumed. */
static int take(const uint8_t *at, char piece[5])
{
    uint32_t c;
    const int n = decode(at, &c);

    if (n && is_plain(c)) {
        memcpy(piece, at, (size_t)n);
        piece[n] = 0;
        return n;
    }
    snprintf(piece, 5, "\\x%02x", at[0]);
    return 1;
}

size_t trib_plain(const char *text, char *out, size_t bytes)
{
    const uint8_t *at = (const uint8_t *)text;
    size_t n = 0, fits = 0; /* `fits`: length that leaves room for "..." */
    char piece[5];

    assert(bytes >= sizeof("..."));
    while (*at) {
        const int used = take(at, piece);
        const size_t len = strlen(piece);
        if (n + len >= bytes) {
            memcpy(out + fits, "...", sizeof("..."));
            return fits + 3;
        }
        memcpy(out + n, piece, len);
        n += len;
        at += used;
        if (n + sizeof("...") <= bytes)
            fits = n;
    }
    out[n] = 0;
    return n;
}
