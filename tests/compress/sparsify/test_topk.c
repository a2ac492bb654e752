/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/compress/vectors.h"

static size_t sent(const char *text, enum vector_kind kind, size_t n)
{
    struct codec_buffers b = buffers_new(text, NULL, n);
    float *x = vector_new(kind, 12, n), *y = malloc(n * sizeof *y);
    size_t count = 0;
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, y);
    for (size_t i = 0; i < n; i++)
        count += y[i] != 0;
    free(x), free(y);
    buffers_free(&b);
    return count;
}

TEST(test_count)
{
    assert_int_equal(sent("topk:ratio=0.01", VECTOR_NORMAL, 10000), 100);
    assert_int_equal(sent("topk:ratio=0.01", VECTOR_NORMAL, 10001), 101);
    assert_int_equal(sent("topk:ratio=0.29", VECTOR_NORMAL, 100), 29);
    assert_int_equal(sent("topk:ratio=0.001", VECTOR_NORMAL, 5), 1);
    assert_int_equal(sent("topk:k=17", VECTOR_NORMAL, 1000), 17);
    assert_int_equal(sent("topk:k=17", VECTOR_NORMAL, 9), 9);
    assert_int_equal(sent("topk:k=17", VECTOR_ONE_HOT, 1000), 1);
    assert_int_equal(sent("topk:k=17", VECTOR_ZERO, 1000), 0);
    assert_int_equal(sent("topk", VECTOR_NORMAL, 1000), 10);
}

/* ties: the first ones; the error is the energy of the rest, and |C|^2 = <C, x> */
TEST(test_values)
{
    enum { N = 5000 };
    struct codec_buffers b = buffers_new("topk:k=40", NULL, N);
    float *x = vector_new(VECTOR_ALTERNATING, 12, N), *y = malloc(N * sizeof *y);
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, y);
    for (int i = 0; i < N; i++)
        assert_true(y[i] == (i < 40 ? x[i] : 0.0f));
    free(x);
    x = vector_new(VECTOR_NORMAL, 12, N);
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, y);
    float smallest = FLT_MAX;
    for (int i = 0; i < N; i++)
        smallest = y[i] != 0 ? fminf(smallest, fabsf(y[i])) : smallest;
    for (int i = 0; i < N; i++)
        assert_true(y[i] != 0 ? y[i] == x[i] : fabsf(x[i]) <= smallest);
    free(x), free(y);
    buffers_free(&b);
}

/* the same positions as plain top-k, values rounded: several groups of them */
static void check_composed(const char *text, float relative)
{
    enum { N = 20000, K = 1500 };
    struct codec_buffers b = buffers_new(text, NULL, N);
    struct codec_buffers plain = buffers_new("topk:k=1500", NULL, N);
    float *x = vector_new(VECTOR_NORMAL, 12, N), *y = malloc(N * sizeof *y);
    float *z = malloc(N * sizeof *z);
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, y);
    encode(&plain, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&plain, z);
    assert_int_equal(plain.len - b.len, 2 * K);
    for (int i = 0; i < N; i++)
        assert_true(fabsf(y[i] - z[i]) <= relative * fabsf(z[i]));
    free(x), free(y), free(z);
    buffers_free(&b), buffers_free(&plain);
}

TEST(test_composed_values)
{
    check_composed("topk:k=1500+f16", 0x1p-11f);
    check_composed("topk:k=1500+bf16", 0x1p-8f);
}

/* n = d = 3, one-element top-k: without feedback each step scales x up, with it x
 * converges to 0 (Beznosikov et al., arXiv 2002.12410, example 1). */
static double descend(bool feedback, int steps)
{
    static const float a[3][3] = {{-3, 2, 2}, {2, -3, 2}, {2, 2, -3}};
    const float rate = 0.01f;
    struct codec_buffers b = buffers_new("topk:k=1", NULL, 3);
    float x[3] = {1, 1, 1}, residual[3][3] = {{0}};
    for (int step = 0; step < steps; step++) {
        float sum[3] = {0};
        for (int w = 0; w < 3; w++) {
            const float dot = a[w][0] * x[0] + a[w][1] * x[1] + a[w][2] * x[2];
            float g[3];
            for (int i = 0; i < 3; i++)
                g[i] = rate * (2 * dot * a[w][i] + 0.5f * x[i]);
            const struct trib_encode in = {.x = g, .n = 3, .scratch = b.scratch};
            b.len = feedback
                        ? trib_codec_encode_ef(b.codec, &in, residual[w], b.code)
                        : trib_codec_encode(b.codec, &in, b.code);
            assert_ok(trib_codec_decode_add(b.codec, b.code, b.len, 1.0f / 3, sum, 3));
        }
        for (int i = 0; i < 3; i++)
            x[i] -= sum[i];
    }
    buffers_free(&b);
    return square_sum(x, 3);
}

