/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/program/train_args.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tributary.h>

#include "tools/common/bind.h"
#include "tools/common/options.h"

static bool set_seed(const struct tool_given *given, const char *value)
{
    struct train_args *args = given->args;
    char *end;

    errno = 0;
    args->seed = strtoull(value, &end, 10);
    if (errno == 0 && end != value && *end == '\0' && *value != '-' && args->seed > 0)
        return true;
    return tool_refuse(given, value, "is not a whole number of at least 1");
}

static bool set_feed(const struct tool_given *given, const char *value)
{
    struct train_args *args = given->args;

    if (!tool_set_choice(given, value))
        return false;
    args->feed = args->feed ? TRIB_FEED_BACKWARD : TRIB_FEED_WHOLE;
    return true;
}

static bool set_straggle(const struct tool_given *given, const char *value)
{
    struct train_args *args = given->args;
    int used = 0;

    if (sscanf(value, "%lf,%lf%n", &args->straggle, &args->straggle_times, &used) ==
            2 &&
        value[used] == '\0' && args->straggle >= 0 && args->straggle <= 1 &&
        args->straggle_times >= 1 && args->straggle_times <= 1e6)
        return true;
    return tool_refuse(given, value,
                       "is not P,X: a probability from 0 to 1 and a slowdown factor "
                       "from 1, as in 0.05,5");
}

static bool set_leave(const struct tool_given *given, const char *value)
{
    struct train_args *args = given->args;
    int used = 0;

    args->leave =
        sscanf(value, "%d,%zu%n", &args->leave_rank, &args->leave_step, &used) == 2 &&
        value[used] == '\0' && args->leave_rank >= 0;
    return args->leave ||
           tool_refuse(given, value,
                       "is not R,S: a rank and the step before which it exits, as in "
                       "3,20");
}

static bool set_slow_rank(const struct tool_given *given, const char *value)
{
    struct train_args *args = given->args;
    int used = 0;

    if (sscanf(value, "%d,%lf%n", &args->slow_rank, &args->slow_times, &used) == 2 &&
        value[used] == '\0' && args->slow_rank >= 0 && args->slow_times >= 1 &&
        args->slow_times <= 1e6)
        return true;
    return tool_refuse(given, value,
                       "is not R,X: a rank and the slowdown factor of its steps, from "
                       "1, as in 3,4");
}

static bool add_link(const struct tool_given *given, const char *value)
{
    struct train_args *args = given->args;
    char *end;
    const double number = strtod(value, &end);

    if (end == value || !(number > 0) ||
        (strcmp(end, "gbit") != 0 && strcmp(end, "mbit") != 0))
        return tool_refuse(given, value, "is not a rate such as 1gbit or 100mbit");
    if (args->n_links == TRAIN_LINKS_MAX)
        return tool_say(given, "--link: %d at most", TRAIN_LINKS_MAX);
    args->link[args->n_links++] = value;
    return true;
}

static bool take_word(const struct tool_given *given, const char *value)
{
    struct train_args *args = given->args;

    if (args->n_words == TRAIN_WORDS_MAX)
        return tool_say(given, "more than %d words", TRAIN_WORDS_MAX);
    args->word[args->n_words++] = value;
    return true;
}

#define AT(field) offsetof(struct train_args, field)

/* Modes of the command line, selected by the first word, --code and --kind. */
enum mode { MODE_FIT, MODE_CODE, MODE_KIND, MODE_ROWS, MODE_STRAGGLERS, MODE_LIST };

static const char *const modes[] = {
    [MODE_FIT] = "TASK",
    [MODE_CODE] = "TASK --code",
    [MODE_KIND] = "TASK --kind",
    [MODE_ROWS] = "compare",
    [MODE_STRAGGLERS] = "compare stragglers",
    [MODE_LIST] = "list",
    NULL,
};

enum {
    FIT = 1 << MODE_FIT,
    CODE = 1 << MODE_CODE,
    KIND = 1 << MODE_KIND,
    ONE = FIT | CODE | KIND,
    ROWS = 1 << MODE_ROWS,
    COMPARE = ROWS | 1 << MODE_STRAGGLERS,
    RUNS = ONE | COMPARE,
};

