/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A training: what one rank does of it, and what all know at its end.
 */
#ifndef TRAIN_PROGRAM_TRAIN_RUN_H
#define TRAIN_PROGRAM_TRAIN_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "train/program/train_args.h"
#include "train/tasks/task.h"

enum { TRAIN_POINTS_MAX = 64, TRAIN_TEXT_MAX = 512 };

/* The model behind some step. */
struct train_point {
    double step;
    double wire_bytes; /* that rank 0 has sent so far */
    double seconds; /* of steps so far, without evaluations */
    double value, loss;
};

/* What a training gave; bytes and times are means over the ranks. */
struct train_result {
    double value; /* accuracy in percent, or perplexity */
    double steps, params, ranks;
    double rounds; /* communications */
    double seconds; /* of the steps that are timed: all, or from timed_from on */
    double hidden; /* share of the steps in which no rank was in the library */
    double wire_bytes; /* that a rank sent */
    double message_ratio; /* dense gradients of all steps / code words of own vectors */
    double wire_ratio; /* what dense all-reduces would have sent / what was sent */
    double gradient_error; /* of --code: largest |decoded - plain| / |plain| */
    double encoded_bytes; /* that all ranks fetched to encode the samples */
    double encoded_ratio; /* the same by what MDS fetches */
    double waited; /* ranks that had answered when a product was done */
    double samples_s; /* samples a second of all ranks; 0: not wanted */
    uint64_t hash; /* of the parameters */
    bool identical; /* on all ranks */
    int n_points;
    struct train_point points[TRAIN_POINTS_MAX];
};

struct train_rendezvous;

/* What the ranks of a training share. */
struct train_job {
    const struct train_args *args;
    const struct task_row *task;
    const char *title; /* before the line of progress */
    struct train_result *results; /* [seeds] in memory that rank 0 shares with the
                                   * process that started it */
    int seeds;
    struct train_rendezvous
        *rendezvous; /* of --join; NULL: all ranks are there at first */
    bool watched; /* points are wanted */
    size_t first_point; /* step of the first one */
    bool paced; /* samples a second are wanted, of ranks that share a clock */
    size_t timed_from; /* seconds and the hidden share are of the steps from this on */
};

/**
 * train_rank - be a rank of a training, with each seed in turn.
 *
 * rank     -1: environment or launcher say
 * root     where the ranks meet; NULL likewise
 * told     called on rank 0 when all is done; not 0: it failed
 * returns  the exit code; what failed has been said on standard error
 */
int train_rank(const struct train_job *job, int rank, const char *root,
               int (*told)(const struct train_job *job));

#endif
