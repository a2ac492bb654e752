/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared libraries opened at run time, so that programs also start on hosts without
 * them.
 */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* A function of a library, and its slot in a table of function pointers. */
struct trib_symbol {
    const char *name;
    size_t at; /* offsetof the pointer */
    bool optional; /* may be missing from an older library; then NULL */
};

/**
 * trib_library_open - open a library and fill a table of function pointers.
 *
 * file     such as "libibverbs.so.1"
 * symbols  n entries; with NULL and 0 the library is only opened
 * table    struct of function pointers that symbols[].at refers to; unused if n is 0
 * why      receives a clause on failure, such as "libx.so: cannot open …"
 * owner    the library stays open until the process exits, as it may have threads. Its
 *          crash-signal handlers are removed
 * thread   any
 * returns  false if the library or a non-optional symbol is missing
 */
bool trib_library_open(const char *file, const struct trib_symbol *symbols, size_t n,
                       void *table, char *why, size_t bytes);

#endif
