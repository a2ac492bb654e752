/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/store/store_vectors.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/minmax.h"
#include "base/quota.h"
#include "compress/kernels/kernels.h"

enum { STATES = TRIB_STORE_RULE_STATES };

/* Memory --------------------------------------------------------------------------- */

trib_status_t trib_store_table_create(uint32_t ranks, struct trib_quota *quota,
                                      struct trib_store_table **out)
{
    struct trib_store_table *table = calloc(1, sizeof(*table));

    assert(ranks > 0);
    *out = table;
    if (!table)
        return TRIB_ERR_NO_MEMORY;
    table->ranks = ranks;
    table->quota = quota;
    table->kernels = trib_kernels_get(NULL);
    table->presence = calloc(ranks, sizeof(*table->presence));
    table->vectors = calloc(TRIB_STORE_VECTORS_MAX, sizeof(struct vector *));
    pthread_mutex_init(&table->opening, NULL);
    if (table->presence && table->vectors)
        return TRIB_OK;
    trib_store_table_destroy(table);
    *out = NULL;
    return TRIB_ERR_NO_MEMORY;
}

static void free_vector(struct trib_store_table *table, struct vector *v)
{
    trib_quota_give_mt(table->quota, v->charged);
    for (uint64_t i = 0; v->stripes && i < trib_store_stripes(v->count); i++)
        pthread_mutex_destroy(&v->stripes[i]);
    pthread_mutex_destroy(&v->gate);
    for (int i = 0; i < STATES; i++)
        free(v->state[i]);
    free(v->stripes);
    free(v->value);
    free(v->clock);
    free(v);
}

void trib_store_table_destroy(struct trib_store_table *table)
{
    if (!table)
        return;
    for (uint32_t i = 0; i < table->n; i++)
        free_vector(table, table->vectors[i]);
    pthread_mutex_destroy(&table->opening);
    free(table->vectors);
    free(table->presence);
    free(table);
}

static trib_status_t check_spec(const struct trib_store_spec *spec, struct vector *v,
                                struct trib_error *err)
{
    const trib_dtype_t dtype = spec->dtype;

    if ((unsigned)dtype >= TRIB_DTYPE_COUNT || dtype == TRIB_BOOL)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "vector %s: a store supports numbers, not elements of %s",
                         spec->name, trib_dtype_name(dtype));
    const trib_status_t st = trib_store_rule_parse(spec->rule, err, &v->rule);
    if (st != TRIB_OK)
        return st;
    if (v->rule.row->floats && !trib_dtype_is_float(dtype))
        return trib_fail(err, TRIB_ERR_INVALID,
                         "vector %s: rule %s requires floats, not %s: use sum",
                         spec->name, v->rule.row->name, trib_dtype_name(dtype));
    v->dtype = dtype;
    v->kept = trib_dtype_is_narrow(dtype) ? TRIB_F32 : dtype;
    v->count = spec->count;
    memcpy(v->name, spec->name, strlen(spec->name) + 1);
    memcpy(v->text, spec->rule, strlen(spec->rule) + 1);
    return TRIB_OK;
}

static bool allocate(const struct trib_store_table *table, struct vector *v)
{
    const size_t element = trib_dtype_size(v->kept);
    bool all = true;

    v->stripes = calloc(trib_store_stripes(v->count), sizeof(*v->stripes));
    for (uint64_t i = 0; v->stripes && i < trib_store_stripes(v->count); i++)
        pthread_mutex_init(&v->stripes[i], NULL);
    v->clock = calloc(table->ranks, sizeof(*v->clock));
    v->value = calloc(v->count, element);
    for (int i = 0; i < v->rule.row->states; i++) {
        v->state[i] = calloc(v->count, element);
        all &= v->state[i] != NULL;
    }
    return all && v->stripes && v->clock && v->value;
}

static trib_status_t take_memory(struct trib_store_table *table, struct vector *v,
                                 struct trib_error *err)
{
    const uint64_t vectors = 1 + (uint64_t)v->rule.row->states;
    const uint64_t element = trib_dtype_size(v->kept);
    const uint64_t own = sizeof(*v) + table->ranks * sizeof(*v->clock) +
                         trib_store_stripes(v->count) * sizeof(*v->stripes);

    assert(v->rule.row && !v->charged);
    if (v->count > (UINT64_MAX / 4 - own) / (vectors * element))
        return trib_fail(err, TRIB_ERR_NO_RESOURCE,
                         "vector %s: no host has memory for %" PRIu64 " elements",
                         v->name, v->count);
    const uint64_t bytes = own + vectors * element * v->count;
    if (trib_quota_take_mt(table->quota, bytes))
        return trib_fail(err, TRIB_ERR_NO_RESOURCE,
                         "vector %s needs %" PRIu64 " bytes with the state of its "
                         "rule, more than the job, its user or the service has left",
                         v->name, bytes);
    v->charged = bytes;
    return allocate(table, v)
               ? TRIB_OK
               : trib_fail(err, TRIB_ERR_NO_MEMORY,
                           "vector %s: out of memory on the host", v->name);
}

