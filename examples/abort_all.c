/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank aborts the sum that the others wait in, with a reason. Then all continue.
 *     trib-run -n 4 -- abort_all */
#include <stdio.h>
#include <tributary.h>

enum { N = 1000 };

int main(void)
{
    trib_comm_t *comm, *next;
    trib_plan_t *plan;
    static float x[N];
    trib_desc_t desc = TRIB_DESC_INIT;
    desc.recv = x, desc.count = N, desc.name = "gradient";
    desc.timeout_ms = 20000; /* limit of one start */
    if (trib_init(NULL, &comm) != TRIB_OK || trib_plan_allreduce(comm, &desc, &plan))
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    const int rank = trib_rank(comm), ranks = trib_size(comm);
    if (rank == 2) /* it aborts instead of taking part */
        trib_comm_abort(comm, "the loss is NaN");
    else if (trib_plan_start(plan) == TRIB_OK)
        trib_plan_wait(plan);
    if (trib_progress(comm) != TRIB_ERR_ABORTED)
        return fprintf(stderr, "rank %d got no abort notice\n", rank), 1;
    printf("%s\n", trib_last_error(comm));
    if (trib_comm_shrink(comm, &next) != TRIB_OK || trib_size(next) != ranks)
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    trib_plan_free(plan), trib_free_comm(comm);
    const trib_status_t st = trib_allreduce(next, NULL, x, N, TRIB_F32, TRIB_SUM);
    printf("rank %d of %d continues\n", rank, ranks);
    return st != TRIB_OK || trib_free_comm(next) != TRIB_OK;
}
