/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codec auto: sample a plan's input and measure each candidate on the sample. Each rank
 * writes its figures into a vector of floats, and the sum over all ranks gives all of
 * them the same figures.
 */
#ifndef COMM_AUTO_AUTO_TRIAL_H
#define COMM_AUTO_AUTO_TRIAL_H

#include <tributary/types.h>

#include "comm/plan/auto_choice.h"

struct trib_auto_trial;
struct trib_kernels;

/**
 * trib_auto_trial_create - create a trial for vectors of `count` floating-point
 * elements.
 *
 * choice   the candidates; outlives *out
 * kernels  outlives *out
 * errors   TRIB_ERR_NO_MEMORY
 * owner    free with trib_auto_trial_destroy, which accepts NULL
 */
trib_status_t trib_auto_trial_create(const struct trib_auto_choice *choice,
                                     size_t count, trib_dtype_t dtype,
                                     const struct trib_kernels *kernels,
                                     struct trib_auto_trial **out);
void trib_auto_trial_destroy(struct trib_auto_trial *trial);

/** trib_auto_trial_forget - begin a new, empty sample. */
void trib_auto_trial_forget(struct trib_auto_trial *trial);

/**
 * trib_auto_trial_take - copy the sampled elements of [first, first + count).
 *
 * input    the whole vector
 */
void trib_auto_trial_take(struct trib_auto_trial *trial, const void *input,
                          size_t first, size_t count);

/** trib_auto_trial_full - return true if the sample is complete. */
bool trib_auto_trial_full(const struct trib_auto_trial *trial);

/** trib_auto_trial_floats - return the length of the vector that ranks sum. */
size_t trib_auto_trial_floats(const struct trib_auto_trial *trial);

/**
 * trib_auto_trial_write - encode and decode the sample with each candidate, and write
 * this rank's figures.
 *
 * took_us  measured time of a start; 0: not measured
 * noise_us uncertainty of took_us
 * floats   [trib_auto_trial_floats]
 */
void trib_auto_trial_write(struct trib_auto_trial *trial, double took_us,
                           double noise_us, float *floats);

/** trib_auto_trial_read - update the choice from the sum of all ranks' figures. */
void trib_auto_trial_read(struct trib_auto_trial *trial, const float *floats,
                          struct trib_auto_choice *choice);

#endif
