/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compare every vector kernel with the C reference, bit for bit: each instruction set
 * of this CPU, lengths 0-67 and longer, any alignment, NaN, Inf, denormals and dst ==
 * src. An inaccessible page follows every buffer. Only the payload of a NaN may differ.
 * Kernels of transforms have their own tests: test_hadamard, test_thc_table, test_gemm.
 *
 *     check_kernels            test; skipped where the CPU has no vector level
 *     check_kernels --bench    GB/s read and written, per instruction set
 */
#include "base/dtype.h"
#include "tests/compress/kernels/bench_reduce.h"
#include "tests/compress/kernels/check_bounded.h"

struct reduce_case {
    trib_dtype_t dtype;
    trib_op_t op;
    size_t n;
    int n_src, n_dst, ranks;
    bool stream;
    bool weighed;
    int alias; /* dst[0] is src[alias]; -1: no alias */
};

static struct reduce_case random_case(trib_dtype_t dtype, trib_op_t op, size_t n)
{
    struct reduce_case c = {.dtype = dtype, .op = op, .n = n};
    if (trib_op_is_located(op))
        c.n -= n % 2;
    c.n_src = 1 + (int)random_below(random_below(2) ? 2 : TRIB_REDUCE_MAX_SRC);
    c.n_dst = 1 + (int)random_below(random_below(2) ? 2 : TRIB_REDUCE_MAX_DST);
    c.ranks = op == TRIB_MEAN ? 1 + (int)random_below(9) : 0;
    c.stream = random_below(2);
    c.weighed = op <= TRIB_MEAN && (dtype == TRIB_F32 || trib_dtype_is_narrow(dtype)) &&
                random_below(2);
    c.alias = random_below(3) ? -1 : (int)random_below((uint32_t)c.n_src);
    return c;
}

/* The same operands for both tables; an aliased source is copied for each. */
static void check_case(const struct trib_kernels *isa, const struct reduce_case *c)
{
    const struct trib_kernels *ref = trib_kernels_get("c");
    const size_t bytes = c->n * dtype_bytes[c->dtype];
    static const float weight[TRIB_REDUCE_MAX_SRC] = {1.0f / 8, 1.0f / 4, 5.0f / 8, 1,
                                                      1.0f / 8, 3.0f / 8, 0.1f,     2};
    struct trib_reduce_args a = {.n_src = c->n_src,
                            .n_dst = c->n_dst,
                            .n = c->n,
                            .ranks = c->ranks,
                            .stream = c->stream,
                            .weight = c->weighed ? weight : NULL,
                            .divisor = (float)c->ranks / 8};
    for (int k = 0; k < c->n_src; k++) {
        unsigned char *p = place(k, bytes, random_below(2) ? 0 : random_below(70));
        fill(c->dtype, p, c->n);
        a.src[k] = p;
    }
    struct trib_reduce_args b = a;
    for (int j = 0; j < c->n_dst; j++) {
        const size_t before = random_below(2) ? 64 * random_below(2) : random_below(70);
        a.dst[j] = place(TRIB_REDUCE_MAX_SRC + j, bytes, before);
        b.dst[j] = place(TRIB_REDUCE_MAX_SRC + TRIB_REDUCE_MAX_DST + j, bytes, before);
    }
    if (c->alias >= 0) {
        a.src[c->alias] = memcpy(a.dst[0], a.src[c->alias], bytes);
        b.src[c->alias] = memcpy(b.dst[0], b.src[c->alias], bytes);
    }
    ref->reduce[c->dtype][c->op](&a);
    isa->reduce[c->dtype][c->op](&b);
    for (int j = 0; j < c->n_dst; j++) {
        const size_t at = differs(c->dtype, a.dst[j], b.dst[j], c->n);
        if (at != c->n)
            fail_msg(
                "%s %s %s: n %zu, %d sources, %d destinations, ranks %d, stream %d, "
                "weighed %d, alias %d: destination %d differs at %zu",
                isa->isa, trib_dtype_name(c->dtype), trib_op_name(c->op), c->n,
                c->n_src, c->n_dst, c->ranks, c->stream, c->weighed, c->alias, j, at);
    }
}

