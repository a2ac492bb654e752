/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part of kernels_vec.h: see kernels_scalar_stratified.h. Every lane has its own
 * cursor, which advances by VEC_LANES strata.
 */
#include "compress/kernels/kernels_scalar_stratified.h"

/* Largest k: the sum of two remainders below k stays below 2^31. */
#define STRATA_VEC_MOST (UINT32_C(1) << 30)

static void stratified_positions(const struct trib_stratified *s, size_t first,
                                 size_t count, uint32_t *positions_out)
{
    enum { L = VEC_LANES };
    const struct stratified_cursor one = stratified_cursor_at(s, 1),
                               all = stratified_cursor_at(s, L);
    const vec whole = v_set_i32((uint32_t)one.at), rest = v_set_i32((uint32_t)one.left);
    const vec whole_all = v_set_i32((uint32_t)all.at),
              rest_all = v_set_i32((uint32_t)all.left);
    const vec k = v_set_i32((uint32_t)s->k), last = v_set_i32((uint32_t)s->k - 1);
    const vec key1 = v_set_i32(s->keys[1]), step = v_set_i32(L * 0x9e3779b9u);
    uint32_t starts[2][L];
    size_t i = 0;
    if (count < L || s->k > STRATA_VEC_MOST) {
        stratified_positions_scalar(s, first, count, positions_out);
        return;
    }
    struct stratified_cursor c = stratified_cursor_at(s, first);
    for (int l = 0; l < L; l++) {
        starts[0][l] = (uint32_t)c.at;
        starts[1][l] = (uint32_t)c.left;
        (void)stratified_next_size(&c, s, one);
    }
    vec at = v_load(starts[0]), left = v_load(starts[1]);
    vec counter = v_counters((uint32_t)first * 0x9e3779b9u + s->keys[0]);
    for (; i + L <= count; i += L, counter = v_add_i32(counter, step)) {
        vec h = v_hash(counter, key1);
        h = v_xor(h, v_shr_i32(h, 16));
        /* all ones for strata that have one more element */
        const vec more = v_sign_i32(v_sub_i32(last, v_add_i32(left, rest)));
        v_store(positions_out + i,
                v_add_i32(at, v_mul_high_u32(h, v_sub_i32(whole, more))));
        left = v_add_i32(left, rest_all);
        const vec carry = v_sign_i32(v_sub_i32(last, left));
        left = v_sub_i32(left, v_and(k, carry));
        at = v_add_i32(at, v_sub_i32(whole_all, carry));
    }
    stratified_positions_scalar(s, first + i, count - i, positions_out + i);
}
