/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/program/train_table.h"

#include <math.h>
#include <string.h>

enum { CELL_BYTES = 288, COLUMNS_MAX = 14 + 2 * TRAIN_LINKS_MAX };

/* --- figures --- */

static double number_at(const struct train_result *result, size_t offset)
{
    double number;

    memcpy(&number, (const char *)result + offset, sizeof(number));
    return number;
}

struct train_spread train_spread_of(const struct train_line *line, size_t offset)
{
    struct train_spread s = {0, 0};

    for (int i = 0; i < line->seeds; i++)
        s.mean += number_at(&line->results[i], offset) / line->seeds;
    for (int i = 0; i < line->seeds && line->seeds > 1; i++) {
        const double off = number_at(&line->results[i], offset) - s.mean;

        s.sd += off * off / (line->seeds - 1);
    }
    s.sd = sqrt(s.sd);
    return s;
}

struct train_spread train_value_of(const struct train_line *line)
{
    return train_spread_of(line, offsetof(struct train_result, value));
}

double train_step_ms(const struct train_line *line)
{
    return 1e3 * train_spread_of(line, offsetof(struct train_result, seconds)).mean /
           line->results[0].steps;
}

bool train_is_tie(const struct train_line *line)
{
    if (!line->dense || line->seeds < 2 || line->dense->seeds < 2)
        return false;
    const struct train_spread mine = train_value_of(line),
                              dense = train_value_of(line->dense);

    return fabs(mine.mean - dense.mean) <= hypot(mine.sd, dense.sd);
}

/* --- cells --- */

struct column {
    const char *head; /* NULL: the task's result, or a link's rate */
    void (*print)(const struct train_line *line, int link, char *cell);
    bool (*has)(const struct train_line *line, int link); /* NULL: always */
    bool left; /* aligned */
};

static void print_name(const struct train_line *line, int link, char *cell)
{
    (void)link;
    snprintf(cell, CELL_BYTES, "%s", line->name);
}

static bool has_name(const struct train_line *line, int link)
{
    (void)link;
    return line->name != NULL;
}

static bool has_no_name(const struct train_line *line, int link)
{
    return !has_name(line, link);
}

static void print_task(const struct train_line *line, int link, char *cell)
{
    (void)link;
    snprintf(cell, CELL_BYTES, "%s", line->task->name);
}

static void print_what(const struct train_line *line, int link, char *cell)
{
    (void)link;
    snprintf(cell, CELL_BYTES, "%s", line->what);
}

static void print_value(const struct train_line *line, int link, char *cell)
{
    const struct train_spread s = train_value_of(line);
    const char *unit = line->task->lower_is_better ? "" : " %";

    (void)link;
    if (line->seeds > 1)
        snprintf(cell, CELL_BYTES, "%.2f ± %.2f%s", s.mean, s.sd, unit);
    else
        snprintf(cell, CELL_BYTES, "%.2f%s", s.mean, unit);
}

static void print_minus(const struct train_line *line, int link, char *cell)
{
    (void)link;
    if (!line->dense || line->dense == line)
        return;
    snprintf(cell, CELL_BYTES, "%+.2f%s",
             train_value_of(line).mean - train_value_of(line->dense).mean,
             train_is_tie(line) ? ", a tie" : "");
}

static bool has_dense(const struct train_line *line, int link)
{
    (void)link;
    return line->dense != NULL;
}

static void print_ratio(double ratio, char *cell)
{
    if (isfinite(ratio))
        snprintf(cell, CELL_BYTES, "%.*f", ratio < 99.95, ratio);
    else
        snprintf(cell, CELL_BYTES, "-");
}

static void print_message(const struct train_line *line, int link, char *cell)
{
    (void)link;
    print_ratio(
        train_spread_of(line, offsetof(struct train_result, message_ratio)).mean, cell);
}

static void print_wire(const struct train_line *line, int link, char *cell)
{
    (void)link;
    print_ratio(train_spread_of(line, offsetof(struct train_result, wire_ratio)).mean,
                cell);
}

static void print_rounds(const struct train_line *line, int link, char *cell)
{
    (void)link;
    snprintf(cell, CELL_BYTES, "%.0f", line->results[0].rounds);
}

static void print_step(const struct train_line *line, int link, char *cell)
{
    (void)link;
    snprintf(cell, CELL_BYTES, "%.2f", train_step_ms(line));
}

static void print_hidden(const struct train_line *line, int link, char *cell)
{
    (void)link;
    snprintf(cell, CELL_BYTES, "%.0f %%",
             100 * train_spread_of(line, offsetof(struct train_result, hidden)).mean);
}

static void print_seconds(const struct train_line *line, int link, char *cell)
{
    (void)link;
    snprintf(cell, CELL_BYTES, "%.1f",
             train_spread_of(line, offsetof(struct train_result, seconds)).mean);
}

static bool has_link(const struct train_line *line, int link)
{
    return line->links[link].rate != NULL;
}

