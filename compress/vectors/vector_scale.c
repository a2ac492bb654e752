/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/vectors/vector_scale.h"

#include <assert.h>
#include <string.h>

#include "base/dtype.h"
#include "compress/kernels/kernels.h"

static void scale_f64(char *dst, const char *src, size_t n, double factor,
                      double divisor)
{
    for (size_t i = 0; i < n; i++) {
        double v;
        memcpy(&v, src + i * sizeof(v), sizeof(v));
        v *= factor;
        if (divisor != 0)
            v /= divisor;
        memcpy(dst + i * sizeof(v), &v, sizeof(v));
    }
}

void trib_scale(const struct trib_kernels *kernels, trib_dtype_t dtype, void *dst,
                const void *src, size_t n, double factor, double divisor)
{
    const float weight = (float)factor;

    assert(trib_dtype_is_float(dtype));
    if (dtype == TRIB_F64) {
        scale_f64(dst, src, n, factor, divisor);
        return;
    }
    kernels->reduce[dtype][TRIB_SUM](&(struct trib_reduce_args){
        .src = {src},
        .dst = {dst},
        .n_src = 1,
        .n_dst = 1,
        .n = n,
        .weight = &weight,
        .divisor = (float)divisor,
    });
}

void trib_widen(const struct trib_kernels *kernels, trib_dtype_t dtype, const void *src,
                size_t n, float *dst)
{
    kernels->to_f32[dtype](dst, src, n);
}
