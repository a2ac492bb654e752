/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part of kernels_vec.h: element formats in memory, and the k-ary reduction.
 */

/*
 * For fewer bytes per destination a non-temporal store costs more than it saves, since
 * its fence waits for memory.
 */
enum { STREAM_MIN_BYTES = 16384 };

struct operands;

/* Access to elements in memory, and their arithmetic. step: memory bytes of one vec. */
struct vec_format {
    size_t bytes;
    size_t step;
    vec (*load)(const void *);
    void (*store)(void *, vec);
    void (*stream)(void *, vec);
    vec (*load1)(const void *);
    void (*store1)(void *, vec);
    vec (*weigh)(const struct operands *, int k, vec);
    vec (*multiply)(vec, vec);
    vec (*divide)(vec, vec);
};

/* Scaling of a sum: division by a power of two is multiplication by its inverse. */
enum scaling {
    UNSCALED,
    MULTIPLIED,
    DIVIDED,
};

/*
 * Operands of the inner loops. The first n_stream destinations have the same vec
 * alignment.
 */
struct operands {
    const void *const *src;
    void *const *dst;
    int n_src;
    int n_dst;
    int n_stream;
    enum scaling scaling;
    vec factor;
    const float *weight;
};

/* clang-format off */
VEC vec v_load1_4(const void *p) { return v_load1(p, 4); }
VEC vec v_load1_8(const void *p) { return v_load1(p, 8); }
VEC vec v_load1_2(const void *p) { return v_load1(p, 2); }
VEC vec v_load1_1(const void *p) { return v_load1(p, 1); }
VEC void v_store1_4(void *p, vec v) { v_store1(p, v, 4); }
VEC void v_store1_8(void *p, vec v) { v_store1(p, v, 8); }
VEC void v_store1_2(void *p, vec v) { v_store1(p, v, 2); }
VEC void v_store1_1(void *p, vec v) { v_store1(p, v, 1); }
VEC vec v_keep(vec a, vec b) { (void)b; return a; }
VEC vec v_once(const struct operands *o, int k, vec v) { (void)o; (void)k; return v; }
VEC vec v_weighed(const struct operands *o, int k, vec v)
{ return v_mul_f32(v_set_f32(o->weight[k]), v); }

/* 1 in each non-zero element */
VEC vec v_truth8(vec v) { return v_min_u8(v, v_set_i32(0x01010101u)); }
VEC vec v_truth16(vec v) { return v_min_u16(v, v_set_i32(0x00010001u)); }
VEC vec v_truth32(vec v) { return v_min_u32(v, v_set_i32(1)); }
VEC vec v_truth64(vec v) { return v_min_u64(v, v_set_i64(1)); }
VEC vec v_load_truth8(const void *p) { return v_truth8(v_load(p)); }
VEC vec v_load_truth16(const void *p) { return v_truth16(v_load(p)); }
VEC vec v_load_truth32(const void *p) { return v_truth32(v_load(p)); }
VEC vec v_load_truth64(const void *p) { return v_truth64(v_load(p)); }
VEC vec v_load1_truth8(const void *p) { return v_truth8(v_load1(p, 1)); }
VEC vec v_load1_truth16(const void *p) { return v_truth16(v_load1(p, 2)); }
VEC vec v_load1_truth32(const void *p) { return v_truth32(v_load1(p, 4)); }
VEC vec v_load1_truth64(const void *p) { return v_truth64(v_load1(p, 8)); }

/* 8-bit floats, one per 32-bit lane; in memory they take VEC_BYTES / 4 */
#define F8_ACCESS(name, of_codes, to_codes) \
    VEC vec v_load_##name(const void *p) \
    { return v_f8_value(v_load_u8(p), of_codes); } \
    VEC vec v_load1_##name(const void *p) \
    { return v_f8_value(v_load1(p, 1), of_codes); } \
    VEC void v_store_##name(void *p, vec v) { v_store_u8(p, v_f8_of(v, to_codes)); } \
    VEC void v_store1_##name(void *p, vec v) { v_store1(p, v_f8_of(v, to_codes), 1); }

F8_ACCESS(f8_e4m3, narrow_e4m3, narrow_f8_e4m3)
F8_ACCESS(f8_e5m2, narrow_e5m2, narrow_f8_e5m2)

/* clang-format on */

#define VEC_FORMAT(bytes, multiply, divide) \
    { \
        bytes, VEC_BYTES, v_load, v_store, v_stream, v_load1_##bytes, \
            v_store1_##bytes, v_once, multiply, divide \
    }
#define VEC_FORMAT_F8(name, weigh) \
    { \
        1, VEC_BYTES / 4, v_load_##name, v_store_##name, v_store_##name, \
            v_load1_##name, v_store1_##name, weigh, v_mul_f32, v_div_f32 \
    }
