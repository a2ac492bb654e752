/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The states of a plan that its own engine runs: idle, running, done.
 */
#include <tributary/send.h>

#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "tests/harness/ranks.h"

static int states(struct ranks_self *self)
{
    float x[1000];
    size_t absent[RANKS_MAX];

    for (int i = 0; i < 1000; i++)
        x[i] = 1;
    trib_plan_t *plan = ranks_plan(self, TRIB_ALLREDUCE, .recv = x, .count = 1000,
                                   .feed = TRIB_FEED_FORWARD);
    ranks_assert(self,
                 plan->ops == &trib_plan_own_ops && plan->ops->computing(plan) == plan);
    ranks_ok(self, trib_plan_test(plan)); /* not started */
    ranks_assert(self, !plan->ops->busy(plan) && !plan->ops->input(plan));
    ranks_assert(self, trib_plan_ready(plan, 0, 10) == TRIB_ERR_INVALID);
    ranks_ok(self, trib_plan_start(plan));
    ranks_assert(self, plan->ops->busy(plan) && plan->ops->input(plan) == x);
    ranks_assert(self, trib_plan_test(plan) == TRIB_INPROGRESS);
    ranks_assert(self, trib_plan_start(plan) == TRIB_ERR_BUSY);
    ranks_assert(self, trib_plan_free(plan) == TRIB_ERR_BUSY);
    ranks_assert(self, trib_plan_absent(plan, absent) == TRIB_ERR_BUSY);
    ranks_ok(self, trib_plan_ready(plan, 0, 400));
    ranks_assert(self, trib_plan_ready(plan, 900, 101) == TRIB_ERR_INVALID);
    ranks_ok(self, trib_plan_ready(plan, 400, 600));
    ranks_ok(self, trib_plan_wait(plan));
    ranks_assert(self, !plan->ops->busy(plan));
    ranks_ok(self, trib_plan_absent(plan, absent));
    for (int r = 0; r < self->size; r++)
        ranks_assert(self, absent[r] == 0);
    for (int i = 0; i < 1000; i++)
        ranks_assert(self, x[i] >= (float)self->size && x[i] <= (float)self->size);
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

/* Ask until the text names rank 1; a start may need a moment to get that far. */
static void expect_awaited(struct ranks_self *self, trib_plan_t *plan, const char *what)
{
    const char *const words[] = {what, "rank 1 (host ", "process ", NULL};
    char text[200] = "";

    for (int i = 0; i < 1000 && !ranks_has(text, words); i++) {
        ranks_assert(self, trib_plan_test(plan) == TRIB_INPROGRESS);
        ranks_ok(self, trib_plan_awaits(plan, text, sizeof(text)));
        usleep(1000);
    }
    if (!ranks_has(text, words))
        ranks_die(self, "not good: '%s'", text);
}

/* Rank 1 does not start before rank 0 has named it. */
static int awaited(struct ranks_self *self)
{
    float x[1000] = {0}, y = 0;
    trib_plan_t *plan, *message;
    char text[200] = "before";

    plan = ranks_plan(self, TRIB_ALLREDUCE, .recv = x, .count = 1000);
    ranks_ok(self, trib_barrier(self->comm));
    ranks_ok(self, trib_plan_awaits(plan, text, sizeof(text)));
    ranks_assert(self, !text[0]);
    ranks_assert(self, trib_plan_awaits(plan, text, 0) == TRIB_ERR_INVALID);
    if (self->rank == 0) {
        ranks_ok(self, trib_plan_recv(self->comm, &y, 1, TRIB_F32, 1, 3, &message));
        ranks_ok(self, trib_plan_start(message));
        expect_awaited(self, message, "the send of ");
        ranks_ok(self, trib_plan_start(plan));
        expect_awaited(self, plan, "");
        ranks_ok(self, trib_send(self->comm, &y, 1, TRIB_F32, 1, 2));
        ranks_ok(self, trib_plan_wait(message));
        ranks_ok(self, trib_plan_free(message));
    } else {
        ranks_ok(self, trib_recv(self->comm, &y, 1, TRIB_F32, 0, 2));
        ranks_ok(self, trib_plan_start(plan));
        ranks_ok(self, trib_send(self->comm, &y, 1, TRIB_F32, 0, 3));
    }
    ranks_ok(self, trib_plan_wait(plan));
    ranks_ok(self, trib_plan_awaits(plan, text, sizeof(text)));
    ranks_assert(self, !text[0]);
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST(test_awaited)
{
    ranks_pass(.size = 2, .fn = awaited, .config = "transport=shm");
    ranks_pass(.size = 2, .fn = awaited, .config = "transport=tcp");
}

TEST(test_states)
{
    ranks_pass(.size = 2, .fn = states, .config = "transport=shm");
    ranks_pass(.size = 3, .fn = states, .config = "transport=tcp");
}
