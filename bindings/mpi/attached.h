/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Library communicators attached to MPI communicators.
 *
 * Programs create many communicators that they hardly use. The library therefore
 * creates its own only after calls on MPI's have taken long enough for this to pay.
 * Decisions about a call depend only on inputs that are equal on all ranks of its
 * communicator: the number of calls so far, arguments that MPI requires to be equal,
 * and agreed times.
 */
#ifndef BINDINGS_MPI_ATTACHED_H
#define BINDINGS_MPI_ATTACHED_H

#include <stdint.h>

#include <mpi.h>
#include <tributary.h>

#include "bindings/mpi/module.h"
#include "bindings/mpi/side_choice.h"

struct tmpi_plan;

struct tmpi_attached {
    struct tmpi_attached *next, *previous; /* list of all, newest first */
    MPI_Comm handle; /* MPI_COMM_WORLD after the program has freed it */
    trib_comm_t *comm; /* NULL: not created */
    bool inter; /* an intercommunicator */
    /* No library communicator will be created: an intercommunicator, a single rank,
     * processes outside MPI_COMM_WORLD, a GPU in use, or a failed setup. */
    bool never;
    bool made; /* a library communicator was created */
    int holds; /* non-blocking operations in flight */
    int owners; /* references to this memory: the list here, and each request */
    int rank, ranks;
    unsigned long calls; /* eligible calls so far */
    unsigned long ask_at; /* the ranks compare `seconds` after this number of calls */
    double seconds; /* estimated time of these calls on this rank: some are timed */
    char name[64];
    struct tmpi_side_choice *choices[TMPI_KINDS]; /* [TMPI_CLASSES] each; or NULL */
    struct tmpi_plan *plans; /* all-reduces with TRIB_MPI_CODEC */
};

/**
 * tmpi_attached_for - count a call that the library could do, and find its
 * communicator.
 *
 * Creates the library communicator if it is due at this call; this waits for the other
 * ranks. Non-blocking calls never create one.
 * returns  the state attached to `comm`, maybe without a library communicator; NULL:
 *          none
 */
struct tmpi_attached *tmpi_attached_for(MPI_Comm comm, enum tmpi_kind kind);

/**
 * tmpi_attached_error - check a communicator handle.
 *
 * Each MPI function that gets an invalid handle calls an error handler, so only the
 * first one may be called.
 * returns  the error; MPI_SUCCESS: the handle is valid or MPI_COMM_NULL
 */
int tmpi_attached_error(MPI_Comm comm);

/**
 * tmpi_attached_is_inter - return true for a valid handle of an intercommunicator, and
 * count the call for the report.
 *
 * MPI does these calls. The module must not read their arguments: there is a count per
 * rank of the other group, and a root may be MPI_ROOT.
 */
bool tmpi_attached_is_inter(MPI_Comm comm, enum tmpi_kind kind);

/**
 * tmpi_attached_freeing - let MPI free or disconnect a communicator.
 *
 * Calls on it from attribute delete functions go to MPI. Otherwise such a call could
 * attach an attribute of this module, which would outlive the communicator.
 */
int tmpi_attached_freeing(int (*call)(MPI_Comm *), MPI_Comm *comm);

/** tmpi_attached_weight - return the number of calls that the newest one represents, if
 * it is to be timed; 0: do not time it. */
unsigned tmpi_attached_weight(const struct tmpi_attached *a);

/** tmpi_attached_begin - initialise; called after MPI_Init. */
void tmpi_attached_begin(void);

/** tmpi_attached_hold, tmpi_attached_release - keep the library communicator for an
 * operation in flight, even after the program has freed MPI's. */
void tmpi_attached_hold(struct tmpi_attached *a);
void tmpi_attached_release(struct tmpi_attached *a);

/** tmpi_attached_keep, tmpi_attached_drop - count a reference of a request to this
 * memory, which names the error handler to call, until MPI frees the request. */
void tmpi_attached_keep(struct tmpi_attached *a);
void tmpi_attached_drop(struct tmpi_attached *a);

/** tmpi_attached_try_free_all - in MPI_Finalize: free the library communicators that no
 * operation uses and that all ranks have freed.
 *
 * st_out   [1] the status of the first one that fails; unchanged if none does
 * returns  false: some remain; call it again
 */
bool tmpi_attached_try_free_all(trib_status_t *st_out);

/** tmpi_attached_report - add all communicators to the report. */
void tmpi_attached_report(void);

#endif
