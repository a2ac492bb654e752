/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part of kernels_vec.h: kernels of selections.
 */

/* Store the positions of the lanes in a mask, where lane 0 has position `first`; return
 * their number. */
KERNEL size_t emit_lanes(uint32_t *out, size_t first, uint32_t lanes)
{
    v_compress_i32(out, v_add_i32(v_set_i32((uint32_t)first), v_iota()), lanes);
    return (size_t)__builtin_popcount(lanes);
}

/* As emit_lanes for two neighbouring vecs, which rarely have a hit. */
KERNEL size_t emit_pair(uint32_t *out, size_t first, uint32_t a, uint32_t b)
{
    if (!(a | b))
        return 0;
    const size_t m = emit_lanes(out, first, a);
    return m + emit_lanes(out + m, first + VEC_LANES, b);
}

static size_t select_at_least(const float *x, size_t n, uint32_t threshold,
                              uint32_t *positions_out)
{
    enum { L = VEC_LANES };
    const vec least = v_set_i32(threshold);
    size_t i = 0, m = 0;
    /* hits are rare: one branch for two vecs */
    for (; i + 4 * L <= n; i += 4 * L) {
        const uint32_t a = v_at_least_i32(v_magnitude(v_load(x + i)), least);
        const uint32_t b = v_at_least_i32(v_magnitude(v_load(x + i + L)), least);
        const uint32_t c = v_at_least_i32(v_magnitude(v_load(x + i + 2 * L)), least);
        const uint32_t d = v_at_least_i32(v_magnitude(v_load(x + i + 3 * L)), least);
        m += emit_pair(positions_out + m, i, a, b);
        m += emit_pair(positions_out + m, i + 2 * L, c, d);
    }
    for (; i < n; i++) {
        positions_out[m] = (uint32_t)i;
        m += magnitude_of(x[i]) >= threshold;
    }
    return m;
}

/* Add one vec, and clear one vec of zeros; return one bit per lane that reaches
 * `least`. */
KERNEL uint32_t add_vec_select(float *acc, const float *x, float *zeros, vec least)
{
    const vec sum = v_add_f32(v_load(acc), v_load(x));
    v_store(acc, sum);
    if (zeros)
        v_store(zeros, v_zero());
    return v_at_least_i32(v_magnitude(sum), least);
}

/* add_select, compiled with and without zeros. */
KERNEL size_t add_select_and(float *acc, const float *x, float *zeros, size_t n,
                             uint32_t threshold, uint32_t *positions_out, bool clears)
{
    enum { L = VEC_LANES };
#define ZEROS(at) (clears ? zeros + (at) : NULL)
    const vec least = v_set_i32(threshold);
    size_t i = 0, m = 0;
    /* hits are rare: one branch for two vecs */
    for (; i + 4 * L <= n; i += 4 * L) {
        const uint32_t a = add_vec_select(acc + i, x + i, ZEROS(i), least);
        const uint32_t b = add_vec_select(acc + i + L, x + i + L, ZEROS(i + L), least);
        const size_t j = i + 2 * L;
        const uint32_t c = add_vec_select(acc + j, x + j, ZEROS(j), least);
        const uint32_t d = add_vec_select(acc + j + L, x + j + L, ZEROS(j + L), least);
        m += emit_pair(positions_out + m, i, a, b);
        m += emit_pair(positions_out + m, j, c, d);
    }
    for (; i < n; i++) {
        acc[i] += x[i];
        if (clears)
            zeros[i] = 0.0f;
        positions_out[m] = (uint32_t)i;
        m += magnitude_of(acc[i]) >= threshold;
    }
#undef ZEROS
    return m;
}

static size_t add_select(float *acc, const float *x, float *zeros, size_t n,
                         uint32_t threshold, uint32_t *positions_out)
{
    return zeros ? add_select_and(acc, x, zeros, n, threshold, positions_out, true)
                 : add_select_and(acc, x, NULL, n, threshold, positions_out, false);
}

KERNEL bool any_nonzero(const float *x, size_t n)
{
    enum { L = VEC_LANES };
    size_t i = 0;
    for (; i + 4 * L <= n; i += 4 * L) {
        const vec a = v_or(v_load(x + i), v_load(x + i + L));
        const vec b = v_or(v_load(x + i + 2 * L), v_load(x + i + 3 * L));
        if (v_at_least_i32(v_magnitude(v_or(a, b)), v_set_i32(1)))
            return true; /* skip the rest of the block */
    }
    return any_nonzero_scalar(x + i, n - i);
}

static size_t blocks_nonzero(const float *x, size_t n, size_t block,
                             uint32_t *numbers_out)
{
    size_t m = 0, number = 0;
    for (size_t at = 0; at < n; at += block, number++) {
        numbers_out[m] = (uint32_t)number;
        m += any_nonzero(x + at, n - at < block ? n - at : block);
    }
    return m;
}

/* Bins are short: the remainder takes as long as the loop. */
static uint32_t add_max(float *acc, const float *x, size_t n)
{
    enum { L = VEC_LANES };
    vec most = v_zero();
    uint32_t m = 0;
    size_t i = 0;
    for (; i + L <= n; i += L) {
        const vec sum = v_add_f32(v_load(acc + i), v_load(x + i));
        v_store(acc + i, sum);
        most = v_max_i32(most, v_magnitude(sum));
    }
    if (i < n)
        m = add_max_scalar(acc + i, x + i, n - i);
    const uint32_t most_lane = v_max_lane_i32(most);
    return m > most_lane ? m : most_lane;
}

static size_t select_ahead(const float *g, const float *d, size_t n,
                           const struct trib_ahead *a, uint32_t *positions_out)
{
    enum { L = VEC_LANES };
    const vec factor = v_set_f32(a->factor), least = v_set_i32(a->least);
    size_t i = 0, m = 0;
    for (; i + L <= n; i += L) {
        const vec v = v_load(g + i);
        const vec h = v_add_f32(v, v_mul_f32(factor, v_load(d + i)));
        const uint32_t hits = v_at_least_i32(v_magnitude(h), least) &
                              v_at_least_i32(v_magnitude(v), v_set_i32(1));
        m += emit_lanes(positions_out + m, a->first + i, hits);
    }
    return m + select_ahead_scalar_from(g, d, i, n, a, positions_out + m);
}

