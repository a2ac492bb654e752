/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The next layer: the functions of MPI as they are without this module. Everything here
 * calls MPI through this table, as the names MPI_X and PMPI_X both lead to the module.
 */
#ifndef MPI_NEXT_H
#define MPI_NEXT_H

#include <mpi.h>

struct tmpi_next {
#define X(name, parameters) int(*name) parameters;
#include "mpi/next.def"
#undef X
};

/* Filled before main, by dlsym(RTLD_NEXT). A function that this MPI lacks is NULL. */
extern struct tmpi_next tmpi_next;

#endif
