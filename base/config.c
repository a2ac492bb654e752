/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/ini.h"
#include "base/log.h"
#include "base/text.h"

#define PREFIX "TRIB_"
#define FILE_VARIABLE "TRIB_CONFIG_FILE"
#define KEY_VARIABLE \
    "TRIB_KEY" /* base/secret.c reads it: no setting, for settings are shown */
#define NAME_BYTES 48  /* of a setting or variable name, with its zero */
#define VARIABLE_BYTES (2 * NAME_BYTES) /* of any variable; a longer one is none of
                                         * ours */
#define RANGE_BYTES 64 /* of "4K..16M" or the choices of an ENUM */

extern char **environ;

enum row_type { BOOL, INT, SIZE, TEXT, ENUM };
enum { LOCAL, SAME };

struct row {
    const char *name;
    enum row_type type;
    const char *def;
    long long min;
    long long max;
    const char *unit;
    bool same;
    const char *doc;
    size_t offset; /* of the value in struct trib_config */
};

static const struct row rows[TRIB_CONFIG_ROWS] = {
#define X(name, type, def, min, max, unit, agree, doc) \
    {#name, type, def, min, max, unit, agree == SAME, doc, \
     offsetof(struct trib_config, name)},
#include "base/config.def"
#undef X
};

static const char *const row_names[TRIB_CONFIG_ROWS] = {
#define X(name, type, def, min, max, unit, agree, doc) #name,
#include "base/config.def"
#undef X
};

_Static_assert(TRIB_CONFIG_ROWS <= 40, "the budget of settings is 40");

static const char *const origin_names[] = {"default", "file", "environment", "API",
                                           "launcher"};
static const char *const type_names[] = {"bool", "integer", "size", "text", "choice"};

/* What is being read, for sentences about it. */
struct source {
    struct trib_config *cfg;
    const struct trib_log *log;
    struct trib_error *err;
    enum trib_config_origin origin;
    const char *file;              /* of TRIB_ORIGIN_FILE */
    bool seen[TRIB_CONFIG_ROWS];   /* set by this source already */
    struct trib_config_faults *faults; /* NULL: the first fault ends it */
    trib_status_t status;
};

static const struct row *row_find(const char *name)
{
    for (size_t i = 0; i < TRIB_CONFIG_ROWS; i++) {
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    }
    return NULL;
}

static void variable_name(const struct row *row, char variable[NAME_BYTES])
{
    size_t len = (size_t)snprintf(variable, NAME_BYTES, PREFIX "%s", row->name);

    for (size_t i = 0; i < len && i < NAME_BYTES; i++)
        variable[i] = (char)toupper((unsigned char)variable[i]);
}

/* ---- values: text to field and back --------------------------------------------- */

static bool parse_bool(const char *value, bool *out)
{
    static const char *const words[2][4] = {{"0", "no", "off", "false"},
                                            {"1", "yes", "on", "true"}};

    for (int truth = 0; truth < 2; truth++) {
        for (size_t i = 0; i < 4; i++) {
            if (!strcmp(value, words[truth][i])) {
                *out = truth;
                return true;
            }
        }
    }
    return false;
}

static bool parse_int(const struct row *row, const char *value, int *out)
{
    char *end;

    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (end == value || *end || errno || number < row->min || number > row->max)
        return false;
    *out = (int)number;
    return true;
}

static bool parse_size(const struct row *row, const char *value, size_t *out)
{
    size_t bytes;

    if (!trib_size_parse(value, &bytes) || bytes < (size_t)row->min ||
        bytes > (size_t)row->max)
        return false;
    *out = bytes;
    return true;
}

/* Calls walk over "a|b|c": sets *word and its length, returns what follows or NULL. */
static const char *next_choice(const char *choices, size_t *len)
{
    *len = strcspn(choices, "|");
    return choices[*len] ? choices + *len + 1 : NULL;
}

static bool parse_choice(const struct row *row, const char *value, int *out)
{
    size_t len;
    int index = 0;

    for (const char *word = row->unit; word; index++) {
        const char *next = next_choice(word, &len);
        if (strlen(value) == len && !strncmp(value, word, len)) {
            *out = index;
            return true;
        }
        word = next;
    }
    return false;
}

static bool parse_text(const char *value, char *out)
{
    size_t len = strlen(value);

    if (len >= TRIB_CONFIG_TEXT_BYTES)
        return false;
    memcpy(out, value, len + 1);
    return true;
}

static bool parse_value(const struct row *row, const char *value,
                        struct trib_config *cfg)
{
    void *field = (char *)cfg + row->offset;

    switch (row->type) {
    case BOOL:
        return parse_bool(value, field);
    case INT:
        return parse_int(row, value, field);
    case SIZE:
        return parse_size(row, value, field);
    case TEXT:
        return parse_text(value, field);
    case ENUM:
        return parse_choice(row, value, field);
    }
    return false;
}

