/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One call: done by the library or by MPI, and timed while the choice is open.
 *
 *     if (tmpi_to_library(&t, comm, kind, bytes))
 *         return tmpi_done_by_library(&t, trib_…(t.a->comm, …));
 *     return tmpi_done_by_mpi(&t, tmpi_next.…(…));
 */
#ifndef BINDINGS_MPI_TURN_H
#define BINDINGS_MPI_TURN_H

#include "bindings/mpi/attached.h"

struct tmpi_turn {
    struct tmpi_attached *a; /* NULL: done by MPI and not counted */
    struct tmpi_attached *without; /* timed without a library communicator; or NULL */
    unsigned weight; /* number of calls that this one represents */
    struct tmpi_side_choice *choice;
    enum tmpi_kind kind;
    size_t bytes;
    double since; /* start in s, if the call is timed */
};

/** tmpi_to_library - return true if the library does this call; bytes: per rank. */
bool tmpi_to_library(struct tmpi_turn *t, MPI_Comm comm, enum tmpi_kind kind,
                     size_t bytes);

/** tmpi_done_by_library, tmpi_done_by_mpi - finish the call; return the program's error
 * code. */
int tmpi_done_by_library(struct tmpi_turn *t, trib_status_t status);
int tmpi_done_by_mpi(struct tmpi_turn *t, int result);

#endif
