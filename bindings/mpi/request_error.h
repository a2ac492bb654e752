/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Errors of requests whose operation has failed in the library.
 *
 * For MPI these are generalised requests without a communicator: on an error MPI would
 * call the handler of MPI_COMM_WORLD. The error is therefore hidden from MPI. After MPI
 * has returned, the function that completes the request calls the handler of its
 * communicator. It holds no lock then: the handler may leave by longjmp or by an
 * exception.
 */
#ifndef BINDINGS_MPI_REQUEST_ERROR_H
#define BINDINGS_MPI_REQUEST_ERROR_H

#include <mpi.h>

/** tmpi_completion_begins - before a call of an MPI function that completes or queries
 * requests. One of the functions below must follow. */
void tmpi_completion_begins(void);

/**
 * tmpi_completion_fails - record a failed request, inside such an MPI function.
 *
 * status   of the request; marked as failed
 * returns  the code for MPI: MPI_SUCCESS; the error code if called outside of such a
 *          function
 */
int tmpi_completion_fails(MPI_Comm comm, int code, MPI_Status *status);

/**
 * tmpi_completed_one, tmpi_completed_some - call the error handler of the first failed
 * request.
 *
 * result    return code of the MPI function
 * status    or MPI_STATUS_IGNORE
 * n         number of statuses written by MPI
 * statuses  [*n] or MPI_STATUSES_IGNORE; their MPI_ERROR receives the codes
 * returns   the program's error code; MPI_ERR_IN_STATUS for several requests
 */
int tmpi_completed_one(int result, MPI_Status *status);
int tmpi_completed_some(int result, const int *n, MPI_Status *statuses);

/** tmpi_completion_seen - the same for a query: statuses receive the codes, and the
 * error handler is called when the requests are completed. */
int tmpi_completion_seen(int result, const int *n, MPI_Status *statuses);

#endif
