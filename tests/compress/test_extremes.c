/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Elements at the ends of float32's range: denormals, and those whose norm exceeds
 * FLT_MAX. Finite input decodes to finite output within the error of docs/codecs.md,
 * for every codec and on every instruction set.
 */
#include "tests/compress/vectors.h"

#include "compress/models/model.h"

enum { N = 2048, DRAWS = 6 };

static const char *const isas[] = {"c", "avx2", "avx512", "neon"};
enum { ISAS = 4 };

enum shape { BELL, SIGNS, ONE, ALIKE, MIXED, SHAPES };

/* Magnitudes up to 3.4. */
static double shape_at(enum shape shape, size_t i)
{
    switch (shape) {
    case BELL:
        return fmin(fmax((double)normal_at(5, i), -3.4), 3.4);
    case SIGNS:
        return i % 2 ? 3.4 : -3.4;
    case ONE:
        return i == 3 ? 3.4 : 0;
    case ALIKE:
        return 3.4;
    default: /* large ones among small ones */
        return (double)normal_at(6, i) * (i % 64 == 9 ? 0.5 : 0x1p-60);
    }
}

/* Return the magnitude above which docs/codecs.md guarantees nothing for a codec. */
static float most_of(const char *text)
{
    if (strstr(text, "+f16") || strncmp(text, "f16", 3) == 0)
        return 65504;
    if (strstr(text, "hadamard") || strncmp(text, "thc", 3) == 0)
        return FLT_MAX / 8192;
    if (strstr(text, "bf16"))
        return 0x1.fep127f;
    if (strstr(text, "uniform-thc"))
        return FLT_MAX / 4;
    if (strstr(text,
               "unbiased=1")) /* values are scaled by n / k */
        return FLT_MAX / 128;
    return FLT_MAX;
}

/* Return the absolute error that one element may have regardless of the bound. Errors
 * of up to 64 rotated elements add up. */
static double floor_of(const char *text)
{
    if (strncmp(text, "hadamard", 8) == 0)
        return 64 * floor_of(text + 8);
    if (strstr(text, "bf16"))
        return 0x1p-133;
    if (strstr(text, "f16"))
        return 0x1p-24;
    if (strstr(text, "f8"))
        return 0x1p-126;
    if (strncmp(text, "threshold", 9) == 0)
        return 2.0; /* the largest `at` of the texts */
    if (strncmp(text, "bound:abs", 9) == 0)
        return 0.5; /* likewise */
    return 0x1p-100;
}

struct outcome {
    double error; /* |C(x) - x|^2 / |x|^2, the mean of several draws */
    double worst; /* of an element */
    bool finite;
};

/* All instruction sets encode to the same bytes as the first. */
static struct outcome outcome_of(const char *text, const float *x, double scale,
                                 const char *isa, uint64_t *digest_out)
{
    struct trib_error err = {0};
    struct outcome o = {.finite = true};
    struct codec_buffers b = buffers_new(text, isa, N);
    double sum = 0;
    float y[N];

    assert_status(trib_codec_for_ranks(b.codec, 1, &err), TRIB_OK);
    for (uint32_t draw = 0; draw < DRAWS; draw++) {
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, draw);
        decode(&b, y);
        for (size_t i = 0; i < b.len; i++)
            *digest_out = (*digest_out ^ b.code[i]) * 0x100000001b3u;
        for (size_t i = 0; i < N; i++) {
            const double off = ((double)y[i] - (double)x[i]) / scale;
            o.finite = o.finite && isfinite(y[i]);
            o.error += off * off / DRAWS;
            o.worst = fmax(o.worst, fabs(off * scale));
        }
    }
    for (size_t i = 0; i < N; i++)
        sum += (double)x[i] / scale * ((double)x[i] / scale);
    o.error /= sum > 0 ? sum : 1;
    buffers_free(&b);
    return o;
}

static void check(const char *text, enum shape shape, double scale, double usual)
{
    struct outcome o = {0};
    uint64_t first = 0;
    float x[N];

    for (size_t i = 0; i < N; i++)
        x[i] = (float)(shape_at(shape, i) * scale);
    if (3.4 * scale > (double)most_of(text))
        return;
    for (int k = 0; k < ISAS; k++) {
        if (!trib_kernels_get(isas[k]))
            continue;
        uint64_t digest = 1;
        o = outcome_of(text, x, scale, isas[k], &digest);
        first = k ? first : digest;
        if (digest != first)
            fail_msg("%s, shape %d times %g: %s writes other bytes", text, shape, scale,
                     isas[k]);
    }
    const double times =
        strncmp(text, "adacomp", 7) == 0 ? 2.5 : 1.5; /* no contraction */
    /* an eighth may be lost where a power of two above 2^127 would be needed */
    if (!o.finite || (o.error > times * usual + 0.26 && o.worst > floor_of(text)))
        fail_msg("%s, shape %d times %g: %s, error %g instead of %g, of an element %g",
                 text, shape, scale, o.finite ? "finite" : "not finite", o.error, usual,
                 o.worst);
}

