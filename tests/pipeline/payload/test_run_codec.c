/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs that add encoded chunks without decoding, and the maximum length of their
 * encoded chunks.
 */
#include "tests/harness/tribtest.h"

#include "pipeline/payload/run_codec.h"

static void check(const char *text, trib_coll_t coll, bool linear)
{
    struct trib_codec *codec;

    assert_status(trib_codec_create(text, NULL, NULL, &codec), TRIB_OK);
    const struct trib_run run = {
        .desc = {.op = {.coll = coll}, .codec = codec, .piece = 1000}};
    assert_int_equal(trib_coded_linear(&run), linear);
    assert_int_equal(trib_codec_flags(&run), trib_codec_info(codec)->flags);
    assert_int_equal(trib_coded_bound(&run), linear
                                                 ? trib_codec_sum_bound(codec, 1000)
                                                 : trib_codec_bound(codec, 1000));
    trib_codec_destroy(codec);
}

TEST(test_linear)
{
    const struct trib_run raw = {.desc = {.op = {.coll = TRIB_ALLREDUCE}}};

    assert_false(trib_coded_linear(&raw));
    check("f16", TRIB_ALLREDUCE, false);
    check("topk:ratio=0.1", TRIB_ALLREDUCE, false);
    check("int8", TRIB_ALLREDUCE, true);
    check("int8", TRIB_REDUCE_SCATTER, true);
    check("int8", TRIB_ALLGATHER, false);
}
