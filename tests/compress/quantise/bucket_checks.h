/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks that the tests of quantisers with buckets share.
 */
#ifndef TESTS_COMPRESS_QUANTISE_BUCKET_CHECKS_H
#define TESTS_COMPRESS_QUANTISE_BUCKET_CHECKS_H

#include "tests/compress/vectors.h"

/* The mean of |C(x) - x|^2 is at most bound |x|^2, for vectors of 512 of each kind. */
static inline void check_variance(const char *text, double bound)
{
    enum { N = 512, DRAWS = 400 };
    struct codec_buffers b = buffers_new(text, NULL, N);
    for (int kind = VECTOR_NORMAL; kind < VECTOR_KINDS; kind++) {
        float *x = vector_new((enum vector_kind)kind, 31, N), y[N];
        double error = 0;
        for (uint32_t draw = 0; draw < DRAWS; draw++) {
            encode(&b, x, TRIB_ENCODE_CONTRIBUTION, draw);
            decode(&b, y);
            error += square_distance(x, y, N) / DRAWS;
        }
        if (error > (bound * 1.05 + 1e-9) * square_sum(x, N))
            fail_msg("%s, vector %d: %g of at most %g", text, kind,
                     error / square_sum(x, N), bound);
        free(x);
    }
    buffers_free(&b);
}

/* One bad element spoils its bucket of 512, no other. */
static inline void check_spoils_its_bucket(const char *text, float bad)
{
    enum { N = 1536 };
    struct codec_buffers b = buffers_new(text, NULL, N);
    float *x = vector_new(VECTOR_NORMAL, 5, N), y[N];
    x[600] = bad;
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, y);
    for (int i = 0; i < N; i++)
        assert_int_equal(isnan(y[i]) != 0, i / 512 == 1);
    free(x);
    buffers_free(&b);
}

/* An element becomes the same wherever the vector is cut. */
static inline void check_cuts(const char *text, const size_t *cuts, int n_cuts)
{
    enum { N = 9000 };
    struct codec_buffers b = buffers_new(text, NULL, N);
    float *x = vector_new(VECTOR_NORMAL, 8, N), *y = malloc(N * sizeof *y), z[N];
    struct trib_encode in = {.x = x, .n = N, .key = {7, 1, 2, 0}};
    b.len = trib_codec_encode(b.codec, &in, b.code);
    decode(&b, y);
    for (int i = 0; i < n_cuts; i++) {
        in.x = x + cuts[i];
        in.n = b.n = N - cuts[i];
        in.key.index = cuts[i];
        b.len = trib_codec_encode(b.codec, &in, b.code);
        decode(&b, z);
        assert_memory_equal(y + cuts[i], z, b.n * sizeof *z);
    }
    free(x), free(y);
    buffers_free(&b);
}

#endif
