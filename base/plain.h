/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sanitise text from unauthenticated peers, such as a host name, for logs, error
 * messages and terminals: valid UTF-8 without line breaks or cursor control.
 */
#ifndef BASE_PLAIN_H
#define BASE_PLAIN_H

#include <stddef.h>

/**
 * trib_plain - copy text, replacing unsafe characters by \xNN for each byte.
 *
 * Unsafe are control characters (ASCII, and U+0080 to U+009F), line separators,
 * zero-width and bidirectional-control characters, and invalid UTF-8.
 * out      bytes of room, at least 4; a text that does not fit ends in "..."
 * returns  the length written
 */
size_t trib_plain(const char *text, char *out, size_t bytes);

#endif
