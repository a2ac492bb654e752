/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/daemon/tribd_settings.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/error.h"
#include "base/ini.h"
#include "base/log.h"
#include "base/text.h"

enum type { TEXT, NUMBER };
enum when { LIVE, START };

struct row {
    const char *name;
    enum type type;
    enum when when;
    const char *def;
    unsigned long min, max;
    const char *unit, *doc;
    size_t offset;
};

static const struct row rows[] = {
#define X(name, type, when, def, min, max, unit, doc) \
    {#name, type, when, def, min, max, unit, doc, offsetof(struct settings, name)},
#include "agg/daemon/tribd_settings.def"
#undef X
};

#define PREFIX "TRIBD_"

enum { ROWS = sizeof(rows) / sizeof(*rows) };

struct source {
    struct settings *settings;
    struct trib_error *err;
    const char *file;
    char wrong[240]; /* message about the first bad line, or "" */
    bool seen[ROWS]; /* rows set by the file */
};

static void *field(struct settings *s, const struct row *r)
{
    return (char *)s + r->offset;
}

/* Set a value; false: `why` has the reason, such as "must be a number, 1 to 4096
 * jobs". */
static bool set(struct settings *s, const struct row *r, const char *value, char *why,
                size_t bytes)
{
    if (r->type == TEXT) {
        if (strlen(value) < SETTINGS_TEXT_BYTES) {
            snprintf(field(s, r), SETTINGS_TEXT_BYTES, "%s", value);
            return true;
        }
        snprintf(why, bytes, "has more than %d characters", SETTINGS_TEXT_BYTES - 1);
        return false;
    }
    char *end;
    errno = 0;
    const unsigned long n = strtoul(value, &end, 10);
    if (!isdigit((unsigned char)value[0]) || *end || errno || n < r->min ||
        n > r->max) {
        snprintf(why, bytes, "must be a number, %lu to %lu %s", r->min, r->max,
                 r->unit);
        return false;
    }
    *(uint32_t *)field(s, r) = (uint32_t)n;
    return true;
}

static const struct row *find(const char *name)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static const char *nearest(const char *name)
{
    const char *names[ROWS];

    for (int i = 0; i < ROWS; i++)
        names[i] = rows[i].name;
    return trib_text_nearest(name, names, ROWS);
}

static bool take_line(void *arg, const char *name, const char *value)
{
    struct source *src = arg;
    const struct row *r = find(name);
    char why[120];

    if (!r) {
        const char *near = nearest(name);
        snprintf(src->wrong, sizeof(src->wrong), "unknown setting \"%.60s\"%s%s%s",
                 name, near ? "; did you mean " : "", near ? near : "",
                 near ? "?" : "");
    } else if (src->seen[r - rows]) { /* continuation line of a value */
        snprintf(src->wrong, sizeof(src->wrong), "%s is set twice", name);
    } else if (!set(src->settings, r, value, why, sizeof(why))) {
        snprintf(src->wrong, sizeof(src->wrong), "%s = %.60s: it %s", name, value, why);
    } else {
        src->seen[r - rows] = true;
    }
    return !src->wrong[0];
}

static trib_status_t load_file(struct source *src)
{
    int line;
    const trib_status_t st = trib_ini_read(src->file, take_line, src, src->err, &line);

    if (st == TRIB_OK && line)
        return trib_fail(src->err, TRIB_ERR_CONFIG, "%s line %d: %s", src->file, line,
                         src->wrong);
    return st;
}

static void variable_of(const struct row *r, char variable[64])
{
    size_t at = (size_t)snprintf(variable, 64, PREFIX);

    for (const char *p = r->name; *p; p++)
        variable[at++] = (char)toupper((unsigned char)*p);
    variable[at] = 0;
}

void settings_unknown(void)
{
    char name[64], names[ROWS][64];
    const char *list[ROWS];

    for (int i = 0; i < ROWS; i++) {
        variable_of(&rows[i], names[i]);
        list[i] = names[i];
    }
    for (size_t at = 0; trib_config_environment_name(at, PREFIX, name, sizeof(name));
         at++) {
        bool known = !name[0];
        for (int i = 0; i < ROWS; i++)
            known |= strcmp(name, names[i]) == 0;
        const char *near = known ? NULL : trib_text_nearest(name, list, ROWS);
        if (!known)
            fprintf(stderr, "tribd: warning: unknown environment variable %s%s%s%s\n",
                    name, near ? "; did you mean " : "", near ? near : "",
                    near ? "?" : "");
    }
}

static trib_status_t load_variables(struct source *src)
{
    for (int i = 0; i < ROWS; i++) {
        char variable[64], why[120];
        variable_of(&rows[i], variable);
        const char *value = trib_config_environment(variable);
        if (value && !set(src->settings, &rows[i], value, why, sizeof(why)))
            return trib_fail(src->err, TRIB_ERR_CONFIG, "%s=%.60s: it %s", variable,
                             value, why);
    }
    return TRIB_OK;
}

trib_status_t settings_load(const char *file, struct settings *out,
                            struct trib_error *err)
{
    struct source src = {.settings = out, .err = err, .file = file};
    char why[120];

    memset(out, 0, sizeof(*out));
    for (int i = 0; i < ROWS; i++)
        if (!set(out, &rows[i], rows[i].def, why, sizeof(why)))
            abort(); /* invalid default in tribd_settings.def */
    if (file) {
        const trib_status_t st = load_file(&src);
        if (st != TRIB_OK)
            return st;
    }
    return load_variables(&src);
}

static size_t bytes_of(const struct row *r)
{
    return r->type == TEXT ? SETTINGS_TEXT_BYTES : sizeof(uint32_t);
}

void settings_renew(struct settings *s, const struct settings *from, char *kept,
                    size_t bytes)
{
    kept[0] = 0;
    for (int i = 0; i < ROWS; i++) {
        void *to = field(s, &rows[i]);
        const void *at = (const char *)from + rows[i].offset;
        const bool same = rows[i].type == TEXT
                              ? strcmp(to, at) == 0
                              : *(uint32_t *)to == *(const uint32_t *)at;
        if (rows[i].when == LIVE)
            memcpy(to, at, bytes_of(&rows[i]));
        else if (!same)
            trib_text_append(kept, bytes, "%s%s", kept[0] ? ", " : "", rows[i].name);
    }
}

bool settings_level(const struct settings *s, trib_log_level_t *out)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};

    for (int i = 0; i < 4; i++) {
        if (strcmp(names[i], s->log) != 0)
            continue;
        *out = (trib_log_level_t)i;
        return true;
    }
    return false;
}

