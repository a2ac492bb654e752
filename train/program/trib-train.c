/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-train - train a model by any strategy, over any transport.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tributary.h>

#include "tools/common/launch.h"
#include "tools/common/setting_values.h"
#include "tools/common/tool.h"
#include "tools/common/tool_table.h"
#include "train/program/compare.h"
#include "train/program/own_tribd.h"
#include "train/program/train_coded.h"
#include "train/program/train_list.h"
#include "train/program/train_replicas.h"
#include "train/program/train_start.h"
#include "train/program/train_table.h"
#include "train/tasks/mnist.h"
#include "train/trainer/strategy.h"

/* Commands: first words that are not tasks. */
static const struct command {
    const char *name;
    int (*main)(const struct train_args *args);
} commands[] = {
    {"compare", compare_main},
    {"list", train_list_main},
};

static bool is_stdout(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

static int tell(const struct train_job *job)
{
    const struct train_args *args = job->args;
    struct train_line line = {.task = job->task,
                              .results = job->results,
                              .seeds = job->seeds,
                              .seed = args->seed};
    int bad = 0;

    train_what(args, line.what, sizeof(line.what));
    if (!is_stdout(args->csv) && !is_stdout(args->json) && !is_stdout(args->curve)) {
        train_table_print(stdout, &line, 1, TRAIN_TABLE_TEXT);
        train_legend_print(stdout, &line, 1, TRAIN_TABLE_TEXT);
    }
    if (args->csv)
        bad |= train_csv_write(args->csv, &line, 1);
    if (args->json)
        bad |= train_json_write(args->json, &line, 1, NULL, 0);
    if (args->curve)
        bad |= train_curve_write(args->curve, &line);
    return bad;
}

/* Check for conflicting options; 2 after an error message. */
static int check(const struct train_args *args)
{
    const char *wrong = NULL;
    char by[96], sentence[256];

    if (args->n_words > 1)
        wrong = "one task at a time; see trib-train compare for many";
    else if (args->n_links > 1)
        wrong = "one --link at a time; see trib-train compare for many";
    else if (args->n_links > 0 && args->service)
        wrong =
            "--link creates hosts that cannot reach --service: omit it, and a tribd "
            "starts on a host of its own";
    else if (args->n_links > 0 && args->ranks == 0)
        wrong = "--link needs --ranks: it creates a host for each of them";
    else if (args->ranks > 0 && tool_launched(by, sizeof(by))) {
        snprintf(sentence, sizeof(sentence),
                 "--ranks starts ranks, but a launcher already has (this is %s): omit "
                 "--ranks, or unset that variable",
                 by);
        wrong = sentence;
    }
    if (wrong)
        fprintf(stderr, "trib-train: %s\n", wrong);
    return wrong ? 2 : -1;
}

/* Return true if the strategy keeps its parameters in tribd. Kinds have the names of
 * strategies. */
static bool needs_tribd(const struct train_args *args)
{
    const char *text = args->kind ? args->kind : args->strategy ? args->strategy : "";
    const size_t length = strcspn(text, ":+");
    const struct trib_strategy *row;

    for (int i = 0; (row = trib_strategy_at(i)); i++)
        if (strlen(row->name) == length && strncmp(row->name, text, length) == 0)
            return row->ops->store_bytes != NULL;
    return false;
}

/* Return true if this program must start a tribd for its ranks. */
static bool wants_own_tribd(const struct train_args *args)
{
    char service[512];

    return args->ranks > 0 && !args->service && needs_tribd(args) &&
           (args->n_links > 0 ||
            !tool_setting("TRIB_SERVICE", service, sizeof(service)));
}

/* Start the ranks, on simulated hosts if there are links. */
static int start(struct train_job *job, struct train_args *args)
{
    const bool own = wants_own_tribd(args);
    struct own_tribd *tribd = NULL;
    struct hosts *hosts = NULL;
    int bad =
        args->n_links > 0 && hosts_open(args->ranks + own, args->link[0], &hosts) != 0;

    if (!bad && own)
        bad = own_tribd_start(hosts, args->ranks, false, &tribd) != 0;
    if (!bad && own)
        args->service = own_tribd_address(tribd);
    const int code = bad ? 1 : train_start(job, hosts, tell);

    own_tribd_end(tribd);
    hosts_close(hosts);
    return code;
}

static int train(const struct train_args *given)
{
    struct train_args own = *given;
    const struct train_args *args = &own;
    struct train_job job = {.args = args,
                            .task = train_task_named(args->word[0]),
                            .seeds = args->seeds ? args->seeds : 1,
                            .watched = args->curve || args->record};
    char title[64], why[256];
    int code = job.task ? check(args) : 2;

    if (code < 0 && args->code)
        code = train_coded_check(&job);
    if (code < 0 && args->kind)
        code = train_replicas_check(&job);
    if (code >= 0)
        return code;
    job.results = train_results_make(job.seeds);
    job.rendezvous = args->join ? train_rendezvous_make() : NULL;
    if (!job.results || (args->join && !job.rendezvous)) {
        fputs("trib-train: out of memory\n", stderr);
        return 1;
    }
    snprintf(title, sizeof(title), "%s %.50s", job.task->name,
             args->code       ? args->code
             : args->kind     ? args->kind
             : args->strategy ? args->strategy
                              : "sync");
    job.title = title;
    if (args->n_links > 0 && hosts_refused(why, sizeof(why))) {
        fprintf(stderr, "trib-train: --link: %s\n", why);
        return 1;
    }
    return start(&job, &own);
}

static int obey(const struct train_args *args)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
        if (strcmp(args->word[0], commands[i].name) != 0)
            continue;
        return commands[i].main(args);
    }
    return train(args);
}

static int run(int argc, char **argv)
{
    struct mnist_kept kept = {.folder = ""};
    struct train_args args;
    int code = train_args_parse(argc, argv, &args);

    if (code >= 0)
        return code;
    if (args.transport)
        setenv("TRIB_TRANSPORT", args.transport, 1);
    args.kept = &kept;
    code = obey(&args);
    mnist_keep(&kept, NULL);
    return code;
}

int main(int argc, char **argv)
{
    tool_begin();
    tool_signals();
    tool_fold_stdout();
    return tool_end("trib-train", run(argc, argv));
}
