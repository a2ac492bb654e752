/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part of kernels_vec.h: integers on an even grid, and their sums.
 */
#include "compress/kernels/kernels_scalar_shared_scale.h"

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

struct shared_scale_vecs {
    vec scale, shift, low, high, offset, random_mask, fixed, key1, step;
    vec middle, unit, base;
};

KERNEL struct shared_scale_vecs shared_scale_vecs_of(
    const struct trib_shared_scale_args *g)
{
    return (struct shared_scale_vecs){
        .scale = v_set_f32(g->scale),
        .shift = v_set_f32(g->shift),
        .low = v_set_f32(g->low),
        .high = v_set_f32(g->high),
        .offset = v_set_i32(g->offset),
        .random_mask = v_set_i32(g->random_mask),
        .fixed = v_set_i32(g->fixed),
        .key1 = v_set_i32(g->key[1]),
        .step = v_set_i32(VEC_LANES * 0x9e3779b9u),
        .middle = v_set_i32(g->middle),
        .unit = v_set_f32(g->unit),
        .base = v_set_f32(g->base),
    };
}

KERNEL vec v_shared_scale_value(vec lane, const struct shared_scale_vecs *g)
{
    return v_add_f32(v_mul_f32(v_to_f32(v_sub_i32(lane, g->middle)), g->unit), g->base);
}

/* True for stochastic rounding of one rank's elements on a grid around 0, where the
 * omitted steps have no effect. -0 has the symbol of 0, whose value is 0. */
KERNEL bool shared_scale_plain(const struct trib_shared_scale_args *g)
{
    return g->random_mask == UINT32_MAX && g->fixed == 0 && g->shift == 0 &&
           g->base == 0 && g->middle == g->offset && g->unit >= 0;
}

/* Compile-time properties of an encode. */
struct shared_scale_how {
    bool plain; /* shared_scale_plain */
    bool keep;
    int bytes; /* per symbol */
};

/* Compute the symbols of a vec. low and high are whole numbers, so clamping may precede
 * the floor. */
KERNEL vec v_shared_scale_symbol(float *x, vec h, const struct shared_scale_vecs *g,
                             const struct shared_scale_how way)
{
    const vec v = v_load(x);
    h = v_hash(h, g->key1);
    vec y = v_mul_f32(v, g->scale);
    if (!way.plain) {
        h = v_or(v_and(h, g->random_mask), g->fixed);
        y = v_add_f32(y, g->shift);
    }
    const vec at = v_floor_i32(v_clamp_f32(v_add_uniform(y, h), g->low, g->high));
    const vec symbol = v_add_i32(at, g->offset);
    if (way.keep) {
        const vec value = way.plain ? v_mul_f32(v_to_f32(at), g->unit)
                                    : v_shared_scale_value(symbol, g);
        v_store(x, v_finite_f32(v_sub_f32(v, value)));
    }
    return symbol;
}

/* Encode whole vecs; return the number of elements done. x is written only if
 * way.keep. */
KERNEL size_t shared_scale_encode_how(uint8_t *symbols, float *x, size_t n,
                                  const struct trib_shared_scale_args *g,
                                  const struct shared_scale_how way)
{
    enum { L = VEC_LANES };
    const struct shared_scale_vecs v = shared_scale_vecs_of(g);
    vec h = v_counters(g->key[0]);
    size_t i = 0;
    for (; way.bytes == 1 && i + 4 * L <= n; i += 4 * L) {
        const vec h1 = v_add_i32(h, v.step), h2 = v_add_i32(h1, v.step);
        const vec h3 = v_add_i32(h2, v.step);
        const vec a = v_shared_scale_symbol(x + i, h, &v, way);
        const vec b = v_shared_scale_symbol(x + i + L, h1, &v, way);
        const vec c = v_shared_scale_symbol(x + i + 2 * L, h2, &v, way);
        v_store_u8x4(symbols + i, a, b, c,
                     v_shared_scale_symbol(x + i + 3 * L, h3, &v, way));
        h = v_add_i32(h3, v.step);
    }
    for (; i + L <= n; i += L, h = v_add_i32(h, v.step)) {
        const vec symbol = v_shared_scale_symbol(x + i, h, &v, way);
        if (way.bytes == 1)
            v_store_u8(symbols + i, symbol);
        else
            v_store_u16(symbols + 2 * i, symbol);
    }
    return i;
}

KERNEL size_t shared_scale_encode_any(uint8_t *symbols, float *x, size_t n,
                                      const struct trib_shared_scale_args *g, bool keep,
                                      int bytes)
{
    const struct shared_scale_how plain = {true, keep, bytes},
                                  other = {false, keep, bytes};
    return shared_scale_plain(g) ? shared_scale_encode_how(symbols, x, n, g, plain)
                             : shared_scale_encode_how(symbols, x, n, g, other);
}

/* Lanes of `bytes` bytes: 1 or 2. */
KERNEL vec v_load_lanes(const uint8_t *lanes, int bytes)
{
    return bytes == 1 ? v_load_u8(lanes) : v_load_u16(lanes);
}

KERNEL size_t shared_scale_decode_any(float *x, const uint8_t *lanes, size_t n,
                                  const struct trib_shared_scale_args *g, int bytes)
{
    const struct shared_scale_vecs v = shared_scale_vecs_of(g);
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        v_store(x + i, v_shared_scale_value(
                           v_load_lanes(lanes + i * (size_t)bytes, bytes), &v));
    return i;
}

