/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions of 8-bit floats, unsigned integers and bool on each instruction set of
 * this CPU, compared with rules of OCP OFP8 1.0 and with plain C.
 */
#include "tests/compress/kernels/isas.h"

#include <float.h>

#include <tributary.h>

struct f8_format {
    trib_dtype_t dtype;
    int fraction_bits, bias;
    uint8_t most;     /* the code of its largest number */
    uint8_t overflow; /* the code of larger values */
};

static const struct f8_format formats[] = {
    {TRIB_F8_E4M3, 3, 7, 0x7e, 0x7f},
    {TRIB_F8_E5M2, 2, 15, 0x7b, 0x7c},
};

static double value_by_definition(const struct f8_format *f, uint8_t code)
{
    const int c = code & 0x7f, exponent = c >> f->fraction_bits;
    const int fraction = c & ((1 << f->fraction_bits) - 1),
              unit = 1 << f->fraction_bits;
    double v = exponent ? ldexp(unit + fraction, exponent - f->bias - f->fraction_bits)
                        : ldexp(fraction, 1 - f->bias - f->fraction_bits);

    if (c > f->most)
        v = f->dtype == TRIB_F8_E5M2 && c == 0x7c ? (double)INFINITY : (double)NAN;
    return code & 0x80 ? -v : v;
}

/* The value of a code, from a table: the tests ask for it millions of times. */
static double value_of(const struct f8_format *f, uint8_t code)
{
    static double values[sizeof formats / sizeof *formats][256];
    static bool filled[sizeof formats / sizeof *formats];
    double *of = values[f - formats];

    for (int c = 0; c < 256 && !filled[f - formats]; c++)
        of[c] = value_by_definition(f, (uint8_t)c);
    filled[f - formats] = true;
    return of[code];
}

static bool is_nan_code(const struct f8_format *f, uint8_t code)
{
    return isnan(value_of(f, code)) != 0;
}

/* The nearest code, the even one of two. The number after the largest would have one
 * more step: half of that is rounded to it. */
static uint8_t nearest(const struct f8_format *f, double x)
{
    const uint8_t sign = signbit(x) ? 0x80 : 0;
    const double y = fabs(x), most = value_of(f, f->most);
    const double step = most - value_of(f, f->most - 1);
    const double limit = most + step / 2;
    uint8_t code = 0;

    if (isnan(x))
        return 0x7f;
    if (y > limit || (y >= limit && f->most & 1))
        return sign | f->overflow;
    while (code < f->most && value_of(f, code + 1) <= y)
        code++;
    if (code < f->most) {
        const double below = y - value_of(f, code), above = value_of(f, code + 1) - y;
        code += above < below || (above <= below && code & 1);
    }
    return sign | code;
}

static bool same_code(const struct f8_format *f, uint8_t a, uint8_t b)
{
    return a == b || (is_nan_code(f, a) && is_nan_code(f, b));
}

TEST(test_f8_known)
{
    assert_true(value_of(&formats[0], 0x7e) >= 448 &&
                value_of(&formats[0], 0x7e) <= 448);
    assert_true(value_of(&formats[0], 0x01) >= 0x1p-9 &&
                isnan(value_of(&formats[0], 0xff)));
    assert_true(value_of(&formats[1], 0x7b) >= 57344 &&
                value_of(&formats[1], 0x7b) <= 57344);
    assert_true(value_of(&formats[1], 0x01) >= 0x1p-16 &&
                isinf(value_of(&formats[1], 0xfc)));
    for (uint8_t c = 0x7d; c < 0x80; c++)
        assert_true(isnan(value_of(&formats[1], c)));
}

