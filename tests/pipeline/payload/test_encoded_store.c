/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stores of encoded chunks: the tasks for which the local contribution is encoded,
 * which chunks have a store, and when it may be refilled.
 */
#include "tests/pipeline/payload/payload_rig.h"

#include "pipeline/payload/encoded_store.h"

/* The first task of a kind with these flags on a rank, or NULL. */
static struct trib_task *find(struct trib_run *run, int kind, uint16_t flags)
{
    for (uint32_t i = 0; i < run->program.n_tasks; i++) {
        struct trib_task *t = &run->program.tasks[i];
        if (t->kind == kind && (t->flags & flags) == flags)
            return t;
    }
    return NULL;
}

TEST(test_roles)
{
    static const struct {
        const char *codec, *algorithm;
        trib_coll_t coll;
        int kind;
        uint16_t flags;
        enum trib_input_role role;
    } rows[] = {
        {"f16", "direct", TRIB_ALLREDUCE, TRIB_TASK_SEND, TRIB_TASK_INPUT,
         TRIB_INPUT_CONTRIBUTION},
        {"f16", "direct", TRIB_ALLREDUCE, TRIB_TASK_SEND, TRIB_TASK_FINAL,
         TRIB_INPUT_UNUSED},
        {"f16", "direct", TRIB_ALLREDUCE, TRIB_TASK_REDUCE, 0, TRIB_INPUT_UNUSED},
        {"f16", "flat", TRIB_ALLREDUCE, TRIB_TASK_REDUCE, TRIB_TASK_INPUT_SENT,
         TRIB_INPUT_CONTRIBUTION},
        {"topk", "direct", TRIB_ALLREDUCE, TRIB_TASK_REDUCE, 0,
         TRIB_INPUT_CONTRIBUTION},
        {"exact", "direct", TRIB_ALLREDUCE, TRIB_TASK_REDUCE, 0,
         TRIB_INPUT_CONTRIBUTION},
        {"f16", "direct", TRIB_ALLREDUCE, TRIB_TASK_COPY_IN, 0, TRIB_INPUT_UNUSED},
        {"f16", "flat", TRIB_BROADCAST, TRIB_TASK_COPY, 0, TRIB_INPUT_RESULT},
        {"f16", "flat", TRIB_BROADCAST, TRIB_TASK_SEND, TRIB_TASK_FINAL,
         TRIB_INPUT_RESULT},
    };

    for (size_t k = 0; k < RIG_COUNT(rows); k++) {
        const struct payload_case c = {.codec = rows[k].codec,
                                       .algorithm = rows[k].algorithm,
                                       .ranks = 2,
                                       .count = 1000,
                                       .desc = {.op.coll = rows[k].coll},
                                       .config = "chunk=64K"};
        struct rig r = rig_open(&c);
        struct trib_run *run = &rig_side(&r, 0)->run;
        const struct trib_task *t = find(run, rows[k].kind, rows[k].flags);
        assert_non_null(t);
        if (trib_coded_input_role(run, t) != rows[k].role)
            fail_msg("row %zu: role %d, not %d", k, trib_coded_input_role(run, t),
                     rows[k].role);
        rig_close(&r);
    }
}

/* A chunk that only one SEND needs is encoded directly into the send buffer. */
TEST(test_sent)
{
    static const struct {
        const char *codec, *algorithm;
        bool mine, other; /* chunk 0, which rank 0 finishes, and chunk 1 */
    } rows[] = {{"f16", "direct", true, false},
                {"exact", "direct", true, false},
                {"f16", "flat", true, true}};

    for (size_t k = 0; k < RIG_COUNT(rows); k++) {
        const struct payload_case c = {.codec = rows[k].codec,
                                       .algorithm = rows[k].algorithm,
                                       .ranks = 2,
                                       .count = 1000,
                                       .config = "chunk=64K"};
        struct rig r = rig_open(&c);
        struct trib_run *run = &rig_side(&r, 0)->run;
        assert_int_equal(trib_store_is_sent(run, 0), rows[k].mine);
        if (run->desc.n_chunks > 1)
            assert_int_equal(trib_store_is_sent(run, 1), rows[k].other);
        rig_close(&r);
    }
}

/* A store keeps its chunk until all readers are done with its round. */
TEST(test_when_free)
{
    const struct payload_case c = {.codec = "f16",
                                   .algorithm = "direct",
                                   .ranks = 3,
                                   .count = 8000,
                                   .desc.piece = 1000};
    struct rig r = rig_open(&c);
    struct trib_run *run = &rig_side(&r, 0)->run;
    struct trib_task *send = find(run, TRIB_TASK_SEND, TRIB_TASK_FINAL);

    assert_true(run->desc.rounds > 1);
    const uint32_t chunk = send->chunk;
    for (uint32_t i = 0; i < run->program.n_tasks; i++)
        run->program.tasks[i].done = 1;
    assert_true(trib_coded_store_free(run, chunk, 1));
    send->done = 0;
    assert_true(trib_coded_store_free(run, chunk, 0));
    assert_false(trib_coded_store_free(run, chunk, 1));
    assert_true(trib_coded_store_free(run, chunk + 1, 1));

    /* A task that waits for the chunk of round 0 is ready even if other tasks lag. */
    run->payload->stores[chunk].round = 1;
    assert_true(trib_coded_store_ready(run, send));
    send->done = 1;
    run->payload->stores[chunk].round = 1; /* round 1 may now be filled */
    assert_true(trib_coded_store_ready(run, send));
    for (uint32_t i = 0; i < run->program.n_tasks; i++) {
        struct trib_task *t = &run->program.tasks[i];
        if (t != send && t->kind == TRIB_TASK_SEND && t->chunk == chunk)
            t->done = 0;
    }
    assert_false(trib_coded_store_ready(run, send));
    rig_close(&r);
}
