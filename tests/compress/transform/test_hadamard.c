/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The randomised Hadamard transform: the kernel against its definition and between
 * instruction sets, then the blocks of a vector.
 */
#include "tests/compress/kernels/isas.h"

#include "compress/transform/hadamard.h"
#include "tests/compress/vectors.h"

enum { N_MAX = 1 << TRIB_HADAMARD_LOG2_MAX };

static struct trib_hadamard some_block(int log2_n, uint64_t i)
{
    const struct trib_rng rng = {.seed = 5, .stream = (uint32_t)log2_n};
    struct trib_hadamard h = {.log2_n = log2_n, .scale = 1 / sqrtf(ldexpf(1, log2_n))};
    h.first = draw_u32(rng, 4 * i) % 1000 + (i % 2 ? (1ull << 37) - 500 : 0);
    h.key[0] = draw_u32(rng, 4 * i + 1), h.key[1] = draw_u32(rng, 4 * i + 2);
    h.inverse = draw_u32(rng, 4 * i + 3) % 2;
    return h;
}

TEST(test_same_bits)
{
    const struct trib_kernels *isas[4];
    const int n_isas = isas_of_cpu(isas);
    float *expected = malloc(N_MAX * sizeof *expected);
    for (int log2_n = 0; log2_n <= TRIB_HADAMARD_LOG2_MAX; log2_n++) {
        const size_t n = (size_t)1 << log2_n, bytes = n * sizeof(float);
        struct guarded from = guarded_new(bytes), to = guarded_new(bytes);
        float *y = from.p, *z = to.p;
        for (uint64_t trial = 0; trial < 16; trial++) {
            const struct trib_hadamard h = some_block(log2_n, trial);
            for (size_t i = 0; i < n; i++)
                y[i] = odd_float(trial, i, trial % 4 == 3);
            isas[0]->hadamard(expected, y, &h);
            for (int a = 1; a < n_isas; a++) {
                isas[a]->hadamard(z, y, &h);
                assert_int_equal(first_difference(z, expected, n), n);
                memcpy(z, y, bytes);
                isas[a]->hadamard(z, z, &h);
                assert_int_equal(first_difference(z, expected, n), n);
            }
        }
        guarded_free(&from), guarded_free(&to);
    }
    free(expected);
}

/* as kernels.h has it, written once more */
static double sign_of(const struct trib_hadamard *h, uint64_t i)
{
    uint32_t w = (uint32_t)((h->first + i) / 32) * 0x9e3779b9u + h->key[0];
    w = (w ^ w >> 16) * 0x7feb352du;
    w = ((w ^ w >> 15) + h->key[1]) * 0x846ca68bu;
    w ^= w >> 16;
    return w >> (h->first + i) % 32 & 1 ? -1 : 1;
}

static double entry(size_t i, size_t j)
{
    return __builtin_popcountll(i & j) % 2 ? -1 : 1;
}

TEST(test_definition)
{
    const struct trib_kernels *k = trib_kernels_get("c");
    float y[256], z[256];
    for (int log2_n = 0; log2_n <= 8; log2_n++) {
        const size_t n = (size_t)1 << log2_n;
        for (uint64_t trial = 0; trial < 8; trial++) {
            const struct trib_hadamard h = some_block(log2_n, trial);
            for (size_t i = 0; i < n; i++)
                y[i] = normal_at(trial, i);
            k->hadamard(z, y, &h);
            for (size_t i = 0; i < n; i++) {
                double sum = 0;
                for (size_t j = 0; j < n; j++)
                    sum +=
                        entry(i, j) * (h.inverse ? 1 : sign_of(&h, j)) * (double)y[j];
                sum *= (double)h.scale * (h.inverse ? sign_of(&h, i) : 1);
                assert_true(fabs(sum - (double)z[i]) < 1e-5);
            }
        }
    }
}

