/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/comm/placed.h"

TEST(test_tcp)
{
    assert_int_equal(
        placed_all((struct ranks_job){.size = 3, .config = "transport=tcp"}), 0);
}

/* Memory from malloc, which tcp uses during each operation. */
TEST(test_tcp_borrows)
{
    static const char *const configs[] = {"transport=tcp", "transport=auto:near=tcp"};

    for (int i = 0; i < 2 * 2; i++) {
        struct placed p = {.algorithm = "ring", .count = 12 * 16384, .plain = true,
                           .in_place = i % 2 == 1};
        assert_int_equal(ranks_run(&(struct ranks_job){.size = 3,
                                                       .config = configs[i / 2],
                                                       .fn = placed_run,
                                                       .arg = &p}),
                         0);
    }
}

/* Copies late: when the receiver polls. */
TEST(test_loop)
{
    assert_int_equal(placed_all((struct ranks_job){
                         .size = 3, .threads = true, .config = "transport=loop"}),
                     0);
}

TEST(test_shm_by_writes)
{
    assert_int_equal(
        placed_all((struct ranks_job){.size = 2, .config = "transport=shm+nomap"}), 0);
}

/* One peer within load/store reach, the others not. */
TEST(test_two_hosts)
{
    struct placed p = {.algorithm = "ring", .count = 16 * 16384, .alloc = true,
                       .near = true};
    struct ranks_job job = {
        .size = 4,
        .fn = placed_run,
        .arg = &p,
        .config = "transport=auto:near=shm,far=tcp,ranks_per_host=2;window=8",
    };

    assert_int_equal(ranks_run(&job), 0);
}

enum { PART = 6 * 16384, AHEAD = 13, PARTS = 3 * PART + AHEAD };

/* Two running plans with one send buffer, in overlapping parts of registered memory
 * with any offset; every other rank registers nothing. More memory is registered while
 * they run. */
static int sum_parts(struct ranks_self *self)
{
    float *x = malloc(PARTS * sizeof(*x)), *send = x + AHEAD;
    size_t bytes = PARTS * sizeof(*x);
    trib_plan_t *plan[2];

    if (self->rank % 2 == 0) {
        ranks_ok(self, trib_register(self->comm, x, bytes));
        ranks_ok(self, trib_register(self->comm, x + 1, bytes / 2));
    }
    for (int k = 0; k < 2; k++) {
        trib_desc_t desc =
            sized(trib_desc_t, .count = PART, .send = send,
                  .recv = send + (k + 1) * PART, .algorithm = k ? "direct" : "ring");
        ranks_ok(self, trib_plan_create(self->comm, TRIB_ALLREDUCE, &desc, &plan[k]));
    }
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < PART; i++)
            send[i] = (float)(i % 1000 + self->rank + round);
        for (int k = 0; k < 2; k++)
            ranks_ok(self, trib_plan_start(plan[k]));
        ranks_ok(self, trib_register(self->comm, send, PART * sizeof(*x)));
        for (int k = 0; k < 2; k++)
            ranks_ok(self, trib_plan_wait(plan[k]));
        for (int i = 0; i < 2 * PART; i++) {
            int sum = self->size * (i % PART % 1000 + round) +
                      self->size * (self->size - 1) / 2;
            if (send[PART + i] != (float)sum)
                ranks_die(self, "round %d: element %d is %g, not %d", round, i,
                          (double)send[PART + i], sum);
        }
        memset(send + PART, 0xff, 2 * PART * sizeof(*x));
        ranks_ok(self, trib_deregister(self->comm, send));
    }
    for (int k = 0; k < 2; k++)
        ranks_ok(self, trib_plan_free(plan[k]));
    if (self->rank % 2 == 0) {
        ranks_ok(self, trib_deregister(self->comm, x + 1));
        ranks_ok(self, trib_deregister(self->comm, x));
    }
    free(x);
    return 0;
}

TEST(test_parts_of_memory)
{
    static const char *const configs[] = {
        "transport=tcp", "transport=shm+nomap",
        "transport=auto:near=shm,far=tcp,ranks_per_host=2;window=8"};

    for (int i = 0; i < 3; i++) {
        ranks_pass(.size = 3, .fn = sum_parts, .config = configs[i]);
    }
}
