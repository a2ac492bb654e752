/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The walk over the contributions of a REDUCE: in rank order, the local one included,
 * without those that a quorum omits; and elements as float32.
 */
#include "tests/pipeline/payload/payload_rig.h"

#include "pipeline/engine/short_path.h"
#include "pipeline/payload/contribution.h"

enum { RANKS = 4 };

static struct trib_task *reduce_of(struct trib_run *run)
{
    for (uint32_t i = 0; i < run->program.n_tasks; i++)
        if (run->program.tasks[i].kind == TRIB_TASK_REDUCE)
            return &run->program.tasks[i];
    fail_msg("no REDUCE");
    return NULL;
}

/* All frames of the others have arrived at this rank, which has not polled yet. */
static struct rig open_at(int rank)
{
    const struct payload_case c = {
        .algorithm = "flat", .ranks = RANKS, .count = 500, .desc.zero_copy = false};
    struct rig r = rig_open(&c);

    trib_short_dispose(&rig_side(&r, rank)->run);
    rig_fill(&r, 0);
    for (int i = 0; i < RANKS; i++)
        rig_start_one(&r, i);
    for (int i = 0; i < 4 * RANKS; i++)
        if (i % RANKS != rank)
            (void)trib_engine_progress(&rig_side(&r, i % RANKS)->engine);
    (void)trib_engine_events(&rig_side(&r, rank)->engine);
    return r;
}

/* Return the number of contributions and store their ranks in order; -1 stands for the
 * partial sum. */
static int walk(const struct rig *r, int rank, int *order)
{
    struct engine_side *s = rig_side(r, rank);
    struct trib_contrib_walk w =
        trib_contrib_begin(&s->engine, &s->run, reduce_of(&s->run));
    struct trib_contrib_item item;
    int n = 0;

    while (trib_contrib_next(&w, &item)) {
        order[n] = item.by == TRIB_BY_INPUT ? rank : -1;
        if (item.by == TRIB_BY_PEER) {
            const float *x = (const float *)(const void *)trib_contrib_received(
                &s->engine, &item);
            order[n] = item.neighbor->peer;
            assert_non_null(item.entry);
            assert_memory_equal(x, rig_input(r, order[n]), 500 * sizeof(*x));
        }
        n++;
    }
    return n;
}

TEST(test_order_of_ranks)
{
    for (int rank = 0; rank < RANKS; rank++) {
        struct rig r = open_at(rank);
        struct trib_task *t = reduce_of(&rig_side(&r, rank)->run);
        int order[RANKS + 1];
        assert_int_equal(walk(&r, rank, order), RANKS);
        for (int i = 0; i < RANKS; i++)
            assert_int_equal(order[i], i);

        t->flags &= (uint16_t)~TRIB_TASK_INPUT; /* a partial sum comes first */
        assert_int_equal(walk(&r, rank, order), RANKS);
        assert_int_equal(order[0], -1);
        for (int i = 1, peer = 0; i < RANKS; i++, peer++) {
            peer += peer == rank;
            assert_int_equal(order[i], peer);
        }
        t->flags |= TRIB_TASK_EMPTY; /* an aggregator has no contribution */
        assert_int_equal(walk(&r, rank, order), RANKS - 1);
        assert_int_equal(order[0], rank == 0);
        rig_close(&r);
    }
}

TEST(test_quorum)
{
    struct rig r = open_at(1);
    struct trib_run *run = &rig_side(&r, 1)->run;
    uint8_t counted = 1 << 3 | 1 << 1;
    struct trib_quorum q = {.counted = &counted, .mask_bytes = 1};
    int order[RANKS];

    run->desc.quorum.need = 2;
    run->payload->quorum = &q;
    assert_int_equal(walk(&r, 1, order), 2);
    assert_int_equal(order[0], 1);
    assert_int_equal(order[1], 3);
    assert_int_equal(trib_quorum_contributors(&rig_side(&r, 1)->engine, run), 2);
    run->payload->quorum = NULL;
    run->desc.quorum.need = 0;
    rig_close(&r);
}

TEST(test_as_f32)
{
    struct trib_engine e = {.kernels = trib_kernels_get(NULL)};
    struct rig r = {.kernels = e.kernels};
    _Alignas(8) uint8_t bytes[8 * 8 + 1];
    float stage[8];

    for (int dtype = 0; dtype < TRIB_DTYPE_COUNT; dtype++) {
        if (!rig_holds((trib_dtype_t)dtype))
            continue;
        for (int odd = 0; odd < 2; odd++) {
            r.c.desc.op.dtype = (trib_dtype_t)dtype;
            const struct trib_run run = {.desc.op.dtype = (trib_dtype_t)dtype};
            for (size_t i = 0; i < 8; i++)
                rig_put(&r, bytes + odd, i, (float)i - 3.0f);
            const float *x = trib_as_f32(&e, &run, bytes + odd, 8, stage);
            assert_int_equal(x == stage, dtype != TRIB_F32 || odd);
            for (int i = 0; i < 8; i++)
                assert_int_equal((int)x[i], i - 3);
        }
    }
}
