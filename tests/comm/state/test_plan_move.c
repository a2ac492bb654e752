/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_plan_move creates the plan that its caller would have created, with the same
 * process as root and the latest factors, also for newcomers. Named vectors keep their
 * name. The error for a plan that cannot move names the remedy. test_plan_state_move.c
 * covers the state.
 */
#include "tests/harness/tribtest.h"

#include <tributary/elastic.h>

#include "build-config.h"
#include "comm/core/plan_struct.h"
#include "tests/comm/fed.h"
#include "tests/harness/daemon.h"

enum { WORLD = 4, LOST = 1, N = 1237 };

/* Two communicators that share ranks. */
struct comms {
    trib_comm_t *all;
    trib_comm_t *fewer; /* without the rank LOST; NULL there */
};

static void open_comms(struct ranks_self *self, struct comms *c)
{
    c->all = self->comm;
    ranks_ok(self,
             trib_split(c->all, self->rank == LOST ? -1 : 0, self->rank, &c->fewer));
}

static trib_plan_t *make(struct ranks_self *self, trib_comm_t *comm, trib_coll_t coll,
                         const trib_desc_t *d)
{
    trib_plan_t *plan;

    if (trib_plan_create(comm, coll, d, &plan) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(comm));
    return plan;
}

static trib_plan_t *moved(struct ranks_self *self, trib_comm_t *comm, trib_plan_t *from,
                          uint64_t steps)
{
    trib_plan_t *plan;

    if (trib_plan_move(comm, from, NULL, NULL, steps, &plan) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(comm));
    return plan;
}

static void sum_with(struct ranks_self *self, trib_comm_t *comm, trib_plan_t *plan,
                     const void *send, void *recv)
{
    ranks_ok(self, trib_plan_start_with(plan, send, recv));
    if (trib_plan_wait(plan) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(comm));
}

/* ---- the description ------------------------------------------------------------- */

static void same_plan(struct ranks_self *self, trib_comm_t *comm, trib_plan_t *plan,
                      trib_coll_t coll, const trib_desc_t *d)
{
    trib_plan_t *other = make(self, comm, coll, d);
    char a[2000], b[2000];

    ranks_ok(self, trib_plan_explain(plan, a, sizeof(a)));
    ranks_ok(self, trib_plan_explain(other, b, sizeof(b)));
    if (strcmp(a, b) != 0)
        ranks_die(self, "moved: %s, made: %s", a, b);
    ranks_ok(self, trib_plan_free(other));
}

/* Move to fewer ranks and back to all, with one rank that does not have the plan. */
RANKS_TEST_ON(test_described, ("shm"), .size = WORLD)
{
    trib_desc_t descs[4] = {TRIB_DESC_INIT, TRIB_DESC_INIT, TRIB_DESC_INIT,
                            TRIB_DESC_INIT};
    const trib_coll_t colls[] = {TRIB_ALLREDUCE, TRIB_REDUCE_SCATTER, TRIB_ALLGATHER,
                                 TRIB_BARRIER};
    struct comms c;

    open_comms(self, &c);
    descs[0].codec = "topk:ratio=0.1";
    descs[0].feedback = "ef14:momentum=0.5";
    descs[0].algorithm = "ring";
    descs[0].chunk = 8192;
    descs[0].name = "layer1.weight";
    descs[0].seed = 77;
    descs[0].timeout_ms = 5000;
    descs[0].feed = TRIB_FEED_BACKWARD;
    descs[1].op = TRIB_TRIMMED_MEAN;
    descs[1].parameter = 0.25;
    descs[2].dtype = TRIB_I16;
    for (int i = 0; i < 4; i++) {
        descs[i].count = i < 3 ? N : 0;
        trib_plan_t *first = make(self, c.all, colls[i], &descs[i]), *fewer = NULL;
        if (c.fewer) {
            fewer = moved(self, c.fewer, first, 0);
            same_plan(self, c.fewer, fewer, colls[i], &descs[i]);
        }
        trib_plan_t *all = moved(self, c.all, fewer, 0);
        same_plan(self, c.all, all, colls[i], &descs[i]);
        ranks_assert(self, !i == !strcmp(all->identity.name, descs[0].name));
        ranks_assert(self, all->run.desc.limit_ms == (uint32_t)descs[i].timeout_ms);
        ranks_assert(self, all->run.desc.parameter == descs[i].parameter);
        ranks_assert(self, i || all->identity.seed == descs[i].seed);
        ranks_ok(self, trib_plan_free(first));
        ranks_ok(self, trib_plan_free(fewer));
        ranks_ok(self, trib_plan_free(all));
    }
    ranks_ok(self, trib_free_comm(c.fewer));
    return 0;
}

