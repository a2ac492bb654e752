/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The autoencoder of LGC (Abrahamyan, Chen, Bekoulis, Deligiannis: "Learned gradient
 * compression for distributed deep learning", TNNLS 2021). It maps the `length` values
 * v selected by top-k to a latent of about length / 4 floats, and back, and is trained
 * here.
 *
 *     encoder   1 -> 64 -> 128 -> 256 -> 64 channels, convolutions of 3 taps and stride
 *               2 without padding, LeakyReLU; then 64 -> 4, 1 tap
 *     decoder   4 -> 32 -> 64 -> 128 -> 32, transposed ones of 3 taps and stride 2,
 *               LeakyReLU; then 32 -> 1, 1 tap, resized to `length`; with an innovation
 *               s, + weight * s
 *
 * (In the paper the last convolution, 33 -> 1, follows the resize of 32 channels. Both
 * are linear, one acts across channels and the other along them, so the result is the
 * same.) The encoder has 172,996 weights, a decoder 43,681, with innovation 43,682.
 *
 * Two forms:
 *     ring   one decoder. Latents are averaged: D(mean of E(v_k)) approximates the mean
 *            of v_k.
 *            loss = MSE(mean of v_k, D(mean of E(v_k)))
 *     ps     a decoder for each node k. One node sends its latent c, and all send
 *            innovations s_k, the largest values in place and 0 elsewhere: D_k(c, s_k)
 *            approximates v_k.
 *            loss = l1 sum over k of MSE(v_k, D_k(c, s_k))
 *                   + l2 sum over i != j of MSE(E(v_i), E(v_j)),
 *            with c the latent of a node drawn at random by (seed, step)
 *
 * Initial weights are uniform, drawn by a seed, within bounds that preserve the
 * variance from layer to layer (He et al., ICCV 2015). Biases start at 0, the weight of
 * an innovation at 1. All functions, training included, produce the same bits with
 * every instruction set. Inputs are not scaled here, so learning rates suit values
 * around 1. NaN and Inf spread over the latent and the result. A step changes no
 * weights if its loss, a derivative or the square of a derivative is not finite.
 */
#ifndef COMPRESS_MODELS_AUTOENCODER_H
#define COMPRESS_MODELS_AUTOENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;
struct trib_kernels;
struct trib_autoencoder; /* used by one thread at a time */

enum {
    TRIB_AUTOENCODER_LENGTH_MIN = 31, /* the latent then has one sample per channel */
    TRIB_AUTOENCODER_LENGTH_MAX = 1 << 22,
    TRIB_AUTOENCODER_DECODERS_MAX = 1024,
    TRIB_AUTOENCODER_CHANNELS = 4, /* of the latent */
};

struct trib_autoencoder_opts {
    size_t length; /* elements of v */
    size_t decoders; /* 1: ring; ps: nodes */
    bool innovation;
    float slope; /* of LeakyReLU below 0; 0 means 0.01; 1: linear */
    bool linear; /* decoders without LeakyReLU, with constant biases */
    float rate; /* learning rate; 0 means 1e-3 */
    bool adam; /* Adam (Kingma & Ba; 0.9, 0.999, 1e-8) instead of plain SGD */
    float lambda1, lambda2; /* l1, l2; both 0 means 0.5 */
    uint64_t seed; /* the same on all ranks */
};

/**
 * trib_autoencoder_create - create an autoencoder with weights drawn by the seed.
 *
 * Takes about 1.6 KB per element of `length`.
 * kernels  NULL: the fastest for this CPU
 * errors   TRIB_ERR_INVALID with the range, TRIB_ERR_NO_MEMORY
 * owner    caller; free with trib_autoencoder_destroy, which accepts NULL
 */
trib_status_t trib_autoencoder_create(const struct trib_autoencoder_opts *opts,
                                      const struct trib_kernels *kernels,
                                      struct trib_error *err,
                                      struct trib_autoencoder **out);
void trib_autoencoder_destroy(struct trib_autoencoder *ae);

/** trib_autoencoder_seed - draw the weights with another seed; only before the first
 * step. */
void trib_autoencoder_seed(struct trib_autoencoder *ae, uint64_t seed);

/** trib_autoencoder_latent - return the floats of a latent. */
size_t trib_autoencoder_latent(const struct trib_autoencoder *ae);

/** trib_autoencoder_latent_of - return the floats of a latent for `length` values; 0:
 * too few. */
size_t trib_autoencoder_latent_of(size_t length);

/** trib_autoencoder_encode - encode `length` floats to a latent. */
void trib_autoencoder_encode(struct trib_autoencoder *ae, const float *v,
                             float *latent_out);

/**
 * trib_autoencoder_decode - decode `length` floats from a latent, or from a mean of
 * latents.
 *
 * decoder  index below opts.decoders
 * innovation  `length` floats, or NULL for zeros; ignored without opts.innovation
 */
void trib_autoencoder_decode(struct trib_autoencoder *ae, size_t decoder,
                             const float *latent, const float *innovation,
                             float *v_out);

/* The vectors of n nodes, for one training step. */
struct trib_autoencoder_batch {
    const float *const *v; /* n vectors of `length` floats */
    const float *const *innovation; /* n vectors, if opts.innovation */
    size_t n; /* at least 1; ps: the number of decoders */
    uint32_t step; /* ps: selects the latent */
};

/**
 * trib_autoencoder_train_ring, trib_autoencoder_train_ps - make one step on one batch.
 *
 * returns  the loss before the step
 */
double trib_autoencoder_train_ring(struct trib_autoencoder *ae,
                                   const struct trib_autoencoder_batch *batch);
double trib_autoencoder_train_ps(struct trib_autoencoder *ae,
                                 const struct trib_autoencoder_batch *batch);

/*
 * The ring step, distributed over nodes that know only their own vectors and the means.
 * Each node clears the derivatives (forget) and adds its part for one vector or more.
 * Then the nodes sum trib_autoencoder_shared, and each makes the step. The derivatives
 * in the decoder's weights depend on the means only, so all nodes have them already.
 */
struct trib_autoencoder_part {
    const float *v; /* of this node */
    const float *mean; /* mean of all nodes' v */
    const float *latent; /* mean of all nodes' latents */
    size_t nodes;
};

/** trib_autoencoder_forget - clear the derivatives before a step. */
void trib_autoencoder_forget(struct trib_autoencoder *ae);

/**
 * trib_autoencoder_add_part - add this node's derivatives.
 *
 * returns  the loss, the same on all nodes; if it is not finite, nothing was added
 */
double trib_autoencoder_add_part(struct trib_autoencoder *ae,
                                 const struct trib_autoencoder_part *part);

/**
 * trib_autoencoder_shared - return the floats that the nodes sum in place: derivatives
 * in the encoder's weights.
 *
 * Valid until the next call of another function that trains or imports.
 */
float *trib_autoencoder_shared(struct trib_autoencoder *ae);
size_t trib_autoencoder_shared_floats(const struct trib_autoencoder *ae);

/** trib_autoencoder_step - descend along the mean derivative of `vectors` vectors;
 * return true if done. */
bool trib_autoencoder_step(struct trib_autoencoder *ae, size_t vectors);

/**
 * trib_autoencoder_decode_alone - decode without an innovation; linear decoders omit
 * their constant part.
 *
 * A linear decoder computes D(c) - D(0) by a convolution of 31 taps. So decodes of
 * several latents add up to the decode of their sum, up to rounding.
 */
void trib_autoencoder_decode_alone(struct trib_autoencoder *ae, size_t decoder,
                                   const float *latent, float *v_out);

/**
 * trib_autoencoder_train_own - train one decoder for one step on its own node's vector.
 *
 * The loss is MSE(v, D_k(E(v), s)).
 * returns  the loss before the step
 */
double trib_autoencoder_train_own(struct trib_autoencoder *ae, size_t decoder,
                                  const float *v, const float *innovation);

/** trib_autoencoder_weights - return the number of weights, of encoder and decoders. */
size_t trib_autoencoder_weights(const struct trib_autoencoder *ae);

/**
 * trib_autoencoder_export, trib_autoencoder_import - write and read the weights as
 * bytes, without Adam's state.
 *
 *     | u32 length | u32 decoders | u32 innovation | f32 slope | f32 weights[] |
 *     weights: layers in the order above, each the taps as [out][in] ([in][out] if
 *     transposed), then a bias for each out; after a decoder its innovation weight
 *
 * bytes    trib_autoencoder_bytes
 * errors   TRIB_ERR_MISMATCH if the bytes are not finite weights of this shape; the
 *          weights are then unchanged
 */
size_t trib_autoencoder_bytes(const struct trib_autoencoder *ae);
void trib_autoencoder_export(const struct trib_autoencoder *ae, uint8_t *bytes_out);
trib_status_t trib_autoencoder_import(struct trib_autoencoder *ae, const uint8_t *bytes,
                                      size_t len, struct trib_error *err);

/**
 * trib_autoencoder_save, trib_autoencoder_load - write and read the weights and Adam's
 * state, to resume training.
 *
 *     | as exported | f64 0.9^steps | f64 0.999^steps | f32 means[] | f32 squares[] |
 *
 * bytes    trib_autoencoder_save_bytes
 * errors   as trib_autoencoder_import
 */
size_t trib_autoencoder_save_bytes(const struct trib_autoencoder *ae);
void trib_autoencoder_save(const struct trib_autoencoder *ae, uint8_t *bytes_out);
trib_status_t trib_autoencoder_load(struct trib_autoencoder *ae, const uint8_t *bytes,
                                    size_t len, struct trib_error *err);

#endif
