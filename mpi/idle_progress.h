/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress of MPI while the library waits. MPI lets a rank rely on progress in every
 * call that blocks: a one-sided transfer of a peer may need this rank's hand.
 */
#ifndef MPI_IDLE_PROGRESS_H
#define MPI_IDLE_PROGRESS_H

/** tmpi_idle_begin - find out how this MPI makes progress; collective, in MPI_Init. */
void tmpi_idle_begin(void);

/** tmpi_idle - for trib_opts_t.idle. */
int tmpi_idle(void *arg);

/** tmpi_idle_end - before MPI_Finalize. */
void tmpi_idle_end(void);

#endif
