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

#include "tools/bind.h"

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
    uint64_t given; /* options, by their rows */
    const char *strategy, *codec, *feedback, *optimizer, *rate, *parts;
    const char *code; /* NULL: a trainer */
    const char *kind; /* of replicas; NULL: a trainer on each rank */
    char threads[128]; /* what kind points to where --replicas are threads */
    int replicas; /* 0: as kind and ranks say */
    const char *data, *transport, *service;
    struct mnist_kept *kept; /* for the images, once read; NULL: each rank reads */
    const char *service_auth; /* as TRIB_SERVICE_AUTH; NULL: as that says */
    const char *link[TRAIN_LINKS_MAX]; /* rates at which ranks are hosts of their own */
    int n_links;
    const char *csv, *json, *curve, *record, *out;
    int feed; /* a trib_feed_t; -1: as the feedback allows */
    enum train_progress progress;
    size_t batch, epochs, steps; /* 0: not given */
    enum tool_bind bind; /* of the ranks that are started */
    int ranks; /* 0: a launcher has started them, or there is one */
    int seeds;
    uint64_t seed;
    double compute_ms; /* that a gradient takes at least; 0: what it takes */
    double straggle,
        straggle_times; /* probability of a slow step, and how slow it is */
    int partitions; /* of code; 0: by the ranks */
    bool leave;
    int leave_rank;
    size_t leave_step, join; /* steps of code; join 0: none */
    int slow_rank; /* whose steps all take slow_times as long */
    double slow_times; /* 0: none's */
    bool until_first; /* all end once one rank has taken its steps */
    bool quick;
    const char *word[TRAIN_WORDS_MAX]; /* what is no option */
    int n_words;
};

/**
 * train_args_parse - read the command line.
 *
 * returns  -1: go on; 0 after --help or --version; 2 after a sentence on standard error
 */
int train_args_parse(int argc, char **argv, struct train_args *args_out);

/** train_what - strategy, codec, feedback and parts, as a line of a table says them. */
void train_what(const struct train_args *args, char *text, size_t bytes);

#endif
