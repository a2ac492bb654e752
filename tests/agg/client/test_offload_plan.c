/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inner plans: their chunks on agg_comm, the barrier that commits their starts, and the
 * move of a plan with all of its state between agg_comm and fallback_comm.
 */
#include <math.h>

#include <tributary/sparse.h>

#include "pipeline/payload/error_feedback.h"
#include "tests/agg/client/aggregators.h"
#include "tests/comm/oracle.h"

enum { COUNT = 3000, KIB = 1024 };

/* 0 stands for the slot size of agg_comm in bytes, -n for n times as many. */
static const struct {
    size_t count;
    const char *codec;
    size_t asked;
    int network, shared; /* bytes of a chunk, for agg_comm over the network and in
                          * shared memory */
} chunks[] = {
    {1 << 10, "none", 0, 32 * KIB, 0}, /* short vectors: the smallest chunk */
    {3 << 20, "none", 0, 32 * KIB, 0},
    {4 << 20, "none", 0, 40 * KIB, 0}, /* 192 rounds at two aggregators, in whole
                                        * pages */
    {16 << 20, "none", 0, 168 * KIB, 0},
    {4 << 20, "none", 4 * KIB, 4 * KIB, 4 * KIB},
    {1 << 20, "int8", 0, 128 * KIB, -4}, /* its encoded chunk has at most 48 KiB */
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
        trib_plan_t *plan;
        trib_desc_t d = sized(trib_desc_t, .count = chunks[i].count,
                              .codec = chunks[i].codec, .chunk = chunks[i].asked);
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
    ranks_step(self, plan);
}

/* A plan that moves has bit-identical results to one that stays. */
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
    d.codec = "topk:ratio=0.1"; /* the residual is the only state */
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

/* A plan that fallback_comm cannot create stays on agg_comm. */
static int refused(struct ranks_self *self)
{
    struct aggregators *s = self->arg;
    struct trib_comm *parent = aggregators_attach(self, s);
    static float x[COUNT];

    if (!parent)
        return 0;
    struct trib_offload *o = parent->offload;
    trib_plan_t *plan =
        ranks_plan_on(self, parent, TRIB_ALLREDUCE, .recv = x, .count = COUNT);
    struct trib_offload_plan *p = plan->offload;
    p->desc.chunk = o->fallback_comm->cfg.chunk + 1;
    ranks_assert(self, trib_offload_plan_move(p, o->fallback_comm) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_offload_plan_refused(p, o->fallback_comm,
                                                 TRIB_ERR_INVALID) == TRIB_ERR_INVALID);
    ranks_assert(
        self, strcmp(trib_last_error(parent), trib_last_error(o->fallback_comm)) == 0 &&
                  strstr(trib_last_error(parent), "chunk"));
    ranks_assert(self, p->inner->comm == o->agg_comm);
    start(self, plan, x, 0);
    ranks_ok(self, trib_plan_free(plan));
    aggregators_leave(self, s, parent);
    return 0;
}

/* A sparse plan keeps its union when it moves. */
static int pairs_move(struct ranks_self *self)
{
    struct aggregators *s = self->arg;
    struct trib_comm *parent = aggregators_attach(self, s);
    trib_sparse_desc_t d = TRIB_SPARSE_DESC_INIT;
    uint64_t indices[COUNT];
    float x[COUNT], all[3][COUNT];
    trib_plan_t *plan[2];

    if (!parent)
        return 0;
    struct trib_offload *o = parent->offload;
    d.length = COUNT;
    for (int k = 0; k < 2; k++) /* aggregators check the charge of the second plan */
        ranks_ok(self, trib_plan_sparse(parent, &d, &plan[k]));
    struct trib_offload_plan *p = plan[1]->offload;
    for (int step = 0; step < 3; step++) {
        struct trib_comm *agg_comm = o->agg_comm;
        size_t n = 0;
        for (uint64_t i = (uint64_t)self->rank; i < COUNT; i += 2 + (uint64_t)step) {
            indices[n] = i;
            x[n++] = (float)i / 7;
        }
        ranks_ok(self, trib_plan_start_sparse(plan[1], indices, x, n));
        ranks_ok(self, trib_plan_wait(plan[1]));
        ranks_ok(self, trib_plan_sparse_dense(plan[1], all[0]));
        ranks_assert(self, p->inner->comm == agg_comm);
        ranks_ok(self, trib_offload_plan_move(p, o->fallback_comm));
        ranks_ok(self, trib_plan_sparse_dense(plan[1], all[1]));
        o->agg_comm = NULL; /* a start would move the plan back */
        ranks_ok(self, trib_plan_start_sparse(plan[1], indices, x, n));
        ranks_ok(self, trib_plan_wait(plan[1]));
        o->agg_comm = agg_comm;
        ranks_ok(self, trib_plan_sparse_dense(plan[1], all[2]));
        for (int i = 0; i < COUNT; i++)
            ranks_assert(self, all[1][i] == all[0][i] &&
                                   fabsf(all[2][i] - all[0][i]) <= 1e-3f);
    }
    for (int k = 0; k < 2; k++)
        ranks_ok(self, trib_plan_free(plan[k]));
    aggregators_leave(self, s, parent);
    return 0;
}

