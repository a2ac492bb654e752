/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text of strangers, such as the name of a peer's host, as it may stand in a line of a
 * log, in a sentence and on a terminal: it ends no line, begins no other, moves no
 * cursor, and is UTF-8.
 */
#ifndef BASE_PLAIN_H
#define BASE_PLAIN_H

#include <stddef.h>

/**
 * trib_plain - copy text; what could do more than be read becomes \xNN for each of its
 * bytes.
 *
 * That is control characters (of ASCII, and U+0080 to U+009F), line separators, signs
 * that have no width or turn the direction of writing, and bytes that are no UTF-8.
 * out      bytes of room, at least 4; what is too long ends in "..."
 * returns  the length of what was written
 */
size_t trib_plain(const char *text, char *out, size_t bytes);

#endif
