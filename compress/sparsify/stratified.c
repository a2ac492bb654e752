/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/sparsify/stratified.h"

#include <assert.h>

#include "base/rng.h"
#include "compress/kernels/kernels_scalar_stratified.h"
#include "compress/sparsify/selection.h"

/* Not a rank's stream: all ranks share these random numbers. */
#define STREAM_OF_ALL UINT32_MAX

struct trib_stratified trib_stratified_of(const struct trib_codec *c,
                                  const struct trib_selection *s)
{
    const struct trib_rng rng = {s->key->seed, STREAM_OF_ALL, s->key->step};
    const struct trib_rng_block r = trib_rng_draw4(rng, s->key->index);
    return (struct trib_stratified){
        .n = s->n, .k = trib_selection_k(c, s), .keys = {r.word[0], r.word[1]}};
}

void trib_stratified_positions(const struct trib_kernels *kernels,
                           const struct trib_stratified *s, size_t first, size_t count,
                           uint32_t *positions_out)
{
    assert(s->k >= 1 && s->k <= s->n && s->n <= UINT32_MAX);
    kernels->stratified_positions(s, first, count, positions_out);
}

void trib_stratified_scale(const struct trib_stratified *s, float *values)
{
    const struct stratified_cursor stride = stratified_cursor_at(s, 1);
    struct stratified_cursor c = stratified_cursor_at(s, 0);
    for (size_t i = 0; i < s->k; i++)
        values[i] *= (float)stratified_next_size(&c, s, stride);
}
