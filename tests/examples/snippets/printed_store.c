/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of tributary/store.h. With an argument, rank 1 dies after its push: the
 * store is not affected.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <tributary.h>
#include <tributary/store.h>

enum { N = 1000 };

int main(int argc, char **argv)
{
    static float x[N], gradient[N];
    const size_t n = N;
    uint64_t version = 0;
    trib_comm_t *comm;
    trib_store_t *store;
    trib_vector_t *vector;
    trib_vector_desc_t desc = TRIB_VECTOR_DESC_INIT;

    if (trib_init(NULL, &comm) != TRIB_OK)
        return 1;
    const int rank = trib_rank(comm), ranks = trib_size(comm);
    for (int i = 0; i < N; i++)
        gradient[i] = 1;
    /* snippet include/tributary/store.h: trib_store_open(comm, &store); */
    (void)argv;
    if (argc > 1 && rank == 1)
        raise(SIGKILL);
    for (int k = 0; version < (uint64_t)ranks && k < 10000; k++) {
        if (trib_store_pull(vector, x, NULL, &version) != TRIB_OK)
            return printf("%s\n", trib_store_error(store)), 3;
        usleep(1000);
    }
    printf("version %d\n", (int)version);
    trib_store_free(store);
    return trib_free_comm(comm) != TRIB_OK && argc < 2;
}
