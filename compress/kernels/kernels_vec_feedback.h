/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Third part of kernels_vec.h: see kernels_scalar_feedback.h.
 */
#include "compress/kernels/kernels_scalar_feedback.h"

static void average(float *v, const float *x, size_t n, float keep, float take)
{
    const vec k = v_set_f32(keep), t = v_set_f32(take), inf = v_set_i32(0x7f800000u);
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES) {
        const vec old = v_load(v + i);
        const vec kept = v_keep_below_i32(old, v_magnitude(old), inf);
        v_store(v + i, v_add_f32(v_mul_f32(k, kept), v_mul_f32(t, v_load(x + i))));
    }
    average_scalar(v + i, x + i, n - i, keep, take);
}

static void combine(float *out, const struct trib_combine *c, size_t n)
{
    const vec wa = v_set_f32(c->wa), wb = v_set_f32(c->wb);
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        v_store(out + i, v_add_f32(v_mul_f32(wa, v_load(c->a + i)),
                                   v_mul_f32(wb, v_load(c->b + i))));
    const struct trib_combine rest = {c->a + i, c->b + i, c->wa, c->wb};
    combine_scalar(out + i, &rest, n - i);
}
