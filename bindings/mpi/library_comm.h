/* SPDX-License-Identifier: BSD-3-Clause */
/* Creates the library communicator of an MPI communicator. */
#ifndef BINDINGS_MPI_LIBRARY_COMM_H
#define BINDINGS_MPI_LIBRARY_COMM_H

#include "bindings/mpi/attached.h"

/** tmpi_has_outsiders - return true if a process is not in this MPI_COMM_WORLD. Spawned
 * or connected processes may run without this module. All members decide alike: in two
 * worlds, each sees the other's members as outsiders. */
bool tmpi_has_outsiders(const struct tmpi_attached *a);

/** tmpi_library_comm_make - create a->comm, or set a->never. Collective over a->handle,
 * with the same result on all its ranks. */
void tmpi_library_comm_make(struct tmpi_attached *a);

#endif
