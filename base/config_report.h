/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings for display: each setting with its origin, and all errors instead of the
 * first.
 */
#ifndef BASE_CONFIG_REPORT_H
#define BASE_CONFIG_REPORT_H

#include "base/config.h"

#define TRIB_CONFIG_FAULT_BYTES 512 /* length of an error message, plus the NUL */

/* Error messages for settings; "" if valid. */
struct trib_config_faults {
    char row[TRIB_CONFIG_ROWS][TRIB_CONFIG_FAULT_BYTES];
    bool unread[TRIB_CONFIG_ROWS]; /* the given value is invalid; cfg holds the
                                    * default */
    char other[TRIB_CONFIG_FAULT_BYTES]; /* an error of no row: unknown name, missing
                                          * file */
};

/**
 * trib_config_examine - read the same sources as trib_config_load, but continue after
 * errors.
 *
 * *faults receives the first error message per setting. Logs nothing. If there are
 * errors, *cfg is only for display.
 */
void trib_config_examine(struct trib_config *cfg, const char *overrides,
                         struct trib_config_faults *faults);

/* One setting; the strings are valid during the callback. */
struct trib_config_item {
    const char *name;     /* "chunk" */
    const char *variable; /* "TRIB_CHUNK" */
    const char *type;     /* "bool", "integer", "size", "text", "choice" */
    const char *value;    /* "128K" */
    const char *def;
    const char *range; /* "4K..16M", "thread|caller"; "" for texts */
    const char *unit;  /* "" if none */
    const char *doc;
    const char *origin; /* "default", "file", "environment", "API", "launcher" */
    bool same;          /* all ranks must agree */
};

typedef void (*trib_config_fn)(void *arg, const struct trib_config_item *item);

/** trib_config_each - call fn for each setting, in the order of config.def. */
void trib_config_each(const struct trib_config *cfg, trib_config_fn fn, void *arg);

/* text: message that the variable is unknown, with the nearest name. */
typedef void (*trib_config_unknown_fn)(void *arg, const char *variable,
                                       const char *value, const char *text);

/** trib_config_unknown - call fn for each TRIB_* variable that is not a setting. */
void trib_config_unknown(trib_config_unknown_fn fn, void *arg);

#endif
