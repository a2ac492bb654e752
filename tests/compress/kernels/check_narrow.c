/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels that round to floats of 8 and 16 bits, and to tables of levels: the reference
 * against a model in double precision, at every code and every tie; the vector versions
 * against the reference.
 */
#include "tests/compress/guarded.h"

struct model {
    int mantissa, bias, codes; /* codes: finite ones without sign */
};

static const struct model models[] = {{3, 7, 0x7f}, {2, 15, 0x7c}};
static const struct model model_f16 = {10, 15, 0x7c00}, model_bf16 = {7, 127, 0x7f80};

static double value_of(int code, const struct model *m)
{
    const int exponent = code >> m->mantissa,
              fraction = code & ((1 << m->mantissa) - 1);
    if (exponent == 0)
        return ldexp(fraction, 1 - m->bias - m->mantissa);
    return ldexp(fraction + (1 << m->mantissa), exponent - m->bias - m->mantissa);
}

static struct trib_f8 f8_of(bool e5m2)
{
    return (struct trib_f8){.scale = 1, .norm = 1, .weight = 1, .e5m2 = e5m2};
}

static uint8_t f8_nearest(float x, const struct trib_f8 *f)
{
    uint8_t code;
    trib_kernels_get("c")->f8_encode(&code, &x, 1, f);
    return code;
}

TEST(test_f8_decode)
{
    for (int e5m2 = 0; e5m2 < 2; e5m2++) {
        struct trib_f8 f = f8_of(e5m2);
        for (int code = 0; code < 256; code++) {
            const uint8_t c = (uint8_t)code;
            float x;
            f.norm = 0x1p-3f;
            trib_kernels_get("c")->f8_decode(&x, &c, 1, &f);
            assert_int_equal(signbit(x) != 0, code >> 7);
            if ((code & 0x7f) < models[e5m2].codes)
                assert_true((double)fabsf(x) ==
                            value_of(code & 0x7f, &models[e5m2]) / 8);
            else if (e5m2 && (code & 0x7f) == 0x7c)
                assert_true(isinf(x));
            else
                assert_true(isnan(x));
        }
    }
}

/* Every number, every tie between two, and the floats next to it on both sides. */
TEST(test_f8_nearest)
{
    for (int e5m2 = 0; e5m2 < 2; e5m2++) {
        const struct trib_f8 f = f8_of(e5m2);
        const int most = models[e5m2].codes - 1;
        for (int c = 0; c <= most; c++) {
            const float low = (float)value_of(c, &models[e5m2]);
            assert_int_equal(f8_nearest(low, &f), c);
            assert_int_equal(f8_nearest(-low, &f), c | 0x80);
            const float tie =
                (float)((value_of(c, &models[e5m2]) + value_of(c + 1, &models[e5m2])) /
                        2);
            if (c == most)
                break;
            assert_int_equal(f8_nearest(tie, &f), c + c % 2);
            assert_int_equal(f8_nearest(nextafterf(tie, 0), &f), c);
            assert_int_equal(f8_nearest(nextafterf(tie, INFINITY), &f), c + 1);
            assert_int_equal(f8_nearest(-tie, &f), (c + c % 2) | 0x80);
        }
        assert_int_equal(f8_nearest(0x1.fffffep127f, &f), most);
        assert_int_equal(f8_nearest(-0x1p80f, &f), most | 0x80);
        assert_int_equal(f8_nearest(0x1p-149f, &f), 0);
    }
}

/* One of the two neighbours, by a share of the draws that is the place between them. */
static void check_share(const struct model *m, int c, double share, const double *got,
                        int n)
{
    const double low = value_of(c, m), high = value_of(c + 1, m);
    int up = 0;
    for (int i = 0; i < n; i++) {
        assert_true(got[i] == low || got[i] == high);
        up += got[i] == high;
    }
    const double sigma = sqrt(n * share * (1 - share)) + 1e-9;
    if (fabs(up - n * share) > 5 * sigma)
        fail_msg("code %d: %d of %d went up, not %g", c, up, n, n * share);
}

