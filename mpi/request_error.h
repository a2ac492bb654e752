/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Errors of requests whose operation the library could not do.
 *
 * To MPI they are generalised requests, which belong to no communicator: for an error
 * MPI would call the handler of MPI_COMM_WORLD. So MPI learns of none. The function
 * that completes the request calls the handler of the communicator once MPI has
 * returned, without a lock: the handler may leave by a jump or an exception.
 */
#ifndef MPI_REQUEST_ERROR_H
#define MPI_REQUEST_ERROR_H

#include <mpi.h>

/** tmpi_completion_begins - this thread calls a function of MPI that completes requests
 * or looks at them; one of the functions below ends that. */
void tmpi_completion_begins(void);

/**
 * tmpi_completion_fails - within such a function: a request has failed.
 *
 * status   of the request; marked
 * returns  what MPI gets to know: MPI_SUCCESS, or else the code, outside of such a call
 */
int tmpi_completion_fails(MPI_Comm comm, int code, MPI_Status *status);

/**
 * tmpi_completed_one, tmpi_completed_some - call the error handler of the first request
 * that has failed.
 *
 * result    of the function of MPI
 * status    or MPI_STATUS_IGNORE
 * n         number of statuses that MPI has written by then
 * statuses  [*n] or MPI_STATUSES_IGNORE; get the codes in MPI_ERROR
 * returns   what the program gets: the code; of some requests MPI_ERR_IN_STATUS
 */
int tmpi_completed_one(int result, MPI_Status *status);
int tmpi_completed_some(int result, const int *n, MPI_Status *statuses);

/** tmpi_completion_seen - the same, where the program keeps the requests: statuses get
 * the codes, and the error comes when the requests are completed. */
int tmpi_completion_seen(int result, const int *n, MPI_Status *statuses);

#endif
