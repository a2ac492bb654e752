/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sparse all-reduces compared with a plain sum: the input of each rank in each step,
 * the union, and a check that all ranks have it with the same bits.
 */
#ifndef TESTS_COMM_SPARSE_SCENE_H
#define TESTS_COMM_SPARSE_SCENE_H

#include <tributary/sparse.h>

#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

enum { STARTS = 6 };

struct scene {
    size_t length;
    trib_dtype_t dtype;
    trib_op_t op;
    uint32_t one_in; /* a rank contributes one of this number of elements */
    bool most; /* the plan knows the maximum number */
    bool skewed; /* nearly all are in a tenth of the vector */
    bool regions; /* chunks depend on the pairs of each start */
    int apart; /* no two of this number of ranks contribute the same element; 0: they
                * may */
    const char *algorithm;
};

/* Buffers of a rank: its pairs, and the pairs of the result. */
struct memory {
    uint64_t *indices, *got;
    uint8_t *values, *got_values, *dense;
};

static inline void open_memory(struct ranks_self *self, struct memory *m, size_t length)
{
    const size_t n = 2 * length + 1; /* each index may be repeated once */

    m->indices = malloc(n * sizeof(*m->indices));
    m->got = malloc(n * sizeof(*m->got));
    m->values = malloc(n * 8);
    m->got_values = malloc(n * 8);
    m->dense = malloc(n * 8);
    ranks_assert(self, m->indices && m->got && m->values && m->got_values && m->dense);
}

static inline void close_memory(struct memory *m)
{
    free(m->indices);
    free(m->got);
    free(m->values);
    free(m->got_values);
    free(m->dense);
}

/* Return true if a rank contributes element i in a step. Some ranks contribute nothing
 * in some steps, and in the last step only rank 0 contributes. */
static inline bool gives(const struct scene *s, int rank, int step, size_t i)
{
    if ((rank + step) % 5 == 3 || (step == STARTS - 1 && rank))
        return false;
    if (s->skewed && i / (s->length / 10 + 1) != 3 && i % 1024)
        return false;
    if (s->apart && i % (size_t)s->apart != (size_t)rank)
        return false;
    return oracle_mix((uint64_t)step << 50 ^ (uint64_t)rank << 40 ^ i) % s->one_in == 0;
}

static inline struct oracle oracle_of(const struct ranks_self *self,
                                      const struct scene *s, int step)
{
    return (struct oracle){.kind = ORACLE_EXACT,
                           .seed = (uint64_t)step,
                           .dtype = s->dtype,
                           .op = s->op,
                           .size = self->size};
}

static inline void put(const struct scene *s, struct memory *m, size_t at, size_t index,
                       union perf_number v)
{
    m->indices[at] = index;
    perf_number_store(s->dtype, m->values, at, v);
}

/* Fill in the pairs of this rank: ascending; descending; or in two parts whose values
 * add up. */
static inline size_t fill(struct ranks_self *self, const struct scene *s,
                          struct memory *m, int step)
{
    const struct oracle o = oracle_of(self, s, step);
    const bool is_tiny =
        !perf_number_is_integer(s->dtype) && trib_dtype_size(s->dtype) == 1;
    /* Few numbers have parts that an 8-bit float represents. */
    const int how = (self->rank + step) % (is_tiny ? 2 : 3);
    size_t n = 0;

    for (size_t k = 0; k < s->length; k++) {
        const size_t i = how == 1 ? s->length - 1 - k : k;
        if (!gives(s, self->rank, step, i))
            continue;
        union perf_number v = oracle_input(&o, self->rank, i);
        if (how == 2)
            v = oracle_sum(s->dtype, v, oracle_whole(s->dtype, -1));
        put(s, m, n++, i, v);
    }
    for (size_t k = 0, all = n; how == 2 && k < all; k++)
        put(s, m, n++, m->indices[k], oracle_whole(s->dtype, 1));
    return n;
}

