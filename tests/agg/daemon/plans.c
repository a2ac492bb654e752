/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job for tests of tribd: plans that each cost a service 4 bytes per element.
 *
 *     trib-run -n 2 -- plans keep N    N plans at a time
 *     trib-run -n 2 -- plans free N    one after the other
 *
 * Values are small integers and all are sent, so sums are exact. Exit code 1 and an
 * error message if a sum is wrong.
 */
#include <string.h>

#include "tests/agg/daemon/exact_jobs.h"

enum { COUNT = 1 << 18, MOST = 64 };

static void use(trib_comm_t *comm, trib_plan_t *plan, float *x, long step)
{
    for (int i = 0; i < COUNT; i++)
        x[i] = value(trib_rank(comm), step, i);
    must(comm, trib_plan_start(plan), "start");
    must(comm, trib_plan_wait(plan), "a sum");
    for (int i = 0; i < COUNT; i++) {
        double sum = 0;
        for (int r = 0; r < trib_size(comm); r++)
            sum += (double)value(r, step, i);
        if ((double)x[i] == sum)
            continue;
        fprintf(stderr, "step %ld, element %d: %g instead of %g\n", step, i,
                (double)x[i], sum);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    static float x[COUNT];
    trib_plan_t *plans[MOST] = {NULL};
    trib_desc_t d = TRIB_DESC_INIT;
    trib_comm_t *comm;

    const int n = argc == 3 ? atoi(argv[2]) : 0;
    if (n < 1 || n > MOST || trib_init(NULL, &comm) != TRIB_OK) {
        fprintf(stderr, "%s\n", n ? trib_last_error(NULL) : "usage: plans keep|free N");
        return 1;
    }
    d.recv = x;
    d.count = COUNT;
    d.codec = "topk:ratio=1";
    for (int i = 0; i < n; i++) {
        must(comm, trib_plan_allreduce(comm, &d, &plans[i]), "a plan");
        use(comm, plans[i], x, i);
        if (strcmp(argv[1], "free") != 0)
            continue;
        must(comm, trib_plan_free(plans[i]), "free");
        plans[i] = NULL;
    }
    for (int i = 0; i < n; i++) {
        if (plans[i])
            use(comm, plans[i], x, i);
        must(comm, trib_plan_free(plans[i]), "free");
    }
    if (trib_rank(comm) == 0)
        printf("%d plans, all right\n", n);
    must(NULL, trib_free_comm(comm), "leave");
    return 0;
}
