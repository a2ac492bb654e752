/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The promises of codec.h, for every codec: bound, round trip, determinism on every
 * instruction set, error feedback, unbiasedness, contraction, hostile bytes.
 */
#include "tests/compress/vectors.h"

#include "compress/stages.h"

static const size_t lengths[] = {0, 1, 2, 7, 8, 9, 63, 257, 1000, 4099, 20011};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* Return true for equal numbers, or two NaNs with any payload. */
static bool alike(float a, float b)
{
    return a == b || (isnan(a) && isnan(b));
}

TEST(test_bound_and_round_trip)
{
    for (int t = 0; codec_text(t); t++) {
        for (int l = 0; l < LENGTHS; l++) {
            const size_t n = lengths[l];
            struct codec_buffers b = buffers_new(codec_text(t), NULL, n);
            float *y = malloc(n * sizeof *y), *z = malloc(n * sizeof *z);
            for (int kind = 0; kind < VECTOR_KINDS; kind++) {
                float *x = vector_new((enum vector_kind)kind, 5, n);
                for (int mode = 0; mode < 2; mode++) {
                    encode(&b, x, (enum trib_encode_mode)mode, 0);
                    decode(&b, y);
                    /* decode_add is decode, weighted */
                    memset(z, 0, n * sizeof *z);
                    assert_ok(
                        trib_codec_decode_add(b.codec, b.code, b.len, 1.0f, z, n));
                    for (size_t i = 0; i < n; i++)
                        assert_true(alike(y[i], z[i]));
                    if (kind == VECTOR_ZERO && !only_votes(codec_text(t)))
                        assert_true(square_sum(y, n) == 0);
                }
                free(x);
            }
            free(y), free(z);
            buffers_free(&b);
        }
    }
}

/* A sparse codec's merged result loses nothing. */
TEST(test_exact)
{
    for (int t = 0; codec_text(t); t++) {
        for (int l = 0; l < LENGTHS; l++) {
            const size_t n = lengths[l];
            struct codec_buffers b = buffers_new(codec_text(t), NULL, n);
            float *x = vector_new(VECTOR_POWER_LAW, 9, n), *y = malloc(n * sizeof *y);
            for (int keep = 1;
                 keep < 400 && trib_codec_info(b.codec)->flags & TRIB_CODEC_SPARSE;
                 keep *= 7) {
                for (size_t i = 0; i < n; i++)
                    x[i] = i % (size_t)keep ? 0.0f : x[i];
                encode(&b, x, TRIB_ENCODE_EXACT, 0);
                decode(&b, y);
                for (size_t i = 0; i < n; i++)
                    assert_true(x[i] == y[i]);
            }
            free(x), free(y);
            buffers_free(&b);
        }
    }
}

TEST(test_same_bytes_everywhere)
{
    static const char *const isas[] = {"c", "avx2", "avx512", "neon"};
    enum { N = 20011 };
    for (int t = 0; codec_text(t); t++) {
        struct codec_buffers ref = buffers_new(codec_text(t), "c", N);
        float *y = malloc(N * sizeof *y), *z = malloc(N * sizeof *z);
        for (int kind = 0; kind < VECTOR_KINDS; kind++) {
            float *x = vector_new((enum vector_kind)kind, 3, N);
            encode(&ref, x, TRIB_ENCODE_CONTRIBUTION, 8);
            decode(&ref, y);
            for (int i = 0; i < 4; i++) {
                if (!trib_kernels_get(isas[i]))
                    continue;
                struct codec_buffers b = buffers_new(codec_text(t), isas[i], N);
                encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 8);
                assert_int_equal(b.len, ref.len);
                assert_memory_equal(b.code, ref.code, ref.len);
                decode(&b, z);
                for (size_t j = 0; j < N; j++)
                    assert_true(alike(y[j], z[j]));
                buffers_free(&b);
            }
            free(x);
        }
        free(y), free(z);
        buffers_free(&ref);
    }
}

/* Other keys draw other numbers; the same key the same. */
TEST(test_keys)
{
    enum { N = 2000 };
    struct codec_buffers a = buffers_new("qsgd", NULL, N),
                         b = buffers_new("qsgd", NULL, N);
    float *x = vector_new(VECTOR_NORMAL, 3, N);
    struct trib_encode in = {.x = x, .n = N, .key = {1, 2, 3, 0}};
    const size_t len = trib_codec_encode(a.codec, &in, a.code);
    trib_codec_encode(b.codec, &in, b.code);
    assert_memory_equal(a.code, b.code, len);
    const struct trib_encode_key other[] = {
        {9, 2, 3, 0}, {1, 9, 3, 0}, {1, 2, 9, 0}, {1, 2, 3, 512}};
    for (int i = 0; i < 4; i++) {
        in.key = other[i];
        trib_codec_encode(b.codec, &in, b.code);
        assert_memory_not_equal(a.code, b.code, len);
    }
    free(x);
    buffers_free(&a), buffers_free(&b);
}