static trib_status_t make(struct trib_store_table *table,
                          const struct trib_store_spec *spec, struct trib_error *err)
{
    if (table->n == TRIB_STORE_VECTORS_MAX)
        return trib_fail(err, TRIB_ERR_NO_RESOURCE,
                         "a store can have at most %d vectors", TRIB_STORE_VECTORS_MAX);
    struct vector *v = calloc(1, sizeof(*v));
    if (!v)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory for a vector");
    pthread_mutex_init(&v->gate, NULL);
    trib_status_t st = check_spec(spec, v, err);
    if (st == TRIB_OK)
        st = take_memory(table, v, err);
    if (st != TRIB_OK) {
        free_vector(table, v);
        return st;
    }
    table->vectors[table->n] = v;
    atomic_fetch_add(&table->n, 1);
    return TRIB_OK;
}

/* Find a vector, or create it. */
static trib_status_t find(struct trib_store_table *table,
                          const struct trib_store_spec *spec, struct trib_error *err,
                          struct trib_store_found *out)
{
    for (uint32_t i = 0; i < table->n; i++) {
        const struct vector *v = table->vectors[i];
        if (strcmp(v->name, spec->name))
            continue;
        *out = (struct trib_store_found){i, false};
        if (v->dtype == spec->dtype && v->count == spec->count &&
            strcmp(v->text, spec->rule) == 0)
            return TRIB_OK;
        return trib_fail(err, TRIB_ERR_MISMATCH,
                         "vector %s exists with %" PRIu64 " elements of %s and rule "
                         "%s, not %" PRIu64 " of %s and %s",
                         v->name, v->count, trib_dtype_name(v->dtype), v->text,
                         spec->count, trib_dtype_name(spec->dtype), spec->rule);
    }
    *out = (struct trib_store_found){table->n, true};
    return make(table, spec, err);
}

trib_status_t trib_store_table_open(struct trib_store_table *table,
                                    const struct trib_store_spec *spec,
                                    struct trib_error *err,
                                    struct trib_store_found *out)
{
    pthread_mutex_lock(&table->opening);
    const trib_status_t st = find(table, spec, err, out);
    pthread_mutex_unlock(&table->opening);
    return st;
}

/* Vectors -------------------------------------------------------------------------- */

uint32_t trib_store_table_size(const struct trib_store_table *table)
{
    return atomic_load(&table->n);
}

uint64_t trib_store_element(const struct trib_store_table *table, uint32_t vector)
{
    return trib_dtype_size(trib_store_vector(table, vector)->dtype);
}

uint64_t trib_store_bytes(const struct trib_store_table *table, uint32_t vector)
{
    return trib_store_vector(table, vector)->count * trib_store_element(table, vector);
}

const char *trib_store_name(const struct trib_store_table *table, uint32_t vector)
{
    return trib_store_vector(table, vector)->name;
}

uint64_t trib_store_version(const struct trib_store_table *table, uint32_t vector)
{
    struct vector *v = trib_store_vector(table, vector);

    pthread_mutex_lock(&v->gate);
    const uint64_t version = v->version;
    pthread_mutex_unlock(&v->gate);
    return version;
}

uint64_t trib_store_clock(const struct trib_store_table *table, uint32_t vector,
                          uint32_t rank)
{
    struct vector *v = trib_store_vector(table, vector);

    assert(rank < table->ranks);
    pthread_mutex_lock(&v->gate);
    const uint64_t clock = v->clock[rank];
    pthread_mutex_unlock(&v->gate);
    return clock;
}

void trib_store_set_presence(struct trib_store_table *table, uint32_t rank,
                             enum trib_store_presence presence)
{
    assert(rank < table->ranks);
    atomic_store(&table->presence[rank], (uint8_t)presence);
}

uint32_t trib_store_lost_ranks(const struct trib_store_table *table,
                               uint32_t *first_out)
{
    uint32_t n = 0;

    for (uint32_t r = 0; r < table->ranks; r++)
        if (atomic_load(&table->presence[r]) == TRIB_STORE_LOST && !n++)
            *first_out = r;
    return n;
}

struct trib_store_lead trib_store_lead(const struct trib_store_table *table,
                                       uint32_t vector, uint32_t rank)
{
    struct vector *v = trib_store_vector(table, vector);
    uint32_t last = rank;

    assert(rank < table->ranks);
    /* One lock for all clocks: between two, the slowest rank may catch up while another
     * one still lags. */
    pthread_mutex_lock(&v->gate);
    for (uint32_t r = 0; r < table->ranks; r++)
        if (atomic_load(&table->presence[r]) != TRIB_STORE_LEFT &&
            v->clock[r] < v->clock[last])
            last = r;
    const struct trib_store_lead lead = {.version = v->version,
                                         .own = v->clock[rank],
                                         .least = v->clock[last],
                                         .last = last};
    pthread_mutex_unlock(&v->gate);
    return lead;
}

