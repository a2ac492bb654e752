/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/program/compare.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <tributary.h>

#include "tools/launch.h"
#include "train/program/compare_rows.h"
#include "train/program/train_list.h"
#include "train/program/train_start.h"

enum {
    ROWS_MAX = 128,
    FIRST_POINT = 16, /* step */
    TIMED_STEPS = 64, /* behind links; the second half counts */
    TIMED_STEPS_QUICK = 32,
    TIMED_BATCH = 4,
};
static const double timed_ms = 5; /* that a gradient takes there */

struct compare {
    const struct train_args *given; /* the command line */
    const struct compare_row *rows[ROWS_MAX];
    struct train_args args[ROWS_MAX]; /* of the rows */
    struct train_line lines[ROWS_MAX];
    int n, failed;
};

/* --- which rows --- */

static bool is_task(const char *word)
{
    return task_named(word) != NULL;
}

static bool is_row(const char *word)
{
    const struct compare_row *row;

    for (int i = 0; (row = compare_row_at(i)); i++)
        if (strcmp(row->name, word) == 0)
            return true;
    return false;
}

/* True if a word of this kind is this name, or none of this kind was given. */
static bool named(const struct train_args *args, bool (*kind)(const char *),
                  const char *name)
{
    bool any = false;

    for (int i = 1; i < args->n_words; i++) {
        if (!kind(args->word[i]))
            continue;
        any = true;
        if (strcmp(args->word[i], name) == 0)
            return true;
    }
    return !any;
}

static bool is_first(int i)
{
    return i == 0 || strcmp(compare_row_at(i)->task, compare_row_at(i - 1)->task) != 0;
}

/* A row without which the others say little is there even if it is not named. */
static bool wanted(const struct train_args *args, int i)
{
    const struct compare_row *row = compare_row_at(i);
    const bool by_name = named(args, is_row, row->name);

    if (!named(args, is_task, row->task))
        return false;
    if (row->service && !args->service)
        return false;
    if (is_first(i))
        return true;
    for (int w = 1; w < args->n_words; w++)
        if (is_row(args->word[w]))
            return by_name;
    return !args->quick || row->quick;
}

static int check_words(const struct train_args *args)
{
    char by[96];

    for (int i = 1; i < args->n_words; i++)
        if (!is_task(args->word[i]) && !is_row(args->word[i])) {
            fprintf(
                stderr,
                "trib-train: compare: there is no task or row '%s'; trib-train list "
                "names them\n",
                args->word[i]);
            return 2;
        }
    if (!tool_launched(by, sizeof(by)))
        return -1;
    fprintf(
        stderr,
        "trib-train: compare starts ranks by itself, and this is %s: run it without "
        "a launcher\n",
        by);
    return 2;
}

/* The options of a row; those of the command line win. */
static struct train_args args_of(const struct train_args *given,
                                 const struct compare_row *row)
{
    const struct compare_length *length = compare_length_of(row->task);
    struct train_args args = *given;

    args.strategy = row->strategy;
    args.codec = row->codec;
    args.feedback = row->feedback;
    args.parts = row->parts;
    args.optimizer = row->optimizer;
    args.rate = row->rate;
    if (!row->service)
        args.service = NULL;
    args.ranks = given->ranks ? given->ranks : 4;
    args.seeds = given->seeds ? given->seeds : given->quick ? 1 : 3;
    if (!given->steps && !given->epochs)
        args.steps = given->quick ? length->quick_steps
                     : row->steps ? row->steps
                                  : length->steps;
    return args;
}

