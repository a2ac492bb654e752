/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/strata.h"

#include <assert.h>

#include "base/rng.h"
#include "compress/selection.h"

/* No rank's: these numbers belong to all of them. */
#define STREAM_OF_ALL UINT32_MAX

struct trib_strata trib_strata_of(const struct trib_codec *c, const struct trib_selection *s)
{
    const struct trib_rng rng = {s->key->seed, STREAM_OF_ALL, s->key->step};
    const struct trib_rng_block r = trib_rng_draw4(rng, s->key->index);
    return (struct trib_strata){
        .n = s->n, .k = trib_selection_k(c, s->n), .keys = {r.word[0], r.word[1]}};
}

/* Where stratum j begins, and the remainder of j n / k, from which the next follows by
 * additions. */
struct cursor {
    uint64_t at;
    uint64_t left;
    uint64_t whole;
    uint64_t rest;
};

static struct cursor cursor_at(const struct trib_strata *s, size_t j)
{
    const uint64_t jn = (uint64_t)j * s->n;
    assert(s->k >= 1 && s->k <= s->n && s->n <= UINT32_MAX);
    return (struct cursor){jn / s->k, jn % s->k, s->n / s->k, s->n % s->k};
}

/* The size of the stratum at the cursor, which goes on to the next. */
static uint64_t next_size(struct cursor *c, uint64_t k)
{
    c->left += c->rest;
    const uint64_t carry = c->left >= k, size = c->whole + carry;
    c->left -= carry ? k : 0;
    c->at += size;
    return size;
}

static uint32_t hash(uint32_t j, const uint32_t keys[2])
{
    uint32_t h = j * 0x9e3779b9u + keys[0];
    h ^= h >> 16;
    h *= 0x7feb352du;
    h ^= h >> 15;
    h += keys[1];
    h *= 0x846ca68bu;
    return h ^ h >> 16;
}

void trib_strata_positions(const struct trib_strata *s, size_t first, size_t count,
                           uint32_t *positions_out)
{
    struct cursor c = cursor_at(s, first);
    for (size_t i = 0; i < count; i++) {
        const uint64_t at = c.at, size = next_size(&c, s->k);
        positions_out[i] = (uint32_t)(at + (hash((uint32_t)(first + i), s->keys) * size >> 32));
    }
}

void trib_strata_scale(const struct trib_strata *s, float *values)
{
    struct cursor c = cursor_at(s, 0);
    for (size_t i = 0; i < s->k; i++)
        values[i] *= (float)next_size(&c, s->k);
}
