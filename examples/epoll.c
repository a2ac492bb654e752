/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans in an event loop: epoll waits for the descriptors of two plans.
 *     trib-run -n 3 -- epoll */
#include <stdio.h>
#include <sys/epoll.h>
#include <tributary.h>

static trib_status_t start(trib_comm_t *comm, float *x, trib_plan_t **plan, int *fd)
{
    trib_desc_t desc = TRIB_DESC_INIT;
    desc.recv = x;
    desc.count = 1000;
    trib_status_t status = trib_plan_allreduce(comm, &desc, plan);
    if (status == TRIB_OK)
        status = trib_plan_fd(*plan, fd);
    return status == TRIB_OK ? trib_plan_start(*plan) : status;
}

int main(void)
{
    trib_comm_t *comm;
    trib_plan_t *plan[2];
    float x[2][1000] = {{1}, {2}};
    int fd, loop = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT};
    if (trib_init(NULL, &comm) != TRIB_OK)
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    for (e.data.u32 = 0; e.data.u32 < 2; e.data.u32++)
        if (start(comm, x[e.data.u32], &plan[e.data.u32], &fd) != TRIB_OK ||
            epoll_ctl(loop, EPOLL_CTL_ADD, fd, &e) != 0)
            return fprintf(stderr, "%s\n", trib_last_error(comm)), 1;
    for (int i = 0; i < 2 && epoll_wait(loop, &e, 1, -1) == 1; i++) {
        if (trib_plan_test(plan[e.data.u32]) == TRIB_OK) /* returns its status */
            printf("plan %u: sum %g\n", e.data.u32, (double)x[e.data.u32][0]);
        trib_plan_free(plan[e.data.u32]);
    }
    return trib_free_comm(comm) != TRIB_OK;
}
