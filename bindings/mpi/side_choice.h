/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chooses the faster side for a call: the library or MPI. For each kind and size, the
 * sides take turns at the first calls, a few calls each, and the calls are timed. Then
 * the ranks agree on the side with the lower time, summed over all ranks, of its
 * fastest turn.
 *
 * A quick check of a few calls comes first. It decides if one side takes ten times as
 * long, like an MPI that does not yield when its ranks share cores.
 */
#ifndef BINDINGS_MPI_SIDE_CHOICE_H
#define BINDINGS_MPI_SIDE_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary.h>

#include "bindings/mpi/call_kinds.h"

enum {
    TMPI_CLASSES = 48, /* of bytes, one per power of two */
    TMPI_ROUNDS = 5, /* one turn per side each */
    TMPI_QUICK = 2, /* timed rounds of the quick check, after one to connect */
    /* Calls per turn of the quick check. The last one is timed: the first one waits for
     * ranks that the other side has delayed. */
    TMPI_TURN_QUICK = 2,
    TMPI_SURE = 2, /* rounds after which a much faster side is chosen */
    TMPI_TURN_MOST = 8, /* maximum calls per turn */
};

enum tmpi_side { TMPI_MPI, TMPI_LIBRARY };

/* The choice for one kind of call and size on a communicator. */
struct tmpi_side_choice {
    bool decided;
    enum tmpi_side side; /* valid once decided */
    int turn; /* calls per turn, after the quick check */
    bool quick_done; /* the quick check is done */
    int tried; /* calls of both sides, in the quick check or since */
    double seconds[2][TMPI_ROUNDS]; /* per turn, on this rank */
    double typical[2]; /* per call, in s, mean over ranks; 0: not measured */
    uint64_t calls[2]; /* calls per side */
    uint64_t bytes[2];
};

/** tmpi_class_of - return log2(bytes), rounded up, limited to TMPI_CLASSES - 1. */
int tmpi_class_of(size_t bytes);

/** tmpi_side_open - initialise a choice. Kinds without classes have turns of one
 * call. */
void tmpi_side_open(struct tmpi_side_choice *c, enum tmpi_kind kind, int class);

/** tmpi_side_turn - return the current number of calls per turn. */
static inline int tmpi_side_turn(const struct tmpi_side_choice *c)
{
    return c->quick_done || c->turn < TMPI_TURN_QUICK ? c->turn : TMPI_TURN_QUICK;
}

/** tmpi_side_now - return the side that does the next call. */
static inline enum tmpi_side tmpi_side_now(const struct tmpi_side_choice *c)
{
    if (c->decided)
        return c->side;
    return c->tried / tmpi_side_turn(c) % 2 ? TMPI_MPI : TMPI_LIBRARY;
}

/**
 * tmpi_side_record - record the time of a call while the choice is open.
 *
 * After the last call of some rounds, the ranks agree over comm. This waits for the
 * other ranks, which are in the same call.
 */
trib_status_t tmpi_side_record(struct tmpi_side_choice *c, trib_comm_t *comm,
                               double seconds);

#endif
