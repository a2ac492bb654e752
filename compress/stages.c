/* SPDX-License-Identifier: BSD-3-Clause */
/* Stages that do nothing, or that are names of what quantisers and sparse blocks do. */
#include "compress/stages.h"

const struct trib_transform trib_transform_none = {.name = "none"};
const struct trib_pack trib_pack_raw = {.name = "raw"};
const struct trib_pack trib_pack_bits = {.name = "bits"};
const struct trib_pack trib_pack_index_gaps = {.name = "index_gaps"};
const struct trib_pack trib_pack_stratified = {.name = "stratified"};

double trib_quantise_delta(const struct trib_codec *c)
{
    const struct trib_quantise *q = c->stages.quantise;

    if (q->delta)
        return q->delta(c);
    const double w = q->error(c);
    return w < 1 ? 1 / (1 - w) : 0;
}