static int select_rows(struct compare *c)
{
    const struct compare_row *row;

    for (int i = 0; (row = compare_row_at(i)) && c->n < ROWS_MAX; i++) {
        if (!wanted(c->given, i))
            continue;
        struct train_line *line = &c->lines[c->n];
        struct train_args *args = &c->args[c->n];
        struct train_result *results;

        *args = args_of(c->given, row);
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

/* --- training, timing --- */

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
    if (train_start(&job, NULL, NULL) == 0)
        return;
    fprintf(stderr, "trib-train: compare: row %s %s failed\n", line->task->name,
            line->name);
    line->seeds = 0;
    c->failed++;
}

/* A step with the dense sum's time hidden by nothing: what links cannot be made for. */
static void time_from_bytes(struct train_line *line, struct train_link *link)
{
    const struct train_result *result = &line->results[0];
    char *unit;
    const double number = strtod(link->rate, &unit);
    const double bits = number * (strcmp(unit, "gbit") == 0 ? 1e9 : 1e6);

    link->step_ms =
        train_step_ms(line) + 8e3 * result->wire_bytes / result->steps / bits;
    link->hidden = (double)NAN;
}

static void time_line(struct compare *c, int i, const struct hosts *hosts,
                      struct train_link *link)
{
    struct train_line *line = &c->lines[i];
    struct train_args args = c->args[i];
    char title[64];
    struct train_result *result = train_results_make(1);
    const size_t steps = c->given->quick ? TIMED_STEPS_QUICK : TIMED_STEPS;
    const struct train_job job = {.args = &args,
                                  .task = line->task,
                                  .title = title,
                                  .results = result,
                                  .seeds = 1,
                                  .timed_from = steps / 2};

    args.steps = steps;
    args.epochs = 0;
    args.batch = TIMED_BATCH;
    if (args.compute_ms <= 0)
        args.compute_ms = timed_ms;
    snprintf(title, sizeof(title), "%s %s %s", link->rate, line->task->name,
             line->name);
    if (!result || train_start(&job, hosts, NULL) != 0) {
        fprintf(stderr, "trib-train: compare: row %s %s failed at %s\n",
                line->task->name, line->name, link->rate);
        c->failed++;
        return;
    }
    link->step_ms = 1e3 * result->seconds / (result->steps - (double)job.timed_from);
    link->hidden = result->hidden;
    link->measured = true;
}

static void time_link(struct compare *c, int l, const char *rate)
{
    struct hosts *hosts = NULL;
    char why[256];
    const bool refused = hosts_refused(why, sizeof(why)) ||
                         hosts_open(c->args[0].ranks, rate, &hosts) != 0;

    if (refused && l == 0)
        printf("No hosts can be made here (%s): times behind links are from bytes.\n",
               why);
    for (int i = 0; i < c->n; i++) {
        struct train_link *link = &c->lines[i].links[l];

        if (c->lines[i].seeds == 0)
            continue;
        *link = (struct train_link){.rate = rate, .step_ms = (double)NAN};
        if (c->rows[i]->service)
            continue; /* its hosts would not reach the service */
        if (refused)
            time_from_bytes(&c->lines[i], link);
        else
            time_line(c, i, hosts, link);
    }
    hosts_close(hosts);
}

static void time_links(struct compare *c)
{
    static const char *const usual[] = {"1gbit", "10gbit", "100mbit"};
    const struct train_args *given = c->given;
    const int n = given->n_links ? given->n_links : given->quick ? 2 : 3;

    for (int l = 0; l < n; l++)
        time_link(c, l, given->n_links ? given->link[l] : usual[l]);
}

/* --- what is told --- */

/* Takes rows that failed away, and compares each other one with its task's first. */
static void drop_failed(struct compare *c)
{
    const struct train_line *dense = NULL;
    int n = 0;

    for (int i = 0; i < c->n; i++) {
        struct train_line *line = &c->lines[n];

        if (c->lines[i].seeds == 0)
            continue;
        *line = c->lines[i];
        if (is_first((int)(c->rows[i] - compare_row_at(0))))
            dense = line;
        line->dense = dense && dense->task == line->task ? dense : NULL;
        n++;
    }
    c->n = n;
}

static int lines_of_task(const struct compare *c, int first)
{
    int n = 1;

    while (first + n < c->n && c->lines[first + n].task == c->lines[first].task)
        n++;
    return n;
}

static void print_tables(const struct compare *c, FILE *out,
                         enum train_table_style style)
{
    for (int i = 0; i < c->n; i += lines_of_task(c, i)) {
        const struct train_line *first = &c->lines[i];

        fprintf(out, "\n%s%s: %s; %.0f ranks, %.0f steps, %d seed%s\n\n",
                style == TRAIN_TABLE_MARKDOWN ? "**" : "", first->task->name,
                first->task->summary, first->results[0].ranks, first->results[0].steps,
                first->seeds, first->seeds == 1 ? "" : "s, mean ± standard deviation");
        train_table_print(out, first, lines_of_task(c, i), style);
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

static int tell(const struct compare *c)
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

static int run(struct compare *c)
{
    if (select_rows(c) != 0)
        return 1;
    for (int i = 0; i < c->n; i++)
        train_line(c, i);
    time_links(c);
    drop_failed(c);
    return tell(c) != 0 || c->failed > 0;
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
