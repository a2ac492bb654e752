/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rotated values: the benefits of a rotation, and the properties that it must preserve.
 * test_contract.c checks the contract of all codecs.
 */
#include "tests/compress/vectors.h"

enum { BLOCK = 1024, N = 5 * BLOCK + 777, TEXT_BYTES = 160 };

/* Student's t of 2 degrees of freedom: few elements have most of the energy. */
static float student_at(uint64_t seed, size_t i)
{
    const float a = normal_at(seed, 3 * i), b = normal_at(seed, 3 * i + 1);
    return normal_at(seed, 3 * i + 2) / sqrtf((a * a + b * b) / 2);
}

static void fill_student(float *x, uint64_t seed, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = student_at(seed, i);
}

/* One element of each block; or two, that a grid from the least to the largest misses
 * 0. */
static void fill_hot(float *x, int hot, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = i % BLOCK == 17 ? 1.0f : hot == 2 && i % BLOCK == 700 ? -0.61f : 0.0f;
}

/* Return the mean error over `draws` encodings, and their length. */
static double mean_nmse(const char *text, const float *x, size_t n, uint32_t draws,
                        size_t *len_out)
{
    struct codec_buffers b = buffers_new(text, NULL, n);
    float *y = malloc(n * sizeof *y);
    double error = 0;
    for (uint32_t draw = 0; draw < draws; draw++) {
        *len_out = encode(&b, x, TRIB_ENCODE_CONTRIBUTION, draw);
        decode(&b, y);
        error += square_distance(x, y, n) / square_sum(x, n) / draws;
    }
    free(y);
    buffers_free(&b);
    return error;
}

/* ---- bias ------------------------------------------------------------------------ */

/* The mean of many draws is within 5 sigma for each element, and its distance matches
 * the variance. */
static void check_unbiased(const char *text)
{
    enum { DRAWS = 2000 };
    static double mean[N], squares[N];
    static float x[N], y[N];
    struct codec_buffers b = buffers_new(text, NULL, N);
    double off = 0, expected = 0;
    assert_true(trib_codec_info(b.codec)->flags & TRIB_CODEC_UNBIASED);
    memset(mean, 0, sizeof mean), memset(squares, 0, sizeof squares);
    fill_student(x, 4, N);
    for (uint32_t draw = 0; draw < DRAWS; draw++) {
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, draw);
        decode(&b, y);
        for (int i = 0; i < N; i++) {
            const double d = (double)y[i] - (double)x[i];
            mean[i] += d / DRAWS;
            squares[i] += d * d / DRAWS;
        }
    }
    for (int i = 0; i < N; i++) {
        const double variance = squares[i] / DRAWS;
        if (fabs(mean[i]) > 5 * sqrt(variance) + 1e-6 * (double)fabsf(x[i]))
            fail_msg("%s: the mean of element %d is %.2f sigma off", text, i,
                     fabs(mean[i]) / sqrt(variance));
        off += mean[i] * mean[i];
        expected += variance;
    }
    if (off > 1.2 * expected)
        fail_msg("%s: the means are %.2f times as far off as they may be", text,
                 off / expected);
    buffers_free(&b);
}

TEST(test_unbiased)
{
    check_unbiased("hadamard");
    check_unbiased("hadamard+qsgd:bits=3");
    check_unbiased("hadamard:block=256+natural");
    check_unbiased("hadamard:block=4096+dither:bits=3");
    check_unbiased("hadamard+f8:round=random");
    check_unbiased("hadamard:block=64+int4:bucket=1024");
    check_unbiased("hadamard+bf16:round=random");
    check_unbiased("hadamard+qsgd:bits=2,shared=1");
}

/* ---- error ----------------------------------------------------------------------- */

