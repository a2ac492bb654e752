/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/store/store_image.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "agg/store/store_vectors.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/minmax.h"

void trib_store_image(const struct trib_store_table *table, uint32_t vector,
                      struct trib_store_image *out)
{
    const struct vector *v = trib_store_vector(table, vector);

    *out = (struct trib_store_image){.spec = {v->name, v->dtype, v->count, v->text},
                                     .kept = v->kept,
                                     .states = (uint32_t)v->rule.row->states,
                                     .ranks = table->ranks,
                                     .version = trib_store_version(table, vector),
                                     .clock = v->clock,
                                     .value = v->value};
    for (int i = 0; i < v->rule.row->states; i++)
        out->state[i] = v->state[i];
}

/* Copy the elements and the state of the rule, stripe by stripe. */
static void put_elements(const struct trib_store_image *image,
                         struct trib_store_walk *walk)
{
    const struct vector *v = walk->v;
    const size_t element = trib_dtype_size(v->kept);

    for (uint64_t first = 0; first < v->count; first += TRIB_STORE_STRIPE) {
        const uint64_t n = trib_min(v->count - first, TRIB_STORE_STRIPE);
        const uint64_t at = first * element;
        trib_store_walk_to(walk, first, first + n);
        memcpy((uint8_t *)v->value + at, (const uint8_t *)image->value + at,
               n * element);
        for (uint32_t i = 0; i < image->states; i++)
            memcpy((uint8_t *)v->state[i] + at, (const uint8_t *)image->state[i] + at,
                   n * element);
        trib_store_walk_did(walk, n);
    }
}

trib_status_t trib_store_put(struct trib_store_table *table, uint32_t vector,
                             const struct trib_store_image *image,
                             const struct trib_store_tick *tick, struct trib_error *err)
{
    struct vector *v = trib_store_vector(table, vector);
    const struct trib_store_spec *spec = &image->spec;
    struct trib_store_walk walk;

    if (spec->dtype != v->dtype || spec->count != v->count ||
        strcmp(spec->rule, v->text) || image->kept != v->kept ||
        image->states != (uint32_t)v->rule.row->states)
        return trib_fail(err, TRIB_ERR_MISMATCH,
                         "the snapshot of vector %s has %" PRIu64 " elements of %s and "
                         "rule %s, not %" PRIu64 " of %s and %s: create the vector as "
                         "saved, or restore a rank's copy",
                         v->name, spec->count, trib_dtype_name(spec->dtype), spec->rule,
                         v->count, trib_dtype_name(v->dtype), v->text);
    trib_store_walk_begin(table, vector, tick, &walk);
    pthread_mutex_lock(&v->gate);
    memset(v->clock, 0, table->ranks * sizeof(*v->clock));
    if (image->ranks == table->ranks)
        memcpy(v->clock, image->clock, table->ranks * sizeof(*v->clock));
    v->version = image->version;
    v->changes++;
    pthread_mutex_unlock(&v->gate);
    put_elements(image, &walk);
    trib_store_walk_end(&walk);
    return TRIB_OK;
}

uint64_t trib_store_changes(const struct trib_store_table *table, uint32_t vector)
{
    struct vector *v = trib_store_vector(table, vector);

    pthread_mutex_lock(&v->gate);
    const uint64_t changes = v->changes;
    pthread_mutex_unlock(&v->gate);
    return changes;
}

uint64_t trib_store_saved(const struct trib_store_table *table, uint32_t vector)
{
    struct vector *v = trib_store_vector(table, vector);

    pthread_mutex_lock(&v->gate);
    const uint64_t saved = v->saved;
    pthread_mutex_unlock(&v->gate);
    return saved;
}

void trib_store_set_saved(struct trib_store_table *table, uint32_t vector,
                          uint64_t saved)
{
    struct vector *v = trib_store_vector(table, vector);

    pthread_mutex_lock(&v->gate);
    v->saved = saved;
    pthread_mutex_unlock(&v->gate);
}
