/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes and error of every codec on fixed gradients, drawn and recorded, against
 * tests/regress/ratio.csv, so that a change of either shows in a diff. After a wanted
 * change:
 *
 *     test_ratio --write tests/regress/ratio.csv
 */
#include "compress/models/model.h"
#include "tests/compress/vectors.h"

enum { N = 65536, RECORDED = 21056, LINE = 200, SEEN = 5 };

/* Two are drawn; two of tests/data were recorded, as tests/data/README.md tells. */
enum gradient { NORMAL, HEAVY, EARLY, LATE, GRADIENTS };
static const char *const gradients[] = {"normal", "heavy", "early", "late"};

static const char *const texts[] = {
    "none",
    "f16",
    "bf16",
    "f16:round=random",
    "bf16:round=random",
    "f8",
    "f8:bucket=32",
    "f8:round=random",
    "f8:format=e5m2",
    "topk:ratio=0.1",
    "topk:ratio=0.01",
    "topk:ratio=0.001",
    "topk:ratio=0.01+f16",
    "topk:ratio=0.01+bf16",
    "qsgd:bits=2",
    "qsgd:bits=3",
    "qsgd:bits=4,norm=l2",
    "qsgd:bits=4",
    "qsgd:bits=5",
    "qsgd:bits=6",
    "qsgd:bits=8",
    "qsgd:bits=2,pack=omega",
    "qsgd:bits=2,pack=entropy",
    "qsgd:bits=4,pack=omega",
    "qsgd:bits=4,pack=entropy",
    "qsgd:bits=8,pack=entropy",
    "natural:pack=entropy",
    "dither:pack=entropy",
    "f8:pack=entropy",
    "terngrad:pack=entropy",
    "topk:ratio=0.01+f8",
    "topk:ratio=0.01+natural",
    "topk:ratio=0.1+natural",
    "topk:ratio=0.001+natural",
    "topk:ratio=0.01+qsgd:bits=4,bucket=64",
    "natural",
    "natural:round=nearest",
    "dither:bits=3",
    "dither:bits=4",
    "dither:bits=5",
    "dither:base=1.5,bits=5",
    "dither:base=4,bits=3",
    "terngrad",
    "onebit",
    "efsign",
    "topk:ratio=0.01+efsign",
    "dgc:ratio=0.01",
    "dgc",
    "threshold:at=1.5",
    "threshold:at=0.003",
    "randomk",
    "randomk:ratio=0.1",
    "randomk:unbiased=1",
    "randomk+natural",
    "blocks",
    "blocks:ratio=0.01",
    "adacomp",
    "adacomp:bin=500",
    "int4",
    "int8",
    "int8:round=nearest",
    "int16",
    "uniform-thc",
    "uniform-thc:bits=8",
    "hadamard",
    "hadamard+uniform-thc:bits=8",
    "hadamard+qsgd:bits=2",
    "hadamard+qsgd:bits=4",
    "hadamard+int4",
    "hadamard+int8",
    "hadamard+dither:bits=3",
    "hadamard+terngrad",
    "hadamard+efsign",
    "thc",
    "thc:p=1/512",
    "powersgd:rank=1,ef=0",
    "powersgd:rank=4,ef=0",
    "powersgd:rank=16,ef=0",
    "gradiveq:slice=64,kept=8,train=1,coded=9,ef=0",
    "gradiveq:slice=64,kept=8,train=1,coded=9,ef=0+int8",
};
enum { TEXTS = sizeof texts / sizeof *texts };

/* Exactly rounded operations alone, so the same on every machine. cubed: most elements
 * small and a few large, as in gradients of trained layers. */
static float *drawn_new(bool cubed)
{
    const struct trib_rng rng = {.seed = 2024, .stream = cubed};
    float *x = malloc(N * sizeof *x);
    for (uint64_t i = 0; i < N; i++) {
        float v = 0;
        for (uint64_t j = 0; j < 8; j++)
            v += draw_float(rng, 8 * i + j) - 0.5f;
        x[i] = cubed ? v * v * v : v;
    }
    return x;
}

static FILE *open_file(const char *name)
{
    char path[4096];
    const char *top = getenv("abs_top_srcdir");
    snprintf(path, sizeof path, "%s/tests/%s", top ? top : ".", name);
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
    return f;
}

static float *gradient_new(enum gradient gradient, size_t *n_out)
{
    *n_out = gradient < EARLY ? N : RECORDED;
    if (gradient < EARLY)
        return drawn_new(gradient == HEAVY);
    FILE *f = open_file(gradient == EARLY ? "data/gradient-early.f32"
                                          : "data/gradient-late.f32");
    float *x = malloc(RECORDED * sizeof *x);
    if (fread(x, sizeof *x, RECORDED, f) != RECORDED || fgetc(f) != EOF) {
        fprintf(stderr, "a recorded gradient has not %d elements\n", RECORDED);
        exit(1);
    }
    fclose(f);
    return x;
}