TEST(test_feedback_is_needed)
{
    const double factor = 1 + 11 * 0.01 / 6; /* per step, of x */
    assert_true(fabs(descend(false, 50) / (3 * pow(factor, 100)) - 1) < 1e-3);
    assert_true(descend(true, 4000) < 1e-10);
}

/* One start of error feedback; with `carried` the chunk keeps a threshold. */
static size_t start(struct codec_buffers *b, const float *x, size_t n, uint32_t step,
                    float *residual, struct trib_carried *carried)
{
    const struct trib_encode in = {.x = x,
                                   .n = n,
                                   .total = n,
                                   .key = {.seed = 5, .step = step},
                                   .scratch = b->scratch,
                                   .carried = carried};

    return trib_codec_encode_ef(b->codec, &in, residual, b->code);
}

/* Gradients that grow, shrink, vanish, are all equal, or sometimes are not finite. */
static void fill(float *x, size_t n, uint32_t step)
{
    float *y = vector_new(VECTOR_NORMAL, step, n);
    const float scale = step % 7 == 3 ? 1e4f : step % 7 == 5 ? 1e-4f : 1;

    for (size_t i = 0; i < n; i++)
        x[i] = step == 9 ? 0 : step == 11 ? 1 : y[i] * scale;
    if (step == 13)
        x[n / 2] = NAN;
    if (step == 15)
        x[n / 3] = -INFINITY;
    free(y);
}

/* A cached threshold does not change the bits of encoded chunks and residuals. topk
 * matches its exact form, and dgc with a threshold selects like topk. */
static void check_kept(const char *text, const char *exact, size_t n)
{
    struct codec_buffers a = buffers_new(text, NULL, n);
    struct codec_buffers b = buffers_new(exact, NULL, n);
    float *x = malloc(n * sizeof *x), *ra = calloc(n, sizeof *ra),
          *rb = calloc(n, sizeof *rb);
    struct trib_carried carried = {0, 0};
    uint32_t kept = 0;
    for (uint32_t step = 0; step < 40; step++) {
        fill(x, n, step);
        const size_t la = start(&a, x, n, step, ra, &carried);
        const size_t lb = start(&b, x, n, step, rb, NULL);
        assert_int_equal(la, lb);
        assert_memory_equal(a.code, b.code, la);
        assert_memory_equal(ra, rb, n * sizeof *ra);
        kept += carried.threshold > 0;
    }
    assert_true(kept > 20);
    free(x), free(ra), free(rb);
    buffers_free(&a);
    buffers_free(&b);
}

TEST(test_kept_threshold)
{
    check_kept("topk:ratio=0.01", "topk:ratio=0.01", 20000);
    check_kept("topk:ratio=0.3", "topk:ratio=0.3", 777);
    check_kept("topk:k=3+natural", "topk:k=3+natural", 5000);
    check_kept("dgc:ratio=0.001", "topk:ratio=0.001", 65536);
    check_kept("dgc:ratio=0.05", "topk:ratio=0.05", 1001);
}

/* What reaches it of n elements. */
static size_t count(const float *x, const float *residual, size_t n, uint32_t magnitude)
{
    size_t m = 0;
    float t;

    memcpy(&t, &magnitude, sizeof t);
    for (size_t i = 0; i < n; i++)
        m += fabsf(x[i] + residual[i]) >= t;
    return m;
}

/* Residuals of the same gradient grow by the step: the threshold that is kept grows,
 * too, and is reached by more than k elements, but by few. */
TEST(test_threshold_grows)
{
    enum { M = 100000, K = 1000 };
    struct codec_buffers b = buffers_new("topk:ratio=0.01", NULL, M);
    float *x = vector_new(VECTOR_NORMAL, 3, M), *residual = calloc(M, sizeof *residual);
    struct trib_carried carried = {0, 0};

    for (uint32_t step = 0; step < 12; step++) {
        const size_t m = count(x, residual, M, carried.threshold);
        assert_true(step < 2 || (m >= K && m < 6 * K));
        (void)start(&b, x, M, step, residual, &carried);
    }
    free(x), free(residual);
    buffers_free(&b);
}
