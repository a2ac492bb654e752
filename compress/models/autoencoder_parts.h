/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Private fields of an autoencoder: used by autoencoder.c (computation),
 * autoencoder_bytes.c (serialisation) and linear_decoder.c (linear decoders).
 */
#ifndef COMPRESS_MODELS_AUTOENCODER_PARTS_H
#define COMPRESS_MODELS_AUTOENCODER_PARTS_H

#include "compress/models/autoencoder.h"
#include "compress/models/conv1d.h"

enum {
    TRIB_AUTOENCODER_LAYERS = 10,
    TRIB_AUTOENCODER_SPAN = 31, /* samples affected by one latent sample */
    TRIB_AUTOENCODER_STRIDE = 16, /* samples between two such spans */
};

struct trib_autoencoder {
    struct trib_autoencoder_opts opts;
    const struct trib_kernels *kernels;
    struct trib_layer layers[TRIB_AUTOENCODER_LAYERS];
    size_t lengths[TRIB_AUTOENCODER_LAYERS + 1]; /* before and after each layer */
    size_t encoder_weights, decoder_weights; /* of one decoder */
    /* encoder, then decoders; the same layout in all four */
    float *weights, *gradient, *mean, *square; /* the last two belong to Adam */
    double mean_left, square_left; /* 0.9^steps, 0.999^steps */
    float *signals[TRIB_AUTOENCODER_LAYERS]; /* latest output of each layer */
    float *derivative[2];
    float *columns;
    void *scratch;
    float *latents, *dlatents; /* of all decoders */
    float *target, *result, *dresult; /* of length */
    uint64_t changes; /* number of weight changes so far */
    uint64_t taps_at; /* value of `changes` when taps were computed; 0: never */
    float *taps; /* linear decoders: [decoders][channels][SPAN] */
    float *raw; /* a decoded signal before it is resized */
};

/** trib_autoencoder_raw - apply a decoder's layers to a latent, without the final
 * resize. */
const float *trib_autoencoder_raw(struct trib_autoencoder *ae, size_t decoder,
                                  const float *latent);

#endif
