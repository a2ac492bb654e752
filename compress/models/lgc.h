/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LGC, learned gradient compression (Abrahamyan, Chen, Bekoulis, Deligiannis: "Learned
 * gradient compression for distributed deep learning", TNNLS 2021; arXiv 2103.08870),
 * as a model of a plan, in two forms: lgc_ring.c and lgc_ps.c. Here is what they share.
 *
 * A chunk moves only `length` elements, or fewer: length is the k = ceil(ratio *
 * n) of a whole chunk. pick=one: those at the positions at which one rank, the chunk's
 * master in this start, has its k largest in magnitude. The master is rank (start +
 * number of chunk) % ranks. It shares the positions, in the order of its values, the
 * largest first: so those are a smooth curve, of which a latent holds more than of
 * values in the order of positions; and the root mean square of its values, by which
 * all are divided before the autoencoder of autoencoder.h, and multiplied behind it.
 * pick=all: each rank shares the positions of its k / ranks largest, in a block of
 * their own, blocks of odd ranks the smallest first; the scale is the mean of theirs. A
 * position that two ranks have is that of the first. So no rank's largest wait for its
 * turn, which costs a network 0.5 to 1 points (docs/codecs.md).
 *
 *     share     | f32 scale | f32 number of positions | f32 position[length] | … |
 *               positions count from the chunk's first element and are below 2^24, so
 *               floats hold them exactly; of pick=all they are 1 more before they are
 *               settled, 0 where a rank has none
 *
 * Three stages, by the number of the start:
 *     1 … dense              elements as they are                              epoch 0
 *     then `train` starts    the values at the positions, exactly; behind each start
 *                            `every` the autoencoder learns, from `sample` chunks, or
 *                            from all of them if that is 0                     epoch 1
 *     then                   what the form makes of them                       epoch 2
 * A chunk of no more elements than a latent has floats is always sent as it is.
 *
 * Gain: an autoencoder that has hardly learned, or meets values as it has never seen,
 * returns more than came in, and error feedback around it diverges. So of a decode d
 * for values v a rank takes g d, g = <v, d> / <d, d>: what is left, v - g d, is never
 * larger than v. A decode that is not finite, or GUARD times as large as v, is refused:
 * then g is 0, and `refused` counts it.
 *
 * A choice of ours: the master changes from start to start. So do two others: learning
 * takes Adam's steps, because few hundred of plain descent do not leave the mean
 * (autoencoder.c); decoder=linear has no LeakyReLU in decoders, so that decodes add.
 *
 * Bias: biased, by as much as the autoencoder errs; no delta is claimed. Elements at
 * other positions come out as 0. With error feedback a rank keeps these, and at the
 * positions what its own contribution was minus what the decoder makes of it alone. All
 * of that is in a result but for lgc:decoder=leaky, whose D(mean of latents) is not the
 * mean of the D(latent).
 * NaN and Inf: a rank that has one in a chunk, be it the master or not, shares a scale
 * of NaN, so the sum of the scales is NaN on all ranks. Then the chunk's k elements
 * come out as NaN everywhere, in epochs 1 and 2 alike (where the master has no element
 * but zeros: the chunk's first element), whatever the words say. Nobody learns from the
 * chunk, and the next start knows nothing of it: residuals are 0 where they would not
 * be finite. A share from the wire that is none (positions outside the chunk) is taken
 * for an empty one.
 *
 * State: the weights, what Adam remembers, and the vectors of the last start if they
 * were not learned from yet: | as trib_autoencoder_save | f32 record[chunks][floats] |.
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
    size_t length, latent; /* of its vectors */
    size_t chunks;
    uint32_t epoch, step;
    float *records; /* of each chunk what is to be learned from */
    size_t record; /* floats: the first is 1 if there is something, else 0 */
    size_t learned; /* chunks in the derivatives that are being exchanged */
    uint64_t decoded, refused; /* decodes of this rank's own values */
    uint8_t *seen; /* a bit for each element of a chunk; 0 */
    float *values, *coded; /* of length */
    uint32_t *positions, *work; /* for trib_select_largest */
    uint64_t *keys; /* of length */
};

/* ---- of a codec and the elements of a chunk -------------------------------------- */

/** trib_lgc_kept - positions of a chunk of n elements. */
size_t trib_lgc_kept(const struct trib_codec *c, size_t n);

/** trib_lgc_latent - floats of a latent where whole chunks have n elements. */
size_t trib_lgc_latent(const struct trib_codec *c, size_t n);

size_t trib_lgc_piece(const struct trib_codec *c);
size_t trib_lgc_unit(const struct trib_codec *c);
const char *trib_lgc_refusal(const struct trib_codec *c);

/* ---- life ------------------------------------------------------------------------ */

/* The needs of each form. */
struct trib_lgc_form {
    size_t bytes; /* of the struct that begins with a trib_lgc */
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

/** trib_lgc_learns - is something learned before this start? */
bool trib_lgc_learns(const struct trib_lgc *g, uint32_t step);

/** trib_lgc_sampled - is it this chunk, by its number, from which is learned behind
 * start `step`? */
bool trib_lgc_sampled(const struct trib_lgc *g, uint32_t step, size_t chunk);

/** trib_lgc_samples - chunks of one start from which is learned, at most. */
size_t trib_lgc_samples(const struct trib_lgc *g);

size_t trib_lgc_tell(const struct trib_model *m, char *text, size_t bytes);
void trib_lgc_mark(const struct trib_model *m, const struct trib_model_chunk *c,
                   const struct trib_sent *sent);

/* ---- chunks ---------------------------------------------------------------------- */

/** trib_lgc_bad - had any rank NaN or Inf in the chunk of this settled share? */
static inline bool trib_lgc_bad(const float *share)
{
    return isnan(share[TRIB_LGC_SCALE]);
}

/** trib_lgc_whole - is such a chunk sent as it is? */
bool trib_lgc_whole(const struct trib_lgc *g, size_t n);
size_t trib_lgc_number(const struct trib_lgc *g, const struct trib_model_chunk *c);
size_t trib_lgc_master(const struct trib_lgc *g, uint32_t step, size_t chunk);
float *trib_lgc_record(struct trib_lgc *g, const struct trib_model_chunk *c);

/** trib_lgc_share - scale and positions, if this rank has any to share; is it the
 * master? A scale of NaN, if x is not finite, of any rank. */
bool trib_lgc_share(struct trib_lgc *g, const struct trib_model_chunk *c,
                    const float *x, float *proposal_out);
void trib_lgc_settle(struct trib_model *m, const struct trib_model_chunk *c,
                     float *share);

/** trib_lgc_gather - the elements at the positions, then zeros; returns how many. */
size_t trib_lgc_gather(const struct trib_lgc *g, const float *share, const float *x,
                       float *values_out);

/** trib_lgc_scatter - y to the positions of x, 0 elsewhere; NaN if trib_lgc_bad. */
void trib_lgc_scatter(const float *share, const float *y, float *x_out, size_t n);

/** trib_lgc_scaled - length values, divided by the scale. */
void trib_lgc_scaled(const struct trib_lgc *g, const float *share, const float *values,
                     float *out);

/**
 * trib_lgc_gain - the g of `length` values v and their decode d, both divided by the
 * scale; counts it.
 *
 * refused_out  true if the decode is not to be used
 */
float trib_lgc_gain(struct trib_lgc *g, const float *v, const float *d,
                    bool *refused_out);

/** trib_lgc_times - x *= factor, n floats. */
void trib_lgc_times(float *x, float factor, size_t n);

/* ---- state ----------------------------------------------------------------------- */

size_t trib_lgc_bytes(const struct trib_model *m);
void trib_lgc_write(const struct trib_model *m, uint8_t *out);
trib_status_t trib_lgc_read(struct trib_model *m, const uint8_t *src,
                            struct trib_error *err);

/* The slots that lgc and lgc_ps have in common. */
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