enum { DRAWN = 96, DRAWS = 10000 };

/*
 * Each element's mean of 10^4 draws within 5 sigma, and all of them together. Elements
 * that are the same in nearly every draw are left out: their spread cannot be seen.
 */
static void check_unbiased(struct codec_buffers *b, const float *x, const char *text)
{
    double sum[DRAWN] = {0}, squares[DRAWN] = {0}, worst = 0, total = 0;
    int hits[DRAWN] = {0}, moved[DRAWN] = {0}, judged = 0;
    float y[DRAWN], last[DRAWN];
    for (uint32_t draw = 0; draw < DRAWS; draw++) {
        encode(b, x, TRIB_ENCODE_CONTRIBUTION, draw);
        decode(b, y);
        for (int i = 0; i < DRAWN; i++) {
            moved[i] += draw && y[i] != last[i];
            sum[i] += (double)y[i];
            squares[i] += (double)y[i] * (double)y[i];
            hits[i] += y[i] != 0;
        }
        memcpy(last, y, sizeof last);
    }
    for (int i = 0; i < DRAWN; i++) {
        if (hits[i] < 50)
            continue;
        const double mean = sum[i] / DRAWS, off = fabs(mean - (double)x[i]);
        if (moved[i] && moved[i] < 100)
            continue;
        if (!moved[i] && off > 1e-6 * fabs((double)x[i])) {
            assert_true(off < 1e-3 * fabs((double)x[i]));
            continue;
        }
        const double variance = fmax(squares[i] / DRAWS - mean * mean, 0);
        const double sigma = sqrt(variance / DRAWS) + 1e-6 * fabs((double)x[i]);
        const double score = off / sigma;
        worst = fmax(worst, score);
        total += score * score;
        judged++;
    }
    if (worst > 5 || total > 2 * judged || judged < DRAWN / 2)
        fail_msg("%s: %d means, the worst %.1f sigma off, chi^2 %.2f", text, judged,
                 worst, total / judged);
}

TEST(test_unbiased)
{
    static const enum vector_kind kinds[] = {VECTOR_NORMAL, VECTOR_POWER_LAW,
                                             VECTOR_TINY};
    for (int t = 0; codec_text(t); t++) {
        struct codec_buffers b = buffers_new(codec_text(t), NULL, DRAWN);
        const uint32_t flags = trib_codec_info(b.codec)->flags;
        for (int k = 0; k < 3 && flags & TRIB_CODEC_UNBIASED; k++) {
            float *x = vector_new(kinds[k], 77, DRAWN);
            if (kinds[k] != VECTOR_TINY || strncmp(codec_text(t), "f16", 3) != 0)
                check_unbiased(&b, x, codec_text(t)); /* f16 has nothing near 2^-90 */
            free(x);
        }
        buffers_free(&b);
    }
}

TEST(test_contraction)
{
    enum { N = 5000, TIMES = 20 };
    for (int t = 0; codec_text(t); t++) {
        struct codec_buffers b = buffers_new(codec_text(t), NULL, N);
        const double delta = trib_codec_info(b.codec)->delta;
        float *y = malloc(N * sizeof *y);
        for (int kind = 0; kind < VECTOR_KINDS && delta > 0 &&
                           !codec_draws_elements(codec_text(t));
             kind++) {
            float *x = vector_new((enum vector_kind)kind, 21, N);
            double error = 0;
            for (uint32_t draw = 0; draw < TIMES; draw++) {
                encode(&b, x, TRIB_ENCODE_CONTRIBUTION, draw);
                decode(&b, y);
                error += square_distance(x, y, N) / TIMES;
            }
            assert_true(error <= (1 - 1 / delta) * square_sum(x, N) * (1 + 1e-5));
            free(x);
        }
        free(y);
        buffers_free(&b);
    }
}

