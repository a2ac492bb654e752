/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line of trib-train.
 */
#ifndef TRAIN_PROGRAM_TRAIN_ARGS_H
#define TRAIN_PROGRAM_TRAIN_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/train.h>

#include "tools/common/bind.h"

enum {
    TRAIN_SEEDS_MAX = 16,
    TRAIN_WORDS_MAX = 64,
    TRAIN_LINKS_MAX = 8,
    TRAIN_RANKS_MAX = 256,
};

enum train_progress {
    TRAIN_PROGRESS_AUTO, /* REWRITE on a terminal, LINES elsewhere */
    TRAIN_PROGRESS_REWRITE,
    TRAIN_PROGRESS_LINES,
    TRAIN_PROGRESS_NONE,
};

/* Texts point into argv; NULL: not given. */
struct train_args {
    uint64_t given; /* bit set of given options, by row */
    const char *strategy, *codec, *feedback, *optimizer, *rate, *parts;
    const char *code; /* NULL: not --code */
    const char *kind; /* of replicas; NULL: one trainer per rank */
    char threads[128]; /* the text of kind, if --replicas are threads */
    int replicas; /* 0: determined by kind and ranks */
    const char *data, *transport, *service;
    struct mnist_kept *kept; /* images that are read once; NULL: each rank reads them */
    const char *service_auth; /* as TRIB_SERVICE_AUTH; NULL: keep that setting */
    const char *link[TRAIN_LINKS_MAX]; /* link rates of simulated hosts */
    int n_links;
    const char *csv, *json, *curve, *record, *out;
    int feed; /* a trib_feed_t; -1: derived from the feedback */
    enum train_progress progress;
    size_t batch, epochs, steps; /* 0: not given */
    enum tool_bind bind; /* of started ranks */
    int ranks; /* 0: a launcher has started the ranks, or there is one */
    int seeds;
    uint64_t seed;
    double compute_ms; /* minimum time of a gradient; 0: none */
    double straggle, straggle_times; /* probability of a slow step, and its factor */
    int partitions; /* of --code; 0: derived from the ranks */
    bool leave;
    int leave_rank;
    size_t leave_step, join; /* steps of --code; join 0: none */
    int slow_rank; /* all its steps take slow_times as long */
    double slow_times; /* 0: no slow rank */
    bool until_first; /* all ranks stop after the first has taken its steps */
    bool quick;
    const char *word[TRAIN_WORDS_MAX]; /* words that are not options */
    int n_words;
};

/**
 * train_args_parse - parse the command line.
 *
 * returns  -1: continue; 0 after --help or --version; 2 after an error message on
 *          standard error
 */
int train_args_parse(int argc, char **argv, struct train_args *args_out);

/** train_what - format strategy, codec, feedback and parts for a table. */
void train_what(const struct train_args *args, char *text, size_t bytes);

#endif
