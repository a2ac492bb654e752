/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LGC as a model of a plan, in both forms: its stages, its encoding of gradients and
 * its training.
 */
#include "tests/compress/models/lgc_rig.h"

/* ---- stages ---------------------------------------------------------------------- */

/* Elements, then values at the positions, then latents: each from its start on. */
TEST(test_stages)
{
    enum { DENSE = 3, TRAIN = 2, TOTAL = 2 * PIECE + 300 };
    for (int form = 0; form < 2; form++) {
        struct ring r;
        ring_init(&r, text_of(form, "dense=3,train=2"), TOTAL, 3, form == 0);
        for (uint32_t step = 1; step <= DENSE + TRAIN + 2; step++) {
            draw(&r, step);
            float *dense = dense_new(&r);
            start(&r);
            const uint32_t epoch = step <= DENSE ? 0 : step <= DENSE + TRAIN ? 1 : 2;
            assert_int_equal(trib_model_epoch(r.models[0]), epoch);
            assert_int_equal(r.exchanged,
                             step == DENSE + 2 || step == DENSE + TRAIN + 1);
            if (epoch == 0)
                assert_true(square_distance(r.result[0], dense, TOTAL) <
                            1e-12 * square_sum(dense, TOTAL));
            else if (epoch == 1)
                assert_true(error_at_chosen(&r, dense) < 1e-12);
            else
                assert_true(error_at_chosen(&r, dense) > 1e-6); /* it hardly learned */
            free(dense);
        }
        ring_free(&r);
    }
}

/* Stages end at the right starts if there is no first stage. */
TEST(test_no_dense_stage)
{
    struct ring r;
    ring_init(&r, text_of(0, "dense=0,train=1"), PIECE, 2, false);
    draw(&r, 1);
    start(&r);
    assert_int_equal(trib_model_epoch(r.models[0]), 1);
    assert_false(r.exchanged);
    start(&r);
    assert_int_equal(trib_model_epoch(r.models[0]), 2);
    assert_true(r.exchanged);
    ring_free(&r);
}

/* The master's largest are the positions, by falling value; masters take turns. */
TEST(test_positions)
{
    enum { RANKS = 3 };
    struct ring r;
    ring_init(&r, text_of(0, "dense=0,train=9"), 2 * PIECE + 40, RANKS, false);
    for (int n = 1; n < 5; n++) {
        forget_residuals(&r);
        draw(&r, (uint64_t)n);
        start(&r);
        for (size_t i = 0; i < r.chunks; i++) {
            const struct trib_model_chunk c = chunk_of(&r, i);
            const float *x = r.x[(r.step + i) % RANKS] + c.first;
            const size_t kept = (size_t)c.agreed[1];
            assert_int_equal(kept, i < 2 ? LENGTH : 4);
            double least = (double)INFINITY, sum = 0;
            float *rest = malloc(c.n * sizeof *rest);
            memcpy(rest, x, c.n * sizeof *rest);
            for (size_t j = 0; j < kept; j++) {
                const size_t at = (size_t)c.agreed[2 + j];
                assert_true(at < c.n);
                assert_true(j == 0 || x[at] <= x[(size_t)c.agreed[1 + j]]);
                least = fmin(least, fabs((double)x[at]));
                sum += (double)x[at] * (double)x[at];
                rest[at] = 0;
            }
            for (size_t j = 0; j < c.n; j++)
                assert_true(fabs((double)rest[j]) <= least);
            const double rms = sqrt(sum / (double)kept);
            assert_true(fabs((double)c.agreed[0] - rms) < 1e-5 * rms);
            free(rest);
        }
    }
    ring_free(&r);
}

/* pick=all: each rank's largest, no position twice, the first rank's by falling
 * value. */
