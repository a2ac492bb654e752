/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that are under way: a request of the library inside a generalised request of
 * MPI. The library's progress thread moves them; MPI learns of their end whenever it
 * makes progress itself, in MPI_Wait and MPI_Test among others.
 */
#ifndef MPI_PENDING_H
#define MPI_PENDING_H

#include <tributary/request.h>

#include "mpi/packing.h"
#include "mpi/turn.h"

struct tmpi_pending {
    struct tmpi_pending *next; /* of those that are not done */
    struct tmpi_attached *a;
    trib_request_t *request;
    MPI_Request mpi;
    struct tmpi_packed packed; /* of a broadcast */
    bool unpack; /* once it is done */
    int code; /* what MPI_Wait returns */
};

/** tmpi_pending_begin - how MPI is told; behind MPI_Init. */
void tmpi_pending_begin(void);

/** tmpi_pending_end - no more news for MPI; before MPI_Finalize. */
void tmpi_pending_end(void);

/**
 * tmpi_pending_start - give the program a request for a call that has begun.
 *
 * p        [1] to be copied; on error of the library nothing is kept of it
 * status   of the call that has made p->request
 * returns  what the program gets
 */
int tmpi_pending_start(struct tmpi_turn *t, const struct tmpi_pending *p,
                       trib_status_t status, MPI_Request *request);

#endif
