/* SPDX-License-Identifier: BSD-3-Clause */
/* Pushes and pulls of selected elements. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agg/store_client/rank_store.h"
#include "base/minmax.h"

trib_status_t trib_vector_check_indices(const struct trib_vector *v,
                                        const uint64_t *indices, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (indices[i] >= v->count)
            return trib_store_fail(v->store, TRIB_ERR_INVALID,
                                   "vector %s: index %" PRIu64 " at position %zu, but "
                                   "the vector has %zu elements",
                                   v->name, indices[i], i, v->count);
    return TRIB_OK;
}

trib_status_t trib_vector_sort(struct trib_store_request *r,
                               const struct trib_pairs_input *given)
{
    struct trib_vector *v = r->vector;
    struct trib_pairs_input sorted = *given;
    trib_status_t st = trib_vector_check_indices(v, given->indices, given->n);

    if (st == TRIB_OK && given->n)
        st = trib_sorted_pairs_make(&v->pairs, v->dtype, v->store->kernels, given,
                                    &sorted);
    if (st == TRIB_ERR_NO_MEMORY)
        return trib_store_fail(v->store, st,
                               "vector %s: out of memory to sort %zu pairs", v->name,
                               given->n);
    r->indices = sorted.indices;
    r->n_indices = sorted.n;
    r->data = sorted.values;
    return st;
}

/* Return the part that contains an element. */
static struct trib_vector_part *part_of(struct trib_vector *v, uint64_t index)
{
    const size_t guess = (size_t)index / v->parts[0].count;
    struct trib_vector_part *p = &v->parts[trib_min(guess, (size_t)v->n_parts - 1)];

    assert(index < v->count);
    while (index < p->first)
        p--;
    while (index - p->first >= p->count)
        p++;
    return p;
}

/* Sort the indices of a pull by part; places_out: original position of each. */
static void sort_by_part(const struct trib_store_request *r, uint64_t *out,
                         size_t *places_out)
{
    struct trib_vector *v = r->vector;
    size_t at[TRIB_AGGREGATORS_MAX + 1] = {0};

    assert(v->n_parts <= TRIB_AGGREGATORS_MAX);
    for (size_t i = 0; i < r->n_indices; i++)
        at[part_of(v, r->indices[i]) - v->parts + 1]++;
    for (int k = 1; k < v->n_parts; k++)
        at[k] += at[k - 1];
    for (size_t i = 0; i < r->n_indices; i++) {
        const size_t to = at[part_of(v, r->indices[i]) - v->parts]++;
        out[to] = r->indices[i];
        places_out[to] = i;
    }
}

trib_status_t trib_vector_pull_each(struct trib_store_request *r)
{
    const size_t n = r->n_indices, element = trib_dtype_size(r->vector->dtype);
    uint8_t *const result = r->out;

    assert(n > 0 && r->indices);
    if (r->vector->n_parts == 1)
        return trib_vector_request(r);
    uint64_t *indices = malloc(n * sizeof(*indices));
    size_t *places = malloc(n * sizeof(*places));
    r->out = malloc(n * element);
    trib_status_t st = TRIB_ERR_NO_MEMORY;
    if (indices && places && r->out) {
        sort_by_part(r, indices, places);
        r->indices = indices;
        st = trib_vector_request(r);
    } else {
        (void)trib_store_fail(r->vector->store, st,
                              "vector %s: out of memory to sort %zu indices",
                              r->vector->name, n);
    }
    for (size_t i = 0; i < n && st == TRIB_OK; i++)
        memcpy(result + places[i] * element, r->out + i * element, element);
    free(indices);
    free(places);
    free(r->out);
    return st;
}

/* Return the position of an existing index. */
static size_t find(const struct trib_store_request *r, uint64_t index)
{
    size_t low = 0, high = r->n_indices - 1;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (r->indices[middle] < index)
            low = middle + 1;
        else
            high = middle;
    }
    assert(r->indices[low] == index);
    return low;
}

void trib_vector_spread(const struct trib_store_request *r,
                        const struct trib_pairs_input *given, const uint8_t *sorted,
                        void *out)
{
    const size_t element = trib_dtype_size(r->vector->dtype);

    for (size_t i = 0; i < given->n; i++)
        memcpy((uint8_t *)out + i * element,
               sorted + find(r, given->indices[i]) * element, element);
}