enum { DRAWS = 4000 };

TEST(test_f8_random)
{
    static float x[DRAWS], y[DRAWS];
    static uint8_t codes[DRAWS];
    double got[DRAWS];
    for (int e5m2 = 0; e5m2 < 2; e5m2++) {
        const struct model *m = &models[e5m2];
        struct trib_f8 f = f8_of(e5m2);
        f.random = true;
        for (int c = 0; c < m->codes - 1; c++) {
            const double share = c % 5 * 0.25;
            const double v = value_of(c, m) * (1 - share) + value_of(c + 1, m) * share;
            for (int i = 0; i < DRAWS; i++)
                x[i] = (float)v;
            f.key[0] = random_u32(), f.key[1] = random_u32();
            trib_kernels_get("c")->f8_encode(codes, x, DRAWS, &f);
            trib_kernels_get("c")->f8_decode(y, codes, DRAWS, &f);
            for (int i = 0; i < DRAWS; i++)
                got[i] = (double)y[i];
            check_share(m, c, share, got, DRAWS);
        }
    }
}

typedef void (*half_fn)(void *dst, const float *src, size_t n, const uint32_t key[2]);

static void check_half_random(half_fn encode, trib_dtype_t dtype, const struct model *m)
{
    const struct trib_kernels *ref = trib_kernels_get("c");
    static float x[DRAWS], y[DRAWS];
    static uint16_t half[DRAWS];
    double got[DRAWS];
    for (int c = 0; c < m->codes - 1; c += m->mantissa == 10 ? 61 : 251) {
        const double share = c % 5 * 0.25;
        const double v = value_of(c, m) * (1 - share) + value_of(c + 1, m) * share;
        const uint32_t key[2] = {random_u32(), random_u32()};
        for (int i = 0; i < DRAWS; i++)
            x[i] = (float)v;
        encode(half, x, DRAWS, key);
        ref->to_f32[dtype](y, half, DRAWS);
        for (int i = 0; i < DRAWS; i++)
            got[i] = (double)y[i];
        check_share(m, c, ((double)(float)v - value_of(c, m)) /
                              (value_of(c + 1, m) - value_of(c, m)),
                    got, DRAWS);
    }
}

/* Values of the format stay; values beyond its largest are rounded as by nearest. */
static void check_half_exact(half_fn encode, trib_dtype_t dtype)
{
    const struct trib_kernels *ref = trib_kernels_get("c");
    const uint32_t key[2] = {random_u32(), random_u32()};
    const float beyond[] = {65505.0f, 65519.0f,    65520.0f, 65535.0f,
                            1e20f,    -65520.f,    INFINITY, 0x1.fffffep127f,
                            -1e10f,   0x1.fe8p127f};
    float *x = malloc(65536 * sizeof *x);
    uint16_t *h = malloc(65536 * sizeof *h), *back = malloc(65536 * sizeof *back);
    for (int i = 0; i < 65536; i++)
        h[i] = (uint16_t)i;
    ref->to_f32[dtype](x, h, 65536);
    encode(back, x, 65536, key);
    assert_int_equal(differs(dtype, (unsigned char *)h, (unsigned char *)back, 65536),
                     65536);
    for (int i = 0; i < 10; i++) {
        uint16_t a, b;
        ref->from_f32[dtype](&a, &beyond[i], 1);
        encode(&b, &beyond[i], 1, key);
        if (dtype == TRIB_F16 || fabsf(beyond[i]) > 0x1.fep127f)
            assert_int_equal(a, b);
    }
    free(x), free(h), free(back);
}

TEST(test_half_random)
{
    check_half_random(trib_kernels_get("c")->f16_random, TRIB_F16, &model_f16);
    check_half_random(trib_kernels_get("c")->bf16_random, TRIB_BF16, &model_bf16);
    check_half_exact(trib_kernels_get("c")->f16_random, TRIB_F16);
    check_half_exact(trib_kernels_get("c")->bf16_random, TRIB_BF16);
}

