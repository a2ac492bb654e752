/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LGC with unusual input: gradients that are not finite, loaded states, and shares and
 * encoded chunks from untrusted peers.
 */
#include "tests/compress/models/lgc_rig.h"

/* ---- real numbers ---------------------------------------------------------------- */

/* No rank trains on values that are not finite; it trains on the values after them. */
TEST(test_not_finite_training)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f};
    for (int form = 0; form < 2; form++) {
        for (size_t b = 0; b < 4; b++) {
            struct ring r;
            ring_init(&r, text_of(form, "dense=0,train=9,sample=0"), PIECE, 2, false);
            uint8_t *before = weights_new(&r);
            draw(&r, 2);
            r.x[0][40] = 90; /* so it is chosen: rank 0 is the master of start 2 */
            r.x[1][40] = bad[b];
            r.step = 1;
            start(&r);
            const float scale = share_of(&r, 0)[0];
            assert_true(b == 3 ? scale > 5 && scale < 10 : isnan(scale));
            assert_true(finite_all(r.residual[1], PIECE));
            assert_true(b == 3 || !isfinite(r.result[0][40]));
            draw(&r, 3);
            start(&r);
            assert_true(r.exchanged && same_weights(&r, before));
            forget_residuals(&r);
            start(&r);
            start(&r);
            assert_false(same_weights(&r, before));
            assert_true(finite_all(r.result[0], PIECE));
            free(before);
            ring_free(&r);
        }
    }
}

/* In the last stage all positions that were sent decode to NaN, whichever rank is the
 * master and wherever the bad element is. The residual keeps nothing of it. */
TEST(test_not_finite_coded)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int form = 0; form < 2; form++) {
        for (int draw_of = 0; draw_of < 12; draw_of++) {
            const int rank = draw_of % 2, at = draw_of / 2 % 2 ? 77 : 401;
            struct ring r;
            ring_coded(&r, form, PIECE, 2, false, NULL);
            draw(&r, 2);
            r.x[1 - rank][77] = 50;
            r.x[rank][at] = bad[draw_of / 4];
            start(&r);
            uint8_t *chosen = chosen_new(&r);
            assert_true(isnan(share_of(&r, 0)[0]));
            for (size_t i = 0; i < PIECE; i++)
                assert_true(chosen[i] ? isnan(r.result[0][i]) : r.result[0][i] == 0.0f);
            assert_true(finite_all(r.residual[0], PIECE) &&
                        finite_all(r.residual[1], PIECE));
            draw(&r, 3);
            start(&r);
            assert_true(finite_all(r.result[0], PIECE));
            free(chosen);
            ring_free(&r);
        }
    }
}

/* It is seen even if the master has nothing to send. */
TEST(test_not_finite_beside_zeros)
{
    for (int form = 0; form < 2; form++) {
        for (int rank = 0; rank < 2; rank++) {
            struct ring r;
            ring_coded(&r, form, PIECE, 2, false, NULL);
            for (int k = 0; k < 2; k++)
                memset(r.x[k], 0, PIECE * sizeof(float));
            forget_residuals(&r);
            r.x[rank][9] = NAN;
            start(&r);
            size_t bad = 0;
            for (size_t i = 0; i < PIECE; i++)
                bad += isnan(r.result[0][i]);
            assert_int_equal(bad, 1);
            assert_true(finite_all(r.residual[0], PIECE) &&
                        finite_all(r.residual[1], PIECE));
            ring_free(&r);
        }
    }
}

/* Zeros, equal elements, one element, very small and very large ones: results are
 * finite, and zeros stay zeros. */
TEST(test_unusual)
{
    static const struct {
        float all, one;
    } kinds[] = {{0, 0}, {1, 1}, {0, 5}, {1e-40f, 2e-40f}, {3e37f, 3e37f}};
    for (int form = 0; form < 2; form++) {
        for (size_t kind = 0; kind < 5; kind++) {
            for (int coded = 0; coded < 2; coded++) {
                struct ring r;
                if (coded)
                    ring_coded(&r, form, PIECE, 2, true, NULL);
                else
                    ring_init(&r, text_of(form, "dense=0,train=2"), PIECE, 2, true);
                for (size_t i = 0; i < PIECE; i++)
                    r.x[0][i] = r.x[1][i] = i == 30 ? kinds[kind].one : kinds[kind].all;
                float *dense = dense_new(&r);
                start(&r);
                assert_true(finite_all(r.result[0], PIECE));
                const double error = error_at_chosen(&r, dense);
                assert_true(coded || error < 1e-12);
                assert_true(kind != 0 || square_sum(r.result[0], PIECE) == 0);
                free(dense);
                ring_free(&r);
            }
        }
    }
}

/* ---- decodes that are bad -------------------------------------------------------- */

/* The energy of all residuals. */
static double kept_of(const struct ring *r)
{
    double sum = 0;
    for (int k = 0; k < r->ranks; k++)
        sum += square_sum(r->residual[k], r->opts.total);
    return sum;
}

