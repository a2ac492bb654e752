/* SPDX-License-Identifier: BSD-3-Clause */
/* Pushes of all or selected elements, and reads of selected elements. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "agg/store/store_vectors.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/minmax.h"
#include "compress/kernels/kernels.h"

enum {
    BLOCK = TRIB_STORE_RULE_BLOCK,
    ELEMENT_MAX = 8,
};

/* Iteration over the elements of a request in blocks, by `indices` or contiguous. */
struct block_walk {
    const struct vector *v;
    const uint8_t *indices; /* NULL: the block starts at element `first` */
    uint64_t first; /* position of the block in the request */
    size_t n;
    uint64_t at[BLOCK]; /* with `indices`: the block's elements in the vector */
};

/* Selected elements ---------------------------------------------------------------- */

static void find(struct block_walk *w, uint64_t first, uint64_t count)
{
    const size_t bytes = trib_control_index_bytes(w->v->count);
    uint64_t at = 0;

    w->first = first;
    w->n = count - first < BLOCK ? (size_t)(count - first) : BLOCK;
    for (size_t i = 0; w->indices && i < w->n; i++) {
        memcpy(&at, w->indices + (first + i) * bytes, bytes);
        assert(at < w->v->count);
        w->at[i] = at;
    }
}

static void copy_element(uint8_t *to, const uint8_t *from, size_t bytes)
{
    if (bytes == 4)
        memcpy(to, from, 4);
    else if (bytes == 8)
        memcpy(to, from, 8);
    else
        memcpy(to, from, bytes);
}

/* Return the block's elements contiguously: in place, or gathered into `stage`. */
static uint8_t *gather(const struct block_walk *w, void *array,
                       uint8_t stage[BLOCK * ELEMENT_MAX])
{
    const size_t bytes = trib_dtype_size(w->v->kept);

    if (!w->indices)
        return trib_store_byte_at(array, w->first, w->v->kept);
    for (size_t i = 0; i < w->n; i++)
        copy_element(stage + i * bytes, trib_store_byte_at(array, w->at[i], w->v->kept),
                     bytes);
    return stage;
}

/* Write gathered elements back. */
static void scatter(const struct block_walk *w, void *array, const uint8_t *from)
{
    const size_t bytes = trib_dtype_size(w->v->kept);

    for (size_t i = 0; w->indices && i < w->n; i++)
        copy_element(trib_store_byte_at(array, w->at[i], w->v->kept), from + i * bytes,
                     bytes);
}

/* Copy the block's elements in wire format. */
static void pick(const struct trib_store_table *table, const struct block_walk *w,
                 void *out)
{
    const struct vector *v = w->v;
    _Alignas(ELEMENT_MAX) uint8_t stage[BLOCK * ELEMENT_MAX];
    const uint8_t *from = gather(w, v->value, stage);
    uint8_t *to = trib_store_byte_at(out, w->first, v->dtype);

    if (v->dtype == v->kept)
        memcpy(to, from, w->n * trib_dtype_size(v->dtype));
    else
        table->kernels->from_f32[v->dtype](to, (const float *)(const void *)from, w->n);
}

void trib_store_pick(const struct trib_store_table *table,
                     const struct trib_store_range *range, struct trib_store_walk *walk,
                     void *out)
{
    struct block_walk w = {.v = walk->v, .indices = range->indices};

    assert(range->indices);
    trib_store_walk_to(walk, 0, walk->v->count);
    for (uint64_t first = 0; first < range->count; first += BLOCK) {
        find(&w, first, range->count);
        pick(table, &w, out);
        trib_store_walk_did(walk, w.n);
    }
}

/* Pushes --------------------------------------------------------------------------- */

/* Convert a block between the stored dtype and float64, in which rules compute. */
static void widen(trib_dtype_t dtype, const void *from, size_t n, double *restrict out)
{
    const uint8_t *bytes = from;
    const size_t floats = dtype == TRIB_F32 ? n : 0;

#pragma omp simd
    for (size_t i = 0; i < floats; i++) {
        float one;
        memcpy(&one, bytes + i * sizeof(one), sizeof(one));
        out[i] = (double)one;
    }
    if (dtype == TRIB_F64)
        memcpy(out, from, n * sizeof(*out));
}

