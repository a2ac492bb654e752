/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/config_report.h"
#include "base/config_rows.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/ini.h"
#include "base/log.h"
#include "base/text.h"

#define FILE_VARIABLE "TRIB_CONFIG_FILE"
#define KEY_VARIABLE \
    "TRIB_KEY" /* read by base/secret.c; not a setting, as settings are displayed */
/* Maximum length of a variable's name; longer ones are not ours. */
#define VARIABLE_BYTES (2 * TRIB_CONFIG_NAME_BYTES)

extern char **environ;

/* Ignore the environment if the program runs with more privileges than its caller
 * (set-user-ID, file capabilities). */
static bool is_secure(void)
{
    return getauxval(AT_SECURE) != 0;
}

/* Return the environment; NULL if it must be ignored. */
static char **environment(void)
{
    return is_secure() ? NULL : environ;
}

static const char *const row_names[TRIB_CONFIG_ROWS] = {
#define X(name, type, def, min, max, unit, agree, doc) #name,
#include "base/config.def"
#undef X
};

static const char *const origin_names[] = {"default", "file", "environment", "API",
                                           "launcher"};
/* The source being read, for error messages. */
struct source {
    struct trib_config *cfg;
    const struct trib_log *log;
    struct trib_error *err;
    enum trib_config_origin origin;
    const char *file;              /* file name, for TRIB_ORIGIN_FILE */
    bool seen[TRIB_CONFIG_ROWS];   /* already set by this source */
    struct trib_config_faults *faults; /* NULL: stop at the first error */
    trib_status_t status;
};

/* ---- error messages
 * --------------------------------------------------------------- */

static trib_status_t fail_value(const struct source *src,
                                const struct trib_config_row *row, const char *value)
{
    char variable[TRIB_CONFIG_NAME_BYTES];
    char allowed[96];

    trib_config_row_allowed(row, allowed, sizeof(allowed));
    trib_config_row_variable(row, variable);
    switch (src->origin) {
    case TRIB_ORIGIN_ENVIRONMENT:
        return trib_fail(src->err, TRIB_ERR_CONFIG,
                         "%s=%.80s in the environment: must be %s", variable, value,
                         allowed);
    case TRIB_ORIGIN_FILE:
        return trib_fail(src->err, TRIB_ERR_CONFIG, "%s = %.80s in %s: must be %s",
                         row->name, value, src->file, allowed);
    default:
        return trib_fail(src->err, TRIB_ERR_CONFIG, "setting %s=%.80s: must be %s",
                         row->name, value, allowed);
    }
}

static trib_status_t fail_name(const struct source *src, const char *name)
{
    const char *nearest = trib_text_nearest(name, row_names, TRIB_CONFIG_ROWS);
    const char *where = src->origin == TRIB_ORIGIN_FILE ? src->file : "the settings";
    const char *hint = "";

    if (nearest)
        return trib_fail(src->err, TRIB_ERR_CONFIG,
                         "no setting is called \"%.40s\" in %s; did you mean \"%s\"?",
                         name, where, nearest);
    if (src->origin == TRIB_ORIGIN_API)
        hint = "; separate settings by \";\" where a value has a comma";
    return trib_fail(src->err, TRIB_ERR_CONFIG,
                     "no setting is called \"%.40s\" in %s%s", name, where, hint);
}

/* ---- sources --------------------------------------------------------------------- */

/* Record an error and continue if all settings are examined; else fail. */
static trib_status_t judge(struct source *src, char *sentence, trib_status_t status)
{
    if (status == TRIB_OK || !src->faults)
        return status;
    if (!sentence[0])
        snprintf(sentence, TRIB_CONFIG_FAULT_BYTES, "%s", trib_error_text(src->err));
    trib_error_clear(src->err);
    return TRIB_OK;
}

static trib_status_t parse_row(struct source *src, const struct trib_config_row *row,
                               const char *value)
{
    size_t index = (size_t)(row - trib_config_rows);

    if (src->seen[index])
        return trib_fail(src->err, TRIB_ERR_CONFIG, "setting %s is given twice in %s",
                         row->name, src->file ? src->file : "the settings");
    if (!trib_config_row_parse(row, value, src->cfg))
        return fail_value(src, row, value);
    src->seen[index] = true;
    return TRIB_OK;
}