/* Every code decodes to its number and encodes back to itself. */
TEST(test_f8_codes)
{
    const struct trib_kernels *isas[4];
    const int n = isas_of_cpu(isas);
    uint8_t codes[256], back[256];
    float x[256];

    for (int k = 0; k < 2 * n; k++) {
        const struct f8_format *f = &formats[k % 2];
        for (int c = 0; c < 256; c++)
            codes[c] = (uint8_t)c;
        isas[k / 2]->to_f32[f->dtype](x, codes, 256);
        isas[k / 2]->from_f32[f->dtype](back, x, 256);
        for (int c = 0; c < 256; c++) {
            const float want = (float)value_of(f, codes[c]);
            assert_true(isnan(want) ? isnan(x[c]) : memcmp(&want, &x[c], 4) == 0);
            assert_true(same_code(f, codes[c], back[c]));
        }
    }
}

/* Floats around every number, between every two, and those without a code. */
TEST(test_f8_rounding)
{
    const struct trib_kernels *isas[4];
    const int n = isas_of_cpu(isas);
    enum { EACH = 9, N = 256 * EACH + 10 };
    static float x[N];
    static uint8_t got[N];

    for (int k = 0; k < 2 * n; k++) {
        const struct f8_format *f = &formats[k % 2];
        for (int c = 0; c < 256; c++) {
            const float v = (float)value_of(f, (uint8_t)c);
            const float next = (c & 0x7f) >= f->most
                                   ? v * (1 + ldexpf(1, -3))
                                   : (float)value_of(f, (uint8_t)(c + 1));
            const float mid = (v + next) / 2;
            const float around[EACH] = {v, nextafterf(v, 0), nextafterf(v, next), mid,
                                        nextafterf(mid, 0), nextafterf(mid, next),
                                        (v + mid) / 2, (mid + next) / 2, -v};
            memcpy(x + c * EACH, around, sizeof(around));
        }
        const float others[10] = {464.0f,  464.0001f, -465.0f, 61439.0f,  61440.0f,
                                  FLT_MAX, -FLT_MAX,  0x1p-149f, INFINITY, -INFINITY};
        memcpy(x + 256 * EACH, others, sizeof(others));
        isas[k / 2]->from_f32[f->dtype](got, x, N);
        for (int i = 0; i < N; i++)
            if (!same_code(f, got[i], nearest(f, (double)x[i])))
                fail_msg("%s %s: %.9g is 0x%02x, not 0x%02x", isas[k / 2]->isa,
                         trib_dtype_name(f->dtype), (double)x[i], got[i],
                         nearest(f, (double)x[i]));
    }
}

static double reduced(trib_op_t op, double a, double b)
{
    if (op == TRIB_MIN || op == TRIB_MAX)
        return isnan(a) || isnan(b) ? (double)NAN
               : (op == TRIB_MIN) == (a < b) ? a : b;
    return op == TRIB_PROD ? a * b : a + b;
}

/* All pairs of codes, by each op: as exact numbers, rounded to float32 and once
 * more. */
TEST(test_f8_pairs)
{
    const struct trib_kernels *isas[4];
    const int n = isas_of_cpu(isas);
    static uint8_t a[65536], b[65536], got[65536];

    for (int i = 0; i < 65536; i++) {
        a[i] = (uint8_t)i;
        b[i] = (uint8_t)(i >> 8);
    }
    for (int k = 0; k < 2 * n; k++) {
        const struct f8_format *f = &formats[k % 2];
        for (int op = TRIB_SUM; op <= TRIB_PROD; op++) {
            const struct trib_reduce_args r = {.src = {a, b}, .dst = {got}, .n_src = 2,
                                               .n_dst = 1, .n = 65536,
                                               .ranks = op == TRIB_MEAN ? 3 : 0};
            isas[k / 2]->reduce[f->dtype][op](&r);
            for (int i = 0; i < 65536; i++) {
                float v =
                    (float)reduced((trib_op_t)op, value_of(f, a[i]), value_of(f, b[i]));
                v = op == TRIB_MEAN ? v / 3.0f : v;
                const uint8_t want = nearest(f, (double)v);
                const bool zero = !(want & 0x7f) && !(got[i] & 0x7f); /* of any sign */
                if (!same_code(f, got[i], want) && !zero)
                    fail_msg("%s %s %s: 0x%02x, 0x%02x give 0x%02x, not 0x%02x",
                             isas[k / 2]->isa, trib_dtype_name(f->dtype),
                             trib_op_name((trib_op_t)op), a[i], b[i], got[i], want);
            }
        }
    }
}

