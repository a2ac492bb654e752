/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LGC's autoencoder: shape, derivatives of both losses, learning, and the properties of
 * its two forms.
 */
#include "tests/compress/models/autoencoder_rig.h"

/* Layer by layer, the innovation's weight last. */
static const size_t layer_weights[] = {256,  24704, 98560, 49216, 260, 416,
                                       6208, 24704, 12320, 33,    1};
enum { BLOCKS = sizeof layer_weights / sizeof *layer_weights };

TEST(test_shape)
{
    static const size_t sizes[][2] = {{31, 4}, {47, 8}, {63, 12}, {25500, 6368}};
    for (int s = 0; s < 4; s++) {
        for (size_t decoders = 1; decoders < 4; decoders++) {
            for (int innovation = 0; innovation < 2; innovation++) {
                const struct trib_autoencoder_opts opts = {.length = sizes[s][0],
                                                           .decoders = decoders,
                                                           .innovation = innovation};
                struct trib_autoencoder *ae = ae_new(opts, NULL);
                const size_t weights =
                    ENCODER_WEIGHTS + decoders * (DECODER_WEIGHTS + (size_t)innovation);
                assert_int_equal(trib_autoencoder_latent(ae), sizes[s][1]);
                assert_int_equal(trib_autoencoder_weights(ae), weights);
                assert_int_equal(trib_autoencoder_bytes(ae), HEAD + 4 * weights);
                trib_autoencoder_destroy(ae);
            }
        }
    }
    trib_autoencoder_destroy(NULL);
}

