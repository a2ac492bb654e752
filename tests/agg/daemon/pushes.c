/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that push to the vectors of a store and sum through the communicator as well.
 *
 *     trib-run -n 2 -- pushes FILE [COUNT]    run until the file exists
 *
 * Exit code 0: the vectors contain each push of each rank once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tributary.h>

enum { VECTORS = 6, USUAL = 20000, MOST = 100000 };

/* The error message is from the store, the communicator, or trib_init. */
static void must(trib_status_t st, const char *what, const trib_store_t *store,
                 const trib_comm_t *comm)
{
    if (st == TRIB_OK)
        return;
    fprintf(stderr, "%s: %s\n", what,
            store ? trib_store_error(store) : trib_last_error(comm));
    exit(1);
}

static void check(trib_comm_t *comm, trib_store_t *store, trib_vector_t *const *v,
                  int64_t *x, size_t count, int64_t pushes)
{
    uint64_t version = 0;

    must(trib_barrier(comm), "the end", NULL, comm);
    for (int i = 0; i < VECTORS; i++) {
        must(trib_store_pull(v[i], x, NULL, &version), "pull", store, NULL);
        for (size_t k = 0; k < count; k++)
            if (x[k] != pushes * trib_size(comm) ||
                version != (uint64_t)(pushes * trib_size(comm))) {
                fprintf(stderr, "element %zu of vector %d is wrong\n", k, i);
                exit(1);
            }
    }
}

int main(int argc, char **argv)
{
    const size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : USUAL;
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    trib_store_t *store = NULL;
    trib_vector_t *v[VECTORS];
    trib_comm_t *comm;
    int64_t *x = calloc(count, sizeof(*x)), pushes = 0;
    int32_t on = 1;

    if (argc < 2 || !x)
        return 2;
    must(trib_init(NULL, &comm), "init", NULL, NULL);
    must(trib_store_open(comm, &store), "open", NULL, comm);
    for (int i = 0; i < VECTORS; i++) {
        char name[] = {'v', (char)('0' + i), '\0'};
        d.name = name;
        d.count = count;
        d.dtype = TRIB_I64;
        must(trib_store_create(store, &d, &v[i]), "create", store, NULL);
    }
    for (; on && pushes < MOST; pushes++) {
        for (int i = 0; i < VECTORS; i++) {
            must(trib_store_pull(v[i], x, NULL, NULL), "pull", store, NULL);
            for (size_t k = 0; k < count; k++)
                x[k] = 1;
            must(trib_store_push(v[i], x, NULL, NULL), "push", store, NULL);
        }
        on = access(argv[1], F_OK) != 0;
        must(trib_allreduce(comm, NULL, &on, 1, TRIB_I32, TRIB_MIN), "a sum",
             NULL, comm);
    }
    check(comm, store, v, x, count, pushes);
    if (trib_rank(comm) == 0)
        printf("%d pushes, all right\n", (int)pushes);
    free(x);
    trib_store_free(store);
    return trib_free_comm(comm) != TRIB_OK;
}
