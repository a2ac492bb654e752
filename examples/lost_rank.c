/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank is killed in the middle of the job, and the others continue without it.
 *
 *     trib-run -n 4 --grace 60 -- lost_rank
 */
#include <signal.h>
#include <stdio.h>
#include <tributary.h>

enum { N = 1000, STEPS = 20, DIES_AT = 7 };

int main(void)
{
    trib_comm_t *comm, *smaller;
    float in[N], sum[N];
    uint64_t step = 0;
    trib_status_t st = trib_init(NULL, &comm);

    if (st != TRIB_OK)
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    while (step <= STEPS) {
        if (step == DIES_AT && trib_rank(comm) == 0 && trib_size(comm) == 4)
            raise(SIGKILL);
        for (int i = 0; i < N; i++)
            in[i] = (float)step + (float)i;
        st = step < STEPS ? trib_allreduce(comm, in, sum, N, TRIB_F32, TRIB_SUM)
                          : trib_barrier(comm); /* no rank exits before all are done */
        if (st == TRIB_OK && step < STEPS &&
            sum[N - 1] != in[N - 1] * (float)trib_size(comm))
            return fprintf(stderr, "step %d is wrong\n", (int)step), 1;
        step += st == TRIB_OK;
        while (st == TRIB_ERR_PEER_LOST || st == TRIB_ERR_ABORTED) {
            fprintf(stderr, "%s\n", trib_last_error(comm));
            if (trib_comm_shrink(comm, &smaller) != TRIB_OK)
                return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
            trib_free_comm(comm);
            comm = smaller; /* repeat the first step not done by all ranks */
            st = trib_allreduce(comm, NULL, &step, 1, TRIB_U64, TRIB_MIN);
        }
        if (st != TRIB_OK)
            return fprintf(stderr, "%s\n", trib_last_error(comm)), 1;
    }
    printf("rank %d of %d has done %d steps\n", trib_rank(comm), trib_size(comm),
           STEPS);
    return trib_free_comm(comm) != TRIB_OK;
}
