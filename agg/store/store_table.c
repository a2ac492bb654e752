/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/store/store_table.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/quota.h"
#include "compress/kernels/kernels.h"

enum {
    BLOCK = TRIB_STORE_RULE_BLOCK,
    STATES = TRIB_STORE_RULE_STATES,
    BLOCKS_A_TICK =
        2048, /* blocks between two calls of the tick: about a millisecond */
};

struct vector {
    char name[TRIB_CONTROL_JOB_MAX + 1];
    char text[TRIB_STORE_RULE_TEXT_MAX + 1]; /* of its rule, as it was given */
    struct trib_store_rule rule;
    trib_dtype_t dtype; /* on the wire */
    trib_dtype_t kept; /* in memory: float32 for narrow floats */
    uint64_t count;
    uint64_t version;
    uint64_t charged; /* bytes taken from the quota */
    uint64_t *clock; /* [ranks] numbers of their last pushes */
    void *value; /* [count] of `kept` */
    void *state[STATES];
};

struct trib_store_table {
    uint32_t ranks;
    struct trib_quota *quota;
    const struct trib_kernels *kernels;
    bool *left; /* [ranks] */
    struct vector **vectors; /* [room] */
    uint32_t n;
    uint32_t room;
};

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

static uint8_t *byte_at(void *array, uint64_t first, trib_dtype_t dtype)
{
    return (uint8_t *)array + first * trib_dtype_size(dtype);
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
    const uint8_t *from = byte_at(v->value, first, v->kept);

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
    return TRIB_OK;
}

void trib_store_read(const struct trib_store_table *table, uint32_t vector,
                     uint64_t first, uint64_t count, void *out)
{
    give_out(table, at(table, vector), first, count, out);
}

/* Pushes --------------------------------------------------------------------------- */

/* Widen or narrow a block: to float64 to compute, back to what is kept. */
static void widen(trib_dtype_t dtype, const void *from, size_t n, double *out)
{
    const uint8_t *bytes = from;

    for (size_t i = 0; dtype == TRIB_F32 && i < n; i++) {
        float one;
        memcpy(&one, bytes + i * sizeof(one), sizeof(one));
        out[i] = one;
    }
    if (dtype == TRIB_F64)
        memcpy(out, from, n * sizeof(*out));
}

static void narrow(trib_dtype_t dtype, const double *from, size_t n, void *out)
{
    uint8_t *bytes = out;

    for (size_t i = 0; dtype == TRIB_F32 && i < n; i++) {
        const float one = (float)from[i];
        memcpy(bytes + i * sizeof(one), &one, sizeof(one));
    }
    if (dtype == TRIB_F64)
        memcpy(out, from, n * sizeof(*from));
}

/* A push to a vector of floats. */
struct work {
    const struct trib_store_table *table;
    const struct vector *v;
    const struct trib_store_push *push;
    bool keeps; /* false: it was applied before, and only its answer is wanted */
};

/* Elements that go over the wire, as they are kept. */
static void read_wire(const struct work *w, const uint8_t *wire, size_t n, double *out)
{
    float wide[BLOCK];

    if (w->v->dtype == w->v->kept) {
        widen(w->v->kept, wire, n, out);
        return;
    }
    w->table->kernels->to_f32[w->v->dtype](wide, wire, n);
    widen(TRIB_F32, wide, n, out);
}

static void write_wire(const struct work *w, const double *from, size_t n,
                       uint8_t *wire)
{
    float wide[BLOCK];

    if (w->v->dtype == w->v->kept) {
        narrow(w->v->kept, from, n, wire);
        return;
    }
    narrow(TRIB_F32, from, n, wide);
    w->table->kernels->from_f32[w->v->dtype](wire, wide, n);
}

static void apply_block(const struct work *w, uint64_t first,
                        struct trib_store_block *b)
{
    const struct vector *v = w->v;
    uint8_t *wire = byte_at(w->push->data, first, v->dtype);

