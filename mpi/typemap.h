/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order of a datatype's bytes, from the constructor calls that made it.
 */
#ifndef MPI_TYPEMAP_H
#define MPI_TYPEMAP_H

#include <stdbool.h>

#include <mpi.h>

/* The bytes of one element, if they travel in the order in which they lie in memory and
 * no other byte lies between them. */
struct tmpi_run {
    MPI_Count start; /* of the first byte, from the element's address */
    MPI_Count bytes;
};

/** tmpi_typemap_run - false if the type is not such a run, or if that is not proven: a
 * distributed array, a part of an array, or more than some thousand constructors. */
bool tmpi_typemap_run(MPI_Datatype type, struct tmpi_run *out);

/** tmpi_type_is_named - true of a predefined type, also one that
 * MPI_Type_create_f90_real and the like return. */
bool tmpi_type_is_named(MPI_Datatype type);

#endif
