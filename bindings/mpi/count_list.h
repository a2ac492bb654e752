/* SPDX-License-Identifier: BSD-3-Clause */
/* A count and a displacement per rank: int, or MPI_Count and MPI_Aint as in the MPI 4
 * functions MPI_X_c. */
#ifndef BINDINGS_MPI_COUNT_LIST_H
#define BINDINGS_MPI_COUNT_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>

struct tmpi_list {
    const int *counts, *displs; /* NULL: wide, or not given */
    const MPI_Count *wide_counts;
    const MPI_Aint *wide_displs;
};

static inline MPI_Count tmpi_count_at(const struct tmpi_list *l, int i)
{
    return l->wide_counts ? l->wide_counts[i] : l->counts[i];
}

static inline bool tmpi_list_has_displs(const struct tmpi_list *l)
{
    return l->displs || l->wide_displs;
}

/** tmpi_displ_at - return the displacement of a rank with elements. */
static inline MPI_Count tmpi_displ_at(const struct tmpi_list *l, int i)
{
    return l->wide_displs ? l->wide_displs[i] : l->displs[i];
}

/** tmpi_list_is_empty - return true if no counts are given, as on ranks other than the
 * root. */
static inline bool tmpi_list_is_empty(const struct tmpi_list *l)
{
    return !l->counts && !l->wide_counts;
}

#endif
