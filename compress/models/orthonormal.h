/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Orthonormal columns, for PowerSGD (Vogels, Karimireddy, Jaggi, NeurIPS 2019,
 * algorithm 1).
 */
#ifndef COMPRESS_MODELS_ORTHONORMAL_H
#define COMPRESS_MODELS_ORTHONORMAL_H

#include <stddef.h>

/**
 * trib_orthonormalise - replace the columns of a matrix by orthonormal ones of the same
 * span.
 *
 * Modified Gram-Schmidt, twice, in double, in an order that does not depend on the
 * machine: the same bits everywhere. Column j is made of columns 0 … j. It becomes 0
 * where it was 0, where all but 2^-20 of it lies in the span of the columns before it,
 * and where it has a NaN or an Inf; columns behind it take no notice.
 *
 * x        rows x cols, row-major, without gaps
 * work     rows * cols doubles
 * returns  how many columns are not 0: the rank
 */
size_t trib_orthonormalise(float *x, size_t rows, size_t cols, double *work);

#endif
