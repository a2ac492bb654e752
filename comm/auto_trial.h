/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codec auto: a sample of a plan's input, and what each candidate makes of it. Each
 * rank writes its figures into a vector of floats; the sum of these over all ranks
 * gives all of them the same figures.
 */
#ifndef COMM_AUTO_TRIAL_H
#define COMM_AUTO_TRIAL_H

#include <tributary/types.h>

#include "comm/auto_choice.h"

struct trib_auto_trial;
struct trib_kernels;

/**
 * trib_auto_trial_create - for vectors of `count` elements of a floating-point dtype.
 *
 * choice   its candidates; outlives *out
 * kernels  outlives *out
 * errors   TRIB_ERR_NO_MEMORY
 * owner    trib_auto_trial_destroy; NULL is allowed there
 */
trib_status_t trib_auto_trial_create(const struct trib_auto_choice *choice,
                                     size_t count, trib_dtype_t dtype,
                                     const struct trib_kernels *kernels,
                                     struct trib_auto_trial **out);
void trib_auto_trial_destroy(struct trib_auto_trial *trial);

/** trib_auto_trial_forget - the next sample begins: nothing of it has been taken. */
void trib_auto_trial_forget(struct trib_auto_trial *trial);

/**
 * trib_auto_trial_take - take what the sample has of elements [first, first + count).
 *
 * input    the whole vector
 */
void trib_auto_trial_take(struct trib_auto_trial *trial, const void *input,
                          size_t first, size_t count);

/** trib_auto_trial_full - true if the whole sample was taken. */
bool trib_auto_trial_full(const struct trib_auto_trial *trial);

/** trib_auto_trial_floats - length of the vector that ranks sum. */
size_t trib_auto_trial_floats(const struct trib_auto_trial *trial);

/**
 * trib_auto_trial_write - this rank's figures: encode and decode the sample by each
 * candidate.
 *
 * took_us  a start as this rank has measured it; 0: it has not
 * noise_us by how much took_us may be off by chance
 * floats   [trib_auto_trial_floats]
 */
void trib_auto_trial_write(struct trib_auto_trial *trial, double took_us,
                           double noise_us, float *floats);

/** trib_auto_trial_read - take the sum of all ranks' figures into the choice. */
void trib_auto_trial_read(struct trib_auto_trial *trial, const float *floats,
                          struct trib_auto_choice *choice);

#endif
