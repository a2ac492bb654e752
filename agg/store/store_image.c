/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/store/store_image.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "agg/store/store_vectors.h"
#include "base/dtype.h"
#include "base/error.h"

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

trib_status_t trib_store_put(struct trib_store_table *table, uint32_t vector,
                             const struct trib_store_image *image,
                             struct trib_error *err)
{
    struct vector *v = trib_store_vector(table, vector);
    const struct trib_store_spec *spec = &image->spec;
    const size_t bytes = v->count * trib_dtype_size(v->kept);
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
    trib_store_walk_begin(table, vector, &walk);
    pthread_mutex_lock(&v->gate);
    memset(v->clock, 0, table->ranks * sizeof(*v->clock));
    if (image->ranks == table->ranks)
        memcpy(v->clock, image->clock, table->ranks * sizeof(*v->clock));
    v->version = image->version;
    v->changes++;
    pthread_mutex_unlock(&v->gate);
    trib_store_walk_to(&walk, 0, v->count);
    memcpy(v->value, image->value, bytes);
    for (uint32_t i = 0; i < image->states; i++)
        memcpy(v->state[i], image->state[i], bytes);
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
