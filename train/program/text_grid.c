/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/program/text_grid.h"

#include <string.h>
#include <unistd.h>

#include "tools/common/rank_table.h"
#include "tools/common/tool_table.h"

struct widths {
    int of[TEXT_GRID_COLUMNS_MAX];
};

static void make_head(const struct text_grid *grid, int column,
                      char out[TEXT_GRID_CELL_BYTES])
{
    const struct text_grid_column *c = &grid->columns[column];
    const bool both = grid->markdown && c->group;

    snprintf(out, TEXT_GRID_CELL_BYTES, "%s%s%s", both ? c->group : "",
             both ? ": " : "", c->head);
}

static void make_cell(const struct text_grid *grid, int row, int column,
                      char out[TEXT_GRID_CELL_BYTES])
{
    out[0] = '\0';
    grid->cell(grid->arg, row, column, out);
}

static bool same_group(const struct text_grid *grid, int column, int other)
{
    const char *a = grid->columns[column].group, *b = grid->columns[other].group;

    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Return the column after the group of this column. */
static int group_end(const struct text_grid *grid, int column)
{
    int end = column + 1;

    while (end < grid->n_columns && same_group(grid, column, end))
        end++;
    return end;
}

static int group_width(const struct text_grid *grid, const struct widths *w, int column)
{
    int width = w->of[column];

    for (int c = column + 1; c < group_end(grid, column); c++)
        width += 2 + w->of[c];
    return width;
}

/* Widen the last column of a group if the group's name is longer than its columns. */
static void widen_groups(const struct text_grid *grid, struct widths *w)
{
    for (int c = 0; c < grid->n_columns && !grid->markdown; c = group_end(grid, c)) {
        const char *group = grid->columns[c].group;
        const int missing =
            group ? tool_text_width(group) - group_width(grid, w, c) : 0;

        if (missing > 0)
            w->of[group_end(grid, c) - 1] += missing;
    }
}

static void measure(const struct text_grid *grid, struct widths *widths)
{
    char cell[TEXT_GRID_CELL_BYTES];

    for (int c = 0; c < grid->n_columns; c++) {
        make_head(grid, c, cell);
        widths->of[c] = tool_text_width(cell);
        for (int r = 0; r < grid->n_rows; r++) {
            make_cell(grid, r, c, cell);
            if (tool_text_width(cell) > widths->of[c])
                widths->of[c] = tool_text_width(cell);
        }
    }
    widen_groups(grid, widths);
}

static void print_cell(FILE *out, const struct text_grid *grid, const struct widths *w,
                       int column, const char *cell)
{
    const int pad = w->of[column] - tool_text_width(cell);
    const bool left = grid->columns[column].left;
    const bool last = column == grid->n_columns - 1;

    fprintf(out, "%s%*s%s%*s%s",
            grid->markdown ? "| "
            : column       ? "  "
                           : "",
            left ? 0 : pad, "", cell, left && (grid->markdown || !last) ? pad : 0, "",
            grid->markdown ? " " : "");
    if (last)
        fputs(grid->markdown ? "|\n" : "\n", out);
}

/* Print the line above the heads: each group's name, and dashes over its columns. */
static void print_groups(FILE *out, const struct text_grid *grid,
                         const struct widths *w)
{
    bool any = false;

    for (int c = 0; c < grid->n_columns; c++)
        any |= grid->columns[c].group != NULL;
    for (int c = 0, next; any && c < grid->n_columns; c = next) {
        const char *group = grid->columns[c].group;
        int done = group ? tool_text_width(group) : 0;

        next = group_end(grid, c);
        fputs(group ? group : "", out);
        for (; done < group_width(grid, w, c); done++)
            fputc(group && done > tool_text_width(group) ? '-' : ' ', out);
        fputs(next < grid->n_columns ? "  " : "\n", out);
    }
}

static void print_whole(FILE *out, const struct text_grid *grid)
{
    char cell[TEXT_GRID_CELL_BYTES];
    struct widths widths;

    measure(grid, &widths);
    if (!grid->markdown)
        print_groups(out, grid, &widths);
    for (int c = 0; c < grid->n_columns; c++) {
        make_head(grid, c, cell);
        print_cell(out, grid, &widths, c, cell);
    }
    for (int c = 0; c < grid->n_columns && grid->markdown; c++)
        fprintf(out, "|%s%s", grid->columns[c].left ? "---" : "--:",
                c == grid->n_columns - 1 ? "|\n" : "");
    for (int r = 0; r < grid->n_rows; r++)
        for (int c = 0; c < grid->n_columns; c++) {
            make_cell(grid, r, c, cell);
            print_cell(out, grid, &widths, c, cell);
        }
}

/* --- splitting for narrow terminals --- */

/* Adjacent columns of a table, after its first column. */
struct part {
    const struct text_grid *whole;
    int from;
};

static void part_cell(const void *arg, int row, int column,
                      char out[TEXT_GRID_CELL_BYTES])
{
    const struct part *part = arg;
    const struct text_grid *whole = part->whole;

    whole->cell(whole->arg, row, column == 0 ? 0 : part->from + column - 1, out);
}

static int total_width(const struct text_grid *grid)
{
    struct widths widths;
    int total = 0;

    measure(grid, &widths);
    for (int c = 0; c < grid->n_columns; c++)
        total += widths.of[c] + (c ? 2 : 0);
    return total;
}

/* Print as many columns as fit, at least one; return the next column. */
static int print_part(FILE *out, const struct text_grid *grid, int from, int width)
{
    const struct part part = {grid, from};
    struct text_grid sub = *grid;
    int to = from + 1;

    sub.cell = part_cell;
    sub.arg = &part;
    sub.n_columns = 2;
    sub.columns[1] = grid->columns[from];
    for (; to < grid->n_columns; to++) {
        sub.columns[sub.n_columns++] = grid->columns[to];
        if (total_width(&sub) > width) {
            sub.n_columns--;
            break;
        }
    }
    print_whole(out, &sub);
    return to;
}

void text_grid_print(FILE *out, const struct text_grid *grid)
{
    const int width = out == stdout ? tool_terminal_width(STDOUT_FILENO) : 0;

    if (grid->markdown || width == 0 || grid->n_columns < 3 ||
        total_width(grid) <= width) {
        print_whole(out, grid);
        return;
    }
    for (int c = 1; c < grid->n_columns;) {
        if (c > 1)
            fputc('\n', out);
        c = print_part(out, grid, c, width);
    }
}
