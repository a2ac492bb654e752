/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gradients of one rank in files, before any sum or codec.
 *
 * The file gradient-STEP.f32 holds the whole vector as float32, little-endian, in the
 * order of the task's parameters.
 */
#ifndef TRAIN_PROGRAM_RECORD_H
#define TRAIN_PROGRAM_RECORD_H

#include <stddef.h>

#include "base/error.h"

struct record {
    const char *folder; /* NULL: recording is off */
    size_t n; /* elements of a gradient */
    float *gradient;
};

/**
 * record_open - allocate a gradient, and create the folder if it is missing.
 *
 * folder   borrowed; NULL: recording is off
 * errors   TRIB_ERR_SYSTEM, TRIB_ERR_NO_MEMORY with an error message in err
 */
trib_status_t record_open(struct record *record, const char *folder, size_t n,
                          struct trib_error *err);

/** record_piece - copy the final elements [first, first + count) of the gradient. */
void record_piece(struct record *record, const float *gradient, size_t first,
                  size_t count);

/** record_write - write the file of a step after its last piece; -1 after an error
 * message. */
int record_write(const struct record *record, size_t step);

void record_close(struct record *record);

#endif
