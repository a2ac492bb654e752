/* SPDX-License-Identifier: BSD-3-Clause */
/* Pushes and pulls of some elements. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "store/rank_store.h"

trib_status_t trib_vector_check_indices(const struct trib_vector *v,
                                        const uint64_t *indices, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (indices[i] >= v->count)
            return trib_store_fail(v->store, TRIB_ERR_INVALID,
                                   "vector %s: index %" PRIu64
                                   " at place %zu, the vector has %zu elements",
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
        return trib_store_fail(v->store, st, "vector %s: no memory to sort %zu pairs",
                               v->name, given->n);
    r->indices = sorted.indices;
    r->n_indices = sorted.n;
    r->data = sorted.values;
    r->data_bytes = sorted.n * trib_dtype_size(v->dtype);
    return st;
}

/* The place of an index that is there. */
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
