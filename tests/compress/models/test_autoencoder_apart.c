/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The autoencoder of nodes that each know only their own vectors, and its saved state,
 * from which training continues.
 */
#include "tests/compress/models/autoencoder_rig.h"

/* Compute the means that the nodes of the ring learn. */
static void means(struct trib_autoencoder *ae, const struct data *d, float *mean,
                  float *latent)
{
    const size_t n_latent = trib_autoencoder_latent(ae);
    float *c = malloc(n_latent * sizeof *c);
    memset(mean, 0, d->length * sizeof *mean);
    memset(latent, 0, n_latent * sizeof *latent);
    for (size_t k = 0; k < d->n; k++) {
        trib_autoencoder_encode(ae, d->v[k], c);
        for (size_t i = 0; i < d->length; i++)
            mean[i] += d->v[k][i] / (float)d->n;
        for (size_t i = 0; i < n_latent; i++)
            latent[i] += c[i] / (float)d->n;
    }
    free(c);
}

/* Train one step of nodes that each know only their vectors of the sets. Return the
 * loss of the first set. */
static double step_apart(struct trib_autoencoder *const *nodes, const struct data *sets,
                         size_t n_sets)
{
    const size_t n = sets->n, shared = trib_autoencoder_shared_floats(nodes[0]);
    float *sum = calloc(shared, sizeof *sum);
    float *mean = malloc(sets->length * sizeof *mean);
    float *latent = malloc(trib_autoencoder_latent(nodes[0]) * sizeof *latent);
    double loss = 0;
    for (size_t k = 0; k < n; k++) {
        trib_autoencoder_forget(nodes[k]);
        for (size_t s = n_sets; s-- > 0;) {
            means(nodes[k], &sets[s], mean, latent);
            const struct trib_autoencoder_part part = {sets[s].v[k], mean, latent, n};
            loss = trib_autoencoder_add_part(nodes[k], &part);
        }
        for (size_t i = 0; i < shared; i++)
            sum[i] += trib_autoencoder_shared(nodes[k])[i];
    }
    for (size_t k = 0; k < n; k++) {
        memcpy(trib_autoencoder_shared(nodes[k]), sum, shared * sizeof *sum);
        trib_autoencoder_step(nodes[k], n_sets);
    }
    free(sum), free(mean), free(latent);
    return loss;
}

static double weights_apart(const struct trib_autoencoder *a,
                            const struct trib_autoencoder *b)
{
    uint8_t *x = bytes_new(a), *y = bytes_new(b);
    const double apart = sqrt(square_distance((const float *)(const void *)(x + HEAD),
                                              (const float *)(const void *)(y + HEAD),
                                              trib_autoencoder_weights(a)));
    free(x), free(y);
    return apart;
}

/* Nodes that sum derivatives make the step of one that has all vectors. */
TEST(test_apart)
{
    enum { N = 3 };
    const struct trib_autoencoder_opts opts = {
        .length = 95, .decoders = 1, .rate = 0.01f};
    struct trib_autoencoder *all = ae_new(opts, NULL), *start = ae_new(opts, NULL);
    struct trib_autoencoder *nodes[N];
    struct data d;
    data_init(&d, opts.length, N, 1);
    for (int k = 0; k < N; k++)
        nodes[k] = ae_new(opts, NULL);
    for (int i = 0; i < 3; i++) {
        const double loss = train(all, &d, true), apart = step_apart(nodes, &d, 1);
        assert_true(fabs(loss - apart) <= 1e-5 * loss);
    }
    for (int k = 0; k < N; k++) {
        assert_true(ae_digest(nodes[k]) == ae_digest(nodes[0]));
        assert_true(weights_apart(nodes[k], all) < 1e-4 * weights_apart(start, all));
    }
    for (int k = 0; k < N; k++)
        trib_autoencoder_destroy(nodes[k]);
    trib_autoencoder_destroy(all), trib_autoencoder_destroy(start);
    data_free(&d);
}

/* Several vectors in a step: the mean of their derivatives; SGD's step is linear in
 * it. */
