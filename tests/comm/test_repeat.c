/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One write of each rank, and of each aggregator, arrives twice: every sum is correct
 * or refused as an error of the transport. Nothing is counted twice. Each of the first
 * writes is repeated once: frames, the data sent before and with them, and credits.
 */
#include "tests/agg/client/aggregators.h"

enum { COUNT = 30000, STEPS = 6, WRITES = 40 };

struct repeated {
    struct aggregators aggregators;
    char transport[64]; /* of the agg_comm */
};

/* Run the sums of the ranks with an agg_comm or without. Return the status of the first
 * that failed. */
static trib_status_t sum_all(struct ranks_self *self, trib_comm_t *comm)
{
    static float x[COUNT];
    const int p = trib_size(comm);

    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < COUNT; i++)
            x[i] = (float)((self->rank + 1) * (1 + (i + step) % 7));
        const trib_status_t st =
            trib_allreduce(comm, NULL, x, COUNT, TRIB_F32, TRIB_SUM);
        if (st != TRIB_OK)
            return st;
        for (int i = 0; i < COUNT; i++)
            if (x[i] != (float)(p * (p + 1) / 2 * (1 + (i + step) % 7)))
                ranks_die(self, "step %d, element %d: %g", step, i, (double)x[i]);
    }
    return TRIB_OK;
}

/* Check that it succeeds or fails with the expected message. */
static int judge(struct ranks_self *self, trib_status_t st, const char *text)
{
    if (st == TRIB_OK)
        return 0;
    /* The refusing rank notifies the others. */
    if (st != TRIB_ERR_PROTOCOL || !strstr(text, "a duplicate frame"))
        ranks_die(self, "%s: %s", trib_status_name(st), text);
    atomic_store(&self->slot->count, 1);
    return 0;
}

static int by_ranks(struct ranks_self *self)
{
    trib_comm_t *comm;

    ranks_ok(self, trib_init(&self->opts, &comm));
    trib_status_t st = sum_all(self, comm);
    const int code = judge(self, st, trib_last_error(comm));
    (void)trib_free_comm(comm);
    return code;
}

/* Writes of the parent arrive once: agg_comm has a separate transport. */
static int by_aggregators(struct ranks_self *self)
{
    struct repeated *t = self->arg;
    struct trib_comm *comm = self->comm;
    trib_status_t st = TRIB_OK;

    snprintf(comm->cfg.transport, sizeof(comm->cfg.transport), "%s", t->transport);
    struct trib_comm *agg_comm = aggregators_join(self, &t->aggregators, comm);
    if (self->rank >= t->aggregators.ranks) {
        aggregators_serve(self, &t->aggregators, agg_comm);
        st = agg_comm->engine.failed;
        const int code = judge(self, st, trib_error_text(&agg_comm->engine.failure));
        trib_agg_comm_dispose(agg_comm);
        return code;
    }
    st = sum_all(self, agg_comm);
    const int code = judge(self, st, trib_last_error(agg_comm));
    (void)trib_free_comm(agg_comm);
    if (self->rank == 0)
        aggregators_tell(&t->aggregators, AGGREGATORS_GOODBYE, "-");
    return code;
}

/* Count the refused runs; in all others every sum was correct. */
static void run(const char *transport, ranks_fn fn)
{
    int refused = 0;

    for (int nth = 1; nth <= WRITES; nth++) {
        struct repeated t = {.aggregators = {.ranks = 2, .n = fn == by_aggregators}};
        char config[100];
        snprintf(t.transport, sizeof(t.transport), "%s+repeat:nth=%d", transport, nth);
        snprintf(config, sizeof(config), "chunk=4K;window=2;transport=%s",
                 fn == by_aggregators ? "shm" : t.transport);
        assert_true(aggregators_open(&t.aggregators));
        const struct ranks_job job = {.size = 2 + t.aggregators.n,
                                      .fn = fn,
                                      .arg = &t,
                                      .config = config,
                                      .bare = fn == by_ranks,
                                      .noisy = true};
        struct ranks r;
        assert_true(ranks_start(&r, &job));
        ranks_wait(&r);
        assert_int_equal(ranks_failed(&r), 0);
        refused += atomic_load(&r.slots[0].count) != 0;
        ranks_close(&r);
        aggregators_close(&t.aggregators);
    }
    assert_in_range(refused, 1, WRITES - 1); /* frames are, credits need not be */
}

TEST_WITH(test_ranks, "shm+nomap", "tcp")
{
    run(*state, by_ranks);
}

TEST_WITH(test_aggregators, "shm+nomap", "tcp")
{
    run(*state, by_aggregators);
}
