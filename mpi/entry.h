/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions that the module exports. MPI's binding for Fortran calls MPI_X in one MPI
 * and PMPI_X in another, so both names lead here.
 */
#ifndef MPI_ENTRY_H
#define MPI_ENTRY_H

#define TMPI_EXPORT __attribute__((visibility("default")))

#define TMPI_ENTRY(name, parameters, call) \
    TMPI_EXPORT int MPI_##name parameters \
    { \
        return call; \
    } \
    TMPI_EXPORT int PMPI_##name parameters \
    { \
        return call; \
    }

#endif
