/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables that fit the terminal. Where that is too narrow, the columns that matter least
 * are left out, and the last line says which; --wide, a pipe and a file have all.
 */
#ifndef TOOLS_TOOL_TABLE_H
#define TOOLS_TOOL_TABLE_H

#include <stdbool.h>
#include <stddef.h>

enum { TOOL_COLUMNS_MOST = 24 };

struct tool_given;

struct tool_column {
    const char *head, *unit;
    int width; /* with the space before it; below 0: texts begin at the left */
    int rank; /* 0: always shown; the greatest is left out first */
    bool shown;
};

struct tool_table {
    struct tool_column column[TOOL_COLUMNS_MOST];
    size_t n;
    size_t at; /* of the row that is printed */
    bool narrow; /* it is printed to a terminal, which is to be fitted */
    size_t left_out;
};

/** tool_table_add - one more column, before tool_table_head. */
void tool_table_add(struct tool_table *table, const char *head, const char *unit,
                    int width, int rank);

/** tool_table_head - choose the columns, and print their heads and, if any
 * has one, units. */
void tool_table_head(struct tool_table *table);

/** tool_table_cell - print the next column of the row, if it is shown. */
void tool_table_cell(struct tool_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** tool_table_row_end - the next cell is in the first column again. */
void tool_table_row_end(struct tool_table *table);

/** tool_table_end - say what was left out, and how to see it. */
void tool_table_end(const struct tool_table *table);

/** tool_narrow - true if standard output is a terminal of fewer columns. */
bool tool_narrow(int columns);

/** tool_set_wide - a setter of --wide: all tables of this process have all columns, and
 * lines are not folded. */
bool tool_set_wide(const struct tool_given *given, const char *value);

/** tool_fold_stdout - from now on, lines of standard output that are wider than the
 * terminal go on in the next one, below their last column. Nothing where it is none, or
 * after --wide. */
void tool_fold_stdout(void);

/** tool_fold_end - write what stands in a line that has no end yet; tool_flushed calls
 * it. */
void tool_fold_end(void);

/** tool_text_width - columns that a text in UTF-8 takes. */
int tool_text_width(const char *text);

/* clang-format off */
#define TOOL_WIDE_ROW TOOL_WIDE_ROW_OF(0)
#define TOOL_WIDE_ROW_OF(modes) \
    {"wide", NULL, tool_set_wide, \
     .help = "show all columns, even on a narrow terminal", \
     .of = (modes)}
/* clang-format on */

#endif
