/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Configuration of one context: read once, then constant.
 *
 * Later sources override earlier ones:
 *   1. the defaults of config.def
 *   2. the file named by TRIB_CONFIG_FILE; base/ini.h defines its syntax
 *   3. TRIB_<NAME> in the environment
 *   4. the text passed to the API: "name=value,name=value"; separate the settings by
 *   ";" if a value contains a comma ("codec=qsgd:bits=4,bucket=512;window=4")
 */
#ifndef BASE_CONFIG_H
#define BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;
struct trib_log;

#define TRIB_CONFIG_TEXT_BYTES 256 /* longest text value, plus the NUL */

/* Values of the ENUM rows; cfg->log is a trib_log_level_t. */
enum trib_config_progress { TRIB_PROGRESS_THREAD, TRIB_PROGRESS_CALLER };
enum trib_config_groups {
    TRIB_GROUPS_HOST,
    TRIB_GROUPS_NUMA,
    TRIB_GROUPS_NIC,
    TRIB_GROUPS_AUTO,
};

enum trib_config_origin {
    TRIB_ORIGIN_DEFAULT,
    TRIB_ORIGIN_FILE,
    TRIB_ORIGIN_ENVIRONMENT,
    TRIB_ORIGIN_API,
    TRIB_ORIGIN_LAUNCHER, /* mpirun and other launchers; see boot/launcher.h */
};

/* With TRIB_DETERMINISTIC: the size of the pieces that are encoded separately, and the
 * minimum TRIB_CHUNK. */
#define TRIB_DETERMINISTIC_CHUNK 65536

#define TRIB_CONFIG_FIELD_BOOL(name) bool name;
#define TRIB_CONFIG_FIELD_INT(name) int name;
#define TRIB_CONFIG_FIELD_LIMIT(name) int name;
#define TRIB_CONFIG_FIELD_SIZE(name) size_t name;
#define TRIB_CONFIG_FIELD_TEXT(name) char name[TRIB_CONFIG_TEXT_BYTES];
#define TRIB_CONFIG_FIELD_ENUM(name) int name;

enum {
#define X(name, type, def, min, max, unit, agree, doc) TRIB_CONFIG_ROW_##name,
#include "base/config.def"
#undef X
    TRIB_CONFIG_ROWS,
};

struct trib_config {
#define X(name, type, def, min, max, unit, agree, doc) TRIB_CONFIG_FIELD_##type(name)
#include "base/config.def"
#undef X
    uint8_t origin[TRIB_CONFIG_ROWS]; /* enum trib_config_origin */
};

/** trib_config_environment - return an environment variable, or NULL. No other code
 * reads the environment. */
const char *trib_config_environment(const char *variable);

/** trib_config_environment_name - copy the name of environment entry `at`, from 0, to
 * text if it begins with prefix, else "". Return false past the last entry. */
bool trib_config_environment_name(size_t at, const char *prefix, char *text,
                                  size_t bytes);

/**
 * trib_config_load - read all sources.
 *
 * overrides  text passed to the API, or NULL
 * log        gets a warning for each unknown TRIB_* variable, with the nearest name
 * err        error message: the setting, its origin, its value and the allowed values
 * thread     any, while no other thread changes the environment
 * errors     TRIB_ERR_CONFIG: invalid value, unknown name in the file or in overrides,
 *            unreadable file. *cfg must not be used then.
 */
trib_status_t trib_config_load(struct trib_config *cfg, const char *overrides,
                               const struct trib_log *log, struct trib_error *err);

/** trib_config_variable - return a variable of a launcher; NULL: unset or empty. */
const char *trib_config_variable(const char *name);

/** trib_config_is_same - return true for a setting on which ranks must agree. */
bool trib_config_is_same(const char *name, size_t len);

/** trib_config_digest - return a digest of the settings on which ranks must agree. */
uint64_t trib_config_digest(const struct trib_config *cfg);

/**
 * trib_config_same_text - format the digested settings, "algorithm=auto codec=none …",
 * to tell ranks which of them differ.
 *
 * returns  bytes that the whole text needs, plus the NUL; writes at most `bytes`
 */
size_t trib_config_same_text(const struct trib_config *cfg, char *text, size_t bytes);

#endif
