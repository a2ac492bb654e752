/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fields of an autoencoder: autoencoder.c computes with them, autoencoder_bytes.c
 * writes and reads them, linear_decoder.c has linear decoders.
 */
#ifndef COMPRESS_MODELS_AUTOENCODER_PARTS_H
#define COMPRESS_MODELS_AUTOENCODER_PARTS_H

#include "compress/models/autoencoder.h"
#include "compress/models/conv1d.h"

enum {
    TRIB_AUTOENCODER_LAYERS = 10,
    TRIB_AUTOENCODER_SPAN = 31, /* samples on which a sample of a latent acts */
    TRIB_AUTOENCODER_STRIDE = 16, /* samples between two of these spans */
};

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
    uint64_t changes; /* of the weights so far */
    uint64_t taps_at; /* the changes that taps are of; 0: of none */
    float *taps; /* of linear decoders: [decoders][channels][SPAN] */
    float *raw; /* a decoded signal before it is resized */
};

/** trib_autoencoder_raw - what a decoder's layers make of a latent; not resized yet. */
const float *trib_autoencoder_raw(struct trib_autoencoder *ae, size_t decoder,
                                  const float *latent);

#endif
