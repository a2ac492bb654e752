/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linear decoders of an autoencoder. The layers of a linear decoder equal one
 * transposed convolution of stride 16. Its 31 taps for each latent channel are the
 * layers' response to a single sample. This takes a thousandth of the work.
 */
#include <assert.h>
#include <string.h>

#include "compress/kernels/kernels.h"
#include "compress/models/autoencoder_parts.h"

enum {
    CHANNELS = TRIB_AUTOENCODER_CHANNELS,
    SPAN = TRIB_AUTOENCODER_SPAN,
    STRIDE = TRIB_AUTOENCODER_STRIDE,
};

static float *taps_of(const struct trib_autoencoder *ae, size_t decoder, size_t channel)
{
    return ae->taps + (decoder * CHANNELS + channel) * SPAN;
}

/* Compute the taps of one decoder: D(one sample of a channel) - D(0). */
static void find_taps(struct trib_autoencoder *ae, size_t decoder)
{
    const size_t latent = trib_autoencoder_latent(ae), samples = latent / CHANNELS;
    float nothing[SPAN];

    memset(ae->dlatents, 0, latent * sizeof *ae->dlatents);
    memcpy(nothing, trib_autoencoder_raw(ae, decoder, ae->dlatents), sizeof nothing);
    for (size_t c = 0; c < CHANNELS; c++) {
        ae->dlatents[c * samples] = 1.0f;
        const float *raw = trib_autoencoder_raw(ae, decoder, ae->dlatents);
        for (size_t t = 0; t < SPAN; t++)
            taps_of(ae, decoder, c)[t] = raw[t] - nothing[t];
        ae->dlatents[c * samples] = 0.0f;
    }
}

static void refresh(struct trib_autoencoder *ae)
{
    if (ae->taps_at == ae->changes)
        return;
    for (size_t k = 0; k < ae->opts.decoders; k++)
        find_taps(ae, k);
    ae->taps_at = ae->changes;
}

void trib_autoencoder_decode_alone(struct trib_autoencoder *ae, size_t decoder,
                                   const float *latent, float *v_out)
{
    const size_t samples = trib_autoencoder_latent(ae) / CHANNELS;
    const size_t length = ae->lengths[TRIB_AUTOENCODER_LAYERS];

    if (!ae->opts.linear) {
        trib_autoencoder_decode(ae, decoder, latent, NULL, v_out);
        return;
    }
    assert(length == STRIDE * (samples - 1) + SPAN && decoder < ae->opts.decoders);
    refresh(ae);
    memset(ae->raw, 0, length * sizeof *ae->raw);
    for (size_t c = 0; c < CHANNELS; c++)
        for (size_t i = 0; i < samples; i++)
            ae->kernels->axpy_f32(ae->raw + STRIDE * i, taps_of(ae, decoder, c),
                                  latent[c * samples + i], SPAN);
    trib_resize_forward(ae->raw, length, v_out, ae->opts.length);
}
