/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A vector of 16 MiB, sharded across all tribds. Ranks push to all shards in parallel.
 *
 *     TRIB_SERVICE=host0:4700,host1:4700 trib-run -n 4 -- shards
 */
#include <stdio.h>
#include <stdlib.h>
#include <tributary.h>

enum { COUNT = 4 << 20, STEPS = 5 };

int main(void)
{
    trib_comm_t *comm;
    trib_store_t *store;
    trib_vector_t *v = NULL;
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    float *x = malloc(COUNT * sizeof(*x));
    uint64_t version = 0;
    if (!x || trib_init(NULL, &comm) || trib_store_open(comm, &store)) {
        fprintf(stderr, "cannot open a store\n");
        return 1;
    }
    d.name = "model", d.count = COUNT, d.rule = "sgd:rate=0.25,momentum=0.5";
    d.shards = 0; /* one per tribd, each at least 1 MiB; 1: not sharded */
    trib_status_t st = trib_store_create(store, &d, &v);
    for (int step = 0; step < STEPS && !st; step++) {
        for (int i = 0; i < COUNT; i++)
            x[i] = -1;
        st = trib_store_push(v, x, NULL, &version); /* all shards have >= version */
    }
    st = st ? st : trib_store_wait(v, STEPS * (uint64_t)trib_size(comm), 0, NULL);
    st = st ? st : trib_store_pull(v, x, NULL, &version);
    printf("version %d, x[0] = %.2f, x[%d] = %.2f: %s\n", (int)version, (double)x[0],
           COUNT - 1, (double)x[COUNT - 1], trib_store_error(store));
    trib_store_free(store);
    free(x);
    return trib_free_comm(comm) || st;
}
