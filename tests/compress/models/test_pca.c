/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Principal components of slices: the basis, the projection, and the basis as bytes.
 */
#include "tests/compress/kernels/isas.h"

#include "base/digest.h"
#include "base/library.h"
#include "compress/models/pca.h"
#include "tests/compress/vectors.h"

enum { SLICE = 48, N = 300 * SLICE };

/* Slices in few directions, with noise in all: v = sum over q of 2^-q a_q(slice) w_q +
 * noise */
static float *gradient_new(uint64_t seed)
{
    float *x = vector_new(VECTOR_NORMAL, seed, N);
    for (size_t i = 0; i < N; i++) {
        double v = 0.01 * (double)x[i];
        for (size_t q = 0; q < 10; q++)
            v += ldexp((double)normal_at(seed + 1, i / SLICE * 10 + q), -(int)q) *
                 (double)normal_at(99, q * SLICE + i % SLICE);
        x[i] = (float)v;
    }
    return x;
}

static struct trib_pca *pca_new(size_t kept, bool centre, const struct trib_kernels *k)
{
    const struct trib_pca_opts opts = {SLICE, kept, centre};
    struct trib_error err = {0};
    struct trib_pca *p;
    assert_status(trib_pca_create(&opts, k, &err, &p), TRIB_OK);
    return p;
}

/* Return the digest of the exported bytes. */
static uint64_t digest_of(const struct trib_pca *p)
{
    const size_t n = trib_pca_bytes(p);
    uint8_t *bytes = malloc(n);

    trib_pca_export(p, bytes);
    const uint64_t digest = trib_digest(bytes, n);
    free(bytes);
    return digest;
}

static void fit(struct trib_pca *p)
{
    struct trib_error err = {0};
    const trib_status_t status = trib_pca_fit(p, &err);
    if (status != TRIB_OK)
        fail_msg("%s", trib_error_text(&err));
}

static struct trib_pca *fitted_new(size_t kept, bool centre, const float *x)
{
    struct trib_pca *p = pca_new(kept, centre, NULL);
    trib_pca_add(p, x, N);
    fit(p);
    return p;
}

static void *scratch_new(const struct trib_pca *p)
{
    void *scratch = NULL;
    assert_int_equal(posix_memalign(&scratch, 64, trib_pca_scratch(p)), 0);
    return scratch;
}

/* Decoded from its own coefficients, shares as given. */
static float *projected_new(const struct trib_pca *p, const float *x, float share)
{
    void *scratch = scratch_new(p);
    float *y = malloc(N * sizeof *y);
    float *c = malloc(N * sizeof *c); /* at most as many as elements */
    trib_pca_encode(p, x, N, share, c, scratch);
    trib_pca_decode(p, c, N, share, y, scratch);
    free(c), free(scratch);
    return y;
}

TEST(test_sizes)
{
    static const struct trib_pca_opts bad[] = {{0, 1, false},
                                               {TRIB_PCA_SLICE_MAX + 1, 1, false},
                                               {8, 0, false},
                                               {8, 9, false}};
    for (int i = 0; i < 4; i++) {
        struct trib_error err = {0};
        struct trib_pca *p;
        assert_status(trib_pca_create(&bad[i], NULL, &err, &p), TRIB_ERR_INVALID);
        assert_null(p);
    }
    trib_pca_destroy(NULL);
}

/* Write the basis, slice x kept, row-major: unit coefficients decode to its columns. */
static void read_basis(const struct trib_pca *p, size_t kept, float u[SLICE * SLICE])
{
    void *scratch = scratch_new(p);

    for (size_t k = 0; k < kept; k++) {
        float c[SLICE] = {0}, column[SLICE];
        c[k] = 1;
        trib_pca_decode(p, c, SLICE, 0, column, scratch);
        for (size_t i = 0; i < SLICE; i++)
            u[i * kept + k] = column[i];
    }
    free(scratch);
}

static void check_basis(const struct trib_pca *p, size_t kept)
{
    float u[SLICE * SLICE];
    read_basis(p, kept, u);
    for (size_t a = 0; a < kept; a++) {
        float largest = 0;
        for (size_t i = 0; i < SLICE; i++)
            largest =
                fabsf(u[i * kept + a]) > fabsf(largest) ? u[i * kept + a] : largest;
        assert_true(largest > 0);
        for (size_t b = 0; b < kept; b++) {
            double sum = 0;
            for (size_t i = 0; i < SLICE; i++)
                sum += (double)u[i * kept + a] * (double)u[i * kept + b];
            assert_true(fabs(sum - (a == b)) < 1e-6);
        }
    }
}