/* For any weights, a rank keeps no more energy than its input has. */
TEST(test_contraction)
{
    for (int form = 0; form < 2; form++) {
        for (int leaky = 0; leaky < 1 + form; leaky++) {
            struct ring r;
            ring_coded_by(&r, form,
                          leaky ? "dense=0,train=1,decoder=leaky" : "dense=0,train=1",
                          PIECE, 3, false, NULL);
            for (uint64_t n = 0; n < 4; n++) {
                draw(&r, n);
                forget_residuals(&r);
                start(&r);
                for (int k = 0; k < 3; k++)
                    assert_true(square_sum(r.residual[k], PIECE) <=
                                square_sum(r.x[k], PIECE) * (1 + 1e-6));
            }
            ring_free(&r);
        }
    }
}

/* The small form of a run that diverged: what an autoencoder that has hardly learned
 * leaves is fed back. Of all that was given at most as much is kept. */
TEST(test_feedback_is_stable)
{
    for (int form = 0; form < 2; form++) {
        struct ring r;
        double given = 0;
        ring_init(&r, text_of(form, "dense=0,train=2"), PIECE, 4, true);
        for (uint32_t step = 1; step <= 60; step++) {
            draw(&r, step);
            for (int k = 0; k < 4; k++)
                given += square_sum(r.x[k], PIECE);
            start(&r);
        }
        if (!(kept_of(&r) < 1.1 * given))
            fail_msg("%s keeps %g of %g", forms[form], kept_of(&r), given);
        ring_free(&r);
    }
}

/* A latent that is 1 everywhere, and decoders that make it ten thousand. */
static void loud_weights(float *w, int decoders, size_t decoder)
{
    for (size_t i = 1; i <= 4; i++)
        w[ENCODER_WEIGHTS - i] = 1;
    for (int k = 0; k < decoders; k++) {
        float *at = w + ENCODER_WEIGHTS + (size_t)k * decoder;
        static const size_t layer[] = {416, 6208, 24704, 12320};
        for (size_t i = 0; i < 4; at += layer[i], i++)
            at[0] = at[1] = at[2] = 1;
        at[0] = 1e4f;
    }
}

static void loud_ring(float *w, int ranks)
{
    (void)ranks;
    loud_weights(w, 1, DECODER_WEIGHTS);
}

static void loud_ps(float *w, int ranks)
{
    loud_weights(w, ranks, DECODER_WEIGHTS + 1);
}

/* A decoded value far above the input is rejected and counted. Nothing is lost: the
 * ring form keeps everything in the residual, lgc-ps sends the values themselves. */
TEST(test_guard)
{
    for (int form = 0; form < 2; form++) {
        struct ring r;
        ring_coded(&r, form, PIECE, 2, false, form ? loud_ps : loud_ring);
        draw(&r, 2);
        float *dense = dense_new(&r);
        start(&r);
        uint8_t *chosen = chosen_new(&r);
        for (size_t i = 0; i < PIECE; i++) {
            const float sent = form && chosen[i] ? dense[i] : 0;
            assert_true(fabsf(r.result[0][i] - sent) <= 1e-6f);
            const float kept = r.residual[0][i] + r.residual[1][i];
            assert_true(fabsf(kept + sent - dense[i]) <= 1e-5f);
        }
        assert_int_equal(r.bytes, form ? 8 + 8 * LENGTH : 8 + 4 * LATENT);
        char text[160];
        (void)trib_model_describe(r.models[0], text, sizeof text);
        assert_string_equal(text, "coded, 1 decodes, 1 of them refused");
        free(dense), free(chosen);
        ring_free(&r);
    }
}

/* ---- state ----------------------------------------------------------------------- */

/* A plan that is loaded continues with the same bits, in every stage at which it was
 * saved. */
TEST(test_state)
{
    for (int form = 0; form < 2; form++) {
        for (uint32_t saved = 1; saved < 7; saved++) {
            struct ring r, twin;
            struct trib_error err = {0};
            const char *text = text_of(form, "dense=2,train=3");
            ring_init(&r, text, PIECE + 500, 2, true);
            for (uint32_t step = 0; step < saved; step++) {
                draw(&r, step);
                start(&r);
            }
            ring_init(&twin, text, PIECE + 500, 2, true);
            for (int k = 0; k < 2; k++) {
                uint8_t *bytes = state_new(r.models[k]);
                assert_ok(trib_model_read(twin.models[k], bytes,
                                          trib_model_bytes(r.models[k]), &err));
                free(bytes);
                memcpy(twin.residual[k], r.residual[k], r.opts.total * sizeof(float));
            }
            twin.step = r.step;
            for (uint32_t step = saved; step < saved + 3; step++) {
                draw(&r, step), draw(&twin, step);
                start(&r), start(&twin);
                assert_memory_equal(r.result[0], twin.result[0],
                                    r.opts.total * sizeof(float));
                uint8_t *weights = weights_new(&r);
                assert_true(same_weights(&twin, weights));
                free(weights);
            }
            ring_free(&r), ring_free(&twin);
        }
    }
}

