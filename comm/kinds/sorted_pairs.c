/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/kinds/sorted_pairs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "comm/core/communicator.h"

enum {
    DIGIT_BITS = 8,
    DIGITS = 1 << DIGIT_BITS,
    BLOCK = 64, /* values converted at a time */
};

void trib_sorted_pairs_free(struct trib_sorted_pairs *s)
{
    free(s->order[0]);
    free(s->order[1]);
    free(s->indices);
    free(s->values);
    *s = (struct trib_sorted_pairs){.room = 0};
}

bool trib_sorted_pairs_is(const uint64_t *indices, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (indices[i] <= indices[i - 1])
            return false;
    return true;
}

static trib_status_t grow(struct trib_sorted_pairs *s, size_t n, size_t element)
{
    if (n <= s->room)
        return TRIB_OK;
    trib_sorted_pairs_free(s);
    s->order[0] = malloc(n * sizeof(*s->order[0]));
    s->order[1] = malloc(n * sizeof(*s->order[1]));
    s->indices = malloc(n * sizeof(*s->indices));
    s->values = malloc(n * element);
    if (!s->order[0] || !s->order[1] || !s->indices || !s->values) {
        trib_sorted_pairs_free(s);
        return TRIB_ERR_NO_MEMORY;
    }
    s->room = n;
    return TRIB_OK;
}

/* Sort by one digit; stable. */
static void sort_digit(const struct trib_pair_order *from, struct trib_pair_order *to,
                       size_t n, unsigned shift)
{
    size_t place[DIGITS + 1] = {0};

    for (size_t i = 0; i < n; i++)
        place[(from[i].index >> shift) % DIGITS + 1]++;
    for (int d = 0; d < DIGITS; d++)
        place[d + 1] += place[d];
    for (size_t i = 0; i < n; i++)
        to[place[(from[i].index >> shift) % DIGITS]++] = from[i];
}

/* Sort the pairs' positions by index; stable. */
static const struct trib_pair_order *sort(struct trib_sorted_pairs *s,
                                          const struct trib_pairs_input *given)
{
    uint64_t bits = 0;
    int from = 0;

    assert(s->room >= given->n);
    for (size_t i = 0; i < given->n; i++) {
        s->order[0][i] = (struct trib_pair_order){given->indices[i], i};
        bits |= given->indices[i];
    }
    for (unsigned shift = 0; shift < 64 && bits >> shift; shift += DIGIT_BITS) {
        sort_digit(s->order[from], s->order[!from], given->n, shift);
        from = !from;
    }
    return s->order[from];
}

static void add_floats(const struct trib_kernels *k, trib_dtype_t dtype,
                       const uint8_t *values, const struct trib_pair_order *order,
                       size_t n, uint8_t *to)
{
    const size_t element = trib_dtype_size(dtype);
    uint8_t block[BLOCK * sizeof(float)];
    float as_f32[BLOCK], sum = 0;

    for (size_t i = 0, m; i < n; i += m) {
        m = n - i < BLOCK ? n - i : BLOCK;
        for (size_t j = 0; j < m; j++)
            memcpy(block + j * element, values + order[i + j].from * element, element);
        k->to_f32[dtype](as_f32, block, m);
        for (size_t j = 0; j < m; j++)
            sum = i + j ? sum + as_f32[j] : as_f32[0];
    }
    k->from_f32[dtype](to, &sum, 1);
}

static void add_doubles(const uint8_t *values, const struct trib_pair_order *order,
                        size_t n, uint8_t *to)
{
    double sum = 0, v;

    for (size_t i = 0; i < n; i++) {
        memcpy(&v, values + order[i].from * sizeof(v), sizeof(v));
        sum = i ? sum + v : v;
    }
    memcpy(to, &sum, sizeof(sum));
}

/* The low bytes of a 64-bit sum are the wrapped sum of shorter integers. */
static void add_integers(const uint8_t *values, const struct trib_pair_order *order,
                         size_t n, size_t element, uint8_t *to)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t v = 0;
        memcpy(&v, values + order[i].from * element, element);
        sum += v;
    }
    memcpy(to, &sum, element);
}

/* Add the values of one index. */
static void add(const struct trib_kernels *k, trib_dtype_t dtype, const uint8_t *values,
                const struct trib_pair_order *order, size_t n, uint8_t *to)
{
    const size_t element = trib_dtype_size(dtype);

    assert(n > 0);
    if (n == 1)
        memcpy(to, values + order[0].from * element, element);
    else if (dtype == TRIB_F64)
        add_doubles(values, order, n, to);
    else if (trib_dtype_is_float(dtype))
        add_floats(k, dtype, values, order, n, to);
    else
        add_integers(values, order, n, element, to);
}

trib_status_t trib_sorted_pairs_make(struct trib_sorted_pairs *s, trib_dtype_t dtype,
                                     const struct trib_kernels *kernels,
                                     const struct trib_pairs_input *given,
                                     struct trib_pairs_input *out)
{
    const size_t element = trib_dtype_size(dtype);
    size_t kept = 0;

    assert(element && (!given->n || (given->indices && given->values)));
    if (trib_sorted_pairs_is(given->indices, given->n)) {
        *out = *given;
        return TRIB_OK;
    }
    if (grow(s, given->n, element) != TRIB_OK)
        return TRIB_ERR_NO_MEMORY;
    const struct trib_pair_order *order = sort(s, given);
    for (size_t i = 0, same; i < given->n; i += same, kept++) {
        for (same = 1; i + same < given->n && order[i + same].index == order[i].index;)
            same++;
        s->indices[kept] = order[i].index;
        add(kernels, dtype, given->values, order + i, same, s->values + kept * element);
    }
    assert(kept > 0 && kept <= given->n && trib_sorted_pairs_is(s->indices, kept));
    *out = (struct trib_pairs_input){s->indices, s->values, kept};
    return TRIB_OK;
}
