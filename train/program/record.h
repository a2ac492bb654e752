/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gradients kept in files, as one rank computed them: before any sum, before any codec.
 *
 * A file is named gradient-STEP.f32 and holds the whole vector as float32,
 * little-endian, in the order of the task's parameters.
 */
#ifndef TRAIN_PROGRAM_RECORD_H
#define TRAIN_PROGRAM_RECORD_H

#include <stddef.h>

struct record {
    const char *folder; /* NULL: nothing is kept */
    size_t n; /* elements of a gradient */
    float *gradient;
};

/**
 * record_open - make room for a gradient, and the folder where it is missing.
 *
 * folder   kept by the caller; NULL: nothing will be kept
 * errors   -1: no memory, or no folder: `error` receives a sentence
 */
int record_open(struct record *record, const char *folder, size_t n, char *error,
                size_t bytes);

/** record_piece - elements [first, first + count) of the gradient are final. */
void record_piece(struct record *record, const float *gradient, size_t first,
                  size_t count);

/** record_write - the file of a step, whose pieces were all given; -1 after a
 * sentence. */
int record_write(const struct record *record, size_t step);

void record_close(struct record *record);

#endif
