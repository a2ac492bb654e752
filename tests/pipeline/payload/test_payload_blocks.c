/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listed blocks: the elements that a round moves, their position, and the valid frames
 * with a count other than the operation's.
 */
#include "tests/harness/tribtest.h"

#include "pipeline/payload/chunk_memory.h"
#include "pipeline/payload/payload_blocks.h"
#include "pipeline/payload/payload_state.h"

enum { ROUNDS = 4, PIECE = 10 };

/* Block 0: 35 in, 12 out; block 1: none in, 7 in transit to another rank. */
static struct trib_block listed[2] = {
    {.n_in = 35, .n_out = 12, .in = 100, .out = 200, .late_out = 2},
    {.n_out = 7, .out = TRIB_NO_PLACE, .held = 5, .late_in = 3, .late_out = 3},
};
static struct trib_blocks blocks = {
    .at = listed, .local = true, .two_lengths = true, .held = 12};

static void set_up(struct trib_run *run, struct trib_payload_state *payload)
{
    run->desc = (struct trib_run_desc){.element = 1,
                                       .piece = PIECE,
                                       .n_chunks = 2,
                                       .rounds = ROUNDS,
                                       .cut = TRIB_CUT_LISTED,
                                       .blocks = &blocks};
    run->payload = payload;
    run->now.frame = (struct trib_frame){
        .magic = TRIB_FRAME_MAGIC, .seq = 3, .count = TRIB_FRAME_COUNT_LISTED};
}

static void check_chunk(const struct trib_run *run, uint32_t round, uint32_t chunk,
                        bool gives, struct trib_chunk want)
{
    const struct trib_chunk c = trib_block_chunk(run, round, chunk, gives);

    assert_int_equal(c.index, want.index);
    assert_int_equal(c.first, want.first);
    assert_int_equal(c.n, want.n);
}

TEST(test_chunks)
{
    static struct trib_run run;
    struct trib_payload_state payload = {.acc = NULL};

    set_up(&run, &payload);
    check_chunk(&run, 0, 0, true, (struct trib_chunk){0, 100, 10});
    check_chunk(&run, 3, 0, true, (struct trib_chunk){6, 130, 5});
    check_chunk(&run, 2, 0, false, (struct trib_chunk){0, 100, 10});
    check_chunk(&run, 3, 0, false, (struct trib_chunk){2, 110, 2});
    check_chunk(&run, 3, 1, true, (struct trib_chunk){1, 0, 0});
    check_chunk(&run, 3, 1, false, (struct trib_chunk){1, 0, 7});
    assert_int_equal(trib_vector_chunk(&run, 3, 1).n, 7);
}

TEST(test_places)
{
    static struct trib_run run;
    uint8_t held[12], recv[300];
    struct trib_payload_state payload = {.scratch_acc = held};

    set_up(&run, &payload);
    run.now.recv = recv;
    struct trib_chunk c = trib_block_chunk(&run, 3, 0, false);
    assert_ptr_equal(trib_run_acc(&run, &c), recv + 210);
    c = trib_block_chunk(&run, 3, 1, false);
    assert_ptr_equal(trib_run_acc(&run, &c), held + 5);
}

TEST(test_frames)
{
    static struct trib_run run;
    struct trib_payload_state payload = {.acc = NULL};

    set_up(&run, &payload);
    struct trib_frame f = run.now.frame;
    f.chunk = 2;
    f.count = 12;
    assert_true(trib_blocks_expect(&run, &f, 2));
    assert_true(run.now.frame.count == TRIB_FRAME_COUNT_LISTED);
    assert_false(trib_blocks_expect(&run, &f, 0));
    run.now.frame.count = TRIB_FRAME_COUNT_LISTED;
    f.count = 13;
    assert_false(trib_blocks_expect(&run, &f, 2));
    assert_int_equal(run.now.frame.count, 12); /* for the sentence */
    run.now.frame.count = TRIB_FRAME_COUNT_LISTED;
    f.count = 12;
    f.seq++;
    assert_false(trib_blocks_expect(&run, &f, 2));
    run.now.frame.count = TRIB_FRAME_COUNT_LISTED;
    f.seq--;
    blocks.local = false;
    assert_false(trib_blocks_expect(&run, &f, 2));
    blocks.local = true;
}
