/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/models/autoencoder.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "compress/models/autoencoder_parts.h"

enum {
    LATENT = 5, /* layers of the encoder; the rest form a decoder */
    LAYERS = TRIB_AUTOENCODER_LAYERS,
    TAPS = 3,
    STRIDE = 2,
};

/* Channels before and after each layer. */
static const size_t encoder_channels[LATENT + 1] = {1, 64, 128, 256, 64, 4};
static const size_t decoder_channels[LAYERS - LATENT + 1] = {4, 32, 64, 128, 32, 1};

/* ---- shape ---------------------------------------------------------------------- */

static void set_shape(struct trib_autoencoder *ae)
{
    ae->lengths[0] = ae->opts.length;
    for (size_t i = 0; i < LAYERS; i++) {
        const bool decoder = i >= LATENT, last = i == LATENT - 1 || i == LAYERS - 1;
        const size_t *channels =
            decoder ? &decoder_channels[i - LATENT] : &encoder_channels[i];
        ae->layers[i] = (struct trib_layer){
            .transposed = decoder && !last,
            .in = channels[0],
            .out = channels[1],
            .taps = last ? 1 : TAPS,
            .stride = last ? 1 : STRIDE,
            .slope = last || (decoder && ae->opts.linear) ? 1.0f : ae->opts.slope};
        ae->lengths[i + 1] = trib_layer_length(&ae->layers[i], ae->lengths[i]);
        *(decoder ? &ae->decoder_weights : &ae->encoder_weights) +=
            trib_layer_weights(&ae->layers[i]);
    }
    ae->decoder_weights += ae->opts.innovation;
}

size_t trib_autoencoder_weights(const struct trib_autoencoder *ae)
{
    return ae->encoder_weights + ae->opts.decoders * ae->decoder_weights;
}

size_t trib_autoencoder_latent(const struct trib_autoencoder *ae)
{
    return TRIB_AUTOENCODER_CHANNELS * ae->lengths[LATENT];
}

size_t trib_autoencoder_latent_of(size_t length)
{
    for (int i = 0; i < LATENT - 1; i++)
        length = length < TAPS ? 0 : (length - TAPS) / STRIDE + 1;
    return TRIB_AUTOENCODER_CHANNELS * length;
}

static size_t signal_size(const struct trib_autoencoder *ae, size_t layer)
{
    return ae->layers[layer].out * ae->lengths[layer + 1];
}

/* Return the index of a decoder's first weight, in any array laid out like the
 * weights. */
static size_t decoder_at(const struct trib_autoencoder *ae, size_t decoder)
{
    return ae->encoder_weights + decoder * ae->decoder_weights;
}

/* ---- create --------------------------------------------------------------------- */

static trib_status_t check_opts(struct trib_autoencoder_opts *o, struct trib_error *err)
{
    if (o->length < TRIB_AUTOENCODER_LENGTH_MIN ||
        o->length > TRIB_AUTOENCODER_LENGTH_MAX)
        return trib_fail(
            err, TRIB_ERR_INVALID,
            "an autoencoder takes %d to %d values, not %zu: select more or fewer",
            TRIB_AUTOENCODER_LENGTH_MIN, TRIB_AUTOENCODER_LENGTH_MAX, o->length);
    if (o->decoders < 1 || o->decoders > TRIB_AUTOENCODER_DECODERS_MAX)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "an autoencoder has 1 to %d decoders, not %zu",
                         TRIB_AUTOENCODER_DECODERS_MAX, o->decoders);
    o->slope = o->slope == 0 ? 0.01f : o->slope;
    o->rate = o->rate == 0 ? 1e-3f : o->rate;
    if (o->lambda1 == 0 && o->lambda2 == 0)
        o->lambda1 = o->lambda2 = 0.5f;
    if (!(o->slope > 0 && o->slope <= 1))
        return trib_fail(err, TRIB_ERR_INVALID,
                         "the slope must be above 0 and at most 1, not %g",
                         (double)o->slope);
    if (!(o->rate > 0 && isfinite(o->rate)))
        return trib_fail(err, TRIB_ERR_INVALID,
                         "the learning rate must be above 0, not %g", (double)o->rate);
    if (!(o->lambda1 >= 0 && o->lambda2 >= 0 && isfinite(o->lambda1 + o->lambda2)))
        return trib_fail(err, TRIB_ERR_INVALID,
                         "loss weights must be at least 0, not %g and %g",
                         (double)o->lambda1, (double)o->lambda2);
    return TRIB_OK;
}

