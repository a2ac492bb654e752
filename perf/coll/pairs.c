/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --call pairs: pass the nonzero elements of the input as a sparse vector.
 */
#include <stdlib.h>
#include <string.h>

#include "perf/coll/operation.h"


struct perf_pairs {
    uint64_t *indices; /* [count] indices of this rank's pairs */
    void *values;
    size_t n;
    uint64_t *got; /* [count] indices of the union */
    void *got_values;
};

void perf_pairs_close(struct perf_operation *op)
{
    struct perf_pairs *p = op->pairs;

    if (p == NULL)
        return;
    free(p->indices);
    free(p->values);
    free(p->got);
    free(p->got_values);
    free(p);
    op->pairs = NULL;
}

void perf_pairs_take(struct perf_operation *op)
{
    static const char zero[8];
    const size_t element = trib_dtype_size(op->desc.dtype);
    struct perf_pairs *p = op->pairs;

    p->n = 0;
    for (size_t i = 0; i < op->desc.count; i++) {
        const char *x = (const char *)op->input + i * element;
        if (memcmp(x, zero, element) == 0)
            continue;
        memcpy((char *)p->values + p->n * element, x, element);
        p->indices[p->n++] = i;
    }
}

/* Sum, and read the union as pairs. */
static trib_status_t run(struct perf_operation *op)
{
    struct perf_pairs *p = op->pairs;

    trib_status_t status =
        trib_plan_start_sparse(op->plan, p->indices, p->values, p->n);
    if (status == TRIB_OK)
        status = trib_plan_wait(op->plan);
    if (status == TRIB_OK)
        status =
            trib_plan_sparse_pairs(op->plan, p->got, p->got_values, op->desc.count);
    return status;
}

trib_status_t perf_pairs_open(struct perf_operation *op)
{
    const size_t count = op->desc.count;
    struct perf_pairs *p = op->pairs = calloc(1, sizeof(*p));

    if (p == NULL)
        return TRIB_ERR_NO_MEMORY;
    p->indices = malloc((count + 1) * sizeof(*p->indices));
    p->values = malloc((count + 1) * trib_dtype_size(op->desc.dtype));
    p->got = malloc((count + 1) * sizeof(*p->got));
    p->got_values = malloc((count + 1) * trib_dtype_size(op->desc.dtype));
    if (p->indices == NULL || p->values == NULL || p->got == NULL ||
        p->got_values == NULL)
        return TRIB_ERR_NO_MEMORY;
    op->run = run;
    return TRIB_OK;
}

size_t perf_pairs_given(const struct perf_operation *op)
{
    return op->pairs->n;
}

trib_status_t perf_pairs_plan(struct perf_operation *op, size_t most)
{
    trib_sparse_desc_t d = TRIB_SPARSE_DESC_INIT;

    d.length = op->desc.count;
    d.dtype = op->desc.dtype;
    d.op = op->desc.op;
    d.most = most;
    d.algorithm = op->desc.algorithm;
    return trib_plan_sparse(op->comm, &d, &op->plan);
}
