/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a plan's feedback: the memory that each rule allocates, and its handling
 * of contributions and sums that are not finite.
 */
#include "tests/pipeline/payload/payload_rig.h"

#include <math.h>

#include "pipeline/payload/error_feedback.h"

enum { COUNT = 3000 };

static struct rig open_rule(const char *codec, const char *feedback, trib_dtype_t dtype)
{
    const struct payload_case c = {.codec = codec,
                                   .feedback = feedback,
                                   .algorithm = "direct",
                                   .ranks = 2,
                                   .count = COUNT,
                                   .desc.op.dtype = dtype};
    return rig_open(&c);
}

TEST(test_state)
{
    static const struct {
        const char *codec, *feedback;
        trib_dtype_t dtype;
        unsigned states;
        bool residual, cleared, sums, partial, sent;
    } rows[] = {
        {"topk", NULL, TRIB_F32, 0, true, false, false, false, true},
        {"topk:ef=0", NULL, TRIB_F32, 0, false, false, false, false, true},
        {"topk", "none", TRIB_F32, 0, false, false, false, false, true},
        {"topk", "ef14:momentum=0.9", TRIB_F32, 1, true, true, false, false, true},
        {"f16", "ef14:momentum=0.9", TRIB_F32, 1, true, false, false, false, false},
        {"topk", "ef21", TRIB_F32, 2, false, false, true, false, true},
        {"topk", "ef21:momentum=0.5", TRIB_F16, 3, false, false, true, true, true},
    };

    for (size_t k = 0; k < RIG_COUNT(rows); k++) {
        struct rig r = open_rule(rows[k].codec, rows[k].feedback, rows[k].dtype);
        struct trib_run *run = &rig_side(&r, 0)->run;
        const struct trib_feedback *f = &run->payload->feedback;
        unsigned states = 0;
        for (int i = 0; i < TRIB_FEEDBACK_STATES; i++)
            states += f->state[i] != NULL;
        assert_int_equal(run->payload->feedback.residual != NULL, rows[k].residual);
        assert_int_equal(trib_feedback_feeds_back(run), rows[k].residual);
        assert_int_equal(states, rows[k].states);
        assert_int_equal(trib_feedback_gives_result(run), rows[k].sums);
        assert_int_equal(f->cleared != NULL, rows[k].cleared);
        assert_int_equal(f->partial != NULL, rows[k].partial);
        assert_int_equal(f->sent != NULL, rows[k].sent);
        assert_true(trib_feedback_bytes(run) >= states * COUNT * sizeof(float));
        rig_close(&r);
    }
}

/* The codec gets the contribution, scaled if it is clipped; a rule that keeps a state
 * changes the elements of the chunk alone. */
TEST(test_apply)
{
    static const char *const rules[] = {"none", "ef14:clip=8", "ef21"};

    for (int k = 0; k < 3; k++) {
        struct rig r = open_rule("topk:ratio=0.5", rules[k], TRIB_F32);
        struct engine_side *s = rig_side(&r, 1);
        const struct trib_chunk chunk = trib_vector_chunk(&s->run, 0, 1);
        static float stage[COUNT];
        double squares = 0;
        trib_run_bind(&s->engine, &s->run, NULL, s->x);
        rig_fill(&r, 0);
        for (size_t i = 0; i < COUNT; i++)
            squares += (double)s->x[i] * (double)s->x[i];
        for (size_t i = 0; k == 2 && i < COUNT; i++)
            s->run.payload->feedback.state[1][i] = (float)(i % 3); /* h of this rank */
        s->run.now.step = 1;
        trib_feedback_begin(&s->engine, &s->run);
        const double scale = k == 1 ? 8 / sqrt(2) / sqrt(squares) : 1;
        const float *x = s->x + chunk.first;
        const float *got =
            trib_feedback_apply(&s->engine, &s->run, &chunk, x, stage);
        assert_int_equal(got == x, k == 0);
        for (size_t i = 0; i < chunk.n; i++) {
            const double h = k == 2 ? (double)((chunk.first + i) % 3) : 0;
            assert_true(fabs((double)got[i] - ((double)x[i] * scale - h)) < 1e-5);
        }
        rig_close(&r);
    }
}

/* The norm of values whose square overflows float32, and of values that are not
 * finite. */
TEST(test_clip)
{
    static const float values[] = {1e30f, 1e-30f, INFINITY, NAN};
    struct rig r = open_rule("topk", "ef14:clip=1", TRIB_F32);
    struct engine_side *s = rig_side(&r, 0);

    trib_run_bind(&s->engine, &s->run, NULL, s->x);
    for (int k = 0; k < 4; k++) {
        const double norm = (double)values[k] * sqrt(COUNT);
        for (size_t i = 0; i < COUNT; i++)
            s->x[i] = values[k];
        trib_feedback_clip(&s->engine, &s->run);
        const double want = k == 0 ? 1 / sqrt(2) / norm : 1;
        assert_true(fabs((double)s->run.payload->feedback.scale - want) <= want * 1e-4);
    }
    rig_close(&r);
}

/* Each start discards the chunks sent last; the ratio warms up. */
TEST(test_begin)
{
    struct rig r = open_rule("topk:ratio=0.01", "ef14:warmup=4,stages=2", TRIB_F32);
    struct engine_side *s = rig_side(&r, 0);
    double before = 1;

    trib_run_bind(&s->engine, &s->run, NULL, s->x);
    s->run.desc.warm_up.codec = r.codec;
    s->run.desc.warm_up.ratio = 0.01;
    for (uint32_t step = 1; step <= 8; step++) {
        memset(s->run.payload->feedback.sent, 0xff, COUNT / 8 + 1);
        s->run.now.step = step;
        trib_feedback_begin(&s->engine, &s->run);
        for (size_t i = 0; i < COUNT / 8 + 1; i++)
            assert_int_equal(s->run.payload->feedback.sent[i], 0);
        assert_true(trib_codec_ratio(r.codec) <= before);
        before = trib_codec_ratio(r.codec);
    }
    assert_true(fabs(before - 0.01) < 1e-6);
    rig_close(&r);
}

/* EF21: a sum that is not finite is handed out once, and begins again at 0. */
TEST(test_begins_anew)
{
    struct rig r = open_rule("topk:ratio=1", "ef21", TRIB_F32);
    struct engine_side *s = rig_side(&r, 0);
    struct trib_feedback *f = &s->run.payload->feedback;
    const struct trib_chunk chunk = trib_vector_chunk(&s->run, 0, 0);

    trib_run_bind(&s->engine, &s->run, NULL, s->x);
    float *own = f->state[1], *sum = f->state[2];
    for (size_t i = 0; i < chunk.n; i++) {
        own[i] = 1;
        sum[i] = 2;
        s->run.payload->acc[i] = i == 5 ? INFINITY : 3;
    }
    assert_status(trib_feedback_result(&s->engine, &s->run, &chunk, NULL, 0), TRIB_OK);
    assert_true(isinf(s->x[5]));
    for (size_t i = 0; i < chunk.n; i++) {
        assert_true(i == 5 || (s->x[i] >= 5 && s->x[i] <= 5));
        assert_int_equal((int)own[i], i == 5 ? 0 : 1);
        assert_int_equal((int)sum[i], i == 5 ? 0 : 5);
    }
    uint8_t nonsense[3] = {0xff, 0xff, 0xff};
    assert_status(trib_feedback_result(&s->engine, &s->run, &chunk, nonsense, 3),
                  TRIB_ERR_CODEC);
    rig_close(&r);
}
