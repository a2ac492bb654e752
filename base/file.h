/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small files of /sys and /proc, or of a directory with a copy of them.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/** trib_file_open - open for reading; NULL if the file does not exist. The caller
 * closes it. */
FILE *trib_file_open(const char *root, const char *path);

/**
 * trib_file_line - read the first line of a file, without its line feed.
 *
 * root     "", or the directory that contains path
 * returns  false if the file does not exist, is empty or unreadable
 */
bool trib_file_line(const char *root, const char *path, char *text, size_t bytes);

/**
 * trib_file_field - read the text after "name:" in a file of such lines; if `colon` is
 * false, the text after "name ".
 */
bool trib_file_field(const char *root, const char *path, const char *name, bool colon,
                     char *out, size_t bytes);

#endif
