/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encode one chunk: the residual holds the encoding error in the unit of contributions,
 * and the error depends only on the position of the elements.
 */
#include "tests/pipeline/payload/payload_rig.h"

#include "pipeline/payload/encode.h"

enum { COUNT = 4000, ROOM = 16384 };

static struct payload_case case_of(const char *codec, const char *feedback)
{
    return (struct payload_case){.codec = codec,
                                 .feedback = feedback,
                                 .algorithm = "direct",
                                 .ranks = 2,
                                 .count = COUNT};
}

static float near(float a, float b)
{
    return a > b ? a - b : b - a;
}

/* Check that x plus the old residual equals the encoded value plus the new residual. A
 * sum that was divided by `unit` counts `unit` times. */
static void conserve(const char *codec, float unit)
{
    const struct payload_case c = case_of(codec, "ef14");
    struct rig r = rig_open(&c);
    struct engine_side *s = rig_side(&r, 1);
    const struct trib_chunk chunk = trib_run_chunk(&s->run, 1, 0);
    static float x[RIG_PIECE], said[RIG_PIECE], was[RIG_PIECE];
    static uint8_t word[ROOM];
    float *residual = s->run.payload->feedback.residual + chunk.first;

    assert_int_equal(chunk.n, RIG_PIECE);
    for (size_t i = 0; i < chunk.n; i++) {
        x[i] = rig_given(0, 0, i) * 1.01f;
        was[i] = residual[i] = rig_given(1, 1, i) * 0.25f;
    }
    s->run.now.step = 1;
    const uint32_t len = trib_encode(
        &s->engine, &s->run, &chunk,
        (struct trib_encode_source){.x = x, .feedback = true, .unit = unit}, word);
    assert_in_range(len, 1, trib_codec_bound(r.codec, chunk.n));
    assert_status(trib_codec_decode(r.codec, word, len, said, chunk.n), TRIB_OK);
    for (size_t i = 0; i < chunk.n; i++)
        assert_true(near(x[i] * unit + was[i], said[i] * unit + residual[i]) < 1e-4f);
    assert_true(s->run.payload->feedback.residual[chunk.first - 1] <= 0 &&
                chunk.first > 0);
    rig_close(&r);
}

TEST(test_conserves)
{
    for (float unit = 1; unit <= 8; unit *= 2) {
        conserve("efsign", unit);
        conserve("qsgd:bits=4,ef=1", unit);
        conserve("topk:ratio=0.1", unit);
        conserve("f16:ef=1", unit);
    }
}

/* Neither exact encoding nor encoding without feedback changes the residual. */
TEST(test_leaves_the_residual)
{
    const struct payload_case c = case_of("topk:ratio=0.1", "ef14");
    struct rig r = rig_open(&c);
    struct engine_side *s = rig_side(&r, 0);
    const struct trib_chunk chunk = trib_run_chunk(&s->run, 0, 0);
    static float x[RIG_PIECE], said[RIG_PIECE];
    static uint8_t word[ROOM];

    for (size_t i = 0; i < chunk.n; i++) {
        x[i] = rig_given(0, 0, i);
        s->run.payload->feedback.residual[i] = 0.5f;
    }
    for (int exact = 0; exact < 2; exact++) {
        const struct trib_encode_source source = {
            .x = x,
            .mode = exact ? TRIB_ENCODE_EXACT : TRIB_ENCODE_CONTRIBUTION,
            .feedback = exact,
            .unit = 1};
        const uint32_t len = trib_encode(&s->engine, &s->run, &chunk, source, word);
        assert_status(trib_codec_decode(r.codec, word, len, said, chunk.n), TRIB_OK);
        if (exact)
            assert_memory_equal(said, x, chunk.n * sizeof(*x));
        for (size_t i = 0; i < chunk.n; i++)
            assert_true(s->run.payload->feedback.residual[i] >= 0.5f &&
                        s->run.payload->feedback.residual[i] <= 0.5f);
    }
    rig_close(&r);
}

/* A worker encodes a chunk to the same bytes as the engine; another chunk, step or rank
 * has different bytes. */
TEST(test_key)
{
    const struct payload_case c = case_of("qsgd:bits=2,ef=0", NULL);
    struct rig r = rig_open(&c);
    static uint8_t a[ROOM], b[ROOM];

    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < COUNT; k++)
            rig_put(&r, rig_input(&r, i), k, rig_given(0, 0, k % RIG_PIECE) / 7);
    for (int other = 0; other < 4; other++) {
        struct engine_side *s = rig_side(&r, 0), *o = rig_side(&r, other == 3);
        const struct trib_chunk chunk = trib_run_chunk(&s->run, 0, 0);
        const struct trib_chunk next = trib_run_chunk(&s->run, 0, other == 1);
        static float stage[RIG_PIECE];
        struct trib_encode_workspace bench = {.stage = stage,
                                              .scratch = o->run.payload->codec_scratch};
        trib_run_bind(&s->engine, &s->run, NULL, s->x);
        trib_run_bind(&o->engine, &o->run, NULL, o->x);
        s->run.now.step = 1;
        const uint32_t len = trib_encode(
            &s->engine, &s->run, &chunk,
            (struct trib_encode_source){.x = s->x, .feedback = true, .unit = 1}, a);
        o->run.now.step = other == 2 ? 2 : 1;
        const uint32_t same = trib_coded_encode_input(
            &o->engine, &o->run, &next, TRIB_INPUT_CONTRIBUTION, &bench, b);
        assert_int_equal(len, same);
        assert_int_equal(memcmp(a, b, len) == 0, other == 0);
    }
    assert_true(rig_side(&r, 0)->engine.stats.encode_ns > 0);
    rig_close(&r);
}