TEST(test_positions_of_all)
{
    enum { RANKS = 3, EACH = LENGTH / RANKS };
    for (int form = 0; form < 2; form++) {
        struct ring r;
        ring_init(&r, text_of(form, "dense=0,train=9,pick=all"), 2 * PIECE + 40, RANKS,
                  false);
        draw(&r, 4); /* correlated, so their largest elements coincide */
        start(&r);
        uint8_t *chosen = chosen_new(&r);
        for (size_t i = 0; i < r.chunks; i++) {
            const struct trib_model_chunk c = chunk_of(&r, i);
            size_t kept = (size_t)c.agreed[1], bits = 0;
            for (size_t j = 0; j < c.n; j++)
                bits += chosen[c.first + j];
            assert_int_equal(bits, kept);
            assert_true(i < 2 ? kept > EACH && kept < LENGTH : kept <= 4);
            for (size_t j = 1; i < 2 && j < EACH; j++)
                assert_true(r.x[0][c.first + (size_t)c.agreed[2 + j]] <=
                            r.x[0][c.first + (size_t)c.agreed[1 + j]]);
            for (int k = 0; i < 2 && k < RANKS; k++) {
                const float *x = r.x[k] + c.first;
                for (size_t j = 0; j < c.n; j++) {
                    size_t larger = 0;
                    for (size_t q = 0; q < c.n; q++)
                        larger += fabsf(x[q]) > fabsf(x[j]);
                    assert_true(chosen[c.first + j] || larger >= EACH);
                }
            }
        }
        free(chosen);
        ring_free(&r);
    }
}

/* Chunks that wait to be learned from; the last chunk is too short. */
static size_t due_of(const struct ring *r, int form, bool *due_out)
{
    const size_t record = form ? 1 + LENGTH : 1 + 2 * LENGTH + LATENT;
    const size_t len = trib_model_bytes(r->models[0]);
    uint8_t *bytes = state_new(r->models[0]);
    size_t all = 0;
    for (size_t i = 0; i < r->chunks; i++) {
        float due;
        memcpy(&due, bytes + len - (r->chunks - i) * record * sizeof due, sizeof due);
        due_out[i] = due != 0.0f;
        all += due_out[i];
    }
    free(bytes);
    return all;
}

/* every=2,sample=1: after every second start it trains on one chunk, each chunk in
 * turn. */
TEST(test_samples)
{
    enum { CHUNKS = 3 };
    for (int form = 0; form < 2; form++) {
        struct ring r;
        const char *text = text_of(form, "dense=1,train=6,every=2");
        ring_init(&r, text, CHUNKS * PIECE + 20, 2, true);
        bool due[CHUNKS + 1], seen[CHUNKS + 1] = {false};
        for (uint32_t step = 1; step <= 9; step++) {
            uint8_t *before = weights_new(&r);
            draw(&r, step);
            start(&r);
            const bool lesson = step > 1 && step <= 7 && step % 2 == 1;
            assert_int_equal(r.exchanged, step >= 4 && step <= 8 && step % 2 == 0);
            assert_int_equal(same_weights(&r, before), !r.exchanged);
            assert_int_equal(due_of(&r, form, due), lesson);
            for (size_t i = 0; i < CHUNKS; i++)
                seen[i] |= due[i];
            assert_false(due[CHUNKS]);
            free(before);
        }
        assert_true(seen[0] && seen[1] && seen[2]);
        ring_free(&r);
    }
}

/* A plan marks as sent all elements, whose momentum stays; then those at positions,
 * whose momentum becomes 0. */
TEST(test_marks)
{
    for (int form = 0; form < 2; form++) {
        struct ring r;
        ring_init(&r, text_of(form, "dense=1,train=1"), PIECE, 2, false);
        assert_true(trib_codec_selects(r.codec));
        for (int n = 0; n < 3; n++) {
            uint8_t mask[PIECE / 8 + 1] = {0};
            float momentum[PIECE];
            draw(&r, (uint64_t)n);
            start(&r);
            const struct trib_model_chunk c = chunk_of(&r, 0);
            const struct trib_sent sent = {.mask = mask, .clear = momentum};
            const struct trib_encode in = {.x = r.x[0],
                                           .n = PIECE,
                                           .agreed = c.agreed,
                                           .sent = &sent,
                                           .model = r.models[0]};
            uint8_t *word = malloc(trib_codec_bound(r.codec, PIECE));
            for (size_t i = 0; i < PIECE; i++)
                momentum[i] = 1;
            (void)trib_codec_encode(r.codec, &in, word);
            uint8_t *chosen = chosen_new(&r);
            for (size_t i = 0; i < PIECE; i++) {
                assert_int_equal(mask[i / 8] >> i % 8 & 1, n == 0 || chosen[i]);
                assert_true(momentum[i] == (n > 0 && chosen[i] ? 0.0f : 1.0f));
            }
            free(chosen), free(word);
        }
        ring_free(&r);
    }
}

