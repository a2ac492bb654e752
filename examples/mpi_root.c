/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tributary in an MPI program: rank 0 creates the rendezvous and broadcasts its address
 * with MPI_Bcast. Works with any MPI and any launcher.
 *
 *     mpicc mpi_root.c $(pkg-config --cflags --libs tributary) -o mpi_root
 *     mpirun -n 4 ./mpi_root
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <tributary.h>

static trib_status_t join(int rank, int ranks, trib_comm_t **comm)
{
    trib_opts_t opts = TRIB_OPTS_INIT;
    trib_root_t *root = NULL;
    char text[TRIB_ROOT_TEXT_MAX] = "";

    if (rank == 0 && trib_root_create(&root) == TRIB_OK)
        strcpy(text, trib_root_text(root));
    MPI_Bcast(text, sizeof(text), MPI_CHAR, 0, MPI_COMM_WORLD);
    opts.rank_plus_1 = rank + 1;
    opts.ranks = ranks;
    opts.root = text;
    trib_status_t status = trib_init(&opts, comm);
    trib_root_destroy(root); /* all ranks are connected */
    return status;
}

static trib_status_t sum_ranks(trib_comm_t *comm)
{
    float x = (float)trib_rank(comm);
    trib_status_t status = trib_allreduce(comm, NULL, &x, 1, TRIB_F32, TRIB_SUM);

    if (status != TRIB_OK)
        fprintf(stderr, "%s\n", trib_last_error(comm));
    else if (trib_rank(comm) == 0)
        printf("%d ranks, sum of ranks %g\n", trib_size(comm), (double)x);
    return status;
}

int main(int argc, char **argv)
{
    trib_comm_t *comm;
    int rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    trib_status_t status = join(rank, ranks, &comm);
    if (status == TRIB_OK) {
        status = sum_ranks(comm);
        trib_free_comm(comm);
    } else {
        fprintf(stderr, "%s\n", trib_last_error(NULL));
    }
    MPI_Finalize();
    return status != TRIB_OK;
}
