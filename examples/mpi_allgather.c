/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tributary in an MPI program: the ranks of a communicator exchange their addresses
 * with MPI_Allgather, so no port is needed.
 *
 *     mpicc mpi_allgather.c $(pkg-config --cflags --libs tributary) -o mpi_allgather
 *     mpirun -n 4 ./mpi_allgather
 */
#include <mpi.h>
#include <stdio.h>
#include <tributary.h>

static int gather(void *world, const void *in, void *out, size_t bytes)
{
    return MPI_Allgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE,
                         *(MPI_Comm *)world);
}

int main(int argc, char **argv)
{
    MPI_Comm world = MPI_COMM_WORLD;
    trib_opts_t opts = {sizeof(opts), .allgather = gather, .allgather_arg = &world};
    trib_comm_t *comm;
    float x = 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(world, &opts.rank_plus_1);
    MPI_Comm_size(world, &opts.ranks);
    opts.rank_plus_1++;
    if (trib_init(&opts, &comm) != TRIB_OK) {
        fprintf(stderr, "%s\n", trib_last_error(NULL));
        MPI_Abort(world, 1);
    }
    trib_status_t status = trib_allreduce(comm, NULL, &x, 1, TRIB_F32, TRIB_SUM);
    if (trib_rank(comm) == 0)
        printf("%d ranks, sum %g\n", trib_size(comm), (double)x);
    trib_free_comm(comm);
    MPI_Finalize();
    return status != TRIB_OK;
}
