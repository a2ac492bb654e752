/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared libraries that are opened at run time, so that a program also starts where
 * they are not installed.
 */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* A function of a library, and the place of its pointer in a table of such. */
struct trib_symbol {
    const char *name;
    size_t at; /* offsetof the pointer */
    bool optional; /* newer than the library may be: NULL where it is missing */
};

/**
 * trib_library_open - open a library and fill a table of pointers to its functions.
 *
 * file     such as "libibverbs.so.1"
 * symbols  n of them, with NULL and 0 the library is opened and that is all
 * table    a struct of function pointers, to which symbols[].at refer; unused where n
 *          is 0
 * why      receives a clause when it does not work, such as "libx.so: cannot open …"
 * owner    the library stays open until the process ends: it may have threads. Handlers
 *          that it sets for the signals of a crash are undone
 * thread   any
 * returns  false if the library or a symbol that is not optional is missing
 */
bool trib_library_open(const char *file, const struct trib_symbol *symbols, size_t n,
                       void *table, char *why, size_t bytes);

#endif
