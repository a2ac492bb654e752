/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRIB_EXAMPLES_TRAIN_OPTIONS_H
#define TRIB_EXAMPLES_TRAIN_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

/* How standard error shows where the run is. */
enum train_progress {
    TRAIN_PROGRESS_AUTO, /* as REWRITE where it is a terminal, else as LINES */
    TRAIN_PROGRESS_REWRITE, /* one line, overwritten */
    TRAIN_PROGRESS_LINES, /* a line every two seconds */
    TRAIN_PROGRESS_NONE,
};

/* The command line of `train`. Strings belong to argv. */
struct train_options {
    const char *codec;
    const char *data; /* folder of the data set */
    const char *csv; /* NULL: no file */
    const char *record; /* folder for gradients; NULL: none */
    const char *summary; /* NULL: no file */
    size_t steps; /* 0: as epochs say */
    size_t epochs;
    size_t batch; /* samples of one rank */
    float rate; /* highest learning rate */
    float momentum;
    uint64_t seed;
    enum train_progress progress;
};

/**
 * train_options_parse - read the command line.
 *
 * returns  0; 1 after --help; -1 after a wrong word, said on standard error
 */
int train_options_parse(int argc, char **argv, struct train_options *options_out);

#endif
