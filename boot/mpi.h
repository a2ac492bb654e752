/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State of an MPI library in this process.
 *
 * The library is never linked or loaded here: only one loaded by the program counts.
 * MPI and Tributary talk to the same launcher, through one socket or one library.
 */
#ifndef BOOT_MPI_H
#define BOOT_MPI_H

enum trib_mpi_state {
    TRIB_MPI_ABSENT, /* no MPI library is loaded */
    TRIB_MPI_LOADED, /* MPI_Init has not been called */
    TRIB_MPI_RUNS, /* between MPI_Init and MPI_Finalize */
    TRIB_MPI_ENDED, /* MPI_Finalize has been called */
};

/** trib_mpi_query - return the state of MPI in this process; any thread. */
enum trib_mpi_state trib_mpi_query(void);

#endif
