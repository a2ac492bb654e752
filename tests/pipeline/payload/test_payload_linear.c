/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linear codecs: each rank encodes once, sums are merged encoded chunks, and the result
 * is the plain sum with the same bits on all ranks.
 */
#include "tests/pipeline/payload/payload_rig.h"

#include "pipeline/payload/payload.h"

static const char *const algorithms[] = {"flat", "direct", "tree", "ring"};

TEST(test_exact)
{
    for (int k = 0; k < 16; k++) {
        const struct payload_case c = {
            .codec = "exact",
            .algorithm = algorithms[k % 4],
            .ranks = 3 + k / 8,
            .count = k & 4 ? 5003 : 61,
            .out_of_place = k & 1,
            .transport = k & 2 ? "loop" : "shm",
            .config = "chunk=64K",
            .desc = {.op = {.op = k & 8 ? TRIB_MEAN : TRIB_SUM},
                     .check = {.sum = k & 1}}};
        rig_check(&c, 2, c.desc.op.op == TRIB_MEAN ? 1e-5f : 0);
    }
}

/* Reals in any order of sums and by any algorithm have the same bits. */
TEST(test_order_does_not_matter)
{
    enum { COUNT = 3001 };
    static float first[COUNT];

    for (int k = 0; k < 4; k++) {
        const struct payload_case c = {.codec = "exact",
                                       .algorithm = algorithms[k],
                                       .ranks = 4,
                                       .count = COUNT,
                                       .config = "chunk=64K"};
        struct rig r = rig_open(&c);
        assert_ptr_equal(rig_side(&r, 0)->run.payload_ops[0], &trib_payload_linear);
        for (int rank = 0; rank < 4; rank++)
            for (size_t i = 0; i < COUNT; i++)
                rig_put(&r, rig_input(&r, rank), i,
                        rig_given(rank, 0, i) * (rank & 1 ? 1e7f : 1.1f));
        for (int i = 0; i < 4; i++)
            rig_start_one(&r, i);
        rig_drive(&r);
        rig_same(&r);
        if (k == 0)
            memcpy(first, rig_result(&r, 0), sizeof(first));
        assert_memory_equal(first, rig_result(&r, 0), sizeof(first));
        rig_close(&r);
    }
}

/* A vote: the result is the sign of the sum of signs. */
TEST(test_vote)
{
    for (int k = 0; k < 4; k++) {
        const struct payload_case c = {
            .codec = "signsgd", .algorithm = algorithms[k], .ranks = 3, .count = 2050};
        struct rig r = rig_open(&c);
        rig_step(&r, 0);
        rig_same(&r);
        for (size_t i = 0; i < c.count; i++) {
            int votes = 0;
            for (int rank = 0; rank < 3; rank++) {
                const float x = rig_given(rank, 0, i);
                votes += (x > 0) - (x < 0);
            }
            const float got = rig_get(&r, rig_result(&r, 0), i);
            assert_true(votes == 0 || (votes > 0) == (got > 0));
        }
        rig_close(&r);
    }
}

/* An aggregator adds the encoded chunks of its ranks and forwards the sum. */
TEST(test_aggregators)
{
    for (int k = 0; k < 8; k++) {
        const struct payload_case c = {.codec = "exact",
                                       .ranks = 2 + k / 4,
                                       .aggregators = 1 + (k & 1),
                                       .count = 3001,
                                       .transport = k & 2 ? "loop" : "shm",
                                       .config = "chunk=64K",
                                       .desc = {.zero_copy = k & 1}};
        rig_check(&c, 2, 0);
    }
}

/* Chunks that an aggregator sums as floats are invalid for a linear codec. */
TEST(test_refuses_sums)
{
    const struct payload_case c = {.codec = "exact",
                                   .ranks = 2,
                                   .aggregators = 1,
                                   .count = 1000,
                                   .config = "chunk=64K"};
    struct rig r = rig_open(&c);
    struct trib_engine *e = &rig_side(&r, 1)->engine;

    rig_fill(&r, 0);
    for (int i = 0; i < 3; i++)
        rig_start_one(&r, i);
    (void)trib_engine_progress(e); /* its own contribution is sent */
    for (int i = 0; i < 20; i += 2)
        (void)trib_engine_progress(&rig_side(&r, i % 4)->engine);
    (void)trib_engine_events(e);
    struct trib_entry *entry =
        (struct trib_entry *)(void *)e->links[2].recv[TRIB_LANE_DOWN].slots;
    assert_true(atomic_load(&entry->position) > 0);
    entry->frame.kind = TRIB_FRAME_SUM;
    entry->frame.bytes = 4000;
    (void)trib_engine_progress(e);
    assert_status((trib_status_t)e->failed, TRIB_ERR_PROTOCOL);
    engines_words(e->failure.text,
                  (const char *const[]){"rank 2", "an invalid result", NULL});
    rig_close(&r);
}
