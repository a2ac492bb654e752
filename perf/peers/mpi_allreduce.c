/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time MPI_Allreduce of float32 sums; see timing.h.
 *
 *     mpicc.openmpi -O2 -I. perf/peers/mpi_allreduce.c -o mpi_allreduce.openmpi
 *     mpicc.mpich -O2 -I. perf/peers/mpi_allreduce.c -o mpi_allreduce.mpich
 *     mpirun.openmpi -np 2 ./mpi_allreduce.openmpi -l openmpi
 */
#include <mpi.h>

#include "perf/peers/timing.h"

static void mpi_allreduce(void *state, const float *send, float *recv, size_t count)
{
    const void *from = send == NULL ? MPI_IN_PLACE : send;
    (void)state;
    MPI_Allreduce(from, recv, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void mpi_barrier(void *state)
{
    (void)state;
    MPI_Barrier(MPI_COMM_WORLD);
}

static double mpi_most(void *state, double value)
{
    double most;
    (void)state;
    MPI_Allreduce(&value, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

int main(int argc, char **argv)
{
    struct peer peer = {0, 0, NULL, mpi_allreduce, mpi_barrier, mpi_most};
    struct peer_args args;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &peer.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &peer.ranks);
    int code = peer_args_parse(argc, argv, &args);
    if (code == 0)
        code = peer_sweep(&peer, &args);
    if (code != 0)
        MPI_Abort(MPI_COMM_WORLD, code);
    MPI_Finalize();
    return 0;
}