static float *floats_new(size_t n)
{
    return calloc(n, sizeof(float));
}

static bool allocate(struct trib_autoencoder *ae)
{
    const size_t n = trib_autoencoder_weights(ae), length = ae->opts.length;
    const size_t latents = ae->opts.decoders * trib_autoencoder_latent(ae);
    size_t widest = 0, columns = 0;
    bool ok = true;
    for (size_t i = 0; i < LAYERS; i++) {
        const size_t size = signal_size(ae, i);
        const size_t here = trib_layer_columns(&ae->layers[i], ae->lengths[i]);
        ae->signals[i] = floats_new(size);
        ok = ok && ae->signals[i];
        widest = size > widest ? size : widest;
        columns = here > columns ? here : columns;
    }
    ae->weights = floats_new(n), ae->gradient = floats_new(n);
    ae->mean = floats_new(ae->opts.adam ? n : 1);
    ae->square = floats_new(ae->opts.adam ? n : 1);
    ae->derivative[0] = floats_new(widest), ae->derivative[1] = floats_new(widest);
    ae->columns = floats_new(columns);
    ae->latents = floats_new(latents), ae->dlatents = floats_new(latents);
    ae->target = floats_new(length), ae->result = floats_new(length);
    ae->dresult = floats_new(length);
    ae->raw = floats_new(ae->lengths[LAYERS]);
    ae->taps = floats_new(ae->opts.decoders * TRIB_AUTOENCODER_CHANNELS *
                          TRIB_AUTOENCODER_SPAN);
    if (posix_memalign(&ae->scratch, 64, TRIB_GEMM_SCRATCH))
        ae->scratch = NULL;
    return ok && ae->weights && ae->gradient && ae->mean && ae->square &&
           ae->derivative[0] && ae->derivative[1] && ae->columns && ae->latents &&
           ae->dlatents && ae->target && ae->result && ae->dresult && ae->raw &&
           ae->taps && ae->scratch;
}

/* Draw n uniform weights from index `at`, so that a sum of `terms` products has the
 * variance of one factor after f (He et al., ICCV 2015, eq. 14). */
static void draw(struct trib_autoencoder *ae, size_t at, size_t n, double terms,
                 float slope)
{
    const struct trib_rng rng = {.seed = ae->opts.seed};
    const float bound = (float)sqrt(6 / ((1 + (double)slope * (double)slope) * terms));
    for (size_t i = at; i < at + n; i++) {
        const struct trib_rng_block r = trib_rng_draw4(rng, i / 4);
        ae->weights[i] = bound * ((float)(r.word[i % 4] >> 8) * 0x1p-23f - 1.0f);
    }
}

/* Draw the weights of some layers; biases stay 0. */
static size_t draw_layers(struct trib_autoencoder *ae, size_t first, size_t end,
                          size_t at)
{
    for (size_t i = first; i < end; i++) {
        const struct trib_layer *l = &ae->layers[i];
        const size_t products = l->in * l->taps / (l->transposed ? l->stride : 1);
        draw(ae, at, trib_layer_weights(l) - l->out, (double)products, l->slope);
        at += trib_layer_weights(l);
    }
    return at;
}

/* The innovation's weight is initially 1, since the innovation consists of target
 * values. */
static void draw_weights(struct trib_autoencoder *ae)
{
    ae->changes++;
    draw_layers(ae, 0, LATENT, 0);
    for (size_t k = 0; k < ae->opts.decoders; k++) {
        const size_t end = draw_layers(ae, LATENT, LAYERS, decoder_at(ae, k));
        if (ae->opts.innovation)
            ae->weights[end] = 1;
    }
}

trib_status_t trib_autoencoder_create(const struct trib_autoencoder_opts *opts,
                                      const struct trib_kernels *kernels,
                                      struct trib_error *err,
                                      struct trib_autoencoder **out)
{
    struct trib_autoencoder_opts checked = *opts;
    const trib_status_t status = check_opts(&checked, err);
    *out = NULL;
    if (status != TRIB_OK)
        return status;
    struct trib_autoencoder *ae = calloc(1, sizeof *ae);
    if (ae) {
        ae->opts = checked;
        ae->kernels = kernels ? kernels : trib_kernels_get(NULL);
        ae->mean_left = ae->square_left = 1;
        set_shape(ae);
    }
    if (!ae || !allocate(ae)) {
        trib_autoencoder_destroy(ae);
        return trib_fail(err, TRIB_ERR_NO_MEMORY,
                         "no memory for an autoencoder of %zu values", opts->length);
    }
    draw_weights(ae);
    *out = ae;
    return TRIB_OK;
}