static const size_t long_sizes[] = {128, 255, 1000, 4099, 17001, 30011};

CHECK(reduce)
{
    for (int dtype = 0; dtype < TRIB_DTYPE_COUNT; dtype++) {
        for (int op = 0; op < TRIB_OP_COUNT; op++) {
            if (!isa->reduce[dtype][op])
                continue;
            for (size_t n = 0; n < 68 * 3; n++) {
                const struct reduce_case c =
                    random_case((trib_dtype_t)dtype, (trib_op_t)op, n % 68);
                check_case(isa, &c);
            }
            for (size_t i = 0; i < sizeof long_sizes / sizeof *long_sizes; i++) {
                const struct reduce_case c =
                    random_case((trib_dtype_t)dtype, (trib_op_t)op, long_sizes[i]);
                check_case(isa, &c);
            }
        }
    }
}

CHECK(conversions)
{
    const struct trib_kernels *ref = trib_kernels_get("c");
    for (int t = 0; t < TRIB_DTYPE_COUNT; t++) {
        const trib_dtype_t dtype = (trib_dtype_t)t;
        for (size_t n = 0; n < 140; n++) {
            const size_t bytes = n * dtype_bytes[t];
            unsigned char *x = place(0, 4 * n, 4 * random_below(9));
            unsigned char *a = place(1, bytes, random_below(70));
            unsigned char *b = place(2, bytes, random_below(2) ? 0 : random_below(70));
            float *fa = (float *)place(3, 4 * n, 0);
            float *fb = (float *)place(4, 4 * n, 4 * random_below(9));
            fill(TRIB_F32, x, n);
            ref->from_f32[t](a, (const float *)x, n);
            isa->from_f32[t](b, (const float *)x, n);
            assert_int_equal(differs(dtype, a, b, n), n);
            fill(dtype, a, n);
            memcpy(b, a, bytes);
            ref->to_f32[t](fa, a, n);
            isa->to_f32[t](fb, b, n);
            assert_same_floats(fa, fb, n);
        }
    }
}

/* every f16 and bf16 there is, both ways */
CHECK(halves)
{
    static const trib_dtype_t halves[] = {TRIB_F16, TRIB_BF16};
    const struct trib_kernels *ref = trib_kernels_get("c");
    float *x = malloc(65536 * sizeof *x), *y = malloc(65536 * sizeof *y);
    uint16_t *h = malloc(65536 * sizeof *h), *back = malloc(65536 * sizeof *back);
    for (int t = 0; t < 2; t++) {
        for (int i = 0; i < 65536; i++)
            h[i] = (uint16_t)i;
        ref->to_f32[halves[t]](x, h, 65536);
        isa->to_f32[halves[t]](y, h, 65536);
        assert_same_floats(x, y, 65536);
        isa->from_f32[halves[t]](back, x, 65536);
        assert_int_equal(
            differs(halves[t], (unsigned char *)h, (unsigned char *)back, 65536),
            65536);
    }
    free(x), free(y), free(h), free(back);
}

CHECK(axpy)
{
    const struct trib_kernels *ref = trib_kernels_get("c");
    for (size_t n = 0; n < 140; n++) {
        float *a = (float *)place(1, 4 * n, 4 * random_below(9));
        float *b = (float *)place(2, 4 * n, 0);
        unsigned char *src = place(0, 4 * n, random_below(70));
        const float weight = random_f32();
        fill(TRIB_F32, (unsigned char *)a, n);
        memcpy(b, a, 4 * n);
        fill(TRIB_F32, src, n);
        ref->axpy_f32(a, src, weight, n), isa->axpy_f32(b, src, weight, n);
        ref->axpy_f16(a, src, weight, n), isa->axpy_f16(b, src, weight, n);
        ref->axpy_bf16(a, src, weight, n), isa->axpy_bf16(b, src, weight, n);
        assert_same_floats(a, b, n);
    }
}

