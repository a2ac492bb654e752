/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this build and this machine can do, for tools and curious programs.
 */
#ifndef TRIBUTARY_INFO_H
#define TRIBUTARY_INFO_H

#include <tributary/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

/** trib_version - such as "0.1.0". */
TRIB_API const char *trib_version(void);

/* One thing that the library has by name. Strings live as long as the call. */
typedef struct trib_item {
    const char *name;
    const char *value;  /* a setting's value; a transport's devices; … */
    const char *detail; /* one line: what it is for */
    const char *origin; /* a setting: default, file, environment or API; else "" */
    const char *unit;   /* of the value: "bytes", "KiB", …; "" where it has none */
    const char *fault;  /* a setting or transport: why it cannot be used; else "" */
} trib_item_t;

typedef void (*trib_item_fn)(void *arg, const trib_item_t *item);

typedef enum trib_list {
    TRIB_LIST_TRANSPORTS, /* transports and what each finds on this host now */
    TRIB_LIST_ALGORITHMS,
    TRIB_LIST_CODECS,
    TRIB_LIST_CONFIG,
    TRIB_LIST_TOPOLOGY, /* machine, packages, caches, NUMA nodes, cores (hwloc) */
    TRIB_LIST_CPU,      /* vector instruction sets: found and used */
    TRIB_LIST_BOOTS,
    TRIB_LIST_MEMORY, /* what a communicator takes for each peer, by the settings, and
                       * "memory free": what this host has now */
} trib_list_t;

/**
 * trib_list_each - call fn for each item of a list, in order of preference.
 *
 * Transports that this build is without come last, with the cure in item->fault.
 * Of the settings, all are listed, then TRIB_* variables that are none; what is wrong with
 * one is in item->fault, and its value is "" where none could be read.
 *
 * errors   TRIB_ERR_CONFIG, after all items: trib_init or a collective would fail with one
 *          of the settings; trib_last_error(NULL) says why
 */
TRIB_API trib_status_t trib_list_each(trib_list_t list, trib_item_fn fn, void *arg);

/**
 * trib_codec_check - is a codec text valid? TRIB_ERR_CODEC puts a sentence into text.
 */
TRIB_API trib_status_t trib_codec_check(const char *codec, char *text, size_t bytes);

/**
 * trib_feedback_check - is a feedback text valid, and may it go with this codec?
 *
 * errors   TRIB_ERR_INVALID, TRIB_ERR_UNSUPPORTED, TRIB_ERR_CODEC put a sentence into text
 */
TRIB_API trib_status_t trib_feedback_check(const char *feedback, const char *codec,
                                           char *text, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
