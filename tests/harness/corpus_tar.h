/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The corpus of a fuzz target: tests/fuzz/corpus/TARGET.tar, as scripts/fuzz-corpus
 * writes it (ustar, regular files in the order of their names).
 */
#ifndef TESTS_HARNESS_CORPUS_TAR_H
#define TESTS_HARNESS_CORPUS_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One file of the archive; both live as long as the call. */
typedef void (*corpus_fn)(void *arg, const char *name, const uint8_t *data,
                          size_t size);

/**
 * corpus_each - call fn for each file of an archive.
 *
 * returns  false if the archive cannot be read or is damaged
 */
bool corpus_each(const char *path, corpus_fn fn, void *arg);

/** corpus_path - where the sources have the archive of a target. */
void corpus_path(const char *target, char *path, size_t bytes);

#endif
