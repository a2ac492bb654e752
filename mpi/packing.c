/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/packing.h"

#include <stdlib.h>

#include "mpi/next.h"

enum { PIECE = 1 << 30 }; /* bytes: MPI_Pack counts by int */

size_t tmpi_bytes_of(MPI_Count count, MPI_Datatype type)
{
    struct tmpi_layout layout;

    return count > 0 && tmpi_layout_of(type, &layout) ? (size_t)(count * layout.size)
                                                      : 0;
}

bool tmpi_packed_open(struct tmpi_packed *p, void *user, MPI_Count count,
                      MPI_Datatype type)
{
    *p =
        (struct tmpi_packed){.type = type, .count = count, .user = user, .bytes = user};
    if (!tmpi_layout_of(type, &p->layout))
        return false;
    if (!p->layout.dense || !user) /* NULL means in place to the library */
        p->bytes = p->taken = malloc(tmpi_packed_bytes(p) + 1);
    return p->bytes;
}

/* Elements that are packed at once. */
static MPI_Count step_of(const struct tmpi_packed *p)
{
    const MPI_Count fit = p->layout.size > 0 ? PIECE / p->layout.size : PIECE;
    return fit > 0 ? fit : 1;
}

static int move(struct tmpi_packed *p, MPI_Comm comm, bool fill)
{
    const MPI_Count step = step_of(p);
    int result = MPI_SUCCESS;

    if (p->layout.dense)
        return MPI_SUCCESS;
    for (MPI_Count i = 0; i < p->count && result == MPI_SUCCESS; i += step) {
        const int n = (int)(p->count - i < step ? p->count - i : step);
        const int bytes = (int)(n * p->layout.size);
        char *user = (char *)p->user + i * p->layout.extent;
        char *packed = (char *)p->bytes + i * p->layout.size;
        int at = 0;
        result = fill ? tmpi_next.Pack(user, n, p->type, packed, bytes, &at, comm)
                      : tmpi_next.Unpack(packed, bytes, &at, user, n, p->type, comm);
    }
    return result;
}

int tmpi_packed_fill(struct tmpi_packed *p, MPI_Comm comm)
{
    return move(p, comm, true);
}

int tmpi_packed_empty(struct tmpi_packed *p, MPI_Comm comm)
{
    return move(p, comm, false);
}

void tmpi_packed_close(struct tmpi_packed *p)
{
    free(p->taken);
    p->taken = p->bytes = NULL;
}