/* U^T U = I; the lost energy of the fitted slices equals the dropped eigenvalues. */
TEST(test_energy)
{
    float *x = gradient_new(1);
    for (size_t kept = 1; kept <= SLICE; kept += kept < 12 ? 1 : 18) {
        struct trib_pca *p = fitted_new(kept, false, x);
        float *y = projected_new(p, x, 0);
        check_basis(p, kept);
        const double lost = square_distance(x, y, N), all = square_sum(x, N);
        assert_true(fabs(lost - trib_pca_dropped(p) * all) < 1e-6 * all);
        assert_true(square_sum(y, N) <= all * (1 + 1e-6));
        trib_pca_destroy(p), free(y);
    }
    struct trib_pca *p = fitted_new(10, false, x); /* there are ten directions */
    assert_true(trib_pca_dropped(p) > 1e-7 && trib_pca_dropped(p) < 1e-3);
    trib_pca_destroy(p), free(x);
}

TEST(test_whole_basis_is_lossless)
{
    float *x = gradient_new(1), *other = vector_new(VECTOR_POWER_LAW, 8, N);
    for (int centre = 0; centre < 2; centre++) {
        struct trib_pca *p = fitted_new(SLICE, centre, x);
        float *y = projected_new(p, other, 1);
        assert_true(square_distance(other, y, N) < 1e-11 * square_sum(other, N));
        assert_true(trib_pca_dropped(p) < 1e-12);
        trib_pca_destroy(p), free(y);
    }
    free(x), free(other);
}

/* The projection is one: done twice it is as done once. Coefficients add. */
TEST(test_projection_and_sums)
{
    enum { KEPT = 7, RANKS = 5 };
    float *x = gradient_new(1);
    for (int centre = 0; centre < 2; centre++) {
        struct trib_pca *p = fitted_new(KEPT, centre, x);
        void *scratch = scratch_new(p);
        const size_t m = N / SLICE * KEPT;
        float *once = projected_new(p, x, 1), *twice = projected_new(p, once, 1);
        assert_true(square_distance(once, twice, N) < 1e-10 * square_sum(once, N));
        float *c = malloc(m * sizeof *c), *c_sum = calloc(m, sizeof *c);
        float *sum = calloc(N, sizeof *sum), *y = malloc(N * sizeof *y);
        for (uint64_t r = 0; r < RANKS; r++) {
            float *own = vector_new(VECTOR_NORMAL, r, N);
            trib_pca_encode(p, own, N, 1.0f / RANKS, c, scratch);
            for (size_t i = 0; i < m; i++)
                c_sum[i] += c[i];
            for (size_t i = 0; i < N; i++)
                sum[i] += own[i];
            free(own);
        }
        trib_pca_encode(p, sum, N, 1, c, scratch);
        assert_true(square_distance(c, c_sum, m) < 1e-11 * square_sum(c, m));
        trib_pca_decode(p, c_sum, N, 1, y, scratch);
        float *direct = projected_new(p, sum, 1);
        assert_true(square_distance(y, direct, N) < 1e-11 * square_sum(direct, N));
        free(c), free(c_sum), free(sum), free(y), free(direct), free(once), free(twice);
        free(scratch), trib_pca_destroy(p);
    }
    free(x);
}

/* An incomplete last slice is encoded as one padded with zeros; only its front is
 * decoded. */
TEST(test_short_slice)
{
    enum { KEPT = 7, SHORT = 2 * SLICE + 17 };
    float *x = gradient_new(1), filled[3 * SLICE] = {0}, y[3 * SLICE], z[SHORT];
    struct trib_pca *p = fitted_new(KEPT, true, x);
    struct trib_pca *by_short = pca_new(KEPT, true, NULL),
                    *by_filled = pca_new(KEPT, true, NULL);
    void *scratch = scratch_new(p);
    struct guarded in = guarded_new(SHORT * sizeof(float));
    float c[3 * KEPT], d[3 * KEPT];
    memcpy(in.p, x, SHORT * sizeof(float)), memcpy(filled, x, SHORT * sizeof(float));
    trib_pca_encode(p, in.p, SHORT, 0.5f, c, scratch);
    trib_pca_encode(p, filled, 3 * SLICE, 0.5f, d, scratch);
    assert_memory_equal(c, d, sizeof c);
    trib_pca_decode(p, c, SHORT, 0.5f, z, scratch);
    trib_pca_decode(p, c, 3 * SLICE, 0.5f, y, scratch);
    assert_memory_equal(z, y, sizeof z);
    trib_pca_add(by_short, in.p, SHORT), trib_pca_add(by_filled, filled, 3 * SLICE);
    fit(by_short), fit(by_filled);
    assert_true(digest_of(by_short) == digest_of(by_filled));
    trib_pca_destroy(p), trib_pca_destroy(by_short), trib_pca_destroy(by_filled);
    guarded_free(&in), free(scratch), free(x);
}