static void expect_refused(struct trib_model *m, const uint8_t *bytes, size_t len)
{
    struct trib_error err = {0};
    uint8_t *before = state_new(m);
    assert_status(trib_model_read(m, bytes, len, &err), TRIB_ERR_MISMATCH);
    assert_true(strlen(trib_error_text(&err)) > 10);
    uint8_t *after = state_new(m);
    assert_memory_equal(before, after, trib_model_bytes(m));
    free(before), free(after);
}

TEST(test_bad_state)
{
    static const float bad[] = {NAN, INFINITY};
    for (int form = 0; form < 2; form++) {
        struct ring r;
        ring_init(&r, text_of(form, "dense=0,train=9"), PIECE + 500, 2, true);
        draw(&r, 1);
        start(&r);
        struct trib_model *m = r.models[0];
        const size_t len = trib_model_bytes(m);
        uint8_t *bytes = state_new(m);
        expect_refused(m, bytes, len - 1);
        for (size_t at = 0; at < AE_HEAD; at++) {
            bytes[at] ^= 0x40;
            expect_refused(m, bytes, len);
            bytes[at] ^= 0x40;
        }
        for (size_t b = 0; b < 2; b++) { /* a weight; a mark of values to train on */
            uint8_t *weight = bytes + AE_HEAD + 400, was[4];
            memcpy(was, weight, 4), memcpy(weight, &bad[b], 4);
            expect_refused(m, bytes, len);
            memcpy(weight, was, 4);
            const size_t record = form ? 1 + LENGTH : 1 + 2 * LENGTH + LATENT;
            uint8_t *mark = bytes + len - record * sizeof(float);
            memcpy(was, mark, 4), memcpy(mark, &bad[b], 4);
            expect_refused(m, bytes, len);
            memcpy(mark, was, 4);
        }
        free(bytes);
        ring_free(&r);
    }
}

/* ---- input from peers ------------------------------------------------------------ */

/* An invalid share: nothing outside the chunk is touched, and the result is 0. If the
 * scale is not finite, the result is NaN at the positions. */
TEST(test_bad_share)
{
    static const float bad[] = {
        NAN,   INFINITY, -1.0f, 0.5f,
        1e30f, 1270.0f,  -0.5f, 500.0f /* outside of the short chunk */};
    for (int form = 0; form < 2; form++) {
        for (size_t b = 0; b < 8; b++) {
            for (size_t at = 0; at < 3; at++) { /* scale, number, a position */
                struct ring r;
                ring_coded(&r, form, PIECE + 500, 2, false, NULL);
                const struct trib_model_chunk c = chunk_of(&r, 1);
                float *share = share_of(&r, 1), *x = calloc(500, sizeof *x);
                share[0] = 1, share[1] = 3;
                share[2] = 1, share[3] = 499, share[4] = 7;
                share[at] = bad[b];
                for (int k = 0; k < 2; k++)
                    trib_model_begin(r.models[k], 9);
                trib_model_settle(r.models[0], &c, share);
                const bool infinite = at == 0 && !isfinite(bad[b]);
                const bool taken = infinite || (at == 0 && bad[b] > 0);
                assert_true(share[1] == (taken ? 3.0f : 0.0f));
                uint8_t *word = malloc(trib_codec_bound(r.codec, PIECE));
                for (size_t i = 0; i < 500; i++)
                    r.x[0][PIECE + i] = 1;
                const size_t len = encode_own(&r, 0, &c, word);
                assert_ok(trib_model_result(r.models[0], &c, word, len, x));
                assert_true(taken || square_sum(x, 500) == 0);
                for (size_t i = 0; infinite && i < 500; i++)
                    assert_true(isnan(x[i]) == (i == 1 || i == 7 || i == 499));
                free(word), free(x);
                ring_free(&r);
            }
        }
    }
}

/* Words cut short, lengthened, of another epoch: a status, and no bad access. */
TEST(test_bad_words)
{
    for (int form = 0; form < 2; form++) {
        struct ring r;
        ring_coded(&r, form, PIECE, 2, false, NULL);
        draw(&r, 1);
        start(&r);
        const struct trib_model_chunk c = chunk_of(&r, 0);
        uint8_t *word = malloc(trib_codec_bound(r.codec, PIECE) + 8);
        float *x = malloc(PIECE * sizeof *x);
        const size_t len = encode_own(&r, 0, &c, word);
        for (size_t cut = 0; cut < len; cut += 3) {
            uint8_t *exact = malloc(cut);
            memcpy(exact, word, cut);
            assert_status(trib_model_result(r.models[0], &c, exact, cut, x),
                          TRIB_ERR_CODEC);
            free(exact);
        }
        assert_status(trib_model_result(r.models[0], &c, word, len + 4, x),
                      TRIB_ERR_CODEC);
        assert_ok(trib_model_result(r.models[0], &c, word, len, x));
        word[0] ^= 1;
        assert_status(trib_model_result(r.models[0], &c, word, len, x), TRIB_ERR_CODEC);
        free(word), free(x);
        ring_free(&r);
    }
}