/* At the same bytes a rotation wins on elements of very different size. */
static void check_gain(const char *values, const char *rotation, const float *x,
                       double gain)
{
    char text[TEXT_BYTES];
    size_t alone_len, rotated_len;
    const double alone = mean_nmse(values, x, N, 40, &alone_len);
    snprintf(text, sizeof text, "%s+%s", rotation, values);
    const double rotated = mean_nmse(text, x, N, 40, &rotated_len);
    assert_int_equal(alone_len, rotated_len);
    if (!(rotated * gain < alone))
        fail_msg("%s has an error of %.3g, without a rotation %.3g", text, rotated,
                 alone);
}

TEST(test_less_error)
{
    static float heavy[N], one[N], two[N];
    fill_student(heavy, 4, N);
    fill_hot(one, 1, N);
    fill_hot(two, 2, N);
    check_gain("qsgd:bits=4", "hadamard", heavy, 8);
    check_gain("qsgd:bits=2,shared=1", "hadamard", heavy, 2.5);
    check_gain("int4", "hadamard", heavy, 8);
    check_gain("int8", "hadamard:block=4096", heavy, 8);
    check_gain("int16:bucket=4096", "hadamard:block=256", heavy, 15);
    check_gain("uniform-thc", "hadamard", heavy, 8);
    check_gain("dither:bits=3", "hadamard", heavy, 4);
    check_gain("onebit", "hadamard", heavy, 1.5);
    check_gain("efsign", "hadamard", heavy, 1.5);
    check_gain("onebit", "hadamard", one, 15);
    check_gain("efsign", "hadamard", one, 15);
    check_gain("uniform-thc:bits=2,bucket=1024", "hadamard", two, 100);
}

/* Signs of normal values with their mean magnitude lose 1 - 2/pi; rotated ones are
 * normal where a block has energy in more than a few elements. */
TEST(test_error_of_normal_values)
{
    static float x[N];
    size_t len;
    for (uint64_t seed = 0; seed < 10; seed++) {
        for (size_t i = 0; i < N; i++)
            x[i] = powf(normal_at(seed, i), 3);
        const double error = mean_nmse("hadamard+efsign", x, N, 1, &len);
        if (fabs(error - 0.3634) > 0.02)
            fail_msg("of vector %d %.4f is lost", (int)seed, error);
    }
}

/*
 * Suresh, Yu, Kumar, McMahan, ICML 2017, theorem 3: of n clients that each round at
 * random to k levels from the least to the largest of their rotated vectors of d
 * elements, the mean has
 *
 *     E |mean of C(x) - mean of x|^2 <= (2 ln d + 2) / (n (k - 1)^2) mean of |x|^2
 *
 * The quantiser alone is above that where it is not rotated.
 */
static double mean_estimate_error(const char *text, int clients, int hot)
{
    enum { DRAWS = 30 };
    float x[BLOCK], y[BLOCK], sum[BLOCK], decoded[BLOCK];
    struct codec_buffers b = buffers_new(text, NULL, BLOCK);
    double error = 0, energy = 0;
    for (uint32_t draw = 0; draw < DRAWS; draw++) {
        memset(sum, 0, sizeof sum), memset(decoded, 0, sizeof decoded);
        for (int client = 0; client < clients; client++) {
            const struct trib_encode in = {
                .x = x, .n = BLOCK, .key = {1, draw, (uint32_t)client, 0}};
            if (hot)
                fill_hot(x, hot, BLOCK);
            else
                fill_student(x, 50 * draw + (uint64_t)client, BLOCK);
            b.len = trib_codec_encode(b.codec, &in, b.code);
            decode(&b, y);
            energy += square_sum(x, BLOCK);
            for (int i = 0; i < BLOCK; i++) {
                sum[i] += x[i];
                decoded[i] += y[i];
            }
        }
        error += square_distance(sum, decoded, BLOCK) / (clients * clients);
    }
    buffers_free(&b);
    return error / (energy / clients);
}

