/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A run: how its vector is cut into chunks, where its elements are in the caller's
 * buffers, and whose frame is due.
 */
#include "tests/pipeline/engine/engines.h"

#include "pipeline/engine/short_path.h"

/* Every element is in one chunk. Empty chunks are at the end of the vector or block, so
 * the address of their first element is inside it or one past its end. */
TEST(test_chunks_cover)
{
    for (size_t count = 0; count < 40; count++) {
        for (int blocked = 0; blocked < 2; blocked++) {
            struct trib_run run = {.desc = {.count = count,
                                            .total = blocked ? 3 * count : count,
                                            .cut = blocked ? TRIB_CUT_BLOCKED
                                                           : TRIB_CUT_INTERLEAVED,
                                            .piece = 4,
                                            .n_chunks = 3,
                                            .rounds = 10}};
            char seen[120] = {0};
            for (uint32_t i = 0; i < 30; i++) {
                struct trib_chunk c = trib_vector_chunk(&run, i / 3, i % 3);
                assert_true(c.n <= 4 && c.first + c.n <= run.desc.total);
                assert_true(!blocked || c.first + c.n <= (i % 3 + 1) * count);
                for (size_t k = 0; k < c.n; k++)
                    assert_int_equal(seen[c.first + k]++, 0);
            }
            for (size_t k = 0; k < run.desc.total; k++)
                assert_int_equal(seen[k], 1);
        }
    }
}

/* A vector that is fed from its end has the same chunks, and its rounds run
 * backwards. */
TEST(test_backward)
{
    struct trib_run forward = {
        .desc = {.total = 100, .piece = 4, .n_chunks = 3, .rounds = 9}};
    struct trib_run backward = forward;

    backward.desc.op.feed = TRIB_FEED_BACKWARD;
    for (uint32_t i = 0; i < 27; i++) {
        const struct trib_chunk c = trib_vector_chunk(&forward, i / 3, i % 3);
        const struct trib_chunk b = trib_vector_chunk(&backward, 8 - i / 3, i % 3);
        assert_int_equal(c.index, b.index);
        assert_int_equal(c.first, b.first);
        assert_int_equal(c.n, b.n);
    }
}

/* The buffers of rank 2 of 3, whose block begins at element 20. */
TEST(test_bind)
{
    static const struct {
        trib_coll_t coll;
        bool in_place;
        size_t input_first, recv_first, recv_at;
    } rows[] = {
        {TRIB_ALLREDUCE, false, 0, 0, 0},       {TRIB_ALLREDUCE, true, 0, 0, 0},
        {TRIB_ALLGATHER, false, 20, 0, 0},      {TRIB_ALLGATHER, true, 0, 0, 0},
        {TRIB_REDUCE_SCATTER, false, 0, 20, 0}, {TRIB_REDUCE_SCATTER, true, 0, 20, 20},
        {TRIB_BROADCAST, true, 0, 0, 0},
    };
    static float x[30], y[30];
    struct trib_engine e = {.rank = 2, .size = 3, .ranks = 3};

    for (size_t k = 0; k < sizeof(rows) / sizeof(*rows); k++) {
        const bool blocked =
            rows[k].coll == TRIB_ALLGATHER || rows[k].coll == TRIB_REDUCE_SCATTER;
        struct trib_run run = {
            .desc = {.op.coll = rows[k].coll,
                     .count = 10,
                     .element = sizeof(float),
                     .cut = blocked ? TRIB_CUT_BLOCKED : TRIB_CUT_INTERLEAVED}};
        for (int null = 0; null < 1 + rows[k].in_place; null++) {
            trib_run_bind(&e, &run, null ? NULL : rows[k].in_place ? y : x, y);
            assert_ptr_equal(run.now.input, rows[k].in_place ? y : x);
            assert_ptr_equal(run.now.recv, y + rows[k].recv_at);
            assert_int_equal(run.now.input_first, rows[k].input_first);
            assert_int_equal(run.now.recv_first, rows[k].recv_first);
        }
    }
}

TEST(test_most_contribs)
{
    static const struct {
        const char *algorithm;
        uint32_t most;
    } rows[] = {{"ring", 1}, {"direct", 3}, {"flat", 3}};

    for (int k = 0; k < 3; k++) {
        struct engines *t = engines_open(4, 100, "shm", NULL);
        const struct trib_run_desc desc = {.op.root = TRIB_ROOT_NONE};
        engines_prepare(t, trib_algo_find(rows[k].algorithm), 100, &desc);
        assert_int_equal(trib_run_most_contribs(&t->side[0].run), rows[k].most);
        engines_close(t);
    }
}

/* A frame is accepted only in its turn: after the ADVERT, after late frames that must
 * be dropped, and after earlier frames. */
TEST(test_due)
{
    struct engines *t = engines_two("shm", false);
    struct engine_side *s = &t->side[1];
    struct trib_run *run = &s->run;
    struct trib_link *l = &s->engine.links[0];

    trib_short_dispose(run); /* it would take the frame at once */
    engines_start_in_place(t, 0);
    (void)trib_engine_progress(&t->side[0].engine);
    engines_start_in_place(t, 1);
    const struct trib_contrib *m = &run->program.contribs[0];
    struct trib_entry *entry = trib_run_due(&s->engine, run, m, 0);
    assert_non_null(entry);
    assert_int_equal(entry->frame.seq, 1);
    assert_null(trib_run_due(&s->engine, run, m, 1)); /* of the next round */
    run->program.neighbors[0].advert_in = true;
    assert_null(trib_run_due(&s->engine, run, m, 0));
    run->program.neighbors[0].advert_in = false;
    l->recv[m->lane].skip = 1;
    assert_null(trib_run_due(&s->engine, run, m, 0));
    l->recv[m->lane].skip = 0;
    assert_ptr_equal(trib_run_due(&s->engine, run, m, 0), entry);
    engines_drive(t);
    engines_done(t);
    engines_close(t);
}