static void narrow(trib_dtype_t dtype, const double *restrict from, size_t n, void *out)
{
    uint8_t *restrict bytes = out;
    const size_t floats = dtype == TRIB_F32 ? n : 0;

#pragma omp simd
    for (size_t i = 0; i < floats; i++) {
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
    const struct trib_store_table_push *push;
    bool computes; /* the rule is evaluated, perhaps only for the answer */
    bool keeps; /* false: a repeated push that only needs its answer */
    bool picks; /* answer with the vector's elements */
    struct block_walk walk;
};

/* Read the block's elements of the push, in order of arrival. */
static void read_push(const struct work *w, double *out)
{
    const trib_dtype_t dtype = w->push->decoded ? w->v->kept : w->v->dtype;
    const uint8_t *from = trib_store_byte_at(w->push->data, w->walk.first, dtype);
    float wide[BLOCK];

    if (dtype == w->v->kept) {
        widen(dtype, from, w->walk.n, out);
        return;
    }
    w->table->kernels->to_f32[dtype](wide, from, w->walk.n);
    widen(TRIB_F32, wide, w->walk.n, out);
}

static void write_push(const struct work *w, const double *from)
{
    uint8_t *to = trib_store_byte_at(w->push->data, w->walk.first, w->v->dtype);
    float wide[BLOCK];

    if (w->v->dtype == w->v->kept) {
        narrow(w->v->kept, from, w->walk.n, to);
        return;
    }
    narrow(TRIB_F32, from, w->walk.n, wide);
    w->table->kernels->from_f32[w->v->dtype](to, wide, w->walk.n);
}

static void load(const struct block_walk *w, void *array, double *out)
{
    _Alignas(ELEMENT_MAX) uint8_t stage[BLOCK * ELEMENT_MAX];

    widen(w->v->kept, gather(w, array, stage), w->n, out);
}

static void keep(const struct block_walk *w, const double *from, void *array)
{
    _Alignas(ELEMENT_MAX) uint8_t stage[BLOCK * ELEMENT_MAX];
    uint8_t *to = w->indices ? stage : trib_store_byte_at(array, w->first, w->v->kept);

    narrow(w->v->kept, from, w->n, to);
    scatter(w, array, to);
}

static void apply_block(const struct work *w, struct trib_store_block *b)
{
    const struct vector *v = w->v;
    const int states = v->rule.row->states;

    assert(w->walk.n <= BLOCK && states <= TRIB_STORE_RULE_STATES);
    b->n = w->walk.n;
    read_push(w, b->push);
    load(&w->walk, v->value, b->value);
    for (int s = 0; s < states; s++)
        load(&w->walk, v->state[s], b->state[s]);
    v->rule.row->apply(v->rule.param, b);
    if (w->keeps)
        keep(&w->walk, b->value, v->value);
    for (int s = 0; w->keeps && s < states; s++)
        keep(&w->walk, b->state[s], v->state[s]);
    if (w->push->gives && v->rule.row->gives_push)
        write_push(w, b->push);
}

/* Add in the stored dtype. The result equals a sum in float64 rounded back, because
 * float64 has more than twice the digits of float32. Integers wrap. */
static void add_block(const struct work *w)
{
    const struct vector *v = w->v;
    const trib_dtype_t dtype = w->push->decoded ? v->kept : v->dtype;
    _Alignas(ELEMENT_MAX) uint8_t stage[BLOCK * ELEMENT_MAX];
    uint8_t *x = gather(&w->walk, v->value, stage);
    const void *from = trib_store_byte_at(w->push->data, w->walk.first, dtype);
    float wide[BLOCK];

    if (dtype != v->kept) {
        w->table->kernels->to_f32[dtype](wide, from, w->walk.n);
        from = wide;
    }
    const struct trib_reduce_args sum = {
        .src = {x, from}, .dst = {x}, .n_src = 2, .n_dst = 1, .n = w->walk.n};
    w->table->kernels->reduce[v->kept][TRIB_SUM](&sum);
    scatter(&w->walk, v->value, x);
}

/* Return the maximum elements per block. Elements added without conversion need no
 * block buffers, so a block may be a whole stripe. */
static uint64_t block_most(const struct work *w)
{
    const bool as_kept = w->push->decoded || w->v->dtype == w->v->kept;

    return !w->v->rule.row->apply && as_kept && !w->push->indices ? TRIB_STORE_STRIPE
                                                                  : BLOCK;
}

/* Lock the elements of the next block, at most `most` elements. */
static void go_to_block(struct work *w, struct trib_store_walk *hold, uint64_t first,
                        uint64_t most)
{
    struct block_walk *b = &w->walk;
    const uint64_t count = w->push->indices ? w->push->count : w->v->count;

    assert(first < count);
    if (b->indices) {
        find(b, first, count);
        trib_store_walk_to(hold, b->at[0], b->at[b->n - 1] + 1);
        return;
    }
    b->first = first;
    b->n = (size_t)trib_min(count - first, most);
    trib_store_walk_to(hold, first, first + b->n);
}

static void apply(struct work *w, struct trib_store_walk *hold)
{
    const uint64_t count = w->push->indices ? w->push->count : w->v->count;
    const uint64_t most = block_most(w);
    double value[BLOCK], pushed[BLOCK], state[TRIB_STORE_RULE_STATES][BLOCK];
    struct trib_store_block b = {.value = value,
                                 .push = pushed,
                                 .state = {state[0], state[1]},
                                 .rate = w->push->rate > 0 ? w->push->rate
                                                           : w->v->rule.param[0],
                                 .step = w->push->version + !w->keeps};

    for (uint64_t first = 0; first < count; first += most) {
        go_to_block(w, hold, first, most);
        if (w->computes && w->v->rule.row->apply)
            apply_block(w, &b);
        else if (w->computes)
            add_block(w);
        if (w->picks)
            pick(w->table, &w->walk, w->push->data);
        trib_store_walk_did(hold, w->walk.n);
    }
}

static trib_status_t check_push(const struct vector *v,
                                const struct trib_store_table_push *push,
                                struct trib_error *err)
{
    const uint64_t last = v->clock[push->rank];

    if (push->number > last && v->version >= TRIB_CONTROL_PUSHES_MAX)
        return trib_fail(err, TRIB_ERR_OVERFLOW,
                         "vector %s has version %" PRIu64 ", the maximum: restore a "
                         "copy with a lower version",
                         v->name, v->version);
    if (!isfinite(push->rate) || push->rate < 0 ||
        (push->rate > 0 && !v->rule.row->rated))
        return trib_fail(err, TRIB_ERR_INVALID, "vector %s: %s", v->name,
                         v->rule.row->rated ? "a rate must be a number of at least 0"
                                            : "its rule has no rate to override");
    if (push->number > last + 1)
        return trib_fail(err, TRIB_ERR_PROTOCOL,
                         "vector %s: push %" PRIu64 " of rank %" PRIu32 " follows push "
                         "%" PRIu64 ": a push is missing",
                         v->name, push->number, push->rank, last);
    if (push->decoded && v->rule.row->gives_push)
        return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                         "vector %s: rule %s changes the pushed elements, which a "
                         "codec would distort: push without a codec",
                         v->name, v->rule.row->name);
    return TRIB_OK;
}

