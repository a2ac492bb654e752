/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/side_choice.h"

#include <string.h>

enum { SHORT = 14, LONG = 18 }; /* classes: 16 and 256 KiB */

int tmpi_class_of(size_t bytes)
{
    const int class = bytes <= 1 ? 0 : 64 - __builtin_clzll(bytes - 1);
    return class < TMPI_CLASSES ? class : TMPI_CLASSES - 1;
}

void tmpi_side_open(struct tmpi_side_choice *c, enum tmpi_kind kind, int class)
{
    c->side = TMPI_LIBRARY;
    c->decided = !tmpi_kinds[kind].timed;
    c->turn = !tmpi_kinds[kind].classes ? 1
              : class <= SHORT          ? TMPI_TURN_MOST
              : class <= LONG           ? 2
                                        : 1;
}

static double least(const double *x, int n)
{
    double found = x[0];

    for (int i = 1; i < n; i++)
        found = x[i] < found ? x[i] : found;
    return found;
}

static bool far_apart(const double *typical, double times)
{
    return typical[0] > times * typical[1] || typical[1] > times * typical[0];
}

/*
 * Agree on the side.
 *
 * rounds    timed rounds
 * calls     timed calls per turn
 * decides   true: the choice is final; false: only if one side takes `times` times as
 *           long
 */
static trib_status_t agree(struct tmpi_side_choice *c, trib_comm_t *comm, int rounds,
                           int calls, bool decides, double times)
{
    double sums[2][TMPI_ROUNDS];

    memcpy(sums, c->seconds, sizeof(sums));
    const trib_status_t st =
        trib_allreduce(comm, NULL, sums, 2 * (size_t)TMPI_ROUNDS, TRIB_F64, TRIB_SUM);
    if (st != TRIB_OK)
        return st;
    for (int side = 0; side < 2; side++)
        c->typical[side] = least(sums[side], rounds) / calls / trib_size(comm);
    c->side =
        c->typical[TMPI_LIBRARY] <= c->typical[TMPI_MPI] ? TMPI_LIBRARY : TMPI_MPI;
    c->decided = decides || far_apart(c->typical, times);
    return TRIB_OK;
}

static trib_status_t quick_check(struct tmpi_side_choice *c, trib_comm_t *comm,
                                 double seconds)
{
    enum { DECISIVE_RATIO = 10 };
    const double min_call_s = 500e-6; /* shorter calls are always measured fully */
    const int turn = tmpi_side_turn(c), round = c->tried / (2 * turn) - 1;

    if (round >= 0 && c->tried % turn == turn - 1)
        c->seconds[tmpi_side_now(c)][round] = seconds;
    c->tried++;
    if (c->tried < 2 * turn * (TMPI_QUICK + 1))
        return TRIB_OK;
    const trib_status_t st = agree(c, comm, TMPI_QUICK, 1, false, DECISIVE_RATIO);
    if (c->typical[TMPI_LIBRARY] < min_call_s && c->typical[TMPI_MPI] < min_call_s)
        c->decided = false;
    c->quick_done = true;
    c->tried = 0;
    memset(c->seconds, 0, sizeof(c->seconds));
    return st;
}

trib_status_t tmpi_side_record(struct tmpi_side_choice *c, trib_comm_t *comm,
                               double seconds)
{
    enum { CLEAR_RATIO = 3 };

    if (!c->quick_done)
        return quick_check(c, comm, seconds);
    c->seconds[tmpi_side_now(c)][c->tried / (2 * c->turn)] += seconds;
    c->tried++;
    const int done = c->tried / (2 * c->turn); /* complete rounds */
    const bool ends = c->tried % (2 * c->turn) == 0;
    return ends && (done == TMPI_SURE || done == TMPI_ROUNDS)
               ? agree(c, comm, done, c->turn, done == TMPI_ROUNDS, CLEAR_RATIO)
               : TRIB_OK;
}