CHECK(copy)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4095, 16383, 16384, 16385, 70001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t before = 0; before < 70; before++) {
            unsigned char *s = place(0, sizes[i], random_below(70));
            unsigned char *d = place(1, sizes[i], before);
            fill(TRIB_I8, s, sizes[i]);
            d[-1] = 0x5a;
            isa->copy_stream(d, s, sizes[i]);
            assert_memory_equal(d, s, sizes[i]);
            assert_int_equal(d[-1], 0x5a);
        }
    }
}

static void random_qsgd(struct trib_qsgd_args *l, const float *x, size_t n)
{
    const struct trib_kernels *ref = trib_kernels_get("c");
    const uint32_t largest = ref->max_magnitude(x, n), bits = 2 + random_below(7);
    memcpy(&l->norm, &largest, sizeof largest);
    l->norm = fmaxf(l->norm * (1.0f + (float)random_below(4)), 0x1p-100f);
    l->sign = 1u << (bits - 1);
    l->highest = l->sign - 1;
    l->scale = (float)l->highest / l->norm;
    l->weight = random_f32();
    l->key[0] = random_u32(), l->key[1] = random_u32();
}

CHECK(qsgd)
{
    const struct trib_kernels *ref = trib_kernels_get("c");
    for (size_t n = 0; n < 300; n++) {
        struct trib_qsgd_args l = {0};
        float *x = (float *)place(0, 4 * n, 4 * random_below(9));
        fill(TRIB_F32, (unsigned char *)x, n);
        ref->drop_not_finite(x, n);
        for (size_t i = 0; i < n; i++) /* a bucket's norm is finite */
            x[i] *= 0x1p-4f;
        random_qsgd(&l, x, n);
        check_codes(isa, qsgd, x, n, &l);
    }
}

/* Parameters of natural compression (no norm, any base) or of natural dithering. */
static void random_natural(struct trib_natural_args *o, const float *x, size_t n)
{
    const struct trib_kernels *ref = trib_kernels_get("c");
    const uint32_t largest = ref->max_magnitude(x, n), bits = 2 + random_below(7);
    const bool natural = random_below(2);
    o->sign = 1u << (bits - 1);
    o->highest = (int32_t)o->sign - 1;
    o->scale = o->norm = 1.0f;
    o->base = (int32_t)(largest >> 23) + 1 - o->highest;
    if (!natural) {
        memcpy(&o->norm, &largest, sizeof largest);
        o->norm = fmaxf(o->norm * (1.0f + (float)random_below(4)), 0x1p-100f);
        o->scale = 1.0f / o->norm;
        o->base = 127 - o->highest;
        o->steps = ldexpf(1.0f, o->highest - 1);
    }
    o->random_mask = random_below(4) ? UINT32_MAX : 0;
    o->fixed = o->random_mask ? 0 : 1u << 31;
    o->weight = random_f32();
    o->key[0] = random_u32(), o->key[1] = random_u32();
}

CHECK(natural)
{
    const struct trib_kernels *ref = trib_kernels_get("c");
    for (size_t n = 0; n < 300; n++) {
        struct trib_natural_args o = {0};
        float *x = (float *)place(0, 4 * n, 4 * random_below(9));
        fill(TRIB_F32, (unsigned char *)x, n);
        ref->drop_not_finite(x, n);
        for (size_t i = 0; i < n; i++) /* a bucket's norm is finite */
            x[i] *= 0x1p-4f;
        random_natural(&o, x, n);
        check_codes(isa, natural, x, n, &o);
    }
}