TEST(test_theorem)
{
    char text[TEXT_BYTES];
    for (int clients = 1; clients <= 9; clients *= 3) {
        for (int bits = 2; bits <= 8; bits += 2) {
            const double steps = (1 << bits) - 1;
            const double bound = (2 * log(BLOCK) + 2) / (clients * steps * steps);
            for (int hot = 0; hot <= 2; hot++) {
                snprintf(text, sizeof text, "hadamard+uniform-thc:bits=%d,bucket=%d",
                         bits, BLOCK);
                const double rotated = mean_estimate_error(text, clients, hot);
                const double alone =
                    mean_estimate_error(strchr(text, '+') + 1, clients, hot);
                if (!(rotated <= bound) || (hot != 1 && !(alone > bound)))
                    fail_msg("%d clients, %s: %.3g, alone %.3g; the bound is %.3g",
                             clients, text, rotated, alone, bound);
            }
        }
    }
}

/* ---- sums ------------------------------------------------------------------------ */

enum { RANKS = 5 };

static const char *const linear_texts[] = {
    "hadamard",
    "hadamard:block=64+int4",
    "hadamard:block=4096+int8:bucket=64,round=nearest",
    "hadamard:block=256+int16:bucket=2048",
    "hadamard+uniform-thc:bits=7",
    "hadamard+qsgd:bits=5,shared=1",
    "hadamard:block=128+terngrad:shared=1",
    "thc",
};
enum { LINEAR_TEXTS = sizeof linear_texts / sizeof *linear_texts };

/* The encoded chunks of some ranks on agreed scales. */
struct linear {
    struct trib_codec *codec;
    size_t n;
    float *x[RANKS], *share;
    uint8_t *code[RANKS];
    struct trib_encoded word[RANKS];
};

static void agree(struct linear *s)
{
    const size_t floats = trib_codec_agreed_floats(s->codec, s->n);
    float *own = malloc(floats * sizeof *own + 4);
    s->share = malloc(floats * sizeof *own + 4);
    assert_int_equal(trib_codec_agreement_op(s->codec), TRIB_MAX);
    for (int r = 0; r < RANKS; r++) {
        trib_codec_propose(s->codec, s->x[r], s->n, own);
        for (size_t i = 0; i < floats; i++)
            s->share[i] = r == 0 || own[i] > s->share[i] ? own[i] : s->share[i];
    }
    free(own);
}

static void linear_new(struct linear *s, const char *text, size_t n)
{
    *s = (struct linear){.codec = codec_new(text, NULL), .n = n};
    assert_true(trib_codec_info(s->codec)->flags & TRIB_CODEC_LINEAR);
    assert_ok(trib_codec_for_ranks(s->codec, RANKS, NULL));
    for (int r = 0; r < RANKS; r++) {
        s->x[r] = malloc(n * sizeof(float) + 4);
        s->code[r] = malloc(trib_codec_bound(s->codec, n) + 1);
        fill_student(s->x[r], 10 + (uint64_t)r, n);
    }
    agree(s);
    for (int r = 0; r < RANKS; r++) {
        const struct trib_encode in = {
            .x = s->x[r], .n = n, .key = {1, 2, (uint32_t)r, 0}, .agreed = s->share};
        s->word[r] = (struct trib_encoded){s->code[r],
                                        trib_codec_encode(s->codec, &in, s->code[r])};
    }
}

static void linear_free(struct linear *s)
{
    for (int r = 0; r < RANKS; r++)
        free(s->x[r]), free(s->code[r]);
    free(s->share);
    trib_codec_destroy(s->codec);
}

/* decode(merge) equals the sum of decodes except for rounding, in any order of
 * merges. */
