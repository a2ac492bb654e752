/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decodes the result of a chunk.
 */
#ifndef PIPELINE_PAYLOAD_DECODE_H
#define PIPELINE_PAYLOAD_DECODE_H

#include "pipeline/run/chunk.h"

/** trib_coded_to_elements - decode an encoded chunk to n elements; zeros: x is all 0 at
 * entry. */
trib_status_t trib_coded_to_elements(const struct trib_run *run,
                                     struct trib_encoded word, bool zeros, float *x,
                                     size_t n);

/** trib_coded_to_acc - decode an encoded chunk to the accumulator of the chunk. */
trib_status_t trib_coded_to_acc(struct trib_engine *e, struct trib_run *run,
                               const struct trib_chunk *c, const uint8_t *word,
                               size_t len);

/** trib_coded_divide - divide a merged sum. With marks (may be NULL) divide only the
 * marked elements: the others are 0. */
void trib_coded_divide(const struct trib_engine *e, float *acc, size_t n, float divisor,
                       const uint64_t *marks);

#endif
