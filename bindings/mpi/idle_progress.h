/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI's progress while the library waits. Programs may rely on progress in every
 * blocking call: for example, a peer's one-sided transfer may need this rank. */
#ifndef BINDINGS_MPI_IDLE_PROGRESS_H
#define BINDINGS_MPI_IDLE_PROGRESS_H

#include <stdbool.h>

/** tmpi_idle_begin - determine how this MPI makes progress; collective, in MPI_Init. */
void tmpi_idle_begin(void);

/** tmpi_idle - drive MPI's progress once; for trib_opts_t.idle. */
int tmpi_idle(void *arg);

/** tmpi_idle_put_off - note that a collective of the library ran instead of MPI's. */
void tmpi_idle_put_off(void);

/**
 * tmpi_idle_catch_up - drive MPI's progress if a collective of the library has ended
 * and no test has failed since; return true if the caller must test again.
 *
 * MPI's collectives also receive messages that have arrived; the library's may not. Yet
 * programs rely on it: after a barrier they receive until a probe finds no message.
 * turns    of this caller, at first 0; doubled by each call, since tests may be slow
 */
bool tmpi_idle_catch_up(int *turns);

/** tmpi_idle_settle - catch up before a call that depends on arrived messages. */
void tmpi_idle_settle(void);

/** tmpi_idle_end - clean up, before MPI_Finalize. */
void tmpi_idle_end(void);

#endif