/* The error of an element is within the quantiser's bound, where nothing underflows. */
TEST(test_rounding)
{
    enum { N = 5000 };
    for (int t = 0; codec_text(t); t++) {
        struct codec_buffers b = buffers_new(codec_text(t), NULL, N);
        const struct trib_stages *s = &b.codec->stages;
        const double most = s->quantise->rounding ? s->quantise->rounding(b.codec) : 0;
        float *x = vector_new(VECTOR_NORMAL, 12, N), *y = malloc(N * sizeof *y);
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
        decode(&b, y);
        for (int i = 0; i < N && most > 0 && !s->select->sparse; i++)
            if (!s->transform->rotates && fabsf(x[i]) > 0x1p-14f)
                assert_true(fabs((double)x[i] - (double)y[i]) <=
                            most * fabs((double)x[i]));
        free(x), free(y);
        buffers_free(&b);
    }
}

/* The sum of sent values plus the residual equals the sum of the inputs. */
TEST(test_feedback_conserves)
{
    enum { N = 3000, STEPS = 40 };
    for (int t = 0; codec_text(t); t++) {
        struct codec_buffers b = buffers_new(codec_text(t), NULL, N);
        float *residual = calloc(N, sizeof *residual), *y = malloc(N * sizeof *y);
        float *p = malloc(N * sizeof *p);
        double *balance = calloc(N, sizeof *balance), largest = 0;
        for (uint32_t step = 0; step < STEPS; step++) {
            float *x = vector_new(VECTOR_NORMAL, 100 + step, N);
            const struct trib_encode in = {
                .x = x, .n = N, .key = {1, step, 0, 0}, .scratch = b.scratch};
            for (int i = 0; i < N; i++)
                p[i] = x[i] + residual[i];
            b.len = trib_codec_encode_ef(b.codec, &in, residual, b.code);
            decode(&b, y);
            for (int i = 0; i < N; i++) {
                balance[i] += (double)x[i] - (double)y[i];
                largest = fmax(largest, fabs((double)y[i]) + fabs((double)residual[i]));
                assert_true(fabsf(p[i] - y[i] - residual[i]) <=
                            1e-6f * fabsf(p[i]) + 1e-6f);
            }
            free(x);
        }
        for (int i = 0; i < N; i++)
            assert_true(fabs(balance[i] - (double)residual[i]) <=
                        largest * STEPS * 1e-7);
        free(residual), free(y), free(p), free(balance);
        buffers_free(&b);
    }
}

/* Input plus residual is encoded, and the new residual is the difference to the decoded
 * chunk: in one pass as in three. */
TEST(test_feedback_is_of_the_sum)
{
    enum { N = 9001 };
    for (int t = 0; codec_text(t); t++) {
        if (strncmp(codec_text(t), "adacomp", 7) == 0)
            continue; /* it also reads the summands: test_adacomp.c */
        struct codec_buffers b = buffers_new(codec_text(t), NULL, N);
        float *residual = vector_new(VECTOR_POWER_LAW, 6, N),
              *y = malloc(N * sizeof *y);
        float *x = vector_new(VECTOR_NORMAL, 5, N), *sum = malloc(N * sizeof *sum);
        uint8_t *code = malloc(trib_codec_bound(b.codec, N));
        const struct trib_encode in = {.x = x, .n = N, .scratch = b.scratch};
        struct trib_encode whole = in;
        whole.x = sum;
        for (int i = 0; i < N; i++)
            sum[i] = residual[i] + x[i];
        b.len = trib_codec_encode_ef(b.codec, &in, residual, b.code);
        assert_int_equal(trib_codec_encode(b.codec, &whole, code), b.len);
        assert_memory_equal(code, b.code, b.len);
        decode(&b, y);
        for (int i = 0; i < N; i++)
            assert_true(residual[i] == sum[i] - y[i]);
        free(residual), free(x), free(y), free(sum), free(code);
        buffers_free(&b);
    }
}

/* Whatever a sparse codec sends it marks, whose momentum it clears. */
TEST(test_marks_what_it_sends)
{
    enum { FIRST = 5 };
    for (int t = 0; codec_text(t); t++) {
        for (int l = 0; l < LENGTHS; l++) {
            const size_t n = lengths[l];
            struct codec_buffers b = buffers_new(codec_text(t), NULL, n);
            float *x = vector_new(VECTOR_NORMAL, 8, n),
                  *y = malloc((n + 1) * sizeof *y);
            float *u = malloc((n + 1) * sizeof *u);
            uint8_t *mask = calloc(n / 8 + 3, 1);
            const struct trib_sent sent = {mask, FIRST, u};
            const struct trib_encode in = {
                .x = x, .n = n, .scratch = b.scratch, .sent = &sent};
            for (size_t i = 0; i < n; i++)
                u[i] = 1;
            b.len = trib_codec_encode(b.codec, &in, b.code);
            decode(&b, y);
            if (trib_codec_info(b.codec)->flags & TRIB_CODEC_SPARSE) {
                for (size_t i = 0; i < n; i++) {
                    const bool marked = mask[(FIRST + i) / 8] >> (FIRST + i) % 8 & 1;
                    assert_true(u[i] == !marked && (marked || y[i] == 0));
                }
                assert_true((mask[0] & 0x1f) == 0 && mask[(FIRST + n) / 8 + 1] == 0);
                assert_true(mask[(FIRST + n) / 8] >> (FIRST + n) % 8 == 0);
            }
            free(x), free(y), free(u), free(mask);
            buffers_free(&b);
        }
    }
}