/* Record a valid push; true: it is new. */
static bool enter(struct vector *v, struct trib_store_table_push *push)
{
    const bool is_new = push->number > v->clock[push->rank];

    pthread_mutex_lock(&v->gate);
    if (is_new) {
        v->clock[push->rank] = push->number;
        v->version++;
        v->changes++;
    }
    push->version = v->version;
    pthread_mutex_unlock(&v->gate);
    return is_new;
}

trib_status_t trib_store_table_push(struct trib_store_table *table, uint32_t vector,
                                    struct trib_store_table_push *push,
                                    const struct trib_store_tick *tick,
                                    struct trib_error *err)
{
    struct trib_store_walk hold;

    assert(push->rank < table->ranks);
    trib_store_walk_begin(table, vector, tick, &hold);
    struct vector *v = hold.v;
    const trib_status_t st = check_push(v, push, err);
    if (st == TRIB_OK) {
        const bool is_new = enter(v, push);
        const bool gives_push = push->gives && v->rule.row->gives_push;
        struct work w = {.table = table,
                         .v = v,
                         .push = push,
                         .computes = is_new || gives_push,
                         .keeps = is_new,
                         .picks = push->gives && !gives_push,
                         .walk = {.v = v, .indices = push->indices}};
        if (w.computes || w.picks)
            apply(&w, &hold);
    }
    trib_store_walk_end(&hold);
    return st;
}