void trib_autoencoder_seed(struct trib_autoencoder *ae, uint64_t seed)
{
    ae->opts.seed = seed;
    draw_weights(ae);
}

void trib_autoencoder_destroy(struct trib_autoencoder *ae)
{
    if (!ae)
        return;
    for (size_t i = 0; i < LAYERS; i++)
        free(ae->signals[i]);
    free(ae->weights), free(ae->gradient), free(ae->mean), free(ae->square);
    free(ae->derivative[0]), free(ae->derivative[1]), free(ae->columns),
        free(ae->scratch);
    free(ae->latents), free(ae->dlatents);
    free(ae->target), free(ae->result), free(ae->dresult);
    free(ae->raw), free(ae->taps);
    free(ae);
}

/* ---- forward and backward ------------------------------------------------------- */

static struct trib_layer_run run_of(const struct trib_autoencoder *ae, size_t layer,
                                    const float *weights, const float *x)
{
    return (struct trib_layer_run){.layer = &ae->layers[layer],
                                   .kernels = ae->kernels,
                                   .weights = weights,
                                   .x = x,
                                   .length = ae->lengths[layer],
                                   .y = ae->signals[layer],
                                   .columns = ae->columns,
                                   .scratch = ae->scratch};
}

/* Apply layers first … end - 1, whose weights start at index `at`, to x. */
static const float *forward(struct trib_autoencoder *ae, size_t first, size_t end,
                            size_t at, const float *x)
{
    for (size_t i = first; i < end; i++) {
        const struct trib_layer_run r = run_of(ae, i, ae->weights + at, x);
        trib_layer_forward(&r);
        x = ae->signals[i];
        at += trib_layer_weights(&ae->layers[i]);
    }
    return x;
}

/* Backpropagate through the same layers from derivative[0]; dx: NULL, or the
 * derivatives in x. */
static void backward(struct trib_autoencoder *ae, size_t first, size_t end, size_t at,
                     const float *x, float *dx)
{
    for (size_t i = first; i < end; i++)
        at += trib_layer_weights(&ae->layers[i]);
    for (size_t i = end, turn = 0; i-- > first; turn ^= 1) {
        at -= trib_layer_weights(&ae->layers[i]);
        const struct trib_layer_run r =
            run_of(ae, i, ae->weights + at, i > first ? ae->signals[i - 1] : x);
        trib_layer_backward(&r, ae->derivative[turn],
                            i > first ? ae->derivative[turn ^ 1] : dx,
                            ae->gradient + at);
    }
}

static const float *encoded(struct trib_autoencoder *ae, const float *v)
{
    return forward(ae, 0, LATENT, 0, v);
}

void trib_autoencoder_encode(struct trib_autoencoder *ae, const float *v,
                             float *latent_out)
{
    memcpy(latent_out, encoded(ae, v),
           trib_autoencoder_latent(ae) * sizeof *latent_out);
}

/* after `encoded` of v */
static void encode_backward(struct trib_autoencoder *ae, const float *v,
                            const float *dlatent)
{
    memcpy(ae->derivative[0], dlatent, trib_autoencoder_latent(ae) * sizeof *dlatent);
    backward(ae, 0, LATENT, 0, v, NULL);
}

static float innovation_weight(const struct trib_autoencoder *ae, size_t decoder)
{
    assert(ae->opts.innovation && decoder < ae->opts.decoders);
    return ae->weights[decoder_at(ae, decoder) + ae->decoder_weights - 1];
}

const float *trib_autoencoder_raw(struct trib_autoencoder *ae, size_t decoder,
                                  const float *latent)
{
    assert(decoder < ae->opts.decoders);
    return forward(ae, LATENT, LAYERS, decoder_at(ae, decoder), latent);
}

void trib_autoencoder_decode(struct trib_autoencoder *ae, size_t decoder,
                             const float *latent, const float *innovation, float *v_out)
{
    const size_t length = ae->opts.length;
    const float *x = trib_autoencoder_raw(ae, decoder, latent);
    trib_resize_forward(x, ae->lengths[LAYERS], v_out, length);
    if (!ae->opts.innovation || !innovation)
        return;
    const float weight = innovation_weight(ae, decoder);
    for (size_t i = 0; i < length; i++)
        v_out[i] += weight * innovation[i];
}

