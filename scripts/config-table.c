/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Print tables of the documentation from the sources: config-table md
 * (docs/config.md), man (the part of tributary.7 between its markers) or conf (the part
 * of tributary.conf.5) prints base/config.def, config-table tribd prints
 * agg/daemon/tribd_settings.def (tribd.conf.5), config-table feedback prints
 * compress/feedback_rules.def (docs/feedback.md). Run by scripts/generate-docs.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum type { BOOL, INT, LIMIT, SIZE, TEXT, ENUM };
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

/* Escape "|", which ends a cell in Markdown, and "-", which is a hyphen in
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
    case LIMIT:
        snprintf(text, bytes, "%s%lld to %lld%s%s", row->type == LIMIT ? "0, or " : "",
                 row->min, row->max, row->unit[0] ? " " : "", row->unit);
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

/* Print a setting in roff, named as in a file or as an environment variable. */
static void print_man(const struct row *row, bool in_file)
{
    char range[96];

    allowed(row, range, sizeof(range));
    if (in_file) {
        printf(".TP\n.B %s", row->name);
    } else {
        fputs(".TP\n.B TRIB_", stdout);
        print_upper(row->name);
    }
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

struct tribd_row {
    const char *name;
    bool number, live;
    const char *def;
    long long min, max;
    const char *unit, *doc;
};

static const struct tribd_row tribd_rows[] = {
#define NUMBER true
#define TEXT false
#define LIVE true
#define START false
#define X(name, type, when, def, min, max, unit, doc) \
    {#name, type, when, def, min, max, unit, doc},
#include "agg/daemon/tribd_settings.def"
#undef X
#undef NUMBER
#undef TEXT
#undef LIVE
#undef START
};

static void print_tribd(const struct tribd_row *row)
{
    printf(".TP\n.BR %s%s\n", row->name, row->live ? " \" *\"" : "");
    print_escaped(row->doc, '-', "\\-");
    fputs(".\n", stdout);
    if (row->number)
        printf("Allowed: %lld to %lld %s.\n", row->min, row->max, row->unit);
    printf("Default: %s.\n", row->def[0] ? row->def : "empty");
}

struct feedback_row {
    const char *id, *keeps, *sends, *result, *paper;
};

static const struct feedback_row feedback_rows[] = {
#define RULE(id, keeps, sends, result, paper) {#id, keeps, sends, result, paper},
#include "compress/feedback_rules.def"
#undef RULE
};

static void print_column(const char *text)
{
    printf(text[0] ? " %s |" : " |", text);
}

static void print_feedback(const struct feedback_row *row)
{
    fputs("| `", stdout);
    print_escaped(row->id, '_', "-");
    fputs("` |", stdout);
    print_column(row->keeps);
    print_column(row->sends);
    print_column(row->result);
    print_column(row->paper);
    putchar('\n');
}

int main(int argc, char **argv)
{
    const char *table = argc > 1 ? argv[1] : "md";

    if (!strcmp(table, "feedback")) {
        for (size_t i = 0; i < sizeof feedback_rows / sizeof *feedback_rows; i++)
            print_feedback(&feedback_rows[i]);
    } else if (!strcmp(table, "tribd")) {
        for (size_t i = 0; i < sizeof tribd_rows / sizeof *tribd_rows; i++)
            print_tribd(&tribd_rows[i]);
    } else if (!strcmp(table, "md")) {
        for (size_t i = 0; i < N_ROWS; i++)
            print_md(&rows[i]);
    } else {
        for (size_t i = 0; i < N_ROWS; i++)
            print_man(&rows[i], !strcmp(table, "conf"));
    }
    return fflush(stdout) != 0;
}
