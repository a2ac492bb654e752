/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/argument_check.h"

#include <stddef.h>
#include <stdint.h>

#include "bindings/mpi/next.h"
#include "bindings/mpi/type_layout.h"

bool tmpi_root_is_valid(int root, MPI_Comm comm)
{
    int ranks = 0;

    return root >= 0 && tmpi_next.Comm_size(comm, &ranks) == MPI_SUCCESS &&
           root < ranks;
}

/* Return true if elements at this displacement would start at address 0. */
static bool at_null(const void *buffer, MPI_Count displ, const struct tmpi_layout *l)
{
    return l->dense && (uintptr_t)buffer + (uintptr_t)(displ * l->extent) == 0;
}

bool tmpi_buffer_is_valid(const void *buffer, MPI_Count count, MPI_Datatype type)
{
    struct tmpi_layout layout;

    return buffer != MPI_IN_PLACE && count >= 0 && tmpi_layout_of(type, &layout) &&
           (count == 0 || !at_null(buffer, 0, &layout));
}

void tmpi_commit_type(MPI_Datatype type)
{
#ifdef OPEN_MPI
    struct tmpi_layout layout;

    if (type != MPI_DATATYPE_NULL && !tmpi_layout_of(type, &layout))
        tmpi_next.Type_commit(&type);
#else
    (void)type;
#endif
}

bool tmpi_list_is_valid(const void *buffer, const struct tmpi_list *list, int ranks,
                        MPI_Datatype type)
{
    struct tmpi_layout layout;

    if (buffer == MPI_IN_PLACE || tmpi_list_is_empty(list) ||
        !tmpi_layout_of(type, &layout))
        return false;
    for (int i = 0; i < ranks; i++) {
        const MPI_Count count = tmpi_count_at(list, i);
        if (count < 0 || (count > 0 && !tmpi_list_has_displs(list)) ||
            (count > 0 && at_null(buffer, tmpi_displ_at(list, i), &layout)))
            return false;
    }
    return true;
}
