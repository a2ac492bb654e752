/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LGC, learned gradient compression (Abrahamyan, Chen, Bekoulis, Deligiannis: "Learned
 * gradient compression for distributed deep learning", TNNLS 2021; arXiv 2103.08870),
 * as a model of a plan in two forms: lgc_ring.c and lgc_ps.c. This header declares
 * their common part.
 *
 * A chunk moves at most `length` elements, with length = k = ceil(ratio * n) of a whole
 * chunk. With pick=one these are at the positions of the k largest magnitudes of one
 * rank: the chunk's master in this start, rank (start + chunk index) % ranks. The
 * master shares the positions in the order of its values, the largest first, so that
 * the values form a smooth curve, which a latent approximates better than values in the
 * order of positions. It also shares the root mean square of its values. All ranks
 * divide by it before the autoencoder (autoencoder.h) and multiply by it afterwards.
 * With pick=all each rank shares the positions of its k / ranks largest, in a separate
 * block; odd ranks list the smallest first. The scale is the mean of the ranks' scales.
 * A position chosen by two ranks counts for the first. So no rank's largest values wait
 * for the rank's turn, which costs a network 0.5 to 1 points (docs/codecs.md).
 *
 *     share     | f32 scale | f32 number of positions | f32 position[length] | … |
 *               positions count from the chunk's first element and are below 2^24, so
 *               floats represent them exactly; with pick=all they are 1 larger before
 *               trib_lgc_settle, and 0 where a rank has none
 *
 * Three stages, by the number of the start:
 *     1 … dense              elements unchanged                               epoch 0
 *     then `train` starts    the values at the positions, exactly; after each
 *                            `every`-th start the autoencoder learns, from `sample`
 *                            chunks, or from all of them if that is 0         epoch 1
 *     then                   the encoding of the form                         epoch 2
 * A chunk with at most as many elements as a latent has floats is always sent
 * unchanged.
 *
 * Gain: an autoencoder with little training, or with unfamiliar input, returns more
 * than its input, and error feedback around it diverges. So for a decode d of values v
 * a rank uses g d, g = <v, d> / <d, d>: the residual v - g d is never larger than v. A
 * decode that is not finite, or GUARD times as large as v, is refused: g is then 0, and
 * `refused` counts it.
 *
 * Differences from the paper: the master changes from start to start. Training uses
 * Adam, because a few hundred steps of plain descent do not leave the mean
 * (autoencoder.c). decoder=linear has no LeakyReLU in decoders, so that decodes add.
 *
 * Bias: biased, by the error of the autoencoder; no delta is guaranteed. Elements at
 * other positions decode to 0. With error feedback a rank keeps these and, at the
 * positions, its contribution minus the decode of its contribution alone. The results
 * contain exactly these decodes, except for lgc:decoder=leaky, whose D(mean of latents)
 * is not the mean of the D(latent).
 *
 * NaN and Inf: a rank with either in a chunk, master or not, shares a scale of NaN, so
 * the sum of the scales is NaN on all ranks. The chunk's k elements then decode to NaN
 * everywhere, in epochs 1 and 2, whatever the encoded chunks contain. (If the master
 * has only zeros, the chunk's first element becomes NaN.) No rank learns from the
 * chunk, and the next start is not affected: residuals that would not be finite become
 * 0. An invalid share from the wire (positions outside the chunk) counts as an empty
 * one.
 *
 * State: the weights, Adam's state, and the vectors of the last start unless already
 * learned: | as trib_autoencoder_save | f32 record[chunks][floats] |.
 */
#ifndef COMPRESS_MODELS_LGC_H
#define COMPRESS_MODELS_LGC_H

#include <math.h>

#include "compress/codec.h"
#include "compress/models/autoencoder.h"
#include "compress/models/model_ops.h"

enum { TRIB_LGC_PLAIN, TRIB_LGC_TRAINING, TRIB_LGC_CODED }; /* epochs */
enum { TRIB_LGC_SCALE, TRIB_LGC_COUNT, TRIB_LGC_POSITIONS }; /* floats of a share */

struct trib_lgc {
    struct trib_model base;
    struct trib_autoencoder *ae;
    size_t length, latent; /* of the autoencoder's vectors */
    size_t chunks;
    uint32_t epoch, step;
    float *records; /* data of each chunk to learn from */
    size_t record; /* floats; the first is 1 if the record is valid, else 0 */
    size_t learned; /* chunks in the derivatives being exchanged */
    uint64_t decoded, refused; /* decodes of this rank's own values */
    uint8_t *seen; /* one bit per element of a chunk; cleared after use */
    float *values, *coded; /* of length */
    uint32_t *positions, *work; /* for trib_select_largest */
    uint64_t *keys; /* of length */
};

/* ---- sizes, from the codec and the elements of a chunk --------------------------- */

/** trib_lgc_kept - return the number of positions of a chunk of n elements. */
size_t trib_lgc_kept(const struct trib_codec *c, size_t n);

/** trib_lgc_latent - return the floats of a latent if whole chunks have n elements. */
size_t trib_lgc_latent(const struct trib_codec *c, size_t n);

size_t trib_lgc_piece(const struct trib_codec *c);
size_t trib_lgc_unit(const struct trib_codec *c);
const char *trib_lgc_refusal(const struct trib_codec *c);

/* ---- create and destroy ---------------------------------------------------------- */

/* Sizes that depend on the form. */
struct trib_lgc_form {
    size_t bytes; /* of the struct that starts with a trib_lgc */
    size_t record;
    size_t decoders;
    bool innovation;
};

trib_status_t trib_lgc_create(const struct trib_codec *c,
                              const struct trib_model_opts *opts,
                              const struct trib_lgc_form *form, struct trib_error *err,
                              struct trib_lgc **out);
void trib_lgc_destroy(struct trib_model *m);
void trib_lgc_seed(struct trib_model *m);
void trib_lgc_begin(struct trib_model *m, uint32_t step);
uint32_t trib_lgc_epoch(const struct trib_model *m);
bool trib_lgc_learning(const struct trib_model *m);

/** trib_lgc_learns - return true if the model learns before this start. */
bool trib_lgc_learns(const struct trib_lgc *g, uint32_t step);

/** trib_lgc_sampled - return true if the model learns from this chunk (index) after
 * start `step`. */
bool trib_lgc_sampled(const struct trib_lgc *g, uint32_t step, size_t chunk);

/** trib_lgc_samples - return the most chunks of one start to learn from. */
size_t trib_lgc_samples(const struct trib_lgc *g);

size_t trib_lgc_tell(const struct trib_model *m, char *text, size_t bytes);
void trib_lgc_mark(const struct trib_model *m, const struct trib_model_chunk *c,
                   const struct trib_sent *sent);

/* ---- chunks ---------------------------------------------------------------------- */

/** trib_lgc_bad - return true if any rank had NaN or Inf in the chunk of this settled
 * share. */
static inline bool trib_lgc_bad(const float *share)
{
    return isnan(share[TRIB_LGC_SCALE]);
}

/** trib_lgc_whole - return true if a chunk of n elements is sent unchanged. */
bool trib_lgc_whole(const struct trib_lgc *g, size_t n);
size_t trib_lgc_number(const struct trib_lgc *g, const struct trib_model_chunk *c);
size_t trib_lgc_master(const struct trib_lgc *g, uint32_t step, size_t chunk);
float *trib_lgc_record(struct trib_lgc *g, const struct trib_model_chunk *c);

/**
 * trib_lgc_share - write scale and positions if this rank has any to share; return true
 * if it is the master.
 *
 * The scale is NaN, on any rank, if x is not finite.
 */
bool trib_lgc_share(struct trib_lgc *g, const struct trib_model_chunk *c,
                    const float *x, float *proposal_out);
void trib_lgc_settle(struct trib_model *m, const struct trib_model_chunk *c,
                     float *share);

/** trib_lgc_gather - write the elements at the positions, then zeros; return their
 * number. */
size_t trib_lgc_gather(const struct trib_lgc *g, const float *share, const float *x,
                       float *values_out);

/** trib_lgc_scatter - write y to the positions in x_out, 0 elsewhere; NaN if
 * trib_lgc_bad. */
void trib_lgc_scatter(const float *share, const float *y, float *x_out, size_t n);

/** trib_lgc_scaled - divide `length` values by the scale. */
void trib_lgc_scaled(const struct trib_lgc *g, const float *share, const float *values,
                     float *out);

/**
 * trib_lgc_gain - return the gain g for `length` values v and their decode d, both
 * divided by the scale.
 *
 * Counts decodes and refusals.
 * refused_out  true if the decode must not be used
 */
float trib_lgc_gain(struct trib_lgc *g, const float *v, const float *d,
                    bool *refused_out);

/** trib_lgc_times - multiply n floats of x by factor. */
void trib_lgc_times(float *x, float factor, size_t n);

/* ---- state ----------------------------------------------------------------------- */

size_t trib_lgc_bytes(const struct trib_model *m);
void trib_lgc_write(const struct trib_model *m, uint8_t *out);
trib_status_t trib_lgc_read(struct trib_model *m, const uint8_t *src,
                            struct trib_error *err);

/* Operations shared by lgc and lgc_ps. */
#define TRIB_LGC_PARAMS \
    TRIB_PARAM_BIT(RATIO) | TRIB_PARAM_BIT(DENSE) | TRIB_PARAM_BIT(TRAIN) | \
        TRIB_PARAM_BIT(RATE) | TRIB_PARAM_BIT(PICK) | TRIB_PARAM_BIT(DECODER) | \
        TRIB_PARAM_BIT(EVERY) | TRIB_PARAM_BIT(SAMPLE)
#define TRIB_LGC_SLOTS \
    .ratio = 0.01, .train = 300, .piece = trib_lgc_piece, .unit = trib_lgc_unit, \
    .seed = trib_lgc_seed, .begin = trib_lgc_begin, .epoch = trib_lgc_epoch, \
    .learning = trib_lgc_learning, .settle = trib_lgc_settle, .bytes = trib_lgc_bytes, \
    .write = trib_lgc_write, .read = trib_lgc_read, .tell = trib_lgc_tell, \
    .mark = trib_lgc_mark, .refusal = trib_lgc_refusal

#endif
