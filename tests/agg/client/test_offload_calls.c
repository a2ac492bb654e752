/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The public calls of an offloaded plan: which plans are offloaded, which calls are
 * refused in each state, and that a check fails all communicators at once.
 */
#include <math.h>

#include "tests/agg/client/aggregators.h"

enum { COUNT = 5000 };

static void expect(struct ranks_self *self, const struct trib_comm *comm,
                   trib_status_t st, trib_status_t expected, const char *says)
{
    if (st != expected || strcmp(trib_last_error(comm), says) != 0)
        ranks_die(self, "%s: \"%s\", not %s: \"%s\"", trib_status_name(st),
                  trib_last_error(comm), trib_status_name(expected), says);
}

static void check_takes(struct ranks_self *self, struct trib_comm *parent)
{
    static const struct {
        trib_coll_t coll;
        const char *algorithm;
        bool offloaded;
    } rows[] = {
        {TRIB_ALLREDUCE, NULL, true},      {TRIB_ALLREDUCE, "auto", true},
        {TRIB_ALLREDUCE, "service", true}, {TRIB_ALLREDUCE, "ring", false},
        {TRIB_REDUCE, NULL, false},        {TRIB_BARRIER, NULL, false},
        {TRIB_BROADCAST, "auto", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        trib_plan_t *plan;
        plan = ranks_plan_on(self, parent, rows[i].coll,
                             .count = rows[i].coll == TRIB_BARRIER ? 0 : 8,
                             .algorithm = rows[i].algorithm);
        if ((plan->offload != NULL) != rows[i].offloaded)
            ranks_die(self, "row %zu", i);
        ranks_ok(self, trib_plan_free(plan));
    }
    ranks_assert(self, !parent->offload->plans);
}

/* The parent returns the error message of an inner plan. */
static void check_refused(struct ranks_self *self, struct trib_comm *parent)
{
    trib_plan_t *plan;
    trib_desc_t d = sized(trib_desc_t, .count = 8, .dtype = TRIB_I32);

    d.codec = "topk:ratio=0.5";
    expect(
        self, parent, trib_plan_allreduce(parent, &d, &plan), TRIB_ERR_UNSUPPORTED,
        "codec topk:ratio=0.5,result=sums,ef=1 supports floating-point elements, dtype "
        "is i32: use "
        "codec none");
    ranks_assert(self, !parent->offload->plans);
}

static void check_open(struct ranks_self *self, trib_plan_t *plan, const float *x)
{
    struct trib_comm *parent = plan->comm;
    unsigned char state[64];
    const unsigned char *mask;
    size_t n;

    ranks_assert(self, plan->ops->busy(plan) && plan->ops->input(plan) == x);
    ranks_assert(self, trib_plan_test(plan) == TRIB_INPROGRESS);
    expect(self, parent, trib_plan_start(plan), TRIB_ERR_BUSY,
           "the plan is already running: wait for it first");
    expect(self, parent, trib_plan_state_save(plan, state, sizeof(state), &n),
           TRIB_ERR_BUSY,
           "the plan is still running: wait for it before trib_plan_state_save");
    expect(self, parent, trib_plan_state_load(plan, state, 0), TRIB_ERR_BUSY,
           "the plan is still running: wait for it before trib_plan_state_load");
    expect(self, parent, trib_plan_sent(plan, &mask, &n), TRIB_ERR_BUSY,
           "the plan is still running: wait for it before trib_plan_sent");
    ranks_ok(self, trib_plan_ready(plan, 0, 100));
}

static int calls(struct ranks_self *self)
{
    struct aggregators *s = self->arg;
    struct trib_comm *parent = aggregators_attach(self, s);
    size_t absent[RANKS_MAX];
    float x[COUNT];

    if (!parent)
        return 0;
    check_takes(self, parent);
    check_refused(self, parent);
    trib_plan_t *plan = ranks_plan_on(self, parent, TRIB_ALLREDUCE, .recv = x,
                                      .count = COUNT, .feed = TRIB_FEED_FORWARD);
    const uint64_t before = parent->starts;
    for (int round = 0; round < 3; round++) {
        ranks_assert(self, !plan->ops->busy(plan) && !plan->ops->input(plan));
        for (int i = 0; i < COUNT; i++)
            x[i] = (float)(self->rank + i + round);
        ranks_ok(self, trib_plan_start(plan));
        check_open(self, plan, x);
        for (size_t i = 100; i < COUNT; i += 700) /* more ranges than are stored
                                                   * initially */
            ranks_ok(self, trib_plan_ready(plan, i, 70));
        for (size_t i = 100; i < COUNT; i += 70)
            if ((i - 100) % 700)
                ranks_ok(self, trib_plan_ready(plan, i, 70));
        expect(
            self, parent, trib_plan_ready(plan, 0, 1), TRIB_ERR_INVALID,
            "elements 0 to 1: not awaited; call trib_plan_start first, and pass each "
            "element once");
        ranks_ok(self, trib_plan_wait(plan));
        ranks_ok(self, trib_plan_test(plan));
        for (int i = 0; i < COUNT; i++)
            ranks_assert(self, x[i] == (float)(s->ranks * (s->ranks - 1) / 2 +
                                               s->ranks * (i + round)));
        ranks_ok(self, trib_plan_absent(plan, absent));
        for (int r = 0; r < s->ranks; r++)
            ranks_assert(self, absent[r] == 0);
    }
    ranks_assert(self, parent->offload->started == 3 && parent->starts == before + 3);
    ranks_ok(self, trib_plan_free(plan));
    aggregators_leave(self, s, parent);
    return 0;
}

TEST_ON(test_calls, "shm", "tcp")
{
    struct aggregators s = {.ranks = 3, .n = 2};

    aggregators_run(&s, (struct ranks_job){.fn = calls, .arg = &s, .config = *state});
}

/* A rank with a NaN in its input fails everything: the ranks must not repeat the start
 * without aggregators. */
static int fails(struct ranks_self *self)
{
    struct aggregators *s = self->arg;
    struct trib_comm *parent = aggregators_attach(self, s);
    float x = self->rank == 1 ? NAN : 1;

    if (!parent)
        return 0;
    trib_plan_t *plan =
        ranks_plan_on(self, parent, TRIB_ALLREDUCE, .recv = &x, .count = 1);
    ranks_ok(self, trib_barrier(parent)); /* a rank without its plan could not make it
                                           * after the failure */
    trib_status_t st = trib_plan_start(plan);
    st = st == TRIB_OK ? trib_plan_wait(plan) : st;
    ranks_assert(self, st != TRIB_OK);
    if (!strstr(trib_last_error(parent), "rank 1 gave"))
        ranks_die(self, "%s", trib_last_error(parent));
    ranks_assert(self, trib_plan_start(plan) != TRIB_OK);
    ranks_assert(self,
                 self->rank == 0 || (parent->offload->fallback_comm->engine.failed &&
                                     parent->offload->control_comm->engine.failed));
    ranks_ok(self, trib_plan_free(plan));
    (void)trib_free_comm(parent);
    return 0;
}

TEST_ON(test_fails, "shm;check=finite")
{
    struct aggregators s = {.ranks = 2, .n = 1};

    aggregators_run(&s, (struct ranks_job){
                            .fn = fails, .arg = &s, .config = *state, .noisy = true});
}
