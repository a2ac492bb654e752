/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks of contributions before they are summed (TRIB_CHECK). A bad gradient ends the
 * operation with the name of its rank, instead of a sum that is wrong everywhere.
 *
 * Each rank checks its own contribution. A rank also checks the contributions that it
 * receives as raw elements (trib_run_desc.gets_whole), because a rank may lie. That
 * check finds NaN and Inf only: a receiver sees single chunks, so the norm is known to
 * the sender alone.
 */
#ifndef PIPELINE_PAYLOAD_CHECK_H
#define PIPELINE_PAYLOAD_CHECK_H

#include "pipeline/run/chunk.h"

enum { TRIB_CHECK_TEXT_MAX = 48 };

/** trib_check_parse - parse "none", or a comma-separated list of "finite", "norm:X" and
 * "sum"; TRIB_ERR_CONFIG with an error message. */
trib_status_t trib_check_parse(const char *text, struct trib_error *err,
                               struct trib_check *out);

/** trib_check_first_bad - return the index of the first element that is NaN or Inf, or
 * n. Any alignment. */
size_t trib_check_first_bad(const struct trib_kernels *kernels, trib_dtype_t dtype,
                            const void *x, size_t n);

/** trib_check_squares - return the sum of the squares of n elements, in float64. */
double trib_check_squares(trib_dtype_t dtype, const struct trib_kernels *kernels,
                          const void *x, size_t n);

/**
 * trib_check_peer - check a peer's contribution to a chunk, if the plan requires it.
 *
 * returns  TRIB_ERR_INVALID if it is bad; the engine is then marked with an error
 *          message
 */
trib_status_t trib_check_peer(struct trib_engine *e, const struct trib_run *run,
                              const struct trib_chunk *c, int peer, const void *x);

#endif
