/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints base/config.def as a table: config-table md (docs/config.md) or man
 * (the part of tributary.7 between its markers). Run by scripts/generate-docs.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum type { BOOL, INT, SIZE, TEXT, ENUM };
enum agree { LOCAL, SAME };

struct row {
    const char *name;
    enum type type;
    const char *def;
    long long min;
    long long max;
    const char *unit;
    enum agree agree;
    const char *doc;
};

static const struct row rows[] = {
#define X(name, type, def, min, max, unit, agree, doc) \
    {#name, type, def, min, max, unit, agree, doc},
#include "base/config.def"
#undef X
};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static void print_upper(const char *text)
{
    for (; *text; text++)
        putchar(toupper((unsigned char)*text));
}

/* Texts of the table hold "|", which ends a cell, and "-", which is a hyphen to
 * roff. */
static void print_escaped(const char *text, char special, const char *instead)
{
    for (; *text; text++) {
        if (*text == special)
            fputs(instead, stdout);
        else
            putchar(*text);
    }
}

static void allowed(const struct row *row, char *text, size_t bytes)
{
    char min[24];
    char max[24];

    switch (row->type) {
    case BOOL:
        snprintf(text, bytes, "0 or 1");
        break;
    case INT:
        snprintf(text, bytes, "%lld to %lld%s%s", row->min, row->max,
                 row->unit[0] ? " " : "", row->unit);
        break;
    case SIZE:
        snprintf(text, bytes, "%s to %s%s%s", trib_size_format((size_t)row->min, min),
                 trib_size_format((size_t)row->max, max), row->unit[0] ? " " : "",
                 row->unit);
        break;
    case TEXT:
        snprintf(text, bytes, "text");
        break;
    case ENUM:
        snprintf(text, bytes, "%s", row->unit);
        break;
    }
}

static void print_md(const struct row *row)
{
    char range[96];

    allowed(row, range, sizeof(range));
    fputs("| `TRIB_", stdout);
    print_upper(row->name);
    printf("` | %s%s%s | ", row->def[0] ? "`" : "", row->def[0] ? row->def : "none",
           row->def[0] ? "`" : "");
    print_escaped(range, '|', ", ");
    printf(" | %s | %s |\n", row->agree == SAME ? "yes" : "", row->doc);
}

static void print_man(const struct row *row)
{
    char range[96];

    allowed(row, range, sizeof(range));
    fputs(".TP\n.B TRIB_", stdout);
    print_upper(row->name);
    putchar('\n');
    print_escaped(row->doc, '-', "\\-");
    fputs(".\n", stdout);
    if (row->type != TEXT) {
        fputs("Allowed: ", stdout);
        print_escaped(range, '-', "\\-");
        fputs(".\n", stdout);
    }
    if (row->def[0]) {
        fputs("Default: ", stdout);
        print_escaped(row->def, '-', "\\-");
        fputs(".\n", stdout);
    }
    if (row->agree == SAME)
        fputs("The same on all ranks.\n", stdout);
}

int main(int argc, char **argv)
{
    bool man = argc > 1 && !strcmp(argv[1], "man");

    for (size_t i = 0; i < N_ROWS; i++) {
        if (man)
            print_man(&rows[i]);
        else
            print_md(&rows[i]);
    }
    return fflush(stdout) != 0;
}
