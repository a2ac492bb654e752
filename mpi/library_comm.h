/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library's communicator for one of MPI: which get one, and how it is made.
 */
#ifndef MPI_LIBRARY_COMM_H
#define MPI_LIBRARY_COMM_H

#include "mpi/attached.h"

/** tmpi_has_outsiders - true if a process is not of this MPI_COMM_WORLD: one that was
 * spawned or connected may run without this module. All members decide alike, as those
 * of two worlds see each other. */
bool tmpi_has_outsiders(const struct tmpi_attached *a);

/** tmpi_library_comm_make - make a->comm, or set a->never; collective over a->handle,
 * and the same on all its ranks. */
void tmpi_library_comm_make(struct tmpi_attached *a);

#endif
