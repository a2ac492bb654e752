/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/request_error.h"

#include <limits.h>
#include <stdbool.h>

#include "bindings/mpi/next.h"

/* MPI_SOURCE of the status of a failed request; MPI_TAG then has the error code. */
enum { FAILED = INT_MIN + 1 };

static _Thread_local struct {
    int calls; /* depth of nested calls that complete requests */
    MPI_Comm comm; /* of the first failed request */
    int code; /* MPI_SUCCESS: none */
} now;

void tmpi_completion_begins(void)
{
    now.calls++;
}

int tmpi_completion_fails(MPI_Comm comm, int code, MPI_Status *status)
{
    if (now.calls == 0)
        return code;
    if (now.code == MPI_SUCCESS) {
        now.comm = comm;
        now.code = code;
    }
    status->MPI_SOURCE = FAILED;
    status->MPI_TAG = code;
    return MPI_SUCCESS;
}

/* Return and clear the code of the first failed request; MPI_SUCCESS: none. */
static int end_call(MPI_Comm *comm_out)
{
    const int code = now.code;

    now.calls--;
    now.code = MPI_SUCCESS;
    *comm_out = now.comm;
    return code;
}

static bool unmark(MPI_Status *status)
{
    if (status->MPI_SOURCE != FAILED)
        return false;
    status->MPI_ERROR = status->MPI_TAG;
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return true;
}

/* If MPI saw no error, it has not set MPI_ERROR. */
static void unmark_all(int result, int n, MPI_Status *statuses)
{
    if (statuses == MPI_STATUSES_IGNORE || statuses == MPI_STATUS_IGNORE)
        return;
    for (int i = 0; i < n; i++)
        if (!unmark(&statuses[i]) && result == MPI_SUCCESS)
            statuses[i].MPI_ERROR = MPI_SUCCESS;
}

int tmpi_completed_one(int result, MPI_Status *status)
{
    MPI_Comm comm;
    const int code = end_call(&comm);

    if (code == MPI_SUCCESS)
        return result;
    unmark_all(result, 1, status);
    tmpi_next.Comm_call_errhandler(comm, code);
    return code;
}

int tmpi_completed_some(int result, const int *n, MPI_Status *statuses)
{
    MPI_Comm comm;
    const int code = end_call(&comm);

    if (code == MPI_SUCCESS)
        return result;
    unmark_all(result, *n, statuses);
    tmpi_next.Comm_call_errhandler(comm, code);
    return MPI_ERR_IN_STATUS;
}

int tmpi_completion_seen(int result, const int *n, MPI_Status *statuses)
{
    MPI_Comm comm;

    if (end_call(&comm) != MPI_SUCCESS)
        unmark_all(result, *n, statuses);
    return result;
}