    read_wire(w, wire, b->n, b->push);
    widen(v->kept, byte_at(v->value, first, v->kept), b->n, b->value);
    for (int s = 0; s < v->rule.row->states; s++)
        widen(v->kept, byte_at(v->state[s], first, v->kept), b->n, b->state[s]);
    v->rule.row->apply(v->rule.param, b);
    if (w->keeps)
        narrow(v->kept, b->value, b->n, byte_at(v->value, first, v->kept));
    for (int s = 0; w->keeps && s < v->rule.row->states; s++)
        narrow(v->kept, b->state[s], b->n, byte_at(v->state[s], first, v->kept));
    if (w->push->gives && v->rule.row->gives_push)
        write_wire(w, b->push, b->n, wire);
}

static void apply_floats(const struct work *w, const struct trib_store_tick *tick)
{
    double value[BLOCK], pushed[BLOCK], state[STATES][BLOCK];
    struct trib_store_block b = {.value = value,
                                 .push = pushed,
                                 .state = {state[0], state[1]},
                                 .rate = w->push->rate > 0 ? w->push->rate
                                                           : w->v->rule.param[0],
                                 .step = w->v->version + 1};
    uint64_t blocks = 0;

    for (uint64_t first = 0; first < w->v->count; first += BLOCK) {
        const uint64_t left = w->v->count - first;
        b.n = left < BLOCK ? (size_t)left : BLOCK;
        apply_block(w, first, &b);
        if (++blocks % BLOCKS_A_TICK == 0 && tick)
            tick->call(tick->arg);
    }
}

/* Integers have the rule sum alone, and wrap. */
static void apply_integers(const struct trib_store_table *table, const struct vector *v,
                           const struct trib_store_push *push)
{
    const struct trib_reduce_args sum = {.src = {v->value, push->data},
                                         .dst = {v->value},
                                         .n_src = 2,
                                         .n_dst = 1,
                                         .n = v->count};

    assert(!v->rule.row->floats);
    table->kernels->reduce[v->dtype][TRIB_SUM](&sum);
}

static trib_status_t check_push(const struct vector *v,
                                const struct trib_store_push *push,
                                struct trib_error *err)
{
    const uint64_t last = v->clock[push->rank];

    if (!isfinite(push->rate) || push->rate < 0 ||
        (push->rate > 0 && !v->rule.row->rated))
        return trib_fail(err, TRIB_ERR_INVALID, "vector %s: %s", v->name,
                         v->rule.row->rated
                             ? "a rate is a number from 0"
                             : "its rule has no rate that a push could replace");
    if (push->number != last && push->number != last + 1)
        return trib_fail(err, TRIB_ERR_PROTOCOL,
                         "vector %s: push %" PRIu64 " of rank %" PRIu32
                         " comes after push %" PRIu64,
                         v->name, push->number, push->rank, last);
    return TRIB_OK;
}

trib_status_t trib_store_push(struct trib_store_table *table, uint32_t vector,
                              const struct trib_store_push *push,
                              const struct trib_store_tick *tick,
                              struct trib_error *err)
{
    struct vector *v = at(table, vector);

    assert(push->rank < table->ranks);
    const trib_status_t st = check_push(v, push, err);
    if (st != TRIB_OK)
        return st;
    const bool is_new = push->number != v->clock[push->rank];
    const bool gives_push = push->gives && v->rule.row->gives_push;
    const struct work w = {table, v, push, .keeps = is_new};
    if (trib_dtype_is_float(v->dtype) && (is_new || gives_push))
        apply_floats(&w, tick);
    else if (is_new)
        apply_integers(table, v, push);
    if (is_new) {
        v->clock[push->rank] = push->number;
        v->version++;
    }
    if (push->gives && !gives_push)
        give_out(table, v, 0, v->count, push->data);
    return TRIB_OK;
}