struct row {
    char codec[64];
    char gradient[16];
    size_t n;
    size_t bytes;
    double nmse;
};

/* Encode a gradient that a model has seen: the last of several starts of a single rank.
 * The bytes include those that ranks share. */
static size_t learned(const char *text, const float *x, size_t n, float *y)
{
    const struct trib_model_opts opts = {.total = n, .piece = n, .ranks = 1, .seed = 1};
    struct trib_codec *c = codec_new(text, NULL);
    struct trib_model *m = NULL;
    assert_int_equal(trib_model_create(c, &opts, NULL, &m), TRIB_OK);
    assert_int_equal(trib_model_train(m, x, n, NULL), TRIB_OK);
    uint8_t *word = malloc(trib_codec_bound(c, n));
    const struct trib_encode in = {.x = x, .n = n, .model = m};
    const struct trib_model_chunk chunk = {.n = n};
    size_t len = 0;
    for (int start = 0; start < SEEN; start++) {
        len = trib_codec_encode(c, &in, word);
        assert_int_equal(trib_model_result(m, &chunk, word, len, y), TRIB_OK);
    }
    len += trib_codec_agreed_floats(c, n) * sizeof(float);
    free(word);
    trib_model_destroy(m);
    trib_codec_destroy(c);
    return len;
}

static bool learns(const char *text)
{
    struct trib_codec *c = codec_new(text, NULL);
    const bool model = trib_codec_info(c)->flags & TRIB_CODEC_MODEL;
    trib_codec_destroy(c);
    return model;
}

static size_t decoded(const char *text, const float *x, size_t n, float *y)
{
    struct codec_buffers b = buffers_new(text, NULL, n);
    const size_t bytes = encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, y);
    buffers_free(&b);
    return bytes;
}

static struct row measure(const char *text, enum gradient gradient)
{
    size_t n;
    float *x = gradient_new(gradient, &n), *y = malloc(n * sizeof *y);
    struct row r = {.n = n};
    r.bytes = learns(text) ? learned(text, x, n, y) : decoded(text, x, n, y);
    snprintf(r.codec, sizeof r.codec, "%s", text);
    snprintf(r.gradient, sizeof r.gradient, "%s", gradients[gradient]);
    r.nmse = square_distance(x, y, n) / square_sum(x, n);
    free(x), free(y);
    return r;
}

static int write_rows(const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f) {
        perror(path);
        return 1;
    }
    fprintf(f, "codec;gradient;elements;bytes;nmse\n");
    for (int t = 0; t < TEXTS; t++) {
        for (int g = 0; g < GRADIENTS; g++) {
            const struct row r = measure(texts[t], (enum gradient)g);
            fprintf(f, "%s;%s;%zu;%zu;%.5e\n", r.codec, r.gradient, r.n, r.bytes,
                    r.nmse);
        }
    }
    return fclose(f) ? 1 : 0;
}

TEST(test_table)
{
    char line[LINE];
    FILE *f = open_file("regress/ratio.csv");
    assert_non_null(fgets(line, sizeof line, f));
    for (int i = 0; i < GRADIENTS * TEXTS; i++) {
        const struct row r =
            measure(texts[i / GRADIENTS], (enum gradient)(i % GRADIENTS));
        char expected[LINE];
        snprintf(expected, sizeof expected, "%s;%s;%zu;", r.codec, r.gradient, r.n);
        assert_non_null(fgets(line, sizeof line, f));
        if (strncmp(line, expected, strlen(expected)) != 0)
            fail_msg("now \"%s\", the table has \"%s\"", expected, line);
        char *rest;
        const double bytes = (double)strtoul(line + strlen(expected), &rest, 10);
        /* another version of a library may need a few more or less */
        const double slack = strstr(r.codec, "pack=entropy") ? 0.01 * bytes : 0;
        if (fabs((double)r.bytes - bytes) > slack)
            fail_msg("%s: now %zu bytes, the table has %.0f", r.codec, r.bytes, bytes);
        const double nmse = strtod(rest + 1, NULL);
        if (fabs(r.nmse - nmse) > 1e-4 * nmse)
            fail_msg("%s: nmse is %.5e, the table has %.5e", r.codec, r.nmse, nmse);
    }
    assert_null(fgets(line, sizeof line, f));
    fclose(f);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--write") == 0)
        return write_rows(argv[2]);
    return tribtest_run();
}
