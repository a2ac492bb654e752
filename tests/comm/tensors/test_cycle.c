/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buckets that are formed again after the first step, by the times at which tensors
 * became ready.
 */
#include "tests/comm/tensors/net.h"

/* Tensors that become ready 60 ms apart are not fused after the first step. */
RANKS_TEST_ON(test_by_time, ("shm", "tcp"), .size = 2)
{
    trib_group_stats_t stats = {.size = sizeof(stats)};
    static struct net net;

    describe(&net);
    net.opts.alone_bytes = net.opts.bucket_bytes = 1 << 20;
    net.opts.cycle_us = 20000;
    create(self, &net);
    for (uint64_t step = 0; step < 3; step++) {
        ranks_ok(self, trib_group_stats(net.group, &stats));
        ranks_assert(self, step ? stats.buckets >= 2 : stats.buckets == 1);
        net.told.n = 0;
        ranks_ok(self, trib_group_start(net.group));
        for (size_t i = 0; i < N; i++) {
            usleep(i == N / 2 ? 60000 : 0);
            ranks_ok(self, trib_group_ready(net.group, i));
        }
        ranks_ok(self, trib_group_wait(net.group));
        ranks_assert(self, net.told.n == N);
    }
    for (int i = 0; i < N; i++)
        ranks_assert(self, net.memory[i][7] ==
                               (float)(i * self->size * self->size * self->size));
    ranks_ok(self, trib_group_free(net.group));
    return 0;
}
