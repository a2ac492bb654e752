/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_order STEPS - call MPI and Tributary in the order of the letters.
 *
 * m MPI_Init, b MPI_Barrier, M MPI_Finalize; t trib_init, s a sum, T trib_free_comm
 */
#include <mpi.h>
#include <stdio.h>
#include <tributary.h>

static int sum(trib_comm_t *comm)
{
    float x = (float)trib_rank(comm) + 1;

    if (trib_allreduce(comm, NULL, &x, 1, TRIB_F32, TRIB_SUM) == TRIB_OK) {
        printf("sum %g\n", (double)x);
        return 0;
    }
    fprintf(stderr, "%s\n", trib_last_error(comm));
    return 1;
}

int main(int argc, char **argv)
{
    trib_comm_t *comm = NULL;

    for (const char *step = argc > 1 ? argv[1] : ""; *step; step++) {
        if (*step == 'm' && MPI_Init(&argc, &argv))
            return 1;
        if (*step == 'b')
            MPI_Barrier(MPI_COMM_WORLD);
        if (*step == 'M')
            MPI_Finalize();
        if (*step == 't' && trib_init(NULL, &comm) != TRIB_OK) {
            fprintf(stderr, "%s\n", trib_last_error(NULL));
            return 1;
        }
        if (*step == 's' && sum(comm))
            return 1;
        if (*step == 'T' && trib_free_comm(comm) != TRIB_OK)
            return 1;
    }
    printf("all done\n");
    return 0;
}