/* Return element i of a rank in a case: a small integer, or a large one whose sum
 * overflows the type while the mean fits. */
static double given(const trib_sparse_desc_t *d, int rank, uint64_t i)
{
    return d->op == TRIB_MEAN && d->dtype == TRIB_F16
               ? 40000 + 32 * (double)(i % 3)
               : (double)((i + (uint64_t)rank) % 3);
}

/* Compute the sum, or mean, of element i in a case. Return false if no rank
 * contributes: each rank contributes every stride-th element, starting at its own
 * number. */
static bool wanted(const trib_sparse_desc_t *d, int ranks, uint64_t stride, uint64_t i,
                   double *out)
{
    bool there = false;

    *out = 0;
    for (uint64_t r = 0; r < (uint64_t)ranks; r++) {
        if (i < r || (i - r) % stride)
            continue;
        *out += given(d, (int)r, i);
        there = true;
    }
    if (d->op == TRIB_MEAN)
        *out /= ranks;
    if (perf_number_is_integer(d->dtype))
        *out = trunc(*out);
    return there;
}

/* Compare one case with a plain sum. */
static void sum_pairs(struct ranks_self *self, struct trib_comm *parent,
                      const trib_sparse_desc_t *d, uint64_t stride)
{
    static uint64_t indices[COUNT];
    static uint8_t values[COUNT * 8], got[COUNT * 8];
    trib_plan_t *plan;
    size_t n = 0, all = 0;
    double want;

    for (uint64_t i = (uint64_t)self->rank; i < d->length; i += stride, n++) {
        const double x = given(d, self->rank, i);
        indices[n] = i;
        perf_number_store(d->dtype, values, n, oracle_whole(d->dtype, x));
    }
    ranks_ok(self, trib_plan_sparse(parent, d, &plan));
    ranks_ok(self, trib_plan_start_sparse(plan, indices, values, n));
    if (trib_plan_wait(plan) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(parent));
    ranks_assert(self, plan->offload->inner->comm == parent->offload->agg_comm);
    ranks_ok(self, trib_plan_sparse_dense(plan, got));
    ranks_ok(self, trib_plan_sparse_count(plan, &n));
    for (uint64_t i = 0; i < d->length; i++) {
        all += wanted(d, trib_size(parent), stride, i, &want);
        const union perf_number v = perf_number_load(d->dtype, got, i);
        const double is = perf_number_is_integer(d->dtype) ? (double)(int64_t)v.i : v.f;
        if (fabs(is - want) > fabs(want) * perf_number_epsilon(d->dtype))
            ranks_die(self, "%s %s, element %d is %g, not %g",
                      trib_dtype_name(d->dtype), trib_op_name(d->op), (int)i, is, want);
    }
    ranks_assert(self, n == all);
    ranks_ok(self, trib_plan_free(plan));
}

/* Each type, from a full union to no pairs. */
static int pairs_sum(struct ranks_self *self)
{
    static const uint64_t strides[] = {1, 2, 7, 400, COUNT + 1};
    struct aggregators *s = self->arg;
    struct trib_comm *parent = aggregators_attach(self, s);
    trib_sparse_desc_t d = TRIB_SPARSE_DESC_INIT;

    if (!parent)
        return 0;
    for (int k = 0; k < 2 * TRIB_DTYPE_COUNT; k++) {
        d.dtype = (trib_dtype_t)(k / 2);
        d.op = k % 2 ? TRIB_MEAN : TRIB_SUM;
        d.length = k % 3 ? COUNT : 1;
        d.most = k % 5 ? 0 : d.length;
        if (d.dtype != TRIB_BOOL)
            sum_pairs(self, parent, &d, strides[k % 5]);
    }
    aggregators_leave(self, s, parent);
    return 0;
}

TEST(test_needs_input)
{
    struct trib_ready_range ranges[] = {{0, 4}, {8, 2}, {4, 4}};
    struct trib_offload_plan p = {.desc = {.count = 10}, .ready = ranges};

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

TEST_ON(test_cuts, "shm", "tcp")
{
    run(*state, cuts);
}

TEST_ON(test_moves, "shm", "tcp")
{
    run(*state, moves);
}

TEST_ON(test_refused, "shm")
{
    run(*state, refused);
}

/* Also with a tree of two levels: partial sums. */
TEST_ON(test_pairs, "shm", "tcp")
{
    struct aggregators s = {.ranks = 3, .n = 3, .tree = aggregators_of_racks()};

    run(*state, pairs_move);
    aggregators_run(&s,
                    (struct ranks_job){.fn = pairs_move, .arg = &s, .config = *state});
    aggregators_run(&s,
                    (struct ranks_job){.fn = pairs_sum, .arg = &s, .config = *state});
}
