/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/vectors/vector_split.h"

#include <assert.h>

#include "base/dtype.h"
#include "compress/kernels/kernels.h"

enum {
    /* elements that stay in a core's cache while all parts are subtracted */
    BLOCK = 4096,
    TAKEN = TRIB_REDUCE_MAX_SRC - 1, /* parts per pass over the remainder */
};

static void *at(void *x, trib_dtype_t dtype, size_t first)
{
    return (char *)x + first * trib_dtype_size(dtype);
}

void trib_vector_add(const struct trib_kernels *kernels, trib_dtype_t dtype, void *x,
                     const void *part, size_t n)
{
    assert(dtype != TRIB_BOOL);
    kernels->reduce[dtype][TRIB_SUM](&(struct trib_reduce_args){
        .src = {x, part}, .dst = {x}, .n_src = 2, .n_dst = 1, .n = n});
}

static void split_f64(double *x, size_t first, size_t n,
                      const struct trib_vector_part *parts, int n_parts)
{
    for (size_t i = first; i < first + n; i++) {
        const double whole = x[i];
        double left = whole;
        for (int k = 0; k < n_parts; k++)
            left -= ((double *)parts[k].x)[i] = parts[k].share * whole;
        x[i] = left;
    }
}

/* Compute each part as a product, then the remainder as a sum with parts weighted
 * -1. */
static void split_f32(const struct trib_kernels *kernels, float *x, size_t first,
                      size_t n, const struct trib_vector_part *parts, int n_parts)
{
    static const float weights[TRIB_REDUCE_MAX_SRC] = {1, -1, -1, -1, -1, -1, -1, -1};

    for (int k = 0; k < n_parts; k++) {
        const float share = (float)parts[k].share;
        kernels->reduce[TRIB_F32][TRIB_SUM](&(struct trib_reduce_args){
            .src = {x + first},
            .dst = {at(parts[k].x, TRIB_F32, first)},
            .n_src = 1,
            .n_dst = 1,
            .n = n,
            .weight = &share});
    }
    for (int k = 0; k < n_parts; k += TAKEN) {
        const int some = n_parts - k < TAKEN ? n_parts - k : TAKEN;
        struct trib_reduce_args a = {.src = {x + first},
                                     .dst = {x + first},
                                     .n_src = 1 + some,
                                     .n_dst = 1,
                                     .n = n,
                                     .weight = weights};
        for (int p = 0; p < some; p++)
            a.src[1 + p] = at(parts[k + p].x, TRIB_F32, first);
        kernels->reduce[TRIB_F32][TRIB_SUM](&a);
    }
}

void trib_vector_split(const struct trib_kernels *kernels, trib_dtype_t dtype, void *x,
                       size_t n, const struct trib_vector_part *parts, int n_parts)
{
    assert(dtype == TRIB_F32 || dtype == TRIB_F64);
    for (size_t first = 0; first < n; first += BLOCK) {
        const size_t some = n - first < BLOCK ? n - first : BLOCK;
        if (dtype == TRIB_F64)
            split_f64(x, first, some, parts, n_parts);
        else
            split_f32(kernels, x, first, some, parts, n_parts);
    }
}
