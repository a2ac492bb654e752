/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <inttypes.h>

#include "pipeline/link/frame.h"

static const struct trib_frame_op sum_f32 = {
    TRIB_ALLREDUCE, TRIB_F32, TRIB_SUM, TRIB_FEED_WHOLE, TRIB_ROOT_NONE, 0};

static struct trib_frame frame_of(struct trib_frame_op op)
{
    return (struct trib_frame){
        .magic = TRIB_FRAME_MAGIC,
        .kind = TRIB_FRAME_DATA,
        .seq = 12,
        .count = 1000,
        .signature = trib_frame_signature(&op),
        .digest = 0xabcd1122,
    };
}

static void check_op(struct trib_frame_op op)
{
    struct trib_frame_op back = trib_frame_op(trib_frame_signature(&op));

    assert_int_equal(back.coll, op.coll);
    assert_int_equal(back.dtype, op.dtype);
    assert_int_equal(back.op, op.op);
    assert_int_equal(back.feed, op.feed);
    assert_int_equal(back.root, op.root);
    assert_int_equal(back.leaving, op.leaving);
}

TEST(test_signature_keeps_every_field)
{
    for (int coll = 0; coll < TRIB_COLL_COUNT; coll++)
        for (int dtype = 0; dtype < TRIB_DTYPE_COUNT; dtype++)
            for (int op = 0; op < TRIB_OP_COUNT; op++)
                for (int feed = 0; feed <= TRIB_FEED_BACKWARD; feed++)
                    for (int leaving = 0; leaving < 2; leaving++)
                        check_op((struct trib_frame_op){
                            (trib_coll_t)coll, (trib_dtype_t)dtype, (trib_op_t)op,
                            (trib_feed_t)feed, (uint32_t)(coll * 4001), leaving});
    for (uint32_t root = 0; root <= TRIB_ROOT_NONE; root += 255) {
        struct trib_frame_op op = sum_f32;
        op.root = root;
        check_op(op);
    }
}

/* Room for all values that the API can grow to. */
TEST(test_signature_has_room)
{
    assert_true(TRIB_COLL_COUNT <= 16);
    assert_true(TRIB_DTYPE_COUNT <= 16);
    assert_true(TRIB_OP_COUNT <= 16);
    assert_true(TRIB_FEED_BACKWARD < 4);
}

static void expect_mismatch(struct trib_frame theirs, const char *how)
{
    struct trib_frame mine = frame_of(sum_f32);
    char text[300], expected[300];

    assert_false(trib_frame_same(&mine, &theirs));
    assert_status(trib_frame_check(&mine, &theirs, 2, 5, text, sizeof(text)),
                  TRIB_ERR_MISMATCH);
    snprintf(expected, sizeof(expected),
             "ranks disagree on operation 12 (allreduce): rank 5 %s (rank 2)", how);
    assert_string_equal(text, expected);
}

TEST(test_says_who_differs_and_how)
{
    struct trib_frame_op op = sum_f32;
    struct trib_frame f = frame_of(op);

    f.count = (UINT64_MAX >> 16) - 1;
    expect_mismatch(f, "has count 281474976710654, this rank 1000");
    f.count++;
    expect_mismatch(f, "has one count per block, this rank one for all blocks");
    op.dtype = TRIB_BF16;
    expect_mismatch(frame_of(op), "has dtype bf16, this rank f32");
    op = sum_f32;
    op.op = TRIB_MAX;
    expect_mismatch(frame_of(op), "has op max, this rank sum");
    op = sum_f32;
    op.coll = TRIB_BARRIER;
    expect_mismatch(frame_of(op), "is in barrier, this rank in allreduce");
    op.leaving = 1;
    expect_mismatch(frame_of(op), "is in trib_free_comm, this rank in allreduce");
    op = sum_f32;
    op.coll = TRIB_REDUCE;
    op.root = 3;
    expect_mismatch(frame_of(op), "is in reduce, this rank in allreduce");
    op = sum_f32;
    op.feed = TRIB_FEED_FORWARD;
    expect_mismatch(frame_of(op), "feeds its input in a different order");
}

TEST(test_says_what_of_the_digest_differs)
{
    struct trib_frame f = frame_of(sum_f32);

    f.digest ^= 0x00100000;
    expect_mismatch(f, "has a different codec than this rank");
    f.digest ^= 0x80000100;
    expect_mismatch(f,
                    "has a different codec and a different algorithm than this rank");
    f.digest ^= 0x80104000;
    expect_mismatch(
        f, "has a different feedback and a different algorithm than this rank");
    f.digest ^= 0x00004000;
    expect_mismatch(f, "has a different algorithm than this rank");
    f.digest ^= 0x00000101;
    expect_mismatch(f, "has a different chunk size, quorum or counts than this rank");
    f.digest ^= 0x00000001;
    f.seq = 13;
    expect_mismatch(f, "is at operation 13, this rank at 12");
}

