/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that a user registers with the parent is also registered with agg_comm and
 * fallback_comm, and their counters are added to the statistics of the parent.
 */
#include "tests/agg/client/aggregators.h"

enum { COUNT = 20000, STARTS = 5 };

/* Return true if all three communicators have n registered pieces of memory. */
static bool have(const struct trib_comm *parent, size_t n)
{
    return parent->engine.memories.n == n &&
           parent->offload->agg_comm->engine.memories.n == n &&
           parent->offload->fallback_comm->engine.memories.n == n;
}

static void check_busy(struct ranks_self *self, struct trib_comm *parent, float *x)
{
    ranks_assert(self, trib_deregister(parent, x) == TRIB_ERR_BUSY);
    ranks_assert(self, strcmp(trib_last_error(parent),
                              "trib_deregister while a plan runs: wait for the plan "
                              "first") == 0);
    ranks_assert(self, have(parent, 2));
}

static int memory(struct ranks_self *self)
{
    struct aggregators *s = self->arg;
    struct trib_comm *parent = aggregators_attach(self, s);
    static float x[COUNT];
    void *y;

    if (!parent)
        return 0;
    ranks_ok(self, trib_register(parent, x, sizeof(x)));
    ranks_ok(self, trib_alloc(parent, sizeof(x), &y));
    ranks_assert(self, have(parent, 2));
    trib_plan_t *plan = ranks_plan_on(self, parent, TRIB_ALLREDUCE, .send = x,
                                      .recv = y, .count = COUNT,
                                      .feed = TRIB_FEED_FORWARD);
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i % 100 * (self->rank + 1));
    for (int i = 0; i < STARTS; i++) {
        ranks_ok(self, trib_plan_start(plan));
        check_busy(self, parent, x);
        ranks_ok(self, trib_plan_ready(plan, 0, COUNT));
        ranks_ok(self, trib_plan_wait(plan));
        for (int k = 0; k < COUNT; k++)
            ranks_assert(self, ((float *)y)[k] ==
                                   (float)(k % 100 * s->ranks * (s->ranks + 1) / 2));
    }
    trib_stats_t stats = {.size = sizeof(stats)};
    ranks_ok(self, trib_stats(parent, &stats));
    const struct trib_engine *e = &parent->offload->agg_comm->engine;
    ranks_assert(self, stats.served == STARTS && stats.operations >= 2 * STARTS);
    ranks_assert(self, stats.payload_bytes >= STARTS * sizeof(x) &&
                           stats.payload_bytes >= e->stats.payload_bytes);
    ranks_assert(self, stats.slot_bytes >= trib_arena_bytes(&e->arena) +
                                               trib_arena_bytes(&parent->engine.arena));
    ranks_assert(self, stats.peers < (uint64_t)s->ranks);
    ranks_ok(self, trib_plan_free(plan));
    ranks_ok(self, trib_deregister(parent, x));
    ranks_assert(self, have(parent, 1));
    ranks_ok(self, trib_free(parent, y));
    ranks_assert(self, have(parent, 0));
    aggregators_leave(self, s, parent);
    return 0;
}

/* An agg_comm created later registers all memory of the parent. */
static int later(struct ranks_self *self)
{
    struct aggregators *s = self->arg;
    struct trib_comm *parent = aggregators_attach(self, s);
    static float x[COUNT], y[COUNT];

    if (!parent)
        return 0;
    struct trib_comm *agg_comm = parent->offload->agg_comm;
    parent->offload->agg_comm = NULL;
    ranks_ok(self, trib_register(parent, x, sizeof(x)));
    ranks_ok(self, trib_register(parent, y, sizeof(y)));
    ranks_assert(self, agg_comm->engine.memories.n == 0);
    parent->offload->agg_comm = agg_comm;
    trib_offload_register_all(parent->offload);
    ranks_assert(self, have(parent, 2));
    ranks_ok(self, trib_deregister(parent, y));
    ranks_ok(self, trib_deregister(parent, x));
    ranks_assert(self, have(parent, 0));
    aggregators_leave(self, s, parent);
    return 0;
}

static void test_memory(void **state)
{
    for (int i = 0; i < 2; i++) {
        struct aggregators s = {.ranks = 2 + i, .n = 1};
        aggregators_run(&s, (struct ranks_job){.fn = i ? later : memory,
                                               .arg = &s,
                                               .config = *state});
    }
}

static const struct CMUnitTest rows[] = {
    cmocka_unit_test_prestate(test_memory, (char *)(uintptr_t) "transport=shm"),
    cmocka_unit_test_prestate(test_memory, (char *)(uintptr_t) "transport=tcp"),
};

TEST_ROWS(rows)
