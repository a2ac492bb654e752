/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lowering: schedules made by hand, task by task; and what must hold of every schedule
 * that the algorithms build.
 */
#include "tests/harness/tribtest.h"

#include "collectives/collectives.h"
#include "collectives/schedule/program.h"

#define NONE TRIB_STEP_NO_DEP
#define UP TRIB_LANE_UP
#define DOWN TRIB_LANE_DOWN

static struct trib_program lower(const struct trib_step *steps, uint32_t n,
                                 uint32_t chunks)
{
    struct trib_schedule s = {
        .n_chunks = chunks, .n_steps = n, .steps = (struct trib_step *)steps};
    struct trib_program p;

    const struct trib_shape shape = {.rank = 1, .size = 4};
    assert_ok(trib_program_create(&s, &shape, &p));
    assert_int_equal(p.n_chunks, chunks);
    return p;
}

#define LOWER(steps, chunks) \
    lower(steps, (uint32_t)(sizeof(steps) / sizeof(*(steps))), chunks)

TEST(test_joins_a_sum)
{
    static const struct trib_step steps[] = {
        {TRIB_STEP_RECV_REDUCE, 0, UP, 0, 0, NONE},
        {TRIB_STEP_RECV_REDUCE, 0, UP, 2, 0, 0},
        {TRIB_STEP_RECV_REDUCE, 0, UP, 3, 0, 1},
        {TRIB_STEP_SCALE, 0, UP, 1, 0, 2},
        {TRIB_STEP_SEND, TRIB_STEP_FINAL, DOWN, 2, 0, 3},
    };
    static const int peers[] = {0, 2, 3};
    struct trib_program p = LOWER(steps, 1);

    assert_int_equal(p.n_tasks, 2);
    assert_int_equal(p.n_neighbors, 3);
    assert_int_equal(p.n_contribs, 3);
    assert_int_equal(p.tasks[0].kind, TRIB_TASK_REDUCE);
    assert_int_equal(p.tasks[0].n_contribs, 3);
    assert_int_equal(p.tasks[0].flags,
                     TRIB_TASK_INPUT | TRIB_TASK_MEAN | TRIB_TASK_FINISH);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(p.neighbors[p.contribs[i].neighbor].peer, peers[i]);
    assert_int_equal(p.tasks[1].kind, TRIB_TASK_SEND);
    assert_int_equal(p.tasks[1].flags, TRIB_TASK_FINAL);
    assert_int_equal(p.tasks[1].dep, 0);
    assert_int_equal(p.neighbors[p.tasks[1].neighbor].peer, 2);
    trib_program_free(&p);
    trib_program_free(&p);
}

/* Sums of two chunks in turn, then the scaling of both. */
TEST(test_scales_later)
{
    static const struct trib_step steps[] = {
        {TRIB_STEP_RECV_REDUCE, 0, UP, 0, 0, NONE},
        {TRIB_STEP_RECV_REDUCE, 0, UP, 0, 1, NONE},
        {TRIB_STEP_SCALE, 0, UP, 1, 0, 0},
        {TRIB_STEP_SCALE, 0, UP, 1, 1, 1},
        {TRIB_STEP_SEND, TRIB_STEP_FINAL, DOWN, 0, 0, 2},
    };
    struct trib_program p = LOWER(steps, 2);

    assert_int_equal(p.n_tasks, 3);
    assert_true(p.tasks[0].flags & TRIB_TASK_MEAN);
    assert_true(p.tasks[1].flags & TRIB_TASK_MEAN);
    assert_int_equal(p.contribs[p.tasks[0].contrib].ordinal, 0);
    assert_int_equal(p.contribs[p.tasks[1].contrib].ordinal, 1);
    assert_int_equal(p.tasks[2].dep, 0);
    trib_program_free(&p);
}

/* Not joined: another chunk, another dep, something between. */
TEST(test_keeps_apart)
{
    static const struct trib_step steps[] = {
        {TRIB_STEP_RECV_REDUCE, 0, UP, 0, 0, NONE},
        {TRIB_STEP_RECV_REDUCE, 0, UP, 2, 1, 0},
        {TRIB_STEP_RECV_REDUCE, 0, UP, 2, 0, 0},
        {TRIB_STEP_SEND, 0, UP, 3, 0, 2},
    };
    struct trib_program p = LOWER(steps, 2);

    assert_int_equal(p.n_tasks, 4);
    assert_int_equal(p.tasks[0].flags, TRIB_TASK_INPUT);
    assert_int_equal(p.tasks[1].flags, TRIB_TASK_INPUT | TRIB_TASK_FINISH);
    assert_int_equal(p.tasks[2].flags, 0); /* is sent upwards: no result */
    assert_int_equal(p.tasks[3].flags, 0);
    trib_program_free(&p);
}

