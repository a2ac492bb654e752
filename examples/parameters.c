/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A parameter server: ranks fit a vector that is stored in tribd, each at its own pace.
 *
 *     TRIB_SERVICE=127.0.0.1:4700 trib-run -n 4 -- parameters
 */
#include <stdio.h>
#include <tributary.h>

enum { COUNT = 1000, STEPS = 200 };

int main(void)
{
    trib_comm_t *comm;
    trib_store_t *store = NULL;
    trib_vector_t *v = NULL;
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    float x[COUNT], gradient[COUNT];
    uint64_t version = 0;
    if (trib_init(NULL, &comm) != TRIB_OK || trib_store_open(comm, &store) != TRIB_OK) {
        fprintf(stderr, "%s\n", trib_last_error(comm));
        return 1;
    }
    d.name = "weights";
    d.count = COUNT;
    d.rule = "sgd:rate=0.01,momentum=0.5";
    trib_status_t st = trib_store_create(store, &d, &v);
    for (int step = 0; step < STEPS && st == TRIB_OK; step++) {
        st = trib_store_pull(v, x, NULL, NULL);
        for (int i = 0; i < COUNT; i++)
            gradient[i] = x[i] - (float)i; /* gradient of |x - (0, 1, 2, …)|^2 / 2 */
        st = st == TRIB_OK ? trib_store_push(v, gradient, NULL, NULL) : st;
    }
    if (st == TRIB_OK && trib_barrier(comm) == TRIB_OK)
        st = trib_store_pull(v, x, NULL, &version);
    printf("version %d, x[999] = %.1f: %s\n", (int)version, (double)x[COUNT - 1],
           trib_store_error(store));
    trib_store_free(store);
    return trib_free_comm(comm) != TRIB_OK || st != TRIB_OK;
}
