/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A training: the work of one rank, and the results.
 */
#ifndef TRAIN_PROGRAM_TRAIN_RUN_H
#define TRAIN_PROGRAM_TRAIN_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "train/program/train_args.h"
#include "train/tasks/task.h"

enum { TRAIN_POINTS_MAX = 64, TRAIN_TEXT_MAX = 512 };

/* The model after a step. */
struct train_point {
    double step;
    double wire_bytes; /* sent by rank 0 so far */
    double seconds; /* spent in steps so far, without evaluations */
    double value, loss;
};

/* The result of a training; bytes and times are means over the ranks. */
struct train_result {
    double value; /* accuracy in percent, or perplexity */
    double steps, params, ranks;
    double rounds; /* number of communications */
    double seconds; /* of the timed steps: all, or from timed_from on */
    double hidden; /* share of step time outside of communication calls */
    double wire_bytes; /* sent per rank */
    /* dense gradient bytes of all steps / encoded bytes of local vectors */
    double message_ratio;
    double wire_ratio; /* bytes of dense ring all-reduces / bytes sent */
    double gradient_error; /* of --code: largest |decoded - plain| / |plain| */
    double encoded_bytes; /* fetched by all ranks to encode the samples */
    double encoded_ratio; /* encoded_bytes / the bytes that MDS would fetch */
    double waited; /* ranks that had answered when a product was decoded, mean */
    double samples_s; /* samples per second of all ranks; 0: not measured */
    uint64_t hash; /* of the parameters */
    bool identical; /* all ranks have the same model */
    int n_points;
    struct train_point points[TRAIN_POINTS_MAX];
};

struct train_rendezvous;

/* Description of a training, shared by its ranks. */
struct train_job {
    const struct train_args *args;
    const struct task_row *task;
    const char *title; /* shown in the progress line */
    /* [seeds] shared memory of rank 0 and the process that started it */
    struct train_result *results;
    int seeds;
    /* for --join; NULL: all ranks start at once */
    struct train_rendezvous *rendezvous;
    bool watched; /* record points */
    size_t first_point; /* step of the first point */
    bool paced; /* measure samples per second; the ranks share a clock */
    size_t timed_from; /* first step of seconds and hidden */
};

/**
 * train_rank - run a rank of a training, for each seed in turn.
 *
 * rank     -1: from the environment or launcher
 * root     rendezvous address; NULL: from the environment or launcher
 * report   called on rank 0 after the last seed; non-zero: failed
 * returns  the exit code; errors have been reported on standard error
 */
int train_rank(const struct train_job *job, int rank, const char *root,
               int (*report)(const struct train_job *job));

#endif