/* ---- vector versions ------------------------------------------------------------- */

static void check_halves(const struct trib_kernels *isa)
{
    const struct trib_kernels *ref = trib_kernels_get("c");
    for (size_t n = 0; n < 300; n++) {
        const uint32_t key[2] = {random_u32(), random_u32()};
        float *x = (float *)place(0, 4 * n, 4 * random_below(9));
        unsigned char *a = place(1, 2 * n, 0), *b = place(2, 2 * n, random_below(70));
        fill(TRIB_F32, (unsigned char *)x, n);
        ref->f16_random(a, x, n, key), isa->f16_random(b, x, n, key);
        assert_int_equal(differs(TRIB_F16, a, b, n), n);
        b = place(2, 2 * n, 0);
        ref->bf16_random(a, x, n, key), isa->bf16_random(b, x, n, key);
        assert_int_equal(differs(TRIB_BF16, a, b, n), n);
    }
    check_half_exact(isa->f16_random, TRIB_F16);
    check_half_exact(isa->bf16_random, TRIB_BF16);
}

static void check_f8(const struct trib_kernels *isa)
{
    const struct trib_kernels *ref = trib_kernels_get("c");
    for (size_t n = 0; n < 1200; n++) {
        struct trib_f8 f = f8_of(n & 1);
        float *x = (float *)place(0, 4 * n, 4 * random_below(9));
        f.random = n & 2;
        f.scale = ldexpf(1.0f, (int)random_below(40) - 20);
        f.norm = ldexpf(1.0f, (int)random_below(277) - 149);
        f.weight = random_f32();
        f.key[0] = random_u32(), f.key[1] = random_u32();
        fill(TRIB_F32, (unsigned char *)x, n);
        ref->drop_not_finite(x, n);
        check_codes(isa, f8, x, n, &f);
    }
}

static void random_dither(struct trib_dither_args *p, float *level, float *per_gap)
{
    const int bits = 2 + (int)random_below(7);
    const double base = 1.1 + 0.1 * random_below(4);
    p->highest = (1 << (bits - 1)) - 1;
    p->sign = 1u << (bits - 1);
    for (int k = 0; k <= p->highest; k++)
        level[k] = k ? (float)pow(base, k - p->highest) : 0;
    for (int k = 0; k <= p->highest; k++)
        per_gap[k] = k < p->highest ? 1 / (level[k + 1] - level[k]) : 0;
    p->level = level;
    p->per_gap = per_gap;
    p->factor = (float)(0x1p-23 / log2(base));
    p->offset = (float)(p->highest - 127 / log2(base) - 0x1p-8);
    p->norm = random_f32();
    p->weight = random_f32();
    p->key[0] = random_u32(), p->key[1] = random_u32();
}

static void check_dither(const struct trib_kernels *isa)
{
    for (size_t n = 0; n < 600; n++) {
        struct trib_dither_args f = {.scale = 0x1p-40f};
        float level[128] = {0}, per_gap[128] = {0};
        float *x = (float *)place(0, 4 * n, 4 * random_below(9));
        random_dither(&f, level, per_gap);
        fill(TRIB_F32, (unsigned char *)x, n);
        for (size_t i = 0; i < n; i++) /* at most the norm */
            x[i] = fabsf(x[i]) <= 0x1p40f ? x[i] * (x[i] < 1 ? 0x1p40f : 1) : 0;
        for (size_t i = 0; i < n; i++)
            x[i] = fabsf(x[i]) <= 0x1p40f ? x[i] : random_below(2) ? 0x1p40f : -1;
        check_codes(isa, dither, x, n, &f);
    }
}

TEST(test_isas)
{
    for (int i = 0; i < ISAS; i++) {
        const struct trib_kernels *isa = trib_kernels_get(isa_names[i]);
        if (!isa)
            continue;
        check_halves(isa);
        check_f8(isa);
        check_dither(isa);
    }
}

TEST_GROUP(buffers_create, NULL)
