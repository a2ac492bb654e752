/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/packing.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include "bindings/mpi/next.h"

enum { PIECE = 1 << 30 }; /* bytes: MPI_Pack counts with int */

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
    if (!p->layout.dense || !user) /* the library takes NULL as in-place */
        p->bytes = p->owned = malloc(tmpi_packed_bytes(p) + 1);
    return p->bytes;
}

bool tmpi_packed_expect(struct tmpi_packed *p, size_t bytes)
{
    if (tmpi_packed_bytes(p) == bytes)
        return true;
    tmpi_packed_close(p);
    p->differs = true;
    p->count = 0;
    p->bytes = p->owned = calloc(1, bytes + 1);
    return p->bytes;
}

int tmpi_packed_error(const struct tmpi_packed *p, MPI_Comm comm, int result)
{
    if (!p->differs || result != MPI_SUCCESS)
        return result;
    tmpi_next.Comm_call_errhandler(comm, MPI_ERR_TRUNCATE);
    return MPI_ERR_TRUNCATE;
}

/* Return the number of elements per call of MPI_Pack. */
static MPI_Count step_of(const struct tmpi_packed *p)
{
    const MPI_Count fit = p->layout.size > 0 ? PIECE / p->layout.size : PIECE;
    return fit > 0 ? fit : 1;
}

/* Pack or unpack one piece, from element `i`. */
static int move_step(struct tmpi_packed *p, MPI_Comm comm, bool packs, MPI_Count i)
{
    const MPI_Count step = step_of(p);
    const MPI_Count n = p->count - i < step ? p->count - i : step;
    const MPI_Count bytes = n * p->layout.size;
    char *user = (char *)p->user + i * p->layout.extent;
    char *packed = (char *)p->bytes + i * p->layout.size;
    int at = 0;

#if MPI_VERSION >= 4
    MPI_Count wide_at = 0;
    if (bytes > INT_MAX && tmpi_next.Pack_c && tmpi_next.Unpack_c)
        return packs ? tmpi_next.Pack_c(user, n, p->type, packed, bytes, &wide_at, comm)
                     : tmpi_next.Unpack_c(packed, bytes, &wide_at, user, n, p->type,
                                          comm);
#endif
    if (bytes > INT_MAX) { /* a single element that is too long for MPI 3 */
        tmpi_next.Comm_call_errhandler(comm, MPI_ERR_COUNT);
        return MPI_ERR_COUNT;
    }
    return packs
               ? tmpi_next.Pack(user, (int)n, p->type, packed, (int)bytes, &at, comm)
               : tmpi_next.Unpack(packed, (int)bytes, &at, user, (int)n, p->type, comm);
}

static int move(struct tmpi_packed *p, MPI_Comm comm, bool packs);

/* MPICH refuses to pack from address 0, which is MPI_BOTTOM. Shift both: use another
 * address, and a datatype with displacements reduced by that address. */
static int move_bottom(struct tmpi_packed *p, MPI_Comm comm, bool packs)
{
    static char anchor;
    const MPI_Aint before = -(MPI_Aint)(intptr_t)&anchor;
    const int one = 1;
    struct tmpi_packed moved = *p;

    moved.user = &anchor;
    int result = tmpi_next.Type_create_hindexed(1, &one, &before, p->type, &moved.type);
    if (result != MPI_SUCCESS)
        return result;
    result = tmpi_next.Type_commit(&moved.type);
    if (result == MPI_SUCCESS)
        result = move(&moved, comm, packs);
    tmpi_next.Type_free(&moved.type);
    return result;
}

static int move(struct tmpi_packed *p, MPI_Comm comm, bool packs)
{
    int result = MPI_SUCCESS;

    if (p->bytes == p->user)
        return MPI_SUCCESS;
    if (!p->user && p->count > 0)
        return move_bottom(p, comm, packs);
    for (MPI_Count i = 0; i < p->count && result == MPI_SUCCESS; i += step_of(p))
        result = move_step(p, comm, packs, i);
    return result;
}

int tmpi_pack(struct tmpi_packed *p, MPI_Comm comm)
{
    return move(p, comm, true);
}

int tmpi_unpack(struct tmpi_packed *p, MPI_Comm comm)
{
    return move(p, comm, false);
}

void tmpi_packed_close(struct tmpi_packed *p)
{
    free(p->owned);
    p->owned = p->bytes = NULL;
}
