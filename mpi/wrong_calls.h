/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arguments that MPI refuses on this rank, by itself and before it sends anything. Such
 * a call is MPI's, which has the error class and the text, and it is not counted: the
 * next call of this rank then belongs to the call in which the others wait, as in MPI.
 */
#ifndef MPI_WRONG_CALLS_H
#define MPI_WRONG_CALLS_H

#include <stdbool.h>

#include <mpi.h>

#include "mpi/count_list.h"

/** tmpi_root_is_right - true if the communicator has such a rank. */
bool tmpi_root_is_right(int root, MPI_Comm comm);

/** tmpi_buffer_is_right - of a buffer that may not be MPI_IN_PLACE. Without elements it
 * may be NULL; with a datatype of absolute addresses NULL is MPI_BOTTOM. */
bool tmpi_buffer_is_right(const void *buffer, MPI_Count count, MPI_Datatype type);

/** tmpi_list_is_right - the same for a block of each rank. */
bool tmpi_list_is_right(const void *buffer, const struct tmpi_list *list, int ranks,
                        MPI_Datatype type);

/**
 * tmpi_take_loose - of a datatype to which elements go, and both of a scatter.
 *
 * Open MPI takes them though they are not committed, which one rank may have forgotten:
 * they are committed here, so that this rank does as the others do.
 */
void tmpi_take_loose(MPI_Datatype type);

#endif
