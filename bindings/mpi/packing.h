/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements of any datatype as contiguous bytes. Each rank decides by itself whether its
 * memory is dense: a broadcast may send a matrix column and receive a vector. */
#ifndef BINDINGS_MPI_PACKING_H
#define BINDINGS_MPI_PACKING_H

#include <stdbool.h>
#include <stddef.h>

#include "bindings/mpi/type_layout.h"

struct tmpi_packed {
    MPI_Datatype type;
    struct tmpi_layout layout;
    MPI_Count count;
    void *user; /* the program's buffer */
    void *bytes; /* `user` if it is dense, else `owned`; never NULL */
    void *owned; /* memory to free */
    bool differs; /* the other ranks move a different number of bytes */
};

/** tmpi_packed_open - prepare to pack; false: invalid datatype, or no memory. */
bool tmpi_packed_open(struct tmpi_packed *p, void *user, MPI_Count count,
                      MPI_Datatype type);

/**
 * tmpi_packed_expect - set the number of bytes that the ranks will move.
 *
 * It differs from the program's elements in an erroneous call. Then zeros are moved and
 * the program's memory is not touched, so that the other ranks do not wait for ever.
 * returns  false: no memory
 */
bool tmpi_packed_expect(struct tmpi_packed *p, size_t bytes);

/** tmpi_packed_error - return `result`, or the error of an erroneous call. */
int tmpi_packed_error(const struct tmpi_packed *p, MPI_Comm comm, int result);

/** tmpi_pack - pack the program's elements into bytes. */
int tmpi_pack(struct tmpi_packed *p, MPI_Comm comm);

/** tmpi_unpack - unpack the bytes into the program's elements. */
int tmpi_unpack(struct tmpi_packed *p, MPI_Comm comm);

/** tmpi_packed_close - free the memory of tmpi_packed_open. */
void tmpi_packed_close(struct tmpi_packed *p);

/** tmpi_packed_bytes - return the packed size of all elements. */
static inline size_t tmpi_packed_bytes(const struct tmpi_packed *p)
{
    return (size_t)(p->count * p->layout.size);
}

/** tmpi_bytes_of - return the packed size of count elements; 0: none, or invalid
 * datatype. */
size_t tmpi_bytes_of(MPI_Count count, MPI_Datatype type);

#endif
