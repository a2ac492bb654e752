/* SPDX-License-Identifier: BSD-3-Clause */
#define ROBUST_REAL double
#include "compress/vectors/robust_rows.h"

void trib_robust_reduce_f64(const struct trib_robust *robust, const uint8_t *const *src,
                            int n_src, const struct trib_reduce_args *r)
{
    reduce_rows(robust, src, n_src, r);
}
