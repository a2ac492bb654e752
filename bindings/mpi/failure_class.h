/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps errors of the library to errors of MPI. */
#ifndef BINDINGS_MPI_FAILURE_CLASS_H
#define BINDINGS_MPI_FAILURE_CLASS_H

#include "bindings/mpi/attached.h"

/* Status of this module: out of memory. Not a status of the library. */
enum { TMPI_NO_MEMORY = -1000 };

/**
 * tmpi_failure_code - return the MPI error code for a library error.
 *
 * Its error class is MPI's own for invalid arguments, lack of memory, and ranks that
 * disagree. MPI_Error_string returns the library's message. The message goes to
 * standard error if the communicator's error handler ends the program or MPI cannot
 * store it. Calls no code of the program.
 */
int tmpi_failure_code(const struct tmpi_attached *a, trib_status_t status);

/**
 * tmpi_failed - call the communicator's error handler with that code, as MPI does.
 *
 * The handler may leave by longjmp or by an exception: the caller must hold no lock.
 * returns  the code, if the handler returns
 */
int tmpi_failed(const struct tmpi_attached *a, trib_status_t status);

#endif