/* H H = 2^t I: in whole numbers, so without any rounding. */
TEST(test_square)
{
    const struct trib_kernels *k = trib_kernels_get(NULL);
    static float y[N_MAX], z[N_MAX];
    for (int log2_n = 0; log2_n <= 10; log2_n++) {
        const size_t n = (size_t)1 << log2_n;
        struct trib_hadamard h = some_block(log2_n, 3);
        for (size_t i = 0; i < n; i++)
            y[i] = (float)(draw_u32((struct trib_rng){.seed = 9}, i) % 15) - 7;
        h.scale = 1, h.inverse = false;
        k->hadamard(z, y, &h);
        h.inverse = true;
        k->hadamard(z, z, &h);
        for (size_t i = 0; i < n; i++)
            assert_true(z[i] == ldexpf(y[i], log2_n));
    }
}

static const size_t lengths[] = {0,    1,    2,    3,    7,    8,    100,   255,
                                 1000, 1023, 1024, 1025, 2047, 5000, 65536, 70001};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* Norms are kept, the inverse gives what there was, in place as well. */
TEST(test_orthonormal)
{
    const struct trib_kernels *k = trib_kernels_get(NULL);
    for (int l = 0; l < LENGTHS; l++) {
        const size_t n = lengths[l], bytes = n * sizeof(float);
        const struct trib_rht t = trib_rht_create(42, 7, 1001, l % 3 ? 10 : 13);
        float *y = vector_new(VECTOR_POWER_LAW, 3, n), *z = malloc(bytes + 4);
        float *back = malloc(bytes + 4), *again = malloc(bytes + 4);
        trib_rht_forward(k, &t, z, y, n);
        memcpy(again, y, bytes);
        trib_rht_forward(k, &t, again, again, n);
        assert_memory_equal(again, z, bytes);
        const double energy = square_sum(y, n);
        assert_true(fabs(square_sum(z, n) - energy) <= 1e-5 * energy);
        trib_rht_inverse(k, &t, back, z, n);
        assert_true(square_distance(back, y, n) <= 1e-11 * energy);
        trib_rht_inverse(k, &t, again, again, n);
        assert_memory_equal(again, back, bytes);
        free(y), free(z), free(back), free(again);
    }
}

/* The transform of unit vectors: columns of a matrix T with T^T T = I. */
TEST(test_columns)
{
    enum { N = 43 };
    const struct trib_kernels *k = trib_kernels_get(NULL);
    const struct trib_rht t = trib_rht_create(42, 7, 0, 4);
    float column[N][N] = {{0}};
    for (size_t j = 0; j < N; j++) {
        column[j][j] = 1;
        trib_rht_forward(k, &t, column[j], column[j], N);
    }
    for (size_t a = 0; a < N; a++) {
        for (size_t b = 0; b < N; b++) {
            double dot = 0;
            for (size_t i = 0; i < N; i++)
                dot += (double)column[a][i] * (double)column[b][i];
            assert_true(fabs(dot - (a == b)) < 1e-6);
        }
    }
}

/* One large element, wherever it is, is spread over a block; also the last one. */
TEST(test_spread)
{
    enum { N = 4099 };
    const struct trib_kernels *k = trib_kernels_get(NULL);
    const struct trib_rht t = trib_rht_create(1, 2, 3, TRIB_RHT_LOG2_BLOCK);
    static float z[N];
    for (size_t at = 0; at < N; at += at < N - 1100 ? 97 : 1) {
        memset(z, 0, sizeof z);
        z[at] = 1;
        trib_rht_forward(k, &t, z, z, N);
        for (size_t i = 0; i < N; i++) /* 1 / 32 each but for the second transform */
            assert_true(fabsf(z[i]) < (at < 3072 && i < 3072 ? 0.032f : 0.2f));
    }
}

