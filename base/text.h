/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small text helpers: sizes with units, lists, nearest name.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Value of a setting or argument that leaves the choice to the library. */
#define TRIB_AUTO "auto"

/** trib_text_is_auto - return true if the text is TRIB_AUTO. */
static inline bool trib_text_is_auto(const char *text)
{
    return strcmp(text, TRIB_AUTO) == 0;
}

/**
 * trib_size_parse - parse "65536", "64K", "1M", "2G": powers of 1024, either case.
 *
 * returns  false for anything else (also signs and spaces), or on overflow
 */
bool trib_size_parse(const char *text, size_t *bytes_out);

/**
 * trib_size_format - format the shortest text that trib_size_parse reads back.
 *
 * text     at least 24 bytes; returned
 */
char *trib_size_format(size_t bytes, char text[24]);

/**
 * trib_text_append - append with printf.
 *
 * bytes    size of the whole text, at least 1
 * returns  false if the text was truncated; it then ends in "..."
 */
bool trib_text_append(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** trib_text_distance - return the edits (insert, delete, replace a byte) between a and
 * b. */
size_t trib_text_distance(const char *a, const char *b);

/**
 * trib_text_nearest - return the name that a mistyped text probably meant.
 *
 * names    n of them, or NULL-terminated with n = SIZE_MAX
 * returns  NULL if none is near: more than a third of the name's letters (at least 2)
 *          would have to change
 */
const char *trib_text_nearest(const char *text, const char *const *names, size_t n);

#endif
