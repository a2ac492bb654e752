/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/tool_table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/common/options.h"
#include "tools/common/rank_table.h"

static bool wide;

bool tool_set_wide(const struct tool_given *given, const char *value)
{
    (void)given;
    (void)value;
    wide = true;
    return true;
}

/* --- the width --- */

int tool_text_width(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* 0: unlimited. */
static int line_width(void)
{
    return wide ? 0 : tool_terminal_width(STDOUT_FILENO);
}

bool tool_narrow(int columns)
{
    return line_width() > 0 && line_width() < columns;
}

static int shown_width(const struct tool_table *table)
{
    int width = 0;

    for (size_t i = 0; i < table->n; i++)
        width += table->column[i].shown ? abs(table->column[i].width) : 0;
    return width;
}

/* Return the least important shown column; n if the rest must be shown. */
static size_t least_one(const struct tool_table *table)
{
    size_t least = table->n;

    for (size_t i = 0; i < table->n; i++)
        if (table->column[i].shown && table->column[i].rank > 0 &&
            (least == table->n || table->column[i].rank > table->column[least].rank))
            least = i;
    return least;
}

static void choose(struct tool_table *table)
{
    const int width = line_width();

    table->narrow = width > 0;
    for (size_t i; width > 0 && shown_width(table) > width &&
                   (i = least_one(table)) < table->n;) {
        table->column[i].shown = false;
        table->left_out++;
    }
}

/* --- rows --- */

void tool_table_add(struct tool_table *table, const char *head, const char *unit,
                    int width, int rank)
{
    assert(table->n < TOOL_COLUMNS_MOST);
    table->column[table->n++] = (struct tool_column){head, unit, width, rank, true};
}

/* Print a padded text; one wider than its column still gets a leading space. */
static void print_padded(const struct tool_column *column, const char *text, bool first)
{
    const int width = abs(column->width) - (first ? 0 : 1);
    const int pad = width - tool_text_width(text);

    printf("%s%*s%s%*s", first ? "" : " ", column->width > 0 && pad > 0 ? pad : 0, "",
           text, column->width < 0 && pad > 0 ? pad : 0, "");
}

static void print_line(const struct tool_table *table, bool units)
{
    for (size_t i = 0; i < table->n; i++) {
        const struct tool_column *c = &table->column[i];
        if (c->shown)
            print_padded(c, units ? c->unit : c->head, i == 0);
    }
    putchar('\n');
}

void tool_table_head(struct tool_table *table)
{
    bool units = false;

    choose(table);
    print_line(table, false);
    for (size_t i = 0; i < table->n; i++)
        units = units || table->column[i].unit[0] != '\0';
    if (units)
        print_line(table, true);
}

void tool_table_cell(struct tool_table *table, const char *format, ...)
{
    char text[128];
    va_list list;

    assert(table->at < table->n);
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (table->column[table->at].shown)
        print_padded(&table->column[table->at], text, table->at == 0);
    table->at++;
}

void tool_table_row_end(struct tool_table *table)
{
    table->at = 0;
    putchar('\n');
}

void tool_table_end(const struct tool_table *table)
{
    const char *between = " ";

    if (table->left_out == 0)
        return;
    fputs("not shown:", stdout);
    for (size_t i = 0; i < table->n; i++) {
        if (table->column[i].shown)
            continue;
        printf("%s%s", between, table->column[i].head);
        between = ", ";
    }
    puts(" (--wide shows all)");
}

/* --- long lines --- */

static struct fold {
    FILE *real;
    int width;
    size_t used;
    char line[8192]; /* current incomplete line */
} fold;

/* Return the start of the last column with room for its text. A column begins after two
 * spaces. */
static int last_column(const char *line, size_t n, int width)
{
    int at = 0, found = 0;

    for (size_t i = 0; i < n && at < width - 20; i++) {
        if (i >= 2 && line[i] != ' ' && line[i - 1] == ' ' && line[i - 2] == ' ')
            found = at;
        at += ((unsigned char)line[i] & 0xc0) != 0x80;
    }
    return found > 0 ? found : 4;
}

/* Return the bytes of the words that fit on a line; at least one column. */
static size_t words_of(const char *text, size_t n, int room)
{
    size_t end = 0, words = 0;

    for (int at = 0; end < n && at < room; at++)
        do
            end++;
        while (end < n && ((unsigned char)text[end] & 0xc0) == 0x80);
    if (end == n)
        return n;
    for (size_t i = 1; i <= end; i++)
        if (text[i] == ' ')
            words = i;
    return words > 0 ? words : end;
}

static void fold_line(const char *line, size_t n)
{
    const int indent = last_column(line, n, fold.width);
    int room = fold.width;

    while (n > 0) {
        const size_t part = words_of(line, n, room);
        fwrite(line, 1, part, fold.real);
        line += part;
        n -= part;
        while (n > 0 && *line == ' ') {
            line++;
            n--;
        }
        if (n > 0)
            fprintf(fold.real, "\n%*s", indent, "");
        room = fold.width - indent;
    }
    putc('\n', fold.real);
}

static ssize_t take(void *cookie, const char *bytes, size_t n)
{
    (void)cookie;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            fold_line(fold.line, fold.used);
            fold.used = 0;
            continue;
        }
        if (fold.used == sizeof(fold.line))
            tool_fold_end();
        fold.line[fold.used++] = bytes[i];
    }
    return fflush(fold.real) == 0 ? (ssize_t)n : 0;
}

void tool_fold_stdout(void)
{
    FILE *folded;

    if (fold.real != NULL || line_width() == 0 || fflush(stdout) != 0)
        return;
    folded = fopencookie(NULL, "w", (cookie_io_functions_t){.write = take});
    if (folded == NULL)
        return;
    setvbuf(folded, NULL, _IOLBF, BUFSIZ);
    fold.real = stdout;
    fold.width = line_width();
    stdout = folded;
}

void tool_fold_end(void)
{
    if (fold.real == NULL || fold.used == 0)
        return;
    fwrite(fold.line, 1, fold.used, fold.real);
    fflush(fold.real);
    fold.used = 0;
}
