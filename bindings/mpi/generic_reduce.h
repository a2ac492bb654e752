/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions that the library cannot do: user-defined operators, and datatypes such as
 * value-index pairs. All ranks' elements are gathered, then reduced by MPI_Reduce_local
 * in rank order, as non-commutative operators require. */
#ifndef BINDINGS_MPI_GENERIC_REDUCE_H
#define BINDINGS_MPI_GENERIC_REDUCE_H

#include "bindings/mpi/attached.h"

enum { TMPI_GENERIC_BYTES = 64 << 10 }; /* limit for the elements of all ranks */

/**
 * tmpi_generic_reduce - reduce into recv on `root`; on all ranks if root is negative.
 *
 * send     MPI_IN_PLACE is allowed on ranks with a result
 * mpi_out  MPI's error, if it refuses the operator or datatype
 */
trib_status_t tmpi_generic_reduce(struct tmpi_attached *a, const void *send, void *recv,
                                  int count, MPI_Datatype type, MPI_Op op, int root,
                                  int *mpi_out);

#endif
