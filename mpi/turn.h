/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One call on its way: to the library or to MPI, timed while the choice is open.
 *
 *     if (tmpi_to_library(&t, comm, kind, bytes))
 *         return tmpi_done_by_library(&t, trib_…(t.a->comm, …));
 *     return tmpi_done_by_mpi(&t, tmpi_next.…(…));
 */
#ifndef MPI_TURN_H
#define MPI_TURN_H

#include "mpi/attached.h"

struct tmpi_turn {
    struct tmpi_attached *a; /* NULL: MPI, and nothing is counted */
    struct tmpi_attached *without; /* it may get a communicator of the library: this
                                    * call is timed for that; or NULL */
    unsigned weight; /* number of calls for which it stands */
    struct tmpi_side_choice *choice;
    enum tmpi_kind kind;
    size_t bytes;
    double since; /* s, if it is timed */
};

/** tmpi_to_library - true if the library does a call of so many bytes a rank. */
bool tmpi_to_library(struct tmpi_turn *t, MPI_Comm comm, enum tmpi_kind kind,
                     size_t bytes);

/** tmpi_done_by_library, tmpi_done_by_mpi - return what the caller of MPI gets. */
int tmpi_done_by_library(struct tmpi_turn *t, trib_status_t status);
int tmpi_done_by_mpi(struct tmpi_turn *t, int result);

#endif