/* Eight contributions are rounded once: small ones are not lost next to a large one. */
TEST(test_f8_rounded_once)
{
    const struct trib_kernels *isas[4];
    const int n = isas_of_cpu(isas);

    for (int k = 0; k < n; k++) {
        const float x[2] = {64.0f, 1.0f};
        uint8_t codes[2], got;
        isas[k]->from_f32[TRIB_F8_E4M3](codes, x, 2);
        struct trib_reduce_args r = {.dst = {&got}, .n_src = 8, .n_dst = 1, .n = 1};
        for (int s = 0; s < 8; s++)
            r.src[s] = &codes[s > 0];
        isas[k]->reduce[TRIB_F8_E4M3][TRIB_SUM](&r);
        assert_true(value_of(&formats[0], got) >= 72 &&
                    value_of(&formats[0], got) <= 72);
    }
}

/* Two elements by an op, as integers of that many bytes. */
static uint64_t by(const struct trib_kernels *k, trib_dtype_t dtype, trib_op_t op,
                   uint64_t a, uint64_t b, int ranks)
{
    uint64_t out = 0;
    const struct trib_reduce_args r = {
        .src = {&a, &b}, .dst = {&out}, .n_src = 2, .n_dst = 1, .n = 1, .ranks = ranks};

    k->reduce[dtype][op](&r);
    return out;
}

TEST(test_unsigned)
{
    static const trib_dtype_t dtypes[] = {TRIB_U8, TRIB_U16, TRIB_U32, TRIB_U64};
    const struct trib_kernels *isas[4];
    const int n = isas_of_cpu(isas);

    for (int k = 0; k < 4 * n; k++) {
        const struct trib_kernels *isa = isas[k / 4];
        const trib_dtype_t t = dtypes[k % 4];
        const uint64_t most = UINT64_MAX >> (64 - 8 * trib_dtype_size(t));
        const uint64_t half = most / 2 + 1; /* negative, if it had a sign */
        assert_int_equal(by(isa, t, TRIB_MIN, half, 1, 0), 1);
        assert_int_equal(by(isa, t, TRIB_MAX, half, 1, 0), half);
        assert_int_equal(by(isa, t, TRIB_SUM, most, 2, 0), 1);
        assert_int_equal(by(isa, t, TRIB_PROD, most, most, 0), 1);
        assert_int_equal(by(isa, t, TRIB_MEAN, half, half - 1, 2), most / 2);
        assert_int_equal(by(isa, t, TRIB_MEAN, most, 2, 1), 1); /* wraps, is divided */
    }
    assert_int_equal(by(isas[0], TRIB_I16, TRIB_MIN, 0x8000, 1, 0), 0x8000);
    assert_int_equal(by(isas[0], TRIB_I16, TRIB_MEAN, 0x7fff, 2, 2), 0xc001);
}

