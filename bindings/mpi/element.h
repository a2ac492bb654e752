/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps MPI datatypes and operators to the library's. */
#ifndef BINDINGS_MPI_ELEMENT_H
#define BINDINGS_MPI_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>
#include <tributary.h>

struct tmpi_element {
    trib_dtype_t dtype;
    trib_op_t op;
    int times; /* library elements per MPI element: 2 for complex numbers and pairs */
};

enum tmpi_able {
    TMPI_ABLE, /* reduced by the library */
    TMPI_GENERIC, /* gathered by the library, reduced by MPI_Reduce_local */
    TMPI_UNABLE, /* left to MPI, which may refuse it */
};

/** tmpi_element_of - map a reduction to the library. The result is equal on all ranks,
 * since MPI requires equal operators and types. */
enum tmpi_able tmpi_element_of(MPI_Datatype type, MPI_Op op, struct tmpi_element *out);

/** tmpi_element_bytes - return the size of a predefined type; false: the library does
 * not support the type. */
bool tmpi_element_bytes(MPI_Datatype type, MPI_Count *out);

/** tmpi_elements_begin - fill the table of types; must be called first. */
void tmpi_elements_begin(void);

#endif