TEST(test_codecs)
{
    static const double scales[] = {1e38,     2.5e37,   1e34,  1e30,  0x1p-90,
                                    0x1p-110, 0x1p-126, 1e-39, 1e-42, 1e-45};

    for (int t = 0; codec_text(t); t++) {
        if (codec_draws_elements(codec_text(t)) && strstr(codec_text(t), ":k=3,"))
            continue; /* errors of so few elements vary */
        for (enum shape shape = 0; shape < SHAPES; shape++) {
            uint64_t digest = 1;
            float x[N];
            if (only_votes(codec_text(t)))
                continue;
            for (size_t i = 0; i < N; i++)
                x[i] = (float)shape_at(shape, i);
            const struct outcome usual =
                outcome_of(codec_text(t), x, 1, "c", &digest);
            for (size_t s = 0; s < sizeof scales / sizeof *scales; s++)
                check(codec_text(t), shape, scales[s], usual.error);
        }
    }
}

/* No value grows: denormals decode to themselves or near 0. */
TEST(test_small_stay_small)
{
    static const char *const texts[] = {
        "uniform-thc", "uniform-thc:bits=8,round=nearest",
        "hadamard",    "hadamard+uniform-thc:bits=8",
        "thc",         "thc:block=64,p=1/512",
        "topk",        "efsign"};
    static const double scales[] = {0x1p-110, 0x1p-126, 1e-39, 1e-42, 1e-45};

    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        for (enum shape shape = 0; shape < ALIKE; shape++) {
            for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
                uint64_t digest = 1;
                float x[N];
                for (size_t i = 0; i < N; i++)
                    x[i] = (float)(shape_at(shape, i) * scales[s]);
                const struct outcome o = outcome_of(texts[t], x, scales[s],
                                                    NULL, &digest);
                if (!(o.error <= 1.001))
                    fail_msg("%s, shape %d times %g: error %g", texts[t], shape,
                             scales[s], o.error);
            }
        }
    }
}

/* Factors of matrices of low rank: right after some starts, however large or small. */
static double error_of_powersgd(double scale, const char *isa)
{
    enum { ROWS = 64, COLUMNS = 32, STARTS = 4 };
    struct trib_codec *c = codec_new("powersgd:rank=3,columns=32,ef=0", isa);
    const struct trib_model_opts opts = {
        .total = ROWS * COLUMNS, .piece = ROWS * COLUMNS, .ranks = 1, .seed = 3};
    struct trib_error err = {0};
    struct trib_model *m;
    float x[ROWS * COLUMNS], y[ROWS * COLUMNS];
    double error = 0, sum = 0;
    uint8_t *word = malloc(trib_codec_bound(c, opts.piece));

    assert_status(trib_model_create(c, &opts, &err, &m), TRIB_OK);
    for (size_t i = 0; i < ROWS * COLUMNS; i++) {
        const size_t row = i / COLUMNS, column = i % COLUMNS;
        x[i] = (float)(scale * (1.0 / (double)(1 + row) +
                                0.5 * cos((double)(7 * row)) * sin((double)column) /
                                    (double)(1 + row)));
    }
    for (uint32_t step = 1; step <= STARTS; step++) {
        const struct trib_encode in = {
            .x = x, .n = opts.piece, .key = {.step = step}, .model = m};
        const struct trib_model_chunk chunk = {.n = opts.piece};
        trib_model_begin(m, step);
        const size_t len = trib_codec_encode(c, &in, word);
        assert_status(trib_model_result(m, &chunk, word, len, y), TRIB_OK);
    }
    for (size_t i = 0; i < ROWS * COLUMNS; i++) {
        const double off = ((double)y[i] - (double)x[i]) / scale;
        error += off * off;
        sum += (double)x[i] / scale * ((double)x[i] / scale);
    }
    free(word);
    trib_model_destroy(m);
    trib_codec_destroy(c);
    return error / sum;
}

TEST(test_powersgd)
{
    static const struct {
        double scale, most;
    } cases[] = {{1, 1e-9},         {1.5e38, 1e-9}, {1e37, 1e-9},
                 {0x1p-100, 1e-9}, {1e-37, 1e-3},  {1e-39, 0.3}};
    for (int k = 0; k < ISAS; k++) {
        for (size_t t = 0;
             trib_kernels_get(isas[k]) && t < sizeof cases / sizeof *cases; t++) {
            const double error = error_of_powersgd(cases[t].scale, isas[k]);
            if (!(error <= cases[t].most))
                fail_msg("powersgd by %s, times %g: error %g", isas[k], cases[t].scale,
                         error);
        }
    }
}
