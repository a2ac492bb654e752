/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gossip averaging: in each step a rank sends half of its value and weight to one other
 * rank. The distances are 1, 2, 4, … With 2^k ranks, all have the mean after k steps.
 *
 *     trib-run -n 4 -- gossip
 */
#include <stdio.h>

#include <tributary.h>

enum { N = 1000 };

int main(void)
{
    trib_comm_t *comm;
    if (trib_init(NULL, &comm) != TRIB_OK) {
        fprintf(stderr, "%s\n", trib_last_error(NULL));
        return 1;
    }
    const int rank = trib_rank(comm), size = trib_size(comm);
    const double half = 0.5;
    double weight = 1;
    float x[N] = {(float)rank};
    trib_neighbors_desc_t d = TRIB_NEIGHBORS_DESC_INIT;
    trib_plan_t *plan = NULL;
    d.count = N;
    trib_status_t st = trib_plan_neighbors(comm, &d, &plan);
    for (int hop = 1; hop < size && st == TRIB_OK; hop *= 2) {
        const int to = (rank + hop) % size, from = (rank + size - hop) % size;
        const trib_neighbors_t graph = {sizeof(graph), &to, &half, 1, &from, 1};
        st = trib_plan_start_neighbors(plan, &graph, x, &weight);
        if (st == TRIB_OK)
            st = trib_plan_wait(plan);
    }
    printf("%s %g\n", st ? trib_last_error(comm) : "mean", (double)x[0] / weight);
    trib_plan_free(plan);
    return trib_free_comm(comm) != TRIB_OK || st != TRIB_OK;
}
