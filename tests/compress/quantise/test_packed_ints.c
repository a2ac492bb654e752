/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encoded chunks that add without decoding: the sum of encoded chunks is the encoding
 * of the sum.
 */
#include "tests/compress/quantise/packed_ints_words.h"

enum { N = 3001 };

static const char *const texts[] = {
    "int4:bucket=64",
    "int8",
    "int8:bucket=8,round=nearest",
    "int16:bucket=256",
    "uniform-thc:bits=2,bucket=64",
    "uniform-thc:bits=8,round=nearest",
    "qsgd:shared=1,bits=3,bucket=64",
    "qsgd:shared=1,norm=l2,bits=6",
    "terngrad:shared=1,bucket=64",
    "signsgd",
    "thc",
    "thc:block=64,p=1/128",
};
enum { TEXTS = sizeof texts / sizeof *texts };

static float normal(size_t rank, size_t i)
{
    return normal_at(100 + rank, i) * (float)(1 + rank % 3);
}

/* decode(merge) = the sum of decodes, and of a mean that by the ranks, to rounding. */
TEST(test_sum_of_words)
{
    static const size_t ranks[] = {1, 2, 3, 8, 17, 40};
    float one[N], sum[N], added[N];
    for (int t = 0; t < TEXTS; t++) {
        for (size_t k = 0; k < 6; k++) {
            struct words w = words_new(texts[t], ranks[k], N, normal);
            double expected[N] = {0}, most = 0;
            for (size_t r = 0; r < w.ranks; r++) {
                decode_word(&w, w.word[r].src, w.word[r].len, one);
                for (int i = 0; i < N; i++) {
                    expected[i] += (double)one[i];
                    most = fmax(most, fabs((double)one[i]));
                }
            }
            assert_ok(merge(&w, 0, w.ranks, false, 0));
            decode_word(&w, w.sum, w.sum_len, sum);
            for (int i = 0; i < N; i++)
                added[i] = 1.0f;
            assert_ok(trib_codec_decode_add(w.codec, w.sum, w.sum_len, 2.0f, added, N));
            const double slack = 1e-6 * most * (double)w.ranks;
            for (int i = 0; i < N; i++) {
                assert_true(fabs((double)sum[i] - expected[i]) <= slack);
                assert_true(fabsf(added[i] - (1.0f + 2.0f * sum[i])) <=
                            4 * (float)slack);
            }
            assert_ok(merge(&w, 0, w.ranks, true, (uint32_t)w.ranks));
            decode_word(&w, w.sum, w.sum_len, sum);
            for (int i = 0; i < N && !only_votes(texts[t]); i++)
                assert_true(fabs((double)sum[i] * (double)w.ranks - expected[i]) <=
                            slack);
            words_free(&w);
        }
    }
}

/* The bytes of a sum depend neither on the order nor on the grouping of merges. */
TEST(test_any_order)
{
    enum { RANKS = 7 };
    for (int t = 0; t < TEXTS; t++) {
        struct words w = words_new(texts[t], RANKS, N, normal);
        uint8_t *parts[2], *direct = room(w.codec, N);
        assert_ok(merge(&w, 0, RANKS, true, 0));
        const size_t len = w.sum_len;
        memcpy(direct, w.sum, len);
        struct trib_encoded two[3];
        for (int half = 0; half < 2; half++) {
            assert_ok(merge(&w, half ? 3 : 0, half ? 3 : 3, false, 0));
            parts[half] = room(w.codec, N);
            memcpy(parts[half], w.sum, w.sum_len);
            two[1 - half] = (struct trib_encoded){parts[half], w.sum_len};
        }
        two[2] = w.word[6];
        const struct trib_merge m = {.words = two, .n_words = 3, .n = N, .final = true};
        assert_ok(trib_codec_merge(w.codec, &m, w.sum, &w.sum_len));
        assert_int_equal(w.sum_len, len);
        assert_memory_equal(w.sum, direct, len);
        free(parts[0]);
        free(parts[1]);
        free(direct);
        words_free(&w);
    }
}

static float largest(size_t rank, size_t i)
{
    (void)rank;
    return i % 2 ? 3.0f : 3.0f * (i % 4 ? 1.0f : -1.0f);
}

