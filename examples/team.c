/* SPDX-License-Identifier: BSD-3-Clause */
/* Four threads of each rank use one communicator. They start their sums in the same
 * order on all ranks, and wait in parallel.  trib-run -n 3 -- team */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <tributary.h>
enum { THREADS = 4, COUNT = 100000 };
static trib_comm_t *comm;
static _Atomic int turn, failed;
static float x[THREADS][COUNT];

static void *work(void *mine)
{
    trib_desc_t desc = TRIB_DESC_INIT;
    trib_plan_t *plan = NULL;
    desc.recv = mine, desc.count = COUNT;
    trib_status_t status = trib_plan_allreduce(comm, &desc, &plan);
    while (mine != x[atomic_load(&turn)]) /* wait for this thread's turn */
        sched_yield();
    if (status == TRIB_OK)
        status = trib_plan_start(plan);
    turn = (turn + 1) % THREADS;
    if (status != TRIB_OK || trib_plan_wait(plan) != TRIB_OK)
        failed = fprintf(stderr, "%s\n", trib_last_error(comm));
    trib_plan_free(plan);
    return NULL;
}
int main(void)
{
    trib_opts_t opts = {sizeof(opts), .threads = TRIB_THREADS_MANY};
    pthread_t threads[THREADS];
    if (trib_init(&opts, &comm))
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    for (int i = 0; i < THREADS; i++)
        x[i][0] = (float)i, pthread_create(&threads[i], NULL, work, x[i]);
    for (int i = 0; i < THREADS && pthread_join(threads[i], NULL) == 0; i++)
        printf("thread %d: sum %g\n", i, (double)x[i][0]);
    return trib_free_comm(comm) != TRIB_OK || failed;
}
