/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a datatype's elements: its size, and whether the bytes can be sent from
 * there as they are.
 */
#ifndef MPI_TYPE_LAYOUT_H
#define MPI_TYPE_LAYOUT_H

#include <stdbool.h>

#include <mpi.h>

struct tmpi_layout {
    MPI_Count size, lower, extent;
    MPI_Count true_lower, true_extent;
    bool dense; /* the bytes travel in the order in which they lie in memory, without
                 * holes, from the buffer's address on */
};

/**
 * tmpi_layout_of - false if the type is null or not committed.
 *
 * The answer for a datatype of the program is kept in an attribute of the datatype, so
 * it ends with the datatype even if MPI uses the same handle for the next one.
 */
bool tmpi_layout_of(MPI_Datatype type, struct tmpi_layout *out);

/** tmpi_alone - a communicator of this process alone, which returns errors. */
MPI_Comm tmpi_alone(void);

/** tmpi_layouts_begin, tmpi_layouts_end - after MPI_Init, before MPI_Finalize. */
void tmpi_layouts_begin(void);
void tmpi_layouts_end(void);

#endif
