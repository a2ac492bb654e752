/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Configuration files with lines "name = value", for the library and tribd.
 *
 * A comment starts with # or ; at the beginning of a line or after white space, and
 * extends to the end of the line: "chunk = 64K # of 4 MiB", while "a#b" is a value.
 * Lines such as [section] are ignored.
 */
#ifndef BASE_INI_H
#define BASE_INI_H

#include <stdbool.h>

#include <tributary/status.h>

struct trib_error;

#define TRIB_INI_LINE_CHARACTERS 197 /* maximum length of a line without its comment */

/* Handle one setting; return false to reject it and stop. */
typedef bool (*trib_ini_fn)(void *arg, const char *name, const char *value);

/**
 * trib_ini_read - call fn for each setting of a file.
 *
 * line_out   line of the setting that fn rejected, or 0
 * errors     TRIB_ERR_CONFIG with a message: the file is unreadable (e.g. a directory),
 *            or a line is not a setting. TRIB_OK even if fn rejected one.
 */
trib_status_t trib_ini_read(const char *path, trib_ini_fn fn, void *arg,
                            struct trib_error *err, int *line_out);

#endif
