/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Percentages of the run in texts of codecs and feedback, replaced by numbers of
 * starts: "lgc: dense=4%,train=13%" of 1170 rounds becomes "lgc:dense=47,train=152".
 */
#ifndef TRAIN_TRAINER_RUN_SHARE_H
#define TRAIN_TRAINER_RUN_SHARE_H

#include <stdint.h>

#include <tributary/status.h>

struct trib_error;

/**
 * trib_train_run_share - return a copy of the text, with a whole number of at least 1
 * in place of each percentage.
 *
 * text     NULL: *out becomes NULL
 * rounds   sums in the run; 0: unknown
 * owner    the caller frees *out
 * errors   TRIB_ERR_INVALID: a percentage, but rounds are unknown; no memory
 */
trib_status_t trib_train_run_share(const char *text, uint64_t rounds,
                                   struct trib_error *err, char **out);

#endif