/* ---- roots, factors, buffers ----------------------------------------------------- */

/* The root of all is rank 2, which is rank 1 of fewer, and stays the same process. */
static void keeps_root(struct ranks_self *self, const struct comms *c)
{
    trib_desc_t d = TRIB_DESC_INIT;
    int64_t send = 1 << self->rank, recv = 0;
    trib_plan_t *fewer = NULL;

    d.count = 1;
    d.dtype = TRIB_I64;
    d.root = 2;
    trib_plan_t *all = make(self, c->all, TRIB_REDUCE, &d), *again;
    if (c->fewer) {
        fewer = moved(self, c->fewer, all, 0);
        sum_with(self, c->fewer, fewer, &send, &recv);
        ranks_assert(self, self->rank != 2 || recv == 1 + 4 + 8);
    }
    /* With buffers the plan can be started directly. */
    if (trib_plan_move(c->all, fewer, &send, &recv, 1, &again) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(c->all));
    ranks_step(self, again);
    ranks_assert(self, self->rank != 2 || recv == 15);
    ranks_ok(self, trib_plan_free(all));
    ranks_ok(self, trib_plan_free(fewer));
    ranks_ok(self, trib_plan_free(again));
}

/* A weighted mean keeps the weight of each rank, including 0; a newcomer has weight
 * 1. */
static void keeps_factors(struct ranks_self *self, const struct comms *c)
{
    const double weights[WORLD] = {2, 5, 0, 3};
    trib_desc_t d = TRIB_DESC_INIT;
    double x[7], sum = 0, total = 0;
    trib_plan_t *fewer = NULL, *all = NULL;

    d.count = 7;
    d.dtype = TRIB_F64;
    d.op = TRIB_MEAN;
    d.prescale = 1;
    d.weighted = 1;
    if (c->fewer) {
        fewer = make(self, c->fewer, TRIB_ALLREDUCE, &d);
        ranks_ok(self, trib_plan_set_scale(fewer, weights[self->rank], 0.5));
    }
    all = moved(self, c->all, fewer, 0);
    for (int i = 0; i < 7; i++)
        x[i] = (double)(self->rank + 1) * (i + 1);
    sum_with(self, c->all, all, NULL, x);
    for (int r = 0; r < WORLD; r++) {
        const double weight = r == LOST ? 1 : weights[r];
        sum += weight * (r + 1);
        total += weight;
    }
    for (int i = 0; i < 7; i++)
        ranks_assert(self, x[i] == sum * (i + 1) / total * 0.5);
    ranks_ok(self, trib_plan_free(fewer));
    ranks_ok(self, trib_plan_free(all));
}

RANKS_TEST_ON(test_kept, ("shm", "tcp", IF_UCX("ucx")), .size = WORLD)
{
    struct comms c;

    open_comms(self, &c);
    keeps_root(self, &c);
    keeps_factors(self, &c);
    ranks_ok(self, trib_free_comm(c.fewer));
    return 0;
}

/* ---- named vectors --------------------------------------------------------------- */

static float input(int rank, int step, size_t i)
{
    return (
        float)((int)(oracle_mix((uint64_t)step * 8191 + (uint64_t)rank * 77777 + i) %
                     7) -
               3);
}

