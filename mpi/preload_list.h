/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LD_PRELOAD, through which trib-mpi loads this module.
 */
#ifndef MPI_PRELOAD_LIST_H
#define MPI_PRELOAD_LIST_H

/**
 * tmpi_preload_drop - children of this process start without the module.
 *
 * Also without the sanitizer's library that trib-mpi has put there, which
 * TRIB_MPI_SANITIZER names. What the user preloads stays.
 */
void tmpi_preload_drop(void);

#endif
