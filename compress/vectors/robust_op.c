/* SPDX-License-Identifier: BSD-3-Clause */
#define ROBUST_REAL float
#include "compress/vectors/robust_rows.h"

bool trib_robust_is(trib_op_t op)
{
    return op >= TRIB_MEDIAN && op <= TRIB_CLIPPED_MEAN;
}

size_t trib_robust_bytes(trib_dtype_t dtype, int n_src)
{
    return (size_t)n_src * BLOCK * (dtype == TRIB_F64 ? sizeof(double) : sizeof(float));
}

void trib_robust_reduce(const struct trib_robust *robust, const uint8_t *const *src,
                        int n_src, const struct trib_reduce_args *r)
{
    if (robust->dtype == TRIB_F64)
        trib_robust_reduce_f64(robust, src, n_src, r);
    else
        reduce_rows(robust, src, n_src, r);
}
