/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Four all-reduces in flight while the program computes, each with a request.
 *
 *     trib-run -n 3 -- overlap
 */
#include <stdio.h>
#include <tributary.h>

enum { SUMS = 4, N = 100000 };

static float x[SUMS][N];

int main(void)
{
    trib_comm_t *comm;
    trib_request_t *request[SUMS] = {NULL};
    trib_status_t st = trib_init(NULL, &comm);

    if (st != TRIB_OK) {
        fprintf(stderr, "%s\n", trib_last_error(NULL));
        return 1;
    }
    for (int i = 0; i < SUMS && st == TRIB_OK; i++) {
        for (int k = 0; k < N; k++) /* compute one while others are summed */
            x[i][k] = (float)(i + trib_rank(comm));
        st = trib_iallreduce(comm, NULL, x[i], N, TRIB_F32, TRIB_SUM, &request[i]);
    }
    for (int i = SUMS - 1; i >= 0 && st == TRIB_OK; i--) {
        st = trib_request_wait(request[i]);
        if (st == TRIB_OK)
            st = trib_request_free(request[i]);
    }
    if (st != TRIB_OK)
        fprintf(stderr, "%s\n", trib_last_error(comm));
    else if (trib_rank(comm) == 0)
        printf("sums %g %g %g %g\n", (double)x[0][0], (double)x[1][N / 2],
               (double)x[2][1], (double)x[3][N - 1]);
    return trib_free_comm(comm) != TRIB_OK || st != TRIB_OK;
}