TEST(test_options)
{
    static const struct trib_autoencoder_opts bad[] = {
        {.length = 30, .decoders = 1},
        {.length = TRIB_AUTOENCODER_LENGTH_MAX + 1, .decoders = 1},
        {.length = 100},
        {.length = 100, .decoders = TRIB_AUTOENCODER_DECODERS_MAX + 1},
        {.length = 100, .decoders = 1, .slope = -0.1f},
        {.length = 100, .decoders = 1, .slope = 1.5f},
        {.length = 100, .decoders = 1, .rate = NAN},
        {.length = 100, .decoders = 1, .rate = -1},
        {.length = 100, .decoders = 1, .lambda1 = -1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct trib_error err = {0};
        struct trib_autoencoder *ae;
        assert_status(trib_autoencoder_create(&bad[i], NULL, &err, &ae),
                      TRIB_ERR_INVALID);
        assert_null(ae);
        assert_true(strlen(trib_error_text(&err)) > 10);
    }
}

/* The same weights from the same seed, within bounds. */
TEST(test_seed)
{
    struct trib_autoencoder_opts opts = {.length = 40, .decoders = 2, .seed = 3};
    struct trib_autoencoder *a = ae_new(opts, NULL),
                            *b = ae_new(opts, trib_kernels_get("c"));
    opts.seed = 4;
    struct trib_autoencoder *c = ae_new(opts, NULL);
    assert_true(ae_digest(a) == ae_digest(b));
    assert_true(ae_digest(a) != ae_digest(c));
    uint8_t *bytes = bytes_new(a);
    const float *w = (const float *)(const void *)(bytes + HEAD);
    const size_t n =
        layer_weights[1] - 128; /* layer 2: 64 channels of 3 taps, 128 biases */
    const double variance = 2 / (1 + 1e-4) / 192;
    double sum = 0, squares = 0;
    for (size_t i = layer_weights[0]; i < layer_weights[0] + n; i++) {
        assert_true((double)w[i] * (double)w[i] <= 3.0001 * variance);
        sum += (double)w[i], squares += (double)w[i] * (double)w[i];
    }
    for (size_t i = 0; i < 128; i++)
        assert_true(w[layer_weights[0] + n + i] == 0);
    assert_true(fabs(sum) < 5 * sqrt(squares));
    assert_true(fabs(squares / (double)n / variance - 1) < 0.03);
    trib_autoencoder_destroy(a), trib_autoencoder_destroy(b),
        trib_autoencoder_destroy(c);
    free(bytes);
}

/* ---- derivatives ----------------------------------------------------------------- */

/* The loss with weights moved by `far` along normal numbers in one block. */
static double loss_along(struct trib_autoencoder *ae, const struct data *d, bool ring,
                         const float *w, size_t block, double far)
{
    uint8_t *bytes = bytes_new(ae);
    float *moved = (float *)(void *)(bytes + HEAD);
    size_t first = 0;
    memcpy(moved, w, trib_autoencoder_weights(ae) * sizeof *w);
    for (size_t b = 0; b < block; b++)
        first += layer_weights[b];
    for (size_t i = first; i < first + layer_weights[block]; i++)
        moved[i] += (float)far * normal_at(50 + block, i);
    import(ae, bytes);
    const double loss = train(ae, d, ring);
    free(bytes);
    return loss;
}

/* With a rate of 1, a step is the gradient: compared with differences of losses, layer
 * by layer, along one direction in each. */
static void check_gradient(bool ring, float slope, double relative, double absolute)
{
    const struct trib_autoencoder_opts opts = {.length = 95,
                                               .decoders = ring ? 1 : 3,
                                               .innovation = !ring,
                                               .slope = slope,
                                               .rate = 1,
                                               .lambda1 = ring ? 0 : 0.7f,
                                               .lambda2 = ring ? 0 : 0.4f};
    struct trib_autoencoder *ae = ae_new(opts, NULL);
    struct data d;
    data_init(&d, opts.length, 3, 1);
    for (size_t i = 0; i < opts.length; i++) /* latents are to differ */
        d.v[1][i] = -2 * d.v[1][i] + normal_at(4, i);
    uint8_t *before = bytes_new(ae);
    train(ae, &d, ring);
    uint8_t *after = bytes_new(ae);
    const float *w = (const float *)(const void *)(before + HEAD);
    const float *stepped = (const float *)(const void *)(after + HEAD);
    for (size_t block = 0, i = 0; block < BLOCKS - (size_t)ring; block++) {
        const double far = block == BLOCKS - 1 ? 0.01 : 1e-3;
        double expected = 0;
        for (const size_t end = i + layer_weights[block]; i < end; i++)
            expected += (double)(w[i] - stepped[i]) * (double)normal_at(50 + block, i);
        const double found = (loss_along(ae, &d, ring, w, block, far) -
                              loss_along(ae, &d, ring, w, block, -far)) /
                             (2 * far);
        if (fabs(found - expected) > relative * fabs(expected) + absolute)
            fail_msg("block %zu: %g by steps, %g by differences", block, expected,
                     found);
    }
    trib_autoencoder_destroy(ae);
    data_free(&d);
    free(before), free(after);
}

TEST(test_gradients)
{
    for (int ring = 0; ring < 2; ring++) {
        check_gradient(ring, 1.0f, 2e-3, 1e-4);
        check_gradient(ring, 0.8f, 0.05,
                       0.05); /* f bends within the differences: conv1d proves it */
    }
}

/* Every latent is drawn now and then; the other nodes' decoders learn all the same. */
TEST(test_draws)
{
    const struct trib_autoencoder_opts opts = {
        .length = 40, .decoders = 3, .innovation = true, .lambda1 = 1, .rate = 1e-9f};
    struct trib_autoencoder *ae = ae_new(opts, NULL);
    struct data d;
    double losses[3] = {0};
    int n = 0, counts[3] = {0};
    data_init(&d, opts.length, 3, 1);
    for (size_t i = 0; i < opts.length; i++)
        d.v[1][i] *= 3, d.v[2][i] *= -2;
    uint8_t *bytes = bytes_new(ae);
    for (d.batch.step = 0; d.batch.step < 60; d.batch.step++) {
        import(ae, bytes);
        const double loss = train(ae, &d, false);
        int i = 0;
        while (i < n && losses[i] != loss)
            i++;
        assert_true(i < 3);
        losses[i] = loss;
        counts[i]++;
        n = i == n ? n + 1 : n;
    }
    assert_int_equal(n, 3);
    for (int i = 0; i < 3; i++)
        assert_true(counts[i] > 5);
    trib_autoencoder_destroy(ae);
    data_free(&d);
    free(bytes);
}

/* ---- learning -------------------------------------------------------------------- */

static double trained(struct trib_autoencoder_opts opts, bool ring, unsigned steps,
                      double *first)
{
    struct trib_autoencoder *ae = ae_new(opts, NULL);
    struct data d;
    double loss = 0;
    data_init(&d, opts.length, ring ? 4 : opts.decoders, 1);
    for (unsigned i = 0; i < steps; i++) {
        d.batch.step = i;
        loss = train(ae, &d, ring);
        *first = i ? *first : loss;
    }
    data_free(&d);
    trib_autoencoder_destroy(ae);
    return loss;
}

TEST(test_learning)
{
    struct trib_autoencoder_opts opts = {.length = 95, .decoders = 1, .seed = 1};
    double first = 0;
    /* the paper's optimizer at its rate; its steps are many more */
    assert_true(trained(opts, true, 150, &first) < 0.5 * first);
    opts.adam = true;
    assert_true(trained(opts, true, 60, &first) < 0.1 * first);
    opts.decoders = 3, opts.innovation = true;
    assert_true(trained(opts, false, 60, &first) < 0.1 * first);
    opts.adam = false, opts.rate = 0.01f;
    assert_true(trained(opts, false, 100, &first) < 0.5 * first);
}

/* A vector that is not finite teaches nothing. */
TEST(test_not_finite)
{
    for (int ring = 0; ring < 2; ring++) {
        const struct trib_autoencoder_opts opts = {
            .length = 50, .decoders = ring ? 1 : 2, .innovation = !ring, .adam = ring};
        struct trib_autoencoder *ae = ae_new(opts, NULL);
        struct data d;
        data_init(&d, opts.length, 2, 1);
        const uint64_t before = ae_digest(ae);
        d.v[1][20] = NAN;
        assert_true(isnan(train(ae, &d, ring)));
        d.v[1][20] = 1e38f;
        train(ae, &d, ring); /* derivatives overflow */
        d.v[1][20] = 1e22f;
        train(ae, &d, ring); /* their squares do */
        assert_true(ae_digest(ae) == before);
        d.v[1][20] = 1;
        assert_true(isfinite(train(ae, &d, ring)));
        assert_true(ae_digest(ae) != before);
        data_free(&d);
        trib_autoencoder_destroy(ae);
    }
}

/* ---- the two forms --------------------------------------------------------------- */

/* Whichever order the workers have, the mean latent decodes to the same. */
TEST(test_permutation)
{
    enum { LENGTH = 200, N = 4 };
    static const int orders[3][N] = {{0, 1, 2, 3}, {3, 1, 0, 2}, {2, 3, 1, 0}};
    const struct trib_autoencoder_opts opts = {.length = LENGTH, .decoders = 1};
    struct trib_autoencoder *ae = ae_new(opts, NULL);
    const size_t latent = trib_autoencoder_latent(ae);
    float *c = malloc(latent * sizeof *c), out[3][LENGTH];
    struct data d;
    data_init(&d, LENGTH, N, 1);
    for (int o = 0; o < 3; o++) {
        float *mean = calloc(latent, sizeof *mean);
        for (int k = 0; k < N; k++) {
            trib_autoencoder_encode(ae, d.v[orders[o][k]], c);
            for (size_t i = 0; i < latent; i++)
                mean[i] += c[i] / N;
        }
        trib_autoencoder_decode(ae, 0, mean, NULL, out[o]);
        assert_true(square_distance(out[o], out[0], LENGTH) <
                    1e-11 * square_sum(out[0], LENGTH));
        free(mean);
    }
    free(c);
    data_free(&d);
    trib_autoencoder_destroy(ae);
}

/*
 * Weights that only move samples. In the encoder each stage deals a channel out to two,
 * by even and odd samples, so that 16 hold every 16th; four of those are the latent.
 * The decoder puts them back in place.
 */
static void set_moving_weights(float *w)
{
    static const size_t phases[4] = {0, 5, 10, 15};
    static const size_t in[] = {1, 64, 128, 256}, out[] = {64, 128, 256, 64};
    static const size_t up_out[] = {32, 64, 128, 32};
    size_t at = 0;
    for (size_t stage = 0; stage < 4; stage++) {
        const size_t have = (size_t)1 << stage; /* channels in use */
        for (size_t o = 0; o < 2 * have; o++)
            w[at + (o * in[stage] + o % have) * 3 + o / have] = 1;
        at += layer_weights[stage];
    }
    for (size_t o = 0; o < 4; o++)
        w[at + o * out[3] + phases[o]] = 1;
    at += layer_weights[4];
    for (size_t stage = 0; stage < 4; stage++) {
        const size_t give = (size_t)8 >> stage;
        for (size_t c = 0; c < (stage ? 2 * give : 4); c++) {
            const size_t phase = stage ? c : phases[c];
            w[at + (c * up_out[stage] + phase % give) * 3 + phase / give] = 1;
        }
        at += layer_weights[5 + stage];
    }
    w[at] = 1;
}

/* With linear weights chosen here, an input that fits into a latent is restored
 * exactly, and so is a mean. */
TEST(test_lossless)
{
    enum {
        LENGTH = 16 * 7 + 15 /* the decoder gives as many: nothing is resized */,
        N = 4
    };
    const struct trib_autoencoder_opts opts = {
        .length = LENGTH, .decoders = 1, .slope = 1};
    struct trib_autoencoder *ae = ae_new(opts, NULL);
    const size_t latent = trib_autoencoder_latent(ae);
    uint8_t *bytes = bytes_new(ae);
    float *c = malloc(latent * sizeof *c), *mean_c = calloc(latent, sizeof *mean_c);
    float v[LENGTH], mean[LENGTH] = {0}, out[LENGTH];
    memset(bytes + HEAD, 0, trib_autoencoder_bytes(ae) - HEAD);
    set_moving_weights((float *)(void *)(bytes + HEAD));
    import(ae, bytes);
    for (size_t k = 0; k < N; k++) {
        for (size_t i = 0; i < LENGTH; i++) {
            v[i] = i % 16 % 5 == 0 && i < 16 * 7 ? normal_at(k, i) : 0;
            mean[i] += v[i] / N;
        }
        trib_autoencoder_encode(ae, v, c);
        trib_autoencoder_decode(ae, 0, c, NULL, out);
        assert_memory_equal(out, v, sizeof v);
        for (size_t i = 0; i < latent; i++)
            mean_c[i] += c[i] / N;
    }
    trib_autoencoder_decode(ae, 0, mean_c, NULL, out);
    assert_memory_equal(out, mean, sizeof mean);
    trib_autoencoder_destroy(ae);
    free(bytes), free(c), free(mean_c);
}

/* The innovation is added with its weight, 1 at first; each decoder is its own. */
TEST(test_innovation)
{
    enum { LENGTH = 90 };
    const struct trib_autoencoder_opts opts = {
        .length = LENGTH, .decoders = 2, .innovation = true};
    struct trib_autoencoder *ae = ae_new(opts, NULL);
    float *c = malloc(trib_autoencoder_latent(ae) * sizeof *c);
    float without[2][LENGTH], with[LENGTH], none[LENGTH] = {0}, s[LENGTH] = {0};
    struct data d;
    data_init(&d, LENGTH, 1, 1);
    trib_autoencoder_encode(ae, d.v[0], c);
    s[7] = 3;
    for (size_t k = 0; k < 2; k++) {
        trib_autoencoder_decode(ae, k, c, none, without[k]);
        trib_autoencoder_decode(ae, k, c, s, with);
        for (size_t i = 0; i < LENGTH; i++)
            assert_true(with[i] == without[k][i] + s[i]);
    }
    assert_true(square_distance(without[0], without[1], LENGTH) > 1e-3);
    trib_autoencoder_destroy(ae);
    data_free(&d);
    free(c);
}

/* Encoding, decoding and learning: the same bits in every instruction set. */
TEST(test_same_bits)
{
    enum { LENGTH = 63 };
    const struct trib_autoencoder_opts opts = {
        .length = LENGTH, .decoders = 2, .innovation = true, .adam = true};
    const struct trib_kernels *isas[4];
    const int n_isas = isas_of_cpu(isas);
    uint64_t digests[4];
    float c[4][12], out[4][LENGTH];
    struct data d;
    data_init(&d, LENGTH, 2, 1);
    for (int i = 0; i < n_isas; i++) {
        struct trib_autoencoder *ae = ae_new(opts, isas[i]);
        for (d.batch.step = 0; d.batch.step < 3; d.batch.step++)
            train(ae, &d, false);
        trib_autoencoder_encode(ae, d.v[0], c[i]);
        trib_autoencoder_decode(ae, 1, c[i], d.innovation[0], out[i]);
        digests[i] = ae_digest(ae);
        assert_true(digests[i] == digests[0]);
        assert_memory_equal(c[i], c[0], sizeof c[i]);
        assert_memory_equal(out[i], out[0], sizeof out[i]);
        trib_autoencoder_destroy(ae);
    }
    data_free(&d);
}

/* ---- bytes ----------------------------------------------------------------------- */

static void expect_refused(struct trib_autoencoder *ae, const uint8_t *bytes,
                           size_t len)
{
    struct trib_error err = {0};
    const uint64_t before = ae_digest(ae);
    assert_status(trib_autoencoder_import(ae, bytes, len, &err), TRIB_ERR_MISMATCH);
    assert_true(strlen(trib_error_text(&err)) > 10);
    assert_true(ae_digest(ae) == before);
}

TEST(test_bytes)
{
    struct trib_autoencoder_opts opts = {.length = 50, .decoders = 1, .seed = 1};
    struct trib_autoencoder *a = ae_new(opts, NULL);
    opts.seed = 2;
    struct trib_autoencoder *b = ae_new(opts, NULL);
    opts.length = 51;
    struct trib_autoencoder *other = ae_new(opts, NULL);
    const size_t len = trib_autoencoder_bytes(a);
    uint8_t *bytes = bytes_new(a);
    import(b, bytes);
    assert_true(ae_digest(a) == ae_digest(b));
    expect_refused(other, bytes, len);
    static const size_t cuts[] = {0, 1, 15, 16, 17};
    for (size_t i = 0; i < 5; i++) {
        struct guarded cut = guarded_new(cuts[i]);
        memcpy(cut.p, bytes, cuts[i]);
        expect_refused(a, cut.p, cuts[i]);
        guarded_free(&cut);
    }
    expect_refused(a, bytes, len - 1);
    for (size_t at = 0; at < HEAD; at++) {
        bytes[at] ^= 0x10;
        expect_refused(a, bytes, len);
        bytes[at] ^= 0x10;
    }
    const float infinite = INFINITY;
    memcpy(bytes + len - 4, &infinite, 4);
    expect_refused(a, bytes, len);
    trib_autoencoder_destroy(a), trib_autoencoder_destroy(b),
        trib_autoencoder_destroy(other);
    free(bytes);
}
