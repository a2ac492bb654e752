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
 * tmpi_failed - tell the error handler of the communicator, as MPI does.
 *
 * The class of the code is MPI's own for wrong arguments, memory, and ranks that
 * disagree. MPI_Error_string of the code gives the library's sentence. Where the
 * handler ends the program, or MPI has no text for the code, it goes to standard error.
 * returns  the code, where the handler returns
 */
int tmpi_failed(struct tmpi_attached *a, trib_status_t status);

#endif