/* The mean of all slices costs no coefficient. */
TEST(test_mean)
{
    float *x = gradient_new(1);
    for (size_t i = 0; i < N; i++)
        x[i] += 50.0f * (float)(i % SLICE);
    struct trib_pca *about_mean = fitted_new(3, true, x),
                    *about_zero = fitted_new(3, false, x);
    float *y = projected_new(about_mean, x, 1), *z = projected_new(about_zero, x, 1);
    assert_true(square_distance(x, y, N) < square_distance(x, z, N));
    trib_pca_destroy(about_mean), trib_pca_destroy(about_zero);
    free(x), free(y), free(z);
}

TEST(test_same_bits)
{
    enum { KEPT = 13 };
    const struct trib_kernels *isas[4];
    const int n_isas = isas_of_cpu(isas);
    float *x = gradient_new(1);
    struct trib_pca *fitted = fitted_new(KEPT, true, x);
    uint8_t *bytes = malloc(trib_pca_bytes(fitted));
    float *expected = projected_new(fitted, x, 0.25f);
    trib_pca_export(fitted, bytes);
    for (int i = 0; i < n_isas; i++) {
        struct trib_error err = {0};
        struct trib_pca *p = pca_new(KEPT, true, isas[i]);
        assert_status(trib_pca_import(p, bytes, trib_pca_bytes(p), &err), TRIB_OK);
        assert_true(digest_of(p) == digest_of(fitted));
        assert_true(trib_pca_dropped(p) == trib_pca_dropped(fitted));
        float *y = projected_new(p, x, 0.25f);
        assert_memory_equal(y, expected, N * sizeof *y);
        free(y), trib_pca_destroy(p);
    }
    struct trib_pca *again = fitted_new(KEPT, true, x);
    assert_true(digest_of(again) == digest_of(fitted));
    trib_pca_destroy(again), trib_pca_destroy(fitted), free(bytes), free(expected),
        free(x);
}

static void expect_refused(struct trib_pca *p, const uint8_t *bytes, size_t len)
{
    struct trib_error err = {0};
    const uint64_t before = digest_of(p);
    assert_status(trib_pca_import(p, bytes, len, &err), TRIB_ERR_MISMATCH);
    assert_true(strlen(trib_error_text(&err)) > 10);
    assert_true(digest_of(p) == before);
}

TEST(test_bad_bytes)
{
    float *x = gradient_new(1);
    struct trib_pca *p = fitted_new(3, false, x), *other = fitted_new(4, false, x);
    const size_t len = trib_pca_bytes(p);
    uint8_t *bytes = malloc(trib_pca_bytes(other));
    trib_pca_export(other, bytes);
    expect_refused(p, bytes, trib_pca_bytes(other));
    expect_refused(p, bytes, len);
    trib_pca_export(p, bytes);
    for (size_t n = 0; n < len; n++) {
        struct guarded cut = guarded_new(n);
        memcpy(cut.p, bytes, n);
        expect_refused(p, cut.p, n);
        guarded_free(&cut);
    }
    for (size_t at = 0; at < 24; at++) { /* an upper bit of anything in the head */
        bytes[at] ^= 0x80;
        if (at < 16 || at == 23)
            expect_refused(p, bytes, len);
        bytes[at] ^= 0x80;
    }
    const float nan = NAN;
    memcpy(bytes + len - 4, &nan, 4);
    expect_refused(p, bytes, len);
    trib_pca_destroy(p), trib_pca_destroy(other), free(bytes), free(x);
}

/* Any pieces, any scale give the same components; slices that are not finite do not
 * count. */
