/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/generic_reduce.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/next.h"
#include "mpi/packing.h"

struct job {
    struct tmpi_attached *a;
    struct tmpi_packed mine;
    char *gathered; /* [ranks * bytes], where there is a result */
    char *space; /* memory of the elements of one rank */
    void *recv;
    MPI_Op op;
};

/* The elements of rank k, as MPI_Reduce_local takes them; `into` is where they are
 * unpacked if they are not dense. */
static void *elements_of(struct job *j, int k, void *into, int *result)
{
    const size_t bytes = tmpi_packed_bytes(&j->mine);
    struct tmpi_packed theirs = j->mine;

    theirs.bytes = j->gathered + bytes * (size_t)k;
    if (theirs.layout.dense)
        return theirs.bytes;
    theirs.user = into;
    *result = tmpi_packed_empty(&theirs, j->a->handle);
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
        void *x = elements_of(j, k, j->space - j->mine.layout.true_lower, &result);
        if (result == MPI_SUCCESS)
            result = tmpi_next.Reduce_local(x, j->recv, count, j->mine.type, j->op);
    }
    return result;
}

static bool take_memory(struct job *j)
{
    const struct tmpi_layout *l = &j->mine.layout;
    const size_t bytes = tmpi_packed_bytes(&j->mine);
    const size_t span = (size_t)((j->mine.count - 1) * l->extent + l->true_extent);

    j->gathered = malloc(bytes * (size_t)j->a->ranks);
    j->space = l->dense ? NULL : calloc(1, span + 64);
    return j->gathered && (l->dense || j->space);
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
        *mpi_out = tmpi_packed_fill(&j.mine, a->handle);
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