static trib_status_t set_row(struct source *src, const struct trib_config_row *row,
                             const char *value)
{
    size_t index = (size_t)(row - trib_config_rows);
    trib_status_t status = parse_row(src, row, value);

    assert(index < TRIB_CONFIG_ROWS);
    src->cfg->origin[index] = (uint8_t)src->origin;
    if (!src->faults)
        return status;
    src->faults->unread[index] = status != TRIB_OK;
    return judge(src, src->faults->row[index], status);
}

static trib_status_t set_name(struct source *src, const char *name, const char *value)
{
    const struct trib_config_row *row = trib_config_row_find(name);

    if (row)
        return set_row(src, row, value);
    return judge(src, src->faults ? src->faults->other : NULL, fail_name(src, name));
}

static void load_defaults(struct trib_config *cfg)
{
    memset(cfg, 0, sizeof(*cfg));
    for (size_t i = 0; i < TRIB_CONFIG_ROWS; i++) {
        bool valid =
            trib_config_row_parse(&trib_config_rows[i], trib_config_rows[i].def, cfg);
        if (!valid)
            abort(); /* invalid default in config.def; caught by
                      * tests/base/test_config.c */
    }
}

static bool file_line(void *arg, const char *name, const char *value)
{
    struct source *src = arg;

    src->status = set_name(src, name, value);
    return src->status == TRIB_OK;
}

const char *trib_config_environment(const char *variable)
{
    return secure_getenv(variable);
}

bool trib_config_environment_name(size_t at, const char *prefix, char *text,
                                  size_t bytes)
{
    char **entries = environment();

    if (!entries || !entries[at])
        return false;
    const bool ours = strncmp(entries[at], prefix, strlen(prefix)) == 0;
    const int length = ours ? (int)strcspn(entries[at], "=") : 0;
    snprintf(text, bytes, "%.*s", length, entries[at]);
    return true;
}

static trib_status_t load_file(struct source *src)
{
    int line;

    src->file = secure_getenv(FILE_VARIABLE);
    if (!src->file || !src->file[0])
        return TRIB_OK;

    struct trib_error why = {0};
    const trib_status_t status = trib_ini_read(src->file, file_line, src, &why, &line);
    if (status != TRIB_OK)
        return trib_fail(src->err, status, FILE_VARIABLE ": %s", trib_error_text(&why));
    return src->status;
}

static void unknown_text(const char *variable, char *text, size_t bytes)
{
    char known[TRIB_CONFIG_ROWS + 2][TRIB_CONFIG_NAME_BYTES] = {FILE_VARIABLE,
                                                                KEY_VARIABLE};
    const char *names[TRIB_CONFIG_ROWS + 2] = {known[0], known[1]};

    for (size_t i = 0; i < TRIB_CONFIG_ROWS; i++) {
        trib_config_row_variable(&trib_config_rows[i], known[i + 2]);
        names[i + 2] = known[i + 2];
    }
    const char *nearest = trib_text_nearest(variable, names, TRIB_CONFIG_ROWS + 2);
    snprintf(text, bytes, "has no meaning%s%s%s", nearest ? "; did you mean " : "",
             nearest ? nearest : "", nearest ? "?" : "");
}

static const struct trib_config_row *row_of_variable(const char *variable)
{
    char known[TRIB_CONFIG_NAME_BYTES];

    for (size_t i = 0; i < TRIB_CONFIG_ROWS; i++) {
        trib_config_row_variable(&trib_config_rows[i], known);
        if (!strcmp(known, variable))
            return &trib_config_rows[i];
    }
    return NULL;
}

/* The MPI module (bindings/mpi/) reads and validates its own settings. */
static bool of_mpi_module(const char *variable)
{
    return !strcmp(variable, "TRIB_MPI") || !strncmp(variable, "TRIB_MPI_", 9);
}

