/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random-k: one position of each stratum, the same for all ranks; its mean and its
 * error.
 */
#include "tests/compress/vectors.h"

#include "compress/sparsify/stratified.h"

enum { DENSE, GAPS, BITMAP, STRATA };

static size_t encode_as(struct codec_buffers *b, const float *x,
                        struct trib_encode_key key)
{
    const struct trib_encode in = {
        .x = x, .n = b->n, .key = key, .scratch = b->scratch};
    return b->len = trib_codec_encode(b->codec, &in, b->code);
}

/* k distinct, rising, each in its stratum; a part from the middle is the same */
TEST(test_stratified)
{
    static const size_t sizes[][2] = {{1, 1},       {7, 7},       {7, 6},
                                      {1000, 1},    {1000, 10},   {1000, 333},
                                      {4099, 4000}, {65536, 656}, {UINT32_MAX, 100}};
    uint32_t all[4099], part[4099];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (uint32_t seed = 0; seed < 20; seed++) {
            const uint64_t n = sizes[i][0], k = sizes[i][1];
            const struct trib_stratified s = {n, k, {seed, seed * 77}};
            trib_stratified_positions(trib_kernels_get(NULL), &s, 0, k, all);
            for (uint64_t j = 0; j < k; j++)
                assert_true(all[j] >= j * n / k && all[j] < (j + 1) * n / k);
            trib_stratified_positions(trib_kernels_get(NULL), &s, k / 3, k - k / 3,
                                      part);
            assert_memory_equal(part, all + k / 3, (k - k / 3) * sizeof *part);
        }
    }
}

/* Each position of a stratum is drawn equally often, independently of its
 * neighbours. */
TEST(test_uniform)
{
    enum { SIZE = 16, K = 64, DRAWS = 4000 };
    static int hits[SIZE][SIZE];
    uint32_t at[K];
    double chi = 0;
    for (uint32_t draw = 0; draw < DRAWS; draw++) {
        const struct trib_rng_block r =
            trib_rng_draw4((struct trib_rng){.seed = 8}, draw);
        const struct trib_stratified s = {SIZE * K, K, {r.word[0], r.word[1]}};
        trib_stratified_positions(trib_kernels_get(NULL), &s, 0, K, at);
        for (int j = 0; j + 1 < K; j++)
            hits[at[j] % SIZE][at[j + 1] % SIZE]++;
    }
    const double expected = (double)DRAWS * (K - 1) / (SIZE * SIZE);
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++)
            chi += pow(hits[i][j] - expected, 2) / expected;
    /* mean 255, deviation 22.6 */
    assert_true(fabs(chi - 255) < 5 * 22.6);
}

/* The rank does not matter; seed, step and place do. */
TEST(test_ranks_agree)
{
    enum { N = 5000, K = 50 };
    struct codec_buffers a = buffers_new("randomk", NULL, N),
                         b = buffers_new("randomk", NULL, N);
    float *x = vector_new(VECTOR_NORMAL, 3, N);
    const struct trib_encode_key key = {1, 2, 3, 4096};
    const struct trib_encode_key others[] = {
        {9, 2, 3, 4096}, {1, 9, 3, 4096}, {1, 2, 3, 0}};
    assert_int_equal(encode_as(&a, x, key), 8 + 4 * K + 8);
    assert_int_equal(a.code[0], STRATA);
    const struct trib_encode_key rank = {1, 2, 77, 4096};
    assert_int_equal(encode_as(&b, x, rank), a.len);
    assert_memory_equal(a.code, b.code, a.len);
    for (int i = 0; i < 3; i++) {
        encode_as(&b, x, others[i]);
        assert_memory_not_equal(a.code + a.len - 8, b.code + b.len - 8, 8);
    }
    free(x);
    buffers_free(&a), buffers_free(&b);
}

/* The sum of the ranks' encoded chunks is encoded in the same way; a vector with other
 * elements is not. */
TEST(test_sums)
{
    enum { N = 3001, K = 31 };
    struct codec_buffers b = buffers_new("randomk:ratio=0.01+bf16", NULL, N);
    float sum[N] = {0}, y[N];
    for (uint32_t rank = 0; rank < 3; rank++) {
        float *x = vector_new(VECTOR_NORMAL, rank, N);
        encode_as(&b, x, (struct trib_encode_key){42, 5, rank, 1000});
        assert_int_equal(b.len, 8 + 2 * K + 8);
        assert_ok(trib_codec_decode_add(b.codec, b.code, b.len, 1.0f, sum, N));
        free(x);
    }
    assert_int_equal(encode(&b, sum, TRIB_ENCODE_EXACT, 5), 8 + 4 * K + 8);
    assert_int_equal(b.code[0], STRATA);
    decode(&b, y);
    assert_memory_equal(sum, y, sizeof sum);
    encode(&b, sum, TRIB_ENCODE_EXACT, 6); /* another step's positions are others */
    assert_int_equal(b.code[0], GAPS);
    decode(&b, y);
    assert_memory_equal(sum, y, sizeof sum);
    for (int i = 0; i < N; i++)
        if (i % 97 && i != 5)
            sum[i] = 0;
    sum[5] = 1;
    encode(&b, sum, TRIB_ENCODE_EXACT, 5);
    assert_int_equal(b.code[0], GAPS);
    decode(&b, y);
    assert_memory_equal(sum, y, sizeof sum);
    buffers_free(&b);
}