KERNEL size_t shared_scale_add_any(float *acc, const uint8_t *lanes, size_t n,
                               const struct trib_shared_scale_args *g, int bytes)
{
    const struct shared_scale_vecs v = shared_scale_vecs_of(g);
    const vec weight = v_set_f32(g->weight);
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES) {
        const vec value =
            v_shared_scale_value(v_load_lanes(lanes + i * (size_t)bytes, bytes), &v);
        v_store(acc + i, v_add_f32(v_load(acc + i), v_mul_f32(weight, value)));
    }
    return i;
}

/* clang-format off */
/* The functions for symbols and lanes of `bytes` bytes. */
#define SHARED_SCALE(suffix, bytes) \
    static void shared_scale_encode##suffix(uint8_t *symbols, const float *x, \
                                            size_t n, \
                                            const struct trib_shared_scale_args *g) \
    { \
        float *unchanged = (float *)(uintptr_t)x; \
        const size_t i = \
            shared_scale_encode_any(symbols, unchanged, n, g, false, bytes); \
        shared_scale_encode##suffix##_scalar_from(symbols, x, n, i, g); \
    } \
    static void shared_scale_keep##suffix(uint8_t *symbols, float *x, size_t n, \
                                          const struct trib_shared_scale_args *g) \
    { \
        const size_t i = shared_scale_encode_any(symbols, x, n, g, true, bytes); \
        shared_scale_keep##suffix##_scalar_from(symbols, x, n, i, g); \
    } \
    static void shared_scale_decode##suffix(float *x, const uint8_t *lanes, size_t n, \
                                            const struct trib_shared_scale_args *g) \
    { \
        const size_t i = shared_scale_decode_any(x, lanes, n, g, bytes); \
        shared_scale_decode##suffix##_scalar(x + i, lanes + i * (bytes), n - i, g); \
    } \
    static void shared_scale_add##suffix(float *acc, const uint8_t *lanes, size_t n, \
                                         const struct trib_shared_scale_args *g) \
    { \
        const size_t i = shared_scale_add_any(acc, lanes, n, g, bytes); \
        shared_scale_add##suffix##_scalar(acc + i, lanes + i * (bytes), n - i, g); \
    }

SHARED_SCALE(, 1)
SHARED_SCALE(_u16, 2)
/* clang-format on */

static void packed_ints_add_u8(uint16_t *sum, const uint8_t *lanes, size_t n)
{
    enum { L = 2 * VEC_LANES };
    size_t i = 0;
    for (; i + L <= n; i += L)
        v_store(sum + i, v_add_i16(v_load(sum + i), v_load_u8_u16(lanes + i)));
    packed_ints_add_u8_scalar(sum + i, lanes + i, n - i);
}

static void packed_ints_add_u16(uint16_t *sum, const uint8_t *lanes, size_t n)
{
    enum { L = 2 * VEC_LANES };
    size_t i = 0;
    for (; i + L <= n; i += L)
        v_store(sum + i, v_add_i16(v_load(sum + i), v_load(lanes + 2 * i)));
    packed_ints_add_u16_scalar(sum + i, lanes + 2 * i, n - i);
}

static void packed_ints_sum_u8(uint8_t *sum, const struct trib_packed_ints_sum *s)
{
    enum { L = 2 * VEC_LANES };
    size_t i = 0;
    for (; i + 4 * L <= s->n; i += 4 * L) {
        const uint8_t *p = s->src[0] + i;
        vec a = v_load_u8_u16(p), b = v_load_u8_u16(p + L);
        vec c = v_load_u8_u16(p + 2 * L), d = v_load_u8_u16(p + 3 * L);
        for (size_t k = 1; k < s->n_src; k++) {
            p = s->src[k] + i;
            a = v_add_i16(a, v_load_u8_u16(p)), b = v_add_i16(b, v_load_u8_u16(p + L));
            c = v_add_i16(c, v_load_u8_u16(p + 2 * L)),
            d = v_add_i16(d, v_load_u8_u16(p + 3 * L));
        }
        uint8_t *to = sum + 2 * i;
        v_store(to, a), v_store(to + VEC_BYTES, b);
        v_store(to + 2 * VEC_BYTES, c), v_store(to + 3 * VEC_BYTES, d);
    }
    packed_ints_sum_u8_scalar_from(sum, s, i);
}

KERNEL vec v_vote(const uint8_t *lanes, vec more, vec tie)
{
    /* threshold reached: the difference is negative */
    const vec lane = v_load_u8(lanes);
    return v_add_i32(v_shr_i32(v_sub_i32(more, lane), 31),
                     v_shr_i32(v_sub_i32(tie, lane), 31));
}

static void packed_ints_vote(uint8_t *lanes, size_t n, uint32_t more, uint32_t tie)
{
    enum { L = VEC_LANES };
    const vec below_more = v_set_i32(more - 1), below_tie = v_set_i32(tie - 1);
    size_t i = 0;
    for (; i + 4 * L <= n; i += 4 * L)
        v_store_u8x4(lanes + i, v_vote(lanes + i, below_more, below_tie),
                     v_vote(lanes + i + L, below_more, below_tie),
                     v_vote(lanes + i + 2 * L, below_more, below_tie),
                     v_vote(lanes + i + 3 * L, below_more, below_tie));
    packed_ints_vote_scalar(lanes + i, n - i, more, tie);
}