void settings_warn(const struct settings *s, const struct trib_log *log)
{
    const bool no_key = strcmp(s->auth, "none") == 0 || strcmp(s->auth, "munge") == 0;
    const bool no_munge = strcmp(s->auth, "none") == 0 || strcmp(s->auth, "key") == 0;
    const bool none_kept = !s->snapshots[0];
    const struct {
        const char *name;
        bool has_no_effect;
        const char *why;
    } checks[] = {
        {"key", s->key[0] && no_key, "with this auth, no job authenticates by key"},
        {"users", s->users[0] && no_munge,
         "only jobs that authenticate by MUNGE have a user"},
        {"disk", s->disk && none_kept, "snapshots is empty, so no snapshots are kept"},
        {"disk_files", s->disk_files && none_kept,
         "snapshots is empty, so no snapshots are kept"},
        {"user_disk", s->user_disk && none_kept,
         "snapshots is empty, so no snapshots are kept"},
        {"user_disk_files", s->user_disk_files && none_kept,
         "snapshots is empty, so no snapshots are kept"},
        {"log_time",
         strcmp(s->log_time, "no") == 0 && strcmp(s->log_format, "json") == 0,
         "each JSON object has the time"},
    };

    for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++)
        if (checks[i].has_no_effect)
            trib_log(log, TRIB_LOG_WARN, "tribd", "%s has no effect: %s",
                     checks[i].name, checks[i].why);
}

void settings_help(void)
{
    for (int i = 0; i < ROWS; i++)
        printf("  %-11s %s [%s%s%s]%s\n", rows[i].name, rows[i].doc, rows[i].def,
               rows[i].unit[0] ? " " : "", rows[i].unit,
               rows[i].when == LIVE ? " *" : "");
}

void settings_print(const struct settings *s)
{
    for (int i = 0; i < ROWS; i++) {
        const void *at = (const char *)s + rows[i].offset;
        if (rows[i].type == TEXT)
            printf("%s = %s\n", rows[i].name, (const char *)at);
        else
            printf("%s = %u\n", rows[i].name, *(const uint32_t *)at);
    }
}
