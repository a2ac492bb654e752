/* SPDX-License-Identifier: BSD-3-Clause */
/* Serialisation of an autoencoder: weights for other ranks, and the full training
 * state. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "compress/kernels/kernels.h"
#include "compress/models/autoencoder_parts.h"

struct head {
    uint32_t length;
    uint32_t decoders;
    uint32_t innovation; /* plus 2 if decoders are linear */
    float slope;
};
_Static_assert(sizeof(struct head) == 16, "no padding: written as raw bytes");

static struct head head_of(const struct trib_autoencoder *ae)
{
    return (struct head){(uint32_t)ae->opts.length, (uint32_t)ae->opts.decoders,
                         ae->opts.innovation + 2u * ae->opts.linear, ae->opts.slope};
}

size_t trib_autoencoder_bytes(const struct trib_autoencoder *ae)
{
    return sizeof(struct head) + trib_autoencoder_weights(ae) * sizeof(float);
}

void trib_autoencoder_export(const struct trib_autoencoder *ae, uint8_t *bytes_out)
{
    const struct head head = head_of(ae);
    memcpy(bytes_out, &head, sizeof head);
    memcpy(bytes_out + sizeof head, ae->weights,
           trib_autoencoder_weights(ae) * sizeof(float));
}

static bool all_finite(const struct trib_autoencoder *ae, const float *x, size_t n)
{
    return ae->kernels->max_magnitude(x, n) < 0x7f800000u;
}

static bool same_shape(const struct head *a, const struct head *b)
{
    return a->length == b->length && a->decoders == b->decoders &&
           a->innovation == b->innovation && a->slope == b->slope;
}

trib_status_t trib_autoencoder_import(struct trib_autoencoder *ae, const uint8_t *bytes,
                                      size_t len, struct trib_error *err)
{
    const struct head own = head_of(ae);
    const size_t n = trib_autoencoder_weights(ae);
    struct head head = {0};
    memcpy(&head, bytes, len < sizeof head ? len : sizeof head);
    if (len != trib_autoencoder_bytes(ae) || !same_shape(&head, &own))
        return trib_fail(
            err, TRIB_ERR_MISMATCH,
            "%zu bytes are not the weights of an autoencoder of %u values, %u "
            "%sdecoders%s, slope %g",
            len, own.length, own.decoders, ae->opts.linear ? "linear " : "",
            ae->opts.innovation ? " with innovation" : "", (double)own.slope);
    /* via the gradient, which is aligned and currently unused */
    memcpy(ae->gradient, bytes + sizeof own, n * sizeof(float));
    if (!all_finite(ae, ae->gradient, n))
        return trib_fail(err, TRIB_ERR_MISMATCH,
                         "the weights of an autoencoder are not finite");
    memcpy(ae->weights, ae->gradient, n * sizeof(float));
    ae->changes++;
    return TRIB_OK;
}

/* Adam's state: two numbers, and two floats per weight. */
static size_t memory_bytes(const struct trib_autoencoder *ae)
{
    const size_t n = ae->opts.adam ? trib_autoencoder_weights(ae) : 0;
    return 2 * sizeof(double) + 2 * n * sizeof(float);
}

size_t trib_autoencoder_save_bytes(const struct trib_autoencoder *ae)
{
    return trib_autoencoder_bytes(ae) + memory_bytes(ae);
}

void trib_autoencoder_save(const struct trib_autoencoder *ae, uint8_t *bytes_out)
{
    const double left[2] = {ae->mean_left, ae->square_left};
    const size_t n = ae->opts.adam ? trib_autoencoder_weights(ae) * sizeof(float) : 0;
    uint8_t *at = bytes_out + trib_autoencoder_bytes(ae);
    trib_autoencoder_export(ae, bytes_out);
    memcpy(at, left, sizeof left);
    memcpy(at + sizeof left, ae->mean, n);
    memcpy(at + sizeof left + n, ae->square, n);
}

static bool memory_valid(const struct trib_autoencoder *ae, const uint8_t *memory)
{
    const size_t n = ae->opts.adam ? trib_autoencoder_weights(ae) : 0;
    double left[2];
    memcpy(left, memory, sizeof left);
    bool valid = left[0] >= 0 && left[0] <= 1 && left[1] >= 0 && left[1] <= 1;
    for (size_t i = 0; i < 2 * n; i++) {
        float x;
        memcpy(&x, memory + sizeof left + i * sizeof x, sizeof x);
        valid = valid && isfinite(x) && (i < n || x >= 0);
    }
    return valid;
}

trib_status_t trib_autoencoder_load(struct trib_autoencoder *ae, const uint8_t *bytes,
                                    size_t len, struct trib_error *err)
{
    const size_t n = ae->opts.adam ? trib_autoencoder_weights(ae) * sizeof(float) : 0;
    const size_t weights = trib_autoencoder_bytes(ae);
    if (len != trib_autoencoder_save_bytes(ae))
        return trib_fail(err, TRIB_ERR_MISMATCH,
                         "a saved autoencoder has %zu bytes, not %zu",
                         trib_autoencoder_save_bytes(ae), len);
    if (!memory_valid(ae, bytes + weights))
        return trib_fail(err, TRIB_ERR_MISMATCH,
                         "the state of an optimizer is damaged");
    const trib_status_t status = trib_autoencoder_import(ae, bytes, weights, err);
    if (status != TRIB_OK)
        return status;
    const uint8_t *at = bytes + weights;
    memcpy(&ae->mean_left, at, sizeof ae->mean_left);
    memcpy(&ae->square_left, at + sizeof(double), sizeof ae->square_left);
    memcpy(ae->mean, at + 2 * sizeof(double), n);
    memcpy(ae->square, at + 2 * sizeof(double) + n, n);
    return TRIB_OK;
}
