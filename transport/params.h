/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parameters of a backend or decorator, given as text: "nth=3,us=50".
 */
#ifndef TRANSPORT_PARAMS_H
#define TRANSPORT_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;

struct trib_param {
    const char *name;
    int64_t min, max;
    int64_t *value; /* in: the default, or a number below `min` for none; out: the
                     * parsed value */
    char *text; /* used instead if `value` is NULL; holds `max` bytes */
    bool list; /* the text may contain commas: "name=a,b" */
};

#define TRIB_PARAMS_MAX 32

/* Prefix of a text that is only validated. Users cannot write this character. */
#define TRIB_PARAMS_CHECK '\1'

/**
 * trib_params_split - move the parameters with these names to another text.
 *
 * text     as for trib_params_parse, at most `bytes` with the NUL; receives the rest
 * names    end with NULL; their values may be lists
 * out      at least `bytes` bytes; receives the parameters, "" if there is none
 */
void trib_params_split(char *text, const char *const *names, char *out, size_t bytes);

/**
 * trib_params_parse - parse the "name=value,…" parameters of `owner`.
 *
 * text     "" or NULL for none
 * returns  TRIB_OK; TRIB_INPROGRESS if the text is valid and begins with
 *          TRIB_PARAMS_CHECK: the caller then returns this status and creates nothing
 * errors   TRIB_ERR_CONFIG: unknown name (the message suggests the nearest one), not a
 *          number, out of range
 */
trib_status_t trib_params_parse(const char *owner, const char *text,
                                const struct trib_param *params, size_t n,
                                struct trib_error *err);

#endif