/* ---- coding ---------------------------------------------------------------------- */

/* The result is the decoder's output for the mean of latents, which is the sum of the
 * encoded chunks. */
TEST(test_mean_of_latents)
{
    enum { RANKS = 4 };
    for (int mean = 0; mean < 2; mean++) {
        struct ring r;
        struct trib_autoencoder *ae;
        struct trib_error err = {0};
        const struct trib_autoencoder_opts opts = {
            .length = LENGTH, .decoders = 1, .seed = 7};
        float c[LATENT], sum[LATENT] = {0}, v[LENGTH], out[LENGTH];
        ring_coded_by(&r, 0, "dense=0,train=1,decoder=leaky", PIECE, RANKS, mean, NULL);
        draw(&r, 3);
        start(&r);
        assert_status(trib_autoencoder_create(&opts, NULL, &err, &ae), TRIB_OK);
        const float *share = share_of(&r, 0);
        for (int k = 0; k < RANKS; k++) {
            for (size_t i = 0; i < LENGTH; i++)
                v[i] = r.x[k][(size_t)share[2 + i]] / share[0];
            trib_autoencoder_encode(ae, v, c);
            for (size_t i = 0; i < LATENT; i++)
                sum[i] += c[i];
        }
        for (size_t i = 0; i < LATENT; i++)
            sum[i] /= RANKS;
        trib_autoencoder_decode(ae, 0, sum, NULL, out);
        for (size_t i = 0; i < LENGTH; i++) {
            const float e = out[i] * share[0] * (mean ? 1 : RANKS);
            assert_true(r.result[0][(size_t)share[2 + i]] == e);
        }
        trib_autoencoder_destroy(ae);
        ring_free(&r);
    }
}

/*
 * Weights that only move samples, and between which nothing is below 0: LeakyReLU does
 * nothing. The encoder keeps samples 0, 5, 10 and 15 of every 16; the decoder writes
 * each to those that follow, up to the next.
 */
static void set_moving_weights(float *w, int decoders, bool innovation)
{
    static const size_t layer[] = {256, 24704, 98560, 49216, 260,
                                   416, 6208,  24704, 12320};
    static const size_t in[] = {1, 64, 128, 256}, out[] = {64, 128, 256, 64};
    static const size_t up_out[] = {32, 64, 128, 32};
    for (size_t stage = 0; stage < 4; w += layer[stage], stage++)
        for (size_t have = (size_t)1 << stage, o = 0; o < 2 * have; o++)
            w[(o * in[stage] + o % have) * 3 + o / have] = 1;
    for (size_t o = 0; o < 4; o++)
        w[o * out[3] + 5 * o] = 1;
    w += layer[4];
    for (int k = 0; k < decoders; k++) {
        for (size_t phase = 0; phase < 16; phase++)
            w[(phase / 5 * up_out[0] + phase % 8) * 3 + phase / 8] = 1;
        w += layer[5];
        for (size_t stage = 1; stage < 4; w += layer[5 + stage], stage++)
            for (size_t give = (size_t)8 >> stage, c = 0; c < 2 * give; c++)
                w[(c * up_out[stage] + c % give) * 3 + c / give] = 1;
        w[0] = 1;
        w += 33 + innovation;
    }
}

static void moving_weights(float *w, int ranks)
{
    (void)ranks;
    set_moving_weights(w, 1, false);
}

static void moving_weights_ps(float *w, int ranks)
{
    set_moving_weights(w, ranks, true);
}

