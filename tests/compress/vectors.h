/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Vectors that codecs are tried on, and small helpers around a codec.
 */
#ifndef TESTS_COMPRESS_VECTORS_H
#define TESTS_COMPRESS_VECTORS_H

#include "tests/harness/tribtest.h"

#include <float.h>
#include <math.h>

#include "base/error.h"
#include "compress/codec.h"
#include "compress/kernels/kernels.h"
#include "tests/harness/rng_draw.h"

/* Return text number t of all rows except models, or NULL after the last. */
static inline const char *codec_text(int t)
{
    for (size_t i = 0; i < trib_codecs_count; i++) {
        const char *const *texts = trib_codecs[i].texts;
        for (int k = 0; texts[k] && !(trib_codecs[i].flags & TRIB_CODEC_MODEL); k++)
            if (t-- == 0)
                return texts[k];
    }
    return NULL;
}

/* Return true if the codec sends randomly drawn elements: its error for one element
 * shows only over many draws. */
static inline bool codec_draws_elements(const char *text)
{
    return strncmp(text, "randomk", 7) == 0;
}

enum vector_kind {
    VECTOR_ZERO,
    VECTOR_NORMAL,
    VECTOR_ONE_HOT,
    VECTOR_CONSTANT,
    VECTOR_POWER_LAW,
    VECTOR_ALTERNATING, /* ties everywhere */
    VECTOR_TINY, /* around 2^-90 */
    VECTOR_HUGE, /* squares overflow */
    VECTOR_KINDS,
};

static inline float normal_at(uint64_t seed, uint64_t i)
{
    const struct trib_rng rng = {.seed = seed, .stream = 7, .step = 1};
    const double u = 1.0 - (double)draw_float(rng, 2 * i);
    const double v = (double)draw_float(rng, 2 * i + 1);
    return (float)(sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v));
}

static inline float vector_at(enum vector_kind kind, uint64_t seed, size_t i)
{
    switch (kind) {
    case VECTOR_NORMAL:
        return normal_at(seed, i);
    case VECTOR_ONE_HOT:
        return i == 0 ? -3.7f : 0.0f;
    case VECTOR_CONSTANT:
        return 0.3f;
    case VECTOR_POWER_LAW:
        return normal_at(seed, i) / (float)(1 + i % 1009);
    case VECTOR_ALTERNATING:
        return i % 2 ? 1.0f : -1.0f;
    case VECTOR_TINY:
        return normal_at(seed, i) * 0x1p-90f;
    case VECTOR_HUGE:
        return normal_at(seed, i) * 0x1p100f;
    default:
        return 0.0f;
    }
}

static inline float *vector_new(enum vector_kind kind, uint64_t seed, size_t n)
{
    float *x = malloc(n * sizeof *x + 4);
    for (size_t i = 0; i < n; i++)
        x[i] = vector_at(kind, seed, i);
    return x;
}

static inline double square_sum(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

static inline double square_distance(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)a[i] - (double)b[i];
        sum += d * d;
    }
    return sum;
}

/* Return true if the codec sends only the sign of the majority. */
static inline bool only_votes(const char *text)
{
    return strcmp(text, "signsgd") == 0;
}

static inline struct trib_codec *codec_new(const char *text, const char *isa)
{
    struct trib_error err = {0};
    struct trib_codec *c = NULL;
    const trib_status_t status =
        trib_codec_create(text, isa ? trib_kernels_get(isa) : NULL, &err, &c);
    if (status != TRIB_OK)
        fail_msg("%s: %s", text, trib_error_text(&err));
    return c;
}

/* A codec with buffers of exactly the required size, so that ASan detects an overrun of
 * one byte. */
struct codec_buffers {
    struct trib_codec *codec;
    size_t n;
    uint8_t *code;
    size_t len;
    void *scratch;
};

static inline struct codec_buffers buffers_new(const char *text, const char *isa,
                                               size_t n)
{
    struct codec_buffers b = {.codec = codec_new(text, isa), .n = n};
    void *scratch = NULL;
    b.code = malloc(trib_codec_bound(b.codec, n));
    if (trib_codec_scratch(b.codec, n))
        assert_int_equal(posix_memalign(&scratch, 64, trib_codec_scratch(b.codec, n)),
                         0);
    b.scratch = scratch;
    return b;
}

static inline void buffers_free(struct codec_buffers *b)
{
    trib_codec_destroy(b->codec);
    free(b->code);
    free(b->scratch);
}

static inline size_t encode(struct codec_buffers *b, const float *x,
                            enum trib_encode_mode mode, uint32_t step)
{
    const struct trib_encode in = {.x = x,
                                   .n = b->n,
                                   .mode = mode,
                                   .key = {42, step, 1, 1000},
                                   .scratch = b->scratch};
    b->len = trib_codec_encode(b->codec, &in, b->code);
    assert_true(b->len <= trib_codec_bound(b->codec, b->n));
    return b->len;
}

static inline void decode(const struct codec_buffers *b, float *x)
{
    assert_status(trib_codec_decode(b->codec, b->code, b->len, x, b->n), TRIB_OK);
}

#endif
