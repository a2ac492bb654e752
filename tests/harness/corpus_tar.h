/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The corpus of a fuzz target: tests/fuzz/corpus/TARGET.tar, in the format of scripts/
 * fuzz-corpus (ustar, regular files sorted by name).
 */
#ifndef TESTS_HARNESS_CORPUS_TAR_H
#define TESTS_HARNESS_CORPUS_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Called for a file of the archive; both pointers are valid during the call. */
typedef void (*corpus_fn)(void *arg, const char *name, const uint8_t *data,
                          size_t size);

/**
 * corpus_each - call fn for each file of an archive.
 *
 * returns  false if the archive cannot be read or is damaged
 */
bool corpus_each(const char *path, corpus_fn fn, void *arg);

/** corpus_path - return the path of a target's archive in the sources. */
void corpus_path(const char *target, char *path, size_t bytes);

#endif
