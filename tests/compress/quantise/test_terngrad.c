/* SPDX-License-Identifier: BSD-3-Clause */
/* TernGrad, compared with the claims of its paper. */
#include "tests/compress/vectors.h"

enum { N = 512 };

/* The norm of the one bucket. */
static float norm_of(const struct codec_buffers *b)
{
    float norm;
    memcpy(&norm, b->code, sizeof norm);
    return norm;
}

TEST(test_values)
{
    struct codec_buffers b = buffers_new("terngrad", NULL, N);
    assert_int_equal(trib_codec_bound(b.codec, N), 4 + N / 4);
    for (int kind = 0; kind < VECTOR_KINDS; kind++) {
        float *x = vector_new((enum vector_kind)kind, 5, N), y[N];
        const double most = 2.5 * sqrt(square_sum(x, N) / N);
        float largest = 0;
        for (int i = 0; i < N; i++)
            largest = fmaxf(largest, fabsf(x[i]));
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
        decode(&b, y);
        const float norm = norm_of(&b);
        assert_true(fabs((double)norm - fmin(most, (double)largest)) <= 1e-5 * most);
        for (int i = 0; i < N; i++) {
            assert_true(y[i] == 0 || y[i] == copysignf(norm, x[i]));
            assert_true(fabsf(x[i]) < norm || y[i] == copysignf(norm, x[i]));
        }
        free(x);
    }
    buffers_free(&b);
}

/* The mean of many draws is the clipped vector, within 5 sigma; E|C(x)|^2 = norm
 * |x|_1. */
TEST(test_mean_is_clipped)
{
    enum { DRAWS = 10000, FEW = 96 };
    static const char *const texts[] = {"terngrad:clip=1.5", "terngrad:clip=1000"};
    for (int t = 0; t < 2; t++) {
        struct codec_buffers b = buffers_new(texts[t], NULL, FEW);
        float *x = vector_new(VECTOR_NORMAL, 77, FEW), y[FEW];
        double mean[FEW] = {0}, squares = 0, l1 = 0;
        for (uint32_t draw = 0; draw < DRAWS; draw++) {
            encode(&b, x, TRIB_ENCODE_CONTRIBUTION, draw);
            decode(&b, y);
            squares += square_sum(y, FEW) / DRAWS;
            for (int i = 0; i < FEW; i++)
                mean[i] += (double)y[i] / DRAWS;
        }
        const double norm = (double)norm_of(&b);
        for (int i = 0; i < FEW; i++) {
            const double clipped = fmin(fabs((double)x[i]), norm);
            const double sigma = sqrt(clipped * (norm - clipped) / DRAWS);
            l1 += clipped;
            assert_true(fabs(fabs(mean[i]) - clipped) <= 5 * sigma + 1e-6 * norm);
        }
        assert_true(fabs(squares - norm * l1) <= 0.02 * norm * l1);
        free(x);
        buffers_free(&b);
    }
}