TEST(test_bits_and_truth)
{
    const struct trib_kernels *isas[4];
    const int n = isas_of_cpu(isas);

    for (int k = 0; k < n * TRIB_DTYPE_COUNT; k++) {
        const struct trib_kernels *isa = isas[k / TRIB_DTYPE_COUNT];
        const trib_dtype_t t = (trib_dtype_t)(k % TRIB_DTYPE_COUNT);
        if (!trib_op_takes(TRIB_BAND, t))
            continue;
        const int top = 8 * (int)trib_dtype_size(t) - 1;
        const uint64_t high = (uint64_t)1 << top, values[3] = {0, 2, high};
        for (int i = 0; i < 9; i++) {
            const uint64_t a = values[i % 3], b = values[i / 3];
            const bool x = a != 0, y = b != 0, bits = t != TRIB_BOOL;
            assert_int_equal(by(isa, t, TRIB_BAND, a, b, 0), bits ? a & b : x && y);
            assert_int_equal(by(isa, t, TRIB_BOR, a, b, 0), bits ? a | b : x || y);
            assert_int_equal(by(isa, t, TRIB_BXOR, a, b, 0), bits ? a ^ b : x != y);
            assert_int_equal(by(isa, t, TRIB_LAND, a, b, 0), x && y);
            assert_int_equal(by(isa, t, TRIB_LOR, a, b, 0), x || y);
            assert_int_equal(by(isa, t, TRIB_LXOR, a, b, 0), x != y);
            if (bits)
                continue;
            assert_int_equal(by(isa, t, TRIB_SUM, a, b, 0), x || y);
            assert_int_equal(by(isa, t, TRIB_PROD, a, b, 0), x && y);
            assert_int_equal(by(isa, t, TRIB_MIN, a, b, 0), x && y);
            assert_int_equal(by(isa, t, TRIB_MAX, a, b, 0), x || y);
        }
    }
}

/* The place of the pair that an op chooses of three. */
static int chosen(const struct trib_kernels *isa, trib_op_t op, const float *values,
                  const int32_t *at)
{
    float pairs[3][2], out[2];
    struct trib_reduce_args r = {.n_src = 3, .n_dst = 1, .n = 2, .dst = {out}};
    int32_t index;

    for (int i = 0; i < 3; i++) {
        pairs[i][0] = values[i];
        memcpy(&pairs[i][1], &at[i], sizeof(index));
        r.src[i] = pairs[i];
    }
    isa->reduce[TRIB_F32][op](&r);
    memcpy(&index, &out[1], sizeof(index));
    for (int i = 0; i < 3; i++)
        if (memcmp(&out[0], &values[i], sizeof(float)) == 0 && at[i] == index)
            return i;
    return -1;
}

TEST(test_located)
{
    const float nan = NAN, inf = INFINITY;
    const struct {
        float values[3];
        int32_t at[3];
        int least, most;
    } cases[] = {
        {{3, 1, 2}, {7, 8, 9}, 1, 0},           {{1, 1, 1}, {5, -1, 4}, 1, 1},
        {{-0.0f, 0.0f, 0.0f}, {2, 1, 3}, 1, 1}, {{-1, -2, -3}, {0, 0, 0}, 2, 0},
        {{nan, -inf, inf}, {9, 1, 0}, 0, 0},    {{1, nan, nan}, {0, 6, 5}, 2, 2},
        {{-inf, 0, inf}, {0, 1, 2}, 0, 2},
    };
    const struct trib_kernels *isas[4];
    const int n = isas_of_cpu(isas);

    for (int k = 0; k < n; k++)
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            assert_int_equal(chosen(isas[k], TRIB_MINLOC, cases[i].values, cases[i].at),
                             cases[i].least);
            assert_int_equal(chosen(isas[k], TRIB_MAXLOC, cases[i].values, cases[i].at),
                             cases[i].most);
        }
}

/* Every supported pair of type and operation has a kernel on every instruction set. */
TEST(test_takes)
{
    const struct trib_kernels *isas[4];
    const int n = isas_of_cpu(isas);

    for (int t = 0; t < TRIB_DTYPE_COUNT; t++)
        for (int op = 0; op < TRIB_OP_COUNT; op++)
            for (int k = 0; k < n && (op < TRIB_MEDIAN || op > TRIB_CLIPPED_MEAN); k++)
                assert_int_equal(isas[k]->reduce[t][op] != NULL,
                                 trib_op_takes((trib_op_t)op, (trib_dtype_t)t));
    assert_int_equal(trib_op_takes(TRIB_MEDIAN, TRIB_F8_E4M3), 0);
    assert_int_equal(trib_op_takes(TRIB_MEDIAN, TRIB_BF16), 1);
    assert_int_equal(trib_op_takes(TRIB_OP_COUNT, TRIB_F32), 0);
    assert_int_equal(trib_op_takes(TRIB_SUM, TRIB_DTYPE_COUNT), 0);
}
