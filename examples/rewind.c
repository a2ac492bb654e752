/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank dies, and the residuals of the other ranks' codecs are not lost.
 *     trib-run -n 4 --grace 60 -- rewind */
#include <signal.h>
#include <stdio.h>
#include <tributary.h>

enum { N = 5000, STEPS = 20, DIES_AT = 7 };

int main(void)
{
    trib_opts_t opts = TRIB_OPTS_INIT;
    trib_desc_t desc = TRIB_DESC_INIT;
    trib_comm_t *comm, *smaller;
    trib_plan_t *plan, *old;
    static float x[N];
    opts.rewind = 1; /* allow starts to be undone */
    desc.recv = x, desc.count = N, desc.codec = "topk:ratio=0.01";
    if (trib_init(&opts, &comm) != TRIB_OK || trib_plan_allreduce(comm, &desc, &plan))
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    for (int64_t done = 0; done < STEPS;) {
        for (int i = 0; i < N; i++)
            x[i] = (float)(i % 100);
        trib_status_t st = trib_plan_start(plan);
        if (done == DIES_AT && trib_rank(comm) == 0 && trib_size(comm) == 4)
            raise(SIGKILL);
        st = st == TRIB_OK ? trib_plan_wait(plan) : st;
        done += st == TRIB_OK;
        if (st == TRIB_OK && done == STEPS) /* no rank exits before all are done */
            st = trib_barrier(comm);
        if (st == TRIB_OK)
            continue;
        if (st != TRIB_ERR_PEER_LOST && st != TRIB_ERR_ABORTED)
            return fprintf(stderr, "%s\n", trib_last_error(comm)), 1;
        if (trib_comm_shrink(comm, &smaller) != TRIB_OK ||
            trib_allreduce(smaller, NULL, &done, 1, TRIB_I64, TRIB_MIN) != TRIB_OK)
            return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
        old = plan;
        if (trib_plan_move(smaller, old, NULL, x, (uint64_t)done, &plan) != TRIB_OK)
            return fprintf(stderr, "%s\n", trib_last_error(smaller)), 1;
        trib_plan_free(old), trib_free_comm(comm), comm = smaller;
    }
    printf("rank %d of %d: %d steps\n", trib_rank(comm), trib_size(comm), STEPS);
    return trib_plan_free(plan) != TRIB_OK || trib_free_comm(comm) != TRIB_OK;
}