#define VEC_FORMAT_TRUTH(bits, bytes) \
    { \
        bytes, VEC_BYTES, v_load_truth##bits, v_store, v_stream, v_load1_truth##bits, \
            v_store1_##bytes, v_once, v_keep, v_keep \
    }
#define VEC_FORMAT_HALF(name, weigh) \
    { \
        2, VEC_BYTES / 2, v_load_##name, v_store_##name, v_stream_##name, \
            v_load1_##name, v_store1_##name, weigh, v_mul_f32, v_div_f32 \
    }

static const struct vec_format vec_f32 = VEC_FORMAT(4, v_mul_f32, v_div_f32);
static const struct vec_format vec_weighed_f32 = {
    4,          VEC_BYTES, v_load,    v_store,   v_stream, v_load1_4,
    v_store1_4, v_weighed, v_mul_f32, v_div_f32};
static const struct vec_format vec_f64 = VEC_FORMAT(8, v_mul_f64, v_div_f64);
static const struct vec_format vec_f16 = VEC_FORMAT_HALF(f16, v_once);
static const struct vec_format vec_bf16 = VEC_FORMAT_HALF(bf16, v_once);
static const struct vec_format vec_weighed_f16 = VEC_FORMAT_HALF(f16, v_weighed);
static const struct vec_format vec_weighed_bf16 = VEC_FORMAT_HALF(bf16, v_weighed);
static const struct vec_format vec_i8 = VEC_FORMAT(1, v_keep, v_keep);
static const struct vec_format vec_i32 = VEC_FORMAT(4, v_keep, v_keep);
static const struct vec_format vec_i64 = VEC_FORMAT(8, v_keep, v_keep);
static const struct vec_format vec_i16 = VEC_FORMAT(2, v_keep, v_keep);
static const struct vec_format vec_truth8 = VEC_FORMAT_TRUTH(8, 1);
static const struct vec_format vec_truth16 = VEC_FORMAT_TRUTH(16, 2);
static const struct vec_format vec_truth32 = VEC_FORMAT_TRUTH(32, 4);
static const struct vec_format vec_truth64 = VEC_FORMAT_TRUTH(64, 8);
static const struct vec_format vec_f8_e4m3 = VEC_FORMAT_F8(f8_e4m3, v_once);
static const struct vec_format vec_f8_e5m2 = VEC_FORMAT_F8(f8_e5m2, v_once);
static const struct vec_format vec_weighed_f8_e4m3 = VEC_FORMAT_F8(f8_e4m3, v_weighed);
static const struct vec_format vec_weighed_f8_e5m2 = VEC_FORMAT_F8(f8_e5m2, v_weighed);

/* Bytes of dst before the next vec boundary; step is a power of two. */
KERNEL size_t head_bytes(const void *dst, size_t step)
{
    return (size_t)(-(uintptr_t)dst & (step - 1));
}

/* Put destinations that can be streamed first; return their number. */
KERNEL int order_destinations(const struct trib_reduce_args *r,
                              const struct vec_format f,
                              void *ordered_out[TRIB_REDUCE_MAX_DST])
{
    const size_t head = head_bytes(r->dst[0], f.step);
    int front = 0, back = r->n_dst;
    for (int j = 0; j < r->n_dst; j++) {
        if (head % f.bytes == 0 && head_bytes(r->dst[j], f.step) == head)
            ordered_out[front++] = r->dst[j];
        else
            ordered_out[--back] = r->dst[j];
    }
    return front;
}

KERNEL const char *source(const struct operands *o, int k, size_t at)
{
    return (const char *)o->src[k] + at;
}

KERNEL char *destination(const struct operands *o, int j, size_t at)
{
    return (char *)o->dst[j] + at;
}

KERNEL vec scaled(const struct operands *o, vec v, const struct vec_format f)
{
    if (o->scaling == MULTIPLIED)
        return f.multiply(v, o->factor);
    return o->scaling == DIVIDED ? f.divide(v, o->factor) : v;
}

/* Reduce one vec at byte `at` if `whole`, else one element. */
KERNEL void reduce_piece(const struct operands *o, size_t at, const struct vec_format f,
                         vec (*op)(vec, vec), bool whole)
{
    vec v = f.weigh(o, 0, (whole ? f.load : f.load1)(source(o, 0, at)));
    for (int k = 1; k < o->n_src; k++)
        v = op(v, f.weigh(o, k, (whole ? f.load : f.load1)(source(o, k, at))));
    v = scaled(o, v, f);
    for (int j = 0; j < o->n_dst; j++)
        (whole ? f.store : f.store1)(destination(o, j, at), v);
}

/* Reduce four vecs at byte `at`. All sources are read before a destination is
 * written. */
