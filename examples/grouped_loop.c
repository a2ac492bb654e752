/* SPDX-License-Identifier: BSD-3-Clause */
/* A group of gradients in an event loop: poll waits for the group's descriptor. A step
 * that takes longer than 10 s fails.
 *     trib-run -n 3 -- grouped_loop */
#include <poll.h>
#include <stdio.h>
#include <tributary.h>

static float w[5000], b[10];

int main(void)
{
    const trib_tensor_t gradients[] = {
        {.size = sizeof(trib_tensor_t), .name = "weight", .recv = w, .count = 5000},
        {.size = sizeof(trib_tensor_t), .name = "bias", .recv = b, .count = 10},
    };
    trib_group_opts_t opts = TRIB_GROUP_OPTS_INIT;
    trib_comm_t *comm;
    trib_group_t *group;
    struct pollfd fd = {.events = POLLIN};
    if (trib_init(NULL, &comm) != TRIB_OK)
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    opts.feed = TRIB_FEED_BACKWARD;
    opts.timeout_ms = 10000;
    trib_status_t st = trib_group_create(comm, gradients, 2, &opts, &group);
    st = st == TRIB_OK ? trib_group_fd(group, &fd.fd) : st;
    for (int step = 1; step <= 3 && st == TRIB_OK; step++) {
        w[0] = b[0] = (float)(step * (trib_rank(comm) + 1));
        st = trib_group_start(group);
        for (size_t i = 2; i-- > 0 && st == TRIB_OK;)
            st = trib_group_ready(group, i);
        while (st == TRIB_OK && (st = trib_group_test(group)) == TRIB_INPROGRESS)
            st = poll(&fd, 1, -1) == 1 ? TRIB_OK : TRIB_ERR_SYSTEM;
    }
    if (st != TRIB_OK || (st = trib_group_free(group)) != TRIB_OK)
        fprintf(stderr, "%s\n", trib_last_error(comm));
    else if (trib_rank(comm) == 0)
        printf("sums: %g and %g\n", (double)w[0], (double)b[0]);
    return trib_free_comm(comm) != TRIB_OK || st != TRIB_OK;
}
