/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "train/program/compare.h"
#include "train/program/compare_parts.h"

static int lines_of_task(const struct compare *c, int first)
{
    int n = 1;

    while (first + n < c->n && c->lines[first + n].task == c->lines[first].task)
        n++;
    return n;
}

static void print_title(FILE *out, const struct train_line *first, const char *mark)
{
    char target[64] = "";
    double number;
    const bool has = train_target(first, &number, target, sizeof(target));

    fprintf(out, "\n%s%s: %s; %.0f ranks, %.0f steps, %d seed%s%s%s%s\n\n", mark,
            first->task->name, first->task->summary, first->results[0].ranks,
            first->results[0].steps, first->seeds,
            first->seeds == 1 ? "" : "s, mean ± standard deviation",
            has ? "; target " : "", target, mark);
}

static void print_tables(const struct compare *c, FILE *out,
                         enum train_table_style style)
{
    for (int i = 0; i < c->n; i += lines_of_task(c, i)) {
        const struct train_line *first = &c->lines[i];

        print_title(out, first, style == TRAIN_TABLE_MARKDOWN ? "**" : "");
        train_table_print(out, first, lines_of_task(c, i), style);
        train_legend_print(out, first, lines_of_task(c, i), style);
    }
}

static int write_markdown(const struct compare *c, const char *folder)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/compare.md", folder);
    file = fopen(path, "w");
    if (file)
        print_tables(c, file, TRAIN_TABLE_MARKDOWN);
    if (file && fclose(file) == 0)
        return 0;
    fprintf(stderr, "trib-train: %s: %s\n", path, strerror(errno));
    return -1;
}

static int write_folder(const struct compare *c, const char *folder)
{
    char path[4096];
    int bad = write_markdown(c, folder);

    snprintf(path, sizeof(path), "%s/compare.csv", folder);
    bad |= train_csv_write(path, c->lines, c->n);
    snprintf(path, sizeof(path), "%s/compare.json", folder);
    bad |= train_json_write(path, c->lines, c->n);
    for (int i = 0; i < c->n; i += lines_of_task(c, i))
        bad |= compare_plot(folder, &c->lines[i], lines_of_task(c, i));
    return bad;
}

int compare_tell(const struct compare *c)
{
    const struct train_args *given = c->given;
    int bad = 0;

    if ((!given->csv || strcmp(given->csv, "-") != 0) &&
        (!given->json || strcmp(given->json, "-") != 0))
        print_tables(c, stdout, TRAIN_TABLE_TEXT);
    if (given->csv)
        bad |= train_csv_write(given->csv, c->lines, c->n);
    if (given->json)
        bad |= train_json_write(given->json, c->lines, c->n);
    if (given->out)
        bad |= write_folder(c, given->out);
    return bad;
}
