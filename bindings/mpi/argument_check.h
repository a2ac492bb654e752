/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments that MPI refuses locally, before it sends anything. Such calls are left to
 * MPI, which reports the error, and are not counted. As in MPI, this rank's next call
 * then matches the call in which the other ranks wait. */
#ifndef BINDINGS_MPI_ARGUMENT_CHECK_H
#define BINDINGS_MPI_ARGUMENT_CHECK_H

#include <stdbool.h>

#include <mpi.h>

#include "bindings/mpi/count_list.h"

/** tmpi_root_is_valid - return true if the communicator has this rank. */
bool tmpi_root_is_valid(int root, MPI_Comm comm);

/** tmpi_buffer_is_valid - check a buffer that cannot be MPI_IN_PLACE. It may be NULL if
 * there are no elements, or if the datatype has absolute addresses (MPI_BOTTOM). */
bool tmpi_buffer_is_valid(const void *buffer, MPI_Count count, MPI_Datatype type);

/** tmpi_list_is_valid - the same for one block per rank. */
bool tmpi_list_is_valid(const void *buffer, const struct tmpi_list *list, int ranks,
                        MPI_Datatype type);

/**
 * tmpi_commit_type - commit a receive datatype, or either datatype of a scatter, if
 * needed.
 *
 * Open MPI accepts them uncommitted, and one rank may have forgotten to commit its own.
 * Committing makes this rank behave like the others.
 */
void tmpi_commit_type(MPI_Datatype type);

#endif
