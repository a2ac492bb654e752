/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/program/train_args.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tributary.h>

static const char help[] =
    "trib-train - train a model by any strategy, over any transport\n"
    "\n"
    "    trib-train TASK [option]...              one training: a table of one row\n"
    "    trib-train compare [TASK|ROW]... [option]...   many, side by side\n"
    "    trib-train list                          tasks, strategies, codecs, rows\n"
    "\n"
    "What is trained:\n"
    "      --strategy TEXT  sync, pipe:width=2+int8, sgp, ...; default: sync\n"
    "      --codec TEXT     of what is sent: topk:ratio=0.001+natural, ...\n"
    "      --feedback TEXT  what the codec does with its error\n"
    "      --parts TEXT     layers: each layer's weights as a part; or codecs of\n"
    "                       layers by name, as in conv=adacomp:bin=50;dense=int8\n"
    "      --optimizer TEXT sgd:momentum=0.9, adam, ...; default: the task's\n"
    "      --rate TEXT      a number, or linear:rate=0.1,warmup=0.05; default: the "
    "task's\n"
    "      --batch N        samples of a rank and step; default: the task's\n"
    "      --epochs N       passes over the data; default: 3\n"
    "      --steps N        steps, instead\n"
    "      --seed N         of first parameters, order of data, codecs; default: 1\n"
    "      --seeds N        so many trainings, from --seed on: mean and spread\n"
    "      --data PATH      folder or file of the data; default: where Debian has it\n"
    "      --feed HOW       of gradients: backward (by layers) or whole\n"
    "      --code TEXT      of logreg and svm: gradients of all samples that wait for\n"
    "                       no slow rank, by rlnc, mds, gradient:spare=1 or none\n"
    "      --partitions K   of the samples, each in a rank; default: 3/4 of the ranks\n"
    "      --kind TEXT      replicas that share batches: one, threads, workers, ps,\n"
    "                       hybrid:groups=2; shares=S: the same bits for any N\n"
    "      --replicas N     so many threads of --kind threads, or processes\n"
    "Where:\n"
    "  -n, --ranks N        start so many ranks on this host\n"
    "      --transport TEXT as TRIB_TRANSPORT\n"
    "      --service HOST:PORT  as TRIB_SERVICE: the tribd of ps, downpour, hybrid;\n"
    "                       in compare of those rows alone; default with -n: one of\n"
    "                       its own\n"
    "      --link RATE      make each rank a host with a link of RATE, such as\n"
    "                       1gbit: network namespaces, so root is needed\n"
    "      --compute-ms T   a gradient takes T ms at least: the rest is slept, as if\n"
    "                       an accelerator computed\n"
    "      --straggle P,X   a step takes X times as long with probability P\n"
    "      --leave R,S      of --code: rank R ends before step S, without a word\n"
    "      --join S         of --code: the last of the ranks comes before step S\n"
    "      --slow-rank R,X  all steps of rank R take X times as long\n"
    "      --until WHO      first: agp and downpour end with the first rank that has\n"
    "                       taken its steps; default: all\n"
    "What is told:\n"
    "      --csv FILE       the table; - is standard output\n"
    "      --json FILE      likewise\n"
    "      --curve FILE     of the first seed: step, bytes, result, loss, seconds\n"
    "      --record FOLDER  rank 0's gradients of steps 1, 2, 4, 7, 11, ...\n"
    "      --progress HOW   rewrite one line, lines, none or auto\n"
    "      --out FOLDER     of compare: its tables and pictures\n"
    "      --quick          of compare: one seed, few steps\n"
    "  -h, --help           this text\n"
    "  -V, --version        the version\n";

