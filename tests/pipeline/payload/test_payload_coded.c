/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encoded chunks: codecs that represent small integers exactly return the plain sum.
 * The others return the same bits on all ranks, for every algorithm and through
 * aggregators.
 */
#include "tests/pipeline/payload/payload_rig.h"

#include "pipeline/payload/payload.h"

/* Codecs that represent small integers exactly, dense and sparse. */
static const char *const whole[] = {"f16", "bf16", "topk:ratio=1", "blocks",
                                    "threshold:at=0"};
static const char *const losing[] = {"f8", "qsgd:bits=4", "efsign", "natural",
                                     "topk:ratio=0.1", "onebit"};
static const char *const algorithms[] = {"flat", "direct", "tree", "ring"};

TEST(test_whole)
{
    static const trib_dtype_t dtypes[] = {TRIB_F32, TRIB_F16, TRIB_BF16, TRIB_F32};

    for (size_t k = 0; k < 4 * RIG_COUNT(whole); k++) {
        const struct payload_case c = {
            .codec = whole[k % RIG_COUNT(whole)],
            .algorithm = algorithms[k % 4],
            .ranks = 3 + (int)(k % 2),
            .count = k % 3 ? 5003 : 61,
            .out_of_place = k & 2,
            .transport = k & 4 ? "loop" : "shm",
            .desc = {.op = {.dtype = dtypes[k % 4]}, .check = {.sum = k & 1}}};
        rig_check(&c, 2, 0);
    }
}

TEST(test_collectives)
{
    for (int k = 0; k < 4; k++) {
        const struct payload_case c = {
            .codec = whole[k],
            .algorithm = k & 1 ? "flat" : "direct",
            .ranks = 3,
            .count = 2501,
            .out_of_place = k & 2,
            .desc = {.op = {.coll = k & 2 ? TRIB_REDUCE : TRIB_REDUCE_SCATTER}}};
        if (trib_algo_find(c.algorithm)->colls & 1u << c.desc.op.coll)
            rig_check(&c, 2, 0);
    }
}

TEST(test_same_bits)
{
    for (size_t k = 0; k < 4 * RIG_COUNT(losing); k++) {
        const struct payload_case c = {
            .codec = losing[k % RIG_COUNT(losing)],
            .algorithm = algorithms[k % 4],
            .ranks = 4,
            .count = 3001,
            .desc = {.op = {.op = k & 1 ? TRIB_SUM : TRIB_MEAN}}};
        struct rig r = rig_open(&c);
        assert_ptr_equal(rig_side(&r, 0)->run.payload_ops[0], &trib_payload_coded);
        for (int step = 0; step < 3; step++) {
            rig_step(&r, step);
            rig_same(&r);
        }
        rig_close(&r);
    }
}

/* Aggregators sum the same encoded chunks. */
TEST(test_aggregators)
{
    for (size_t k = 0; k < 2 * RIG_COUNT(whole); k++) {
        const struct payload_case c = {.codec = whole[k % RIG_COUNT(whole)],
                                       .ranks = 3,
                                       .aggregators = 1 + (int)(k & 1),
                                       .count = 4001,
                                       .transport = k & 2 ? "loop" : "shm"};
        rig_check(&c, 2, 0);
    }
}

/* An encoded chunk from another codec, or one that refers to memory of a rank, ends the
 * operation. */
TEST(test_refuses)
{
    static const uint8_t kinds[] = {TRIB_FRAME_GET, TRIB_FRAME_SUM, TRIB_FRAME_DATA};
    const struct payload_case c = {
        .codec = "f16", .algorithm = "direct", .ranks = 2, .count = 2000};

    for (size_t k = 0; k < RIG_COUNT(kinds); k++) {
        struct rig r = rig_open(&c);
        struct trib_engine *e = &rig_side(&r, 1)->engine;
        struct trib_entry *entry = rig_first_frame(&r);
        entry->frame.kind = kinds[k];
        entry->frame.bytes -= 2;
        (void)trib_engine_progress(e);
        assert_status((trib_status_t)e->failed, TRIB_ERR_PROTOCOL);
        rig_close(&r);
    }
}