/* All ranks at the end of the grid: no lane of any width carries into its neighbour. */
TEST(test_lanes_never_carry)
{
    static const size_t ranks[] = {1,  2,   4,   9,   18,  19,  85,
                                   86, 127, 128, 255, 258, 259, 600};
    enum { FEW = 131 };
    float sum[FEW];
    for (int t = 0; t < TEXTS; t++) {
        for (size_t k = 0; k < sizeof ranks / sizeof *ranks; k++) {
            struct words w = words_new(texts[t], ranks[k], FEW, largest);
            double expected[FEW] = {0};
            float one[FEW];
            for (size_t r = 0; r < w.ranks; r++) {
                decode_word(&w, w.word[r].src, w.word[r].len, one);
                for (int i = 0; i < FEW; i++)
                    expected[i] += (double)one[i];
            }
            assert_ok(merge(&w, 0, w.ranks, false, 0));
            assert_true(w.sum_len <= trib_codec_bound(w.codec, FEW));
            decode_word(&w, w.sum, w.sum_len, sum);
            for (int i = 0; i < FEW; i++)
                if (fabs((double)sum[i] - expected[i]) > 1e-5 * (double)w.ranks)
                    fail_msg("%s, %zu ranks: element %d is %g, not %g", texts[t],
                             w.ranks, i, (double)sum[i], expected[i]);
            words_free(&w);
        }
    }
}

TEST(test_refused_words)
{
    for (int t = 0; t < TEXTS; t++) {
        struct words w = words_new(texts[t], 3, 100, normal);
        uint8_t *bytes = (uint8_t *)(uintptr_t)w.word[1].src;
        const size_t len = w.word[1].len;
        assert_ok(merge(&w, 0, 3, false, 0));
        for (size_t i = 0; i < 12; i++) { /* the header is known to the byte */
            for (int bit = 0; bit < 8 && i != 1; bit++) {
                bytes[i] ^= (uint8_t)(1u << bit);
                const trib_status_t status = merge(&w, 0, 3, false, 0);
                bytes[i] ^= (uint8_t)(1u << bit);
                assert_status(status, TRIB_ERR_CODEC);
            }
        }
        for (size_t i = 12; i < 12 + 4 * trib_codec_agreed_floats(w.codec, 100); i++) {
            bytes[i] ^= 1; /* another scale */
            assert_status(merge(&w, 0, 3, false, 0), TRIB_ERR_CODEC);
            bytes[i] ^= 1;
        }
        w.word[1].len = len - 1;
        assert_status(merge(&w, 0, 3, false, 0), TRIB_ERR_CODEC);
        w.word[1].len = len;
        /* one contribution twice is one too many */
        assert_ok(merge(&w, 0, 3, false, 0));
        w.word[3] = w.word[0];
        assert_status(merge(&w, 0, 4, false, 0), TRIB_ERR_CODEC);
        /* a finished mean is not added to */
        if (!only_votes(texts[t])) {
            assert_ok(merge(&w, 0, 1, true, 3));
            struct trib_encoded again = {w.sum, w.sum_len};
            const struct trib_merge m = {.words = &again, .n_words = 1, .n = 100};
            uint8_t *dst = room(w.codec, 100);
            size_t dst_len;
            assert_status(trib_codec_merge(w.codec, &m, dst, &dst_len), TRIB_ERR_CODEC);
            free(dst);
        }
        words_free(&w);
    }
}

TEST(test_ranks_that_do_not_fit)
{
    struct trib_error err = {0};
    struct trib_codec *c = codec_new("int16", NULL);
    assert_ok(trib_codec_for_ranks(c, 65537, &err));
    assert_status(trib_codec_for_ranks(c, 65600, &err), TRIB_ERR_CODEC);
    assert_non_null(strstr(trib_error_text(&err), "65600 ranks"));
    trib_codec_destroy(c);
}

/* Codecs without lanes have no merge, and nothing to share. */
TEST(test_others_have_none)
{
    uint8_t a[64], b[64];
    size_t len;
    struct trib_codec *c = codec_new("bf16", NULL);
    struct trib_encoded word = {a, 32};
    const struct trib_merge m = {.words = &word, .n_words = 1, .n = 16};
    memset(a, 0, sizeof a);
    assert_int_equal(trib_codec_agreed_floats(c, 16), 0);
    assert_status(trib_codec_merge(c, &m, b, &len), TRIB_ERR_CODEC);
    trib_codec_destroy(c);
}

/* ---- claims of each row ---------------------------------------------------------- */

/* The vote for element i is + on `for_it` of `ranks` ranks. */
static float vote_of(size_t rank, size_t i)
{
    const float size = 0.5f + (float)i;
    return rank < i % 8 ? size : -size;
}

