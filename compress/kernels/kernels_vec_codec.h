/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Second part of kernels_vec.h: kernels used by codecs only.
 */

KERNEL vec v_magnitude(vec v)
{
    return v_and(v, v_set_i32(0x7fffffffu));
}

static uint32_t max_magnitude(const float *x, size_t n)
{
    vec a = v_zero(), b = v_zero();
    size_t i = 0;
    /* magnitudes are below 2^31, so signed comparison works */
    for (; i + 2 * VEC_LANES <= n; i += 2 * VEC_LANES) {
        a = v_max_i32(a, v_magnitude(v_load(x + i)));
        b = v_max_i32(b, v_magnitude(v_load(x + i + VEC_LANES)));
    }
    const uint32_t m = v_max_lane_i32(v_max_i32(a, b));
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

static void drop_not_finite(float *x, size_t n)
{
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES) {
        const vec v = v_load(x + i);
        v_store(x + i, v_finite_f32(v));
    }
    drop_not_finite_scalar(x + i, n - i);
}

/* clang-format off */
/* Decode and add loops of a codec with one-byte codes: v_name_value decodes one vec,
 * using the constants from vecs_of. */
#define VEC_CODES(name, args, vecs) \
    static void name##_decode(float *x, const uint8_t *codes, size_t n, \
                              const struct args *a) \
    { \
        const struct vecs v = vecs##_of(a); \
        size_t i = 0; \
        for (; i + VEC_LANES <= n; i += VEC_LANES) \
            v_store(x + i, v_##name##_value(codes + i, &v)); \
        name##_decode_scalar(x + i, codes + i, n - i, a); \
    } \
    static void name##_add(float *acc, const uint8_t *codes, size_t n, \
                           const struct args *a) \
    { \
        const struct vecs v = vecs##_of(a); \
        const vec weight = v_set_f32(a->weight); \
        size_t i = 0; \
        for (; i + VEC_LANES <= n; i += VEC_LANES) { \
            const vec value = v_mul_f32(weight, v_##name##_value(codes + i, &v)); \
            v_store(acc + i, v_add_f32(v_load(acc + i), value)); \
        } \
        name##_add_scalar(acc + i, codes + i, n - i, a); \
    }
/* clang-format on */

struct qsgd_vecs {
    vec scale, highest, sign, key1;
};

/* i * 0x9e3779b9 + key0 for each lane i */
KERNEL vec v_counters(uint32_t key0)
{
    return v_add_i32(v_mul_i32(v_iota(), v_set_i32(0x9e3779b9u)), v_set_i32(key0));
}

KERNEL struct qsgd_vecs qsgd_vecs_of(const struct trib_qsgd_args *l)
{
    return (struct qsgd_vecs){
        .scale = v_set_f32(l->scale),
        .highest = v_set_i32(l->highest),
        .sign = v_set_i32(l->sign),
        .key1 = v_set_i32(l->key[1]),
    };
}

/* h is i * 0x9e3779b9 + key[0] */
KERNEL vec v_hash(vec h, vec key1)
{
    h = v_mul_i32(v_xor(h, v_shr_i32(h, 16)), v_set_i32(0x7feb352du));
    h = v_xor(h, v_shr_i32(h, 15));
    return v_mul_i32(v_add_i32(h, key1), v_set_i32(0x846ca68bu));
}

/* y + u, with u in [0, 1) from the upper 24 bits of h. The product is exact, so fma
 * rounds as often as separate operations. */
KERNEL vec v_add_uniform(vec y, vec h)
{
    return v_fma_f32(v_to_f32(v_shr_i32(h, 8)), v_set_f32(0x1p-24f), y);
}

KERNEL vec v_qsgd_code(vec x, vec h, const struct qsgd_vecs *l)
{
    h = v_hash(h, l->key1);
    const vec y = v_add_uniform(v_mul_f32(v_magnitude(x), l->scale), h);
    const vec level = v_min_i32(v_truncate(y), l->highest);
    return v_or(level, v_and(v_sign_i32(x), l->sign));
}

enum { FETCH_BYTES = 4096 }; /* two buckets of 512 elements */

/* Prefetch data after the next bucket. Each bucket is read twice, the second time from
 * the cache; without the prefetch, memory would be idle during that pass. */
KERNEL void fetch_ahead(const float *x)
{
    for (size_t at = 0; at < 4 * VEC_BYTES; at += 64)
        __builtin_prefetch((const char *)x + FETCH_BYTES + at);
}

static void qsgd_encode(uint8_t *codes, const float *x, size_t n,
                          const struct trib_qsgd_args *l)
{
    enum { L = VEC_LANES };
    const struct qsgd_vecs v = qsgd_vecs_of(l);
    const vec step = v_set_i32(L * 0x9e3779b9u);
    vec h = v_counters(l->key[0]);
    size_t i = 0;
    for (; i + 4 * L <= n; i += 4 * L) {
        fetch_ahead(x + i);
        const vec a = v_qsgd_code(v_load(x + i), h, &v), h1 = v_add_i32(h, step);
        const vec b = v_qsgd_code(v_load(x + i + L), h1, &v), h2 = v_add_i32(h1, step);
        const vec c = v_qsgd_code(v_load(x + i + 2 * L), h2, &v),
                  h3 = v_add_i32(h2, step);
        v_store_u8x4(codes + i, a, b, c, v_qsgd_code(v_load(x + i + 3 * L), h3, &v));
        h = v_add_i32(h3, step);
    }
    for (; i + L <= n; i += L, h = v_add_i32(h, step))
        v_store_u8(codes + i, v_qsgd_code(v_load(x + i), h, &v));
    qsgd_encode_scalar_from(codes, x, n, i, l);
}

struct qsgd_value_vecs {
    vec level, sign, inverse, norm;
    int shift; /* from the sign bit to bit 31 */
};

KERNEL struct qsgd_value_vecs qsgd_value_vecs_of(const struct trib_qsgd_args *l)
{
    return (struct qsgd_value_vecs){
        .level = v_set_i32(l->sign - 1),
        .sign = v_set_i32(l->sign),
        .inverse = v_set_f32(1.0f / (float)l->highest),
        .norm = v_set_f32(l->norm),
        .shift = __builtin_clz(l->sign),
    };
}

KERNEL vec v_qsgd_value(const uint8_t *codes, const struct qsgd_value_vecs *l)
{
    const vec code = v_load_u8(codes);
    const vec level = v_to_f32(v_and(code, l->level));
    const vec v = v_mul_f32(v_mul_f32(level, l->inverse), l->norm);
    return v_xor(v, v_shl_any_i32(v_and(code, l->sign), l->shift));
}

VEC_CODES(qsgd, trib_qsgd_args, qsgd_value_vecs)

struct natural_vecs {
    vec scale, steps, base, above_base, minus_base, highest, sign, random_mask, fixed,
        unit, key1;
    vec below_naturals; /* y is in the octaves if its bits are above this */
};

KERNEL struct natural_vecs natural_vecs_of(const struct trib_natural_args *o)
{
    return (struct natural_vecs){
        .scale = v_set_f32(o->scale),
        .steps = v_set_f32(o->steps),
        .base = v_set_i32((uint32_t)o->base),
        .above_base = v_set_i32((uint32_t)o->base + 1),
        .minus_base = v_set_i32(-(uint32_t)o->base),
        .highest = v_set_i32((uint32_t)o->highest),
        .sign = v_set_i32(o->sign),
        .random_mask = v_set_i32(o->random_mask),
        .fixed = v_set_i32(o->fixed),
        .unit = v_set_f32(0x1p-24f),
        .key1 = v_set_i32(o->key[1]),
        .below_naturals =
            v_set_i32(o->base < 0 ? UINT32_MAX : (((uint32_t)o->base + 1) << 23) - 1),
    };
}

/* h is i * 0x9e3779b9 + key[0]; plain: natural_plain */
KERNEL vec v_natural_code(vec x, vec h, const struct natural_vecs *o, bool plain)
{
    h = v_hash(h, o->key1);
    if (!plain)
        h = v_or(v_and(h, o->random_mask), o->fixed);
    const vec y = v_mul_f32(v_magnitude(x), o->scale);
    const vec rounded = v_shr_i32(v_add_i32(y, v_shr_i32(h, 9)), 23);
    const vec level = v_min_i32(v_add_i32(rounded, o->minus_base), o->highest);
    const vec sign = v_and(v_sign_i32(x), o->sign);
    if (plain)
        return v_or(v_keep_below_i32(level, o->below_naturals, y), sign);
    const vec e = v_shr_i32(y, 23);
    const vec u = v_mul_f32(v_to_f32(v_shr_i32(h, 8)), o->unit);
    const vec step = v_truncate(v_add_f32(v_mul_f32(y, o->steps), u));
    const vec code = v_or(v_keep_below_i32(level, o->base, e),
                          v_keep_below_i32(step, e, o->above_base));
    return v_or(code, sign);
}

/* True for stochastic rounding without even steps below the octaves: values there
 * become 0. */
KERNEL bool natural_plain(const struct trib_natural_args *o)
{
    return o->random_mask == UINT32_MAX && o->fixed == 0 && o->steps == 0 &&
           o->base < 255;
}

KERNEL void natural_encode_as(uint8_t *codes, const float *x, size_t n,
                              const struct trib_natural_args *o, bool plain)
{
    enum { L = VEC_LANES };
    const struct natural_vecs v = natural_vecs_of(o);
    const vec step = v_set_i32(L * 0x9e3779b9u);
    vec h = v_counters(o->key[0]);
    size_t i = 0;
    for (; i + 4 * L <= n; i += 4 * L) {
        fetch_ahead(x + i);
        const vec h1 = v_add_i32(h, step), h2 = v_add_i32(h1, step),
                  h3 = v_add_i32(h2, step);
        const vec a = v_natural_code(v_load(x + i), h, &v, plain);
        const vec b = v_natural_code(v_load(x + i + L), h1, &v, plain);
        const vec c = v_natural_code(v_load(x + i + 2 * L), h2, &v, plain);
        v_store_u8x4(codes + i, a, b, c,
                     v_natural_code(v_load(x + i + 3 * L), h3, &v, plain));
        h = v_add_i32(h3, step);
    }
    for (; i + L <= n; i += L, h = v_add_i32(h, step))
        v_store_u8(codes + i, v_natural_code(v_load(x + i), h, &v, plain));
    natural_encode_scalar_from(codes, x, n, i, o);
}

static void natural_encode(uint8_t *codes, const float *x, size_t n,
                           const struct trib_natural_args *o)
{
    if (natural_plain(o))
        natural_encode_as(codes, x, n, o, true);
    else
        natural_encode_as(codes, x, n, o, false);
}

struct natural_value_vecs {
    vec level, sign, base, exponent, norm;
    int shift; /* from the sign bit to bit 31 */
};

KERNEL struct natural_value_vecs natural_value_vecs_of(
    const struct trib_natural_args *o)
{
    return (struct natural_value_vecs){
        .level = v_set_i32(o->sign - 1),
        .sign = v_set_i32(o->sign),
        .base = v_set_i32((uint32_t)o->base),
        .exponent = v_set_i32(0x7f800000u),
        .norm = v_set_f32(o->norm),
        .shift = __builtin_clz(o->sign),
    };
}

KERNEL vec v_natural_value(const uint8_t *codes, const struct natural_value_vecs *o)
{
    const vec code = v_load_u8(codes);
    const vec level = v_and(code, o->level);
    const vec bits = v_and(v_shl_i32(v_add_i32(level, o->base), 23), o->exponent);
    const vec v = v_mul_f32(v_keep_below_i32(bits, v_zero(), level), o->norm);
    return v_xor(v, v_shl_any_i32(v_and(code, o->sign), o->shift));
}

VEC_CODES(natural, trib_natural_args, natural_value_vecs)

static void sums_by_sign(const float *x, size_t n, struct trib_sums *out)
{
    enum { VECS = SQUARE_LANES / VEC_LANES };
    vec positive[VECS], negative[VECS], minus_n = v_zero();
    float plus[SQUARE_LANES], minus[SQUARE_LANES];
    int32_t counts[VEC_LANES];
    size_t i = 0;
    for (int u = 0; u < VECS; u++)
        positive[u] = negative[u] = v_zero();
    for (; i + SQUARE_LANES <= n; i += SQUARE_LANES) {
        for (int u = 0; u < VECS; u++) {
            const vec v = v_load(x + i + u * VEC_LANES);
            const vec sign = v_sign_i32(v), below = v_and(v, sign);
            positive[u] = v_add_f32(positive[u], v_xor(v, below));
            negative[u] = v_add_f32(negative[u], below);
            minus_n = v_add_i32(minus_n, sign);
        }
    }
    for (int u = 0; u < VECS; u++) {
        v_store(plus + u * VEC_LANES, positive[u]);
        v_store(minus + u * VEC_LANES, negative[u]);
    }
    v_store(counts, minus_n);
    out->n_negative = 0;
    for (int u = 0; u < VEC_LANES; u++)
        out->n_negative -= (size_t)counts[u];
    for (size_t j = 0; i + j < n; j++) {
        float *lane = has_sign(x[i + j]) ? minus : plus;
        lane[j] += x[i + j];
        out->n_negative += has_sign(x[i + j]);
    }
    out->positive = fold_lanes(plus);
    out->negative = fold_lanes(minus);
}

static void signs_encode(uint8_t *codes, const float *x, size_t n)
{
    enum { L = VEC_LANES };
    size_t i = 0;
    for (; i + 4 * L <= n; i += 4 * L)
        v_store_u8x4(
            codes + i, v_shr_i32(v_load(x + i), 31), v_shr_i32(v_load(x + i + L), 31),
            v_shr_i32(v_load(x + i + 2 * L), 31), v_shr_i32(v_load(x + i + 3 * L), 31));
    signs_encode_scalar(codes + i, x + i, n - i);
}

struct pair_vecs {
    vec first, change;
};

KERNEL struct pair_vecs pair_vecs_of(const struct trib_pair *pair)
{
    const vec first = v_set_f32(pair->value[0]);
    return (struct pair_vecs){first, v_xor(first, v_set_f32(pair->value[1]))};
}

KERNEL vec v_pair_value(const uint8_t *codes, const struct pair_vecs *p)
{
    const vec second = v_sign_i32(v_shl_i32(v_load_u8(codes), 31));
    return v_xor(p->first, v_and(p->change, second));
}

VEC_CODES(pair, trib_pair, pair_vecs)

/* Two 4-bit codes per byte. Both functions return the number of groups of eight codes
 * done. */
KERNEL size_t nibbles_pack(uint8_t *dst, const uint8_t *codes, size_t n)
{
    const vec low = v_set_i32(0x00ff00ffu);
    size_t i = 0;
    for (; i + VEC_BYTES <= n; i += VEC_BYTES) {
        const vec w = v_load(codes + i);
        v_store_u16_u8(dst + i / 2, v_and(v_or(w, v_shr_i32(w, 4)), low));
    }
    return i / 8;
}

KERNEL size_t nibbles_unpack(uint8_t *codes, const uint8_t *src, size_t n)
{
    const vec low = v_set_i32(0x0f0f0f0fu);
    size_t i = 0;
    for (; i + VEC_BYTES <= n; i += VEC_BYTES) {
        const vec w = v_load_u8_u16(src + i / 2);
        v_store(codes + i, v_and(v_or(w, v_shl_i32(w, 4)), low));
    }
    return i / 8;
}

#ifdef V_BITS
/* One-bit codes; both functions return the number of groups of eight codes done. */
KERNEL size_t bits_open(uint8_t *codes, const uint8_t *src, size_t n)
{
    size_t i = 0;
    for (; i + VEC_BYTES <= n; i += VEC_BYTES)
        v_store(codes + i, v_open_bits(src + i / 8));
    return i / 8;
}

KERNEL size_t bits_close(uint8_t *dst, const uint8_t *codes, size_t n)
{
    size_t i = 0;
    for (; i + VEC_BYTES <= n; i += VEC_BYTES)
        v_close_bits(dst + i / 8, v_load(codes + i));
    return i / 8;
}
#endif

/* The steps of trib_bits_close and trib_bits_open, on several 64-bit words at once. */
static void bits_pack(uint8_t *dst, uint8_t *codes, size_t n, int bits)
{
    enum { WORDS = VEC_BYTES / 8 };
    if (bits == 4) {
        trib_bits_pack(dst, codes, n, bits, nibbles_pack(dst, codes, n));
        return;
    }
#ifdef V_BITS
    if (bits == 1) {
        trib_bits_pack(dst, codes, n, bits, bits_close(dst, codes, n));
        return;
    }
#endif
    const size_t total = trib_bits_bytes(n, bits);
    const vec low1 = v_set_i64(0x00ff00ff00ff00ffu),
              high1 = v_set_i64(0xff00ff00ff00ff00u);
    const vec low2 = v_set_i64(0x0000ffff0000ffffu),
              high2 = v_set_i64(0xffff0000ffff0000u);
    const vec low4 = v_set_i64(0x00000000ffffffffu);
    size_t group = 0;
    /* words are stored whole; the last ones would overrun the end */
    for (; (group + WORDS) * (size_t)bits + 8 <= total; group += WORDS) {
        vec w = v_load(codes + 8 * group);
        w = v_or(v_and(w, low1), v_shr_any_i64(v_and(w, high1), 8 - bits));
        w = v_or(v_and(w, low2), v_shr_any_i64(v_and(w, high2), 16 - 2 * bits));
        w = v_or(v_and(w, low4), v_shl_any_i64(v_shr_any_i64(w, 32), 4 * bits));
        v_store_words(dst + group * (size_t)bits, w, (size_t)bits);
    }
    trib_bits_pack(dst, codes, n, bits, group);
}

static void bits_unpack(uint8_t *codes, const uint8_t *src, size_t n, int bits)
{
    enum { WORDS = VEC_BYTES / 8 };
    if (bits == 4) {
        trib_bits_unpack(codes, src, n, bits, nibbles_unpack(codes, src, n));
        return;
    }
#ifdef V_BITS
    if (bits == 1) {
        trib_bits_unpack(codes, src, n, bits, bits_open(codes, src, n));
        return;
    }
#endif
    const size_t total = trib_bits_bytes(n, bits);
    const vec four = v_set_i64((1ull << (4 * bits)) - 1);
    const vec two = v_set_i64(((1ull << (2 * bits)) - 1) * 0x0000000100000001u);
    const vec one = v_set_i64(((1ull << bits) - 1) * 0x0001000100010001u);
    size_t group = 0;
    for (; (group + WORDS) * (size_t)bits + 8 <= total; group += WORDS) {
        vec w = v_load_words(src + group * (size_t)bits, (size_t)bits);
        w = v_or(v_and(w, four),
                 v_shl_any_i64(v_and(v_shr_any_i64(w, 4 * bits), four), 32));
        w = v_or(v_and(w, two),
                 v_shl_any_i64(v_and(w, v_shl_any_i64(two, 2 * bits)), 16 - 2 * bits));
        w = v_or(v_and(w, one),
                 v_shl_any_i64(v_and(w, v_shl_any_i64(one, bits)), 8 - bits));
        v_store(codes + 8 * group, w);
    }
    trib_bits_unpack(codes, src, n, bits, group);
}
