/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts that select a name and give it parameters:
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
    TRIB_KEYED_KEYS = 8, /* maximum keys of a name */
    TRIB_KEYED_BYTES = 161, /* maximum length of a text, plus the NUL */
};

struct trib_keyed_key {
    const char *name; /* NULL: unused index */
    double lowest, highest;
    bool whole; /* only whole numbers */
    const char *must; /* constraint for error messages: "a number above 0" */
    const char *const *words; /* allowed words; the value is the index, or -1 - index
                               * if highest also allows numbers. NULL: a number */
};

/* A family of such texts. */
struct trib_keyed_family {
    const char *what; /* "rule": prefix of its error messages */
    size_t most; /* maximum characters of a text; below TRIB_KEYED_BYTES */

    /** name - return name number i; NULL past the last. */
    const char *(*name)(int i);

    /** keys - fill in the keys of name number i; return the number of indices. */
    int (*keys)(int i, struct trib_keyed_key keys_out[TRIB_KEYED_KEYS]);
};

struct trib_keyed_text {
    int name; /* index of the name */
    uint32_t given; /* bit k: key k is given */
    double value[TRIB_KEYED_KEYS]; /* 0 if not given */
};

/**
 * trib_keyed_parse - parse a text.
 *
 * text     any characters
 * errors   TRIB_ERR_INVALID with a message in err: the problem, the place, the nearest
 *          name, the range
 */
trib_status_t trib_keyed_parse(const struct trib_keyed_family *family, const char *text,
                               struct trib_error *err, struct trib_keyed_text *out);

#endif