TEST(test_majority)
{
    float y[64];
    for (size_t ranks = 1; ranks <= 7; ranks++) {
        struct words w = words_new("signsgd", ranks, 64, vote_of);
        assert_int_equal(w.word[0].len, 12 + 8); /* one bit up */
        assert_ok(merge(&w, 0, ranks, true, 0));
        assert_int_equal(w.sum_len, 12 + (ranks % 2 ? 8 : 16)); /* one or two down */
        decode_word(&w, w.sum, w.sum_len, y);
        for (size_t i = 0; i < 64; i++) {
            const size_t for_it = i % 8 < ranks ? i % 8 : ranks;
            const float expected =
                (float)((2 * for_it > ranks) - (2 * for_it < ranks));
            assert_true(y[i] == expected);
        }
        words_free(&w);
    }
}

/* Check errors within one step of the grid and a mean within 5 sigma, whatever the
 * other ranks contribute. */
static float one_bad(size_t rank, size_t i)
{
    return rank == 1 && i == 9 ? NAN : i < 8 ? 0.0f : normal(rank, i);
}

struct requantised {
    const char *plain, *anew;
    size_t bucket;
    float steps; /* of the largest magnitude, an error may be one of them */
};

/* A requantised sum is within one step of the sum's own grid, or half a step with
 * rounding to nearest. Unfinished sums are added as without requantising. */
static void check_requantised(const struct requantised *q, size_t ranks, uint32_t mean)
{
    struct words a = words_new(q->plain, ranks, N, normal);
    struct words b = words_new(q->anew, ranks, N, normal);
    float sum[N], y[N];
    assert_ok(merge(&b, 0, ranks, false, 0));
    assert_ok(merge(&a, 0, ranks, false, 0));
    assert_int_equal(a.sum_len, b.sum_len);
    assert_memory_equal(a.sum, b.sum, a.sum_len);
    assert_ok(merge(&a, 0, ranks, true, mean));
    assert_ok(merge(&b, 0, ranks, true, mean));
    assert_int_equal(b.sum_len, b.word[0].len);
    decode_word(&a, a.sum, a.sum_len, sum);
    decode_word(&b, b.sum, b.sum_len, y);
    for (size_t first = 0; first < N; first += q->bucket) {
        const size_t end = first + q->bucket < N ? first + q->bucket : N;
        float most = 0;
        for (size_t i = first; i < end; i++)
            most = fmaxf(most, fabsf(sum[i]));
        for (size_t i = first; i < end; i++)
            assert_true(fabsf(y[i] - sum[i]) <= 1.0001f * most / q->steps);
    }
    words_free(&a);
    words_free(&b);
}

TEST(test_requantised)
{
    static const struct requantised rows[] = {
        {"int8", "int8:result=requantised", 512, 127},
        {"int4:bucket=40", "int4:bucket=40,result=requantised", 40, 7},
        {"int8:bucket=2504,round=nearest",
         "int8:bucket=2504,round=nearest,result=requantised", 2504, 254},
        {"int16:bucket=8", "int16:bucket=8,result=requantised", 8, 32767},
    };
    float y[64];
    for (size_t ranks = 1; ranks <= 300; ranks = ranks * 5 + 3)
        for (size_t k = 0; k < 4; k++)
            check_requantised(&rows[k], ranks, k % 2 ? 0 : (uint32_t)ranks);
    struct words w = words_new("int8:bucket=8,result=requantised", 3, 64, one_bad);
    assert_ok(merge(&w, 0, 3, true, 0));
    decode_word(&w, w.sum, w.sum_len, y);
    for (size_t i = 0; i < 64; i++) {
        assert_int_equal(isnan(y[i]), i / 8 == 1); /* the bucket where one has it */
        assert_true(i >= 8 || y[i] == 0);
    }
    words_free(&w);
}

