/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gossip averaging that waits for no slow rank: messages may arrive two steps late. The
 * final drain adds all messages in flight, so that nothing is lost.
 *
 *     trib-run -n 4 -- gossip_late
 */
#include <stdio.h>
#include <tributary.h>
#include <unistd.h>

int main(void)
{
    trib_comm_t *comm;
    if (trib_init(NULL, &comm) != TRIB_OK) {
        fprintf(stderr, "%s\n", trib_last_error(NULL));
        return 1;
    }
    const int rank = trib_rank(comm), size = trib_size(comm);
    const double half = 0.5;
    double x[1000] = {rank}, weight = 1;
    trib_neighbors_desc_t d = TRIB_NEIGHBORS_DESC_INIT;
    d.count = 1000;
    d.dtype = TRIB_F64;
    d.late = 2;
    trib_plan_t *plan = NULL;
    trib_status_t st = trib_plan_neighbors(comm, &d, &plan);
    for (int step = 0; step <= 60 && st == TRIB_OK; step++) {
        usleep(step % size == rank ? 2000 : 100); /* simulates the work of a step */
        const int hop = 1 + step % (size - (size > 1)), n = size > 1;
        const int to = (rank + hop) % size, from = (rank + size - hop) % size;
        const trib_neighbors_t graph = {sizeof(graph), &to, &half, n, &from, n};
        st = step < 60 ? trib_plan_start_neighbors(plan, &graph, x, &weight)
                       : trib_plan_start_drain(plan, x, &weight);
        st = st == TRIB_OK ? trib_plan_wait(plan) : st;
    }
    printf("%s %.6f\n", st ? trib_last_error(comm) : "mean", x[0] / weight);
    trib_plan_free(plan);
    return trib_free_comm(comm) != TRIB_OK || st != TRIB_OK;
}