/* If an environment entry is ours, copy its name to variable and return its value. */
static const char *our_entry(const char *entry, char variable[VARIABLE_BYTES])
{
    const char *equals = strchr(entry, '=');

    if (strncmp(entry, TRIB_CONFIG_PREFIX, strlen(TRIB_CONFIG_PREFIX)) || !equals)
        return NULL;
    snprintf(variable, VARIABLE_BYTES, "%.*s", (int)(equals - entry), entry);
    bool other = !strcmp(variable, FILE_VARIABLE) || !strcmp(variable, KEY_VARIABLE) ||
                 of_mpi_module(variable);
    return other ? NULL : equals + 1;
}

static trib_status_t load_environment(struct source *src)
{
    char variable[VARIABLE_BYTES];

    for (char **entry = environment(); entry && *entry; entry++) {
        const char *value = our_entry(*entry, variable);
        const struct trib_config_row *row = value ? row_of_variable(variable) : NULL;
        trib_status_t status = row ? set_row(src, row, value) : TRIB_OK;
        if (status != TRIB_OK)
            return status;
    }
    return TRIB_OK;
}

/* Without the launcher's variables, each rank would silently become a separate job. */
static void warn_secure(const struct trib_log *log)
{
    static const char *const prefixes[] = {"TRIB_", "PMI", "SLURM_PROCID", "OMPI_"};
    bool any = false;

    for (char **entry = environ; is_secure() && entry && *entry; entry++)
        for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
            any |= strncmp(*entry, prefixes[i], strlen(prefixes[i])) == 0;
    if (any)
        trib_log(log, TRIB_LOG_WARN, "config",
                 "this program has other rights than its caller (set-user-ID), so the "
                 "variables of Tributary and of launchers are ignored");
}

static void warn_variable(void *arg, const char *variable, const char *value,
                          const char *text)
{
    (void)value;
    trib_log(arg, TRIB_LOG_WARN, "config", "environment variable %.60s %s", variable,
             text);
}

/* Set "name=value" of len bytes. */
static trib_status_t load_override(struct source *src, const char *text, size_t len)
{
    char name[TRIB_CONFIG_NAME_BYTES];
    char value[TRIB_CONFIG_TEXT_BYTES];
    const char *equals = memchr(text, '=', len);

    if (!equals)
        return trib_fail(
            src->err, TRIB_ERR_CONFIG,
            "setting \"%.*s\" is not name=value; separate settings by \";\" "
            "where a value has a comma",
            (int)(len < 80 ? len : 80), text);
    size_t name_len = (size_t)(equals - text);
    size_t value_len = len - name_len - 1;
    if (value_len >= sizeof(value))
        return trib_fail(src->err, TRIB_ERR_CONFIG,
                         "setting %.*s is longer than %zu bytes",
                         (int)(name_len < 40 ? name_len : 40), text, sizeof(value) - 1);
    snprintf(name, sizeof(name), "%.*s", (int)name_len, text);
    memcpy(value, equals + 1, value_len);
    value[value_len] = '\0';
    return set_name(src, name, value);
}

static trib_status_t load_overrides(struct source *src, const char *text)
{
    const char *separator = text && strchr(text, ';') ? ";" : ",";

    while (text && *text) {
        text += strspn(text, " ");
        size_t len = strcspn(text, separator);
        if (len) {
            trib_status_t status = load_override(src, text, len);
            if (status != TRIB_OK)
                return status;
        }
        text += len + (text[len] != '\0');
    }
    return TRIB_OK;
}

trib_status_t trib_config_load(struct trib_config *cfg, const char *overrides,
                               const struct trib_log *log, struct trib_error *err)
{
    struct source file = {
        .cfg = cfg, .log = log, .err = err, .origin = TRIB_ORIGIN_FILE};
    struct source env = {
        .cfg = cfg, .log = log, .err = err, .origin = TRIB_ORIGIN_ENVIRONMENT};
    struct source api = {.cfg = cfg, .log = log, .err = err, .origin = TRIB_ORIGIN_API};

    load_defaults(cfg);
    warn_secure(log);
    trib_config_unknown(warn_variable, (void *)log);
    trib_status_t status = load_file(&file);
    if (status == TRIB_OK)
        status = load_environment(&env);
    if (status == TRIB_OK)
        status = load_overrides(&api, overrides);
    if (cfg->deterministic && cfg->chunk < TRIB_DETERMINISTIC_CHUNK)
        cfg->chunk = TRIB_DETERMINISTIC_CHUNK;
    return status;
}

