/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/program/train_table.h"

#include <math.h>
#include <stdio.h>

#include "train/program/text_grid.h"

enum { CELL_BYTES = TEXT_GRID_CELL_BYTES };

/* --- cells --- */

struct column {
    const char *head; /* NULL: the name of the task's result */
    void (*print)(const struct train_line *line, int link, char *cell);
    bool (*has)(const struct train_line *line, int link); /* NULL: always */
    bool left; /* left-aligned */
    bool of_markdown; /* only in Markdown; text has it below the table */
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

static void print_strategy(const struct train_line *line, int link, char *cell)
{
    (void)link;
    snprintf(cell, CELL_BYTES, "%s", line->what);
}

static void print_value(const struct train_line *line, int link, char *cell)
{
    const struct train_spread s = train_value_of(line);

    (void)link;
    if (line->seeds > 1)
        snprintf(cell, CELL_BYTES, "%.2f ± %.2f", s.mean, s.sd);
    else
        snprintf(cell, CELL_BYTES, "%.2f", s.mean);
}

static void print_minus(const struct train_line *line, int link, char *cell)
{
    (void)link;
    if (!line->dense || line->dense == line)
        return;
    snprintf(cell, CELL_BYTES, "%+.2f%s",
             train_value_of(line).mean - train_value_of(line->dense).mean,
             train_is_tie(line) ? " tie" : "");
}

static bool has_dense(const struct train_line *line, int link)
{
    (void)link;
    return line->dense != NULL;
}

/* Print one decimal below 99.95, else none; "-" if not finite. */
static void print_short(double number, char *cell)
{
    if (isfinite(number))
        snprintf(cell, CELL_BYTES, "%.*f", number < 99.95, number);
    else
        snprintf(cell, CELL_BYTES, "-");
}

static bool has_trainer(const struct train_line *line, int link)
{
    (void)link;
    return isfinite(line->results[0].hidden);
}

static bool has_own_hidden(const struct train_line *line, int link)
{
    return has_no_name(line, link) && has_trainer(line, link);
}

static void print_message(const struct train_line *line, int link, char *cell)
{
    (void)link;
    print_short(
        train_spread_of(line, offsetof(struct train_result, message_ratio)).mean, cell);
}

static void print_wire(const struct train_line *line, int link, char *cell)
{
    (void)link;
    print_short(train_spread_of(line, offsetof(struct train_result, wire_ratio)).mean,
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

static bool has_code(const struct train_line *line, int link)
{
    (void)link;
    return isfinite(line->results[0].waited);
}

static void print_waited(const struct train_line *line, int link, char *cell)
{
    if (!has_code(line, link))
        return;
    snprintf(cell, CELL_BYTES, "%.2f of %.0f",
             train_spread_of(line, offsetof(struct train_result, waited)).mean,
             line->results[0].ranks);
}

static void print_encoding(const struct train_line *line, int link, char *cell)
{
    if (has_code(line, link))
        snprintf(cell, CELL_BYTES, "%.1f",
                 1e-6 *
                     train_spread_of(line, offsetof(struct train_result, encoded_bytes))
                         .mean);
}

static void print_encoding_share(const struct train_line *line, int link, char *cell)
{
    const double share =
        train_spread_of(line, offsetof(struct train_result, encoded_ratio)).mean;

    if (has_code(line, link))
        snprintf(cell, CELL_BYTES, isfinite(share) ? "%.3f" : "-", share);
}

static void print_error(const struct train_line *line, int link, char *cell)
{
    double worst = 0;

    if (!has_code(line, link))
        return;
    for (int i = 0; i < line->seeds; i++)
        worst = fmax(worst, line->results[i].gradient_error);
    snprintf(cell, CELL_BYTES, "%.1e", worst);
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

static bool has_target(const struct train_line *line, int link)
{
    return has_link(line, link) && line->dense != NULL;
}

static void print_link_step(const struct train_line *line, int link, char *cell)
{
    print_short(line->links[link].step_ms, cell);
}

static void print_link_wait(const struct train_line *line, int link, char *cell)
{
    print_short(train_wait_ms(&line->links[link]), cell);
}

static void print_link_target(const struct train_line *line, int link, char *cell)
{
    print_short(train_target_s(line, link), cell);
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

/* A single training shows its strategy and times. Rows of a comparison show a name and
 * the times on links. */
static const struct column first_columns[] = {
    {"task", print_task, has_no_name, true, false},
    {"row", print_name, has_name, true, false},
    {"strategy", print_strategy, has_no_name, true, false},
    {NULL, print_value, NULL, false, false},
    {"- dense", print_minus, has_dense, false, false},
    {"message", print_message, has_trainer, false, false},
    {"wire", print_wire, has_trainer, false, false},
    {"rounds", print_rounds, NULL, false, false},
    {"ms/step", print_step, has_no_name, false, false},
    {"hidden", print_hidden, has_own_hidden, false, false},
    {"seconds", print_seconds, has_no_name, false, false},
    {"answers", print_waited, has_code, false, false},
    {"encoding MB", print_encoding, has_code, false, false},
    {"of MDS", print_encoding_share, has_code, false, false},
    {"difference", print_error, has_code, false, false},
};
static const struct column link_columns[] = {
    {"ms", print_link_step, has_link, false, false},
    {"wait", print_link_wait, has_link, false, false},
    {"to target", print_link_target, has_target, false, false},
};
static const struct column last_columns[] = {
    {"paper", print_paper, has_paper, true, true},
    {"strategy", print_strategy, has_name, true, true},
};

/* --- the table --- */

struct table {
    struct text_grid grid;
    const struct train_line *lines;
    const struct column *column[TEXT_GRID_COLUMNS_MAX];
    int link[TEXT_GRID_COLUMNS_MAX];
    char group[TRAIN_LINKS_MAX][48]; /* heads of a link's columns */
    char result[48]; /* head of the result */
};

static void cell_of(const void *arg, int row, int column, char *out)
{
    const struct table *t = arg;

    t->column[column]->print(&t->lines[row], t->link[column], out);
}

static void add_column(struct table *t, const struct column *column, const char *group,
                       int link)
{
    const int c = t->grid.n_columns;
    bool has = column->has == NULL;

    for (int i = 0; i < t->grid.n_rows && !has; i++)
        has = column->has(&t->lines[i], link);
    if (!has || c == TEXT_GRID_COLUMNS_MAX ||
        (column->of_markdown && !t->grid.markdown))
        return;
    t->column[c] = column;
    t->link[c] = link;
    t->grid.columns[c] = (struct text_grid_column){
        group, column->head ? column->head : t->result, column->left};
    t->grid.n_columns++;
}

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static void add_link(struct table *t, int link)
{
    const struct train_link *l = &t->lines[0].links[link];

    if (!l->rate)
        return;
    snprintf(t->group[link], sizeof(t->group[link]), "%s%s", l->rate,
             l->measured ? "" : ", from bytes");
    for (size_t c = 0; c < COUNT(link_columns); c++)
        add_column(t, &link_columns[c], t->group[link], link);
}

void train_table_print(FILE *out, const struct train_line *lines, int n,
                       enum train_table_style style)
{
    struct table t = {.lines = lines,
                      .grid = {.n_rows = n,
                               .markdown = style == TRAIN_TABLE_MARKDOWN,
                               .cell = cell_of}};

    t.grid.arg = &t;
    snprintf(t.result, sizeof(t.result), "%s%s", lines->task->result,
             lines->task->lower_is_better ? "" : " %");
    for (size_t c = 0; c < COUNT(first_columns); c++)
        add_column(&t, &first_columns[c], NULL, 0);
    for (int link = 0; link < TRAIN_LINKS_MAX; link++)
        add_link(&t, link);
    for (size_t c = 0; c < COUNT(last_columns); c++)
        add_column(&t, &last_columns[c], NULL, 0);
    text_grid_print(out, &t.grid);
}

static void print_rows(FILE *out, const struct train_line *lines, int n)
{
    fputs("\nrows:\n", out);
    for (int i = 0; i < n; i++)
        fprintf(out, "  %-13s %s%s%s\n", lines[i].name, lines[i].what,
                lines[i].paper ? "\n                paper: " : "",
                lines[i].paper ? lines[i].paper : "");
}

static bool any(const struct train_line *lines, int n,
                bool (*has)(const struct train_line *line, int link))
{
    for (int i = 0; i < n; i++)
        if (has(&lines[i], 0))
            return true;
    return false;
}

void train_legend_print(FILE *out, const struct train_line *lines, int n,
                        enum train_table_style style)
{
    const struct train_link *link = &lines->links[0];

    fputc('\n', out);
    if (any(lines, n, has_trainer))
        fputs("message: dense bytes / bytes after codecs and rounds; wire: bytes of "
              "dense ring sums / all bytes sent, with headers.\n",
              out);
    if (any(lines, n, has_code))
        fputs("Codes: answers: ranks whose answers sufficed; encoding: bytes fetched "
              "for it, and relative to MDS; difference: largest relative difference "
              "from an uncoded gradient.\n",
              out);
    if (link->rate)
        fprintf(
            out,
            "Over links, with gradients of %g ms: ms of a step; ms of it that a rank "
            "waits in the library; seconds to the target. -: never, or not measured.\n",
            link->compute_ms);
    if (lines->name && style == TRAIN_TABLE_TEXT)
        print_rows(out, lines, n);
}
