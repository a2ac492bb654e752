/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Build an input from edits of a valid structure. Random bytes fail at the first magic
 * number; an edit changes one field of a valid structure and so passes the first
 * checks.
 *
 * An edit has 4 bytes and then, depending on its kind, a value:
 *
 *     | place 1 | kind 1 | offset 2, little-endian | value: 0, 1, 2, 4 or 8 bytes |
 *
 * place    the structure, as the target defines it
 * kind     modulo EDIT_KINDS: enum edit_kind; bit 7: the offset need not be aligned
 */
#ifndef TESTS_FUZZ_EDITS_H
#define TESTS_FUZZ_EDITS_H

#include <stddef.h>

#include "tests/fuzz/reach.h"

enum edit_kind {
    EDIT_BIT,     /* flips a bit: the byte of the value selects it */
    EDIT_U8,      /* stores a number */
    EDIT_U16,
    EDIT_U32,
    EDIT_U64,
    EDIT_ADD,     /* adds a signed byte to a 32-bit number */
    EDIT_COPY,    /* copies 8 bytes from elsewhere in the structure: the value's 2 bytes
                   * are the offset */
    EDIT_SPECIAL, /* stores a significant 8-byte number: the value's byte selects it */
    EDIT_FILL,    /* stores many bytes of one value: the value's bytes are that byte and
                   * a quarter of their number */
    EDIT_KINDS,
};

struct edit {
    uint8_t place;
    enum edit_kind kind;
    bool anywhere; /* the offset need not be a multiple of the width */
    uint16_t offset;
    uint64_t value;
};

/* The input, and significant numbers of the target: an address, a length, a process. */
struct edits {
    const uint8_t *at;
    size_t left;
    const uint64_t *special;
    size_t n_special;
};

static inline uint64_t edits_number(struct edits *e, size_t bytes)
{
    uint64_t value = 0;

    for (size_t i = 0; i < bytes && e->left; i++, e->at++, e->left--)
        value |= (uint64_t)*e->at << (8 * i);
    return value;
}

/** edits_next - read the next edit; return false at the end of the input. */
static inline bool edits_next(struct edits *e, struct edit *out)
{
    static const uint8_t value_bytes[EDIT_KINDS] = {1, 1, 2, 4, 8, 1, 2, 1, 2};

    if (e->left < 4)
        return false;
    out->place = (uint8_t)edits_number(e, 1);
    const uint8_t kind = (uint8_t)edits_number(e, 1);
    out->kind = (enum edit_kind)((kind & 0x7f) % EDIT_KINDS);
    out->anywhere = kind & 0x80;
    out->offset = (uint16_t)edits_number(e, 2);
    out->value = edits_number(e, value_bytes[out->kind]);
    return true;
}

static inline size_t edit_width(enum edit_kind kind)
{
    static const uint8_t width[EDIT_KINDS] = {1, 1, 2, 4, 8, 4, 8, 8, 1};

    return width[kind];
}

/** edit_apply - edit `n` bytes that are valid so far; return false if the edit does not
 * fit. */
static inline bool edit_apply(const struct edits *all, const struct edit *e,
                              void *bytes, size_t n)
{
    const size_t width = edit_width(e->kind);
    uint8_t *to = bytes;
    uint64_t value = e->value;
    uint32_t word;

    if (n < width)
        return false;
    size_t at = e->offset % (n - width + 1);
    at -= e->anywhere ? 0 : at % width;
    to += at;
    if (e->kind == EDIT_BIT) {
        *to ^= (uint8_t)(1u << (value & 7));
        return true;
    }
    if (e->kind == EDIT_FILL) {
        const size_t most = (size_t)((uint8_t *)bytes + n - to),
                     many = 4 * (1 + (value >> 8));
        memset(to, (int)(value & 0xff), many < most ? many : most);
        return true;
    }
    if (e->kind == EDIT_ADD) {
        memcpy(&word, to, sizeof(word));
        value = word + (uint32_t)(int32_t)(int8_t)value;
    }
    if (e->kind == EDIT_COPY)
        memcpy(&value, (const uint8_t *)bytes + value % (n - width + 1), width);
    if (e->kind == EDIT_SPECIAL && all->n_special)
        value = all->special[value % all->n_special];
    memcpy(to, &value, width);
    return true;
}

#endif