static const struct tool_option options[] = {
    {.help = "Training:"},
    {"strategy", "TEXT", tool_set_text, AT(strategy),
     .help = "sync, pipe:width=2+int8, sgp, …; see trib-train list [sync]",
     .of = FIT | KIND},
    {"codec", "TEXT", tool_set_text, AT(codec),
     .help = "codec of all data sent: topk:ratio=0.001+natural, …", .words = "@codecs",
     .of = FIT | KIND},
    {"feedback", "TEXT", tool_set_text, AT(feedback),
     .help = "error feedback of the codec", .of = FIT | KIND},
    {"parts", "TEXT", tool_set_text, AT(parts),
     .help = "layers: one part per layer's weights; or codecs by layer name, as in "
             "conv=adacomp:bin=50;dense=int8",
     .of = FIT | KIND},
    {"optimizer", "TEXT", tool_set_text, AT(optimizer),
     .help = "sgd:momentum=0.9, adam, … [the task's]", .of = FIT | KIND},
    {"rate", "TEXT", tool_set_text, AT(rate),
     .help = "a number, or linear:rate=0.1,warmup=0.05 [the task's]", .of = ONE},
    {"batch", "N", tool_set_size, AT(batch),
     .help = "samples per rank and step [the task's]", .least = 1, .most = 4096,
     .of = FIT | KIND | ROWS},
    {"epochs", "N", tool_set_size, AT(epochs), .help = "passes over the data [3]",
     .least = 1, .most = 10000, .of = ONE | ROWS},
    {"steps", "N", tool_set_size, AT(steps),
     .help = "number of steps, instead of --epochs", .least = 1, .most = 1e8,
     .of = RUNS},
    {"seed", "N", set_seed,
     .help = "seed of initial parameters, data order and codecs [1]", .of = RUNS},
    {"seeds", "N", tool_set_int, AT(seeds),
     .help = "number of trainings, with seeds from --seed on: mean and deviation",
     .least = 1, .most = TRAIN_SEEDS_MAX, .of = ONE | ROWS},
    {"data", "PATH", tool_set_text, AT(data),
     .help = "folder or file of the data [its place on Debian]", .of = RUNS},
    {"feed", "HOW", set_feed, AT(feed),
     .help = "gradients become ready backward (by layers) or whole",
     .words = "whole backward", .of = FIT | COMPARE},
    {"code", "TEXT", tool_set_text, AT(code),
     .help = "for logreg and svm: gradients of all samples without waiting for slow "
             "ranks: rlnc, mds, gradient:spare=1 or none",
     .of = CODE},
    {"partitions", "K", tool_set_int, AT(partitions),
     .help = "partitions of the samples, one per rank [3/4 of the ranks]", .least = 1,
     .most = TRAIN_RANKS_MAX, .of = CODE},
    {"kind", "TEXT", tool_set_text, AT(kind),
     .help = "replicas that share batches: one, threads, workers, ps, "
             "hybrid:groups=2; shares=S: the same bits for any N",
     .of = KIND},
    {"replicas", "N", tool_set_int, AT(replicas),
     .help = "number of threads (--kind threads) or processes", .least = 1,
     .most = TRAIN_RANKS_MAX, .of = KIND},
    {.help = "Placement:"},
    {"ranks", "N", tool_set_int, AT(ranks),
     .help = "number of ranks to start on this host", .least = 1,
     .most = TRAIN_RANKS_MAX, .letter = 'n', .of = RUNS},
    {"bind", "HOW", tool_set_choice, AT(bind), .help = TOOL_BIND_HELP,
     .words = TOOL_BIND_WORDS, .of = RUNS},
    {"transport", "TEXT", tool_set_text, AT(transport), .help = "as TRIB_TRANSPORT",
     .words = "@transports", .of = RUNS},
    {"service", "HOST:PORT", tool_set_text, AT(service),
     .help = "as TRIB_SERVICE: the tribd for ps, downpour and hybrid; in compare only "
             "for these rows [with -n: a private one]",
     .of = RUNS},
    {"link", "RATE", add_link,
     .help = "run each rank in a network namespace with a link of RATE, such as 1gbit; "
             "needs root",
     .of = ONE | ROWS},
    {"compute-ms", "T", tool_set_number, AT(compute_ms),
     .help = "minimum time of a gradient in ms: sleep for the rest, as if an "
             "accelerator computed",
     .most = 60000, .of = RUNS},
    {"straggle", "P,X", set_straggle,
     .help = "a step takes X times as long with probability P", .of = ONE | ROWS},
    {"leave", "R,S", set_leave,
     .help = "with --code: rank R exits before step S, without notice", .of = CODE},
    {"join", "S", tool_set_size, AT(join),
     .help = "with --code: the last rank joins before step S", .least = 1, .most = 1e8,
     .of = CODE},
    {"slow-rank", "R,X", set_slow_rank,
     .help = "all steps of rank R take X times as long", .of = ONE | ROWS},
    {"until", "WHO", tool_set_second, AT(until_first),
     .help = "first: agp and downpour end when one rank has finished its steps; all "
             "[all]",
     .words = "all first", .of = FIT},
    {.help = "Output:"},
    {"csv", "FILE", tool_set_text, AT(csv),
     .help = "write the table as CSV; - is standard output", .of = ONE | ROWS},
    {"json", "FILE", tool_set_text, AT(json),
     .help = "write the results as JSON; - is standard output", .of = RUNS},
    {"curve", "FILE", tool_set_text, AT(curve),
     .help = "write step, bytes, result, loss and seconds of the first seed",
     .of = ONE},
    {"record", "FOLDER", tool_set_text, AT(record),
     .help = "write rank 0's gradients of steps 1, 2, 4, 7, 11, …", .of = FIT},
    {"progress", "HOW", tool_set_choice, AT(progress),
     .help = "rewrite one line, lines, none or auto",
     .words = "auto rewrite lines none", .of = RUNS},
    {"out", "FOLDER", tool_set_text, AT(out),
     .help = "with compare: write tables and plots", .of = COMPARE},
    {"quick", NULL, tool_set_switch, AT(quick),
     .help = "with compare: one seed, few steps", .of = COMPARE},
};

