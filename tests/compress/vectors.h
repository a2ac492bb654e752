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

/* one text a row of the table and more: every combination of stages and parameters */
static const char *const codec_texts[] = {
    "none",
    "f16",
    "bf16",
    "f16:round=random",
    "bf16:round=random",
    "f8",
    "f8:format=e5m2,bucket=32",
    "f8:bucket=8,round=random",
    "f8:format=e5m2,bucket=65536,round=random",
    "topk:ratio=0.1+f8:round=random",
    "topk:ratio=0.001",
    "topk:ratio=0.1",
    "topk:ratio=0.9",
    "topk:ratio=1",
    "topk:k=3",
    "topk:ratio=0.05+f16",
    "topk:ratio=0.05+bf16",
    "topk:k=100000+bf16",
    "topk:ratio=0.05+natural",
    "topk:ratio=0.3+qsgd:bits=5,bucket=64",
    "topk:ratio=0.02+dither:bits=3,bucket=8",
    "dgc",
    "dgc:ratio=0.1",
    "dgc:ratio=0.7",
    "dgc:ratio=1",
    "dgc:k=3",
    "dgc:ratio=0.02+natural",
    "threshold:at=0.5",
    "threshold:at=0+bf16",
    "threshold:at=2+dither:bits=3,bucket=8",
    "randomk",
    "randomk:ratio=0.3,unbiased=1",
    "randomk:ratio=0.9",
    "randomk:k=100000,ef=0",
    "randomk:ratio=0.2,unbiased=1+natural:bucket=8",
    "randomk:ratio=0.05+efsign:bucket=8",
    "blocks",
    "blocks:block=8",
    "blocks:block=64,ratio=0.1",
    "blocks:block=1000,ratio=0.4+f16",
    "blocks:block=16+qsgd:bits=3,bucket=8",
    "blocks:block=24,ratio=0.2+natural",
    "adacomp",
    "adacomp:bin=500,factor=1.5",
    "adacomp:bin=7,ef=0",
    "qsgd",
    "qsgd:bits=2,bucket=64",
    "qsgd:bits=3,bucket=8,norm=max",
    "qsgd:bits=5,bucket=1000",
    "qsgd:bits=8,norm=max",
    "qsgd:bits=8,bucket=65536",
    "natural",
    "natural:bucket=8,round=nearest",
    "natural:bucket=65536",
    "dither",
    "dither:bits=2,bucket=64",
    "dither:bits=5,norm=l2",
    "dither:bits=8,bucket=4096",
    "dither:base=1.5",
    "dither:base=4,bits=3,bucket=64",
    "dither:base=1.25,bits=6,norm=l2",
    "topk:ratio=0.1+dither:base=1.5,bits=5",
    "qsgd:pack=omega",
    "qsgd:bits=3,bucket=8,norm=l2,pack=omega",
    "qsgd:bits=8,pack=entropy",
    "dither:base=1.5,pack=entropy",
    "natural:pack=entropy",
    "f8:bucket=64,pack=entropy",
    "terngrad:bucket=64,pack=omega",
    "terngrad:pack=entropy",
    "terngrad",
    "terngrad:bucket=64,clip=1000",
    "onebit",
    "onebit:bucket=65536",
    "efsign",
    "efsign:bucket=8",
    "topk:ratio=0.2+efsign",
    "signsgd",
    "int4:bucket=64",
    "int8",
    "int8:bucket=8,round=nearest",
    "int16:bucket=256",
    "uniform-thc",
    "uniform-thc:bits=8,bucket=1000,round=nearest",
    "qsgd:bits=3,bucket=64,shared=1",
    "terngrad:bucket=64,shared=1",
    "topk:ratio=0.2+int8:bucket=64",
    "hadamard",
    "hadamard+bf16",
    "hadamard:block=64+bf16:round=random",
    "hadamard:block=128+f8:round=random",
    "hadamard:block=64+qsgd:bits=3,bucket=64",
    "hadamard:block=64+qsgd:bits=3,bucket=64,shared=1",
    "hadamard+qsgd:bits=8",
    "hadamard:block=256+natural:bucket=8",
    "hadamard:block=64+dither:base=1.5,bits=5,bucket=192",
    "hadamard:block=128+terngrad",
    "hadamard+onebit",
    "hadamard:block=4096+efsign:bucket=64",
    "hadamard+int4:bucket=64",
    "hadamard:block=64+int8:round=nearest",
    "hadamard:block=256+int16:bucket=1024",
    "thc",
    "thc:block=64,p=1/512",
    "exact",
};
enum { CODEC_TEXTS = sizeof codec_texts / sizeof *codec_texts };

/* Sends what it draws: what it does with one element is seen over many draws only. */
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

/* Does it say which sign most have, and nothing of the elements themselves? */
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

/* A codec with buffers of exactly the size it asks for, so that ASan sees one byte
 * more. */
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