/* Sums commute with the transform: exactly for whole numbers and a scale of 1 / 32. */
TEST(test_linear)
{
    enum { N = 4 * 1024 };
    const struct trib_kernels *k = trib_kernels_get(NULL);
    const struct trib_rht t = trib_rht_create(1, 2, 3, 10);
    static float a[N], b[N], sum[N];
    for (size_t i = 0; i < N; i++) {
        a[i] = (float)(i * i % 31) - 15, b[i] = (float)(i % 7) - 3;
        sum[i] = a[i] + b[i];
    }
    trib_rht_forward(k, &t, a, a, N);
    trib_rht_forward(k, &t, b, b, N);
    trib_rht_forward(k, &t, sum, sum, N);
    for (size_t i = 0; i < N; i++)
        assert_true(a[i] + b[i] == sum[i]);
}

/* Signs: by the absolute index, half of them minus, others for another seed or step. */
TEST(test_signs)
{
    enum { N = 32768, SHIFT = 12345 };
    const struct trib_kernels *k = trib_kernels_get(NULL);
    static float ones[N], a[N], b[N];
    for (size_t i = 0; i < N; i++)
        ones[i] = 1;
    const struct trib_rht t = trib_rht_create(42, 1, 500, 0);
    const struct trib_rht shifted = trib_rht_create(42, 1, 500 + SHIFT, 0);
    const struct trib_rht others[] = {t, trib_rht_create(43, 1, 500, 0),
                                      trib_rht_create(42, 2, 500, 0)};
    trib_rht_forward(k, &t, a, ones, N);
    trib_rht_forward(k, &shifted, b, ones, N - SHIFT);
    assert_memory_equal(a + SHIFT, b, (N - SHIFT) * sizeof *a);
    for (int o = 0; o < 3; o++) {
        double sum = 0, product = 0, neighbours = 0;
        trib_rht_forward(k, &others[o], b, ones, N);
        for (size_t i = 0; i + 1 < N; i++) {
            sum += (double)b[i];
            product += (double)(a[i] * b[i]);
            neighbours += (double)(b[i] * b[i + 1]);
        }
        assert_true(fabs(sum) < 5 * sqrt(N) && fabs(neighbours) < 5 * sqrt(N));
        assert_true(o == 0 || fabs(product) < 5 * sqrt(N));
    }
}

/* The last transform has its own signs. With the signs of the blocks, some vectors
 * would be concentrated again. */
TEST(test_last_signs)
{
    enum { DRAWS = 4096 };
    const struct trib_kernels *k = trib_kernels_get(NULL);
    double agreement = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        const struct trib_rht pairs = trib_rht_create(42, 1, i, 1);
        const struct trib_rht alone = trib_rht_create(42, 1, i, 0);
        float z[3] = {0, 0, 1}, s[3] = {1, 1, 1};
        trib_rht_forward(k, &pairs, z, z, 3);
        trib_rht_forward(k, &alone, s, s, 3);
        assert_true(z[0] == 0 && z[1] == -z[2] &&
                    fabsf(fabsf(z[2]) - 0.70710678f) < 1e-6f);
        agreement += z[1] * s[2] > 0 ? 1 : -1;
    }
    assert_true(fabs(agreement) < 5 * sqrt(DRAWS));
}

TEST(test_not_finite)
{
    enum { N = 3 * 1024 };
    const struct trib_kernels *k = trib_kernels_get(NULL);
    const struct trib_rht t = trib_rht_create(1, 1, 0, 10);
    float *y = vector_new(VECTOR_NORMAL, 1, N), *z = malloc(N * sizeof *z);
    y[5] = NAN, y[2048 + 9] = 0x1.fffffep127f, y[2048 + 10] = 0x1.fffffep127f;
    trib_rht_forward(k, &t, z, y, N);
    for (size_t i = 0; i < 1024; i++)
        assert_true(isnan(z[i]) && isfinite(z[1024 + i]));
    size_t infinite = 0; /* where both count with the same sign */
    for (size_t i = 2048; i < N; i++)
        infinite += !isfinite(z[i]);
    assert_int_equal(infinite, 512);
    free(y), free(z);
}
