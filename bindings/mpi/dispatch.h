/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One call: done by the library or by MPI, and timed while the choice is open.
 *
 *     if (tmpi_to_library(&call, comm, kind, bytes))
 *         return tmpi_done_by_library(&call, trib_…(call.a->comm, …));
 *     return tmpi_done_by_mpi(&call, tmpi_next.…(…));
 */
#ifndef BINDINGS_MPI_DISPATCH_H
#define BINDINGS_MPI_DISPATCH_H

#include "bindings/mpi/attached.h"

struct tmpi_call {
    struct tmpi_attached *a; /* NULL: done by MPI and not counted */
    struct tmpi_attached *without; /* timed without a library communicator; or NULL */
    unsigned weight; /* number of calls that this one represents */
    struct tmpi_side_choice *choice;
    enum tmpi_kind kind;
    size_t bytes;
    double since; /* start in s, if the call is timed */
};

/** tmpi_to_library - return true if the library does this call; bytes: per rank. */
bool tmpi_to_library(struct tmpi_call *call, MPI_Comm comm, enum tmpi_kind kind,
                     size_t bytes);

/** tmpi_done_by_library, tmpi_done_by_mpi - finish the call; return the program's error
 * code. */
int tmpi_done_by_library(struct tmpi_call *call, trib_status_t status);
int tmpi_done_by_mpi(struct tmpi_call *call, int result);

#endif
