/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Samples per second of rows when some ranks are slow. All ranks are on this host, so
 * the results show waits between ranks rather than network delays.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/program/compare_parts.h"
#include "train/program/text_grid.h"

enum { RANKS = 8, STEPS = 96, STEPS_QUICK = 32, BATCH = 4 };
/* time of a gradient, unless --compute-ms is given */
static const double compute_ms = 17;
static const char task[] = "mlp";

/* The first row is the baseline; rows that need tribd are last. */
static const char *const names[] = {"dense", "pipe", "local", "easgd",    "sgp",
                                    "osgp",  "agp",  "ps",    "downpour", NULL};

static const struct slow {
    const char *key, *head;
    /* slow_times: of the last rank; 0: none */
    double straggle, straggle_times, slow_times;
} slows[COMPARE_SLOW] = {
    {"none", "all alike", 0, 1, 0},
    {"random", "5 % of steps x 5", 0.05, 5, 0},
    {"one", "one rank x 4", 0, 1, 4},
};

static const struct compare_row *row_named(const char *name)
{
    const struct compare_row *row;

    for (int i = 0; (row = compare_row_at(i)); i++)
        if (strcmp(row->task, task) == 0 && strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

static struct train_args slow_args(const struct compare *c,
                                   const struct compare_row *row,
                                   const struct slow *slow)
{
    const struct train_args *given = c->given;
    struct train_args args = compare_args(given, row);

    args.ranks = given->ranks ? given->ranks : RANKS;
    args.steps = given->steps ? given->steps : given->quick ? STEPS_QUICK : STEPS;
    args.epochs = 0;
    args.batch = BATCH;
    args.compute_ms = given->compute_ms > 0 ? given->compute_ms : compute_ms;
    args.straggle = slow->straggle;
    args.straggle_times = slow->straggle_times;
    args.slow_rank = args.ranks - 1;
    args.slow_times = slow->slow_times;
    return args;
}

static double samples_s(struct compare *c, const struct compare_row *row,
                        const struct slow *slow)
{
    struct train_args args = slow_args(c, row, slow);
    char title[64];
    struct train_result *result = train_results_make(1);
    const struct train_job job = {.args = &args,
                                  .task = task_named(task),
                                  .title = title,
                                  .results = result,
                                  .seeds = 1,
                                  .paced = true};

    snprintf(title, sizeof(title), "%s, %s", row->name, slow->head);
    if (result && compare_serve(c, row, &args) == 0 && compare_start(c, &job, NULL))
        return result->samples_s;
    fprintf(stderr, "trib-train: compare: row %s failed (%s)\n", row->name, slow->head);
    c->failed++;
    return (double)NAN;
}

void compare_stragglers(struct compare *c)
{
    for (int i = 0; names[i]; i++) {
        struct compare_pace *pace = &c->paces[c->n_paces];
        const struct compare_row *row = row_named(names[i]);

        if (!row || c->stopped || (row->service && c->no_tribd) ||
            (i > 0 && !compare_names(c->given, names[i])))
            continue;
        pace->row = row;
        for (int s = 0; s < COMPARE_SLOW && !c->stopped; s++)
            pace->samples_s[s] = samples_s(c, row, &slows[s]);
        c->n_paces++;
    }
}

/* --- output --- */

static double of_dense(const struct compare *c, int row, int slow)
{
    return c->paces[row].samples_s[slow] / c->paces[0].samples_s[slow];
}

static void cell_of(const void *arg, int row, int column, char *out)
{
    const struct compare *c = arg;
    const int slow = (column - 1) / 2;

    if (column == 0)
        snprintf(out, TEXT_GRID_CELL_BYTES, "%s", c->paces[row].row->name);
    else if (!isfinite(c->paces[row].samples_s[slow]))
        snprintf(out, TEXT_GRID_CELL_BYTES, "-");
    else if (column % 2)
        snprintf(out, TEXT_GRID_CELL_BYTES, "%.0f", c->paces[row].samples_s[slow]);
    else
        snprintf(out, TEXT_GRID_CELL_BYTES, "%.2f", of_dense(c, row, slow));
}

void compare_paces_print(const struct compare *c, FILE *out,
                         enum train_table_style style)
{
    const bool markdown = style == TRAIN_TABLE_MARKDOWN;
    struct text_grid grid = {.n_rows = c->n_paces,
                             .n_columns = 1 + 2 * COMPARE_SLOW,
                             .markdown = markdown,
                             .cell = cell_of,
                             .arg = c};
    const struct train_args args = slow_args(c, c->paces[0].row, &slows[0]);

    grid.columns[0] = (struct text_grid_column){NULL, "row", true};
    for (int s = 0; s < COMPARE_SLOW; s++) {
        grid.columns[1 + 2 * s] =
            (struct text_grid_column){slows[s].head, "samples/s", false};
        grid.columns[2 + 2 * s] =
            (struct text_grid_column){slows[s].head, "of dense", false};
    }
    fprintf(out,
            "\n%sstragglers: %s on %d ranks in shared memory, %d samples and %g ms per "
            "gradient%s\n\n",
            markdown ? "**" : "", task, args.ranks, BATCH, args.compute_ms,
            markdown ? "**" : "");
    text_grid_print(out, &grid);
    fputs("\nx 5, x 4: slowdown of a step. samples/s: sum of each rank's own rate, "
          "until the first rank has finished its steps.\n",
          out);
}

int compare_paces_list(const struct compare *c,
                       struct train_slow out[COMPARE_PACES_MAX * COMPARE_SLOW])
{
    int n = 0;

    for (int r = 0; r < c->n_paces; r++)
        for (int s = 0; s < COMPARE_SLOW; s++)
            out[n++] = (struct train_slow){c->paces[r].row->name, slows[s].key,
                                           c->paces[r].samples_s[s], of_dense(c, r, s)};
    return n;
}

int compare_paces_write(const struct compare *c, const char *path)
{
    struct train_slow all[COMPARE_PACES_MAX * COMPARE_SLOW];
    const int n = compare_paces_list(c, all);
    FILE *file = train_file_open(path);

    if (!file)
        return -1;
    fputs("row,slow,samples_s,of_dense\n", file);
    for (int i = 0; i < n; i++)
        fprintf(file, "%s,%s,%.3f,%.4f\n", all[i].row, all[i].slow, all[i].samples_s,
                all[i].of_dense);
    return train_file_close(file, path);
}