TEST(test_adding)
{
    enum { KEPT = 6 };
    static const float scales[] = {1e-30f, 1e30f, 1.0f};
    float *x = gradient_new(1), *y = malloc(N * sizeof *y);
    struct trib_pca *whole = fitted_new(KEPT, true, x);
    for (int s = 0; s < 3; s++) {
        struct trib_pca *p = pca_new(KEPT, true, NULL);
        for (size_t i = 0; i < N; i++)
            y[i] = x[i] * scales[s];
        trib_pca_add(p, y, 1000); /* forgotten */
        trib_pca_fade(p, 0);
        for (size_t i = 0; i < N; i += 20 * SLICE)
            trib_pca_add(p, y + i, i + 20 * SLICE < N ? 20 * SLICE : N - i);
        float bad[2 * SLICE] = {0};
        bad[3] = NAN, bad[SLICE + 1] = INFINITY;
        trib_pca_add(p, bad, 2 * SLICE);
        trib_pca_add(p, bad, 0);
        fit(p);
        float u[SLICE * SLICE], v[SLICE * SLICE];
        read_basis(p, KEPT, u);
        read_basis(whole, KEPT, v);
        for (size_t i = 0; i < SLICE * KEPT; i++)
            assert_true(fabsf(u[i] - v[i]) < 1e-3f);
        assert_true(fabs(trib_pca_dropped(p) / trib_pca_dropped(whole) - 1) < 1e-3);
        trib_pca_destroy(p);
    }
    trib_pca_destroy(whole), free(x), free(y);
}

/* Faded slices weigh less: the direction of those added first stays the first while it
 * is the stronger one. */
TEST(test_fading)
{
    for (int weak = 0; weak < 2; weak++) {
        struct trib_pca *p = pca_new(1, false, NULL);
        float x[8 * SLICE] = {0}, y[8 * SLICE] = {0};
        for (size_t i = 0; i < 8; i++)
            x[i * SLICE + 3] = 2, y[i * SLICE + 5] = 1;
        trib_pca_add(p, x, 8 * SLICE);
        trib_pca_fade(p, weak ? 0.125 : 0.5); /* of 32 */
        trib_pca_add(p, y, 8 * SLICE); /* 8 */
        fit(p);
        float u[SLICE * SLICE];
        read_basis(p, 1, u);
        assert_true(u[weak ? 5 : 3] == 1.0f);
        const double dropped = weak ? 4.0 / 12 : 8.0 / 24;
        assert_true(fabs(trib_pca_dropped(p) - dropped) < 1e-6);
        trib_pca_destroy(p);
    }
}

TEST(test_nothing_added)
{
    float *zeros = vector_new(VECTOR_ZERO, 1, N);
    for (int added = 0; added < 2; added++) {
        struct trib_pca *p = pca_new(9, true, NULL);
        trib_pca_add(p, zeros, added ? N : 0);
        fit(p);
        check_basis(p, 9);
        assert_true(trib_pca_dropped(p) == 0);
        float *y = projected_new(p, zeros, 1);
        for (size_t i = 0; i < N; i++)
            assert_true(y[i] == 0);
        trib_pca_destroy(p), free(y);
    }
    free(zeros);
}

/* NaN stays in its slice. */
TEST(test_not_finite)
{
    float *x = gradient_new(1);
    struct trib_pca *p = fitted_new(5, false, x);
    float *clean = projected_new(p, x, 1);
    x[2 * SLICE + 1] = NAN;
    float *y = projected_new(p, x, 1);
    for (size_t i = 0; i < N; i++)
        assert_true(i / SLICE == 2 ? isnan(y[i]) : y[i] == clean[i]);
    trib_pca_destroy(p), free(x), free(y), free(clean);
}

struct blas {
    void (*set_threads)(int);
    int (*threads)(void);
};

static bool open_blas(struct blas *blas, char *why, size_t bytes)
{
    static const struct trib_symbol symbols[] = {
        {.name = "openblas_set_num_threads", .at = offsetof(struct blas, set_threads)},
        {.name = "openblas_get_num_threads", .at = offsetof(struct blas, threads)}};
    return trib_library_open("libopenblas.so.0", symbols, 2, blas, why, bytes);
}

/* How many threads OpenBLAS uses is the program's business. */
TEST(test_threads_of_others)
{
    struct blas blas;
    char why[160];
    assert_true(open_blas(&blas, why, sizeof why));
    float *x = gradient_new(1);
#ifdef __SANITIZE_THREAD__
    const int most = 1; /* it reports races in OpenBLAS's threads */
#else
    const int most = 2;
#endif
    for (int threads = most; threads >= 1; threads--) {
        blas.set_threads(threads);
        const int before = blas.threads();
        trib_pca_destroy(fitted_new(5, false, x));
        assert_int_equal(blas.threads(), before);
    }
    free(x);
}

int main(void)
{
    struct blas blas;
    char why[160];
    if (!open_blas(&blas, why, sizeof why)) {
        printf("skipped: %s\n", why);
        return TRIBTEST_SKIPPED;
    }
    blas.set_threads(1); /* threads that wait for each other are slow on a busy
                          * machine */
    return tribtest_run();
}
