/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parameters in the text of a backend or decorator: "nth=3,us=50".
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
    int64_t *value; /* holds the default before, the given value afterwards */
    char *text; /* where `value` is NULL: the same, of `max` bytes */
    bool list; /* a text that may go on: "name=a,b" */
};

#define TRIB_PARAMS_MAX 16

/* A text that begins with this is only looked at. No user can write it. */
#define TRIB_PARAMS_LOOK '\1'

/**
 * trib_params_parse - read "name=value,…" of `owner` into its parameters.
 *
 * text     "" or NULL for none
 * returns  TRIB_OK; TRIB_INPROGRESS where the text is well and begins with
 *          TRIB_PARAMS_LOOK: who reads it gives that back and makes nothing
 * errors   TRIB_ERR_CONFIG: unknown name (the nearest is told), no number, out of range
 */
trib_status_t trib_params_parse(const char *owner, const char *text,
                                const struct trib_param *params, size_t n,
                                struct trib_error *err);

#endif
