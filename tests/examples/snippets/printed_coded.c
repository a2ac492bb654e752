/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The products of tributary/coded.h. With an argument, rank 3 dies among them, and rank
 * 0 has all results.
 *
 *     trib-run -n 16 --grace 60 -- coded dies
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <tributary.h>
#include <tributary/coded.h>

enum { ROWS = 1000, COLUMNS = 785, PARTITIONS = 12 };

static bool dies;

/* Dies before its fourth product. */
static trib_status_t multiply(trib_coded_t *coded, const float *x, float *z)
{
    static int calls;

    if (dies && ++calls == 4)
        raise(SIGKILL);
    return trib_coded_multiply(coded, x, z);
}
#define trib_coded_multiply multiply

int main(int argc, char **argv)
{
    const int steps = 8;
    trib_comm_t *comm;
    trib_coded_t *coded;

    (void)argv;
    if (trib_init(NULL, &comm) != TRIB_OK)
        return 1;
    const int rank = trib_rank(comm);
    float *mine = calloc((size_t)ROWS * COLUMNS, sizeof(float));
    float *x = rank == 0 ? calloc(COLUMNS, sizeof(float)) : NULL;
    float *z = rank == 0 ? calloc((size_t)ROWS * PARTITIONS, sizeof(float)) : NULL;
    for (int i = 0; mine && i < ROWS * COLUMNS; i++)
        mine[i] = i % COLUMNS == 0 ? (float)(rank + 1) : 0;
    if (x)
        x[0] = 1;
    dies = argc > 1 && rank == 3;
    /* snippet include/tributary/coded.h: trib_coded_desc_t desc */
    for (int p = 0; z && p < PARTITIONS; p++)
        if (z[p * ROWS] < (float)p + 0.99f || z[p * ROWS] > (float)p + 1.01f)
            return printf("partition %d: %g\n", p, (double)z[p * ROWS]), 4;
    if (rank == 0)
        printf("all products\n");
    return trib_free_comm(comm) != TRIB_OK && argc < 2;
}
