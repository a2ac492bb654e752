/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A check of contributions before they are summed (TRIB_CHECK): one bad gradient ends
 * the operation with the name of its rank, in place of a sum that is wrong everywhere.
 *
 * Each rank looks at its own. Whoever sums elements as they are, and gets contributions
 * and not sums of some (trib_run_desc.gathers), looks at those of all others as well: a
 * rank may lie. That look finds what is not finite; a norm is known to the sender
 * alone, as whoever sums sees chunks.
 */
#ifndef PIPELINE_PAYLOAD_CHECK_H
#define PIPELINE_PAYLOAD_CHECK_H

#include "pipeline/engine/chunk.h"

enum { TRIB_CHECK_TEXT_MAX = 48 };

/** trib_check_parse - parse "none", or some of "finite", "norm:X" and "sum" with commas
 * between them; TRIB_ERR_CONFIG with a sentence. */
trib_status_t trib_check_parse(const char *text, struct trib_error *err,
                               struct trib_check *out);

/** trib_check_first_bad - the index of the first element that is NaN or Inf; n if there
 * is none. Any alignment. */
size_t trib_check_first_bad(const struct trib_kernels *kernels, trib_dtype_t dtype,
                            const void *x, size_t n);

/** trib_check_squares - the sum of the squares of n elements, in float64. */
double trib_check_squares(trib_dtype_t dtype, const struct trib_kernels *kernels,
                          const void *x, size_t n);

/**
 * trib_check_peer - look at what a peer gave for a chunk, where that is asked for.
 *
 * returns  TRIB_ERR_INVALID: it is bad, and the engine is marked with a sentence
 */
trib_status_t trib_check_peer(struct trib_engine *e, const struct trib_run *run,
                              const struct trib_chunk *c, int peer, const void *x);

#endif
