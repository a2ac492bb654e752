/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Second half of kernels_vec.h: what codecs alone need.
 */

KERNEL vec v_magnitude(vec v)
{
    return v_and(v, v_set_i32(0x7fffffffu));
}

static uint32_t max_magnitude(const float *x, size_t n)
{
    vec a = v_zero(), b = v_zero();
    uint32_t lane[VEC_LANES], m = 0;
    size_t i = 0;
    /* magnitudes are below 2^31: signed comparison will do */
    for (; i + 2 * VEC_LANES <= n; i += 2 * VEC_LANES) {
        a = v_max_i32(a, v_magnitude(v_load(x + i)));
        b = v_max_i32(b, v_magnitude(v_load(x + i + VEC_LANES)));
    }
    v_store(lane, v_max_i32(a, b));
    for (int j = 0; j < VEC_LANES; j++)
        m = lane[j] > m ? lane[j] : m;
    const uint32_t rest = max_magnitude_scalar(x + i, n - i);
    return rest > m ? rest : m;
}

static float sum_squares(const float *x, size_t n)
{
    enum { VECS = SQUARE_LANES / VEC_LANES };
    vec sum[VECS];
    float lane[SQUARE_LANES];
    size_t i = 0;
    for (int u = 0; u < VECS; u++)
        sum[u] = v_zero();
    for (; i + SQUARE_LANES <= n; i += SQUARE_LANES) {
        for (int u = 0; u < VECS; u++) {
            const vec v = v_load(x + i + u * VEC_LANES);
            sum[u] = v_add_f32(sum[u], v_mul_f32(v, v));
        }
    }
    for (int u = 0; u < VECS; u++)
        v_store(lane + u * VEC_LANES, sum[u]);
    for (size_t j = 0; i + j < n; j++)
        lane[j] += x[i + j] * x[i + j];
    return fold_lanes(lane);
}

static size_t select_at_least(const float *x, size_t n, uint32_t threshold,
                              uint32_t *positions_out)
{
    const vec least = v_set_i32(threshold);
    size_t i = 0, m = 0;
    /* few are selected: one branch for four vecs */
    for (; i + 4 * VEC_LANES <= n; i += 4 * VEC_LANES) {
        uint32_t hits[4], any = 0;
        for (int u = 0; u < 4; u++)
            any |= hits[u] = v_at_least_i32(v_magnitude(v_load(x + i + u * VEC_LANES)), least);
        for (int u = 0; any && u < 4; u++) {
            const vec at = v_add_i32(v_set_i32((uint32_t)(i + u * VEC_LANES)), v_iota());
            v_compress_i32(positions_out + m, at, hits[u]);
            m += (size_t)__builtin_popcount(hits[u]);
        }
    }
    for (; i < n; i++) {
        positions_out[m] = (uint32_t)i;
        m += magnitude_of(x[i]) >= threshold;
    }
    return m;
}

static void drop_not_finite(float *x, size_t n)
{
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES) {
        const vec v = v_load(x + i);
        v_store(x + i, v_keep_below_i32(v, v_magnitude(v), v_set_i32(0x7f800000u)));
    }
    drop_not_finite_scalar(x + i, n - i);
}

KERNEL vec v_level_hash(vec i, const struct trib_levels *l)
{
    vec h = v_add_i32(v_mul_i32(i, v_set_i32(0x9e3779b9u)), v_set_i32(l->key[0]));
    h = v_xor(h, v_shr_i32(h, 16));
    h = v_mul_i32(h, v_set_i32(0x7feb352du));
    h = v_xor(h, v_shr_i32(h, 15));
    h = v_mul_i32(v_add_i32(h, v_set_i32(l->key[1])), v_set_i32(0x846ca68bu));
    return v_xor(h, v_shr_i32(h, 16));
}

static void levels_encode(uint8_t *codes, const float *x, size_t n,
                          const struct trib_levels *l)
{
    const vec scale = v_set_f32(l->scale), unit = v_set_f32(0x1p-24f);
    const vec highest = v_set_i32(l->highest), sign = v_set_i32(l->sign);
    vec at = v_iota();
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES) {
        const vec v = v_load(x + i);
        const vec u = v_mul_f32(v_to_f32(v_shr_i32(v_level_hash(at, l), 8)), unit);
        const vec y = v_add_f32(v_mul_f32(v_magnitude(v), scale), u);
        const vec level = v_min_i32(v_truncate(y), highest);
        v_store_u8(codes + i, v_or(level, v_and(v_sign_i32(v), sign)));
        at = v_add_i32(at, v_set_i32(VEC_LANES));
    }
    levels_encode_scalar(codes, x, n, i, l);
}

KERNEL vec v_level_value(const uint8_t *codes, const struct trib_levels *l)
{
    const vec code = v_load_u8(codes);
    const vec level = v_to_f32(v_and(code, v_set_i32(l->sign - 1)));
    const vec v = v_mul_f32(v_div_f32(level, v_set_f32((float)l->highest)), v_set_f32(l->norm));
    const vec negative = v_and(code, v_set_i32(l->sign));
    return v_xor(v, v_shl_any_i32(negative, __builtin_clz(l->sign)));
}

static void levels_decode(float *x, const uint8_t *codes, size_t n,
                          const struct trib_levels *l)
{
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        v_store(x + i, v_level_value(codes + i, l));
    levels_decode_scalar(x + i, codes + i, n - i, l);
}

static void levels_add(float *acc, const uint8_t *codes, size_t n,
                       const struct trib_levels *l)
{
    const vec weight = v_set_f32(l->weight);
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        v_store(acc + i, v_add_f32(v_load(acc + i),
                                   v_mul_f32(weight, v_level_value(codes + i, l))));
    levels_add_scalar(acc + i, codes + i, n - i, l);
}
