/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory keys of one job are invalid on a connection of another job, and once the
 * job has ended. A device in memory checks protection domains like a real one.
 */
#include <sys/queue.h>

#include "tests/agg/client/aggregators.h"
#include "tests/harness/fake_verbs.h"
#include "transport/verbs/verbs.h"

enum { JOBS = 2, COUNT = 10000, REGIONS = 16 };

/* Memory of an aggregator that the ranks of its job may write. */
struct exposed {
    const struct ibv_pd *pd;
    struct verbs_remote region[REGIONS]; /* as a rank knows it */
    const uint8_t *ptr[REGIONS];
    int n;
};

struct both {
    struct aggregators aggregators[JOBS];
    struct exposed exposed[JOBS];
};

static struct verbs *device_of(const struct trib_comm *agg_comm)
{
    return verbs_of(agg_comm->engine.transport);
}

static void expose(struct ranks_self *self, const struct trib_comm *agg_comm,
                   struct exposed *out)
{
    const struct verbs_region *r;

    out->pd = device_of(agg_comm)->pd;
    LIST_FOREACH(r, &device_of(agg_comm)->regions, entry) {
        ranks_assert(self, r->mr->pd == out->pd && out->n < REGIONS);
        out->ptr[out->n] = r->ptr;
        out->region[out->n++] = (struct verbs_remote){
            .rkey = r->mr->rkey, .address = r->iova, .len = r->len};
    }
    ranks_assert(self, out->n > 0 && fake_verbs_regions(out->pd) == out->n);
}

static void sum_once(struct ranks_self *self, struct trib_comm *agg_comm)
{
    static const float one = 1;
    float x[COUNT];

    for (int i = 0; i < COUNT; i++)
        x[i] = one;
    ranks_ok(self, trib_allreduce(agg_comm, NULL, x, COUNT, TRIB_F32, TRIB_SUM));
    ranks_assert(self, x[0] == one && x[COUNT - 1] == one);
}

static void serve(struct ranks_self *self, struct aggregators *aggregators,
                  struct trib_comm *agg_comm)
{
    unsigned turns = 0;

    while (aggregators_listen(self, aggregators, agg_comm))
        (void)aggregators_turn(agg_comm, &turns);
}

static void are_apart(struct ranks_self *self, const struct both *b)
{
    const struct exposed *x = &b->exposed[0], *y = &b->exposed[1];

    ranks_assert(self, x->pd != y->pd);
    for (int i = 0; i < x->n; i++)
        for (int k = 0; k < y->n; k++)
            ranks_assert(self, x->ptr[i] + x->region[i].len <= y->ptr[k] ||
                                   y->ptr[k] + y->region[k].len <= x->ptr[i]);
}

/* A rank of this job writes to its aggregator, with the key and the address of
 * another's memory. */
static void trespass(struct ranks_self *self, struct trib_comm *agg_comm,
                     const struct verbs_remote *target)
{
    struct trib_transport *t = agg_comm->engine.transport;
    const struct trib_link *l = &agg_comm->engine.links[1];
    struct verbs_remote forged = *target;
    const struct trib_write w = {.local = l->outbox.region,
                                 .remote = (struct trib_remote *)&forged,
                                 .len = 64};
    const double until = ranks_seconds() + 20 * (double)tribtest_slowness();
    struct trib_event e = {0};

    forged.peer = 1;
    memset(l->outbox.base, 0x5a, 64);
    ranks_ok(self, t->ops->write(t, 1, &w));
    while (e.kind != TRIB_EVENT_PEER_LOST && ranks_seconds() < until)
        (void)t->ops->poll(t, &e, 1);
    if (e.kind != TRIB_EVENT_PEER_LOST ||
        !strstr(e.why, "outside its registered memory"))
        ranks_die(self, "event %d: %s", (int)e.kind, e.why);
}

static bool is_touched(const struct exposed *x)
{
    for (int i = 0; i < x->n; i++) {
        int same = 0;
        for (int k = 0; k < 64; k++)
            same += x->ptr[i][k] == 0x5a;
        if (same == 64)
            return true;
    }
    return false;
}

/* Ranks 0 and 2 are the ranks of the jobs, 1 and 3 their aggregators. */
static int two_jobs(struct ranks_self *self)
{
    struct both *b = self->arg;
    const int job = self->rank / 2;
    const bool aggregator = self->rank % 2;
    struct ranks_self part = *self;
    trib_comm_t *comm;

    ranks_ok(self, trib_split(self->comm, job, 0, &comm));
    part.rank = aggregator;
    struct trib_comm *agg_comm = aggregators_join(&part, &b->aggregators[job], comm);
    if (aggregator) {
        serve(self, &b->aggregators[job], agg_comm);
        expose(self, agg_comm, &b->exposed[job]);
    } else {
        sum_once(self, agg_comm);
        aggregators_tell(&b->aggregators[job], AGGREGATORS_GOODBYE, "-");
    }
    ranks_ok(self, trib_barrier(self->comm));
    if (self->rank == 0)
        are_apart(self, b);
    for (int i = 0; self->rank == 2 && i < 1; i++)
        trespass(self, agg_comm, &b->exposed[0].region[i]);
    ranks_ok(self, trib_barrier(self->comm));
    ranks_assert(self, self->rank != 1 || !is_touched(&b->exposed[0]));
    if (self->rank == 1) {
        trib_agg_comm_dispose(agg_comm);
        ranks_assert(self, fake_verbs_regions(b->exposed[0].pd) == 0);
        ranks_assert(self, fake_verbs_regions(b->exposed[1].pd) == b->exposed[1].n);
    }
    ranks_ok(self, trib_barrier(self->comm));
    if (self->rank != 1)
        trib_agg_comm_dispose(agg_comm);
    ranks_ok(self, trib_free_comm(comm));
    return 0;
}

TEST(test_keys_of_another_job)
{
    static struct both b;

    (void)fake_verbs_reset();
    for (int i = 0; i < JOBS; i++) {
        b.aggregators[i] = (struct aggregators){.ranks = 1, .n = 1, .guarded = true};
        assert_true(aggregators_open(&b.aggregators[i]));
    }
    ranks_pass(.size = 4, .fn = two_jobs, .arg = &b, .threads = true, .noisy = true,
               .config = "transport=verbs:reconnect=0");
    for (int i = 0; i < JOBS; i++)
        aggregators_close(&b.aggregators[i]);
    assert_int_equal(fake_verbs_live(), 0);
    assert_int_equal(fake_verbs_mistakes(), 0);
}
