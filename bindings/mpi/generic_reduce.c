/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/generic_reduce.h"

#include <stdlib.h>
#include <string.h>

#include "bindings/mpi/next.h"
#include "bindings/mpi/packing.h"

struct job {
    struct tmpi_attached *a;
    struct tmpi_packed mine;
    char *gathered; /* [ranks * bytes] on ranks with a result */
    char *space; /* one rank's unpacked elements; NULL if they are dense */
    char *elements; /* address of the first */
    void *recv;
    MPI_Op op;
};

/* Return rank k's elements for MPI_Reduce_local. Elements that are not dense are
 * unpacked to `into`. */
static void *elements_of(struct job *j, int k, void *into, int *result)
{
    const size_t bytes = tmpi_packed_bytes(&j->mine);
    struct tmpi_packed theirs = j->mine;

    theirs.bytes = j->gathered + bytes * (size_t)k;
    if (theirs.layout.dense)
        return theirs.bytes;
    theirs.user = into;
    *result = tmpi_unpack(&theirs, j->a->handle);
    return into;
}

/* recv = x[0] op (x[1] op (… op x[ranks - 1])) */
static int put_together(struct job *j)
{
    const size_t bytes = tmpi_packed_bytes(&j->mine);
    const int count = (int)j->mine.count;
    int result = MPI_SUCCESS;
    const void *last = elements_of(j, j->a->ranks - 1, j->recv, &result);

    if (last != j->recv)
        memcpy(j->recv, last, bytes);
    for (int k = j->a->ranks - 2; k >= 0 && result == MPI_SUCCESS; k--) {
        void *x = elements_of(j, k, j->elements, &result);
        if (result == MPI_SUCCESS)
            result = tmpi_next.Reduce_local(x, j->recv, count, j->mine.type, j->op);
    }
    return result;
}

static MPI_Count lesser(MPI_Count a, MPI_Count b)
{
    return a < b ? a : b;
}

/* Allocate memory for all elements, and set the address of the first. Each element
 * covers `bytes` bytes from offset `first`. With a negative extent each one is below
 * the previous one. */
static bool take_space(struct job *j, MPI_Count first, MPI_Count bytes)
{
    const MPI_Count reach = (j->mine.count - 1) * j->mine.layout.extent;
    const MPI_Count before = lesser(reach, 0);

    j->space = calloc(1, (size_t)(bytes + reach - 2 * before) + 1);
    j->elements = j->space ? j->space - first - before : NULL;
    return j->space;
}

/* C++ operators copy whole structures, so the memory includes the padding within an
 * element's bounds; if that is too much, only its true extent. */
static bool take_memory(struct job *j)
{
    const struct tmpi_layout *l = &j->mine.layout;
    const MPI_Count lower = lesser(l->lower, l->lower + l->extent);
    const MPI_Count upper = l->lower + l->lower + l->extent - lower;
    const MPI_Count first = lesser(l->true_lower, lower);
    const MPI_Count end = -lesser(-(l->true_lower + l->true_extent), -upper);

    j->gathered = malloc(tmpi_packed_bytes(&j->mine) * (size_t)j->a->ranks);
    return j->gathered && (l->dense || take_space(j, first, end - first) ||
                           take_space(j, l->true_lower, l->true_extent));
}

trib_status_t tmpi_generic_reduce(struct tmpi_attached *a, const void *send, void *recv,
                                  int count, MPI_Datatype type, MPI_Op op, int root,
                                  int *mpi_out)
{
    const bool result_here = root < 0 || root == a->rank;
    void *input = send == MPI_IN_PLACE ? recv : (void *)(uintptr_t)send;
    struct job j = {.a = a, .recv = recv, .op = op};
    trib_status_t st = TRIB_ERR_NO_MEMORY;

    *mpi_out = MPI_SUCCESS;
    if (tmpi_packed_open(&j.mine, input, count, type) && take_memory(&j)) {
        const size_t bytes = tmpi_packed_bytes(&j.mine);
        *mpi_out = tmpi_pack(&j.mine, a->handle);
        st = root < 0
                 ? trib_allgather(a->comm, j.mine.bytes, j.gathered, bytes, TRIB_I8)
                 : trib_gather(a->comm, j.mine.bytes, j.gathered, bytes, TRIB_I8, root);
        if (st == TRIB_OK && *mpi_out == MPI_SUCCESS && result_here)
            *mpi_out = put_together(&j);
    }
    tmpi_packed_close(&j.mine);
    free(j.gathered);
    free(j.space);
    return st;
}
