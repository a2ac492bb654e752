/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Structs of the API that begin with their size, so that fields can be added at their
 * end: a program that was built with an older header gives a smaller one, and goes on
 * to work.
 */
#ifndef BASE_SIZED_H
#define BASE_SIZED_H

#include <stddef.h>

#include <tributary/status.h>

struct trib_error;

struct trib_sized {
    const char *name; /* "trib_desc_t" */
    const char *init; /* macro with which a caller begins: "TRIB_DESC_INIT" */
    size_t size;      /* size of this library's struct */
    size_t least;     /* size of the first release's struct */
};

/* Bytes of a struct up to the end of a field: that field was the last one of the first
 * release. */
#define TRIB_SIZED_UP_TO(type, field) \
    (offsetof(type, field) + sizeof(((type *)0)->field))

/**
 * trib_sized_take - copy the caller's struct over the defaults that `ours` holds.
 *
 * theirs   begins with its size. Fields behind its end keep their defaults. A larger
 *          one is taken where the bytes that this library does not know are 0
 * errors   TRIB_ERR_INVALID with a sentence in err; ours is then what it was
 */
trib_status_t trib_sized_take(const struct trib_sized *kind, const void *theirs,
                              void *ours, struct trib_error *err);

/** trib_sized_fits - may the library fill a struct of this size? Errors as
 * trib_sized_take. */
trib_status_t trib_sized_fits(const struct trib_sized *kind, const void *theirs,
                              struct trib_error *err);

/**
 * trib_sized_give - fill the caller's struct, as far as it goes; its size stays.
 *
 * theirs   trib_sized_fits; what it has beyond this library's struct becomes 0
 */
void trib_sized_give(const struct trib_sized *kind, const void *ours, void *theirs);

#endif