/* One bad gradient is seen once and then forgotten. */
TEST(test_feedback_recovers)
{
    enum { N = 600 };
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int t = 0; codec_text(t); t++) {
        if (only_votes(codec_text(t)) || codec_draws_elements(codec_text(t)))
            continue; /* test_packed_ints.c, test_randomk.c */
        struct codec_buffers b = buffers_new(codec_text(t), NULL, N);
        float *residual = calloc(N, sizeof *residual), *y = malloc(N * sizeof *y);
        float *x = vector_new(VECTOR_NORMAL, 4, N);
        for (int i = 0; i < 3; i++) {
            x[5] = bad[i];
            const struct trib_encode in = {.x = x, .n = N, .scratch = b.scratch};
            b.len = trib_codec_encode_ef(b.codec, &in, residual, b.code);
            decode(&b, y);
            assert_false(isfinite(y[5]));
            for (int j = 0; j < N; j++)
                assert_true(isfinite(residual[j]));
        }
        free(residual), free(x), free(y);
        buffers_free(&b);
    }
}

/* NaN and Inf reach the receiver: unchanged, or as NaN. */
TEST(test_not_finite)
{
    enum { N = 700 };
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int t = 0; codec_text(t); t++) {
        if (only_votes(codec_text(t)) || codec_draws_elements(codec_text(t)))
            continue; /* test_packed_ints.c, test_randomk.c */
        struct codec_buffers b = buffers_new(codec_text(t), NULL, N);
        float *x = vector_new(VECTOR_NORMAL, 4, N), *y = malloc(N * sizeof *y);
        for (int i = 0; i < 3; i++) {
            x[123] = bad[i];
            encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
            decode(&b, y);
            assert_true(isnan(y[123]) || y[123] == x[123]);
            assert_true(!isnan(x[123]) || isnan(y[123]));
        }
        free(x), free(y);
        buffers_free(&b);
    }
}

/* Cut at every byte, every bit of every byte turned over, lengths that do not fit. */
TEST(test_hostile_bytes)
{
    static const size_t sizes[] = {0, 1, 9, 70, 300};
    for (int t = 0; codec_text(t); t++) {
        for (int s = 0; s < 5; s++) {
            const size_t n = sizes[s];
            struct codec_buffers b = buffers_new(codec_text(t), NULL, n);
            float *x = vector_new(VECTOR_POWER_LAW, 6, n), *y = calloc(n, sizeof *y);
            for (int mode = 0; mode < 2; mode++) {
                for (size_t i = 0; mode && i < n; i++)
                    x[i] = i % 9 ? 0.0f : x[i];
                const size_t len = encode(&b, x, (enum trib_encode_mode)mode, 0);
                for (size_t cut = 0; cut < len; cut++) {
                    uint8_t *code = malloc(cut);
                    memcpy(code, b.code, cut);
                    assert_status(trib_codec_decode(b.codec, code, cut, y, n),
                                  TRIB_ERR_CODEC);
                    free(code);
                }
                for (size_t bit = 0; bit < 8 * len; bit++) {
                    uint8_t *code = malloc(len);
                    memcpy(code, b.code, len);
                    code[bit / 8] ^= (uint8_t)(1u << bit % 8);
                    trib_codec_decode(b.codec, code, len, y, n);
                    trib_codec_decode_add(b.codec, code, len, 0.5f, y, n);
                    free(code);
                }
                uint8_t *longer = calloc(1, len + 1);
                memcpy(longer, b.code, len);
                assert_status(trib_codec_decode(b.codec, longer, len + 1, y, n),
                              TRIB_ERR_CODEC);
                free(longer);
            }
            free(x), free(y);
            buffers_free(&b);
        }
    }
}
