/* SPDX-License-Identifier: BSD-3-Clause */
/* Stages that do nothing, or only name what quantisers and sparse blocks do. */
#include "compress/stages.h"

#include <math.h>

const struct trib_transform trib_transform_none = {.name = "none"};
const struct trib_pack trib_pack_raw = {.name = "raw"};
const struct trib_pack trib_pack_bits = {.name = "bits"};
const struct trib_pack trib_pack_index_gaps = {.name = "index_gaps"};
const struct trib_pack trib_pack_stratified = {.name = "stratified"};

/* An element x below the first of s levels has mean squared error x / s - x^2; above
 * it, the error relative to x^2 is smaller. So the worst bucket has one element of 1,
 * which is exact, and bucket - 1 elements of equal x: w = max (bucket - 1) (x / s -
 * x^2) / (1 + (bucket - 1) x^2). */
double trib_grid_error(double bucket, double steps)
{
    return (sqrt(1 + (bucket - 1) / (steps * steps)) - 1) / 2;
}

double trib_delta_none(const struct trib_codec *c)
{
    (void)c;
    return 0;
}

double trib_delta_exact(const struct trib_codec *c)
{
    (void)c;
    return 1;
}

double trib_quantise_delta(const struct trib_codec *c)
{
    const struct trib_quantise *q = c->stages.quantise;

    if (q->delta)
        return q->delta(c);
    const double w = q->error(c);
    return w < 1 ? 1 / (1 - w) : 0;
}
