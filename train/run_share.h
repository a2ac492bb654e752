/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts of codecs and feedback whose numbers of starts are shares of the run: "lgc:
 * dense=4%,train=13%" of 1170 rounds is "lgc:dense=47,train=152".
 */
#ifndef TRAIN_RUN_SHARE_H
#define TRAIN_RUN_SHARE_H

#include <stdint.h>

#include <tributary/status.h>

struct trib_error;

/**
 * trib_train_run_share - the text with a whole number, at least 1, for each percentage.
 *
 * text     NULL: *out becomes NULL
 * rounds   sums of the run; 0: not known
 * owner    the caller frees *out
 * errors   TRIB_ERR_INVALID: a percentage, and no rounds; no memory
 */
trib_status_t trib_train_run_share(const char *text, uint64_t rounds,
                                   struct trib_error *err, char **out);

#endif
