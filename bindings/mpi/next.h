/* SPDX-License-Identifier: BSD-3-Clause */
/* The next layers. MPI_X and PMPI_X resolve to this module, so it calls MPI through
 * these pointers to MPI's own functions. A second table has the functions of a
 * profiling tool that the program links. */
#ifndef BINDINGS_MPI_NEXT_H
#define BINDINGS_MPI_NEXT_H

#include <mpi.h>

struct tmpi_next {
#define X(name, parameters) int(*name) parameters;
#define XX(name, parameters) int(*MPIX_##name) parameters;
#include "bindings/mpi/next.def"
#undef X
#undef XX
};

/* Filled before main by dlsym(RTLD_NEXT). NULL: this MPI lacks the function. */
extern struct tmpi_next tmpi_next;

/* MPI_X of a tool between this module and MPI; NULL: none. */
extern struct tmpi_next tmpi_tool;

/** tmpi_check_caller - end the process with a message if the library at this address
 * links the other family of MPI. A script may have loaded such a library. */
void tmpi_check_caller(const void *address);

/** tmpi_lacks - report a call to a function that the program's MPI lacks; return the
 * error. */
int tmpi_lacks(const char *name);

#endif
