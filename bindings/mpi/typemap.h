/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of a datatype's bytes, derived from the constructors that created it. */
#ifndef BINDINGS_MPI_TYPEMAP_H
#define BINDINGS_MPI_TYPEMAP_H

#include <stdbool.h>

#include <mpi.h>

/* The bytes of one element, if they are contiguous in memory and in the order of the
 * type map. */
struct tmpi_run {
    MPI_Count start; /* offset of the first byte from the element's address */
    MPI_Count bytes;
};

/** tmpi_typemap_run - return true if the type is such a run. Returns false if this is
 * not proven: for distributed arrays, parts of arrays, and more than some thousand
 * constructors. */
bool tmpi_typemap_run(MPI_Datatype type, struct tmpi_run *out);

/** tmpi_type_is_named - return true for predefined types, including those from
 * MPI_Type_create_f90_real and related functions. */
bool tmpi_type_is_named(MPI_Datatype type);

#endif
