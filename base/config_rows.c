/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/config_rows.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { LOCAL, SAME };

const struct trib_config_row trib_config_rows[TRIB_CONFIG_ROWS] = {
#define X(name, type, def, min, max, unit, agree, doc) \
    {#name, TRIB_CONFIG_##type, def, min, max, unit, agree == SAME, doc, \
     offsetof(struct trib_config, name)},
#include "base/config.def"
#undef X
};

_Static_assert(TRIB_CONFIG_ROWS <= 40, "the budget of settings is 40");

const char *trib_config_row_type(const struct trib_config_row *row)
{
    static const char *const names[] = {"bool", "integer", "integer",
                                        "size", "text", "choice"};

    return names[row->type];
}

const struct trib_config_row *trib_config_row_find(const char *name)
{
    for (size_t i = 0; i < TRIB_CONFIG_ROWS; i++) {
        if (!strcmp(trib_config_rows[i].name, name))
            return &trib_config_rows[i];
    }
    return NULL;
}

void trib_config_row_variable(const struct trib_config_row *row,
                              char variable[TRIB_CONFIG_NAME_BYTES])
{
    size_t len = (size_t)snprintf(variable, TRIB_CONFIG_NAME_BYTES,
                                  TRIB_CONFIG_PREFIX "%s", row->name);

    for (size_t i = 0; i < len && i < TRIB_CONFIG_NAME_BYTES; i++)
        variable[i] = (char)toupper((unsigned char)variable[i]);
}

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

static bool parse_int(const struct trib_config_row *row, const char *value, int *out)
{
    char *end;

    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (end == value || *end || errno)
        return false;
    if ((number < row->min || number > row->max) &&
        !(row->type == TRIB_CONFIG_LIMIT && number == 0))
        return false;
    *out = (int)number;
    return true;
}

static bool parse_size(const struct trib_config_row *row, const char *value,
                       size_t *out)
{
    size_t bytes;

    if (!trib_size_parse(value, &bytes) || bytes < (size_t)row->min ||
        bytes > (size_t)row->max)
        return false;
    *out = bytes;
    return true;
}

/* Iterate over "a|b|c": set *word and its length; return the rest or NULL. */
static const char *next_choice(const char *choices, size_t *len)
{
    *len = strcspn(choices, "|");
    return choices[*len] ? choices + *len + 1 : NULL;
}

static bool parse_choice(const struct trib_config_row *row, const char *value, int *out)
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

bool trib_config_row_parse(const struct trib_config_row *row, const char *value,
                        struct trib_config *cfg)
{
    void *field = (char *)cfg + row->offset;

    switch (row->type) {
    case TRIB_CONFIG_BOOL:
        return parse_bool(value, field);
    case TRIB_CONFIG_INT:
    case TRIB_CONFIG_LIMIT:
        return parse_int(row, value, field);
    case TRIB_CONFIG_SIZE:
        return parse_size(row, value, field);
    case TRIB_CONFIG_TEXT:
        return parse_text(value, field);
    case TRIB_CONFIG_ENUM:
        return parse_choice(row, value, field);
    }
    return false;
}

void trib_config_row_format(const struct trib_config_row *row,
                            const struct trib_config *cfg,
                            char text[TRIB_CONFIG_TEXT_BYTES])
{
    const void *field = (const char *)cfg + row->offset;
    const char *word = row->unit;
    size_t len;

    switch (row->type) {
    case TRIB_CONFIG_BOOL:
        snprintf(text, TRIB_CONFIG_TEXT_BYTES, "%d", *(const bool *)field);
        break;
    case TRIB_CONFIG_INT:
    case TRIB_CONFIG_LIMIT:
        snprintf(text, TRIB_CONFIG_TEXT_BYTES, "%d", *(const int *)field);
        break;
    case TRIB_CONFIG_SIZE:
        trib_size_format(*(const size_t *)field, text);
        break;
    case TRIB_CONFIG_TEXT:
        snprintf(text, TRIB_CONFIG_TEXT_BYTES, "%s", (const char *)field);
        break;
    case TRIB_CONFIG_ENUM:
        for (int i = *(const int *)field; i > 0; i--)
            word = next_choice(word, &len);
        assert(word); /* a field always holds one of its choices */
        next_choice(word, &len);
        snprintf(text, TRIB_CONFIG_TEXT_BYTES, "%.*s", (int)len, word);
        break;
    }
}

void trib_config_row_range(const struct trib_config_row *row,
                           char text[TRIB_CONFIG_RANGE_BYTES])
{
    char min[24];
    char max[24];

    switch (row->type) {
    case TRIB_CONFIG_BOOL:
        snprintf(text, TRIB_CONFIG_RANGE_BYTES, "0|1");
        break;
    case TRIB_CONFIG_INT:
        snprintf(text, TRIB_CONFIG_RANGE_BYTES, "%lld..%lld", row->min, row->max);
        break;
    case TRIB_CONFIG_LIMIT:
        snprintf(text, TRIB_CONFIG_RANGE_BYTES, "0,%lld..%lld", row->min, row->max);
        break;
    case TRIB_CONFIG_SIZE:
        snprintf(text, TRIB_CONFIG_RANGE_BYTES, "%s..%s",
                 trib_size_format((size_t)row->min, min),
                 trib_size_format((size_t)row->max, max));
        break;
    case TRIB_CONFIG_TEXT:
        text[0] = '\0';
        break;
    case TRIB_CONFIG_ENUM:
        snprintf(text, TRIB_CONFIG_RANGE_BYTES, "%s", row->unit);
        break;
    }
}

void trib_config_row_allowed(const struct trib_config_row *row, char *text,
                             size_t bytes)
{
    char range[TRIB_CONFIG_RANGE_BYTES];

    trib_config_row_range(row, range);
    switch (row->type) {
    case TRIB_CONFIG_TEXT:
        snprintf(text, bytes, "a text of at most %d bytes", TRIB_CONFIG_TEXT_BYTES - 1);
        break;
    case TRIB_CONFIG_INT:
    case TRIB_CONFIG_SIZE:
        snprintf(text, bytes, "a number in %s%s%s", range, row->unit[0] ? " " : "",
                 row->unit);
        break;
    case TRIB_CONFIG_LIMIT:
        snprintf(text, bytes, "0, for no limit, or a number in %lld..%lld %s", row->min,
                 row->max, row->unit);
        break;
    case TRIB_CONFIG_BOOL:
    case TRIB_CONFIG_ENUM:
        snprintf(text, bytes, "one of %s", range);
        break;
    }
}
