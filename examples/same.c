/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Check that all ranks have the same parameters. Rank 2 has different ones and is
 * named; then all ranks get the parameters of a rank that is right.
 *
 *     trib-run -n 4 -- same
 */
#include <stdio.h>
#include <tributary.h>

enum { N = 1000 };

static float weights[N], biases[N];

static int n_different(trib_comm_t *comm, int *rank)
{
    uint64_t hash = trib_hash(weights, sizeof(weights), 0);
    int n = -1;

    hash = trib_hash(biases, sizeof(biases), hash);
    if (trib_comm_same(comm, hash, rank, 1, &n) != TRIB_OK)
        fprintf(stderr, "%s\n", trib_last_error(comm));
    return n;
}

int main(void)
{
    trib_comm_t *comm;
    int rank = -1;

    if (trib_init(NULL, &comm) != TRIB_OK)
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    biases[7] = trib_rank(comm) == 2;
    if (n_different(comm, &rank) == 1 && trib_rank(comm) == 0)
        printf("rank %d differs\n", rank);
    trib_broadcast(comm, biases, N, TRIB_F32, rank == 0);
    if (n_different(comm, &rank) == 0 && trib_rank(comm) == 0)
        printf("all are the same\n");
    return trib_free_comm(comm) != TRIB_OK;
}