KERNEL void reduce_vec4(const struct operands *o, size_t at, const struct vec_format f,
                        vec (*op)(vec, vec))
{
    const char *s = source(o, 0, at);
    vec a = f.weigh(o, 0, f.load(s)), b = f.weigh(o, 0, f.load(s + f.step));
    vec c = f.weigh(o, 0, f.load(s + 2 * f.step)),
        d = f.weigh(o, 0, f.load(s + 3 * f.step));
    for (int k = 1; k < o->n_src; k++) {
        s = source(o, k, at);
        a = op(a, f.weigh(o, k, f.load(s)));
        b = op(b, f.weigh(o, k, f.load(s + f.step)));
        c = op(c, f.weigh(o, k, f.load(s + 2 * f.step)));
        d = op(d, f.weigh(o, k, f.load(s + 3 * f.step)));
    }
    a = scaled(o, a, f), b = scaled(o, b, f);
    c = scaled(o, c, f), d = scaled(o, d, f);
    int j = 0;
    for (; j < o->n_stream; j++) {
        char *t = destination(o, j, at);
        f.stream(t, a), f.stream(t + f.step, b);
        f.stream(t + 2 * f.step, c), f.stream(t + 3 * f.step, d);
    }
    for (; j < o->n_dst; j++) {
        char *t = destination(o, j, at);
        f.store(t, a), f.store(t + f.step, b);
        f.store(t + 2 * f.step, c), f.store(t + 3 * f.step, d);
    }
}

KERNEL void reduce_range(const struct operands *o, size_t at, size_t total,
                         const struct vec_format f, vec (*op)(vec, vec))
{
    for (; at + 4 * f.step <= total; at += 4 * f.step)
        reduce_vec4(o, at, f, op);
    for (; at + f.step <= total; at += f.step)
        reduce_piece(o, at, f, op, true);
    for (; at < total; at += f.bytes)
        reduce_piece(o, at, f, op, false);
}

KERNEL void reduce_stream(const struct trib_reduce_args *r, struct operands o,
                          const struct vec_format f, vec (*op)(vec, vec))
{
    void *ordered[TRIB_REDUCE_MAX_DST];
    size_t at = 0;
    o.n_stream = order_destinations(r, f, ordered);
    o.dst = ordered;
    if (o.n_stream)
        for (const size_t head = head_bytes(ordered[0], f.step); at < head;
             at += f.bytes)
            reduce_piece(&o, at, f, op, false);
    reduce_range(&o, at, r->n * f.bytes, f, op);
    v_fence();
}

KERNEL bool power_of_two(int n)
{
    return (n & (n - 1)) == 0;
}

KERNEL enum scaling scaling_of(int ranks)
{
    return ranks == 0 ? UNSCALED : power_of_two(ranks) ? MULTIPLIED : DIVIDED;
}

KERNEL vec factor_f32(int ranks)
{
    return v_set_f32(power_of_two(ranks) && ranks ? 1.0f / (float)ranks : (float)ranks);
}

KERNEL vec factor_f64(int ranks)
{
    return v_set_f64(power_of_two(ranks) && ranks ? 1.0 / ranks : (double)ranks);
}

KERNEL void reduce_operands(const struct trib_reduce_args *r, const struct operands *o,
                            const struct vec_format f, vec (*op)(vec, vec))
{
    if (r->stream && r->n * f.bytes >= STREAM_MIN_BYTES)
        reduce_stream(r, *o, f, op);
    else
        reduce_range(o, 0, r->n * f.bytes, f, op);
}

KERNEL void reduce_vec(const struct trib_reduce_args *r, const struct vec_format f,
                       vec (*op)(vec, vec), vec factor)
{
    const struct operands o = {.src = r->src,
                               .dst = r->dst,
                               .n_src = r->n_src,
                               .n_dst = r->n_dst,
                               .scaling = scaling_of(r->ranks),
                               .factor = factor};
    reduce_operands(r, &o, f, op);
}

KERNEL void reduce_weighed(const struct trib_reduce_args *r, const struct vec_format f)
{
    const struct operands o = {.src = r->src,
                               .dst = r->dst,
                               .n_src = r->n_src,
                               .n_dst = r->n_dst,
                               .scaling = r->divisor > 0 ? DIVIDED : UNSCALED,
                               .factor = v_set_f32(r->divisor),
                               .weight = r->weight};
    reduce_operands(r, &o, f, v_add_f32);
}

/* The most common shapes, with constant counts. */
KERNEL void reduce_pair(const struct trib_reduce_args *r, int n_dst,
                        const struct vec_format f, vec (*op)(vec, vec))
{
    const void *const src[2] = {r->src[0], r->src[1]};
    void *const dst[2] = {r->dst[0], r->dst[n_dst - 1]};
    const struct operands o = {
        .src = src, .dst = dst, .n_src = 2, .n_dst = n_dst, .factor = v_zero()};
    reduce_range(&o, 0, r->n * f.bytes, f, op);
}

