/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <tributary.h>

#include "tools/common/launch.h"
#include "train/program/compare.h"
#include "train/program/compare_parts.h"
#include "train/program/train_coded.h"
#include "train/program/train_list.h"

enum { FIRST_POINT = 16 }; /* step of the first point */

/* --- selection of rows --- */

/* Return true if a word is a task that has rows. */
static bool is_task(const char *word)
{
    const struct compare_row *row;

    for (int i = 0; (row = compare_row_at(i)); i++)
        if (strcmp(row->task, word) == 0)
            return true;
    return false;
}

/* Selects the table of stragglers, which belongs to no task. */
static const char stragglers[] = "stragglers";

static bool is_first(int i)
{
    return i == 0 || strcmp(compare_row_at(i)->task, compare_row_at(i - 1)->task) != 0;
}

static bool is_stragglers(const char *word)
{
    return strcmp(word, stragglers) == 0;
}

static bool says(const struct train_args *args, bool (*kind)(const char *))
{
    for (int i = 1; i < args->n_words; i++)
        if (kind(args->word[i]))
            return true;
    return false;
}

/* The first row of a task is always wanted, because the others are compared with it. */
static bool wanted(const struct compare *c, int i)
{
    const struct train_args *args = c->given;
    const struct compare_row *row = compare_row_at(i);

    if (says(args, is_stragglers) && !says(args, is_task))
        return false;
    if (!compare_selects(args, is_task, row->task))
        return false;
    if ((row->service && c->no_tribd) || (row->code && !train_coded_built()))
        return false;
    if (is_first(i))
        return true;
    if (says(args, compare_is_row))
        return compare_names(args, row->name);
    return !row->named && (!args->quick || row->quick);
}

static int check_words(const struct train_args *args)
{
    char by[96];

    for (int i = 1; i < args->n_words; i++)
        if (!is_task(args->word[i]) && !compare_is_row(args->word[i]) &&
            !is_stragglers(args->word[i])) {
            fprintf(
                stderr,
                "trib-train: compare: unknown task or row '%s'; see trib-train list\n",
                args->word[i]);
            return 2;
        }
    if (!tool_launched(by, sizeof(by)))
        return -1;
    fprintf(
        stderr,
        "trib-train: compare starts the ranks itself, but this is %s: run it without a "
        "launcher\n",
        by);
    return 2;
}

/* Check for tribd. Rows that need it are skipped if it is missing, unless --service
 * names one. */
static void check_for_tribd(struct compare *c)
{
    char why[128];

    c->no_tribd = !c->given->service && own_tribd_missing(why, sizeof(why));
    if (c->no_tribd)
        printf("Skipping rows that need tribd: %s.\n", why);
}

static int select_rows(struct compare *c)
{
    const struct compare_row *row;

    check_for_tribd(c);
    c->stragglers = c->given->n_words == 1 || says(c->given, is_stragglers);

    for (int i = 0; (row = compare_row_at(i)) && c->n < COMPARE_ROWS_MAX; i++) {
        if (!wanted(c, i))
            continue;
        struct train_line *line = &c->lines[c->n];
        struct train_args *args = &c->args[c->n];
        struct train_result *results;

        *args = compare_args(c->given, row);
        results = train_results_make(args->seeds);
        if (!results) {
            fputs("trib-train: out of memory\n", stderr);
            return -1;
        }
        *line = (struct train_line){.name = row->name,
                                    .task = task_named(row->task),
                                    .results = results,
                                    .seeds = args->seeds,
                                    .seed = args->seed,
                                    .paper = row->paper};
        train_what(args, line->what, sizeof(line->what));
        c->rows[c->n++] = row;
    }
    return 0;
}

/* --- training --- */

static void train_line(struct compare *c, int i)
{
    struct train_line *line = &c->lines[i];
    char title[64];
    const struct train_job job = {.args = &c->args[i],
                                  .task = line->task,
                                  .title = title,
                                  .results = (struct train_result *)line->results,
                                  .seeds = line->seeds,
                                  .watched = true,
                                  .first_point = FIRST_POINT};

    snprintf(title, sizeof(title), "%d/%d %s %s", i + 1, c->n, line->task->name,
             line->name);
    if (compare_serve(c, c->rows[i], &c->args[i]) == 0 && compare_start(c, &job, NULL))
        return;
    fprintf(stderr, "trib-train: compare: row %s %s failed\n", line->task->name,
            line->name);
    line->seeds = 0;
    c->failed++;
}

/* Remove failed rows, and compare each other row with the first row of its task. */
static void drop_failed(struct compare *c)
{
    const struct train_line *dense = NULL;
    int n = 0;

    for (int i = 0; i < c->n; i++) {
        struct train_line *line = &c->lines[n];

        if (c->lines[i].seeds == 0)
            continue;
        *line = c->lines[i];
        c->rows[n] = c->rows[i];
        if (is_first((int)(c->rows[i] - compare_row_at(0))))
            dense = line;
        line->dense = dense && dense->task == line->task ? dense : NULL;
        n++;
    }
    c->n = n;
}

static int run(struct compare *c)
{
    if (select_rows(c) != 0)
        return 1;
    for (int i = 0; i < c->n && !c->stopped; i++)
        train_line(c, i);
    compare_time(c);
    if (c->stragglers)
        compare_stragglers(c);
    own_tribd_end(c->tribd);
    if (c->stopped)
        return c->stopped;
    drop_failed(c);
    return compare_tell(c) != 0 || c->failed > 0;
}

int compare_main(const struct train_args *args)
{
    struct compare *c;
    int code = check_words(args);

    if (code >= 0)
        return code;
    if (args->out && mkdir(args->out, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "trib-train: %s: %s\n", args->out, strerror(errno));
        return 1;
    }
    c = calloc(1, sizeof(*c));
    if (!c) {
        fputs("trib-train: out of memory\n", stderr);
        return 1;
    }
    c->given = args;
    code = run(c);
    free(c);
    return code;
}
