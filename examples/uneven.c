/* SPDX-License-Identifier: BSD-3-Clause */
/* The last batch of an epoch is shorter on some ranks, and empty on others. The
 * weighted mean of the gradients counts each sample once. */
#include <stdio.h>
#include <tributary.h>

int main(void)
{
    trib_desc_t desc = TRIB_DESC_INIT;
    trib_comm_t *comm;
    trib_plan_t *plan;
    float gradient[4];

    if (trib_init(NULL, &comm) != TRIB_OK)
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    const int rank = trib_rank(comm);
    desc.recv = gradient;
    desc.count = 4;
    desc.op = TRIB_MEAN;
    desc.weighted = 1;
    int bad = trib_plan_allreduce(comm, &desc, &plan);
    for (int step = 0; step < 2 && !bad; step++) {
        const int samples = step == 0 ? 8 : 4 * rank; /* samples of this rank */
        for (int i = 0; i < 4; i++)
            gradient[i] = (float)(rank + i); /* mean over these samples */
        bad = trib_plan_set_scale(plan, samples, 1) || trib_plan_start(plan) ||
              trib_plan_wait(plan);
        if (rank == 0)
            printf("step %d: %g %g\n", step, (double)gradient[0], (double)gradient[3]);
    }
    if (bad)
        fprintf(stderr, "%s\n", trib_last_error(comm));
    trib_plan_free(plan);
    return trib_free_comm(comm) != TRIB_OK || bad;
}
