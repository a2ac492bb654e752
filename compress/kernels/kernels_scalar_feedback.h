/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Third part of kernels_scalar.h: adjustments of a contribution by feedback rules
 * (pipeline/payload/error_feedback.h).
 */
#ifndef COMPRESS_KERNELS_KERNELS_SCALAR_FEEDBACK_H
#define COMPRESS_KERNELS_KERNELS_SCALAR_FEEDBACK_H

#include "compress/kernels/kernels_scalar_codec.h"

KERNEL float finite_or_0(float v)
{
    return magnitude_of(v) < 0x7f800000u ? v : 0.0f;
}

KERNEL void average_scalar(float *v, const float *x, size_t n, float keep, float take)
{
    for (size_t i = 0; i < n; i++)
        v[i] = keep * finite_or_0(v[i]) + take * x[i];
}

KERNEL void combine_scalar(float *out, const struct trib_combine *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = c->wa * c->a[i] + c->wb * c->b[i];
}

#endif
