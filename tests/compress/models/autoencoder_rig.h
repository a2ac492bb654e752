/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Autoencoders and what nodes might select, for their tests.
 */
#ifndef TESTS_COMPRESS_MODELS_AUTOENCODER_RIG_H
#define TESTS_COMPRESS_MODELS_AUTOENCODER_RIG_H

#include "tests/compress/kernels/isas.h"

#include "base/digest.h"
#include "compress/models/autoencoder.h"
#include "tests/compress/vectors.h"

enum { HEAD = 16, ENCODER_WEIGHTS = 172996, DECODER_WEIGHTS = 43681, NODES_MAX = 4 };

/* Return the digest of the exported bytes. */
static inline uint64_t ae_digest(const struct trib_autoencoder *ae)
{
    const size_t n = trib_autoencoder_bytes(ae);
    uint8_t *bytes = malloc(n);

    trib_autoencoder_export(ae, bytes);
    const uint64_t digest = trib_digest(bytes, n);
    free(bytes);
    return digest;
}

static inline struct trib_autoencoder *ae_new(struct trib_autoencoder_opts opts,
                                       const struct trib_kernels *k)
{
    struct trib_error err = {0};
    struct trib_autoencoder *ae;
    if (trib_autoencoder_create(&opts, k, &err, &ae) != TRIB_OK)
        fail_msg("%s", trib_error_text(&err));
    return ae;
}

/* Selections that ranks might make: correlated, smooth, largest first. */
struct data {
    size_t length, n;
    float *v[NODES_MAX], *innovation[NODES_MAX];
    struct trib_autoencoder_batch batch;
};

static inline void data_init(struct data *d, size_t length, size_t n, uint64_t seed)
{
    *d = (struct data){.length = length, .n = n};
    for (size_t k = 0; k < n; k++) {
        d->v[k] = malloc(length * sizeof(float));
        d->innovation[k] = calloc(length, sizeof(float));
        for (size_t i = 0; i < length; i++) {
            const double at = (double)i / (double)length;
            const double both = sin(6 * at + (double)(seed % 7)) + 0.5 * cos(15 * at);
            d->v[k][i] = (float)both + 0.05f * normal_at(seed + k, i);
        }
        d->innovation[k][3 + k] = d->v[k][3 + k];
    }
    d->batch = (struct trib_autoencoder_batch){.v = (const float *const *)d->v,
                                               .innovation =
                                                   (const float *const *)d->innovation,
                                               .n = n};
}

static inline void data_free(struct data *d)
{
    for (size_t k = 0; k < d->n; k++)
        free(d->v[k]), free(d->innovation[k]);
}

static inline uint8_t *bytes_new(const struct trib_autoencoder *ae)
{
    uint8_t *bytes = malloc(trib_autoencoder_bytes(ae));
    trib_autoencoder_export(ae, bytes);
    return bytes;
}

static inline void import(struct trib_autoencoder *ae, const uint8_t *bytes)
{
    struct trib_error err = {0};
    assert_ok(trib_autoencoder_import(ae, bytes, trib_autoencoder_bytes(ae), &err));
}

static inline double train(struct trib_autoencoder *ae, const struct data *d, bool ring)
{
    return ring ? trib_autoencoder_train_ring(ae, &d->batch)
                : trib_autoencoder_train_ps(ae, &d->batch);
}

#endif
