/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How open starts end: waited for in any order, or only tested, while one rank alone
 * loses the aggregators and the others wait there.
 */
#include "comm/core/comm_lock.h"
#include "tests/agg/client/aggregators.h"

enum { PLANS = 4, COUNT = 9000, STEPS = 4, LOST_AT = 2 };

struct job {
    struct aggregators aggregators;
    bool tests; /* the ranks only test plans and never wait */
    int loser;  /* rank that loses the aggregators; -1: none */
};

/* The state after the aggregators were silent for this rank only: they are not
 * notified. */
static void lose_aggregators(struct trib_comm *agg_comm)
{
    struct trib_engine *e = &agg_comm->engine;

    trib_comm_lock(agg_comm);
    for (int p = e->ranks; p < e->size; p++)
        e->links[p].lost = true;
    trib_engine_fail(e, TRIB_ERR_PEER_LOST, "the aggregators were silent");
    trib_comm_unlock(agg_comm);
}

static void end(struct ranks_self *self, trib_plan_t *plan, bool tests)
{
    trib_status_t st;
    unsigned turns = 0;

    while (tests && (st = trib_plan_test(plan)) == TRIB_INPROGRESS)
        tribtest_rest(&turns);
    if (!tests)
        st = trib_plan_wait(plan);
    if (st != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(plan->comm));
    ranks_assert(self, !plan->ops->busy(plan) && trib_plan_test(plan) == TRIB_OK);
}

static void step(struct ranks_self *self, trib_plan_t **plans, float (*x)[COUNT],
                 int step)
{
    const struct job *j = self->arg;
    const int n = j->aggregators.ranks;

    for (int p = 0; p < PLANS; p++) {
        for (int i = 0; i < COUNT; i++)
            x[p][i] = (float)((i + step) % 50 * (self->rank + p));
        ranks_ok(self, trib_plan_start(plans[p]));
        if (p == 1 && step == LOST_AT && self->rank == j->loser)
            lose_aggregators(plans[p]->comm->offload->agg_comm);
    }
    for (int k = 0; k < PLANS; k++) {
        const int p = (k + step) % PLANS;
        end(self, plans[p], j->tests);
        for (int i = 0; i < COUNT; i++)
            if (x[p][i] != (float)((i + step) % 50 * (n * (n - 1) / 2 + n * p)))
                ranks_die(self, "step %d, plan %d, element %d: %g", step, p, i,
                          (double)x[p][i]);
    }
}

static int starts(struct ranks_self *self)
{
    struct job *j = self->arg;
    struct trib_comm *parent = aggregators_attach(self, &j->aggregators);
    static float x[PLANS][COUNT];
    trib_plan_t *plans[PLANS];
    trib_desc_t d = TRIB_DESC_INIT;

    if (!parent)
        return 0;
    for (int p = 0; p < PLANS; p++) {
        d.recv = x[p];
        d.count = COUNT;
        ranks_ok(self, trib_plan_allreduce(parent, &d, &plans[p]));
    }
    for (int i = 0; i < STEPS; i++)
        step(self, plans, x, i);
    ranks_assert(self, !parent->offload->agg_comm == (j->loser >= 0));
    ranks_assert(self, !parent->offload->oldest || j->loser < 0);
    for (int p = 0; p < PLANS; p++)
        ranks_ok(self, trib_plan_free(plans[p]));
    aggregators_leave(self, &j->aggregators, parent);
    return 0;
}

static void run(const char *config, bool tests)
{
    for (int loser = -1; loser < 3; loser++) {
        struct job j = {{.ranks = 3, .n = 1}, tests, loser};
        aggregators_run(&j.aggregators, (struct ranks_job){.fn = starts,
                                                           .arg = &j,
                                                           .config = config,
                                                           .noisy = loser >= 0});
    }
}

TEST_ON(test_waited, "shm", "tcp")
{
    run(*state, false);
}

TEST_ON(test_tested, "shm", "tcp;progress=caller")
{
    run(*state, true);
}