static void add_f32(const struct trib_reduce_args *r)
{
    const bool stream = r->stream && r->n * sizeof(float) >= STREAM_MIN_BYTES;
    if (r->weight) {
        reduce_weighed(r, vec_weighed_f32);
        return;
    }
    if (r->n_src == 2 && r->n_dst == 1 && !r->ranks && !stream) {
        reduce_pair(r, 1, vec_f32, v_add_f32);
        return;
    }
    if (r->n_src == 2 && r->n_dst == 2 && !r->ranks && !stream) {
        reduce_pair(r, 2, vec_f32, v_add_f32);
        return;
    }
    reduce_vec(r, vec_f32, v_add_f32, factor_f32(r->ranks));
}

/* clang-format off */
#define REDUCE_F32(op, type) \
    static void op##_##type(const struct trib_reduce_args *r) \
    { reduce_vec(r, vec_##type, v_##op##_f32, factor_f32(r->ranks)); }
#define REDUCE_HALF_SUM(type) \
    static void add_##type(const struct trib_reduce_args *r) \
    { if (r->weight) reduce_weighed(r, vec_weighed_##type); \
      else reduce_vec(r, vec_##type, v_add_f32, factor_f32(r->ranks)); }
#define REDUCE_F64(op) \
    static void op##_f64(const struct trib_reduce_args *r) \
    { reduce_vec(r, vec_f64, v_##op##_f64, factor_f64(r->ranks)); }
/* the mean of integers divides: rare, so scalar */
#define REDUCE_INT(op, type) \
    static void op##_##type(const struct trib_reduce_args *r) \
    { if (r->ranks) reduce_int(r, op##_int, format_##type); \
      else reduce_vec(r, vec_##type, v_##op##_##type, v_zero()); }
#define REDUCE_UNSIGNED(type, same) \
    static void add_##type(const struct trib_reduce_args *r) \
    { if (r->ranks) reduce_int(r, add_int, format_##type); \
      else reduce_vec(r, vec_##same, v_add_##same, v_zero()); } \
    static void min_##type(const struct trib_reduce_args *r) \
    { reduce_vec(r, vec_##same, v_min_##type, v_zero()); } \
    static void max_##type(const struct trib_reduce_args *r) \
    { reduce_vec(r, vec_##same, v_max_##type, v_zero()); }
#define REDUCE_BIT(op, name, format) \
    static void op##_##name(const struct trib_reduce_args *r) \
    { reduce_vec(r, format, v_##op, v_zero()); }
#define REDUCE_BITS(bits) \
    REDUCE_BIT(and, u##bits, vec_i##bits) REDUCE_BIT(or, u##bits, vec_i##bits) \
    REDUCE_BIT(xor, u##bits, vec_i##bits) \
    REDUCE_BIT(and, truth##bits, vec_truth##bits) \
    REDUCE_BIT(or, truth##bits, vec_truth##bits) \
    REDUCE_BIT(xor, truth##bits, vec_truth##bits)
#define REDUCE_NARROW(type) \
    REDUCE_HALF_SUM(type) REDUCE_F32(min, type) REDUCE_F32(max, type) \
    REDUCE_F32(mul, type)
#define REDUCE_SCALAR(op, type) \
    static void op##_##type(const struct trib_reduce_args *r) \
    { reduce_int(r, op##_int, format_##type); }

REDUCE_F32(min, f32) REDUCE_F32(max, f32) REDUCE_F32(mul, f32)
REDUCE_NARROW(f16) REDUCE_NARROW(bf16) REDUCE_NARROW(f8_e4m3) REDUCE_NARROW(f8_e5m2)
REDUCE_F64(add) REDUCE_F64(min) REDUCE_F64(max) REDUCE_F64(mul)
REDUCE_INT(add, i8) REDUCE_INT(min, i8) REDUCE_INT(max, i8) REDUCE_SCALAR(mul, i8)
REDUCE_INT(add, i32) REDUCE_INT(min, i32) REDUCE_INT(max, i32) REDUCE_INT(mul, i32)
REDUCE_INT(add, i64) REDUCE_INT(min, i64) REDUCE_INT(max, i64) REDUCE_SCALAR(mul, i64)
REDUCE_INT(add, i16) REDUCE_INT(min, i16) REDUCE_INT(max, i16) REDUCE_INT(mul, i16)
REDUCE_UNSIGNED(u8, i8) REDUCE_UNSIGNED(u16, i16) REDUCE_UNSIGNED(u32, i32)
REDUCE_UNSIGNED(u64, i64)
REDUCE_BITS(8) REDUCE_BITS(16) REDUCE_BITS(32) REDUCE_BITS(64)
    /* clang-format on */
