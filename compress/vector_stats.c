/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/vector_stats.h"

#include <math.h>
#include <string.h>

#include "compress/kernels/kernels.h"

enum { BLOCK = 1024 /* elements converted at a time */ };

static void add_f64(const void *x, size_t n, struct trib_numbers *out)
{
    for (size_t i = 0; i < n; i++) {
        double v;
        memcpy(&v, (const char *)x + i * sizeof(v), sizeof(v));
        const double magnitude = fabs(v);
        if (!isfinite(v)) {
            out->not_finite++;
            continue;
        }
        out->zeros += magnitude <= 0;
        out->squares += v * v;
        out->largest = magnitude > out->largest ? magnitude : out->largest;
    }
    out->elements += n;
}

void trib_numbers_add(const struct trib_kernels *kernels, trib_dtype_t dtype,
                      const void *x, size_t n, struct trib_numbers *out)
{
    const size_t element = trib_dtype_size(dtype);
    float part[BLOCK];

    if (dtype == TRIB_F64) {
        add_f64(x, n, out);
        return;
    }
    if (dtype == TRIB_F32 && (uintptr_t)x % sizeof(float) == 0) {
        kernels->numbers_add(x, n, out);
        return;
    }
    for (size_t first = 0; first < n; first += BLOCK) {
        const size_t count = n - first < BLOCK ? n - first : BLOCK;
        kernels->to_f32[dtype](part, (const char *)x + first * element, count);
        kernels->numbers_add(part, count, out);
    }
}
