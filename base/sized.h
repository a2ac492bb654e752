/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * API structs that start with their size, so fields can be added at the end: a program
 * built with an older header passes a smaller struct and still works.
 */
#ifndef BASE_SIZED_H
#define BASE_SIZED_H

#include <stddef.h>

#include <tributary/status.h>

struct trib_error;

struct trib_sized {
    const char *name; /* "trib_desc_t" */
    const char *init; /* initialiser macro: "TRIB_DESC_INIT" */
    size_t size;      /* size of this library's struct */
    size_t least;     /* size in the first release */
};

/* Size of a struct up to the end of a field, the last field of the first release. */
#define TRIB_SIZED_UP_TO(type, field) \
    (offsetof(type, field) + sizeof(((type *)0)->field))

/**
 * trib_sized_take - copy the caller's struct over the defaults in `ours`.
 *
 * theirs   begins with its size. Fields beyond its end keep their defaults. A larger
 *          struct is accepted if all bytes unknown to this library are 0
 * errors   TRIB_ERR_INVALID with a message in err; ours is unchanged
 */
trib_status_t trib_sized_take(const struct trib_sized *kind, const void *theirs,
                              void *ours, struct trib_error *err);

/** trib_sized_fits - check that the library may fill a struct of this size. Errors as
 * trib_sized_take. */
trib_status_t trib_sized_fits(const struct trib_sized *kind, const void *theirs,
                              struct trib_error *err);

/**
 * trib_sized_give - fill the caller's struct up to its size; its size field is kept.
 *
 * theirs   checked by trib_sized_fits; bytes beyond this library's struct become 0
 */
void trib_sized_give(const struct trib_sized *kind, const void *ours, void *theirs);

#endif
