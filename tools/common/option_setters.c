/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/options.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool tool_set_text(const struct tool_given *given, const char *value)
{
    *(const char **)tool_target(given) = value;
    return true;
}

bool tool_set_switch(const struct tool_given *given, const char *value)
{
    (void)value;
    *(bool *)tool_target(given) = true;
    return true;
}

/* Report the range that the row accepts; kind: "a whole number". */
static bool refuse_number(const struct tool_given *given, const char *value,
                          const char *kind)
{
    const struct tool_option *row = given->option;

    if (row->most > 0)
        return tool_refuse(given, value, "is not %s from %.16g to %.16g", kind,
                           row->least, row->most);
    return tool_refuse(given, value, "is not %s of at least %.16g", kind, row->least);
}

static bool within(const struct tool_option *row, double number)
{
    return number >= row->least && (row->most <= 0 || number <= row->most);
}

static bool read_whole(const struct tool_given *given, const char *value, long most,
                       long *out)
{
    char *end;

    errno = 0;
    *out = strtol(value, &end, 10);
    if (errno == 0 && end != value && *end == '\0' && *out <= most &&
        within(given->option, (double)*out))
        return true;
    return refuse_number(given, value, "a whole number");
}

bool tool_set_long(const struct tool_given *given, const char *value)
{
    long number;

    if (!read_whole(given, value, LONG_MAX, &number))
        return false;
    *(long *)tool_target(given) = number;
    return true;
}

bool tool_set_int(const struct tool_given *given, const char *value)
{
    long number;

    if (!read_whole(given, value, INT_MAX, &number))
        return false;
    *(int *)tool_target(given) = (int)number;
    return true;
}

bool tool_set_size(const struct tool_given *given, const char *value)
{
    long number;

    if (!read_whole(given, value, LONG_MAX, &number))
        return false;
    *(size_t *)tool_target(given) = (size_t)number;
    return true;
}

bool tool_set_number(const struct tool_given *given, const char *value)
{
    char *end;
    const double number = strtod(value, &end);

    if (end == value || *end != '\0' || !isfinite(number) ||
        !within(given->option, number))
        return refuse_number(given, value, "a number");
    *(double *)tool_target(given) = number;
    return true;
}

/* Return the index of value among the row's words; -1 after an error message. */
static int choose(const struct tool_given *given, const char *value)
{
    struct tool_names names = {.n = 0};
    char copy[256], list[sizeof(copy) + 4 * TOOL_NAMES_MAX];
    size_t length, used = 0;

    for (const char *at = given->option->words; (length = tool_word(&at));
         at += length) {
        if (strlen(value) == length && memcmp(value, at, length) == 0)
            return (int)names.n;
        names.item[names.n++] = copy + used;
        used += (size_t)snprintf(copy + used, sizeof(copy) - used, "%.*s", (int)length,
                                 at) +
                1;
        assert(used <= sizeof(copy));
    }
    used = 0;
    for (size_t i = 0; i < names.n; i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
                                 i == 0            ? ""
                                 : i + 1 < names.n ? ", "
                                                   : " or ",
                                 names.item[i]);
    const char *nearest = tool_nearest(value, names.item, names.n);
    tool_refuse(given, value, "must be %s%s%s%s", list,
                nearest ? " (did you mean " : "", nearest ? nearest : "",
                nearest ? "?)" : "");
    return -1;
}

bool tool_set_choice(const struct tool_given *given, const char *value)
{
    const int choice = choose(given, value);

    if (choice >= 0)
        *(int *)tool_target(given) = choice;
    return choice >= 0;
}

bool tool_set_second(const struct tool_given *given, const char *value)
{
    const int choice = choose(given, value);

    *(bool *)tool_target(given) = choice == 1;
    return choice >= 0;
}
