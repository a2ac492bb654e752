/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The payload state of a run: the description alone determines its memory, and
 * disposing of the run frees it.
 */
#include "tests/pipeline/engine/engines.h"

#include "pipeline/payload/payload.h"
#include "pipeline/payload/payload_state.h"

enum { N = 64 };

TEST(test_raw)
{
    const struct trib_run_desc desc = {.op.root = TRIB_ROOT_NONE};
    struct engines *t = engines_open(2, N, "loop", "");

    engines_prepare(t, trib_algo_find("direct"), N, &desc);
    const struct trib_run *run = &t->side[0].run;
    assert_ptr_equal(run->payload_ops[0], &trib_payload_raw);
    assert_true(trib_payload_is_plain(run));
    assert_non_null(run->payload->sources);
    assert_null(run->payload->stores);
    assert_null(run->payload->scratch_acc);
    assert_null(trib_feedback_of(run)->residual);
    engines_close(t);
}

/* The rank that is not the root has no place for the sum that it makes. */
TEST(test_scratch)
{
    const struct trib_run_desc desc = {.op = {.coll = TRIB_REDUCE, .root = 0}};
    struct engines *t = engines_open(4, N, "loop", "");
    int with = 0;

    engines_prepare(t, trib_algo_find("tree"), N, &desc);
    assert_false(t->side[0].run.no_result);
    assert_null(t->side[0].run.payload->scratch_acc);
    for (int i = 1; i < t->n; i++) {
        assert_true(t->side[i].run.no_result);
        with += t->side[i].run.payload->scratch_acc != NULL;
    }
    assert_true(with > 0);
    engines_close(t);
}

TEST(test_coded)
{
    struct engines *t = engines_open(2, N, "loop", "");
    struct trib_codec *codec;

    assert_status(trib_codec_create("f16", NULL, NULL, &codec), TRIB_OK);
    const struct trib_run_desc desc = {.op.root = TRIB_ROOT_NONE, .codec = codec};
    engines_prepare(t, trib_algo_find("direct"), N, &desc);
    struct trib_run *run = &t->side[1].run;
    assert_ptr_equal(run->payload_ops[0], &trib_payload_coded);
    assert_false(trib_payload_is_plain(run));
    for (uint32_t k = 0; k < run->desc.n_chunks; k++)
        assert_non_null(run->payload->stores[k].bytes);
    trib_payload_dispose(run);
    assert_null(run->payload);
    trib_payload_dispose(run);
    engines_close(t);
    trib_codec_destroy(codec);
}