/* Positive, falling from group to group of the moved samples; rank k has `factor` times
 * as much as the master, in each group another. */
static void draw_groups(struct ring *r, bool alike)
{
    for (int k = 0; k < r->ranks; k++) {
        memset(r->x[k], 0, r->opts.total * sizeof(float));
        for (size_t i = 0; i < 16 * 7; i++) {
            const size_t group = i / 16 * 4 + i % 16 / 5;
            const float own =
                alike ? 1.0f : 1.0f + 0.3f * (float)((group * 7 + (size_t)k) % 5);
            r->x[k][11 * i + 2] = (40 - (float)group) * (k == 1 || alike ? 1.0f : own);
        }
    }
}

/* With weights that lose nothing, nothing is lost: sums are exact, and residuals
 * empty. */
TEST(test_lossless)
{
    for (int form = 0; form < 2; form++) {
        struct ring r;
        ring_coded(&r, form, PIECE, 2, form, form ? moving_weights_ps : moving_weights);
        for (int n = 0; n < 3; n++) { /* all masters */
            forget_residuals(&r);
            draw_groups(&r, form || (r.step + 1) % 2 == 0);
            float *dense = dense_new(&r);
            start(&r);
            assert_true(square_distance(r.result[0], dense, PIECE) <
                        1e-12 * square_sum(dense, PIECE));
            for (int k = 0; k < 2; k++)
                assert_true(square_sum(r.residual[k], PIECE) <
                            1e-10 * square_sum(dense, PIECE));
            free(dense);
        }
        ring_free(&r);
    }
}

static void no_weights(float *w, int ranks)
{
    (void)w, (void)ranks;
}

/* lgc-ps: of each rank the few largest values that its decoder leaves, here all of
 * them, are added where they are. */
TEST(test_innovations)
{
    enum { RANKS = 3, FEW = 13 /* 0.01 of PIECE */ };
    struct ring r;
    ring_coded(&r, 1, PIECE, RANKS, false, no_weights);
    draw(&r, 5);
    float *expected = calloc(PIECE, sizeof *expected);
    start(&r);
    const float *share = share_of(&r, 0);
    for (int k = 0; k < RANKS; k++) {
        for (size_t i = 0; i < LENGTH; i++) {
            const size_t at = (size_t)share[2 + i];
            size_t larger = 0;
            for (size_t j = 0; j < LENGTH; j++)
                larger += fabsf(r.x[k][(size_t)share[2 + j]]) > fabsf(r.x[k][at]);
            if (larger < FEW)
                expected[at] += r.x[k][at];
        }
    }
    assert_memory_equal(expected, r.result[0], PIECE * sizeof *expected);
    assert_true(r.bytes == 8 + 8 * FEW);
    free(expected);
    ring_free(&r);
}

/* The result does not depend on the order of ranks, except for rounding. */
TEST(test_permutation)
{
    static const int orders[][3] = {{0, 1, 2}, {2, 0, 1}, {1, 2, 0}, {2, 1, 0}};
    for (int form = 0; form < 2; form++) {
        float *first = malloc(PIECE * sizeof *first);
        for (int o = 0; o < 4; o++) {
            struct ring r;
            ring_coded(&r, form, PIECE, 3, true, NULL);
            draw(&r, 8);
            r.order = orders[o];
            start(&r);
            if (o == 0)
                memcpy(first, r.result[0], PIECE * sizeof *first);
            assert_true(square_distance(r.result[0], first, PIECE) <
                        1e-11 * square_sum(first, PIECE));
            ring_free(&r);
        }
        free(first);
    }
}

/* A rank keeps its contribution minus its own decoded chunk at the positions that were
 * sent. Own chunks add up to the result, so nothing is lost. */
