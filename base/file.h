/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small files of /sys and /proc, or of a folder with a copy of them.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/** trib_file_open - open for reading; NULL if there is no such file. The caller closes
 * it. */
FILE *trib_file_open(const char *root, const char *path);

/**
 * trib_file_line - the first line of a file, without its line feed.
 *
 * root     "", or the folder in which path is looked for
 * returns  false where there is no such file, or it is empty or not readable
 */
bool trib_file_line(const char *root, const char *path, char *text, size_t bytes);

/**
 * trib_file_field - the text behind "name" and a colon in a file of such lines; with
 * `colon` false, the text behind "name" and space.
 */
bool trib_file_field(const char *root, const char *path, const char *name, bool colon,
                     char *out, size_t bytes);

#endif