/* Frames of plans that keep state. */
TEST(test_says_which_start_of_which_plan)
{
    const struct trib_frame_op reduce = {
        .coll = TRIB_REDUCE, .dtype = TRIB_F32, .op = TRIB_SUM, .root = 7};
    struct trib_frame mine = frame_of(sum_f32), theirs = mine;
    char text[400];

    trib_frame_stamp(&mine, 65536 + 9, 0xabc12345);
    assert_int_equal(trib_frame_count(&mine), 1000);
    assert_int_equal(trib_frame_step(&mine), 9);
    trib_frame_stamp(&theirs, 8, 0xabc12345);
    assert_status(trib_frame_check(&mine, &theirs, 0, 1, text, sizeof(text)),
                  TRIB_ERR_MISMATCH);
    assert_non_null(strstr(text, "is at step 8 of the plan, this rank at step 9"));
    trib_frame_stamp(&theirs, 9, 0x12344);
    assert_status(trib_frame_check(&mine, &theirs, 0, 1, text, sizeof(text)),
                  TRIB_ERR_MISMATCH);
    assert_non_null(strstr(text, "has started a different plan"));
    theirs.digest ^= 0x00100000; /* a plan with a codec, and one without */
    assert_status(trib_frame_check(&mine, &theirs, 0, 1, text, sizeof(text)),
                  TRIB_ERR_MISMATCH);
    assert_non_null(strstr(text, "a different codec"));
    theirs = frame_of(sum_f32);
    trib_frame_take_stamp(&theirs, &mine);
    assert_true(trib_frame_same(&mine, &theirs));

    mine = theirs = frame_of(reduce); /* whose root stays */
    trib_frame_stamp(&mine, 5, 0x12345);
    assert_int_equal(mine.signature, theirs.signature);
    trib_frame_take_stamp(&theirs, &mine);
    assert_true(trib_frame_same(&mine, &theirs));
}

TEST(test_same)
{
    struct trib_frame mine = frame_of(sum_f32), theirs = mine;
    char text[100] = "untouched";

    /* Fields that belong to one frame alone do not have to agree. */
    theirs.kind = TRIB_FRAME_GET;
    theirs.source = TRIB_SOURCE_RECV;
    trib_frame_set_divided(&theirs, 127);
    assert_int_equal(trib_frame_source(&theirs), TRIB_SOURCE_RECV);
    assert_int_equal(trib_frame_divided(&theirs), 127);
    theirs.chunk = 99;
    theirs.bytes = 77;
    assert_true(trib_frame_same(&mine, &theirs));
    assert_status(trib_frame_check(&mine, &theirs, 0, 1, text, sizeof(text)), TRIB_OK);
    assert_string_equal(text, "untouched");
}

static void expect_protocol(struct trib_frame theirs, const char *word)
{
    struct trib_frame mine = frame_of(sum_f32);
    char text[300];

    assert_status(trib_frame_check(&mine, &theirs, 2, 5, text, sizeof(text)),
                  TRIB_ERR_PROTOCOL);
    assert_non_null(strstr(text, "rank 2"));
    assert_non_null(strstr(text, "rank 5"));
    assert_non_null(strstr(text, word));
}

TEST(test_refuses_what_is_no_frame)
{
    struct trib_frame f = frame_of(sum_f32);

    f.magic = 0x0154;
    expect_protocol(f, "0x0154");
    f = frame_of(sum_f32);
    f.kind = 0;
    expect_protocol(f, "kind 0");
    f.kind = TRIB_FRAME_KIND_END;
    expect_protocol(f, "kind 6");
    memset(&f, 0, sizeof(f));
    expect_protocol(f, "0x0000");
    memset(&f, 0xff, sizeof(f));
    expect_protocol(f, "0xffff");
}

/* Any bytes yield a status and an error message that is truncated to its buffer. */
TEST(test_any_bytes)
{
    struct trib_frame mine = frame_of(sum_f32), f;
    uint64_t random = 1;
    char text[64];

    for (int i = 0; i < 20000; i++) {
        uint8_t *b = (uint8_t *)&f;
        for (size_t k = 0; k < sizeof(f); k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            b[k] = (uint8_t)(random >> 56);
        }
        if (i % 2) {
            f.magic = TRIB_FRAME_MAGIC;
            f.kind = TRIB_FRAME_DATA;
        }
        memset(text, 'x', sizeof(text));
        trib_status_t st = trib_frame_check(&mine, &f, 0, 1, text, 40);
        assert_true(st == TRIB_ERR_MISMATCH || st == TRIB_ERR_PROTOCOL);
        assert_non_null(memchr(text, 0, 40));
        assert_int_equal(text[40], 'x');
    }
}
