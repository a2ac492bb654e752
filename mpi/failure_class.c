/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/failure_class.h"

#include <pthread.h>
#include <stdio.h>

#include "mpi/next.h"

static int error_class;

static void add_class(void)
{
    tmpi_next.Add_error_class(&error_class);
    tmpi_next.Add_error_string(error_class, "a sum of tributary has failed");
}

int tmpi_failed(struct tmpi_attached *a, trib_status_t status)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Errhandler handler = MPI_ERRORS_RETURN;
    int code;

    pthread_once(&once, add_class);
    code = error_class;
    tmpi_next.Add_error_code(error_class, &code);
    snprintf(text, sizeof(text), "tributary: %s: %s", trib_status_name(status),
             trib_last_error(a->comm));
    tmpi_next.Add_error_string(code, text);
    if (tmpi_next.Comm_get_errhandler(a->handle, &handler) == MPI_SUCCESS) {
        if (handler == MPI_ERRORS_ARE_FATAL)
            fprintf(stderr, "%s\n", text);
        tmpi_next.Errhandler_free(&handler);
    }
    tmpi_next.Comm_call_errhandler(a->handle, code);
    return code;
}