TEST(test_residual)
{
    for (int form = 0; form < 2; form++) {
        struct ring r;
        ring_coded(&r, form, PIECE, 2, false, NULL);
        draw(&r, 4);
        start(&r);
        uint8_t *chosen = chosen_new(&r);
        double own_sums = 0;
        for (size_t i = 0; i < PIECE; i++) {
            double kept = 0, own = 0;
            for (int k = 0; k < 2; k++) {
                if (!chosen[i])
                    assert_true(r.residual[k][i] == r.x[k][i]);
                kept += (double)r.residual[k][i];
                own += (double)r.x[k][i];
            }
            if (chosen[i])
                own_sums += fabs(own - kept - (double)r.result[0][i]);
        }
        assert_true(own_sums < 1e-3);
        free(chosen);
        ring_free(&r);
    }
}

/* ---- learning -------------------------------------------------------------------- */

static double error_after(int form, const char *params, uint32_t starts)
{
    struct ring r;
    double error = 0;
    ring_init(&r, text_of(form, params), 2 * PIECE, 2, true);
    for (uint32_t step = 1; step <= starts + 4; step++) {
        draw(&r, 1000 + step);
        forget_residuals(&r);
        float *dense = dense_new(&r);
        start(&r);
        if (trib_model_epoch(r.models[0]) == 2)
            error += error_at_chosen(&r, dense) / 4;
        free(dense);
    }
    free(weights_new(&r)); /* the same at all ranks */
    ring_free(&r);
    return error;
}

/* The trained model serves gradients that it has not seen. */
TEST(test_learning)
{
    for (int form = 0; form < 2; form++) {
        const double little = error_after(form, "dense=0,train=1", 1);
        const double much = error_after(form, "dense=0,train=60", 60);
        if (!(much < 0.3 && much < 0.5 * little))
            fail_msg("%s: NMSE %g after 1 start, %g after 60", forms[form], little,
                     much);
    }
}

/* One rank's exchange does what one autoencoder with all vectors would do. */
TEST(test_same_as_alone)
{
    enum { RANKS = 3, TRAIN = 3 };
    for (int form = 0; form < 2; form++) {
        struct ring r;
        struct trib_autoencoder *ae, *start_ae;
        struct trib_error err = {0};
        const struct trib_autoencoder_opts opts = {.length = LENGTH,
                                                   .decoders = form ? RANKS : 1,
                                                   .innovation = form,
                                                   .linear = true,
                                                   .adam = true,
                                                   .seed = 7};
        float v[RANKS][LENGTH], s[RANKS][LENGTH];
        const float *vs[RANKS], *ss[RANKS];
        ring_init(&r, text_of(form, "dense=0,train=3,sample=0"), PIECE, RANKS, form);
        assert_status(trib_autoencoder_create(&opts, NULL, &err, &ae), TRIB_OK);
        assert_status(trib_autoencoder_create(&opts, NULL, &err, &start_ae), TRIB_OK);
        for (uint32_t n = 0; n < TRAIN; n++) {
            draw(&r, n);
            forget_residuals(&r);
            start(&r);
            const float *share = share_of(&r, 0);
            for (int k = 0; k < RANKS; k++) {
                for (size_t i = 0; i < LENGTH; i++)
                    v[k][i] = r.x[k][(size_t)share[2 + i]] / share[0];
                for (size_t i = 0; i < LENGTH; i++) {
                    size_t larger = 0;
                    for (size_t j = 0; j < LENGTH; j++)
                        larger += fabsf(v[k][j]) > fabsf(v[k][i]);
                    s[k][i] = larger < 13 ? v[k][i] : 0;
                }
                vs[k] = v[k], ss[k] = s[k];
            }
            const struct trib_autoencoder_batch batch = {vs, ss, RANKS, n + 2};
            form ? trib_autoencoder_train_ps(ae, &batch)
                 : trib_autoencoder_train_ring(ae, &batch);
        }
        start(&r); /* the last exchange is before it */
        uint8_t *theirs = weights_new(&r), *alone = malloc(trib_autoencoder_bytes(ae));
        uint8_t *before = malloc(trib_autoencoder_bytes(ae));
        trib_autoencoder_export(ae, alone), trib_autoencoder_export(start_ae, before);
        const size_t n = trib_autoencoder_weights(ae);
        const float *a = (const float *)(const void *)(alone + AE_HEAD);
        const float *b = (const float *)(const void *)(theirs + AE_HEAD);
        const float *c = (const float *)(const void *)(before + AE_HEAD);
        /* Adam's first steps have the size of the rate for any derivative. Rounding may
         * flip the sign of a derivative near 0. */
        const double apart = square_distance(a, b, n), moved = square_distance(a, c, n);
        if (!(apart <= (form ? 0 : 1e-3) * moved))
            fail_msg("%s: %g apart, %g moved", forms[form], apart, moved);
        free(theirs), free(alone), free(before);
        trib_autoencoder_destroy(ae), trib_autoencoder_destroy(start_ae);
        ring_free(&r);
    }
}

