/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Third part of kernels_vec.h: rounding to 8- and 16-bit floats and to tables.
 */

KERNEL void half_random(uint8_t *dst, const float *src, size_t n, const uint32_t key[2],
                        const struct narrow f)
{
    enum { L = VEC_LANES };
    const vec key1 = v_set_i32(key[1]), step = v_set_i32(L * 0x9e3779b9u);
    const vec sign = v_set_i32(0x8000u);
    vec counter = v_counters(key[0]);
    size_t i = 0;
    for (; i + L <= n; i += L, counter = v_add_i32(counter, step)) {
        const vec x = v_load(src + i), h = v_hash(counter, key1);
        const vec code = v_narrow(v_magnitude(x), &h, f);
        v_store_u16(dst + 2 * i, v_or(code, v_and(v_shr_i32(x, 16), sign)));
    }
    half_random_scalar_from(dst, src, n, i, key, f);
}

static void f16_random(void *dst, const float *src, size_t n, const uint32_t key[2])
{
    half_random(dst, src, n, key, narrow_f16);
}

static void bf16_random(void *dst, const float *src, size_t n, const uint32_t key[2])
{
    half_random(dst, src, n, key, narrow_bf16);
}

KERNEL vec v_f8_code(vec x, const vec *h, vec scale, const struct narrow f)
{
    const vec code = v_narrow(v_mul_f32(v_magnitude(x), scale), h, f);
    return v_or(code, v_shl_i32(v_shr_i32(x, 31), 7));
}

KERNEL void f8_encode_as(uint8_t *codes, const float *x, size_t n,
                         const struct trib_f8 *p, bool random, const struct narrow f)
{
    enum { L = VEC_LANES };
    const vec scale = v_set_f32(p->scale), key1 = v_set_i32(p->key[1]);
    const vec step = v_set_i32(L * 0x9e3779b9u);
    vec counter = v_counters(p->key[0]);
    size_t i = 0;
    for (; i + L <= n; i += L, counter = v_add_i32(counter, step)) {
        const vec h = random ? v_hash(counter, key1) : counter;
        v_store_u8(codes + i, v_f8_code(v_load(x + i), random ? &h : NULL, scale, f));
    }
    f8_encode_scalar_from(codes, x, n, i, p);
}

static void f8_encode(uint8_t *codes, const float *x, size_t n, const struct trib_f8 *f)
{
    if (f->e5m2 && f->random)
        f8_encode_as(codes, x, n, f, true, narrow_e5m2);
    else if (f->e5m2)
        f8_encode_as(codes, x, n, f, false, narrow_e5m2);
    else if (f->random)
        f8_encode_as(codes, x, n, f, true, narrow_e4m3);
    else
        f8_encode_as(codes, x, n, f, false, narrow_e4m3);
}

/* Decode each code and multiply it by norm. */
KERNEL vec v_f8_scaled(const uint8_t *codes, vec norm, const struct narrow f)
{
    return v_mul_f32(v_f8_value(v_load_u8(codes), f), norm);
}

KERNEL void f8_decode_as(float *x, const uint8_t *codes, size_t n,
                         const struct trib_f8 *p, const struct narrow f)
{
    const vec norm = v_set_f32(p->norm);
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        v_store(x + i, v_f8_scaled(codes + i, norm, f));
    f8_decode_scalar(x + i, codes + i, n - i, p);
}

static void f8_decode(float *x, const uint8_t *codes, size_t n, const struct trib_f8 *f)
{
    if (f->e5m2)
        f8_decode_as(x, codes, n, f, narrow_e5m2);
    else
        f8_decode_as(x, codes, n, f, narrow_e4m3);
}

KERNEL void f8_add_as(float *acc, const uint8_t *codes, size_t n,
                      const struct trib_f8 *p, const struct narrow f)
{
    const vec norm = v_set_f32(p->norm), weight = v_set_f32(p->weight);
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        v_store(acc + i, v_add_f32(v_load(acc + i),
                                   v_mul_f32(weight, v_f8_scaled(codes + i, norm, f))));
    f8_add_scalar(acc + i, codes + i, n - i, p);
}

static void f8_add(float *acc, const uint8_t *codes, size_t n, const struct trib_f8 *f)
{
    if (f->e5m2)
        f8_add_as(acc, codes, n, f, narrow_e5m2);
    else
        f8_add_as(acc, codes, n, f, narrow_e4m3);
}