static void print_link(const struct train_line *line, int link, char *cell)
{
    const struct train_link *l = &line->links[link];

    if (!l->rate)
        return;
    if (!isfinite(l->step_ms))
        snprintf(cell, CELL_BYTES, "-");
    else if (l->measured)
        snprintf(cell, CELL_BYTES, "%.1f, %.0f %% hidden", l->step_ms, 100 * l->hidden);
    else
        snprintf(cell, CELL_BYTES, "%.1f from bytes", l->step_ms);
}

static void print_paper(const struct train_line *line, int link, char *cell)
{
    (void)link;
    snprintf(cell, CELL_BYTES, "%s", line->paper ? line->paper : "");
}

static bool has_paper(const struct train_line *line, int link)
{
    (void)link;
    return line->paper != NULL;
}

static const struct column first_columns[] = {
    {"task", print_task, has_no_name, true},
    {"row", print_name, has_name, true},
    {"strategy", print_what, has_no_name, true},
    {NULL, print_value, NULL, false},
    {"- dense", print_minus, has_dense, false},
    {"message", print_message, NULL, false},
    {"wire", print_wire, NULL, false},
    {"rounds", print_rounds, NULL, false},
    {"ms/step", print_step, NULL, false},
    {"hidden", print_hidden, NULL, false},
    {"seconds", print_seconds, NULL, false},
};
static const struct column link_column = {NULL, print_link, has_link, false};
static const struct column paper_column = {"paper", print_paper, has_paper, true};
static const struct column what_column = {"strategy", print_what, has_name, true};

/* --- the table --- */

struct grid {
    const struct column *column[COLUMNS_MAX];
    int link[COLUMNS_MAX];
    int n, width[COLUMNS_MAX];
};

/* Columns of a terminal, not bytes. */
static int width_of(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void make_cell(const struct grid *grid, int c, const struct train_line *line,
                      char *cell)
{
    cell[0] = '\0';
    grid->column[c]->print(line, grid->link[c], cell);
}

static void make_head(const struct grid *grid, int c, const struct train_line *line,
                      char *cell)
{
    const char *rate = line->links[grid->link[c]].rate;

    if (grid->column[c]->head)
        snprintf(cell, CELL_BYTES, "%s", grid->column[c]->head);
    else if (grid->column[c] == &link_column)
        snprintf(cell, CELL_BYTES, "ms/step, %s", rate ? rate : "");
    else
        snprintf(cell, CELL_BYTES, "%s", line->task->result);
}

static void add_column(struct grid *grid, const struct column *column, int link,
                       const struct train_line *lines, int n)
{
    char cell[CELL_BYTES];
    bool has = column->has == NULL;

    for (int i = 0; i < n && !has; i++)
        has = column->has(&lines[i], link);
    if (!has || grid->n == COLUMNS_MAX)
        return;
    grid->column[grid->n] = column;
    grid->link[grid->n] = link;
    make_head(grid, grid->n, lines, cell);
    grid->width[grid->n] = width_of(cell);
    for (int i = 0; i < n; i++) {
        make_cell(grid, grid->n, &lines[i], cell);
        if (width_of(cell) > grid->width[grid->n])
            grid->width[grid->n] = width_of(cell);
    }
    grid->n++;
}

static void print_cell(FILE *out, const struct grid *grid, int c, const char *cell,
                       enum train_table_style style)
{
    const int pad = grid->width[c] - width_of(cell);
    const bool left = grid->column[c]->left;
    const bool marks = style == TRAIN_TABLE_MARKDOWN, last = c == grid->n - 1;

    fprintf(out, "%s%*s%s%*s%s",
            marks ? "| "
            : c   ? "  "
                  : "",
            left ? 0 : pad, "", cell, left && (marks || !last) ? pad : 0, "",
            marks ? " " : "");
    if (last)
        fputs(marks ? "|\n" : "\n", out);
}

void train_table_print(FILE *out, const struct train_line *lines, int n,
                       enum train_table_style style)
{
    struct grid grid = {.n = 0};
    char cell[CELL_BYTES];

    for (size_t c = 0; c < sizeof(first_columns) / sizeof(*first_columns); c++)
        add_column(&grid, &first_columns[c], 0, lines, n);
    for (int link = 0; link < TRAIN_LINKS_MAX; link++)
        add_column(&grid, &link_column, link, lines, n);
    add_column(&grid, &paper_column, 0, lines, n);
    if (style == TRAIN_TABLE_MARKDOWN)
        add_column(&grid, &what_column, 0, lines, n);
    for (int c = 0; c < grid.n; c++) {
        make_head(&grid, c, lines, cell);
        print_cell(out, &grid, c, cell, style);
    }
    for (int c = 0; c < grid.n && style == TRAIN_TABLE_MARKDOWN; c++)
        fprintf(out, "|%s%s",
                grid.column[c]->left ? "---" : "--:", c == grid.n - 1 ? "|\n" : "");
    for (int i = 0; i < n; i++)
        for (int c = 0; c < grid.n; c++) {
            make_cell(&grid, c, &lines[i], cell);
            print_cell(out, &grid, c, cell, style);
        }
}
