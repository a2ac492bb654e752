/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cache of the blocking calls: one plan for equal calls, and correct sums when
 * entries are evicted.
 */
#include "comm/calls/plan_cache.h"
#include "comm/core/call_cache.h"
#include "comm/core/communicator.h"
#include "tests/harness/ranks.h"

static int equal_calls(struct ranks_self *self)
{
    trib_comm_t *comm = self->comm;
    float x[40] = {0};

    ranks_ok(self, trib_allreduce(comm, x, x, 0, TRIB_F32, TRIB_SUM));
    for (int round = 0; round < 3; round++) {
        for (size_t n = 1; n <= 2; n++) {
            x[0] = x[1] = 1;
            ranks_ok(self, trib_allreduce(comm, NULL, x, n, TRIB_F32, TRIB_SUM));
            ranks_assert(self, comm->newest->key.count == n);
        }
    }
    int used = 0;
    for (int i = 0; i < TRIB_PLAN_CACHE; i++)
        used += comm->cache[i].plan != NULL;
    ranks_assert(self, used == 3); /* for 0, 1 and 2 elements */
    ranks_assert(self, comm->n_plans == 0);
    return 0;
}

RANKS_TEST(test_evictions, .size = 3)
{
    static float x[3 * TRIB_PLAN_CACHE];

    for (int round = 0; round < 2; round++) {
        for (size_t n = 1; n < 3 * TRIB_PLAN_CACHE; n += 2) {
            for (size_t i = 0; i < n; i++)
                x[i] = (float)(n + i);
            ranks_ok(self, trib_allreduce(self->comm, NULL, x, n, TRIB_F32, TRIB_MAX));
            for (size_t i = 0; i < n; i++)
                ranks_assert(self, x[i] >= (float)(n + i) && x[i] <= (float)(n + i));
        }
    }
    trib_plan_cache_clear(self->comm);
    ranks_assert(self, !self->comm->newest && !self->comm->cache[0].plan);
    ranks_ok(self, trib_barrier(self->comm));
    return 0;
}

TEST(test_equal_calls)
{
    assert_status(trib_barrier(NULL), TRIB_ERR_INVALID);
    ranks_pass(.size = 2, .fn = equal_calls);
}
