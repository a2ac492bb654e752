/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings of tribd: its file, then TRIBD_* variables. They are read at the start
 * and at SIGHUP. */
#ifndef TRIBD_TRIBD_SETTINGS_H
#define TRIBD_TRIBD_SETTINGS_H

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
#include "tribd/tribd_settings.def"
#undef X
};

/**
 * settings_load - defaults, the file, the environment.
 *
 * file     NULL: none
 * errors   TRIB_ERR_CONFIG: which line or variable is wrong, and how
 */
trib_status_t settings_load(const char *file, struct settings *out,
                            struct trib_error *err);

/**
 * settings_renew - take from `from` what may change while tribd runs.
 *
 * kept  receives the names of the others that differ: "slots, jobs", or nothing
 */
void settings_renew(struct settings *s, const struct settings *from, char *kept,
                    size_t bytes);

/** settings_level - the level named by `log`; false: there is no such level. */
bool settings_level(const struct settings *s, trib_log_level_t *out);

/** settings_unknown - say on standard error which TRIBD_* variables are none of
 * these. */
void settings_unknown(void);

/** settings_warn - log a warning for each setting that has no effect because of the
 * value of another one. */
void settings_warn(const struct settings *s, const struct trib_log *log);

/** settings_help - a line for each, to standard output. */
void settings_help(void);

/** settings_print - name = value, as its file has them, to standard output. */
void settings_print(const struct settings *s);

#endif