/* Store elements in wire format, stripe by stripe; narrow floats are converted to
 * float32. */
static void take_in(const struct trib_store_table *table, struct trib_store_walk *walk,
                    const uint8_t *wire, bool clears)
{
    const struct vector *v = walk->v;
    const size_t kept = trib_dtype_size(v->kept);

    for (uint64_t first = 0; first < v->count; first += TRIB_STORE_STRIPE) {
        const uint64_t n = trib_min(v->count - first, TRIB_STORE_STRIPE);
        const uint8_t *from = wire + first * trib_dtype_size(v->dtype);
        uint8_t *to = trib_store_byte_at(v->value, first, v->kept);
        trib_store_walk_to(walk, first, first + n);
        if (v->dtype == v->kept)
            memcpy(to, from, n * kept);
        else
            table->kernels->to_f32[v->dtype]((float *)(void *)to, from, n);
        for (int i = 0; clears && i < v->rule.row->states; i++)
            memset(trib_store_byte_at(v->state[i], first, v->kept), 0, n * kept);
        trib_store_walk_did(walk, n);
    }
}

trib_status_t trib_store_set(struct trib_store_table *table, uint32_t vector,
                             const void *data, const struct trib_store_tick *tick,
                             struct trib_error *err)
{
    struct trib_store_walk walk;
    trib_status_t st = TRIB_OK;

    assert(data);
    trib_store_walk_begin(table, vector, tick, &walk);
    pthread_mutex_lock(&walk.v->gate);
    if (walk.v->version)
        st =
            trib_fail(err, TRIB_ERR_BUSY,
                      "vector %s already has pushes: its elements can no longer be set",
                      walk.v->name);
    else
        walk.v->changes++;
    pthread_mutex_unlock(&walk.v->gate);
    if (st == TRIB_OK)
        take_in(table, &walk, data, false);
    trib_store_walk_end(&walk);
    return st;
}

void trib_store_replace(struct trib_store_table *table, uint32_t vector,
                        const void *data, uint64_t version,
                        const struct trib_store_tick *tick)
{
    struct trib_store_walk walk;

    assert(data);
    trib_store_walk_begin(table, vector, tick, &walk);
    pthread_mutex_lock(&walk.v->gate);
    memset(walk.v->clock, 0, table->ranks * sizeof(*walk.v->clock));
    walk.v->version = version;
    walk.v->changes++;
    pthread_mutex_unlock(&walk.v->gate);
    take_in(table, &walk, data, true);
    trib_store_walk_end(&walk);
}

/* Copy consecutive elements, stripe by stripe. */
static void read_range(const struct trib_store_table *table,
                       const struct trib_store_range *range,
                       struct trib_store_walk *walk, void *out)
{
    const struct vector *v = walk->v;
    uint64_t n;

    assert(range->first <= v->count && range->count <= v->count - range->first);
    for (uint64_t done = 0; done < range->count; done += n) {
        const uint64_t first = range->first + done;
        n = trib_min(range->count - done, TRIB_STORE_STRIPE);
        trib_store_walk_to(walk, first, first + n);
        const uint8_t *from = trib_store_byte_at(v->value, first, v->kept);
        uint8_t *to = trib_store_byte_at(out, done, v->dtype);
        if (v->dtype == v->kept)
            memcpy(to, from, n * trib_dtype_size(v->kept));
        else
            table->kernels->from_f32[v->dtype](to, (const float *)(const void *)from,
                                               n);
        trib_store_walk_did(walk, n);
    }
}

uint64_t trib_store_read(const struct trib_store_table *table,
                         const struct trib_store_range *range,
                         const struct trib_store_tick *tick, void *out)
{
    struct trib_store_walk walk;

    trib_store_walk_begin(table, range->vector, tick, &walk);
    const uint64_t version = walk.v->version;
    if (range->indices)
        trib_store_pick(table, range, &walk, out);
    else
        read_range(table, range, &walk, out);
    trib_store_walk_end(&walk);
    return version;
}

const float *trib_store_floats(const struct trib_store_table *table, uint32_t vector,
                               uint64_t first)
{
    const struct vector *v = trib_store_vector(table, vector);

    return v->kept == TRIB_F32 ? (const float *)v->value + first : NULL;
}

uint64_t trib_store_seed(const struct trib_store_table *table, uint32_t vector)
{
    const char *name = trib_store_name(table, vector);

    return trib_digest(name, strlen(name));
}
