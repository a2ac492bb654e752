/* SPDX-License-Identifier: BSD-3-Clause */
/* An embedding in tribd: a rank pulls only the rows of its batch, and pushes only their
 * gradients.  TRIB_SERVICE=127.0.0.1:4700 trib-run -n 4 -- embedding */
#include <stdio.h>
#include <tributary.h>

enum { ROWS = 100000, BATCH = 32, STEPS = 40 };

int main(void)
{
    trib_comm_t *comm;
    trib_store_t *store = NULL;
    trib_vector_t *v = NULL;
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    trib_pull_opts_t pull = TRIB_PULL_OPTS_INIT;
    trib_push_opts_t push = TRIB_PUSH_OPTS_INIT;
    uint64_t rows[BATCH];
    float x[BATCH];
    if (trib_init(NULL, &comm) != TRIB_OK || trib_store_open(comm, &store) != TRIB_OK)
        return fprintf(stderr, "%s\n", trib_last_error(comm)), 1;
    d.name = "embedding";
    d.count = ROWS;
    d.rule = "sgd:rate=0.5";
    pull.indices = push.indices = rows;
    pull.count = push.count = BATCH;
    trib_status_t st = trib_store_create(store, &d, &v);
    for (int step = 0; step < STEPS && st == TRIB_OK; step++) {
        for (int i = 0; i < BATCH; i++) /* here no two ranks use one row */
            rows[i] = (uint64_t)(i * 64 + trib_rank(comm));
        st = trib_store_pull(v, x, &pull, NULL);
        for (int i = 0; i < BATCH; i++)
            x[i] -= (float)rows[i]; /* gradient of (x - row)^2 / 2 */
        push.result = x; /* receives the updated rows */
        st = st == TRIB_OK ? trib_store_push(v, x, &push, NULL) : st;
    }
    printf("x = %.1f: %s\n", (double)x[BATCH - 1], trib_store_error(store));
    trib_store_free(store);
    return trib_free_comm(comm) != TRIB_OK || st != TRIB_OK;
}
