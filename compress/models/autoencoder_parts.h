/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fields of an autoencoder: autoencoder.c computes with them, autoencoder_bytes.c
 * writes and reads them.
 */
#ifndef COMPRESS_MODELS_AUTOENCODER_PARTS_H
#define COMPRESS_MODELS_AUTOENCODER_PARTS_H

#include "compress/models/autoencoder.h"
#include "compress/models/conv1d.h"

enum { TRIB_AUTOENCODER_LAYERS = 10 };

struct trib_autoencoder {
    struct trib_autoencoder_opts opts;
    const struct trib_kernels *kernels;
    struct trib_layer layers[TRIB_AUTOENCODER_LAYERS];
    size_t lengths[TRIB_AUTOENCODER_LAYERS + 1]; /* before and after each layer */
    size_t encoder_weights, decoder_weights; /* of one decoder */
    /* encoder, then decoders; alike */
    float *weights, *gradient, *mean, *square; /* the last two: Adam's */
    double mean_left, square_left; /* 0.9^steps, 0.999^steps */
    float *signals[TRIB_AUTOENCODER_LAYERS]; /* what each layer gave last */
    float *derivative[2];
    float *columns;
    void *scratch;
    float *latents, *dlatents; /* of each decoder */
    float *target, *result, *dresult; /* of length */
};

#endif
