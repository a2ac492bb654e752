/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The side that does a call faster: the library or MPI. Both do the first calls of each
 * kind and size in turns, a few calls a turn, and are timed; then the ranks agree. What
 * counts is the time of all ranks together in the least disturbed turn.
 *
 * A quick look comes first, of a few calls: where one side takes ten times as long, as
 * an MPI whose ranks share cores without yielding does, it has the choice.
 */
#ifndef MPI_SIDE_CHOICE_H
#define MPI_SIDE_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary.h>

#include "mpi/call_kinds.h"

enum {
    TMPI_CLASSES = 48, /* of bytes, by powers of two */
    TMPI_ROUNDS = 5, /* a turn of each side */
    TMPI_QUICK = 2, /* rounds of the quick look; one more before makes connections */
    TMPI_TURN_QUICK = 2, /* calls of its turns, of which the last is timed: the first
                          * waits for ranks that the other side has left behind */
    TMPI_SURE = 2, /* rounds after which a side that is much faster is taken */
    TMPI_TURN_MOST = 8, /* calls */
};

enum tmpi_side { TMPI_MPI, TMPI_LIBRARY };

/* Of one kind of call and size, on one communicator. */
struct tmpi_side_choice {
    bool decided;
    enum tmpi_side side; /* once decided */
    int turn; /* calls in a row by one side, after the quick look */
    bool looked; /* the quick look is over */
    int tried; /* calls of both sides in it, or since then */
    double seconds[2][TMPI_ROUNDS]; /* of this rank, a turn each */
    double typical[2]; /* of a call, s, mean of ranks; 0: not measured */
    uint64_t calls[2]; /* that each side did */
    uint64_t bytes[2];
};

/** tmpi_class_of - the number of the power of two that bytes fit into. */
int tmpi_class_of(size_t bytes);

/** tmpi_side_open - begin; kinds without classes have a turn of one call. */
void tmpi_side_open(struct tmpi_side_choice *c, enum tmpi_kind kind, int class);

/** tmpi_side_turn - calls in a row by one side, now. */
static inline int tmpi_side_turn(const struct tmpi_side_choice *c)
{
    return c->looked || c->turn < TMPI_TURN_QUICK ? c->turn : TMPI_TURN_QUICK;
}

/** tmpi_side_now - whose turn it is. */
static inline enum tmpi_side tmpi_side_now(const struct tmpi_side_choice *c)
{
    if (c->decided)
        return c->side;
    return c->tried / tmpi_side_turn(c) % 2 ? TMPI_MPI : TMPI_LIBRARY;
}

/**
 * tmpi_side_tried - a call has been done while nothing was decided.
 *
 * The last one of some rounds agrees over comm: it waits for the other ranks, which are
 * in the same call.
 */
trib_status_t tmpi_side_tried(struct tmpi_side_choice *c, trib_comm_t *comm,
                              double seconds);

#endif
