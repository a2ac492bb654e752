/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The progress thread: it exists from the first start on, and waiting callers drive the
 * engine in its place.
 */
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/core/progress_thread.h"
#include "tests/harness/ranks.h"

static int runs(struct ranks_self *self)
{
    struct trib_progress_thread *t = &self->comm->progress_thread;
    const bool has_thread = self->comm->cfg.progress != TRIB_PROGRESS_CALLER;
    float x[3000] = {0};

    trib_plan_t *plan = ranks_plan(self, TRIB_ALLREDUCE, .recv = x, .count = 3000);
    ranks_assert(self, !t->running);
    for (int i = 0; i < 20; i++) {
        ranks_ok(self, trib_plan_start(plan));
        ranks_assert(self, t->running == has_thread);
        ranks_ok(self, trib_plan_wait(plan));
        ranks_assert(self, atomic_load(&t->callers) == 0);
    }
    atomic_store(&t->active, 1); /* as if it had not noticed that all operations are
                                  * done */
    ranks_ok(self, trib_allreduce(self->comm, x, x, 3000, TRIB_F32, TRIB_SUM));
    ranks_assert(self, !atomic_load(&t->active)); /* it need not poll */
    trib_progress_thread_caller_enter(self->comm);
    ranks_assert(self, atomic_load(&t->callers) == 1);
    trib_progress_thread_caller_leave(self->comm);
    trib_progress_thread_stop(self->comm);
    trib_progress_thread_stop(self->comm); /* a second call does nothing */
    ranks_assert(self, !t->running);
    ranks_ok(self, trib_plan_start(plan));
    ranks_assert(self, t->running == has_thread);
    ranks_ok(self, trib_plan_wait(plan));
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST(test_runs)
{
    ranks_pass(.size = 2, .fn = runs, .config = "progress=thread");
    ranks_pass(.size = 2, .fn = runs, .config = "progress=caller");
}
