/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failures of the library as errors of MPI.
 */
#ifndef MPI_FAILURE_CLASS_H
#define MPI_FAILURE_CLASS_H

#include "mpi/attached.h"

/* A status of the module itself: it has no memory. The library knows nothing of it. */
enum { TMPI_NO_MEMORY = -1000 };

/**
 * tmpi_failure_code - the code of MPI for a failure of the library.
 *
 * The class of the code is MPI's own for wrong arguments, memory, and ranks that
 * disagree. MPI_Error_string of the code gives the library's sentence. Where the error
 * handler of the communicator ends the program, or MPI has no text for the code, the
 * sentence goes to standard error. Calls no code of the program.
 */
int tmpi_failure_code(const struct tmpi_attached *a, trib_status_t status);

/**
 * tmpi_failed - call the error handler of the communicator with that code, as MPI does.
 *
 * The handler may leave by a jump or an exception: no lock may be held.
 * returns  the code, where the handler returns
 */
int tmpi_failed(const struct tmpi_attached *a, trib_status_t status);

#endif
