/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes and operators of MPI as the library's: which it can reduce.
 */
#ifndef MPI_ELEMENT_H
#define MPI_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>
#include <tributary.h>

struct tmpi_element {
    trib_dtype_t dtype;
    trib_op_t op;
    int times; /* elements of the library in one of MPI: 2 of complex numbers, pairs */
};

enum tmpi_able {
    TMPI_ABLE, /* the library reduces it */
    TMPI_GENERIC, /* MPI_Reduce_local does, behind an all-gather of the library */
    TMPI_UNABLE, /* MPI does, or refuses it */
};

/** tmpi_element_of - what the library knows of a reduction. Makes no difference between
 * ranks, as MPI wants the same operator and type of all of them. */
enum tmpi_able tmpi_element_of(MPI_Datatype type, MPI_Op op, struct tmpi_element *out);

/** tmpi_element_bytes - false if the type is not one of the library's. */
bool tmpi_element_bytes(MPI_Datatype type, MPI_Count *out);

/** tmpi_elements_begin - make the table of types; before all else here. */
void tmpi_elements_begin(void);

#endif
