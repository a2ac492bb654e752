/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Raw elements: every type, algorithm and protocol compared with a plain sum, and the
 * frames that are rejected.
 */
#include "tests/pipeline/payload/payload_rig.h"

static const char *const transports[] = {"loop", "shm"};
static const size_t counts[] = {1, 63, 1025, 5003};

/* Chunks read in place, written in place and through slots; more of them than a bit
 * mask of rounds has bits. */
TEST(test_types)
{
    for (int dtype = 0; dtype < TRIB_DTYPE_COUNT; dtype++) {
        if (!rig_holds((trib_dtype_t)dtype))
            continue;
        for (int k = 0; k < 16; k++) {
            const struct payload_case c = {
                .algorithm = k & 1 ? "ring" : "direct",
                .ranks = 3,
                .count = counts[k % 4],
                .out_of_place = k & 2,
                .transport = transports[k >> 3],
                .desc = {.op = {.dtype = (trib_dtype_t)dtype},
                         .piece = k & 4 ? 16 : 2000,
                         .zero_copy = true,
                         .place = k & 4}};
            rig_check(&c, 2, 0);
        }
    }
}

TEST(test_collectives)
{
    static const trib_coll_t colls[] = {TRIB_ALLREDUCE, TRIB_REDUCE,
                                        TRIB_REDUCE_SCATTER};
    static const char *const algorithms[] = {"flat", "direct", "tree", "ring"};

    for (int k = 0; k < 48; k++) {
        const struct trib_algo *algo = trib_algo_find(algorithms[k % 4]);
        const struct payload_case c = {
            .algorithm = algo->name,
            .ranks = 4,
            .count = 3001,
            .out_of_place = k & 16,
            .transport = transports[k & 1],
            .desc = {.op = {.coll = colls[k / 4 % 3],
                            .dtype = k < 24 ? TRIB_F32 : TRIB_F16},
                     .zero_copy = k % 5 != 0}};
        if (algo->colls & 1u << c.desc.op.coll)
            rig_check(&c, 1, 0);
    }
}

/* A frame whose length is not its chunk's, or that names memory which was not opened,
 * ends the operation. */
TEST(test_refuses)
{
    static const struct {
        uint8_t kind;
        uint32_t bytes;
    } wrong[] = {{TRIB_FRAME_DATA, 16},
                 {TRIB_FRAME_GET, 0},
                 {TRIB_FRAME_PUT_DONE, 0},
                 {TRIB_FRAME_SUM, 4}};
    const struct payload_case c = {.algorithm = "direct", .ranks = 2, .count = 2000};

    for (size_t k = 0; k < RIG_COUNT(wrong); k++) {
        struct rig r = rig_open(&c);
        struct trib_engine *e = &rig_side(&r, 1)->engine;
        struct trib_entry *entry = rig_first_frame(&r);
        entry->frame.kind = wrong[k].kind;
        entry->frame.bytes = wrong[k].bytes;
        (void)trib_engine_progress(e);
        assert_status((trib_status_t)e->failed, TRIB_ERR_PROTOCOL);
        engines_words(e->failure.text,
                      (const char *const[]){"rank 0 (host here", "contribution",
                                            "to rank 1 in allreduce", NULL});
        rig_close(&r);
    }
}

/* A sender withdraws an advertised buffer and overwrites it before the receiver reads
 * it: the new content must appear neither in a sum nor in a copy. */
TEST(test_withdrawn)
{
    static const trib_coll_t colls[] = {TRIB_REDUCE, TRIB_EXSCAN};

    for (size_t k = 0; k < RIG_COUNT(colls); k++) {
        const struct payload_case c = {
            .algorithm = "flat",
            .ranks = 2,
            .count = 2000,
            .out_of_place = true,
            .transport = "shm",
            .desc = {.op.coll = colls[k], .zero_copy = true}};
        const int to = colls[k] == TRIB_EXSCAN;
        struct rig r = rig_open(&c);
        struct engine_side *sender = rig_side(&r, !to), *receiver = rig_side(&r, to);
        rig_fill(&r, 0);
        rig_start_one(&r, 0);
        rig_start_one(&r, 1);
        (void)trib_engine_progress(&receiver->engine);
        for (int i = 0; i < 10; i++)
            (void)trib_engine_progress(&sender->engine);
        trib_link_withdraw(&sender->engine.links[to]);
        for (int i = 0; i < 10; i++)
            (void)trib_engine_progress(&receiver->engine);
        assert_int_equal(receiver->run.now.state, TRIB_RUN_DONE);
        assert_status(receiver->run.now.status, TRIB_ERR_PEER_LOST);
        assert_non_null(strstr(receiver->engine.failure.text, "has abandoned"));
        rig_close(&r);
    }
}
