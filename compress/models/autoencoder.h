/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The autoencoder of LGC (Abrahamyan, Chen, Bekoulis, Deligiannis: "Learned gradient
 * compression for distributed deep learning", TNNLS 2021): the values v that top-k
 * selected, `length` of them, become a latent of about length / 4 floats and back. It
 * is trained here.
 *
 *     encoder   1 -> 64 -> 128 -> 256 -> 64 channels, convolutions of 3 taps and stride
 *               2 without padding, LeakyReLU; then 64 -> 4, 1 tap
 *     decoder   4 -> 32 -> 64 -> 128 -> 32, transposed ones of 3 taps and stride 2,
 *               LeakyReLU; then 32 -> 1, 1 tap, resized to `length`; with an innovation
 *               s, + weight * s
 *
 * (In the paper the last convolution, 33 -> 1, comes behind the resize of 32 channels:
 * both are linear and the one acts on channels, the other along them, so it is the
 * same.) The encoder has 172,996 weights, a decoder 43,681, with innovation 43,682.
 *
 * Two forms:
 *     ring   one decoder. Latents are averaged: D(mean of E(v_k)) stands for the mean
 *            of v_k.
 *            loss = MSE(mean of v_k, D(mean of E(v_k)))
 *     ps     a decoder for each node k. One node sends its latent c, all send
 *            innovations, their largest values in place, else 0: D_k(c, s_k) stands for
 *            v_k.
 *            loss = l1 sum over k of MSE(v_k, D_k(c, s_k))
 *                   + l2 sum over i != j of MSE(E(v_i), E(v_j)),
 *            c being the latent of a node drawn at random by (seed, step)
 *
 * Weights begin uniform, by a seed, within bounds that keep the variance from layer to
 * layer (He et al., ICCV 2015), biases at 0, that of an innovation at 1. All functions,
 * training as well, give the same bits in every instruction set. No input is scaled
 * here, so rates of learning suit values around 1. NaN and Inf spread over the latent
 * and the result; a step whose loss is not finite, or has derivatives that are not
 * finite or have squares that are not, changes no weight.
 */
#ifndef COMPRESS_MODELS_AUTOENCODER_H
#define COMPRESS_MODELS_AUTOENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;
struct trib_kernels;
struct trib_autoencoder; /* belongs to one thread at a time */

enum {
    TRIB_AUTOENCODER_LENGTH_MIN = 31, /* the latent has one sample a channel */
    TRIB_AUTOENCODER_LENGTH_MAX = 1 << 22,
    TRIB_AUTOENCODER_DECODERS_MAX = 1024,
    TRIB_AUTOENCODER_CHANNELS = 4, /* of the latent */
};

struct trib_autoencoder_opts {
    size_t length; /* elements of v */
    size_t decoders; /* 1: ring; ps: nodes */
    bool innovation;
    float slope; /* of LeakyReLU below 0; 0: 0.01; 1: linear */
    bool linear; /* decoders have no LeakyReLU and learn no bias */
    float rate; /* of learning; 0: 1e-3 */
    bool adam; /* Kingma & Ba's steps (0.9, 0.999, 1e-8) in place of plain SGD */
    float lambda1, lambda2; /* l1, l2; both 0: 0.5 */
    uint64_t seed; /* the ranks share it */
};

/**
 * trib_autoencoder_create - with weights drawn by the seed. Takes about 1.6 KB for each
 * element of `length`.
 *
 * kernels  NULL: the fastest for this CPU
 * errors   TRIB_ERR_INVALID with the range, TRIB_ERR_NO_MEMORY
 * owner    trib_autoencoder_destroy; NULL is allowed there
 */
trib_status_t trib_autoencoder_create(const struct trib_autoencoder_opts *opts,
                                      const struct trib_kernels *kernels,
                                      struct trib_error *err,
                                      struct trib_autoencoder **out);
void trib_autoencoder_destroy(struct trib_autoencoder *ae);

/** trib_autoencoder_seed - before the first step: draw the weights by another seed. */
void trib_autoencoder_seed(struct trib_autoencoder *ae, uint64_t seed);

/** trib_autoencoder_latent - floats of a latent. */
size_t trib_autoencoder_latent(const struct trib_autoencoder *ae);

/** trib_autoencoder_latent_of - of vectors of `length`; 0: they are too short. */
size_t trib_autoencoder_latent_of(size_t length);

/** trib_autoencoder_encode - the latent of `length` floats. */
void trib_autoencoder_encode(struct trib_autoencoder *ae, const float *v,
                             float *latent_out);

/**
 * trib_autoencoder_decode - `length` floats from a latent, or a mean of latents.
 *
 * decoder     number below opts.decoders
 * innovation  `length` floats, or NULL for zeros; ignored without opts.innovation
 */
void trib_autoencoder_decode(struct trib_autoencoder *ae, size_t decoder,
                             const float *latent, const float *innovation,
                             float *v_out);

/* The vectors of n nodes, one step of training. */
struct trib_autoencoder_batch {
    const float *const *v; /* n times `length` floats */
    const float *const *innovation; /* as many, if opts.innovation */
    size_t n; /* at least 1; ps: as many as decoders */
    uint32_t step; /* ps: draws the latent */
};

/**
 * trib_autoencoder_train_ring, trib_autoencoder_train_ps - one step on one batch.
 *
 * returns  the loss before the step
 */
double trib_autoencoder_train_ring(struct trib_autoencoder *ae,
                                   const struct trib_autoencoder_batch *batch);
double trib_autoencoder_train_ps(struct trib_autoencoder *ae,
                                 const struct trib_autoencoder_batch *batch);

/*
 * The same step of the ring by nodes that know their own vectors and the means alone.
 * Each forgets the derivatives of the step before and adds its part of one vector or
 * more; then the nodes sum trib_autoencoder_shared, and each makes the step.
 * Derivatives in the decoder's weights follow from the means, so all nodes have them
 * already.
 */
struct trib_autoencoder_part {
    const float *v; /* of this node */
    const float *mean; /* of the v of all nodes */
    const float *latent; /* mean of their latents */
    size_t nodes;
};

/** trib_autoencoder_forget - a step begins. */
void trib_autoencoder_forget(struct trib_autoencoder *ae);

/**
 * trib_autoencoder_add_part - this node's derivatives.
 *
 * returns  the loss, the same at all nodes; if it is not finite, nothing was added
 */
double trib_autoencoder_add_part(struct trib_autoencoder *ae,
                                 const struct trib_autoencoder_part *part);

/** trib_autoencoder_shared - what the nodes sum, in place: derivatives in weights of
 * the encoder; how many. Until the next call of another function that trains or
 * imports. */
float *trib_autoencoder_shared(struct trib_autoencoder *ae);
size_t trib_autoencoder_shared_floats(const struct trib_autoencoder *ae);

/** trib_autoencoder_step - against the mean derivative of `vectors` vectors; was it
 * made? */
bool trib_autoencoder_step(struct trib_autoencoder *ae, size_t vectors);

/**
 * trib_autoencoder_decode_alone - as trib_autoencoder_decode without an innovation, but
 * of a linear decoder only what is linear: D(c) - D(0), by a convolution of 31 taps.
 *
 * So decodes of several latents add up to the decode of their sum, to rounding.
 */
void trib_autoencoder_decode_alone(struct trib_autoencoder *ae, size_t decoder,
                                   const float *latent, float *v_out);

/**
 * trib_autoencoder_train_own - one step of one decoder on the vector of its own node:
 * against MSE(v, D_k(E(v), s)).
 *
 * returns  the loss before the step
 */
double trib_autoencoder_train_own(struct trib_autoencoder *ae, size_t decoder,
                                  const float *v, const float *innovation);

/** trib_autoencoder_innovation_weight - of a decoder. */
float trib_autoencoder_innovation_weight(const struct trib_autoencoder *ae,
                                         size_t decoder);

/** trib_autoencoder_weights - how many, of encoder and decoders. */
size_t trib_autoencoder_weights(const struct trib_autoencoder *ae);

/**
 * trib_autoencoder_export, trib_autoencoder_import - the weights as bytes: for others,
 * or to be saved. What Adam remembers of earlier steps is not part of them.
 *
 *     | u32 length | u32 decoders | u32 innovation | f32 slope | f32 weights[] |
 *     weights: layers in the order above, each the taps of [out][in] ([in][out] of
 *     transposed ones), then a bias for each of out; behind a decoder that of its
 *     innovation
 *
 * bytes    trib_autoencoder_bytes
 * errors   TRIB_ERR_MISMATCH where the bytes are no weights of this shape, or not
 *          finite; then the weights are what they were
 */
size_t trib_autoencoder_bytes(const struct trib_autoencoder *ae);
void trib_autoencoder_export(const struct trib_autoencoder *ae, uint8_t *bytes_out);
trib_status_t trib_autoencoder_import(struct trib_autoencoder *ae, const uint8_t *bytes,
                                      size_t len, struct trib_error *err);

/**
 * trib_autoencoder_save, trib_autoencoder_load - what is exported, and behind it what
 * Adam remembers: who loads it goes on as who saved it.
 *
 *     | as exported | f64 0.9^steps | f64 0.999^steps | f32 means[] | f32 squares[] |
 *
 * bytes    trib_autoencoder_save_bytes; errors as trib_autoencoder_import
 */
size_t trib_autoencoder_save_bytes(const struct trib_autoencoder *ae);
void trib_autoencoder_save(const struct trib_autoencoder *ae, uint8_t *bytes_out);
trib_status_t trib_autoencoder_load(struct trib_autoencoder *ae, const uint8_t *bytes,
                                    size_t len, struct trib_error *err);

/** trib_autoencoder_digest - of what would be exported: ranks compare it. */
uint64_t trib_autoencoder_digest(const struct trib_autoencoder *ae);

#endif
