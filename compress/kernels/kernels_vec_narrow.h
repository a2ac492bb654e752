/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part of kernels_vec.h: conversion of 8- and 16-bit floats from and to 32-bit lanes.
 */

/* Round non-negative lanes. h: random bits; NULL: to nearest even. */
KERNEL vec v_narrow(vec u, const vec *h, const struct narrow f)
{
    const vec odd = v_and(v_shr_any_i32(u, f.drop), v_set_i32(1));
    const vec half = v_add_i32(odd, v_set_i32((1u << (f.drop - 1)) - 1));
    vec add = half;
    if (h)
        add = v_or(v_keep_below_i32(v_shr_any_i32(*h, 32 - f.drop), u,
                                    v_set_i32(f.most + 1)),
                   v_keep_below_i32(half, v_set_i32(f.most), u));
    const vec code =
        v_add_i32(v_shr_any_i32(v_add_i32(u, add), f.drop), v_set_i32(-f.rebias));
    vec r = v_min_i32(code, v_set_i32(f.top));
    if (f.quiet)
        r = v_or(r, v_keep_below_i32(v_set_i32(f.quiet), v_set_i32(0x7f800000u), u));
    if (!f.normal)
        return r;
    const vec y = v_mul_f32(u, v_set_f32(f.steps));
    vec step;
    if (h) {
        const vec uniform = v_mul_f32(v_to_f32(v_shr_i32(*h, 8)), v_set_f32(0x1p-24f));
        step = v_truncate(v_add_f32(y, uniform));
    } else {
        step = v_add_i32(v_add_f32(y, v_set_f32(0x1p23f)), v_set_i32(-0x4b000000u));
    }
    return v_or(v_keep_below_i32(step, u, v_set_i32(f.normal)),
                v_keep_below_i32(r, v_set_i32(f.normal - 1), u));
}

/* Convert each lane to the nearest 8-bit float, sign included. */
KERNEL vec v_f8_of(vec v, const struct narrow f)
{
    const vec code = v_narrow(v_and(v, v_set_i32(0x7fffffffu)), NULL, f);
    return v_or(code, v_shl_i32(v_shr_i32(v, 31), 7));
}

/* Decode 8-bit codes, one per lane. */
KERNEL vec v_f8_value(vec code, const struct narrow f)
{
    const vec c = v_and(code, v_set_i32(0x7f));
    const vec least = v_set_i32(1u << (23 - f.drop));
    const vec inf = v_keep_below_i32(v_set_i32(0x7f800000u), v_set_i32(f.top), c);
    const vec bits = v_shl_any_i32(v_add_i32(c, v_set_i32(f.rebias)), f.drop);
    const vec small = v_mul_f32(v_to_f32(c), v_set_f32(1.0f / f.steps));
    const vec large =
        v_keep_below_i32(v_or(bits, inf), v_add_i32(least, v_set_i32(-1u)), c);
    const vec v = v_or(v_keep_below_i32(small, c, least), large);
    return v_or(v, v_shl_i32(v_shr_i32(code, 7), 31));
}
