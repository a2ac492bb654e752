/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Elements of any datatype as bytes without holes. Which memory is dense is each rank's
 * own affair: a broadcast may send a column of a matrix and receive a vector.
 */
#ifndef MPI_PACKING_H
#define MPI_PACKING_H

#include <stdbool.h>
#include <stddef.h>

#include "mpi/type_layout.h"

struct tmpi_packed {
    MPI_Datatype type;
    struct tmpi_layout layout;
    MPI_Count count;
    void *user; /* the program's buffer */
    void *bytes; /* the same memory if it is dense, else of this module; never NULL */
    void *taken; /* to be freed */
    bool differs; /* the ranks expect another number of bytes */
};

/** tmpi_packed_open - false if the datatype is not valid, or memory is short. */
bool tmpi_packed_open(struct tmpi_packed *p, void *user, MPI_Count count,
                      MPI_Datatype type);

/**
 * tmpi_packed_expect - the number of bytes that the ranks will move.
 *
 * If the program's elements have another one, as in a wrong call, zeros are moved and
 * the program's memory stays as it is: the other ranks must not wait for ever.
 * returns  false without memory
 */
bool tmpi_packed_expect(struct tmpi_packed *p, size_t bytes);

/** tmpi_packed_error - `result`, or after a wrong call what its caller gets. */
int tmpi_packed_error(const struct tmpi_packed *p, MPI_Comm comm, int result);

/** tmpi_packed_fill - take the bytes from the program's elements. */
int tmpi_packed_fill(struct tmpi_packed *p, MPI_Comm comm);

/** tmpi_packed_empty - give the bytes to the program's elements. */
int tmpi_packed_empty(struct tmpi_packed *p, MPI_Comm comm);

/** tmpi_packed_close - free what open has taken. */
void tmpi_packed_close(struct tmpi_packed *p);

/** tmpi_packed_bytes - of all elements. */
static inline size_t tmpi_packed_bytes(const struct tmpi_packed *p)
{
    return (size_t)(p->count * p->layout.size);
}

/** tmpi_bytes_of - of count elements of a type; 0: none, or the type is not valid. */
size_t tmpi_bytes_of(MPI_Count count, MPI_Datatype type);

#endif
