/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tool as mpiP or IPM: it counts the calls of the program, with state that MPI_Init
 * makes. With -DLIBRARY it is the library of an MPI that has PMPI_X in another library.
 * Compiled with -DPROGRAM it is a program that makes the calls instead, and a
 * child of it prints LD_PRELOAD.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef PROGRAM
int main(int argc, char **argv)
{
    int rank, x = 1, y = 0, wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 20; i++) {
        MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        wrong += y < 1;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("wrong %d\n", wrong);
    fflush(stdout);
    if (rank == 0 && system("echo \"the child has ($LD_PRELOAD)\""))
        wrong++;
    MPI_Finalize();
    return wrong != 0;
}
#else
static int *calls;
static MPI_Comm own;

int MPI_Init(int *argc, char ***argv)
{
    const int result = PMPI_Init(argc, argv);

    calls = calloc(2, sizeof(*calls));
    PMPI_Comm_dup(MPI_COMM_WORLD, &own);
    return result;
}

int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    calls[0]++;
    return PMPI_Allreduce(send, recv, count, type, op, comm);
}

int MPI_Barrier(MPI_Comm comm)
{
    calls[1]++;
    return PMPI_Barrier(comm);
}

#ifdef LIBRARY /* tools have no function for this one */
int MPI_T_init_thread(int wanted, int *provided)
{
    return PMPI_T_init_thread(wanted, provided);
}
#endif

int MPI_Finalize(void)
{
    int rank;

    if (!calls) /* MPI_Init was not called */
        return PMPI_Finalize();
    PMPI_Comm_rank(own, &rank);
    if (rank == 0)
        printf("tool: allreduce %d barrier %d\n", calls[0], calls[1]);
    fflush(stdout);
    PMPI_Comm_free(&own);
    free(calls);
    return PMPI_Finalize();
}
#endif