/* Compute the sum of an element. Return false if no rank contributed it. */
static inline bool expected(const struct scene *s, const struct oracle *o, int step,
                            size_t i, struct oracle_answer *out)
{
    bool there = false;

    *out = (struct oracle_answer){.tolerance = 0};
    for (int r = 0; r < o->size; r++) {
        if (!gives(s, r, step, i))
            continue;
        const union perf_number v = oracle_input(o, r, i);
        there = true;
        out->value = oracle_sum(s->dtype, out->value, v);
    }
    out->value = perf_op_finish(s->dtype, s->op, out->value, o->size);
    if (perf_number_is_integer(s->dtype))
        return there;
    if (s->op == TRIB_MEAN)
        out->tolerance = 2 * perf_number_epsilon(s->dtype) * 64;
    else
        out->value = oracle_rounded(s->dtype, out->value);
    return there;
}

static inline void check(struct ranks_self *self, const struct scene *s,
                         struct memory *m, int step, size_t n)
{
    const struct oracle o = oracle_of(self, s, step);
    const size_t element = trib_dtype_size(s->dtype);
    struct oracle_answer want;
    size_t found = 0;

    for (size_t i = 0; i < s->length; i++) {
        const bool there = expected(s, &o, step, i, &want);
        if (!oracle_equal(s->dtype, &want, perf_number_load(s->dtype, m->dense, i)))
            ranks_die(self, "step %d, element %zu of the vector of %zu %s", step, i,
                      s->length, trib_dtype_name(s->dtype));
        if (!there)
            continue;
        ranks_assert(self, found < n && m->got[found] == i);
        ranks_assert(self, memcmp(m->got_values + found * element,
                                  m->dense + i * element, element) == 0);
        found++;
    }
    ranks_assert(self, found == n);
}

/* Check that all ranks have the same bits. */
static inline void compare(struct ranks_self *self, const struct scene *s,
                           const struct memory *m)
{
    int64_t hash[RANKS_MAX];
    const int64_t mine =
        (int64_t)oracle_hash(m->dense, s->length * trib_dtype_size(s->dtype));

    ranks_ok(self, trib_allgather(self->comm, &mine, hash, 1, TRIB_I64));
    for (int r = 0; r < self->size; r++)
        ranks_assert(self, hash[r] == mine);
}

static inline int sums(struct ranks_self *self)
{
    const struct scene *s = self->arg;
    trib_sparse_desc_t d = TRIB_SPARSE_DESC_INIT;
    trib_plan_t *plan;
    struct memory m;
    char text[1000];

    open_memory(self, &m, s->length);
    d.length = s->length;
    d.dtype = s->dtype;
    d.op = s->op;
    d.most = s->most ? s->length / s->one_in * 2 + 50 : 0;
    d.most = d.most < s->length ? d.most : s->length;
    d.algorithm = s->algorithm;
    d.name = "embedding";
    ranks_ok(self, trib_plan_sparse(self->comm, &d, &plan));
    ranks_ok(self, trib_plan_explain(plan, text, sizeof(text)));
    ranks_assert(self, !s->regions || strstr(text, "regions"));
    for (int step = 0; step < STARTS; step++) {
        const size_t given = fill(self, s, &m, step);
        size_t n;
        const trib_status_t st =
            trib_plan_start_sparse(plan, m.indices, m.values, given);
        if (st != TRIB_OK || trib_plan_wait(plan) != TRIB_OK)
            ranks_die(self, "%s", trib_last_error(self->comm));
        ranks_ok(self, trib_plan_sparse_count(plan, &n));
        ranks_ok(self, trib_plan_sparse_pairs(plan, m.got, m.got_values, n));
        ranks_ok(self, trib_plan_sparse_dense(plan, m.dense));
        check(self, s, &m, step, n);
        compare(self, s, &m);
    }
    ranks_ok(self, trib_plan_free(plan));
    close_memory(&m);
    return 0;
}

#endif
