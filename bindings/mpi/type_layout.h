/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory layout of a datatype: its size, and whether elements can be sent without
 * packing. */
#ifndef BINDINGS_MPI_TYPE_LAYOUT_H
#define BINDINGS_MPI_TYPE_LAYOUT_H

#include <stdbool.h>

#include <mpi.h>

struct tmpi_layout {
    MPI_Count size, lower, extent;
    MPI_Count true_lower, true_extent;
    bool dense; /* contiguous in type map order from the element's address */
};

/**
 * tmpi_layout_of - return the layout of a datatype; false: null or not committed.
 *
 * For a user-defined datatype the layout is kept in an attribute. It is deleted with
 * the datatype, so MPI may reuse the handle.
 */
bool tmpi_layout_of(MPI_Datatype type, struct tmpi_layout *out);

/** tmpi_self_comm - return a communicator of this process only. It returns errors. */
MPI_Comm tmpi_self_comm(void);

/** tmpi_layouts_begin, tmpi_layouts_end - initialise after MPI_Init, and clean up
 * before MPI_Finalize. */
void tmpi_layouts_begin(void);
void tmpi_layouts_end(void);

#endif
