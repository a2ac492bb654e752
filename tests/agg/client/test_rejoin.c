/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that sum without aggregators move to aggregators before the same start, once
 * rank 0 has found some, but not while a start waits for its user. If the aggregators
 * cannot be opened, the ranks continue.
 */
#include "tests/agg/client/aggregators.h"

enum { STARTS = 60, COUNT = 2000 };

struct job {
    struct aggregators aggregators;
    uint64_t found_at;              /* rank 0 finds aggregators after this number of
                                     * starts */
    bool busy;                      /* start 2 waits for rank 1 while the answer is
                                     * due */
    bool fails;                     /* the aggregators cannot be opened */
    uint64_t from; /* first start at the aggregators; 0: any after found_at */
};

struct provider {
    struct ranks_self *self;
    struct trib_comm *parent;
    uint64_t from; /* first start at the aggregators */
    char line[200];
};

static void hear(void *arg, trib_log_level_t level, const char *line)
{
    struct provider *w = arg;

    (void)level;
    snprintf(w->line, sizeof(w->line), "%s", line);
}

static bool found(void *arg)
{
    const struct provider *w = arg;
    const struct job *j = w->self->arg;

    return !w->from && w->parent->offload->started >= j->found_at;
}

static trib_status_t open_agg_comm(void *arg, struct trib_comm **out, char *text,
                                   size_t bytes)
{
    struct provider *w = arg;
    struct job *j = w->self->arg;

    w->from = w->parent->offload->started + 1;
    snprintf(text, bytes, j->fails ? "no host" : "two hosts sum");
    if (j->fails)
        return TRIB_ERR_NO_RESOURCE;
    *out = aggregators_join(w->self, &j->aggregators, w->self->comm);
    return TRIB_OK;
}

static void attach(struct provider *w)
{
    trib_comm_t *parent = w->parent;

    ranks_ok(w->self, trib_offload_attach(parent));
    trib_log_init(&parent->log, TRIB_LOG_INFO, hear, w);
    parent->offload->next_poll_seq = 1;
    parent->offload->provider = (struct trib_agg_provider_ops){
        .found = w->self->rank == 0 ? found : NULL, .open = open_agg_comm, .arg = w};
}

static trib_plan_t *make(struct provider *w, float *x, trib_feed_t feed)
{
    return ranks_plan_on(w->self, w->parent, TRIB_ALLREDUCE, .recv = x, .count = COUNT,
                         .feed = feed);
}

static void start(struct provider *w, trib_plan_t *plan, float *x)
{
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i + w->self->rank);
    ranks_ok(w->self, trib_plan_start(plan));
}

static void end(struct provider *w, trib_plan_t *plan, const float *x)
{
    const int n = trib_size(w->parent);

    ranks_ok(w->self, trib_plan_wait(plan));
    for (int i = 0; i < COUNT; i++)
        ranks_assert(w->self, x[i] == (float)(n * i + n * (n - 1) / 2));
}

static void check(struct provider *w)
{
    const struct job *j = w->self->arg;
    const struct trib_offload *o = w->parent->offload;
    const uint64_t offloaded = o->offloaded;
    double all[2] = {(double)w->from, -(double)w->from};
    char says[100];

    ranks_assert(w->self, !o->agg_comm == j->fails &&
                              offloaded == (j->fails ? 0 : STARTS + 1 - w->from));
    ranks_ok(w->self, trib_allreduce(w->parent, NULL, all, 2, TRIB_F64, TRIB_MAX));
    if (all[0] != -all[1] || w->from <= j->found_at || (j->from && w->from != j->from))
        ranks_die(w->self, "offloaded from start %llu on, by others from %g to %g",
                  (unsigned long long)w->from, -all[1], all[0]);
    snprintf(says, sizeof(says), "service: two hosts sum from operation %llu on",
             (unsigned long long)w->from);
    if (j->fails)
        snprintf(says, sizeof(says),
                 "service: no host; the ranks continue without aggregators");
    if (w->self->rank == 0 ? !strstr(w->line, says) : w->line[0])
        ranks_die(w->self, "\"%s\" does not say \"%s\"", w->line, says);
}

static int rejoins(struct ranks_self *self)
{
    struct job *j = self->arg;
    struct provider w = {.self = self};
    const bool is_rank = self->rank < j->aggregators.ranks;
    static float x[COUNT], y[COUNT];

    ranks_ok(self, trib_split(self->comm, is_rank ? 0 : -1, 0, &w.parent));
    if (!is_rank) {
        struct trib_comm *agg_comm =
            j->fails ? NULL : aggregators_join(self, &j->aggregators, self->comm);
        if (agg_comm)
            aggregators_serve(self, &j->aggregators, agg_comm);
        if (agg_comm)
            trib_agg_comm_dispose(agg_comm);
        return 0;
    }
    attach(&w);
    trib_plan_t *plan = make(&w, x, TRIB_FEED_WHOLE);
    trib_plan_t *fed = make(&w, y, TRIB_FEED_FORWARD);
    while (w.parent->offload->started < STARTS) {
        const bool both = j->busy && w.parent->offload->started == 1;
        if (both)
            start(&w, fed, y);
        if (both && self->rank != 1)
            ranks_ok(self, trib_plan_ready(fed, 0, COUNT));
        start(&w, plan, x);
        if (both && self->rank == 1)
            ranks_ok(self, trib_plan_ready(fed, 0, COUNT));
        if (both)
            end(&w, fed, y);
        end(&w, plan, x);
    }
    check(&w);
    ranks_ok(self, trib_plan_free(fed));
    ranks_ok(self, trib_plan_free(plan));
    aggregators_leave(self, &j->aggregators, w.parent);
    return 0;
}

static void test_rejoins(void **state)
{
    struct job jobs[] = {
        {.from = 2}, {.busy = true, .from = 5}, {.found_at = 9}, {.fails = true}};

    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        jobs[i].aggregators = (struct aggregators){.ranks = 3, .n = 2};
        aggregators_run(&jobs[i].aggregators, (struct ranks_job){.fn = rejoins,
                                                                 .arg = &jobs[i],
                                                                 .config = *state,
                                                                 .noisy = true});
    }
}

static const struct CMUnitTest rows[] = {
    cmocka_unit_test_prestate(test_rejoins, (char *)(uintptr_t) "transport=shm"),
    cmocka_unit_test_prestate(test_rejoins, (char *)(uintptr_t) "transport=tcp"),
};

TEST_ROWS(rows)