enum option_key {
    KEY_STRATEGY = 256,
    KEY_CODEC,
    KEY_FEEDBACK,
    KEY_PARTS,
    KEY_OPTIMIZER,
    KEY_RATE,
    KEY_BATCH,
    KEY_EPOCHS,
    KEY_STEPS,
    KEY_SEED,
    KEY_SEEDS,
    KEY_DATA,
    KEY_FEED,
    KEY_TRANSPORT,
    KEY_SERVICE,
    KEY_LINK,
    KEY_COMPUTE_MS,
    KEY_STRAGGLE,
    KEY_SLOW_RANK,
    KEY_UNTIL,
    KEY_CSV,
    KEY_JSON,
    KEY_CURVE,
    KEY_RECORD,
    KEY_PROGRESS,
    KEY_OUT,
    KEY_QUICK,
    KEY_CODE,
    KEY_PARTITIONS,
    KEY_LEAVE,
    KEY_JOIN,
    KEY_KIND,
    KEY_REPLICAS,
};

static const struct option long_options[] = {
    {"strategy", required_argument, NULL, KEY_STRATEGY},
    {"codec", required_argument, NULL, KEY_CODEC},
    {"feedback", required_argument, NULL, KEY_FEEDBACK},
    {"parts", required_argument, NULL, KEY_PARTS},
    {"optimizer", required_argument, NULL, KEY_OPTIMIZER},
    {"rate", required_argument, NULL, KEY_RATE},
    {"batch", required_argument, NULL, KEY_BATCH},
    {"epochs", required_argument, NULL, KEY_EPOCHS},
    {"steps", required_argument, NULL, KEY_STEPS},
    {"seed", required_argument, NULL, KEY_SEED},
    {"seeds", required_argument, NULL, KEY_SEEDS},
    {"data", required_argument, NULL, KEY_DATA},
    {"feed", required_argument, NULL, KEY_FEED},
    {"ranks", required_argument, NULL, 'n'},
    {"transport", required_argument, NULL, KEY_TRANSPORT},
    {"service", required_argument, NULL, KEY_SERVICE},
    {"link", required_argument, NULL, KEY_LINK},
    {"compute-ms", required_argument, NULL, KEY_COMPUTE_MS},
    {"straggle", required_argument, NULL, KEY_STRAGGLE},
    {"slow-rank", required_argument, NULL, KEY_SLOW_RANK},
    {"until", required_argument, NULL, KEY_UNTIL},
    {"csv", required_argument, NULL, KEY_CSV},
    {"json", required_argument, NULL, KEY_JSON},
    {"curve", required_argument, NULL, KEY_CURVE},
    {"record", required_argument, NULL, KEY_RECORD},
    {"progress", required_argument, NULL, KEY_PROGRESS},
    {"out", required_argument, NULL, KEY_OUT},
    {"quick", no_argument, NULL, KEY_QUICK},
    {"code", required_argument, NULL, KEY_CODE},
    {"partitions", required_argument, NULL, KEY_PARTITIONS},
    {"leave", required_argument, NULL, KEY_LEAVE},
    {"join", required_argument, NULL, KEY_JOIN},
    {"kind", required_argument, NULL, KEY_KIND},
    {"replicas", required_argument, NULL, KEY_REPLICAS},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
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

static int take_number(const char *name, const char *text, double least, double most,
                       double *out)
{
    char *end;

    errno = 0;
    *out = strtod(text, &end);
    if (errno == 0 && end != text && *end == '\0' && *out >= least && *out <= most)
        return -1;
    return wrong("--%s %s: expected a number from %g to %g", name, text, least, most);
}

static int take_count(const char *name, const char *text, double most, size_t *out)
{
    double number;
    int code = take_number(name, text, 1, most, &number);

    if (code < 0 && number != floor(number))
        code = wrong("--%s %s: expected a whole number", name, text);
    *out = code < 0 ? (size_t)number : 0;
    return code;
}

static int take_int(const char *name, const char *text, int most, int *out)
{
    size_t count;
    const int code = take_count(name, text, most, &count);

    *out = (int)count;
    return code;
}

static int take_seed(const char *text, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 10);
    if (errno == 0 && end != text && *end == '\0' && *text != '-' && *out > 0)
        return -1;
    return wrong("--seed %s: expected a whole number from 1", text);
}

/* Of names, whose list NULL ends, the place of text. */
static int take_name(const char *name, const char *text, const char *const *names,
                     int *out)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], text) == 0) {
            *out = i;
            return -1;
        }
    fprintf(stderr, "trib-train: --%s %s: expected", name, text);
    for (int i = 0; names[i]; i++)
        fprintf(stderr, "%s %s", i ? "," : "", names[i]);
    fputc('\n', stderr);
    return 2;
}

