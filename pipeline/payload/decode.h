/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decodes the result of a chunk.
 */
#ifndef PIPELINE_PAYLOAD_DECODE_H
#define PIPELINE_PAYLOAD_DECODE_H

#include "pipeline/engine/chunk.h"

/** trib_coded_to_elements - decode a code word to n elements; zeros: x is all 0
 * before. */
trib_status_t trib_coded_to_elements(const struct trib_run *run,
                                     struct trib_encoded word, bool zeros, float *x,
                                     size_t n);

/** trib_coded_to_acc - decode a code word to the accumulator of the chunk. */
trib_status_t trib_coded_to_acc(struct trib_engine *e, struct trib_run *run,
                               const struct trib_chunk *c, const uint8_t *word,
                               size_t len);

/** trib_coded_divide - divides a merged sum, or of it the marked elements alone (marks
 * may be NULL): the others are 0. */
void trib_coded_divide(const struct trib_engine *e, float *acc, size_t n, float divisor,
                       const uint64_t *marks);

#endif
