/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/failure_class.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "bindings/mpi/next.h"

static int error_class;

static void add_class(void)
{
    tmpi_next.Add_error_class(&error_class);
    tmpi_next.Add_error_string(error_class, "a collective of Tributary has failed");
}

/* Return MPI's own error class if it has one, so that programs recognise it. */
static int class_of(trib_status_t status)
{
    switch ((int)status) {
    case TRIB_ERR_INVALID:
    case TRIB_ERR_OVERLAP:
    case TRIB_ERR_OVERFLOW:
        return MPI_ERR_ARG;
    case TRIB_ERR_MISMATCH:
        return MPI_ERR_TRUNCATE;
    case TMPI_NO_MEMORY:
    case TRIB_ERR_NO_MEMORY:
        return MPI_ERR_NO_MEM;
    default:
        return error_class;
    }
}

static void describe(const struct tmpi_attached *a, trib_status_t status, char *out)
{
    if ((int)status == TMPI_NO_MEMORY)
        snprintf(out, MPI_MAX_ERROR_STRING,
                 "tributary: rank %d of communicator %s: no memory for the elements "
                 "of a collective",
                 a->rank, a->name);
    else
        snprintf(out, MPI_MAX_ERROR_STRING, "tributary: %s: %s",
                 trib_status_name(status), trib_last_error(a->comm));
}

/* Add an error code with a text. MPICH stores no text for codes of its own classes:
 * then the class is used as the code, and false is returned. */
static bool add_code(int of_class, const char *text, int *code_out)
{
    char kept[MPI_MAX_ERROR_STRING] = "";
    int length;

    *code_out = of_class;
    if (tmpi_next.Add_error_code(of_class, code_out) == MPI_SUCCESS &&
        tmpi_next.Add_error_string(*code_out, text) == MPI_SUCCESS &&
        tmpi_next.Error_string(*code_out, kept, &length) == MPI_SUCCESS &&
        !strcmp(kept, text))
        return true;
    *code_out = of_class;
    return false;
}

int tmpi_failure_code(const struct tmpi_attached *a, trib_status_t status)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Errhandler handler = MPI_ERRORS_RETURN;
    int code;

    pthread_once(&once, add_class);
    describe(a, status, text);
    const bool has_text = add_code(class_of(status), text, &code);
    const bool is_known =
        tmpi_next.Comm_get_errhandler(a->handle, &handler) == MPI_SUCCESS;
    if (!has_text || (is_known && handler == MPI_ERRORS_ARE_FATAL))
        fprintf(stderr, "%s\n", text);
    if (is_known)
        tmpi_next.Errhandler_free(&handler);
    return code;
}

int tmpi_failed(const struct tmpi_attached *a, trib_status_t status)
{
    const int code = tmpi_failure_code(a, status);

    tmpi_next.Comm_call_errhandler(a->handle, code);
    return code;
}