static int take_progress(const char *text, enum train_progress *out)
{
    static const char *const names[] = {"auto", "rewrite", "lines", "none", NULL};
    int place = 0;
    const int code = take_name("progress", text, names, &place);

    *out = (enum train_progress)place;
    return code;
}

static int take_feed(const char *text, int *out)
{
    static const char *const names[] = {"whole", "backward", NULL};
    int place = 0;
    const int code = take_name("feed", text, names, &place);

    *out = place ? TRIB_FEED_BACKWARD : TRIB_FEED_WHOLE;
    return code;
}

static int take_straggle(const char *text, struct train_args *args)
{
    int used = 0;

    if (sscanf(text, "%lf,%lf%n", &args->straggle, &args->straggle_times, &used) == 2 &&
        text[used] == '\0' && args->straggle >= 0 && args->straggle <= 1 &&
        args->straggle_times >= 1 && args->straggle_times <= 1e6)
        return -1;
    return wrong("--straggle %s: expected P,X, a probability from 0 to 1 and how many "
                 "times as long, from 1, as in 0.05,5",
                 text);
}

static int take_leave(const char *text, struct train_args *args)
{
    int used = 0;

    args->leave =
        sscanf(text, "%d,%zu%n", &args->leave_rank, &args->leave_step, &used) == 2 &&
        text[used] == '\0' && args->leave_rank >= 0;
    return args->leave ? -1
                       : wrong("--leave %s: expected R,S, a rank and the step before "
                               "which it ends, as in 3,20",
                               text);
}

static int take_slow_rank(const char *text, struct train_args *args)
{
    int used = 0;

    if (sscanf(text, "%d,%lf%n", &args->slow_rank, &args->slow_times, &used) == 2 &&
        text[used] == '\0' && args->slow_rank >= 0 && args->slow_times >= 1 &&
        args->slow_times <= 1e6)
        return -1;
    return wrong("--slow-rank %s: expected R,X, a rank and how many times as long its "
                 "steps take, from 1, as in 3,4",
                 text);
}

static int take_until(const char *text, struct train_args *args)
{
    args->until_first = strcmp(text, "first") == 0;
    if (args->until_first || strcmp(text, "all") == 0)
        return -1;
    return wrong("--until %s: expected first or all", text);
}

/* A rank that ends by itself leaves nobody waiting, and no point of a curve is then one
 * of all ranks. */
static int check_until(const struct train_args *args)
{
    const char *strategy = args->strategy ? args->strategy : "";

    if (!args->until_first)
        return -1;
    if (args->code || args->kind || args->curve || args->record ||
        strcmp(args->word[0], "compare") == 0)
        return wrong("--until first is for one training by a strategy, without a curve "
                     "or record");
    if (strcspn(strategy, ":+") == 3 && strncmp(strategy, "agp", 3) == 0)
        return -1;
    if (strcspn(strategy, ":+") == 8 && strncmp(strategy, "downpour", 8) == 0)
        return -1;
    return wrong(
        "--until first is for strategies whose ranks never wait for each other: "
        "agp and downpour");
}

static int take_link(const char *text, struct train_args *args)
{
    char *end;
    const double number = strtod(text, &end);

    if (end == text || !(number > 0) ||
        (strcmp(end, "gbit") != 0 && strcmp(end, "mbit") != 0))
        return wrong("--link %s: expected a rate such as 1gbit or 100mbit", text);
    if (args->n_links == TRAIN_LINKS_MAX)
        return wrong("--link: %d at most", TRAIN_LINKS_MAX);
    args->link[args->n_links++] = text;
    return -1;
}

