/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part of kernels_vec.h: integers on an even grid, and their sums.
 */
#include "compress/kernels_scalar_integers.h"

static void range(const float *x, size_t n, float out[2])
{
    vec most = v_set_f32(x[0]), least = most;
    float lane[2 * VEC_LANES], rest[2];
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES) {
        most = v_max_f32(most, v_load(x + i));
        least = v_min_f32(least, v_load(x + i));
    }
    v_store(lane, most);
    v_store(lane + VEC_LANES, least);
    range_scalar(lane, 2 * VEC_LANES, out);
    if (i == n)
        return;
    range_scalar(x + i, n - i, rest);
    out[0] = rest[0] > out[0] ? rest[0] : out[0];
    out[1] = rest[1] > out[1] ? rest[1] : out[1];
}

struct integers_vecs {
    vec scale, shift, low, high, offset, noise, fixed, unit, key1;
};

KERNEL struct integers_vecs integers_vecs_of(const struct trib_integers *g)
{
    return (struct integers_vecs){
        .scale = v_set_f32(g->scale),
        .shift = v_set_f32(g->shift),
        .low = v_set_f32(g->low),
        .high = v_set_f32(g->high),
        .offset = v_set_i32(g->offset),
        .noise = v_set_i32(g->noise),
        .fixed = v_set_i32(g->fixed),
        .unit = v_set_f32(0x1p-24f),
        .key1 = v_set_i32(g->key[1]),
    };
}

KERNEL vec v_integers_symbol(vec x, vec h, const struct integers_vecs *g)
{
    h = v_or(v_and(v_hash(h, g->key1), g->noise), g->fixed);
    const vec u = v_mul_f32(v_to_f32(v_shr_i32(h, 8)), g->unit);
    const vec y = v_add_f32(v_add_f32(v_mul_f32(x, g->scale), g->shift), u);
    const vec at = v_clamp_f32(v_floor_f32(y), g->low, g->high);
    return v_add_i32(v_truncate(at), g->offset);
}

static void integers_encode(uint8_t *symbols, const float *x, size_t n,
                            const struct trib_integers *g)
{
    enum { L = VEC_LANES };
    const struct integers_vecs v = integers_vecs_of(g);
    const vec step = v_set_i32(L * 0x9e3779b9u);
    vec h = v_counters(g->key[0]);
    size_t i = 0;
    for (; i + L <= n; i += L, h = v_add_i32(h, step))
        v_store_u8(symbols + i, v_integers_symbol(v_load(x + i), h, &v));
    integers_encode_scalar(symbols, x, n, i, g);
}

static void integers_encode_u16(uint8_t *symbols, const float *x, size_t n,
                                const struct trib_integers *g)
{
    enum { L = VEC_LANES };
    const struct integers_vecs v = integers_vecs_of(g);
    const vec step = v_set_i32(L * 0x9e3779b9u);
    vec h = v_counters(g->key[0]);
    size_t i = 0;
    for (; i + L <= n; i += L, h = v_add_i32(h, step))
        v_store_u16(symbols + 2 * i, v_integers_symbol(v_load(x + i), h, &v));
    integers_encode_u16_scalar(symbols, x, n, i, g);
}

/* Lanes of `bytes` bytes: 1 or 2. */
KERNEL vec v_integers_value(const uint8_t *lanes, int bytes, vec middle, vec unit, vec base)
{
    const vec lane = bytes == 1 ? v_load_u8(lanes) : v_load_u16(lanes);
    return v_add_f32(v_mul_f32(v_to_f32(v_sub_i32(lane, middle)), unit), base);
}

KERNEL size_t integers_decode_any(float *x, const uint8_t *lanes, size_t n,
                                  const struct trib_integers *g, int bytes)
{
    const vec middle = v_set_i32(g->middle);
    const vec unit = v_set_f32(g->unit), base = v_set_f32(g->base);
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        v_store(x + i,
                v_integers_value(lanes + i * (size_t)bytes, bytes, middle, unit, base));
    return i;
}

KERNEL size_t integers_add_any(float *acc, const uint8_t *lanes, size_t n,
                               const struct trib_integers *g, int bytes)
{
    const vec middle = v_set_i32(g->middle), weight = v_set_f32(g->weight);
    const vec unit = v_set_f32(g->unit), base = v_set_f32(g->base);
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES) {
        const vec v = v_integers_value(lanes + i * (size_t)bytes, bytes, middle, unit, base);
        v_store(acc + i, v_add_f32(v_load(acc + i), v_mul_f32(weight, v)));
    }
    return i;
}

static void integers_decode(float *x, const uint8_t *lanes, size_t n,
                            const struct trib_integers *g)
{
    const size_t i = integers_decode_any(x, lanes, n, g, 1);
    integers_decode_scalar(x + i, lanes + i, n - i, g);
}

static void integers_decode_u16(float *x, const uint8_t *lanes, size_t n,
                                const struct trib_integers *g)
{
    const size_t i = integers_decode_any(x, lanes, n, g, 2);
    integers_decode_u16_scalar(x + i, lanes + 2 * i, n - i, g);
}

static void integers_add(float *acc, const uint8_t *lanes, size_t n,
                         const struct trib_integers *g)
{
    const size_t i = integers_add_any(acc, lanes, n, g, 1);
    integers_add_scalar(acc + i, lanes + i, n - i, g);
}

static void integers_add_u16(float *acc, const uint8_t *lanes, size_t n,
                             const struct trib_integers *g)
{
    const size_t i = integers_add_any(acc, lanes, n, g, 2);
    integers_add_u16_scalar(acc + i, lanes + 2 * i, n - i, g);
}

static void lanes_add_u8(uint16_t *sum, const uint8_t *lanes, size_t n)
{
    enum { L = 2 * VEC_LANES };
    size_t i = 0;
    for (; i + L <= n; i += L)
        v_store(sum + i, v_add_i16(v_load(sum + i), v_load_u8_u16(lanes + i)));
    lanes_add_u8_scalar(sum + i, lanes + i, n - i);
}

static void lanes_add_u16(uint16_t *sum, const uint8_t *lanes, size_t n)
{
    enum { L = 2 * VEC_LANES };
    size_t i = 0;
    for (; i + L <= n; i += L)
        v_store(sum + i, v_add_i16(v_load(sum + i), v_load(lanes + 2 * i)));
    lanes_add_u16_scalar(sum + i, lanes + 2 * i, n - i);
}