TEST(test_own_and_relayed)
{
    static const struct trib_step steps[] = {
        {TRIB_STEP_SEND, TRIB_STEP_STABLE, UP, 0, 0, NONE},
        {TRIB_STEP_RECV_COPY, TRIB_STEP_FINAL, DOWN, 0, 0, 0},
        {TRIB_STEP_SEND, TRIB_STEP_FINAL | TRIB_STEP_FORWARD, DOWN, 2, 0, 1},
        {TRIB_STEP_SEND, TRIB_STEP_FINAL | TRIB_STEP_FORWARD, DOWN, 3, 0, 1},
        {TRIB_STEP_SEND, 0, UP, 2, 1, NONE},
        {TRIB_STEP_RECV_REDUCE, 0, UP, 2, 1, NONE},
        {TRIB_STEP_RECV_COPY, TRIB_STEP_FINAL, DOWN, 0, 2, NONE},
        {TRIB_STEP_COPY, 0, UP, 1, 3, NONE},
        {TRIB_STEP_SCALE, 0, UP, 1, 4, NONE},
    };
    struct trib_program p = LOWER(steps, 5);

    assert_int_equal(p.n_tasks, 9);
    assert_int_equal(p.tasks[0].flags, TRIB_TASK_INPUT | TRIB_TASK_STABLE);
    assert_true(p.tasks[1].flags & TRIB_TASK_RELAYED);
    assert_int_equal(p.tasks[2].flags, TRIB_TASK_FINAL | TRIB_TASK_FORWARD);
    assert_int_equal(p.tasks[4].flags, TRIB_TASK_INPUT);
    assert_true(p.tasks[5].flags & TRIB_TASK_INPUT_SENT);
    assert_false(p.tasks[6].flags & TRIB_TASK_RELAYED);
    assert_int_equal(p.tasks[7].kind, TRIB_TASK_COPY);
    assert_int_equal(p.tasks[8].kind, TRIB_TASK_COPY);
    assert_int_equal(p.tasks[6].ordinal, 1); /* second from rank 0 on its lane */
    trib_program_free(&p);
}

TEST(test_nothing_to_do)
{
    struct trib_schedule s = {.n_chunks = 1};
    struct trib_program p;

    const struct trib_shape alone = {.size = 1};
    assert_ok(trib_program_create(&s, &alone, &p));
    assert_int_equal(p.n_tasks, 0);
    assert_int_equal(p.n_neighbors, 0);
    trib_program_free(&p);
}

/* Every schedule that is built ----------------------------------------------------- */

#define RANKS_MOST 9

struct lowered {
    struct trib_shape shape;
    const struct trib_algo *algo;
    struct trib_schedule schedule[RANKS_MOST];
    struct trib_program program[RANKS_MOST];
};

static const struct trib_neighbor *edge_to(const struct trib_program *p, int peer)
{
    static const struct trib_neighbor none = {.peer = -1};

    for (uint32_t i = 0; i < p->n_neighbors; i++)
        if (p->neighbors[i].peer == peer)
            return &p->neighbors[i];
    return &none;
}

/* The other rank receives all that one rank sends on a lane. */
static void check_edges(const struct lowered *l)
{
    for (int a = 0; a < l->shape.size; a++)
        for (int b = 0; b < l->shape.size; b++)
            for (int lane = 0; lane < TRIB_LANES; lane++)
                assert_int_equal(edge_to(&l->program[a], b)->sends[lane],
                                 edge_to(&l->program[b], a)->recvs[lane]);
}

