/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions of which the library knows nothing: operators of the program, and
 * datatypes such as a value with its place. The elements of all ranks are gathered, and
 * MPI_Reduce_local puts them together in the order of ranks, so that operators which do
 * not commute are right.
 */
#ifndef MPI_GENERIC_REDUCE_H
#define MPI_GENERIC_REDUCE_H

#include "mpi/attached.h"

enum { TMPI_GENERIC_BYTES = 64 << 10 }; /* of all ranks together */

/**
 * tmpi_generic_reduce - into recv of `root`, or of all ranks if root is negative.
 *
 * send     may be MPI_IN_PLACE where there is a result
 * mpi_out  the error of MPI, if an operator or datatype is refused
 */
trib_status_t tmpi_generic_reduce(struct tmpi_attached *a, const void *send, void *recv,
                                  int count, MPI_Datatype type, MPI_Op op, int root,
                                  int *mpi_out);

#endif
