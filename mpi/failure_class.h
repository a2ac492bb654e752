/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failures of the library as errors of MPI.
 */
#ifndef MPI_FAILURE_CLASS_H
#define MPI_FAILURE_CLASS_H

#include "mpi/attached.h"

/**
 * tmpi_failed - tell the error handler of the communicator, as MPI does.
 *
 * MPI_Error_string of the code gives the library's sentence. Where the handler ends the
 * program, the sentence goes to standard error before.
 * returns  the code, where the handler returns
 */
int tmpi_failed(struct tmpi_attached *a, trib_status_t status);

#endif
