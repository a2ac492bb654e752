/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The configuration of one context: read once, then constant.
 *
 * Later sources override earlier ones:
 *   1. the defaults of config.def
 *   2. the file that TRIB_CONFIG_FILE names; base/ini.h has its rules
 *   3. TRIB_<NAME> in the environment
 *   4. the text that a program gives to the API: "name=value,name=value"; where a value
 *      has a comma, separate the settings by ";"
 *      ("codec=qsgd:bits=4,bucket=512;window=4")
 */
#ifndef BASE_CONFIG_H
#define BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;
struct trib_log;

#define TRIB_CONFIG_TEXT_BYTES 256 /* longest text value, with its zero */

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
    TRIB_ORIGIN_LAUNCHER, /* mpirun and its like; see boot/launcher.h */
};

/* With TRIB_DETERMINISTIC: the bytes of elements of which code words are made, and the
 * least TRIB_CHUNK. */
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

/** trib_config_environment - a variable of the environment, or NULL: the one place that
 * reads it. */
const char *trib_config_environment(const char *variable);

/** trib_config_environment_name - does entry `at` of the environment, from 0, begin
 * with prefix? Then its name is in text, else it is ""; false: there is no such
 * entry. */
bool trib_config_environment_name(size_t at, const char *prefix, char *text,
                                  size_t bytes);

/**
 * trib_config_load - read all sources.
 *
 * overrides  the API's text; NULL for none
 * log        receives a warning for each unknown TRIB_* variable, with the nearest name
 * err        a sentence that names the setting, its origin, its value and what is
 *            allowed
 * thread     any, as long as no other changes the environment
 * errors     TRIB_ERR_CONFIG: an impossible value, an unknown name in the file or in
 *            overrides, a file that cannot be read. *cfg is then not to be used.
 */
trib_status_t trib_config_load(struct trib_config *cfg, const char *overrides,
                               const struct trib_log *log, struct trib_error *err);

#define TRIB_CONFIG_FAULT_BYTES 512 /* length of a sentence, with its zero */

/* The faults of settings: sentences, "" if there is none. */
struct trib_config_faults {
    char row[TRIB_CONFIG_ROWS][TRIB_CONFIG_FAULT_BYTES];
    bool unread[TRIB_CONFIG_ROWS]; /* the given value is invalid, and the default stands
                                    * in */
    char other[TRIB_CONFIG_FAULT_BYTES]; /* a fault of no row: an unknown name, a
                                          * missing file */
};

/**
 * trib_config_examine - read what trib_config_load reads, but to the end.
 *
 * An impossible setting stops nothing; the first sentence about each is in *faults.
 * Logs nothing. *cfg is for showing only where there is a fault.
 */
void trib_config_examine(struct trib_config *cfg, const char *overrides,
                         struct trib_config_faults *faults);

/** trib_config_set - set one setting by name, as the API does it, while cfg is being
 * made. */
trib_status_t trib_config_set(struct trib_config *cfg, const char *name,
                              const char *value, struct trib_error *err);

/** trib_config_variable - a launcher's variable; NULL: it is not set, or empty. */
const char *trib_config_variable(const char *name);

/* One setting; the strings live as long as the call. */
struct trib_config_item {
    const char *name;     /* "chunk" */
    const char *variable; /* "TRIB_CHUNK" */
    const char *type;     /* "bool", "integer", "size", "text", "choice" */
    const char *value;    /* "128K" */
    const char *def;
    const char *range; /* "4K..16M", "thread|caller", "" for texts */
    const char *unit;  /* "" where there is none */
    const char *doc;
    const char *origin; /* "default", "file", "environment", "API", "launcher" */
    bool same;          /* all ranks must agree */
};

typedef void (*trib_config_fn)(void *arg, const struct trib_config_item *item);

/** trib_config_each - call fn for each setting, in the order of config.def. */
void trib_config_each(const struct trib_config *cfg, trib_config_fn fn, void *arg);

/* `text`: that it has no meaning, with the nearest name. */
typedef void (*trib_config_unknown_fn)(void *arg, const char *variable,
                                       const char *value, const char *text);

/** trib_config_unknown - call fn for each TRIB_* variable that is no setting. */
void trib_config_unknown(trib_config_unknown_fn fn, void *arg);

/** trib_config_is_same - is there such a setting, on which ranks must agree? */
bool trib_config_is_same(const char *name, size_t len);

/** trib_config_digest - a digest of the settings on which ranks must agree. */
uint64_t trib_config_digest(const struct trib_config *cfg);

/**
 * trib_config_same_text - "algorithm=auto codec=none …": the settings behind the
 * digest, so that ranks that disagree can be told in what.
 *
 * returns  bytes that the whole text needs, with its zero; at most `bytes` are written
 */
size_t trib_config_same_text(const struct trib_config *cfg, char *text, size_t bytes);

#endif