/* Check symbols and residuals of encode, and of a decode that subtracts. */
static void check_shared_scale_keep(const struct trib_kernels *isa, const float *x,
                                size_t n, const struct trib_shared_scale_args *grid,
                                size_t bytes)
{
    const struct trib_kernels *ref = trib_kernels_get("c");
    unsigned char *p = malloc(n * bytes + 1),
                  *q = place(4, n * bytes, random_below(70));
    float *a = malloc(n * sizeof *a + 1),
          *b = (float *)place(2, 4 * n, 4 * random_below(9));
    for (int plain = 0; plain < 2; plain++) {
        struct trib_shared_scale_args g = *grid;
        g.weight = -1.0f;
        if (plain) {
            g.random_mask = UINT32_MAX, g.fixed = 0;
            g.shift = g.base = 0;
            g.unit = fabsf(g.unit);
            g.middle = g.offset;
        }
        memcpy(a, x, n * sizeof *a);
        memcpy(b, x, n * sizeof *b);
        if (bytes == 1) {
            ref->shared_scale_encode(p, x, n, &g), ref->shared_scale_add(a, p, n, &g);
            isa->shared_scale_keep(q, b, n, &g);
        } else {
            ref->shared_scale_encode_u16(p, x, n, &g),
                ref->shared_scale_add_u16(a, p, n, &g);
            isa->shared_scale_keep_u16(q, b, n, &g);
        }
        ref->drop_not_finite(a, n);
        assert_memory_equal(p, q, n * bytes);
        assert_memory_equal(a, b, n * sizeof *a);
    }
    free(p), free(a);
}

/* Any grid, and lanes of one and two bytes with arbitrary bits. */
CHECK(shared_scale)
{
    const struct trib_kernels *ref = trib_kernels_get("c");
    for (size_t n = 0; n < 300; n++) {
        const int32_t L = random_below(2) ? 127 : 32767;
        struct trib_shared_scale_args g = {.scale = random_f32(),
                                  .shift = random_below(2) ? 0.0f : random_f32(),
                                  .low = random_below(2) ? 0.0f : (float)-L,
                                  .high = (float)L,
                                  .offset = (uint32_t)L,
                                  .random_mask = random_below(2) ? UINT32_MAX : 0,
                                  .fixed = random_below(2) << 31,
                                  .key = {random_u32(), random_u32()},
                                  .middle = random_below(70000),
                                  .unit = random_f32(),
                                  .base = random_f32(),
                                  .weight = random_f32()};
        float *x = (float *)place(0, 4 * n, 4 * random_below(9)), most[2], least[2];
        float *a = (float *)place(1, 4 * n, 0), *b = (float *)place(2, 4 * n, 0);
        unsigned char *p = place(3, 2 * n, 0), *q = place(4, 2 * n, random_below(70));
        unsigned char *p1 = place(3, n, 0), *q1 = place(4, n, random_below(70));
        fill(TRIB_F32, (unsigned char *)x, n);
        ref->shared_scale_encode_u16(p, x, n, &g),
            isa->shared_scale_encode_u16(q, x, n, &g);
        assert_memory_equal(p, q, 2 * n);
        fill(TRIB_I8, p, 2 * n);
        memcpy(q, p, 2 * n);
        ref->shared_scale_decode_u16(a, p, n, &g),
            isa->shared_scale_decode_u16(b, q, n, &g);
        assert_same_floats(a, b, n);
        ref->shared_scale_add_u16(a, p, n, &g), isa->shared_scale_add_u16(b, q, n, &g);
        assert_same_floats(a, b, n);
        check_shared_scale_keep(isa, x, n, &g, 2);
        g.offset = g.low < 0 ? 127 : 0;
        g.low = fmaxf(g.low, -127), g.high = 127;
        check_shared_scale_keep(isa, x, n, &g, 1);
        ref->shared_scale_encode(p1, x, n, &g), isa->shared_scale_encode(q1, x, n, &g);
        assert_memory_equal(p1, q1, n);
        ref->shared_scale_decode(a, p1, n, &g), isa->shared_scale_decode(b, q1, n, &g);
        assert_same_floats(a, b, n);
        ref->shared_scale_add(a, p1, n, &g), isa->shared_scale_add(b, q1, n, &g);
        assert_same_floats(a, b, n);
        ref->drop_not_finite(x, n);
        if (n) {
            ref->range(x, n, most), isa->range(x, n, least);
            assert_memory_equal(most, least, sizeof most);
        }
    }
}

