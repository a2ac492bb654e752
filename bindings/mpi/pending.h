/* SPDX-License-Identifier: BSD-3-Clause */
/* Non-blocking calls: a library request inside a generalised request of MPI. The
 * library's progress thread moves the data. A program thread that waits for a request,
 * or tests one, completes all generalised requests whose operations are done. */
#ifndef BINDINGS_MPI_PENDING_H
#define BINDINGS_MPI_PENDING_H

#include <tributary/request.h>

#include "bindings/mpi/packing.h"
#include "bindings/mpi/dispatch.h"

struct tmpi_pending {
    struct tmpi_pending *next; /* next newer operation in flight */
    struct tmpi_attached *a;
    trib_request_t *request;
    MPI_Request mpi;
    struct tmpi_packed packed; /* broadcast only */
    bool unpack; /* unpack when the operation is done */
    bool owns_type; /* packed.type must be freed */
    int code; /* MPI_SUCCESS, or the error code */
    int holders; /* references: MPI's request, and the operation in flight */
};

/** tmpi_pending_begin - after MPI_Init: let MPI's progress complete requests, if it has
 * a hook for that. */
void tmpi_pending_begin(void);

/** tmpi_pending_end - before MPI_Finalize: remove that hook. */
void tmpi_pending_end(void);

/** tmpi_pending_complete - complete the requests whose operations are done. */
void tmpi_pending_complete(void);

/**
 * tmpi_pending_poll - complete the requests whose operations are done.
 *
 * returns  true if some are in flight and MPI has no progress hook: a blocking MPI
 *          function would not complete them
 */
bool tmpi_pending_poll(void);

/**
 * tmpi_pending_start - return a request for a started operation to the program.
 *
 * p        [1] copied, unless the library has failed
 * status   of the call that created p->request
 * returns  the program's error code
 */
int tmpi_pending_start(struct tmpi_call *call, const struct tmpi_pending *p,
                       trib_status_t status, MPI_Request *request);

#endif
