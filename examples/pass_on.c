/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of messages: each rank sends to its right neighbour what it received from the
 * left, until every rank has seen all vectors.
 *
 *     trib-run -n 4 -- pass_on
 */
#include <stdio.h>

#include <tributary.h>

enum { N = 1000, TAG = 1 };

int main(void)
{
    trib_comm_t *comm;
    if (trib_init(NULL, &comm) != TRIB_OK) {
        fprintf(stderr, "%s\n", trib_last_error(NULL));
        return 1;
    }
    const int rank = trib_rank(comm), size = trib_size(comm);
    float x[2][N] = {{(float)rank}};
    float sum = 0;
    trib_plan_t *send = NULL, *recv = NULL;
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    trib_status_t st = trib_plan_send(comm, NULL, N, TRIB_F32, right, TAG, &send);
    if (st == TRIB_OK)
        st = trib_plan_recv(comm, NULL, N, TRIB_F32, left, TAG, &recv);
    for (int i = 0; i < size && st == TRIB_OK; i++) {
        sum += x[i % 2][0];
        if ((st = trib_plan_start_with(send, x[i % 2], NULL)) == TRIB_OK &&
            (st = trib_plan_start_with(recv, NULL, x[1 - i % 2])) == TRIB_OK &&
            (st = trib_plan_wait(recv)) == TRIB_OK)
            st = trib_plan_wait(send);
    }
    printf("%s, sum %g\n", st ? trib_last_error(comm) : "round", (double)sum);
    trib_plan_free(send);
    trib_plan_free(recv);
    return trib_free_comm(comm) != TRIB_OK || st != TRIB_OK;
}