/* Sums up to 5 vectors, to addresses of any kind. */
CHECK(packed_ints_sum)
{
    const struct trib_kernels *ref = trib_kernels_get("c");
    for (size_t n = 0; n < 600; n++) {
        const uint8_t *src[5];
        struct trib_packed_ints_sum s = {src, 1 + random_below(5), n};
        unsigned char *a = place(5, 2 * n, random_below(70)),
                      *b = place(6, 2 * n, random_below(70));
        for (size_t k = 0; k < s.n_src; k++) {
            unsigned char *lanes = place((int)k, n, random_below(70));
            fill(TRIB_I8, lanes, n);
            src[k] = lanes;
        }
        ref->packed_ints_sum_u8(a, &s), isa->packed_ints_sum_u8(b, &s);
        assert_memory_equal(a, b, 2 * n);
    }
}

/* Sums of lanes, which may carry out of 16 bits. */
CHECK(packed_ints)
{
    const struct trib_kernels *ref = trib_kernels_get("c");
    for (size_t n = 0; n < 300; n++) {
        unsigned char *lanes = place(0, 2 * n, random_below(70));
        uint16_t *a = (uint16_t *)place(1, 2 * n, 0),
                 *b = (uint16_t *)place(2, 2 * n, 0);
        fill(TRIB_I8, lanes, 2 * n);
        fill(TRIB_I8, (unsigned char *)a, 2 * n);
        memcpy(b, a, 2 * n);
        ref->packed_ints_add_u16(a, lanes, n), isa->packed_ints_add_u16(b, lanes, n);
        assert_memory_equal(a, b, 2 * n);
        lanes = place(0, n, 0);
        ref->packed_ints_add_u8(a, lanes, n), isa->packed_ints_add_u8(b, lanes, n);
        assert_memory_equal(a, b, 2 * n);
        const uint32_t more = 1 + random_below(300),
                       tie = random_below(2) ? more - 1 : 1000;
        memcpy(a, lanes, n);
        memcpy(b, lanes, n);
        ref->packed_ints_vote((uint8_t *)a, n, more, tie),
            isa->packed_ints_vote((uint8_t *)b, n, more, tie);
        assert_memory_equal(a, b, n);
    }
}

/* Codes have room for eight more than are written. */
CHECK(bits)
{
    const struct trib_kernels *ref = trib_kernels_get("c");
    for (size_t n = 0; n < 300; n++) {
        for (int bits = 1; bits <= 8; bits++) {
            const size_t bytes = (n * (size_t)bits + 7) / 8, room = (n + 7) / 8 * 8;
            unsigned char *codes = place(0, room, 0), *again = place(1, room, 0);
            unsigned char *p = place(2, bytes, 0),
                          *q = place(3, bytes, random_below(70));
            fill(TRIB_I8, codes, room);
            for (size_t i = 0; i < n; i++)
                codes[i] &= (unsigned char)((1 << bits) - 1);
            memcpy(again, codes, room);
            ref->bits_pack(p, codes, n, bits), isa->bits_pack(q, again, n, bits);
            assert_memory_equal(p, q, bytes);
            ref->bits_unpack(codes, p, n, bits), isa->bits_unpack(again, q, n, bits);
            assert_memory_equal(codes, again, n);
        }
    }
}

CHECK(signs)
{
    const struct trib_kernels *ref = trib_kernels_get("c");
    for (size_t n = 0; n < 300; n++) {
        const struct trib_pair pair = {{random_f32(), random_f32()}, random_f32()};
        float *x = (float *)place(0, 4 * n, 4 * random_below(9));
        float *a = (float *)place(1, 4 * n, 0), *b = (float *)place(2, 4 * n, 0);
        unsigned char *p = place(3, n, 0), *q = place(4, n, random_below(70));
        struct trib_sums s, t;
        fill(TRIB_F32, (unsigned char *)x, n);
        ref->signs_encode(p, x, n), isa->signs_encode(q, x, n);
        assert_memory_equal(p, q, n);
        ref->pair_decode(a, p, n, &pair), isa->pair_decode(b, q, n, &pair);
        assert_same_floats(a, b, n);
        ref->pair_add(a, p, n, &pair), isa->pair_add(b, q, n, &pair);
        assert_same_floats(a, b, n);
        ref->drop_not_finite(x, n);
        ref->sums_by_sign(x, n, &s), isa->sums_by_sign(x, n, &t);
        assert_memory_equal(&s.positive, &t.positive, sizeof s.positive);
        assert_memory_equal(&s.negative, &t.negative, sizeof s.negative);
        assert_int_equal(s.n_negative, t.n_negative);
    }
}

