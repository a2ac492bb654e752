/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics of a vector against their definition, in every instruction set, with the
 * same bits.
 *
 *     test_numbers --bench     GB/s of each instruction set
 */
#include "tests/compress/kernels/isas.h"

#include "compress/vector_stats.h"

enum { MOST = 5000 };

static void fill(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = odd_float(n, i, true);
}

static struct trib_numbers by_definition(const float *x, size_t n)
{
    struct trib_numbers s = {.elements = n};

    for (size_t i = 0; i < n; i++) {
        const double v = (double)x[i];
        if (!isfinite(v)) {
            s.not_finite++;
            continue;
        }
        s.zeros += fabs(v) <= 0;
        s.squares += v * v;
        s.largest = fmax(s.largest, fabs(v));
    }
    return s;
}

static void check(const struct trib_numbers *got, const struct trib_numbers *want)
{
    assert_int_equal(got->elements, want->elements);
    assert_int_equal(got->zeros, want->zeros);
    assert_int_equal(got->not_finite, want->not_finite);
    assert_true(got->largest >= want->largest && got->largest <= want->largest);
    assert_true(fabs(got->squares - want->squares) <= 1e-12 * want->squares);
}

TEST(test_isas)
{
    const struct trib_kernels *isas[4];
    const int count = isas_of_cpu(isas);

    for (size_t n = 0; n < MOST; n += n < 80 ? 1 : 977) {
        struct guarded g = guarded_new(n * sizeof(float));
        fill(g.p, n);
        const struct trib_numbers want = by_definition(g.p, n);
        struct trib_numbers first = {.elements = 0};
        trib_numbers_add(isas[0], TRIB_F32, g.p, n, &first);
        for (int k = 0; k < count; k++) {
            struct trib_numbers s = {.elements = 0};
            trib_numbers_add(isas[k], TRIB_F32, g.p, n, &s);
            check(&s, &want);
            assert_memory_equal(&s.squares, &first.squares, sizeof(s.squares));
        }
        guarded_free(&g);
    }
}

TEST(test_dtypes)
{
    static const double x[] = {3, -4, 0, -0.0, 0, 1e300, -1e300};
    const struct trib_kernels *k = trib_kernels_get(NULL);
    const int32_t whole[] = {3, -4, 0};
    uint8_t odd[4 * 40 + 1];
    uint16_t half[3];
    float f[40];

    struct trib_numbers s = {.elements = 0};
    trib_numbers_add(k, TRIB_F64, x, 5, &s);
    check(&s, &(struct trib_numbers){5, 0, 3, 25, 4});
    trib_numbers_add(k, TRIB_F64, x + 5, 2, &s);
    assert_true(isinf(s.squares) && s.largest >= 1e300 && s.elements == 7);
    memset(&s, 0, sizeof(s));
    trib_numbers_add(k, TRIB_I32, whole, 3, &s);
    check(&s, &(struct trib_numbers){3, 0, 1, 25, 4});
    fill(f, 40);
    memcpy(odd + 1, f, sizeof(f));
    memset(&s, 0, sizeof(s));
    trib_numbers_add(k, TRIB_F32, odd + 1, 40, &s);
    const struct trib_numbers want = by_definition(f, 40);
    check(&s, &want);
    k->from_f32[TRIB_F16](half, (const float[]){3, INFINITY, -4}, 3);
    memset(&s, 0, sizeof(s));
    trib_numbers_add(k, TRIB_F16, half, 3, &s);
    check(&s, &(struct trib_numbers){3, 1, 0, 25, 4});
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void bench(void)
{
    const struct trib_kernels *isas[4];
    const size_t sizes[] = {16 << 10, 1 << 20};
    float *x = malloc(sizes[1] * sizeof(*x));
    struct trib_numbers s = {.elements = 0};

    for (size_t i = 0; i < sizes[1]; i++)
        x[i] = (float)(i % 1000) - 500;
    for (int k = 0, n = isas_of_cpu(isas); k < n; k++) {
        for (int z = 0; z < 2; z++) {
            double best = 1e9;
            for (int trial = 0; trial < 20; trial++) {
                const double begin = now_s();
                isas[k]->numbers_add(x, sizes[z], &s);
                const double t = now_s() - begin;
                best = t < best ? t : best;
            }
            printf("%s %zu elements: %.1f GB/s\n", isas[k]->isa, sizes[z],
                   (double)(sizes[z] * sizeof(*x)) / best * 1e-9);
        }
    }
    printf("(%g)\n", s.squares);
    free(x);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        bench();
        return 0;
    }
    return tribtest_run();
}