/* ---- refusals, sizes ------------------------------------------------------------- */

static void expect_no_model(const char *text, size_t piece, int ranks, const char *says)
{
    struct trib_error err = {0};
    struct trib_codec *c = codec_of(text);
    struct trib_model *m = NULL;
    const struct trib_model_opts opts = {
        .total = 2 * piece, .piece = piece, .ranks = ranks};
    assert_status(trib_model_create(c, &opts, &err, &m), TRIB_ERR_CODEC);
    assert_null(m);
    if (!strstr(trib_error_text(&err), says))
        fail_msg("\"%s\" does not say \"%s\"", trib_error_text(&err), says);
    trib_codec_destroy(c);
}

TEST(test_refusals)
{
    for (int form = 0; form < 2; form++) {
        expect_no_model(forms[form], 1632, 2, "at least 3100 elements");
        expect_no_model(forms[form], 1632, 2, "or ratio=0.019 or more");
        expect_no_model(forms[form], (1 << 24) + 64, 2, "too large");
        expect_no_model(text_of(form, "dense=1"), PIECE, 1025, "at most 1024 ranks");
    }
    struct trib_error err = {0};
    struct trib_codec *c;
    assert_status(
        trib_codec_create("lgc-ps:ratio=0.001,innovation=0.01", NULL, &err, &c),
        TRIB_ERR_CODEC);
    assert_non_null(strstr(trib_error_text(&err), "innovation is larger than ratio"));
    assert_status(trib_codec_create("lgc:innovation=0.01", NULL, &err, &c),
                  TRIB_ERR_CODEC);
    err = (struct trib_error){0};
    assert_status(trib_codec_create("lgc:train=9,every=10", NULL, &err, &c),
                  TRIB_ERR_CODEC);
    assert_non_null(strstr(trib_error_text(&err), "every is larger than train"));
}

/* Bytes of each stage; a tail no longer than a latent is sent raw. */
TEST(test_bytes)
{
    static const size_t bytes[2][3] = {
        {8 + 4 * PIECE, 8 + 4 * (LENGTH + LATENT), 8 + 4 * LATENT},
        {8 + 4 * PIECE, 8 + 8 * LENGTH, 8 + 8 * (13 + 1 /* the gain */)}};
    for (int form = 0; form < 2; form++) {
        struct ring r;
        ring_init(&r, text_of(form, "dense=1,train=1"), PIECE + LATENT, 2, false);
        for (int n = 0; n < 3; n++) {
            draw(&r, 6);
            forget_residuals(&r);
            float *dense = dense_new(&r);
            start(&r);
            assert_int_equal(r.bytes, bytes[form][n]);
            assert_true(square_distance(r.result[0] + PIECE, dense + PIECE, LATENT) <
                        1e-10);
            free(dense);
        }
        ring_free(&r);
    }
}

/* Alone: nothing is shared with anybody, and all of it works. */
TEST(test_alone)
{
    for (int form = 0; form < 2; form++) {
        struct ring r;
        ring_init(&r, text_of(form, "dense=1,train=2"), 2 * PIECE, 1, true);
        for (int n = 0; n < 5; n++) {
            draw(&r, (uint64_t)n);
            start(&r);
            assert_true(finite_all(r.result[0], 2 * PIECE));
        }
        ring_free(&r);
    }
}
