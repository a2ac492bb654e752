/* SPDX-License-Identifier: BSD-3-Clause */
/* Decode products from the answers of some ranks. */
#ifndef TRAIN_CODED_CODED_DECODE_H
#define TRAIN_CODED_CODED_DECODE_H

#include <stdbool.h>
#include <stddef.h>

#include "train/coded/code_layout.h"

/**
 * trib_coded_decode - compute the products of all partitions.
 *
 * here     [ranks] ranks that have answered; they suffice (trib_code_layout_lacks)
 * y        [n_blocks * rows] answers, in the order of the blocks
 * z        [parts * rows]
 * solved_out  true if a partition's own answer was missing
 * returns  false: no memory
 */
bool trib_coded_decode(const struct trib_code_layout *l, const bool *here,
                       const double *y, size_t rows, float *z, bool *solved_out);

#endif