static void name_sum(struct ranks_self *self, trib_comm_t *comm, int step, double *got)
{
    static float x[N];

    for (size_t i = 0; i < N; i++)
        x[i] = input(self->rank, step, i);
    if (trib_allreduce_named(comm, "w", NULL, x, N, TRIB_F32, TRIB_SUM) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(comm));
    for (size_t i = 0; i < N; i++)
        got[i] += (double)x[i];
}

/* The results add up to all inputs of the ranks of fewer, before or after the move:
 * finally inputs are zero until no residual is left. */
static int named(struct ranks_self *self)
{
    enum { STEPS = 3, DRAIN = 60 };
    static double got[N];
    static float zero[N];
    struct comms c;

    open_comms(self, &c);
    for (int k = 0; k < STEPS && c.fewer; k++)
        name_sum(self, c.fewer, k, got);
    trib_status_t st = trib_allreduce_named_move(c.all, c.fewer, "other", 0);
    ranks_refused(self, st, TRIB_ERR_INVALID,
                  (const char *const[]){"no rank has passed an old one", NULL});
    if (trib_allreduce_named_move(c.all, c.fewer, "w", STEPS) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(c.all));
    st = trib_allreduce_named_move(c.all, c.fewer, "w", STEPS);
    ranks_refused(self, st, TRIB_ERR_INVALID,
                  (const char *const[]){"\"w\" was already summed in the new", NULL});
    name_sum(self, c.all, STEPS, got);
    for (int k = 0; k < DRAIN; k++) {
        memset(zero, 0, sizeof(zero));
        ranks_ok(self,
                 trib_allreduce_named(c.all, "w", NULL, zero, N, TRIB_F32, TRIB_SUM));
        for (size_t i = 0; i < N; i++)
            got[i] += (double)zero[i];
    }
    for (size_t i = 0; i < N && c.fewer; i++) {
        double in = 0;
        for (int r = 0; r < WORLD; r++)
            for (int k = r == LOST ? STEPS : 0; k <= STEPS; k++)
                in += (double)input(r, k, i);
        ranks_assert(self, got[i] == in);
    }
    ranks_ok(self, trib_free_comm(c.fewer));
    return 0;
}

TEST_ON(test_named, IF_UCX("ucx"), "shm", "tcp")
{
    char config[200];

    snprintf(config, sizeof(config), "%s;codec=topk:ratio=0.1", (const char *)*state);
    ranks_pass(.size = WORLD, .fn = named, .config = config, .noisy = true);
}

TEST(test_named_with_service)
{
    struct daemon_process d = {.port = 0};
    char config[200];

    assert_true(daemon_folder(d.folder));
    if (!daemon_run(&d)) {
        daemon_end(&d);
        tribtest_skip("built without libmicrohttpd");
    }
    snprintf(config, sizeof(config),
             "transport=shm;codec=topk:ratio=0.1;service=127.0.0.1:%d", d.port);
    ranks_pass(.size = WORLD, .fn = named, .config = config, .noisy = true);
    daemon_end(&d);
}

/* ---- refusals -------------------------------------------------------------------- */

static void refused(struct ranks_self *self, const struct comms *c, trib_plan_t *from,
                    trib_status_t expected, const char *words)
{
    trib_plan_t *plan = from;

    if (c->fewer) {
        const trib_status_t st = trib_plan_move(c->fewer, from, NULL, NULL, 0, &plan);
        if (st != expected || !strstr(trib_last_error(c->fewer), words))
            ranks_die(self, "%s and not \"%s\": %s", trib_status_name(st), words,
                      trib_last_error(c->fewer));
        ranks_assert(self, !plan);
    }
    ranks_ok(self, trib_plan_free(from));
}

