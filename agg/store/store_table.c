/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/store/store_vectors.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/quota.h"
#include "compress/kernels/kernels.h"

enum { STATES = TRIB_STORE_RULE_STATES };

/* Memory --------------------------------------------------------------------------- */

trib_status_t trib_store_table_create(uint32_t ranks, struct trib_quota *quota,
                                      struct trib_store_table **out)
{
    struct trib_store_table *table = calloc(1, sizeof(*table));

    *out = table;
    if (!table)
        return TRIB_ERR_NO_MEMORY;
    table->ranks = ranks;
    table->quota = quota;
    table->kernels = trib_kernels_get(NULL);
    table->left = calloc(ranks, sizeof(*table->left));
    if (table->left)
        return TRIB_OK;
    free(table);
    *out = NULL;
    return TRIB_ERR_NO_MEMORY;
}

static void free_vector(struct trib_store_table *table, struct vector *v)
{
    if (table->quota && v->charged)
        trib_quota_give_mt(table->quota, v->charged);
    for (int i = 0; i < STATES; i++)
        free(v->state[i]);
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
    free(table->vectors);
    free(table->left);
    free(table);
}

static bool make_room(struct trib_store_table *table)
{
    const uint32_t room = table->room ? 2 * table->room : 16;

    if (table->n < table->room)
        return true;
    struct vector **more = realloc(table->vectors, room * sizeof(*more));
    if (!more)
        return false;
    table->vectors = more;
    table->room = room;
    return true;
}

static trib_status_t check_spec(const struct trib_store_spec *spec, struct vector *v,
                                struct trib_error *err)
{
    const trib_dtype_t dtype = spec->dtype;

    if ((unsigned)dtype >= TRIB_DTYPE_COUNT || dtype == TRIB_BOOL)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "vector %s: a store has numbers, not elements of %s",
                         spec->name, trib_dtype_name(dtype));
    const trib_status_t st = trib_store_rule_parse(spec->rule, err, &v->rule);
    if (st != TRIB_OK)
        return st;
    if (v->rule.row->floats && !trib_dtype_is_float(dtype))
        return trib_fail(err, TRIB_ERR_INVALID,
                         "vector %s: rule %s is for floats, not for %s: use sum",
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

    v->clock = calloc(table->ranks, sizeof(*v->clock));
    v->value = calloc(v->count, element);
    for (int i = 0; i < v->rule.row->states; i++) {
        v->state[i] = calloc(v->count, element);
        all &= v->state[i] != NULL;
    }
    return all && v->clock && v->value;
}

static trib_status_t take_memory(struct trib_store_table *table, struct vector *v,
                                 struct trib_error *err)
{
    const uint64_t vectors = 1 + (uint64_t)v->rule.row->states;
    const uint64_t element = trib_dtype_size(v->kept);
    const uint64_t own = sizeof(*v) + table->ranks * sizeof(*v->clock);

    if (v->count > (UINT64_MAX / 4 - own) / (vectors * element))
        return trib_fail(err, TRIB_ERR_NO_RESOURCE,
                         "vector %s: no memory has %" PRIu64 " elements", v->name,
                         v->count);
    const uint64_t bytes = own + vectors * element * v->count;
    if (table->quota && trib_quota_take_mt(table->quota, bytes))
        return trib_fail(err, TRIB_ERR_NO_RESOURCE,
                         "vector %s needs %" PRIu64
                         " bytes with the state of its rule, more than the job, its "
                         "user or the service has left",
                         v->name, bytes);
    v->charged = bytes;
    return allocate(table, v)
               ? TRIB_OK
               : trib_fail(err, TRIB_ERR_NO_MEMORY,
                           "vector %s: the host has no memory for it", v->name);
}

static trib_status_t make(struct trib_store_table *table,
                          const struct trib_store_spec *spec, struct trib_error *err)
{
    if (table->n == TRIB_STORE_VECTORS_MAX)
        return trib_fail(err, TRIB_ERR_NO_RESOURCE, "a store has %d vectors at most",
                         TRIB_STORE_VECTORS_MAX);
    struct vector *v = calloc(1, sizeof(*v));
    if (!v || !make_room(table)) {
        free(v);
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for a vector");
    }
    trib_status_t st = check_spec(spec, v, err);
    if (st == TRIB_OK)
        st = take_memory(table, v, err);
    if (st != TRIB_OK) {
        free_vector(table, v);
        return st;
    }
    table->vectors[table->n++] = v;
    return TRIB_OK;
}

