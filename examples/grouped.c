/* SPDX-License-Identifier: BSD-3-Clause */
/* A model's gradients as one group: biases share a bucket, matrices use a codec.
 *     trib-run -n 3 -- grouped */
#include <stdio.h>
#include <tributary.h>

static float w1[784 * 256], b1[256], w2[2560], b2[10];

int main(void)
{
    const size_t size = sizeof(trib_tensor_t);
    const trib_tensor_t gradients[] = {
        {.size = size, .name = "fc1.weight", .recv = w1, .count = 200704, .dims = 2},
        {.size = size, .name = "fc1.bias", .recv = b1, .count = 256, .dims = 1},
        {.size = size, .name = "fc2.weight", .recv = w2, .count = 2560, .dims = 2},
        {.size = size, .name = "fc2.bias", .recv = b2, .count = 10, .dims = 1},
    };
    trib_group_opts_t opts = TRIB_GROUP_OPTS_INIT;
    trib_comm_t *comm;
    trib_group_t *group;
    if (trib_init(NULL, &comm) != TRIB_OK)
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    opts.op = TRIB_MEAN;
    opts.codec = "bf16";
    opts.feed = TRIB_FEED_BACKWARD;
    trib_status_t st = trib_group_create(comm, gradients, 4, &opts, &group);
    for (int step = 1; step <= 3 && st == TRIB_OK; step++) {
        st = trib_group_start(group);
        for (size_t i = 4; i-- > 0 && st == TRIB_OK;) { /* like back-propagation */
            *(float *)gradients[i].recv = (float)(step * trib_rank(comm) + (int)i);
            st = trib_group_ready(group, i);
        }
        st = st == TRIB_OK ? trib_group_wait(group) : st;
    }
    if (st != TRIB_OK || (st = trib_group_free(group)) != TRIB_OK)
        fprintf(stderr, "%s\n", trib_last_error(comm));
    else if (trib_rank(comm) == 0)
        printf("means: %g to %g\n", (double)w1[0], (double)b2[0]);
    return trib_free_comm(comm) != TRIB_OK || st != TRIB_OK;
}
