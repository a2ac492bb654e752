/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI's progress while the library waits. Programs may rely on progress in every
 * blocking call: for example, a peer's one-sided transfer may need this rank. */
#ifndef BINDINGS_MPI_IDLE_PROGRESS_H
#define BINDINGS_MPI_IDLE_PROGRESS_H

/** tmpi_idle_begin - determine how this MPI makes progress; collective, in MPI_Init. */
void tmpi_idle_begin(void);

/** tmpi_idle - drive MPI's progress once; for trib_opts_t.idle. */
int tmpi_idle(void *arg);

/** tmpi_idle_end - clean up, before MPI_Finalize. */
void tmpi_idle_end(void);

#endif
