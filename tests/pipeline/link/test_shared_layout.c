/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sizes and offsets of structs that two processes share or that each chunk touches. A
 * change here changes the wire format: raise TRIB_FRAME_MAGIC's version with it.
 */
#include "tests/harness/tribtest.h"

#include "pipeline/engine/engine.h"

#define assert_offset(type, field, value) \
    assert_int_equal(offsetof(struct type, field), value)

TEST(test_frame)
{
    assert_int_equal(TRIB_FRAME_MAGIC, 0x0254);
    assert_int_equal(sizeof(struct trib_frame), 32);
    assert_offset(trib_frame, magic, 0);
    assert_offset(trib_frame, kind, 2);
    assert_offset(trib_frame, source, 3);
    assert_offset(trib_frame, seq, 4);
    assert_offset(trib_frame, chunk, 8);
    assert_offset(trib_frame, bytes, 12);
    assert_offset(trib_frame, count, 16);
    assert_offset(trib_frame, signature, 24);
    assert_offset(trib_frame, digest, 28);
    assert_int_equal(TRIB_FRAME_DATA, 1);
    assert_int_equal(TRIB_FRAME_ADVERT, 2);
    assert_int_equal(TRIB_FRAME_GET, 3);
    assert_int_equal(TRIB_FRAME_PUT_DONE, 4);
    assert_int_equal(TRIB_FRAME_SUM, 5);
}

TEST(test_cell)
{
    assert_int_equal(sizeof(struct trib_entry), 64);
    assert_offset(trib_entry, frame, 0);
    assert_offset(trib_entry, payload, 32);
    assert_offset(trib_entry, position, 60);
    assert_int_equal(TRIB_ENTRY_PAYLOAD, 24);
}

TEST(test_credits_and_notice)
{
    assert_int_equal(TRIB_LANES, 2);
    assert_int_equal(sizeof(struct trib_credits), 64);
    assert_offset(trib_credits, released, 0);
    assert_int_equal(sizeof(struct trib_oob_notice), 256);
    assert_offset(trib_oob_notice, version, 0);
    assert_offset(trib_oob_notice, kind, 4);
    assert_offset(trib_oob_notice, status, 8);
    assert_offset(trib_oob_notice, frame, 16);
    assert_offset(trib_oob_notice, text, 48);
    assert_offset(trib_oob_notice, version_end, 248);
}

TEST(test_open)
{
    assert_int_equal(sizeof(struct trib_blob), 244);
    assert_offset(trib_ref, origin, 0);
    assert_offset(trib_ref, lo, 8);
    assert_offset(trib_ref, hi, 16);
    assert_offset(trib_ref, blob.len, 24);
    assert_offset(trib_ref, blob.mappable, 26);
    assert_offset(trib_ref, blob.bytes, 28);
    assert_int_equal(TRIB_ADVERT_MAX, 544);
}

/* Structs that each chunk walks stay small. */
TEST(test_hot)
{
    assert_int_equal(sizeof(struct trib_step), 16);
    assert_true(sizeof(struct trib_task) <= 40);
    assert_true(sizeof(struct trib_contrib) <= 8);
    assert_true(sizeof(struct trib_send_lane) <= 64);
    assert_true(sizeof(struct trib_recv_lane) <= 32);
}