TEST(test_mean_of_draws)
{
    enum { DRAWS = 4000, FEW = 64 };
    static const char *const unbiased[] = {"int4:bucket=64", "int8:bucket=64",
                                           "uniform-thc:bits=4,bucket=64",
                                           "qsgd:shared=1,bits=2,bucket=64"};
    static const double steps[] = {7, 127, 7.5, 1};
    for (int t = 0; t < 4; t++) {
        struct words w = words_new(unbiased[t], 2, FEW, normal);
        double mean[FEW] = {0}, largest_x = 0;
        uint8_t *code = room(w.codec, FEW);
        float y[FEW];
        for (int i = 0; i < FEW; i++)
            for (int r = 0; r < 2; r++)
                largest_x = fmax(largest_x, fabs((double)w.x[r][i]));
        const double step = largest_x / steps[t] * (1 + 1e-5);
        for (uint32_t draw = 0; draw < DRAWS; draw++) {
            const struct trib_encode in = {
                .x = w.x[0], .n = FEW, .key = {9, draw, 0, 0}, .agreed = w.share};
            decode_word(&w, code, trib_codec_encode(w.codec, &in, code), y);
            for (int i = 0; i < FEW; i++) {
                assert_true(fabs((double)y[i] - (double)w.x[0][i]) <= step);
                mean[i] += (double)y[i] / DRAWS;
            }
        }
        for (int i = 0; i < FEW; i++)
            assert_true(fabs(mean[i] - (double)w.x[0][i]) <=
                        5 * step / 2 / sqrt(DRAWS));
        free(code);
        words_free(&w);
    }
}

static float constant(size_t rank, size_t i)
{
    (void)rank, (void)i;
    return 0.3f;
}

static float nothing(size_t rank, size_t i)
{
    (void)rank, (void)i;
    return 0.0f;
}

static float hot(size_t rank, size_t i)
{
    return rank == 1 && i == 5 ? -FLT_MAX : 0.0f;
}

static float widest(size_t rank, size_t i)
{
    return rank == 0 && i < 2 ? (i ? FLT_MAX : -FLT_MAX) : 0.0f;
}

static float denormal(size_t rank, size_t i)
{
    return rank == 0 && i < 3 ? 0x1p-149f : 0.0f;
}

static float infinite(size_t rank, size_t i)
{
    return rank == 1 && i == 70 ? -INFINITY : rank == 0 && i == 3 ? NAN : 1.0f;
}

TEST(test_special_vectors)
{
    enum { FEW = 128 };
    float y[FEW];
    for (int t = 0; t < TEXTS; t++) {
        const bool vote = only_votes(texts[t]),
                   clips = strstr(texts[t], "terngrad") != NULL;
        const bool rotates = strncmp(texts[t], "thc", 3) == 0;
        struct words w = words_new(texts[t], 2, FEW, nothing);
        assert_ok(merge(&w, 0, 2, true, 0));
        decode_word(&w, w.sum, w.sum_len, y);
        for (int i = 0; i < FEW; i++)
            assert_true(y[i] == (vote ? 1.0f : 0.0f));
        words_free(&w);
        if (vote)
            continue;
        w = words_new(texts[t], 2, FEW, constant);
        assert_ok(merge(&w, 0, 2, true, 0));
        decode_word(&w, w.sum, w.sum_len, y);
        for (int i = 0; i < FEW && !strstr(texts[t], "l2"); i++)
            assert_true(fabsf(y[i] - 0.6f) <= (rotates ? 0.4f : 1e-6f));
        words_free(&w);
        w = words_new(texts[t], 2, FEW, hot);
        assert_ok(merge(&w, 0, 2, true, 0));
        decode_word(&w, w.sum, w.sum_len, y);
        for (int i = 0; i < FEW && !strstr(texts[t], "uniform") && !clips && !rotates;
             i++)
            if (i == 5 ? fabsf(y[i] / FLT_MAX + 1) > 1e-6f : y[i] != 0)
                fail_msg("%s: element %d is %g", texts[t], i, (double)y[i]);
        for (int i = 0; i < FEW && !strstr(texts[t], "uniform"); i++)
            assert_true(isfinite(y[i]) || (rotates && isnan(y[i])));
        words_free(&w);
        w = words_new(texts[t], 2, FEW, widest);
        assert_ok(merge(&w, 0, 2, true, 0));
        decode_word(&w, w.sum, w.sum_len, y);
        for (int i = 0; i < FEW && strstr(texts[t], "uniform"); i++)
            assert_true(isnan(y[i]) || i >= 64);
        words_free(&w);
        w = words_new(texts[t], 2, FEW, denormal);
        assert_ok(merge(&w, 0, 2, true, 0));
        decode_word(&w, w.sum, w.sum_len, y);
        for (int i = 0; i < FEW; i++)
            assert_true(fabsf(y[i]) <= (rotates ? 0x1p-93f : 0x1p-99f));
        words_free(&w);
        w = words_new(texts[t], 2, FEW, infinite);
        assert_ok(merge(&w, 0, 2, true, 0));
        decode_word(&w, w.sum, w.sum_len, y);
        assert_true(isnan(y[3]) && isnan(y[70]) && isnan(y[0]));
        for (int i = 0; i < FEW && rotates; i++)
            assert_true(isnan(y[i]));
        words_free(&w);
    }
}

