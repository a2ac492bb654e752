/* SPDX-License-Identifier: BSD-3-Clause */
/* THC, compared with the claims of its paper. */
#include "tests/compress/vectors.h"

enum { N = 1024 };

/* Unbiased except for the fraction p of elements that are clipped: the mean of many
 * draws is near x. One draw has the error of a 4-bit grid over normal values. */
TEST(test_mean_of_draws)
{
    enum { DRAWS = 2000 };
    struct codec_buffers b = buffers_new("thc:p=1/512", NULL, N);
    float *x = vector_new(VECTOR_POWER_LAW, 3, N), y[N];
    double mean[N] = {0}, error = 0;
    for (uint32_t draw = 0; draw < DRAWS; draw++) {
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, draw);
        decode(&b, y);
        error += square_distance(x, y, N) / square_sum(x, N) / DRAWS;
        for (int i = 0; i < N; i++)
            mean[i] += (double)y[i] / DRAWS;
    }
    double off = 0;
    for (int i = 0; i < N; i++)
        off += (mean[i] - (double)x[i]) * (mean[i] - (double)x[i]);
    /* noise of the mean, and values beyond 3.1 deviations: about 1e-4 of the energy */
    assert_true(off / square_sum(x, N) <= 1.2 * error / DRAWS + 3e-4);
    assert_true(error < 0.025);
    free(x);
    buffers_free(&b);
}

/* Rotation is what makes one scale do for elements of any size. */
TEST(test_rotation_helps)
{
    static const enum vector_kind kinds[] = {VECTOR_ONE_HOT, VECTOR_POWER_LAW};
    for (int k = 0; k < 2; k++) {
        struct codec_buffers b = buffers_new("thc", NULL, N);
        struct codec_buffers plain =
            buffers_new("qsgd:bits=4,norm=l2,bucket=1024", NULL, N);
        float *x = vector_new(kinds[k], 3, N), y[N], z[N];
        double rotated = 0, unrotated = 0;
        for (uint32_t draw = 0; draw < 50; draw++) {
            encode(&b, x, TRIB_ENCODE_CONTRIBUTION, draw);
            decode(&b, y);
            encode(&plain, x, TRIB_ENCODE_CONTRIBUTION, draw);
            decode(&plain, z);
            rotated += square_distance(x, y, N) / square_sum(x, N) / 50;
            unrotated += square_distance(x, z, N) / square_sum(x, N) / 50;
        }
        assert_true(rotated < 0.05);
        if (kinds[k] == VECTOR_POWER_LAW)
            assert_true(rotated < unrotated / 2);
        free(x);
        buffers_free(&b);
        buffers_free(&plain);
    }
}

/* Encoded chunks of two ranks can be added after rotation: the signs do not depend on
 * rank, step and seed. */
TEST(test_rotation_is_shared)
{
    struct codec_buffers b = buffers_new("thc:p=1/512", NULL, N);
    float *x = vector_new(VECTOR_NORMAL, 3, N), y[N];
    for (uint32_t rank = 0; rank < 3; rank++) {
        const struct trib_encode in = {
            .x = x, .n = N, .key = {rank + 5, rank + 9, rank, 4096 * rank}};
        b.len = trib_codec_encode(b.codec, &in, b.code);
        decode(&b, y);
        assert_true(square_distance(x, y, N) < 0.03 * square_sum(x, N));
    }
    free(x);
    buffers_free(&b);
}
