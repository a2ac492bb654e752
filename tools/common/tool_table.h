/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables that fit the terminal. On a narrow terminal the least important columns are
 * omitted, and the last line lists them. --wide, a pipe and a file show all columns.
 */
#ifndef TOOLS_COMMON_TOOL_TABLE_H
#define TOOLS_COMMON_TOOL_TABLE_H

#include <stdbool.h>
#include <stddef.h>

enum { TOOL_COLUMNS_MOST = 24 };

struct tool_given;

struct tool_column {
    const char *head, *unit;
    int width; /* including the leading space; negative: left-aligned */
    int rank; /* 0: always shown; the highest is omitted first */
    bool shown;
};

struct tool_table {
    struct tool_column column[TOOL_COLUMNS_MOST];
    size_t n;
    size_t at; /* next cell of the current row */
    bool narrow; /* output is a terminal whose width is to be fitted */
    size_t left_out;
};

/** tool_table_add - add a column; call before tool_table_head. */
void tool_table_add(struct tool_table *table, const char *head, const char *unit,
                    int width, int rank);

/** tool_table_head - choose the columns; print their heads and, if any, units. */
void tool_table_head(struct tool_table *table);

/** tool_table_cell - print the next cell of the row if its column is shown. */
void tool_table_cell(struct tool_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** tool_table_row_end - end the row. */
void tool_table_row_end(struct tool_table *table);

/** tool_table_end - print which columns were omitted, and how to see them. */
void tool_table_end(const struct tool_table *table);

/** tool_narrow - return true if stdout is a terminal with fewer columns. */
bool tool_narrow(int columns);

/** tool_set_wide - setter of --wide: show all columns of all tables, and do not fold
 * lines. */
bool tool_set_wide(const struct tool_given *given, const char *value);

/** tool_fold_stdout - fold stdout lines wider than the terminal, indented to their last
 * column. No-op if stdout is not a terminal or --wide is set. */
void tool_fold_stdout(void);

/** tool_fold_end - write a pending incomplete line; called by tool_flushed. */
void tool_fold_end(void);

/** tool_text_width - return the columns of a UTF-8 text. */
int tool_text_width(const char *text);

/* clang-format off */
#define TOOL_WIDE_ROW TOOL_WIDE_ROW_OF(0)
#define TOOL_WIDE_ROW_OF(modes) \
    {"wide", NULL, tool_set_wide, \
     .help = "show all columns, even on a narrow terminal", \
     .of = (modes)}
/* clang-format on */

#endif