trib_status_t trib_store_table_open(struct trib_store_table *table,
                                    const struct trib_store_spec *spec,
                                    struct trib_error *err, uint32_t *vector_out)
{
    for (uint32_t i = 0; i < table->n; i++) {
        const struct vector *v = table->vectors[i];
        if (strcmp(v->name, spec->name))
            continue;
        *vector_out = i;
        if (v->dtype == spec->dtype && v->count == spec->count &&
            strcmp(v->text, spec->rule) == 0)
            return TRIB_OK;
        return trib_fail(err, TRIB_ERR_MISMATCH,
                         "vector %s is there with %" PRIu64
                         " elements of %s and rule %s, not %" PRIu64 " of %s and %s",
                         v->name, v->count, trib_dtype_name(v->dtype), v->text,
                         spec->count, trib_dtype_name(spec->dtype), spec->rule);
    }
    *vector_out = table->n;
    return make(table, spec, err);
}

/* Vectors -------------------------------------------------------------------------- */

static struct vector *at(const struct trib_store_table *table, uint32_t vector)
{
    assert(vector < table->n);
    return table->vectors[vector];
}

uint32_t trib_store_table_size(const struct trib_store_table *table)
{
    return table->n;
}

uint64_t trib_store_element(const struct trib_store_table *table, uint32_t vector)
{
    return trib_dtype_size(at(table, vector)->dtype);
}

uint64_t trib_store_bytes(const struct trib_store_table *table, uint32_t vector)
{
    return at(table, vector)->count * trib_store_element(table, vector);
}

uint64_t trib_store_version(const struct trib_store_table *table, uint32_t vector)
{
    return at(table, vector)->version;
}

uint64_t trib_store_clock(const struct trib_store_table *table, uint32_t vector,
                          uint32_t rank)
{
    assert(rank < table->ranks);
    return at(table, vector)->clock[rank];
}

void trib_store_leave(struct trib_store_table *table, uint32_t rank, bool left)
{
    assert(rank < table->ranks);
    table->left[rank] = left;
}

uint32_t trib_store_behind(const struct trib_store_table *table, uint32_t vector,
                           uint32_t rank)
{
    const uint64_t *clock = at(table, vector)->clock;
    uint32_t last = rank;

    for (uint32_t r = 0; r < table->ranks; r++)
        if (!table->left[r] && clock[r] < clock[last])
            last = r;
    return last;
}

/* Copies elements between the wire and memory, which differ for narrow floats. */
static void take_in(const struct trib_store_table *table, const struct vector *v,
                    const uint8_t *wire)
{
    if (v->dtype == v->kept)
        memcpy(v->value, wire, v->count * trib_dtype_size(v->kept));
    else
        table->kernels->to_f32[v->dtype](v->value, wire, v->count);
}

static void give_out(const struct trib_store_table *table, const struct vector *v,
                     uint64_t first, uint64_t count, uint8_t *wire)
{
    const uint8_t *from = trib_store_byte_at(v->value, first, v->kept);

    assert(first <= v->count && count <= v->count - first);
    if (v->dtype == v->kept)
        memcpy(wire, from, count * trib_dtype_size(v->kept));
    else
        table->kernels->from_f32[v->dtype](wire, (const float *)(const void *)from,
                                           count);
}

trib_status_t trib_store_set(struct trib_store_table *table, uint32_t vector,
                             const void *data, struct trib_error *err)
{
    struct vector *v = at(table, vector);

    if (v->version)
        return trib_fail(err, TRIB_ERR_BUSY,
                         "vector %s has taken pushes, and its elements are not set",
                         v->name);
    take_in(table, v, data);
    v->changes++;
    return TRIB_OK;
}

void trib_store_replace(struct trib_store_table *table, uint32_t vector,
                        const void *data, uint64_t version)
{
    struct vector *v = at(table, vector);

    take_in(table, v, data);
    for (int i = 0; i < v->rule.row->states; i++)
        memset(v->state[i], 0, v->count * trib_dtype_size(v->kept));
    memset(v->clock, 0, table->ranks * sizeof(*v->clock));
    v->version = version;
    v->changes++;
}

void trib_store_read(const struct trib_store_table *table, uint32_t vector,
                     uint64_t first, uint64_t count, void *out)
{
    give_out(table, at(table, vector), first, count, out);
}

const float *trib_store_floats(const struct trib_store_table *table, uint32_t vector,
                               uint64_t first)
{
    const struct vector *v = at(table, vector);

    return v->kept == TRIB_F32 ? (const float *)v->value + first : NULL;
}

uint64_t trib_store_seed(const struct trib_store_table *table, uint32_t vector)
{
    const char *name = at(table, vector)->name;

    return trib_digest(name, strlen(name));
}
