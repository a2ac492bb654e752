/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Newcomers join: sums over all ranks, of every dtype and of odd sizes, in place and
 * not, with the same bits on all; one newcomer at a time and several at once; starting
 * with one rank; repeatedly; after a loss. A plan with error feedback moves along, and
 * its residual is not lost. tests/fault/test_grow_faults has losses at any time.
 */
#include "build-config.h"
#include "tests/comm/growing.h"
#include "tests/comm/right_sums.h"

#define SIZE_MOST 6

struct growth {
    int members, newcomers;
    int most; /* newcomers per call */
    int listens; /* the rank that listens */
    bool loses; /* a member dies before newcomers join */
    char root[TRIB_ROOT_TEXT_MAX];
    struct growing_board *board;
};

/* The plan of a rank, and its number of starts. */
enum { N = 1237 };
static trib_plan_t *plan;
static int64_t steps;
static float held[N]; /* its residual */

/* Check that the result is the sum of all contributions, computed from the residuals
 * before and after. */
static void start_plan(struct ranks_self *self)
{
    static float in[N], out[N], after[N];
    static double sent[N];

    for (size_t i = 0; i < N; i++)
        in[i] = (float)((i * 7 + (size_t)self->rank * 3 + (size_t)steps) % 11) - 5;
    ranks_ok(self, trib_plan_start_with(plan, in, out));
    ranks_ok(self, trib_plan_wait(plan));
    ranks_ok(self, trib_plan_residual_get(plan, 0, N, after));
    for (size_t i = 0; i < N; i++)
        sent[i] = (double)(held[i] + in[i] - after[i]);
    ranks_ok(self, trib_allreduce(self->comm, NULL, sent, N, TRIB_F64, TRIB_SUM));
    for (size_t i = 0; i < N; i++)
        ranks_assert(self, (double)out[i] == sent[i]);
    memcpy(held, after, sizeof(held));
    steps++;
}

/* Move the plan to comm, also on a rank without one. */
static void move_plan(struct ranks_self *self, trib_comm_t *comm)
{
    trib_plan_t *old = plan;
    float now[N];

    ranks_ok(self, trib_allreduce(comm, NULL, &steps, 1, TRIB_I64, TRIB_MAX));
    if (trib_plan_move(comm, old, NULL, NULL, (uint64_t)steps, &plan) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(comm));
    ranks_ok(self, trib_plan_residual_get(plan, 0, N, now));
    ranks_assert(self, memcmp(now, held, sizeof(held)) == 0);
    ranks_ok(self, trib_plan_free(old));
}

static void make_plan(struct ranks_self *self)
{
    plan = ranks_plan(self, TRIB_ALLREDUCE, .count = N, .codec = "topk:ratio=0.1");
}

static void shrink(struct ranks_self *self)
{
    trib_comm_t *smaller;

    ranks_ok(self, trib_comm_shrink(self->comm, &smaller));
    move_plan(self, smaller);
    ranks_ok(self, trib_free_comm(self->comm));
    self->comm = smaller;
}

/* Run steps, with a call of trib_comm_grow at each, until the job has `size` ranks. */
static void step_until(struct ranks_self *self, trib_listener_t *l, int size)
{
    const struct growth *g = self->arg;
    trib_comm_t *bigger;

    for (int64_t x = 1; trib_size(self->comm) < size; x = 1) {
        const int before = trib_size(self->comm), rank = trib_rank(self->comm);
        ranks_ok(self, trib_allreduce(self->comm, NULL, &x, 1, TRIB_I64, TRIB_SUM));
        ranks_assert(self, x == before);
        start_plan(self);
        const trib_status_t st = trib_comm_grow(self->comm, l, g->most, &bigger);
        if (st != TRIB_OK)
            ranks_die(self, "trib_comm_grow gave %s: %s", trib_status_name(st),
                      trib_last_error(NULL));
        if (!bigger)
            continue;
        ranks_assert(self, trib_rank(bigger) == rank && trib_size(bigger) > before);
        ranks_assert(self, trib_size(bigger) <= before + g->most);
        ranks_assert(self, trib_comm_members(bigger) == before);
        ranks_assert(self, trib_barrier(self->comm) == TRIB_ERR_ABORTED);
        trib_comm_t *none = bigger;
        ranks_assert(self,
                     trib_comm_grow(self->comm, NULL, 1, &none) == TRIB_ERR_INVALID &&
                         !none);
        move_plan(self, bigger);
        ranks_ok(self, trib_free_comm(self->comm));
        self->comm = bigger;
    }
}

static int grows(struct ranks_self *self)
{
    const struct growth *g = self->arg;
    const int size = g->members + g->newcomers - g->loses;
    trib_listener_t *l = NULL;
    trib_comm_t *none = NULL;

    if (self->rank < g->members) {
        growing_init(self, g->root, g->members);
        ranks_assert(self, trib_comm_members(self->comm) == g->members);
        make_plan(self);
        ranks_ok(self, trib_comm_grow(self->comm, NULL, 9, &none));
        ranks_assert(self, !none);
        (void)trib_barrier(self->comm); /* a victim may be ahead of others */
        if (g->loses && self->rank == 0)
            raise(SIGKILL);
        while (g->loses && trib_barrier(self->comm) == TRIB_OK)
            ;
        if (g->loses)
            shrink(self);
        if (self->rank == g->listens)
            l = growing_listen(self, self->comm, g->board);
    } else {
        const trib_status_t st = growing_join(self, g->board);
        if (st != TRIB_OK)
            ranks_die(self, "trib_join gave %s: %s", trib_status_name(st),
                      trib_last_error(NULL));
        ranks_assert(self, trib_rank(self->comm) >= trib_comm_members(self->comm));
        move_plan(self, self->comm);
    }
    step_until(self, l, size);
    ranks_assert(self, trib_size(self->comm) == size);
    start_plan(self);
    sums_are_right(self, self->comm, 0);
    ranks_ok(self, trib_plan_free(plan));
    trib_listener_close(l);
    ranks_ok(self, trib_free_comm(self->comm));
    return 0;
}

static void grow(const char *config, struct growth g)
{
    struct ranks r;
    trib_local_t *local;

    assert_int_equal(trib_local_create(g.members, &local), TRIB_OK);
    snprintf(g.root, sizeof(g.root), "%s", trib_local_root(local));
    g.board = growing_board();
    assert_non_null(g.board);
    struct ranks_job job = {.size = g.members + g.newcomers,
                            .fn = grows,
                            .arg = &g,
                            .config = config,
                            .bare = true,
                            .noisy = g.loses,
                            .seconds = 40};
    assert_true(ranks_start(&r, &job));
    ranks_wait(&r);
    ranks_survived(&r, g.loses, "%s: %d members, %d newcomers", config, g.members,
                   g.newcomers);
    trib_local_destroy(local);
    munmap(g.board, sizeof(*g.board));
}

TEST_ON(test_grows, "shm", "shm+nomap", "tcp", IF_UCX("ucx"), "auto:ranks_per_host=2")
{
    const char *config = *state;

    grow(config, (struct growth){.members = 3, .newcomers = 1, .most = 9});
    grow(config, (struct growth){.members = 1, .newcomers = 2, .most = 9});
    grow(config,
         (struct growth){.members = 2, .newcomers = 4, .most = 9, .listens = 1});
    grow(config,
         (struct growth){.members = 2, .newcomers = 3, .most = 1, .listens = 1});
    grow(config,
         (struct growth){
             .members = 4, .newcomers = 1, .most = 9, .listens = 2, .loses = true});
}