CHECK(scans)
{
    const struct trib_kernels *ref = trib_kernels_get("c");
    static const uint32_t thresholds[] = {0, 1, 0x3f000000, 0x7f800000, 0x7f800001};
    static uint32_t a[400], b[400];
    for (size_t n = 0; n < 300; n++) {
        float *x = (float *)place(0, 4 * n, 4 * random_below(9)), s, t;
        float *y = (float *)place(1, 4 * n, 0);
        fill(TRIB_F32, (unsigned char *)x, n);
        assert_int_equal(ref->max_magnitude(x, n), isa->max_magnitude(x, n));
        for (int i = 0; i < 5; i++) {
            const size_t m = ref->select_at_least(x, n, thresholds[i], a);
            assert_int_equal(isa->select_at_least(x, n, thresholds[i], b), m);
            assert_memory_equal(a, b, m * sizeof *a);
        }
        s = ref->sum_squares(x, n), t = isa->sum_squares(x, n);
        assert_same_floats(&s, &t, 1);
        memcpy(y, x, 4 * n);
        ref->drop_not_finite(x, n), isa->drop_not_finite(y, n);
        assert_memory_equal(x, y, 4 * n);
        s = ref->sum_squares(x, n), t = isa->sum_squares(x, n);
        assert_memory_equal(&s, &t, sizeof s);
    }
}

/* Compare the reference itself with the rules of IEEE 754 and types.h. */
TEST(test_reference)
{
    const struct trib_kernels *c = trib_kernels_get("c");
    const float x[] = {65519.0f,        65520.0f,          0x1p-25f, 0x1.8p-25f,
                       1.0f + 0x1p-11f, 1.0f + 0x1.8p-10f, -INFINITY};
    const uint16_t f16[] = {0x7bff, 0x7c00, 0x0000, 0x0001, 0x3c00, 0x3c02, 0xfc00};
    uint16_t h[7];
    c->from_f32[TRIB_F16](h, x, 7);
    assert_memory_equal(h, f16, sizeof h);
    const float y[] = {1.0f + 0x1p-8f, 1.0f + 0x1.8p-7f, 0x1.fffffep127f};
    const uint16_t bf16[] = {0x3f80, 0x3f82, 0x7f80};
    c->from_f32[TRIB_BF16](h, y, 3);
    assert_memory_equal(h, bf16, sizeof bf16);

    int8_t a = 100, b = 100, sum = 0;
    struct trib_reduce_args r = {
        .src = {&a, &b}, .dst = {&sum}, .n_src = 2, .n_dst = 1, .n = 1};
    c->reduce[TRIB_I8][TRIB_SUM](&r);
    assert_int_equal(sum, -56);
    r.ranks = 3;
    c->reduce[TRIB_I8][TRIB_MEAN](&r);
    assert_int_equal(sum, -18);

    float p = NAN, q = 1.0f, low = 0;
    struct trib_reduce_args m = {
        .src = {&p, &q}, .dst = {&low}, .n_src = 2, .n_dst = 1, .n = 1};
    c->reduce[TRIB_F32][TRIB_MIN](&m);
    assert_true(isnan(low));
    m.src[0] = &q, m.src[1] = &p;
    c->reduce[TRIB_F32][TRIB_MAX](&m);
    assert_true(isnan(low));
}

TEST(test_choice)
{
    assert_non_null(trib_kernels_get(NULL));
    assert_ptr_equal(trib_kernels_get(NULL), trib_kernels_get("auto"));
    assert_string_equal(trib_kernels_get("c")->isa, "c");
    assert_null(trib_kernels_get("sse9"));
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        bench();
        return 0;
    }
    if (trib_kernels_get(NULL) == trib_kernels_get("c")) {
        printf("skipped: this CPU has no instruction set beyond the reference\n");
        return 77;
    }
    return tribtest_run();
}

TEST_GROUP(buffers_create, NULL)