static void check_sums(const char *text, size_t n)
{
    struct linear s;
    linear_new(&s, text, n);
    const size_t bound = trib_codec_bound(s.codec, n);
    uint8_t *all = malloc(bound + 1), *some = malloc(bound + 1),
            *again = malloc(bound + 1);
    float *sum = calloc(n + 1, sizeof *sum), *y = malloc(n * sizeof *y + 4);
    double magnitude = 0;
    size_t len, part;
    struct trib_merge m = {.words = s.word, .n_words = RANKS, .n = n};
    assert_ok(trib_codec_merge(s.codec, &m, all, &len));
    for (int r = 0; r < RANKS; r++) {
        const struct trib_encoded *w = &s.word[r];
        assert_ok(trib_codec_decode_add(s.codec, w->src, w->len, 1.0f, sum, n));
        assert_ok(trib_codec_decode(s.codec, w->src, w->len, y, n));
        magnitude += sqrt(square_sum(y, n));
    }
    assert_ok(trib_codec_decode(s.codec, all, len, y, n));
    assert_true(sqrt(square_distance(sum, y, n)) <= 2e-6 * magnitude);
    m.n_words = 2;
    assert_ok(trib_codec_merge(s.codec, &m, some, &part));
    struct trib_encoded rest[] = {s.word[4], {some, part}, s.word[2], s.word[3]};
    m = (struct trib_merge){.words = rest, .n_words = 4, .n = n};
    assert_ok(trib_codec_merge(s.codec, &m, again, &part));
    assert_int_equal(part, len);
    assert_memory_equal(all, again, len);
    free(all), free(some), free(again), free(sum), free(y);
    linear_free(&s);
}

TEST(test_sums)
{
    static const size_t lengths[] = {0, 1, 63, 64, 65, BLOCK, N, 9001};
    for (int t = 0; t < LINEAR_TEXTS; t++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
            check_sums(linear_texts[t], lengths[l]);
}

/* A single rank agrees with itself, and shares of a sum match those of its elements. */
TEST(test_shares_are_of_what_is_encoded)
{
    static float x[N], residual[N], sum[N];
    for (int t = 0; t < LINEAR_TEXTS; t++) {
        struct codec_buffers b = buffers_new(linear_texts[t], NULL, N);
        const size_t floats = trib_codec_agreed_floats(b.codec, N);
        float *share = malloc(floats * sizeof *share),
              *added = malloc(floats * sizeof *share);
        uint8_t *code = malloc(trib_codec_bound(b.codec, N));
        fill_student(x, 4, N), fill_student(residual, 5, N);
        for (int i = 0; i < N; i++)
            sum[i] = residual[i] + x[i];
        trib_codec_propose_added(b.codec, x, residual, N, added);
        assert_memory_equal(residual, sum, sizeof sum);
        trib_codec_propose(b.codec, sum, N, share);
        assert_memory_equal(share, added, floats * sizeof *share);
        struct trib_encode in = {.x = sum, .n = N, .key = {1, 2, 3, 0}};
        b.len = trib_codec_encode(b.codec, &in, b.code);
        in.agreed = share;
        assert_int_equal(trib_codec_encode(b.codec, &in, code), b.len);
        assert_memory_equal(code, b.code, b.len);
        free(share), free(added), free(code);
        buffers_free(&b);
    }
}

/* With shares, too, the residual is the part that was not sent, as elements. */
TEST(test_feedback_of_shared_words)
{
    static float y[N], residual[N];
    for (int t = 0; t < LINEAR_TEXTS; t++) {
        struct linear s;
        linear_new(&s, linear_texts[t], N);
        for (int r = 0; r < RANKS; r++) {
            memcpy(residual, s.x[r], sizeof residual);
            const struct trib_encode in = {.x = residual,
                                           .n = N,
                                           .key = {1, 2, (uint32_t)r, 0},
                                           .agreed = s.share};
            uint8_t *code = malloc(trib_codec_bound(s.codec, N));
            const size_t len = trib_codec_encode_kept(s.codec, &in, residual, code);
            assert_int_equal(len, s.word[r].len);
            assert_memory_equal(code, s.word[r].src, len);
            assert_ok(trib_codec_decode(s.codec, code, len, y, N));
            for (int i = 0; i < N; i++)
                assert_true(residual[i] == s.x[r][i] - y[i]);
            free(code);
        }
        linear_free(&s);
    }
}

/* ---- cuts and odd numbers -------------------------------------------------------- */

static const char *const all_texts[] = {
    "hadamard",
    "hadamard+f16:round=random",
    "hadamard:block=64+f8:bucket=512,round=random",
    "hadamard:block=4096+qsgd:bits=3,bucket=8",
    "hadamard:block=64+dither:bucket=192",
    "hadamard:block=512+natural:bucket=3584",
    "hadamard+onebit:bucket=64",
    "hadamard+efsign:bucket=2048",
    "hadamard+int8:bucket=4096",
    "hadamard:block=256+terngrad",
    "thc:block=256",
};
enum { ALL_TEXTS = sizeof all_texts / sizeof *all_texts };

/* A vector that is cut at multiples of trib_codec_unit has the same result as a whole
 * one. */
TEST(test_cuts)
{
    for (int t = 0; t < ALL_TEXTS; t++) {
        struct trib_codec *c = codec_new(all_texts[t], NULL);
        const size_t unit = trib_codec_unit(c), n = 7 * unit + 333;
        struct codec_buffers b = buffers_new(all_texts[t], NULL, n);
        float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y),
              *z = malloc(n * sizeof *z);
        fill_student(x, 4, n);
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 3);
        decode(&b, y);
        for (size_t at = 0, count, units = 1; at < n; at += count, units++) {
            count = units * unit < n - at ? units * unit : n - at;
            const struct trib_encode in = {.x = x + at,
                                           .n = count,
                                           .key = {42, 3, 1, 1000 + at},
                                           .scratch = b.scratch};
            const size_t len = trib_codec_encode(b.codec, &in, b.code);
            assert_ok(trib_codec_decode(b.codec, b.code, len, z + at, count));
        }
        assert_memory_equal(y, z, n * sizeof *y);
        free(x), free(y), free(z);
        buffers_free(&b);
        trib_codec_destroy(c);
    }
}

