/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators of MPI, and the library's own that are attached to them.
 *
 * The library makes its own when calls on MPI's have taken so long that this may pay:
 * programs make many that they hardly use. All that decides about a call is equal on
 * the ranks of its communicator: the calls counted so far, what MPI wants to be equal,
 * and times on which the ranks have agreed.
 */
#ifndef MPI_ATTACHED_H
#define MPI_ATTACHED_H

#include <stdint.h>

#include <mpi.h>
#include <tributary.h>

#include "mpi/mpi_settings.h"
#include "mpi/side_choice.h"

struct tmpi_plan;

struct tmpi_attached {
    struct tmpi_attached *next, *previous; /* all of this process, newest first */
    MPI_Comm handle; /* MPI_COMM_WORLD once the program has freed it */
    trib_comm_t *comm; /* NULL: not yet, or never */
    bool never; /* an intercommunicator, a single rank, processes of another
                 * MPI_COMM_WORLD, or the ranks disagree */
    bool made; /* the library has made a communicator */
    int holds; /* non-blocking operations under way */
    int owners; /* of this memory: the lists of it here, and each request */
    int rank, ranks;
    unsigned long calls; /* that could have used it */
    unsigned long ask_at; /* number of calls at which the ranks compare `seconds` */
    double seconds; /* that these calls took on this rank, about: some are timed */
    char name[64];
    struct tmpi_side_choice *choices[TMPI_KINDS]; /* [TMPI_CLASSES] each, when used */
    struct tmpi_plan *plans; /* of sums with TRIB_MPI_CODEC */
};

/* The state of the module between MPI_Init and MPI_Finalize. */
struct tmpi_module {
    struct tmpi_settings settings;
    bool runs; /* MPI_Init has returned, and MPI_Finalize has not been called */
    uint32_t taken; /* a bit for each enum tmpi_kind that the library may have, or that
                     * counts; 0 unless it runs */
    bool threads; /* MPI_THREAD_MULTIPLE */
    int keyval;
    MPI_Comm
        quiet; /* for progress of MPI while the library waits; nobody sends there */
};

extern struct tmpi_module tmpi_module;

/* More than 0 in calls of this module's own, which go to MPI as they are. */
extern _Thread_local int tmpi_inside;

/** tmpi_is_listed - false: the library never has calls of this kind. */
static inline bool tmpi_is_listed(enum tmpi_kind kind)
{
    return tmpi_module.settings.calls >> kind & 1;
}

/** tmpi_takes - false: a call of this kind is MPI's, whatever it is about. */
static inline bool tmpi_takes(enum tmpi_kind kind)
{
    return (tmpi_module.taken >> kind & 1) && !tmpi_inside;
}

/**
 * tmpi_attached_for - of a call that the library could do.
 *
 * Counts the call, and makes the communicator if it is the one at which that is due:
 * then it waits for the other ranks. A call that must not block makes none.
 * returns  what `comm` is to the module, which may have no communicator of the library;
 *          NULL: nothing
 */
struct tmpi_attached *tmpi_attached_for(MPI_Comm comm, enum tmpi_kind kind);

/**
 * tmpi_attached_error - what a call on this handle returns at once.
 *
 * Each function of MPI that gets a handle of no communicator calls an error handler. So
 * the first one here that gets it is the only one.
 * returns  the error; MPI_SUCCESS: the handle is of a communicator, or MPI_COMM_NULL
 */
int tmpi_attached_error(MPI_Comm comm);

/**
 * tmpi_attached_leave - have MPI free or disconnect a communicator.
 *
 * Calls on it from functions that delete attributes are MPI's: an attribute of this
 * module, if such a call gave it one, would outlive the communicator.
 */
int tmpi_attached_leave(int (*call)(MPI_Comm *), MPI_Comm *comm);

/** tmpi_attached_weight - the number of calls for which the newest one stands, if it is
 * to be timed; else 0. */
unsigned tmpi_attached_weight(const struct tmpi_attached *a);

/** tmpi_settings_agree - true if all ranks may use their settings; collective. */
bool tmpi_settings_agree(void);

/** tmpi_attached_begin - behind MPI_Init. */
void tmpi_attached_begin(void);

/** tmpi_attached_hold, tmpi_attached_release - an operation under way needs the
 * communicator of the library, also after the program has freed that of MPI. */
void tmpi_attached_hold(struct tmpi_attached *a);
void tmpi_attached_release(struct tmpi_attached *a);

/** tmpi_attached_keep, tmpi_attached_drop - a request needs this memory, which says
 * whose error handler is called, until MPI frees the request. */
void tmpi_attached_keep(struct tmpi_attached *a);
void tmpi_attached_drop(struct tmpi_attached *a);

/** tmpi_attached_end - free the library's communicators, in whatever order the ranks
 * come to them, and count them in the report; in MPI_Finalize. */
void tmpi_attached_end(void);

#endif
