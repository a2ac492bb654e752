/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The next layers: the functions of MPI as they are without this module, through which
 * everything here calls MPI, as the names MPI_X and PMPI_X both lead to the module; and
 * those of a tool that the program links.
 */
#ifndef MPI_NEXT_H
#define MPI_NEXT_H

#include <mpi.h>

struct tmpi_next {
#define X(name, parameters) int(*name) parameters;
#define XX(name, parameters) int(*MPIX_##name) parameters;
#include "mpi/next.def"
#undef X
#undef XX
};

/* Filled before main, by dlsym(RTLD_NEXT). A function that this MPI lacks is NULL. */
extern struct tmpi_next tmpi_next;

/* MPI_X of a tool that stands between this module and MPI; NULL where there is none. */
extern struct tmpi_next tmpi_tool;

/** tmpi_check_caller - ends the process with a message if this address is in a library
 * that links MPI of the other family, such as one that a script has loaded. */
void tmpi_check_caller(const void *address);

/** tmpi_lacks - the program calls a function that its MPI lacks; returns the error. */
int tmpi_lacks(const char *name);

#endif
