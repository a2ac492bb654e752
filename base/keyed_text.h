/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts that choose something by its name and give it numbers:
 *
 *     NAME[:KEY=VALUE[,KEY=VALUE]...]        "sgd:rate=0.1,momentum=0.9"
 */
#ifndef BASE_KEYED_TEXT_H
#define BASE_KEYED_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;

enum {
    TRIB_KEYED_KEYS = 8, /* that a name has at most */
    TRIB_KEYED_BYTES = 161, /* of a text, with its end, at most */
};

struct trib_keyed_key {
    const char *name; /* NULL: a place without a key */
    double lowest, highest;
    bool whole; /* only whole numbers */
    const char *must; /* "a number above 0": what a number must be */
    const char *const *words; /* the value is one of these, as its place; or, where
                               * highest allows for numbers, as -1 minus its place.
                               * NULL: a number */
};

/* A family of such texts. */
struct trib_keyed_family {
    const char *what; /* "rule": begins its sentences */
    size_t most; /* characters of a text; below TRIB_KEYED_BYTES */

    /** name - the name of number i; NULL: there are no more. */
    const char *(*name)(int i);

    /** keys - fill in the keys of the name of number i; returns how many places. */
    int (*keys)(int i, struct trib_keyed_key keys_out[TRIB_KEYED_KEYS]);
};

struct trib_keyed_text {
    int name; /* number of the name */
    uint32_t given; /* bit k: the text gives key k */
    double value[TRIB_KEYED_KEYS]; /* 0 where it is not given */
};

/**
 * trib_keyed_parse - read a text.
 *
 * text     any characters
 * errors   TRIB_ERR_INVALID with a sentence in err: what, where, the nearest name, the
 *          range
 */
trib_status_t trib_keyed_parse(const struct trib_keyed_family *family, const char *text,
                               struct trib_error *err, struct trib_keyed_text *out);

#endif
