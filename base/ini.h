/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files of settings: lines "name = value", the same for the library and for tribd.
 *
 * A comment begins with # or ; at the beginning of a line or behind white space, and
 * goes to the end of the line: "chunk = 64K # of 4 MiB", while "a#b" is a value. Lines
 * such as [section] are for people.
 */
#ifndef BASE_INI_H
#define BASE_INI_H

#include <stdbool.h>

#include <tributary/status.h>

struct trib_error;

#define TRIB_INI_LINE_CHARACTERS 197 /* most characters of a line without its comment */

/* Takes one setting; false: it is no good, and the reading ends. */
typedef bool (*trib_ini_fn)(void *arg, const char *name, const char *value);

/**
 * trib_ini_read - call fn for each setting of a file.
 *
 * line_out   the line of the setting that fn refused, or 0
 * errors     TRIB_ERR_CONFIG and a sentence: the file cannot be read (a folder, for
 *            one), or a line is no setting. TRIB_OK also where fn has refused one.
 */
trib_status_t trib_ini_read(const char *path, trib_ini_fn fn, void *arg,
                            struct trib_error *err, int *line_out);

#endif
