/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decode an encoded chunk into the type and place of the vector. Nothing is written if
 * the bytes are invalid or the result is unused.
 */
#include "tests/pipeline/payload/payload_rig.h"

#include "pipeline/payload/decode.h"
#include "pipeline/payload/undo_log.h"

enum { COUNT = 2500, ROOM = 16384 };

static uint8_t word[ROOM];

/* Encode rank 0's input of a chunk. */
static size_t make_word(const struct rig *r, const struct trib_chunk *c)
{
    struct trib_run *run = &rig_side(r, 0)->run;
    static float x[RIG_PIECE];

    for (size_t i = 0; i < c->n; i++)
        x[i] = rig_given(0, 0, c->first + i);
    return trib_codec_encode(
        r->codec,
        &(struct trib_encode){.x = x,
                              .n = c->n,
                              .total = COUNT,
                              .key = {.index = c->first},
                              .scratch = run->payload->codec_scratch},
        word);
}

TEST(test_types)
{
    static const trib_dtype_t dtypes[] = {TRIB_F32, TRIB_F16, TRIB_BF16, TRIB_F32};

    for (int k = 0; k < 4; k++) {
        const struct payload_case c = {.codec = k & 1 ? "f16" : "topk:ratio=1",
                                       .algorithm = "direct",
                                       .ranks = 2,
                                       .count = COUNT,
                                       .desc.op.dtype = dtypes[k]};
        struct rig r = rig_open(&c);
        struct engine_side *s = rig_side(&r, 0);
        uint8_t *y = (uint8_t *)s->y + (k == 3); /* at an odd address, too */
        trib_run_bind(&s->engine, &s->run, s->x, y);
        for (uint32_t i = 0; i < 3; i++) {
            const struct trib_chunk chunk = trib_vector_chunk(&s->run, i / 2, i % 2);
            const size_t len = make_word(&r, &chunk);
            assert_ok(trib_coded_to_acc(&s->engine, &s->run, &chunk, word, len));
        }
        for (size_t i = 0; i < COUNT; i++)
            assert_int_equal((int)rig_get(&r, y, i), (int)rig_given(0, 0, i));
        rig_close(&r);
    }
}

TEST(test_bad_words)
{
    const struct payload_case c = {
        .codec = "f16", .algorithm = "direct", .ranks = 2, .count = COUNT};
    struct rig r = rig_open(&c);
    struct engine_side *s = rig_side(&r, 0);

    trib_run_bind(&s->engine, &s->run, NULL, s->x);
    const struct trib_chunk chunk = trib_vector_chunk(&s->run, 0, 1);
    const size_t len = make_word(&r, &chunk);
    s->x[chunk.first - 1] = s->x[chunk.first + chunk.n] = 77;
    for (size_t bad = 0; bad < 3; bad++)
        assert_status(trib_coded_to_acc(&s->engine, &s->run, &chunk, word,
                                       (size_t[]){0, len - 1, len + 2}[bad]),
                      TRIB_ERR_CODEC);
    assert_int_equal((int)s->x[chunk.first - 1], 77);
    assert_int_equal((int)s->x[chunk.first + chunk.n], 77);
    rig_close(&r);
}

/* An aggregator only forwards encoded chunks and does not decode them. */
TEST(test_aggregator)
{
    const struct payload_case c = {
        .codec = "topk:ratio=1", .ranks = 1, .aggregators = 1, .count = 500};
    struct rig r = rig_open(&c);
    struct engine_side *s = rig_side(&r, 1);
    const struct trib_chunk chunk = trib_vector_chunk(&s->run, 0, 0);

    assert_ok(trib_coded_to_acc(&s->engine, &s->run, &chunk, NULL, 12345));
    rig_close(&r);
}

/* An input that may have to be restored is saved before the result overwrites it. */
TEST(test_keeps_the_input)
{
    const struct payload_case c = {.codec = "topk:ratio=1",
                                   .ranks = 1,
                                   .aggregators = 1,
                                   .count = 500,
                                   .desc.may_undo = true};
    struct rig r = rig_open(&c);
    struct engine_side *s = rig_side(&r, 0);
    const struct trib_chunk chunk = trib_vector_chunk(&s->run, 0, 0);

    trib_run_bind(&s->engine, &s->run, NULL, s->x);
    s->run.now.step = 1;
    for (size_t i = 0; i < 500; i++)
        s->x[i] = 3;
    const size_t len = make_word(&r, &chunk);
    assert_ok(trib_coded_to_acc(&s->engine, &s->run, &chunk, word, len));
    assert_int_equal((int)s->x[1], (int)rig_given(0, 0, 1));
    trib_undo_input(&s->run, &chunk);
    assert_int_equal((int)s->x[1], 3);
    rig_close(&r);
}