static void format_value(const struct row *row, const struct trib_config *cfg,
                         char text[TRIB_CONFIG_TEXT_BYTES])
{
    const void *field = (const char *)cfg + row->offset;
    const char *word = row->unit;
    size_t len;

    switch (row->type) {
    case BOOL:
        snprintf(text, TRIB_CONFIG_TEXT_BYTES, "%d", *(const bool *)field);
        break;
    case INT:
        snprintf(text, TRIB_CONFIG_TEXT_BYTES, "%d", *(const int *)field);
        break;
    case SIZE:
        trib_size_format(*(const size_t *)field, text);
        break;
    case TEXT:
        snprintf(text, TRIB_CONFIG_TEXT_BYTES, "%s", (const char *)field);
        break;
    case ENUM:
        for (int i = *(const int *)field; i > 0; i--)
            word = next_choice(word, &len);
        next_choice(word, &len);
        snprintf(text, TRIB_CONFIG_TEXT_BYTES, "%.*s", (int)len, word);
        break;
    }
}

static void format_range(const struct row *row, char text[RANGE_BYTES])
{
    char min[24];
    char max[24];

    switch (row->type) {
    case BOOL:
        snprintf(text, RANGE_BYTES, "0|1");
        break;
    case INT:
        snprintf(text, RANGE_BYTES, "%lld..%lld", row->min, row->max);
        break;
    case SIZE:
        snprintf(text, RANGE_BYTES, "%s..%s", trib_size_format((size_t)row->min, min),
                 trib_size_format((size_t)row->max, max));
        break;
    case TEXT:
        text[0] = '\0';
        break;
    case ENUM:
        snprintf(text, RANGE_BYTES, "%s", row->unit);
        break;
    }
}

static const char *row_unit(const struct row *row)
{
    return row->type == ENUM ? "" : row->unit;
}

/* ---- sentences ------------------------------------------------------------------- */

static void allowed_text(const struct row *row, char *text, size_t bytes)
{
    char range[RANGE_BYTES];

    format_range(row, range);
    switch (row->type) {
    case TEXT:
        snprintf(text, bytes, "a text of at most %d bytes", TRIB_CONFIG_TEXT_BYTES - 1);
        break;
    case INT:
    case SIZE:
        snprintf(text, bytes, "a number in %s%s%s", range, row->unit[0] ? " " : "",
                 row->unit);
        break;
    case BOOL:
    case ENUM:
        snprintf(text, bytes, "one of %s", range);
        break;
    }
}

