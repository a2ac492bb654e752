/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Orthonormalisation of columns, for PowerSGD (Vogels, Karimireddy, Jaggi, NeurIPS
 * 2019, algorithm 1).
 */
#ifndef COMPRESS_MODELS_ORTHONORMAL_H
#define COMPRESS_MODELS_ORTHONORMAL_H

#include <stddef.h>

/**
 * trib_orthonormalise - replace the columns of a matrix by orthonormal ones of the same
 * span.
 *
 * Modified Gram-Schmidt, applied twice, in double, in a machine-independent order: the
 * same bits everywhere. Column j depends on columns 0 … j. It becomes 0 if it was 0, if
 * all but 2^-20 of it lies in the span of the previous columns, or if it has NaN or
 * Inf; later columns are then not affected.
 * x        rows x cols, row-major, contiguous
 * work     rows * cols doubles
 * returns  the number of non-zero columns: the rank
 */
size_t trib_orthonormalise(float *x, size_t rows, size_t cols, double *work);

#endif
