/* SPDX-License-Identifier: BSD-3-Clause */
/* LD_PRELOAD, with which trib-mpi loads this module. */
#ifndef BINDINGS_MPI_PRELOAD_LIST_H
#define BINDINGS_MPI_PRELOAD_LIST_H

/**
 * tmpi_preload_drop - remove the module from LD_PRELOAD, for children of this process.
 *
 * Also removes the sanitizer library that trib-mpi has added (TRIB_MPI_SANITIZER).
 * Other entries stay.
 */
void tmpi_preload_drop(void);

#endif