static void refuse_kinds(struct ranks_self *self, const struct comms *c)
{
    trib_sparse_desc_t pairs = TRIB_SPARSE_DESC_INIT;
    trib_neighbors_desc_t neighbors = TRIB_NEIGHBORS_DESC_INIT;
    trib_desc_t d = TRIB_DESC_INIT;
    const size_t counts[WORLD] = {1, 2, 3, 4};
    trib_plan_t *plan;
    char x[8] = {0};

    ranks_ok(self, trib_plan_send(c->all, x, 8, TRIB_U8, 0, 7, &plan));
    refused(self, c, plan, TRIB_ERR_UNSUPPORTED, "create them again");
    pairs.length = 10;
    ranks_ok(self, trib_plan_sparse(c->all, &pairs, &plan));
    refused(self, c, plan, TRIB_ERR_UNSUPPORTED, "create them again");
    neighbors.count = 10;
    ranks_ok(self, trib_plan_neighbors(c->all, &neighbors, &plan));
    refused(self, c, plan, TRIB_ERR_UNSUPPORTED, "create them again");
    d.recv_counts = counts;
    refused(self, c, make(self, c->all, TRIB_ALLGATHER, &d), TRIB_ERR_UNSUPPORTED,
            "counts of the 3 current ranks");
}

static void refuse_roots(struct ranks_self *self, const struct comms *c)
{
    trib_desc_t d = TRIB_DESC_INIT;
    trib_plan_t *plan;

    d.count = N;
    d.codec = "topk:ratio=0.1";
    d.root = LOST;
    trib_plan_t *from = make(self, c->all, TRIB_REDUCE, &d);
    d.root = 0;
    if (c->fewer) { /* following the error message */
        plan = make(self, c->fewer, TRIB_REDUCE, &d);
        ranks_ok(self, trib_plan_state_move(plan, from, 0));
        ranks_ok(self, trib_plan_free(plan));
    }
    refused(
        self, c, from, TRIB_ERR_INVALID,
        "rank 1, the root of the old reduce, is not among these ranks: create the "
        "plan with another root with trib_plan_create, and call trib_plan_state_move");
}

static int refusals(struct ranks_self *self)
{
    trib_desc_t d = TRIB_DESC_INIT;
    struct comms c;

    open_comms(self, &c);
    ranks_assert(self,
                 trib_plan_move(NULL, NULL, NULL, NULL, 0, NULL) == TRIB_ERR_INVALID);
    ranks_assert(self,
                 trib_plan_move(c.all, NULL, NULL, NULL, 0, NULL) == TRIB_ERR_INVALID);
    refused(self, &c, NULL, TRIB_ERR_INVALID, "no rank has passed an old one");
    refuse_kinds(self, &c);
    refuse_roots(self, &c);
    d.count = self->rank == 3 ? 8 : 7;
    refused(self, &c, make(self, c.all, TRIB_ALLREDUCE, &d), TRIB_ERR_INVALID,
            "old plans of rank 0 (allreduce of 7 f32) and of rank 2 (allreduce of 8 "
            "f32)");
    d.count = N;
    trib_plan_t *from = make(self, c.all, TRIB_ALLREDUCE, &d), *plan;
    ranks_assert(self,
                 trib_plan_move(c.all, from, NULL, NULL, 0, &plan) == TRIB_ERR_INVALID);
    ranks_ok(self, trib_plan_free(from));
    if (c.fewer) { /* one rank cannot, so no rank does */
        d.codec = "topk:ratio=0.1";
        from = make(self, self->rank == 2 ? c.fewer : c.all, TRIB_ALLREDUCE, &d);
        ranks_assert(self, trib_plan_move(c.fewer, from, NULL, NULL, 0, &plan) ==
                               TRIB_ERR_INVALID);
        ranks_assert(self, strstr(trib_last_error(c.fewer),
                                  self->rank == 2 ? "already" : "rank 1 failed"));
        ranks_ok(self, trib_plan_free(from));
    }
    ranks_ok(self, trib_free_comm(c.fewer));
    return 0;
}

TEST_ON(test_refusals, "shm")
{
    ranks_pass(.size = WORLD, .fn = refusals, .config = *state, .noisy = true);
}