static const struct tool_command train_command = {
    .name = "trib-train",
    .usage =
        "trib-train - train a model by any strategy, over any transport\n\n"
        "    trib-train TASK [OPTION]…                     one training: a table of "
        "one row\n"
        "    trib-train compare [TASK|ROW]… [OPTION]…      several, compared\n"
        "    trib-train list                               tasks, strategies, codecs, "
        "rows\n",
    .ending = "example: trib-train cnn -n 4 --strategy pipe:width=2+int8\n"
              "exit code: 0 done; 1 failed; 2 wrong arguments",
    .options = options,
    .n_options = sizeof(options) / sizeof(*options),
    .modes = modes,
    .given = AT(given),
    .word = take_word,
    .words = "compare list"
#define TASK(name, ...) " " name
#include "train/tasks/tasks.def"
#undef TASK
    ,
};

__attribute__((format(printf, 1, 2))) static int wrong(const char *format, ...)
{
    va_list list;

    fputs("trib-train: ", stderr);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputs("; see trib-train --help\n", stderr);
    return 2;
}

static enum mode mode_of(const struct train_args *args)
{
    if (strcmp(args->word[0], "list") == 0)
        return MODE_LIST;
    if (strcmp(args->word[0], "compare") == 0)
        return args->n_words == 2 && strcmp(args->word[1], "stragglers") == 0
                   ? MODE_STRAGGLERS
                   : MODE_ROWS;
    return args->code ? MODE_CODE : args->kind ? MODE_KIND : MODE_FIT;
}

/* Refuse --until first where ranks wait for each other, or with a curve or record,
 * whose points need all ranks. */
static int check_until(const struct train_args *args)
{
    const char *strategy = args->strategy ? args->strategy : "";

    if (!args->until_first)
        return -1;
    if (args->curve || args->record)
        return wrong("--until first is only for a single training by a strategy, "
                     "without a curve or record");
    if (strcspn(strategy, ":+") == 3 && strncmp(strategy, "agp", 3) == 0)
        return -1;
    if (strcspn(strategy, ":+") == 8 && strncmp(strategy, "downpour", 8) == 0)
        return -1;
    return wrong(
        "--until first is for strategies whose ranks never wait for each other: "
        "agp and downpour");
}

/* Apply --replicas: "threads:shares=8" becomes "threads:4,shares=8"; other kinds start
 * processes. */
static int place_replicas(struct train_args *args)
{
    static const char threads[] = "threads";
    const size_t n = sizeof(threads) - 1;

    if (!args->replicas)
        return -1;
    if (args->ranks)
        return wrong("use either --replicas or --ranks, not both");
    if (strncmp(args->kind, "one", 3) == 0)
        return args->replicas == 1 ? -1 : wrong("--kind one has one replica");
    if (strncmp(args->kind, threads, n) != 0) {
        args->ranks = args->replicas;
        return -1;
    }
    snprintf(args->threads, sizeof(args->threads), "threads:%d%s%s", args->replicas,
             args->kind[n] ? "," : "", args->kind[n] ? args->kind + n + 1 : "");
    return -1;
}

int train_args_parse(int argc, char **argv, struct train_args *args_out)
{
    struct train_args args = {.feed = -1, .seed = 1, .bind = TOOL_BIND_AUTO};
    int code = tool_parse_program(&train_command, argc, argv, &args, stderr);

    if (code >= 0)
        return code;
    if (args.epochs && args.steps)
        return wrong("use either --epochs or --steps, not both");
    if (args.n_words == 0)
        return wrong("name a task, such as trib-train mlp -n 4");
    if (!tool_check_mode(&train_command, &args, mode_of(&args), stderr))
        return 2;
    code = check_until(&args);
    if (code < 0)
        code = place_replicas(&args);
    if (code < 0 && args.bind != TOOL_BIND_AUTO && !args.ranks &&
        mode_of(&args) <= MODE_KIND)
        return wrong("--bind needs --ranks: it places the ranks that --ranks starts");

    *args_out = args;
    if (args.threads[0])
        args_out->kind = args_out->threads;
    return code;
}

void train_what(const struct train_args *args, char *text, size_t bytes)
{
    const char *strategy = args->strategy ? args->strategy : args->kind ? "" : "sync";
    const bool both = args->kind && args->strategy;

    if (args->code) {
        snprintf(text, bytes, "code %s", args->code);
        return;
    }
    snprintf(text, bytes, "%s%s%s%s%s%s%s%s%s", args->kind ? args->kind : "",
             both ? " " : "", strategy, args->codec ? "+" : "",
             args->codec ? args->codec : "", args->feedback ? " " : "",
             args->feedback ? args->feedback : "", args->parts ? " " : "",
             args->parts ? args->parts : "");
}
