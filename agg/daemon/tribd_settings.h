/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings of tribd: from its file, overridden by TRIBD_* variables. Read at the start
 * and at SIGHUP. */
#ifndef AGG_DAEMON_TRIBD_SETTINGS_H
#define AGG_DAEMON_TRIBD_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/comm.h>

struct trib_error;
struct trib_log;

#define SETTINGS_TEXT_BYTES 512

#define SETTINGS_FIELD_TEXT(name) char name[SETTINGS_TEXT_BYTES];
#define SETTINGS_FIELD_NUMBER(name) uint32_t name;

struct settings {
#define X(name, type, when, def, min, max, unit, doc) SETTINGS_FIELD_##type(name)
#include "agg/daemon/tribd_settings.def"
#undef X
};

/**
 * settings_load - load defaults, then the file, then the environment.
 *
 * file     NULL: none
 * errors   TRIB_ERR_CONFIG: the invalid line or variable, and why
 */
trib_status_t settings_load(const char *file, struct settings *out,
                            struct trib_error *err);

/**
 * settings_renew - copy the settings that may change at run time.
 *
 * kept  receives the names of other settings that differ, such as "slots, jobs", or ""
 */
void settings_renew(struct settings *s, const struct settings *from, char *kept,
                    size_t bytes);

/** settings_level - return the level named by `log`; false: no such level. */
bool settings_level(const struct settings *s, trib_log_level_t *out);

/** settings_unknown - warn on standard error about unknown TRIBD_* variables. */
void settings_unknown(void);

/** settings_warn - log a warning for each setting without effect because of another
 * setting. */
void settings_warn(const struct settings *s, const struct trib_log *log);

/** settings_help - print one line per setting to standard output. */
void settings_help(void);

/** settings_print - print name = value, in the format of the file, to standard
 * output. */
void settings_print(const struct settings *s);

#endif
