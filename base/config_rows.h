/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Table of settings, and conversion of values between text and fields. For config.c,
 * which reads the sources of settings.
 */
#ifndef BASE_CONFIG_ROWS_H
#define BASE_CONFIG_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/config.h"

#define TRIB_CONFIG_PREFIX "TRIB_"
/* Length of a setting or its variable, plus the NUL. */
#define TRIB_CONFIG_NAME_BYTES 48
/* Length of "4K..16M" or of the choices of an ENUM. */
#define TRIB_CONFIG_RANGE_BYTES 64

enum trib_config_type {
    TRIB_CONFIG_BOOL,
    TRIB_CONFIG_INT,
    TRIB_CONFIG_LIMIT, /* an integer, or 0 for no limit */
    TRIB_CONFIG_SIZE,
    TRIB_CONFIG_TEXT,
    TRIB_CONFIG_ENUM,
};

struct trib_config_row {
    const char *name;
    enum trib_config_type type;
    const char *def;
    long long min;
    long long max;
    const char *unit; /* unit; for an ENUM its choices, "a|b|c" */
    bool same; /* ranks must agree */
    const char *doc;
    size_t offset; /* offset of the value in struct trib_config */
};

extern const struct trib_config_row trib_config_rows[TRIB_CONFIG_ROWS];

/** trib_config_row_find - return the row of a setting; NULL: unknown name. */
const struct trib_config_row *trib_config_row_find(const char *name);

/** trib_config_row_type - return "bool", "integer", "size", "text" or "choice". */
const char *trib_config_row_type(const struct trib_config_row *row);

/** trib_config_row_variable - format "TRIB_NAME". */
void trib_config_row_variable(const struct trib_config_row *row,
                              char variable[TRIB_CONFIG_NAME_BYTES]);

/** trib_config_row_parse - parse value into the field of cfg; return false if not
 * allowed. */
bool trib_config_row_parse(const struct trib_config_row *row, const char *value,
                           struct trib_config *cfg);

/** trib_config_row_format - format the field of cfg. */
void trib_config_row_format(const struct trib_config_row *row,
                            const struct trib_config *cfg,
                            char text[TRIB_CONFIG_TEXT_BYTES]);

/** trib_config_row_range - format the allowed values: "4K..16M", "a|b"; "" for
 * texts. */
void trib_config_row_range(const struct trib_config_row *row,
                           char text[TRIB_CONFIG_RANGE_BYTES]);

/** trib_config_row_allowed - describe the allowed values for an error message. */
void trib_config_row_allowed(const struct trib_config_row *row, char *text,
                             size_t bytes);

#endif