/* Ordinals count up on each neighbor, lane and direction; deps are earlier tasks. */
static void check_order(const struct trib_program *p)
{
    uint32_t sends[RANKS_MOST][TRIB_LANES] = {{0}},
             recvs[RANKS_MOST][TRIB_LANES] = {{0}};
    uint32_t contribs = 0;

    for (uint32_t i = 0; i < p->n_tasks; i++) {
        const struct trib_task *t = &p->tasks[i];
        assert_true(t->dep == NONE || t->dep < i);
        assert_true(t->chunk < p->n_chunks);
        if (t->kind == TRIB_TASK_SEND)
            assert_int_equal(t->ordinal, sends[t->neighbor][t->lane]++);
        if (t->kind == TRIB_TASK_COPY_IN)
            assert_int_equal(t->ordinal, recvs[t->neighbor][t->lane]++);
        if (t->kind != TRIB_TASK_REDUCE)
            continue;
        assert_int_equal(t->contrib, contribs);
        for (uint32_t k = 0; k < t->n_contribs; k++, contribs++) {
            const struct trib_contrib *m = &p->contribs[contribs];
            assert_int_equal(m->ordinal, recvs[m->neighbor][m->lane]++);
        }
    }
    assert_int_equal(contribs, p->n_contribs);
}

/* No step is lost: receives, sends, copies of the list are in the tasks. */
static void check_count(const struct trib_schedule *s, const struct trib_program *p)
{
    uint32_t steps[TRIB_STEP_OP_COUNT] = {0}, kinds[4] = {0}, means = 0;

    for (uint32_t i = 0; i < s->n_steps; i++)
        steps[s->steps[i].op]++;
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        kinds[p->tasks[i].kind]++;
        means += (p->tasks[i].flags & TRIB_TASK_MEAN) != 0;
    }
    assert_int_equal(kinds[TRIB_TASK_SEND], steps[TRIB_STEP_SEND]);
    assert_int_equal(p->n_contribs, steps[TRIB_STEP_RECV_REDUCE]);
    assert_int_equal(kinds[TRIB_TASK_COPY_IN], steps[TRIB_STEP_RECV_COPY]);
    assert_int_equal(kinds[TRIB_TASK_COPY] + means,
                     steps[TRIB_STEP_COPY] + steps[TRIB_STEP_SCALE]);
}

/* A mean is divided once on the way of each chunk, where its sum is finished. */
static void check_mean(const struct lowered *l, uint32_t chunk)
{
    int means = 0;

    for (int r = 0; r < l->shape.size; r++) {
        const struct trib_program *p = &l->program[r];
        for (uint32_t i = 0; i < p->n_tasks; i++) {
            const struct trib_task *t = &p->tasks[i];
            bool mean = t->flags & TRIB_TASK_MEAN;
            if (t->chunk != chunk || t->kind != TRIB_TASK_REDUCE)
                continue;
            means += mean;
            assert_int_equal(mean, (t->flags & TRIB_TASK_FINISH) != 0);
        }
    }
    bool all = strcmp(l->algo->name, "flat") == 0 && l->shape.coll == TRIB_ALLREDUCE;
    assert_int_equal(means, all ? l->shape.size : 1);
}

static void check_all_ranks(struct lowered *l)
{
    bool sums = l->shape.coll == TRIB_ALLREDUCE || l->shape.coll == TRIB_REDUCE ||
                l->shape.coll == TRIB_REDUCE_SCATTER;

    for (int r = 0; r < l->shape.size; r++) {
        l->shape.rank = r;
        assert_ok(l->algo->build(&l->shape, &l->schedule[r]));
        assert_ok(trib_program_create(&l->schedule[r], &l->shape, &l->program[r]));
        check_order(&l->program[r]);
        check_count(&l->schedule[r], &l->program[r]);
    }
    check_edges(l);
    for (uint32_t c = 0; sums && l->shape.size > 1 && c < l->program[0].n_chunks; c++)
        check_mean(l, c);
    for (int r = 0; r < l->shape.size; r++) {
        trib_program_free(&l->program[r]);
        trib_schedule_free(&l->schedule[r]);
    }
}

TEST(test_every_algorithm)
{
    int lowered = 0;

    for (int a = 0; trib_algos[a]; a++) {
        for (int coll = 0; coll < TRIB_COLL_COUNT; coll++) {
            for (int size = 1; size <= RANKS_MOST; size++) {
                struct lowered l = {.algo = trib_algos[a]};
                l.shape = (struct trib_shape){.coll = (trib_coll_t)coll,
                                              .op = TRIB_MEAN,
                                              .size = size,
                                              .root = size / 2};
                if (!(trib_algos[a]->colls >> coll & 1) ||
                    !trib_algos[a]->can(&l.shape))
                    continue;
                check_all_ranks(&l);
                lowered++;
            }
        }
    }
    assert_true(lowered > 100);
}
