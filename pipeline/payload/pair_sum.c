/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/pair_sum.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "pipeline/run/engine_state.h"

/* Return the type in which values are added. */
static trib_dtype_t acc_dtype(trib_dtype_t dtype)
{
    return trib_dtype_is_narrow(dtype) ? TRIB_F32 : dtype;
}

size_t trib_pair_sum_element(trib_dtype_t dtype)
{
    return trib_dtype_size(acc_dtype(dtype));
}

static size_t mask_words(size_t most)
{
    return most / 64 + 1;
}

static size_t some_words(size_t most)
{
    return mask_words(most) / 64 + 1;
}

size_t trib_pair_sum_bytes(trib_dtype_t dtype, size_t most)
{
    return (mask_words(most) + some_words(most)) * sizeof(uint64_t) +
           most * (2 * trib_dtype_size(acc_dtype(dtype)) + sizeof(uint32_t) +
                   trib_dtype_is_narrow(dtype) * sizeof(float));
}

trib_status_t trib_pair_sum_open(struct trib_pair_sum *s, const struct trib_kernels *k,
                                 trib_dtype_t dtype, size_t most)
{
    const size_t element = trib_dtype_size(acc_dtype(dtype));

    *s = (struct trib_pair_sum){.kernels = k, .dtype = dtype, .most = most};
    s->mask = calloc(mask_words(most), sizeof(*s->mask));
    s->some = calloc(some_words(most), sizeof(*s->some));
    s->acc = malloc(most * element + 64);
    s->at = malloc((most + 64) * sizeof(*s->at));
    s->values = malloc(most * element + 64);
    if (trib_dtype_is_narrow(dtype))
        s->stage = malloc((most + 1) * sizeof(*s->stage));
    return s->mask && s->some && s->acc && s->at && s->values &&
                   (s->stage || !trib_dtype_is_narrow(dtype))
               ? TRIB_OK
               : TRIB_ERR_NO_MEMORY;
}

void trib_pair_sum_close(struct trib_pair_sum *s)
{
    free(s->mask);
    free(s->some);
    free(s->acc);
    free(s->at);
    free(s->values);
    free(s->stage);
    *s = (struct trib_pair_sum){.most = 0};
}

/* Add 64 values of a block at once if all or none of their positions are in the sum,
 * else one by one. Unsigned sums wrap like integer sums. */
#define ADD(type) \
    static void add_##type(struct trib_pair_sum *s, const struct trib_pairs *p) \
    { \
        for (size_t i = 0; i < p->n;) { \
            const uint8_t *from = p->values + i * sizeof(type); \
            const uint32_t word = p->at[i] / 64; \
            type *acc = (type *)(void *)s->acc + (size_t)word * 64, v[64]; \
            uint64_t bits = s->mask[word]; \
            if ((!bits || bits == UINT64_MAX) && trib_pair_block(p, i)) { \
                memcpy(v, from, sizeof(v)); \
                for (size_t k = 0; bits && k < 64; k++) \
                    v[k] = (type)(acc[k] + v[k]); \
                memcpy(acc, v, sizeof(v)); \
                bits = UINT64_MAX; \
                i += 64; \
            } \
            for (; i < p->n && p->at[i] / 64 == word; i++, from += sizeof(type)) { \
                const uint32_t at = p->at[i] % 64; \
                memcpy(v, from, sizeof(*v)); \
                acc[at] = bits >> at & 1 ? (type)(acc[at] + *v) : *v; \
                bits |= UINT64_C(1) << at; \
            } \
            s->mask[word] = bits; \
            s->some[word / 64] |= UINT64_C(1) << word % 64; \
        } \
    }
ADD(float)
ADD(double)
ADD(uint8_t)
ADD(uint16_t)
ADD(uint32_t)
ADD(uint64_t)

/* Floats with fewer bits are added as float32. */
static void (*const adders[TRIB_DTYPE_COUNT])(struct trib_pair_sum *s,
                                              const struct trib_pairs *p) = {
    [TRIB_F32] = add_float,    [TRIB_F64] = add_double,   [TRIB_I8] = add_uint8_t,
    [TRIB_U8] = add_uint8_t,   [TRIB_I16] = add_uint16_t, [TRIB_U16] = add_uint16_t,
    [TRIB_I32] = add_uint32_t, [TRIB_U32] = add_uint32_t, [TRIB_I64] = add_uint64_t,
    [TRIB_U64] = add_uint64_t,
};

void trib_pair_sum_add_partial(struct trib_pair_sum *s, const struct trib_pairs *p)
{
    assert(p->n <= s->most && (!p->n || p->at[p->n - 1] < s->most));
    assert(adders[acc_dtype(s->dtype)]);
    adders[acc_dtype(s->dtype)](s, p);
}

void trib_pair_sum_add(struct trib_pair_sum *s, const struct trib_pairs *p)
{
    struct trib_pairs wide = *p;

    assert(p->n <= s->most);
    if (trib_dtype_is_narrow(s->dtype)) {
        s->kernels->to_f32[s->dtype](s->stage, p->values, p->n);
        wide.values = (const uint8_t *)s->stage;
    }
    trib_pair_sum_add_partial(s, &wide);
}

/* Append the values of 64 positions, from `first` on, to the `found` values; return the
 * new number. */
static inline size_t take_64(struct trib_pair_sum *s, size_t first, size_t element,
                             size_t found)
{
    uint64_t bits = s->mask[first / 64];
    const bool all = bits == UINT64_MAX;

    s->mask[first / 64] = 0;
    for (uint32_t i = 0; all && i < 64; i++)
        s->at[found + i] = (uint32_t)first + i;
    if (all) {
        memcpy(s->values + found * element, s->acc + first * element, 64 * element);
        return found + 64;
    }
    for (; bits; bits &= bits - 1, found++) {
        const size_t at = first + (size_t)__builtin_ctzll(bits);
        s->at[found] = (uint32_t)at;
        trib_pair_copy(s->values + found * element, s->acc + at * element, element);
    }
    return found;
}

struct trib_pairs trib_pair_sum_take_partial(struct trib_pair_sum *s, size_t n)
{
    const size_t element = trib_pair_sum_element(s->dtype);
    size_t found = 0;

    assert(n <= s->most);
    for (size_t first = 0; first < n; first += 4096) {
        uint64_t bits = s->some[first / 4096];
        s->some[first / 4096] = 0;
        for (; bits; bits &= bits - 1)
            found =
                take_64(s, first + 64 * (size_t)__builtin_ctzll(bits), element, found);
    }
    return (struct trib_pairs){found, s->at, s->values};
}

struct trib_pairs trib_pair_sum_take(struct trib_pair_sum *s, size_t n, int ranks)
{
    const trib_dtype_t type = acc_dtype(s->dtype);
    const size_t found = trib_pair_sum_take_partial(s, n).n;

    assert(ranks >= 0);
    const struct trib_reduce_args mean = {.src = {s->values},
                                          .dst = {s->values},
                                          .n_src = 1,
                                          .n_dst = 1,
                                          .n = found,
                                          .ranks = ranks};
    if (ranks && found)
        s->kernels->reduce[type][TRIB_MEAN](&mean);
    if (trib_dtype_is_narrow(s->dtype) && found) {
        memcpy(s->stage, s->values, found * sizeof(*s->stage));
        s->kernels->from_f32[s->dtype](s->values, s->stage, found);
    }
    return (struct trib_pairs){found, s->at, s->values};
}
