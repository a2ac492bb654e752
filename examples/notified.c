/* SPDX-License-Identifier: BSD-3-Clause */
/* A callback instead of a wait: the library's thread sums while the program computes,
 * and completes a future when the sum is done.  trib-run -n 3 -- notified */
#include <semaphore.h>
#include <stdio.h>
#include <tributary.h>

struct future {
    sem_t done;
    trib_status_t status;
};

static void tell(void *arg, trib_status_t status)
{
    struct future *future = arg;
    future->status = status;
    sem_post(&future->done);
}

int main(void)
{
    trib_desc_t desc = TRIB_DESC_INIT;
    struct future future;
    trib_comm_t *comm;
    trib_plan_t *plan;
    float x[1000];
    if (trib_init(NULL, &comm) != TRIB_OK)
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    desc.recv = x;
    desc.count = 1000;
    sem_init(&future.done, 0, 0);
    int bad = trib_plan_allreduce(comm, &desc, &plan) ||
              trib_plan_notify(plan, tell, &future);
    for (int step = 1; step <= 3 && !bad; step++) {
        x[999] = (float)(step * (trib_rank(comm) + 1));
        bad = trib_plan_start(plan) || sem_wait(&future.done) || /* or compute first */
              future.status || trib_plan_wait(plan); /* after tell() has returned */
        if (!bad && trib_rank(comm) == 0)
            printf("step %d: %g\n", step, (double)x[999]);
    }
    trib_plan_free(plan);
    return trib_free_comm(comm) != TRIB_OK || bad;
}