TEST(test_apart_mean)
{
    enum { N = 2 };
    const struct trib_autoencoder_opts opts = {
        .length = 95, .decoders = 1, .rate = 0.01f};
    struct trib_autoencoder *nodes[N] = {ae_new(opts, NULL), ae_new(opts, NULL)};
    struct trib_autoencoder *one[2] = {ae_new(opts, NULL), ae_new(opts, NULL)};
    struct trib_autoencoder *start = ae_new(opts, NULL);
    struct data sets[2];
    data_init(&sets[0], opts.length, N, 1), data_init(&sets[1], opts.length, N, 3);
    step_apart(nodes, sets, 2);
    train(one[0], &sets[0], true), train(one[1], &sets[1], true);
    uint8_t *bytes[3] = {bytes_new(one[0]), bytes_new(one[1]), bytes_new(start)};
    float *w[3];
    for (int i = 0; i < 3; i++)
        w[i] = (float *)(void *)(bytes[i] + HEAD);
    for (size_t i = 0; i < trib_autoencoder_weights(start); i++)
        w[0][i] = (w[0][i] + w[1][i]) / 2;
    import(one[0], bytes[0]);
    assert_true(weights_apart(nodes[0], one[0]) < 1e-3 * weights_apart(start, one[0]));
    for (int i = 0; i < 2; i++) {
        trib_autoencoder_destroy(nodes[i]), trib_autoencoder_destroy(one[i]);
        data_free(&sets[i]);
    }
    trib_autoencoder_destroy(start);
    free(bytes[0]), free(bytes[1]), free(bytes[2]);
}

/* Means that are not finite add nothing; a node whose own derivatives are not stops
 * all. */
TEST(test_apart_not_finite)
{
    enum { LENGTH = 50 };
    const struct trib_autoencoder_opts opts = {.length = LENGTH, .decoders = 1};
    struct trib_autoencoder *ae = ae_new(opts, NULL);
    float v[LENGTH] = {1}, mean[LENGTH] = {NAN}, latent[8] = {0};
    const struct trib_autoencoder_part part = {v, mean, latent, 2};
    const uint64_t before = ae_digest(ae);
    assert_true(trib_autoencoder_latent(ae) <= 8);
    trib_autoencoder_forget(ae);
    assert_true(isnan(trib_autoencoder_add_part(ae, &part)));
    for (size_t i = 0; i < trib_autoencoder_shared_floats(ae); i++)
        assert_true(trib_autoencoder_shared(ae)[i] == 0);
    trib_autoencoder_shared(ae)[9] = 1e20f; /* its square is not finite */
    assert_false(trib_autoencoder_step(ae, 1));
    trib_autoencoder_shared(ae)[9] = NAN;
    assert_false(trib_autoencoder_step(ae, 1));
    assert_true(ae_digest(ae) == before);
    mean[0] = 1;
    trib_autoencoder_forget(ae);
    assert_true(isfinite(trib_autoencoder_add_part(ae, &part)));
    assert_true(trib_autoencoder_step(ae, 1));
    assert_true(ae_digest(ae) != before);
    trib_autoencoder_destroy(ae);
}

/* A rank that loads a saved state continues with the same bits. Damaged state is
 * rejected and changes nothing. */
TEST(test_save)
{
    struct trib_autoencoder_opts opts = {
        .length = 50, .decoders = 2, .innovation = true, .adam = true};
    struct trib_autoencoder *a = ae_new(opts, NULL), *b;
    struct trib_error err = {0};
    struct data d;
    data_init(&d, opts.length, 2, 1);
    for (d.batch.step = 0; d.batch.step < 3; d.batch.step++)
        train(a, &d, false);
    const size_t len = trib_autoencoder_save_bytes(a);
    uint8_t *bytes = malloc(len);
    trib_autoencoder_save(a, bytes);
    opts.seed = 9; /* other weights, the same draws below */
    b = ae_new(opts, NULL);
    static const float bad[] = {NAN, INFINITY, -1};
    for (int i = 0; i < 3; i++) {
        float was;
        memcpy(&was, bytes + len - 4, 4), memcpy(bytes + len - 4, &bad[i], 4);
        assert_status(trib_autoencoder_load(b, bytes, len, &err), TRIB_ERR_MISMATCH);
        memcpy(bytes + len - 4, &was, 4);
    }
    assert_status(trib_autoencoder_load(b, bytes, len - 1, &err), TRIB_ERR_MISMATCH);
    bytes[0] ^= 1;
    assert_status(trib_autoencoder_load(b, bytes, len, &err), TRIB_ERR_MISMATCH);
    bytes[0] ^= 1;
    const double two = 2;
    double left;
    uint8_t *lefts = bytes + trib_autoencoder_bytes(a);
    memcpy(&left, lefts, 8), memcpy(lefts, &two, 8);
    assert_status(trib_autoencoder_load(b, bytes, len, &err), TRIB_ERR_MISMATCH);
    memcpy(lefts, &left, 8);
    assert_true(ae_digest(a) != ae_digest(b));
    trib_autoencoder_destroy(b);
    opts.seed = 0;
    b = ae_new(opts, trib_kernels_get("c"));
    assert_status(trib_autoencoder_load(b, bytes, len, &err), TRIB_OK);
    for (d.batch.step = 3; d.batch.step < 6; d.batch.step++)
        assert_true(train(a, &d, false) == train(b, &d, false));
    assert_true(ae_digest(a) == ae_digest(b));
    trib_autoencoder_destroy(a), trib_autoencoder_destroy(b);
    data_free(&d);
    free(bytes);
}