/* The same bytes and floats by every instruction set. */
/* Error feedback in one pass over a bucket leaves what encoding, decoding and a
 * subtraction do; so does adding to the residual while the scales are measured. */
TEST(test_feedback_at_once)
{
    static float (*const kinds[])(size_t, size_t) = {normal,  constant, nothing, hot,
                                                     denormal, infinite, vote_of};
    for (size_t t = 0; t < TEXTS; t++) {
        if (strcmp(texts[t], "signsgd") == 0)
            continue;
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            struct words w = words_new(texts[t], 2, N, kinds[k]);
            const size_t floats = trib_codec_agreed_floats(w.codec, N);
            uint8_t *word = room(w.codec, N), *expected = room(w.codec, N);
            float *p = malloc(N * sizeof *p), *left = malloc(N * sizeof *left);
            float *y = malloc(N * sizeof *y), *share = malloc(floats * sizeof *share);
            for (size_t i = 0; i < N; i++) {
                p[i] = 0.25f * normal(5, i);
                left[i] = w.x[0][i] + p[i];
            }
            trib_codec_propose_added(w.codec, w.x[0], p, N, share);
            assert_memory_equal(p, left, N * sizeof *p);
            trib_codec_propose(w.codec, left, N, y);
            assert_memory_equal(share, y, floats * sizeof *share);
            struct trib_encode in = {.x = p, .n = N, .key = {42, 7, 0, 0}};
            for (int agreed = 0; agreed < 2; agreed++) {
                in.agreed = agreed ? w.share : NULL; /* which may be too small for p */
                const size_t len = trib_codec_encode(w.codec, &in, expected);
                assert_ok(trib_codec_decode(w.codec, expected, len, y, N));
                for (size_t i = 0; i < N; i++) {
                    left[i] = p[i] - y[i];
                    left[i] = isfinite(left[i]) ? left[i] : 0.0f;
                }
                assert_int_equal(trib_codec_encode_kept(w.codec, &in, p, word), len);
                assert_memory_equal(word, expected, len);
                assert_memory_equal(p, left, N * sizeof *p);
            }
            free(word), free(expected), free(p), free(left), free(y), free(share);
            words_free(&w);
        }
    }
}

TEST(test_instruction_sets)
{
    static const char *const isas[] = {"c", "avx2", "avx512"};
    static const size_t lengths[] = {0,  1,   7,   15,  16,   31,  33,
                                     64, 100, 127, 129, 1025, 3001};
    for (int t = 0; t < TEXTS; t++) {
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            const size_t n = lengths[k];
            struct words w = words_new(texts[t], 3, n, normal);
            uint8_t *sums[3], *codes[3];
            float *values[3], *accs[3];
            size_t used = 0;
            for (int i = 0; i < 3; i++) {
                if (!trib_kernels_get(isas[i]))
                    continue;
                struct trib_codec *c = codec_new(texts[t], isas[i]);
                assert_ok(trib_codec_for_ranks(c, 3, NULL));
                const struct trib_encode in = {
                    .x = w.x[1], .n = n, .key = {1, 2, 3, 4093}, .agreed = w.share};
                codes[used] = room(c, n);
                const size_t len = trib_codec_encode(c, &in, codes[used]);
                struct trib_encoded two[] = {{codes[used], len}, w.word[2]};
                const struct trib_merge m = {.words = two, .n_words = 2, .n = n};
                size_t sum_len;
                sums[used] = room(c, n);
                values[used] = calloc(n + 1, sizeof(float));
                accs[used] = calloc(n + 1, sizeof(float));
                assert_ok(trib_codec_merge(c, &m, sums[used], &sum_len));
                assert_ok(trib_codec_decode(c, sums[used], sum_len, values[used], n));
                assert_ok(
                    trib_codec_decode_add(c, sums[used], sum_len, 0.7f, accs[used], n));
                assert_memory_equal(codes[used], codes[0], len);
                assert_memory_equal(sums[used], sums[0], sum_len);
                assert_memory_equal(values[used], values[0], n * sizeof(float));
                assert_memory_equal(accs[used], accs[0], n * sizeof(float));
                trib_codec_destroy(c);
                used++;
            }
            for (size_t i = 0; i < used; i++) {
                free(sums[i]), free(codes[i]);
                free(values[i]), free(accs[i]);
            }
            words_free(&w);
        }
    }
}