/* A table of levels; kept in one vec if it fits. */
struct table_vec {
    const float *at;
    vec whole;
    bool fits;
};

KERNEL struct table_vec table_vec_of(const float *table, bool fits)
{
    return (struct table_vec){table, v_load(table), fits};
}

KERNEL vec v_look_up(const struct table_vec *t, vec index)
{
    return t->fits ? v_pick_f32(t->whole, index) : v_gather_f32(t->at, index);
}

/* h is i * 0x9e3779b9 + key[0] */
KERNEL vec v_dither_code(vec x, vec h, const struct trib_dither_args *p,
                        const struct table_vec *level, const struct table_vec *per_gap)
{
    const vec hash = v_hash(h, v_set_i32(p->key[1])), one = v_set_i32(1);
    const vec u = v_mul_f32(v_to_f32(v_shr_i32(hash, 8)), v_set_f32(0x1p-24f));
    const vec y = v_mul_f32(v_magnitude(x), v_set_f32(p->scale));
    const vec guess = v_add_f32(v_mul_f32(v_to_f32(y), v_set_f32(p->factor)),
                                v_set_f32(p->offset));
    vec k = v_min_i32(v_truncate(guess), v_set_i32((uint32_t)p->highest - 1));
    /* add one, and subtract one where that level is above y: bits order like floats */
    k = v_add_i32(v_max_i32(k, v_zero()), one);
    k = v_add_i32(k, v_keep_below_i32(v_set_i32(-1u), y, v_look_up(level, k)));
    const vec above = v_sub_f32(y, v_look_up(level, k));
    const vec share = v_add_f32(v_mul_f32(above, v_look_up(per_gap, k)), u);
    k = v_add_i32(k, v_min_i32(v_truncate(share), one));
    return v_or(k, v_and(v_sign_i32(x), v_set_i32(p->sign)));
}

KERNEL void dither_encode_as(uint8_t *codes, const float *x, size_t n,
                             const struct trib_dither_args *p, bool fits)
{
    enum { L = VEC_LANES };
    const struct table_vec level = table_vec_of(p->level, fits);
    const struct table_vec per_gap = table_vec_of(p->per_gap, fits);
    const vec step = v_set_i32(L * 0x9e3779b9u);
    vec counter = v_counters(p->key[0]);
    size_t i = 0;
    for (; i + L <= n; i += L, counter = v_add_i32(counter, step))
        v_store_u8(codes + i,
                   v_dither_code(v_load(x + i), counter, p, &level, &per_gap));
    dither_encode_scalar_from(codes, x, n, i, p);
}

KERNEL vec v_dither_value(const uint8_t *codes, const struct trib_dither_args *p,
                         const struct table_vec *level)
{
    const vec code = v_load_u8(codes), sign = v_and(code, v_set_i32(p->sign));
    const vec k = v_and(code, v_set_i32(p->sign - 1));
    const vec v = v_mul_f32(v_look_up(level, k), v_set_f32(p->norm));
    return v_xor(v, v_shl_any_i32(sign, __builtin_clz(p->sign)));
}

KERNEL void dither_decode_as(float *x, const uint8_t *codes, size_t n,
                             const struct trib_dither_args *p, bool fits)
{
    const struct table_vec level = table_vec_of(p->level, fits);
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        v_store(x + i, v_dither_value(codes + i, p, &level));
    dither_decode_scalar(x + i, codes + i, n - i, p);
}

KERNEL void dither_add_as(float *acc, const uint8_t *codes, size_t n,
                          const struct trib_dither_args *p, bool fits)
{
    const struct table_vec level = table_vec_of(p->level, fits);
    const vec weight = v_set_f32(p->weight);
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES) {
        const vec v = v_mul_f32(weight, v_dither_value(codes + i, p, &level));
        v_store(acc + i, v_add_f32(v_load(acc + i), v));
    }
    dither_add_scalar(acc + i, codes + i, n - i, p);
}

/* clang-format off */
/* Each copy of the loop has a constant for whether the levels fit into one vec. */
#define DITHER(name, to, from) \
    static void dither_##name(to, from, size_t n, const struct trib_dither_args *p) \
    { \
        if (p->highest < VEC_LANES) \
            dither_##name##_as(dst, src, n, p, true); \
        else \
            dither_##name##_as(dst, src, n, p, false); \
    }

DITHER(encode, uint8_t *dst, const float *src)
DITHER(decode, float *dst, const uint8_t *src)
DITHER(add, float *dst, const uint8_t *src)
/* clang-format on */