/* A linear decoder in one convolution is D(c) - D(0), by the layers; decodes add. */
TEST(test_linear_decoder)
{
    enum { LENGTH = 300, LATENT = 68, DECODERS = 2 };
    const struct trib_autoencoder_opts opts = {
        .length = LENGTH, .decoders = DECODERS, .linear = true, .seed = 3};
    struct trib_autoencoder *ae = ae_new(opts, NULL);
    float c[3][LATENT], d[3][LENGTH], layers[LENGTH], nothing[LENGTH];
    assert_int_equal(trib_autoencoder_latent(ae), LATENT);
    uint8_t *bytes = bytes_new(ae); /* biases that are not 0 */
    float *w = (float *)(void *)(bytes + HEAD);
    for (size_t i = ENCODER_WEIGHTS; i < ENCODER_WEIGHTS + 2 * DECODER_WEIGHTS; i++)
        w[i] += 0.02f * normal_at(5, i);
    import(ae, bytes);
    for (size_t k = 0; k < DECODERS; k++) {
        for (size_t i = 0; i < LATENT; i++) {
            c[0][i] = normal_at(k, i), c[1][i] = normal_at(k + 9, i);
            c[2][i] = c[0][i] + c[1][i];
        }
        for (size_t j = 0; j < 3; j++)
            trib_autoencoder_decode_alone(ae, k, c[j], d[j]);
        trib_autoencoder_decode(ae, k, c[0], NULL, layers);
        memset(c[1], 0, sizeof c[1]);
        trib_autoencoder_decode(ae, k, c[1], NULL, nothing);
        double off = 0, apart = 0, all = 0;
        for (size_t i = 0; i < LENGTH; i++) {
            off = fmax(off, fabs((double)(layers[i] - nothing[i] - d[0][i])));
            apart = fmax(apart, fabs((double)(d[0][i] + d[1][i] - d[2][i])));
            all = fmax(all, fabs((double)d[2][i]));
        }
        assert_true(all > 0.01 && off < 1e-5 * all && apart < 1e-5 * all);
    }
    trib_autoencoder_destroy(ae);
    free(bytes);
}

/* A decoder learns from its node's own vector; the others and all biases stay. */
TEST(test_own_decoder)
{
    enum { LENGTH = 127, DECODER = DECODER_WEIGHTS + 1 };
    const struct trib_autoencoder_opts opts = {.length = LENGTH,
                                               .decoders = 2,
                                               .innovation = true,
                                               .linear = true,
                                               .adam = true,
                                               .seed = 4};
    struct trib_autoencoder *ae = ae_new(opts, NULL);
    struct data d;
    data_init(&d, LENGTH, 2, 6);
    uint8_t *before = bytes_new(ae);
    double first = 0, last = 0;
    for (int n = 0; n < 60; n++) {
        last = trib_autoencoder_train_own(ae, 1, d.v[1], d.innovation[1]);
        first = n ? first : last;
    }
    assert_true(last < 0.2 * first);
    uint8_t *after = bytes_new(ae);
    const size_t decoders = HEAD + sizeof(float) * ENCODER_WEIGHTS;
    assert_memory_not_equal(before, after, decoders);
    assert_memory_equal(before + decoders, after + decoders, sizeof(float) * DECODER);
    const size_t last_bias = decoders + sizeof(float) * (2 * DECODER - 2);
    assert_memory_equal(before + last_bias, after + last_bias, sizeof(float));
    trib_autoencoder_destroy(ae);
    data_free(&d);
    free(before), free(after);
}
