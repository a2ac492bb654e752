/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inner plans: their chunks on agg_comm, the barrier that commits their starts, and
 * that a plan moves between agg_comm and fallback_comm with all of its state.
 */
#include "tests/harness/tribtest.h"

#include "pipeline/payload/error_feedback.h"
#include "tests/offload/aggregators.h"

enum { COUNT = 3000, KIB = 1024 };

/* 0 stands for the bytes of a slot of agg_comm, -n for n times as many. */
static const struct {
    size_t count;
    const char *codec;
    size_t asked;
    int network, shared; /* bytes of a chunk, by the reach of agg_comm */
} chunks[] = {
    {1 << 10, "none", 0, 32 * KIB, 0}, /* short vectors: as small as chunks may be */
    {3 << 20, "none", 0, 32 * KIB, 0},
    {4 << 20, "none", 0, 40 * KIB, 0}, /* 192 rounds at two aggregators, in pages */
    {16 << 20, "none", 0, 168 * KIB, 0},
    {4 << 20, "none", 4 * KIB, 4 * KIB, 4 * KIB},
    {1 << 20, "int8", 0, 128 * KIB, -4}, /* whose encoded chunk has 48 KiB at most */
    {1 << 20, "topk:ratio=0.01", 0, 0, 0}, /* the loss depends on the chunk */
};

static int cuts(struct ranks_self *self)
{
    struct aggregators *s = self->arg;
    struct trib_comm *parent = aggregators_attach(self, s);

    if (!parent)
        return 0;
    const struct trib_comm *agg_comm = parent->offload->agg_comm;
    for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
        trib_desc_t d = TRIB_DESC_INIT;
        trib_plan_t *plan;
        d.count = chunks[i].count;
        d.codec = chunks[i].codec;
        d.chunk = chunks[i].asked;
        ranks_ok(self, trib_plan_allreduce(parent, &d, &plan));
        const struct trib_plan *inner = plan->offload->inner;
        const int is = agg_comm->load_store ? chunks[i].shared : chunks[i].network;
        const size_t most =
            is > 0 ? (size_t)is : agg_comm->cfg.chunk * (size_t)(is < 0 ? -is : 1);
        const size_t bytes = inner->run.desc.piece * sizeof(float);
        ranks_assert(self, inner->identity.inner && inner->comm == agg_comm);
        if (bytes > most || (d.count * sizeof(float) >= most && bytes < most / 8 * 7))
            ranks_die(self, "row %zu: chunks of %zu bytes, not of %zu", i, bytes, most);
        ranks_ok(self, trib_plan_free(plan));
    }
    aggregators_leave(self, s, parent);
    return 0;
}

static void start(struct ranks_self *self, trib_plan_t *plan, float *x, int step)
{
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)((i * 7 + step * 3 + self->rank) % 101) / 8;
    ranks_ok(self, trib_plan_start(plan));
    ranks_ok(self, trib_plan_wait(plan));
}

/* A plan that moves has the results of one that stays, to the bit. */
static int moves(struct ranks_self *self)
{
    struct aggregators *s = self->arg;
    struct trib_comm *parent = aggregators_attach(self, s);
    static float x[COUNT], y[COUNT];
    trib_plan_t *stays, *moves;
    trib_desc_t d = TRIB_DESC_INIT;

    if (!parent)
        return 0;
    struct trib_offload *o = parent->offload;
    d.count = COUNT;
    d.codec = "topk:ratio=0.1"; /* the residual is the state */
    d.chunk = 4 * KIB;
    d.recv = x;
    ranks_ok(self, trib_plan_allreduce(parent, &d, &stays));
    d.recv = y;
    ranks_ok(self, trib_plan_allreduce(parent, &d, &moves));
    for (int step = 0; step < 6; step++) {
        struct trib_offload_plan *p = moves->offload;
        struct trib_comm *agg_comm = o->agg_comm;
        start(self, stays, x, step);
        if (step % 2) {
            ranks_ok(self, trib_offload_plan_move(p, o->fallback_comm));
            ranks_assert(self, !p->commit && p->committed_upto == 0);
            o->agg_comm = NULL; /* a start would move the plan back */
        }
        start(self, moves, y, step);
        o->agg_comm = agg_comm;
        ranks_assert(self, p->inner->comm == (step % 2 ? o->fallback_comm : agg_comm) &&
                               (p->commit == NULL) == step % 2);
        ranks_assert(self, memcmp(x, y, sizeof(x)) == 0);
        ranks_assert(self,
                     memcmp(trib_feedback_of(&p->inner->run)->residual,
                            trib_feedback_of(&stays->offload->inner->run)->residual,
                            sizeof(x)) == 0);
    }
    ranks_ok(self, trib_plan_free(stays));
    ranks_ok(self, trib_plan_free(moves));
    aggregators_leave(self, s, parent);
    return 0;
}

/* A plan that fallback_comm cannot have stays on agg_comm. */
static int refused(struct ranks_self *self)
{
    struct aggregators *s = self->arg;
    struct trib_comm *parent = aggregators_attach(self, s);
    trib_desc_t d = TRIB_DESC_INIT;
    static float x[COUNT];
    trib_plan_t *plan;

    if (!parent)
        return 0;
    struct trib_offload *o = parent->offload;
    d.recv = x;
    d.count = COUNT;
    ranks_ok(self, trib_plan_allreduce(parent, &d, &plan));
    struct trib_offload_plan *p = plan->offload;
    p->desc.chunk = o->fallback_comm->cfg.chunk + 1;
    ranks_assert(self, trib_offload_plan_move(p, o->fallback_comm) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_offload_plan_refused(p, o->fallback_comm,
                                                 TRIB_ERR_INVALID) == TRIB_ERR_INVALID);
    ranks_assert(self, strcmp(trib_last_error(parent),
                              trib_last_error(o->fallback_comm)) == 0 &&
                           strstr(trib_last_error(parent), "chunk"));
    ranks_assert(self, p->inner->comm == o->agg_comm);
    start(self, plan, x, 0);
    ranks_ok(self, trib_plan_free(plan));
    aggregators_leave(self, s, parent);
    return 0;
}

static void test_needs_input(void **state)
{
    struct trib_ready_range ranges[] = {{0, 4}, {8, 2}, {4, 4}};
    struct trib_offload_plan p = {.desc = {.count = 10}, .ready = ranges};

    (void)state;
    assert_false(trib_offload_plan_needs_input(&p)); /* the whole vector is its input */
    p.desc.feed = TRIB_FEED_BACKWARD;
    for (p.n_ready = 0; p.n_ready < 3; p.n_ready++)
        assert_true(trib_offload_plan_needs_input(&p));
    assert_false(trib_offload_plan_needs_input(&p));
}

static void run(const char *config, ranks_fn fn)
{
    struct aggregators s = {.ranks = 2, .n = 2};

    aggregators_run(&s, (struct ranks_job){.fn = fn, .arg = &s, .config = config});
}

static void test_cuts(void **state)
{
    run(*state, cuts);
}

static void test_moves(void **state)
{
    run(*state, moves);
}

static void test_refused(void **state)
{
    run(*state, refused);
}

#define ON(test, config) \
    {#test " [" config "]", test, NULL, NULL, (char *)(uintptr_t) "transport=" config}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON(test_cuts, "shm"),    ON(test_cuts, "tcp"),
        ON(test_moves, "shm"),   ON(test_moves, "tcp"),
        ON(test_refused, "shm"), cmocka_unit_test(test_needs_input),
    };

    tribtest_deadline(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