/* The place of an option that is a text; NULL: it is another one. */
static const char **text_of(int key, struct train_args *args)
{
    switch (key) {
    case KEY_STRATEGY:
        return &args->strategy;
    case KEY_CODEC:
        return &args->codec;
    case KEY_FEEDBACK:
        return &args->feedback;
    case KEY_PARTS:
        return &args->parts;
    case KEY_OPTIMIZER:
        return &args->optimizer;
    case KEY_RATE:
        return &args->rate;
    case KEY_DATA:
        return &args->data;
    case KEY_TRANSPORT:
        return &args->transport;
    case KEY_SERVICE:
        return &args->service;
    case KEY_CSV:
        return &args->csv;
    case KEY_JSON:
        return &args->json;
    case KEY_CURVE:
        return &args->curve;
    case KEY_RECORD:
        return &args->record;
    case KEY_OUT:
        return &args->out;
    case KEY_CODE:
        return &args->code;
    case KEY_KIND:
        return &args->kind;
    default:
        return NULL;
    }
}

/* -1: go on; else the exit code. */
static int take_option(int key, const char *text, struct train_args *args)
{
    const char **to = text_of(key, args);

    if (to) {
        *to = text;
        return -1;
    }
    switch (key) {
    case 'h':
        fputs(help, stdout);
        return 0;
    case 'V':
        printf("trib-train %s\n", trib_version());
        return 0;
    case 'n':
        return take_int("ranks", text, TRAIN_RANKS_MAX, &args->ranks);
    case KEY_BATCH:
        return take_count("batch", text, 4096, &args->batch);
    case KEY_EPOCHS:
        return take_count("epochs", text, 10000, &args->epochs);
    case KEY_STEPS:
        return take_count("steps", text, 1e8, &args->steps);
    case KEY_SEED:
        return take_seed(text, &args->seed);
    case KEY_SEEDS:
        return take_int("seeds", text, TRAIN_SEEDS_MAX, &args->seeds);
    case KEY_FEED:
        return take_feed(text, &args->feed);
    case KEY_LINK:
        return take_link(text, args);
    case KEY_COMPUTE_MS:
        return take_number("compute-ms", text, 0, 60000, &args->compute_ms);
    case KEY_STRAGGLE:
        return take_straggle(text, args);
    case KEY_PARTITIONS:
        return take_int("partitions", text, TRAIN_RANKS_MAX, &args->partitions);
    case KEY_REPLICAS:
        return take_int("replicas", text, TRAIN_RANKS_MAX, &args->replicas);
    case KEY_LEAVE:
        return take_leave(text, args);
    case KEY_JOIN:
        return take_count("join", text, 1e8, &args->join);
    case KEY_SLOW_RANK:
        return take_slow_rank(text, args);
    case KEY_UNTIL:
        return take_until(text, args);
    case KEY_PROGRESS:
        return take_progress(text, &args->progress);
    case KEY_QUICK:
        args->quick = true;
        return -1;
    default:
        fputs("trib-train: see trib-train --help\n", stderr);
        return 2;
    }
}

/* So many threads, as "threads:shares=8" becomes "threads:4,shares=8"; or processes. */
static int place_replicas(struct train_args *args)
{
    static const char threads[] = "threads";
    const size_t n = sizeof(threads) - 1;

    if (!args->replicas)
        return -1;
    if (!args->kind)
        return wrong("--replicas are of a --kind");
    if (args->ranks)
        return wrong("--replicas and --ranks: one of both");
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
    static char name[] = "trib-train";
    struct train_args args = {.feed = -1, .seed = 1};
    int key;

    if (argc > 0)
        argv[0] = name; /* for getopt's complaints: no path */
    while ((key = getopt_long(argc, argv, "n:hV", long_options, NULL)) != -1) {
        const int code = take_option(key, optarg, &args);

        if (code >= 0)
            return code;
    }
    if (args.epochs && args.steps)
        return wrong("--epochs and --steps: one of both");
    if (!args.code && (args.partitions || args.leave || args.join))
        return wrong("--partitions, --leave and --join belong to --code");
    if (argc - optind > TRAIN_WORDS_MAX)
        return wrong("%d words are more than %d", argc - optind, TRAIN_WORDS_MAX);
    for (; optind < argc; optind++)
        args.word[args.n_words++] = argv[optind];
    if (args.n_words == 0)
        return wrong("say what to train, such as trib-train mlp -n 4");
    int code = check_until(&args);

    if (code < 0)
        code = place_replicas(&args);

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