static trib_status_t fail_value(const struct source *src, const struct row *row,
                                const char *value)
{
    char variable[NAME_BYTES];
    char allowed[96];

    allowed_text(row, allowed, sizeof(allowed));
    variable_name(row, variable);
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

/* Where all settings are examined, a fault is noted and ends nothing. */
static trib_status_t judge(struct source *src, char *sentence, trib_status_t status)
{
    if (status == TRIB_OK || !src->faults)
        return status;
    if (!sentence[0])
        snprintf(sentence, TRIB_CONFIG_FAULT_BYTES, "%s", trib_error_text(src->err));
    trib_error_clear(src->err);
    return TRIB_OK;
}

static trib_status_t parse_row(struct source *src, const struct row *row,
                               const char *value)
{
    size_t index = (size_t)(row - rows);

    if (src->seen[index])
        return trib_fail(src->err, TRIB_ERR_CONFIG, "setting %s is given twice in %s",
                         row->name, src->file ? src->file : "the settings");
    if (!parse_value(row, value, src->cfg))
        return fail_value(src, row, value);
    src->seen[index] = true;
    return TRIB_OK;
}

static trib_status_t set_row(struct source *src, const struct row *row,
                             const char *value)
{
    size_t index = (size_t)(row - rows);
    trib_status_t status = parse_row(src, row, value);

    src->cfg->origin[index] = (uint8_t)src->origin;
    if (!src->faults)
        return status;
    src->faults->unread[index] = status != TRIB_OK;
    return judge(src, src->faults->row[index], status);
}

static trib_status_t set_name(struct source *src, const char *name, const char *value)
{
    const struct row *row = row_find(name);

    if (row)
        return set_row(src, row, value);
    return judge(src, src->faults ? src->faults->other : NULL, fail_name(src, name));
}

static void load_defaults(struct trib_config *cfg)
{
    memset(cfg, 0, sizeof(*cfg));
    for (size_t i = 0; i < TRIB_CONFIG_ROWS; i++) {
        bool valid = parse_value(&rows[i], rows[i].def, cfg);
        if (!valid)
            abort(); /* config.def contradicts itself; tests/base/test_config.c sees
                      * it */
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
    return getenv(variable);
}

bool trib_config_environment_name(size_t at, const char *prefix, char *text,
                                  size_t bytes)
{
    if (!environ || !environ[at])
        return false;
    const bool ours = strncmp(environ[at], prefix, strlen(prefix)) == 0;
    const int length = ours ? (int)strcspn(environ[at], "=") : 0;
    snprintf(text, bytes, "%.*s", length, environ[at]);
    return true;
}

static trib_status_t load_file(struct source *src)
{
    int line;

    src->file = getenv(FILE_VARIABLE);
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
    char known[TRIB_CONFIG_ROWS + 2][NAME_BYTES] = {FILE_VARIABLE, KEY_VARIABLE};
    const char *names[TRIB_CONFIG_ROWS + 2] = {known[0], known[1]};

    for (size_t i = 0; i < TRIB_CONFIG_ROWS; i++) {
        variable_name(&rows[i], known[i + 2]);
        names[i + 2] = known[i + 2];
    }
    const char *nearest = trib_text_nearest(variable, names, TRIB_CONFIG_ROWS + 2);
    snprintf(text, bytes, "has no meaning%s%s%s", nearest ? "; did you mean " : "",
             nearest ? nearest : "", nearest ? "?" : "");
}

static const struct row *row_of_variable(const char *variable)
{
    char known[NAME_BYTES];

    for (size_t i = 0; i < TRIB_CONFIG_ROWS; i++) {
        variable_name(&rows[i], known);
        if (!strcmp(known, variable))
            return &rows[i];
    }
    return NULL;
}

/* Is an entry of the environment ours? Then its name is in variable; returns its
 * value. */
static const char *our_entry(const char *entry, char variable[VARIABLE_BYTES])
{
    const char *equals = strchr(entry, '=');

    if (strncmp(entry, PREFIX, strlen(PREFIX)) || !equals)
        return NULL;
    snprintf(variable, VARIABLE_BYTES, "%.*s", (int)(equals - entry), entry);
    bool other = !strcmp(variable, FILE_VARIABLE) || !strcmp(variable, KEY_VARIABLE);
    return other ? NULL : equals + 1;
}

static trib_status_t load_environment(struct source *src)
{
    char variable[VARIABLE_BYTES];

    for (char **entry = environ; entry && *entry; entry++) {
        const char *value = our_entry(*entry, variable);
        const struct row *row = value ? row_of_variable(variable) : NULL;
        trib_status_t status = row ? set_row(src, row, value) : TRIB_OK;
        if (status != TRIB_OK)
            return status;
    }
    return TRIB_OK;
}

static void warn_variable(void *arg, const char *variable, const char *value,
                          const char *text)
{
    (void)value;
    trib_log(arg, TRIB_LOG_WARN, "config", "environment variable %.60s %s", variable,
             text);
}

/* Sets "name=value" of len bytes. */
static trib_status_t load_override(struct source *src, const char *text, size_t len)
{
    char name[NAME_BYTES];
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
    trib_config_unknown(warn_variable, (void *)log);
    trib_status_t status = load_file(&file);
    if (status == TRIB_OK)
        status = load_environment(&env);
    if (status == TRIB_OK)
        status = load_overrides(&api, overrides);
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

trib_status_t trib_config_set(struct trib_config *cfg, const char *name,
                              const char *value, struct trib_error *err)
{
    struct source api = {.cfg = cfg, .err = err, .origin = TRIB_ORIGIN_API};

    return set_name(&api, name, value);
}

const char *trib_config_variable(const char *name)
{
    const char *value = getenv(name);

    return value && value[0] ? value : NULL;
}

/* ---- asking ---------------------------------------------------------------------- */

void trib_config_each(const struct trib_config *cfg, trib_config_fn fn, void *arg)
{
    char variable[NAME_BYTES];
    char value[TRIB_CONFIG_TEXT_BYTES];
    char range[RANGE_BYTES];

    for (size_t i = 0; i < TRIB_CONFIG_ROWS; i++) {
        const struct row *row = &rows[i];
        variable_name(row, variable);
        format_value(row, cfg, value);
        format_range(row, range);
        if (i == TRIB_CONFIG_ROW_root) /* "host:port#SECRET" is not for people */
            value[strcspn(value, "#")] = '\0';
        fn(arg, &(struct trib_config_item){
                    .name = row->name,
                    .variable = variable,
                    .type = type_names[row->type],
                    .value = value,
                    .def = row->def,
                    .range = range,
                    .unit = row_unit(row),
                    .doc = row->doc,
                    .origin = origin_names[cfg->origin[i]],
                    .same = row->same,
                });
    }
}

void trib_config_unknown(trib_config_unknown_fn fn, void *arg)
{
    char variable[VARIABLE_BYTES];
    char text[32 + NAME_BYTES];

    for (char **entry = environ; entry && *entry; entry++) {
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
        if (rows[i].same && strlen(rows[i].name) == len &&
            !memcmp(rows[i].name, name, len))
            return true;
    return false;
}

size_t trib_config_same_text(const struct trib_config *cfg, char *text, size_t bytes)
{
    char value[TRIB_CONFIG_TEXT_BYTES];
    size_t len = 0;

    for (size_t i = 0; i < TRIB_CONFIG_ROWS; i++) {
        size_t room = len < bytes ? bytes - len : 0;
        if (!rows[i].same)
            continue;
        format_value(&rows[i], cfg, value);
        len += (size_t)snprintf(room ? text + len : NULL, room, "%s%s=%s",
                                len ? " " : "", rows[i].name, value);
    }
    return len + 1;
}

uint64_t trib_config_digest(const struct trib_config *cfg)
{
    char text[TRIB_CONFIG_ROWS * (NAME_BYTES + TRIB_CONFIG_TEXT_BYTES)];

    return trib_digest(text, trib_config_same_text(cfg, text, sizeof(text)));
}
