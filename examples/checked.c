/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks sums for corruption in transit (TRIB_CHECK=sum) and prints statistics of the
 * gradient.  TRIB_CHECK=sum TRIB_STATS=1 trib-run -n 3 -- checked */
#include <stdio.h>
#include <tributary.h>

enum { COUNT = 100000, STEPS = 5 };

int main(void)
{
    static float gradient[COUNT];
    trib_plan_stats_t s = {.size = sizeof s};
    trib_desc_t d = TRIB_DESC_INIT;
    trib_comm_t *comm;
    trib_plan_t *plan;
    if (trib_init(NULL, &comm) != TRIB_OK)
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    d.recv = gradient;
    d.count = COUNT;
    d.name = "layer1";
    trib_status_t st = trib_plan_allreduce(comm, &d, &plan);
    for (int step = 0; step < STEPS && st == TRIB_OK; step++) {
        for (int i = 0; i < COUNT; i++)
            gradient[i] = (float)(i % 5 * (step + 1));
        st = trib_plan_start(plan);
        if (st == TRIB_OK)
            st = trib_plan_wait(plan);
        if (st == TRIB_OK && trib_rank(comm) == 0 &&
            trib_plan_stats(plan, &s) == TRIB_OK)
            printf(
                "step %d: norm %g, mean norm %g, largest %g, %llu zeros, %llu NaN or "
                "Inf\n",
                step, s.norm, s.mean_norm, s.largest, (unsigned long long)s.zeros,
                (unsigned long long)s.not_finite);
    }
    if (st != TRIB_OK)
        fprintf(stderr, "%s\n", trib_last_error(comm));
    trib_plan_free(plan);
    return trib_free_comm(comm) != TRIB_OK || st != TRIB_OK;
}
