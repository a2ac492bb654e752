/* SPDX-License-Identifier: BSD-3-Clause */
#include "examples/train_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: trib-run -n RANKS -- train [option]...\n"
    "Trains a small network on Fashion-MNIST; the ranks sum their gradients.\n"
    "\n"
    "  --codec TEXT     how gradients travel: none, bf16, topk:ratio=0.01, … [none]\n"
    "  --epochs N       passes over the training images [4]\n"
    "  --steps N        steps, instead of --epochs\n"
    "  --batch N        images of one rank and step [64]\n"
    "  --lr X           highest learning rate [0.06]\n"
    "  --momentum X     of gradient descent [0.9]\n"
    "  --seed N         of the first weights and the order of images [1]\n"
    "  --data FOLDER    of the data set [/usr/share/datasets/fashion-mnist]\n"
    "  --csv FILE       write accuracy over bytes sent\n"
    "  --record FOLDER  write rank 0's gradients of steps 1, 2, 4, 7, 11, … and the "
    "last\n"
    "  --summary FILE   write the result as lines \"name<TAB>value\"\n"
    "  --progress HOW   rewrite one line, lines, none or auto [auto]\n"
    "  --help\n";

enum option_id {
    OPT_CODEC = 256,
    OPT_EPOCHS,
    OPT_STEPS,
    OPT_BATCH,
    OPT_LR,
    OPT_MOMENTUM,
    OPT_SEED,
    OPT_DATA,
    OPT_CSV,
    OPT_RECORD,
    OPT_SUMMARY,
    OPT_PROGRESS,
    OPT_HELP,
};

static const struct option long_options[] = {
    {"codec", required_argument, NULL, OPT_CODEC},
    {"epochs", required_argument, NULL, OPT_EPOCHS},
    {"steps", required_argument, NULL, OPT_STEPS},
    {"batch", required_argument, NULL, OPT_BATCH},
    {"lr", required_argument, NULL, OPT_LR},
    {"momentum", required_argument, NULL, OPT_MOMENTUM},
    {"seed", required_argument, NULL, OPT_SEED},
    {"data", required_argument, NULL, OPT_DATA},
    {"csv", required_argument, NULL, OPT_CSV},
    {"record", required_argument, NULL, OPT_RECORD},
    {"summary", required_argument, NULL, OPT_SUMMARY},
    {"progress", required_argument, NULL, OPT_PROGRESS},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static int parse_count(const char *name, const char *text, size_t most, size_t *out)
{
    char *end;

    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || value == 0 ||
        value > most) {
        fprintf(stderr, "train: --%s %s: expected 1 to %zu\n", name, text, most);
        return -1;
    }
    *out = (size_t)value;
    return 0;
}

static int parse_real(const char *name, const char *text, float below, float *out)
{
    char *end;
    float value = strtof(text, &end);

    if (end == text || *end != '\0' || !(value >= 0.0f && value < below)) {
        fprintf(stderr, "train: --%s %s: expected at least 0 and below %g\n", name,
                text, (double)below);
        return -1;
    }
    *out = value;
    return 0;
}

static int parse_seed(const char *text, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 0);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0) {
        fprintf(stderr, "train: --seed %s: expected a whole number\n", text);
        return -1;
    }
    return 0;
}

static int parse_progress(const char *text, enum train_progress *out)
{
    static const char *const names[] = {
        [TRAIN_PROGRESS_AUTO] = "auto",
        [TRAIN_PROGRESS_REWRITE] = "rewrite",
        [TRAIN_PROGRESS_LINES] = "lines",
        [TRAIN_PROGRESS_NONE] = "none",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum train_progress)i;
            return 0;
        }
    }
    fprintf(stderr, "train: --progress %s: expected auto, rewrite, lines or none\n",
            text);
    return -1;
}

static int take_option(int id, const char *text, struct train_options *options)
{
    switch ((enum option_id)id) {
    case OPT_CODEC:
        options->codec = text;
        return 0;
    case OPT_DATA:
        options->data = text;
        return 0;
    case OPT_CSV:
        options->csv = text;
        return 0;
    case OPT_RECORD:
        options->record = text;
        return 0;
    case OPT_SUMMARY:
        options->summary = text;
        return 0;
    case OPT_EPOCHS:
        return parse_count("epochs", text, 10000, &options->epochs);
    case OPT_STEPS:
        return parse_count("steps", text, 100000000, &options->steps);
    case OPT_BATCH:
        return parse_count("batch", text, 4096, &options->batch);
    case OPT_LR:
        return parse_real("lr", text, 100.0f, &options->rate);
    case OPT_MOMENTUM:
        return parse_real("momentum", text, 1.0f, &options->momentum);
    case OPT_SEED:
        return parse_seed(text, &options->seed);
    case OPT_PROGRESS:
        return parse_progress(text, &options->progress);
    case OPT_HELP:
        fputs(usage, stdout);
        return 1;
    }
    fprintf(stderr, "train: see train --help\n");
    return -1;
}

int train_options_parse(int argc, char **argv, struct train_options *options_out)
{
    struct train_options options = {
        .codec = "none",
        .data = "/usr/share/datasets/fashion-mnist",
        .epochs = 4,
        .batch = 64,
        .rate = 0.06f,
        .momentum = 0.9f,
        .seed = 1,
    };
    int id;

    while ((id = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        int result = take_option(id, optarg, &options);

        if (result != 0)
            return result;
    }
    if (optind < argc) {
        fprintf(stderr, "train: unexpected word %s, see train --help\n", argv[optind]);
        return -1;
    }
    *options_out = options;
    return 0;
}