/* A value that is not finite spoils its blocks and buckets, whole, and no others. */
TEST(test_not_finite)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int t = 0; t < ALL_TEXTS; t++) {
        struct trib_codec *c = codec_new(all_texts[t], NULL);
        const size_t unit = trib_codec_unit(c), n = 3 * unit + 33;
        struct codec_buffers b = buffers_new(all_texts[t], NULL, n);
        float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
        for (int i = 0; i < 6; i++) {
            const size_t at = i % 2 ? 3 * unit + 5 : unit + 50;
            size_t spoiled = 0;
            for (size_t j = 0; j < n; j++)
                x[j] = normal_at(4, j);
            x[at] = bad[i / 2];
            encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 3);
            decode(&b, y);
            for (size_t j = 0; j < n; j++) {
                assert_true(isfinite(y[j]) || j / unit == at / unit);
                spoiled += !isfinite(y[j]);
            }
            assert_false(isfinite(y[at]));
            assert_true(spoiled >= (i % 2 ? 33 : 64));
        }
        free(x), free(y);
        buffers_free(&b);
        trib_codec_destroy(c);
    }
}

/* The largest value that rotated.h accepts, and the smallest float. */
TEST(test_range)
{
    static float x[N], y[N];
    for (int t = 0; t < ALL_TEXTS; t++) {
        struct codec_buffers b = buffers_new(all_texts[t], NULL, N);
        for (int i = 0; i < N; i++)
            x[i] = ldexpf(i % 3 ? 1.0f : -1.0f, 114);
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 3);
        decode(&b, y);
        for (int i = 0; i < N && !strstr(all_texts[t], "f16"); i++)
            assert_true(isfinite(y[i]));
        for (int i = 0; i < N; i++)
            x[i] = (float)(i % 7) * 0x1p-149f;
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 3);
        decode(&b, y);
        for (int i = 0; i < N; i++)
            assert_true(isfinite(y[i]) && fabsf(y[i]) < 0x1p-90f);
        buffers_free(&b);
    }
}
