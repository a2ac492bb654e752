/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One write of each rank, and of each node, arrives twice: every sum is right, or it is
 * refused as a mistake of the transport. Nothing is counted twice. Each of the first
 * writes is repeated once: frames, what comes before and beside them, and credits.
 */
#include "tests/harness/tribtest.h"

#include "tests/offload/nodes.h"
#include "tests/harness/ranks.h"

enum { COUNT = 30000, STEPS = 6, WRITES = 40 };

struct repeated {
    struct nodes nodes;
    char transport[64]; /* of the channel */
};

/* The ranks' sums by a channel or by themselves; the status of the first that
 * failed. */
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

/* It ends well, or with the sentence. */
static int judge(struct ranks_self *self, trib_status_t st, const char *text)
{
    if (st == TRIB_OK)
        return 0;
    /* Whoever refuses tells the others. */
    if (st != TRIB_ERR_PROTOCOL || !strstr(text, "a frame twice"))
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

static void serve(struct ranks_self *self, const struct nodes *nodes,
                  struct trib_comm *channel)
{
    bool more = true;

    while ((more || channel->engine.head) && !channel->engine.failed) {
        more = more && nodes_listen(self, nodes, channel);
        if (!trib_agg_comm_step(channel))
            sched_yield();
    }
}

/* The home's writes are as they should be: it has a transport of its own. */
static int by_service(struct ranks_self *self)
{
    struct repeated *t = self->arg;
    struct trib_comm *comm = self->comm;
    trib_status_t st = TRIB_OK;

    snprintf(comm->cfg.transport, sizeof(comm->cfg.transport), "%s", t->transport);
    struct trib_comm *channel = nodes_join(self, &t->nodes, comm);
    if (self->rank >= t->nodes.ranks) {
        serve(self, &t->nodes, channel);
        st = channel->engine.failed;
        const int code = judge(self, st, trib_error_text(&channel->engine.failure));
        trib_agg_comm_dispose(channel);
        return code;
    }
    st = sum_all(self, channel);
    const int code = judge(self, st, trib_last_error(channel));
    (void)trib_free_comm(channel);
    if (self->rank == 0)
        nodes_tell(&t->nodes, NODES_GOODBYE, "-");
    return code;
}

/* How many of the runs were refused; in all others every sum was right. */
static void run(const char *transport, ranks_fn fn)
{
    int refused = 0;

    for (int nth = 1; nth <= WRITES; nth++) {
        struct repeated t = {.nodes = {.ranks = 2, .services = fn == by_service}};
        char config[100];
        snprintf(t.transport, sizeof(t.transport), "%s+repeat:nth=%d", transport, nth);
        snprintf(config, sizeof(config), "chunk=4K;window=2;transport=%s",
                 fn == by_service ? "shm" : t.transport);
        assert_true(nodes_open(&t.nodes));
        const struct ranks_job job = {.size = 2 + t.nodes.services,
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
        nodes_close(&t.nodes);
    }
    assert_in_range(refused, 1, WRITES - 1); /* frames are, credits need not be */
}

static void test_ranks(void **state)
{
    run(*state, by_ranks);
}

static void test_service(void **state)
{
    run(*state, by_service);
}

#define ON(test, transport) \
    {#test " [" transport "]", test, NULL, NULL, (char *)(uintptr_t)transport}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON(test_ranks, "shm+nomap"),   ON(test_ranks, "tcp"),
        ON(test_service, "shm+nomap"), ON(test_service, "tcp"),
    };

    tribtest_deadline(300);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
