/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small text helpers: sizes with units, lists, the nearest of several names.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The value of a setting, or of an argument, that leaves the choice to the library. */
#define TRIB_AUTO "auto"

/** trib_text_is_auto - true if the text is TRIB_AUTO. */
static inline bool trib_text_is_auto(const char *text)
{
    return strcmp(text, TRIB_AUTO) == 0;
}

/**
 * trib_size_parse - "65536", "64K", "1M", "2G": units are powers of 1024, either case.
 *
 * returns  false if the text is anything else (signs and spaces, too) or does not fit
 */
bool trib_size_parse(const char *text, size_t *bytes_out);

/**
 * trib_size_format - the shortest text that trib_size_parse reads as the same number.
 *
 * text     at least 24 bytes; returned
 */
char *trib_size_format(size_t bytes, char text[24]);

/**
 * trib_text_append - printf to the end of a text.
 *
 * bytes    of the whole text, at least 1
 * returns  false if there was not enough room: then the text ends in "..."
 */
bool trib_text_append(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** trib_text_distance - edits (insert, delete, replace a byte) that turn a into b. */
size_t trib_text_distance(const char *a, const char *b);

/**
 * trib_text_nearest - the name that a mistyped text probably meant.
 *
 * names    n of them, or NULL-terminated with n = SIZE_MAX
 * returns  NULL if none is near: more than a third of the name's letters (at least 2)
 *          would have to change
 */
const char *trib_text_nearest(const char *text, const char *const *names, size_t n);

#endif
