/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Non-blocking calls: a request of the library inside a generalised request of MPI. The
 * library's progress thread moves the data; a thread of the program that waits for a
 * request, or tests one, completes the generalised requests whose operations are done.
 */
#ifndef MPI_PENDING_H
#define MPI_PENDING_H

#include <tributary/request.h>

#include "mpi/packing.h"
#include "mpi/turn.h"

struct tmpi_pending {
    struct tmpi_pending *next; /* the one that began after it; both are not done */
    struct tmpi_attached *a;
    trib_request_t *request;
    MPI_Request mpi;
    struct tmpi_packed packed; /* of a broadcast */
    bool unpack; /* once it is done */
    bool owns_type; /* packed.type is one of its own */
    int code; /* MPI_SUCCESS, or of the failure */
    int holders; /* MPI, until it frees the request, and this module, until the
                  * operation is done */
};

/** tmpi_pending_begin - have MPI's progress complete requests, if it has a hook for
 * that; after MPI_Init. */
void tmpi_pending_begin(void);

/** tmpi_pending_end - complete no more requests; before MPI_Finalize. */
void tmpi_pending_end(void);

/** tmpi_pending_complete - complete the requests whose operations are done. */
void tmpi_pending_complete(void);

/**
 * tmpi_pending_poll - complete the requests whose operations are done.
 *
 * returns  true if some are left and MPI has no hook for its progress: a function of
 *          MPI that waits would not complete them
 */
bool tmpi_pending_poll(void);

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