/* after trib_autoencoder_decode, from dresult; dlatent is overwritten */
static void decode_backward(struct trib_autoencoder *ae, size_t decoder,
                            const float *latent, const float *innovation,
                            float *dlatent)
{
    const size_t at = decoder_at(ae, decoder), length = ae->opts.length;
    if (ae->opts.innovation) {
        double sum = 0;
        assert(innovation);
        for (size_t i = 0; i < length; i++)
            sum += (double)ae->dresult[i] * (double)innovation[i];
        ae->gradient[at + ae->decoder_weights - 1] += (float)sum;
    }
    trib_resize_backward(ae->derivative[0], ae->lengths[LAYERS], ae->dresult, length);
    backward(ae, LATENT, LAYERS, at, latent, dlatent);
}

/* ---- training ------------------------------------------------------------------- */

/* Return the MSE of result and target; set dresult to its derivatives, times weight. */
static double compare(struct trib_autoencoder *ae, const float *target, float weight)
{
    const size_t n = ae->opts.length;
    const float factor = weight * 2.0f / (float)n;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const float off = ae->result[i] - target[i];
        sum += (double)off * (double)off;
        ae->dresult[i] = factor * off;
    }
    return sum / (double)n;
}

static void step_sgd(struct trib_autoencoder *ae, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ae->weights[i] -= ae->opts.rate * ae->gradient[i];
}

static void step_adam(struct trib_autoencoder *ae, size_t n)
{
    ae->mean_left *= 0.9, ae->square_left *= 0.999;
    const float rate = ae->opts.rate / (float)(1 - ae->mean_left);
    const float whole = (float)(1 / (1 - ae->square_left));
    for (size_t i = 0; i < n; i++) {
        const float g = ae->gradient[i];
        ae->mean[i] = 0.9f * ae->mean[i] + 0.1f * g;
        ae->square[i] = 0.999f * ae->square[i] + 0.001f * (g * g);
        ae->weights[i] -= rate * ae->mean[i] / (sqrtf(ae->square[i] * whole) + 1e-8f);
    }
}

/* Keep the biases of linear decoders constant. */
static void hold_biases(struct trib_autoencoder *ae)
{
    for (size_t k = 0; k < ae->opts.decoders && ae->opts.linear; k++) {
        size_t at = decoder_at(ae, k);
        for (size_t i = LATENT; i < LAYERS; i++) {
            const size_t out = ae->layers[i].out;
            at += trib_layer_weights(&ae->layers[i]);
            memset(ae->gradient + at - out, 0, out * sizeof *ae->gradient);
        }
    }
}

/* Descend along the gradient, unless its squares may not be finite; return true if
 * done. */
static bool step(struct trib_autoencoder *ae)
{
    static const uint32_t square_finite = 0x5f000000u; /* 2^63 */
    const size_t n = trib_autoencoder_weights(ae);
    if (ae->kernels->max_magnitude(ae->gradient, n) >= square_finite)
        return false;
    hold_biases(ae);
    ae->changes++;
    if (ae->opts.adam)
        step_adam(ae, n);
    else
        step_sgd(ae, n);
    return true;
}

void trib_autoencoder_forget(struct trib_autoencoder *ae)
{
    memset(ae->gradient, 0, trib_autoencoder_weights(ae) * sizeof *ae->gradient);
}

static void add(float *sum, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += x[i];
}

static void scale(float *x, float factor, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= factor;
}

/* Compute the loss from the means only. If it is finite, also compute the derivatives
 * in the decoder and, to dlatents, in the latent of one of n nodes. */
static double decoder_part(struct trib_autoencoder *ae, const float *mean,
                           const float *latent, size_t n)
{
    trib_autoencoder_decode(ae, 0, latent, NULL, ae->result);
    const double loss = compare(ae, mean, 1.0f);
    if (!isfinite(loss))
        return loss;
    decode_backward(ae, 0, latent, NULL, ae->dlatents);
    scale(ae->dlatents, 1.0f / (float)n, trib_autoencoder_latent(ae));
    return loss;
}

/* after decoder_part */
static void encoder_part(struct trib_autoencoder *ae, const float *v)
{
    encoded(ae, v); /* again, since signals hold one vector at a time */
    encode_backward(ae, v, ae->dlatents);
}