/* E|C(x) - x|^2 = sum (1 - 1/s) x^2; if unbiased, E|C(x)|^2 = sum s x^2. Both hold
 * within five deviations and stay below the claimed delta. */
static void check_squares(const char *text, bool unbiased)
{
    enum { N = 1000, K = 30, DRAWS = 4000 };
    struct codec_buffers b = buffers_new(text, NULL, N);
    float *x = vector_new(VECTOR_POWER_LAW, 12, N), y[N];
    double expected = 0, sum = 0, squares = 0;
    for (size_t j = 0; j < K; j++) {
        for (size_t i = j * N / K; i < (j + 1) * N / K; i++) {
            const double s = (double)((j + 1) * N / K - j * N / K);
            const double x2 = (double)x[i] * (double)x[i];
            expected += unbiased ? s * x2 : (1 - 1 / s) * x2;
        }
    }
    for (uint32_t draw = 0; draw < DRAWS; draw++) {
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, draw);
        decode(&b, y);
        const double v = unbiased ? square_sum(y, N) : square_distance(x, y, N);
        sum += v / DRAWS;
        squares += v * v / DRAWS;
    }
    const double sigma = sqrt((squares - sum * sum) / DRAWS);
    const double delta = trib_codec_info(b.codec)->delta;
    assert_true(sigma > 0 && fabs(sum - expected) <= 5 * sigma);
    assert_true(unbiased ? delta == 0
                         : expected <= (1 - 1 / delta) * square_sum(x, N) * (1 + 1e-9));
    free(x);
    buffers_free(&b);
}

TEST(test_squares)
{
    check_squares("randomk:ratio=0.03", false);
    check_squares("randomk:ratio=0.03,unbiased=1", true);
}

/* Values are those of x, or scaled by the size of their stratum; k = n sends all. */
TEST(test_values)
{
    enum { N = 1000 };
    static const struct {
        const char *text;
        float scale;
        int k;
    } cases[] = {{"randomk:k=50", 1, 50},
                 {"randomk:k=50,unbiased=1", 20, 50},
                 {"randomk:ratio=1,unbiased=1", 1, N},
                 {"randomk:k=5000", 1, N}};
    float *x = vector_new(VECTOR_NORMAL, 4, N), y[N];
    for (int t = 0; t < 4; t++) {
        struct codec_buffers b = buffers_new(cases[t].text, NULL, N);
        int k = 0;
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
        decode(&b, y);
        for (int i = 0; i < N; i++) {
            k += y[i] != 0;
            assert_true(y[i] == 0 || y[i] == cases[t].scale * x[i]);
        }
        assert_int_equal(k, cases[t].k);
        buffers_free(&b);
    }
    free(x);
}

/* With feedback every element is sent eventually, and a NaN when it is drawn. */
TEST(test_feedback)
{
    enum { N = 40 };
    struct codec_buffers b = buffers_new("randomk:k=4", NULL, N);
    float x[N] = {0}, residual[N], y[N], sum[N] = {0};
    bool seen = false;
    for (int i = 0; i < N; i++)
        residual[i] = (float)(i + 1);
    residual[7] = NAN;
    for (uint32_t step = 0; step < 400; step++) {
        const struct trib_encode in = {
            .x = x, .n = N, .key = {1, step, 0, 0}, .scratch = b.scratch};
        b.len = trib_codec_encode_ef(b.codec, &in, residual, b.code);
        decode(&b, y);
        seen |= isnan(y[7]);
        for (int i = 0; i < N; i++)
            sum[i] += y[i];
    }
    assert_true(seen);
    for (int i = 0; i < N; i++)
        assert_true(residual[i] == 0.0f && (i == 7 || sum[i] == (float)(i + 1)));
    buffers_free(&b);
}

/* Any keys name positions; counts and kinds are looked at. */
TEST(test_hostile)
{
    enum { N = 20 };
    const uint8_t good[] = {3,    0,    0, 0, 1, 0, 0, 0, 0, 0,
                            0x80, 0x3f, 1, 2, 3, 4, 5, 6, 7, 8};
    const uint8_t none[] = {3, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
    struct codec_buffers b = buffers_new("randomk:k=2", NULL, N);
    struct codec_buffers other = buffers_new("topk:k=2", NULL, N);
    uint8_t bad[sizeof good];
    float y[N];
    assert_ok(trib_codec_decode(b.codec, good, sizeof good, y, N));
    assert_true(square_sum(y, N) == 1);
    assert_status(trib_codec_decode(other.codec, good, sizeof good, y, N),
                  TRIB_ERR_CODEC);
    assert_status(trib_codec_decode(b.codec, none, sizeof none, y, N), TRIB_ERR_CODEC);
    assert_status(trib_codec_decode(b.codec, good, sizeof good - 1, y, N),
                  TRIB_ERR_CODEC);
    memcpy(bad, good, sizeof good);
    bad[4] = 21;
    assert_status(trib_codec_decode(b.codec, bad, sizeof bad, y, N), TRIB_ERR_CODEC);
    buffers_free(&b), buffers_free(&other);
}
