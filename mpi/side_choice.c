/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/side_choice.h"

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

static bool far_apart(double a, double b)
{
    return a > 3 * b || b > 3 * a;
}

static trib_status_t agree(struct tmpi_side_choice *c, trib_comm_t *comm, int rounds)
{
    double sums[2][TMPI_ROUNDS];

    memcpy(sums, c->seconds, sizeof(sums));
    const trib_status_t st =
        trib_allreduce(comm, NULL, sums, 2 * (size_t)TMPI_ROUNDS, TRIB_F64, TRIB_SUM);
    if (st != TRIB_OK)
        return st;
    for (int side = 0; side < 2; side++)
        c->typical[side] = least(sums[side], rounds) / c->turn / trib_size(comm);
    c->side =
        c->typical[TMPI_LIBRARY] <= c->typical[TMPI_MPI] ? TMPI_LIBRARY : TMPI_MPI;
    c->decided = rounds == TMPI_ROUNDS ||
                 far_apart(c->typical[TMPI_LIBRARY], c->typical[TMPI_MPI]);
    return TRIB_OK;
}

trib_status_t tmpi_side_tried(struct tmpi_side_choice *c, trib_comm_t *comm,
                              double seconds)
{
    const int round = c->tried / (2 * c->turn) - 1;

    if (round >= 0)
        c->seconds[tmpi_side_now(c)][round] += seconds;
    c->tried++;
    const int done = c->tried / (2 * c->turn) - 1; /* whole rounds */
    const bool ends = c->tried % (2 * c->turn) == 0;
    return ends && (done == TMPI_SURE || done == TMPI_ROUNDS) ? agree(c, comm, done)
                                                              : TRIB_OK;
}