double trib_autoencoder_train_ring(struct trib_autoencoder *ae,
                                   const struct trib_autoencoder_batch *batch)
{
    const size_t length = ae->opts.length, latent = trib_autoencoder_latent(ae);
    const float share = 1.0f / (float)batch->n;
    assert(batch->n && ae->opts.decoders == 1 && !ae->opts.innovation);
    trib_autoencoder_forget(ae);
    memset(ae->target, 0, length * sizeof *ae->target);
    memset(ae->latents, 0, latent * sizeof *ae->latents);
    for (size_t k = 0; k < batch->n; k++) {
        add(ae->target, batch->v[k], length);
        add(ae->latents, encoded(ae, batch->v[k]), latent);
    }
    scale(ae->target, share, length);
    scale(ae->latents, share, latent);
    const double loss = decoder_part(ae, ae->target, ae->latents, batch->n);
    if (!isfinite(loss))
        return loss;
    for (size_t k = 0; k < batch->n; k++)
        encoder_part(ae, batch->v[k]);
    (void)step(ae);
    return loss;
}

double trib_autoencoder_add_part(struct trib_autoencoder *ae,
                                 const struct trib_autoencoder_part *part)
{
    assert(part->nodes && ae->opts.decoders == 1 && !ae->opts.innovation);
    const double loss = decoder_part(ae, part->mean, part->latent, part->nodes);
    if (isfinite(loss))
        encoder_part(ae, part->v);
    return loss;
}

float *trib_autoencoder_shared(struct trib_autoencoder *ae)
{
    return ae->gradient;
}

size_t trib_autoencoder_shared_floats(const struct trib_autoencoder *ae)
{
    return ae->encoder_weights;
}

bool trib_autoencoder_step(struct trib_autoencoder *ae, size_t vectors)
{
    scale(ae->gradient, 1.0f / (float)vectors, trib_autoencoder_weights(ae));
    return step(ae);
}

/* Return lambda2 times the MSE summed over ordered pairs of latents; add its
 * derivatives to dlatents. */
static double latents_apart(struct trib_autoencoder *ae, size_t n)
{
    const size_t latent = trib_autoencoder_latent(ae);
    const float factor = ae->opts.lambda2 * 4.0f / (float)latent;
    double loss = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            const float *a = ae->latents + i * latent, *b = ae->latents + j * latent;
            float *d = ae->dlatents + i * latent;
            for (size_t q = 0; q < latent; q++) {
                const float off = a[q] - b[q];
                loss += (double)off * (double)off;
                d[q] += factor * off;
            }
        }
    }
    return (double)ae->opts.lambda2 * loss / (double)latent;
}

double trib_autoencoder_train_ps(struct trib_autoencoder *ae,
                                 const struct trib_autoencoder_batch *batch)
{
    const size_t n = batch->n, latent = trib_autoencoder_latent(ae);
    const struct trib_rng rng = {
        .seed = ae->opts.seed, .stream = 1, .step = batch->step};
    const size_t drawn = (size_t)(((uint64_t)trib_rng_draw4(rng, 0).word[0] * n) >> 32);
    const float *c = ae->latents + drawn * latent;
    float *one = ae->target; /* derivatives of c; a latent is shorter than a vector */
    double loss = 0;
    assert(n && n == ae->opts.decoders);
    trib_autoencoder_forget(ae);
    for (size_t k = 0; k < n; k++)
        trib_autoencoder_encode(ae, batch->v[k], ae->latents + k * latent);
    memset(ae->dlatents, 0, n * latent * sizeof *ae->dlatents);
    for (size_t k = 0; k < n; k++) {
        const float *innovation = ae->opts.innovation ? batch->innovation[k] : NULL;
        trib_autoencoder_decode(ae, k, c, innovation, ae->result);
        loss += (double)ae->opts.lambda1 * compare(ae, batch->v[k], ae->opts.lambda1);
        decode_backward(ae, k, c, innovation, one);
        add(ae->dlatents + drawn * latent, one, latent);
    }
    loss += latents_apart(ae, n);
    for (size_t k = 0; k < n; k++) {
        encoded(ae, batch->v[k]);
        encode_backward(ae, batch->v[k], ae->dlatents + k * latent);
    }
    if (isfinite(loss))
        (void)step(ae);
    return loss;
}

double trib_autoencoder_train_own(struct trib_autoencoder *ae, size_t decoder,
                                  const float *v, const float *innovation)
{
    trib_autoencoder_forget(ae);
    trib_autoencoder_encode(ae, v, ae->latents);
    trib_autoencoder_decode(ae, decoder, ae->latents, innovation, ae->result);
    const double loss = compare(ae, v, 1.0f);
    decode_backward(ae, decoder, ae->latents, innovation, ae->dlatents);
    encode_backward(ae, v, ae->dlatents); /* signals still belong to v */
    if (isfinite(loss))
        (void)step(ae);
    return loss;
}