void trib_config_examine(struct trib_config *cfg, const char *overrides,
                         struct trib_config_faults *faults)
{
    struct trib_error err = {0};
    struct source src = {.cfg = cfg, .err = &err, .faults = faults};

    memset(faults, 0, sizeof(*faults));
    load_defaults(cfg);
    src.origin = TRIB_ORIGIN_FILE;
    judge(&src, faults->other, load_file(&src));
    memset(src.seen, 0, sizeof(src.seen));
    src.file = NULL;
    src.origin = TRIB_ORIGIN_ENVIRONMENT;
    judge(&src, faults->other, load_environment(&src));
    memset(src.seen, 0, sizeof(src.seen));
    src.origin = TRIB_ORIGIN_API;
    judge(&src, faults->other, load_overrides(&src, overrides));
}

const char *trib_config_variable(const char *name)
{
    const char *value = secure_getenv(name);

    return value && value[0] ? value : NULL;
}

/* ---- queries
 * ---------------------------------------------------------------------- */

void trib_config_each(const struct trib_config *cfg, trib_config_fn fn, void *arg)
{
    char variable[TRIB_CONFIG_NAME_BYTES];
    char value[TRIB_CONFIG_TEXT_BYTES];
    char range[TRIB_CONFIG_RANGE_BYTES];

    for (size_t i = 0; i < TRIB_CONFIG_ROWS; i++) {
        const struct trib_config_row *row = &trib_config_rows[i];
        assert(cfg->origin[i] < sizeof(origin_names) / sizeof(*origin_names));
        trib_config_row_variable(row, variable);
        trib_config_row_format(row, cfg, value);
        trib_config_row_range(row, range);
        if (i == TRIB_CONFIG_ROW_root) /* hide the key in "host:port#SECRET" */
            value[strcspn(value, "#")] = '\0';
        fn(arg, &(struct trib_config_item){
                    .name = row->name,
                    .variable = variable,
                    .type = trib_config_row_type(row),
                    .value = value,
                    .def = row->def,
                    .range = range,
                    .unit = row->type == TRIB_CONFIG_ENUM ? "" : row->unit,
                    .doc = row->doc,
                    .origin = origin_names[cfg->origin[i]],
                    .same = row->same,
                });
    }
}

void trib_config_unknown(trib_config_unknown_fn fn, void *arg)
{
    char variable[VARIABLE_BYTES];
    char text[32 + TRIB_CONFIG_NAME_BYTES];

    for (char **entry = environment(); entry && *entry; entry++) {
        const char *value = our_entry(*entry, variable);
        if (!value || row_of_variable(variable))
            continue;
        unknown_text(variable, text, sizeof(text));
        fn(arg, variable, value, text);
    }
}

bool trib_config_is_same(const char *name, size_t len)
{
    for (size_t i = 0; i < TRIB_CONFIG_ROWS; i++)
        if (trib_config_rows[i].same && strlen(trib_config_rows[i].name) == len &&
            !memcmp(trib_config_rows[i].name, name, len))
            return true;
    return false;
}

size_t trib_config_same_text(const struct trib_config *cfg, char *text, size_t bytes)
{
    char value[TRIB_CONFIG_TEXT_BYTES];
    size_t len = 0;

    for (size_t i = 0; i < TRIB_CONFIG_ROWS; i++) {
        size_t room = len < bytes ? bytes - len : 0;
        if (!trib_config_rows[i].same)
            continue;
        trib_config_row_format(&trib_config_rows[i], cfg, value);
        len += (size_t)snprintf(room ? text + len : NULL, room, "%s%s=%s",
                                len ? " " : "", trib_config_rows[i].name, value);
    }
    return len + 1;
}

uint64_t trib_config_digest(const struct trib_config *cfg)
{
    char text[TRIB_CONFIG_ROWS * (TRIB_CONFIG_NAME_BYTES + TRIB_CONFIG_TEXT_BYTES)];

    return trib_digest(text, trib_config_same_text(cfg, text, sizeof(text)));
}
