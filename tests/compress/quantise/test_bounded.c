/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No element of a sum is off by more than the bound: of many ranks, in any order, of
 * any elements.
 */
#include "tests/compress/vectors.h"

#include "compress/quantise/bounded.h"

enum { RANKS_MAX = 64, N_MAX = 4099 };

enum kind {
    KIND_NORMAL,
    KIND_SMOOTH,
    KIND_STEEP,    /* large differences, all equal */
    KIND_DENORMAL,
    KIND_HUGE,     /* beyond any integer, in places */
    KIND_LARGE,    /* integers, whose sums are beyond 32 bits in places */
    KIND_ZERO,
    KINDS,
};

static float element(enum kind kind, int rank, size_t i)
{
    const float noise = normal_at((uint64_t)rank + 1, i);
    switch (kind) {
    case KIND_NORMAL:
        return noise;
    case KIND_SMOOTH:
        return sinf(0.01f * (float)i + 0.1f * (float)rank) + 1e-3f * noise;
    case KIND_STEEP:
        return 0.37f * (float)(i % 300) - (float)rank;
    case KIND_DENORMAL:
        return noise * 1e-40f;
    case KIND_HUGE:
        return i % 211 == (size_t)rank ? noise * 3e37f : noise;
    case KIND_LARGE:
        return i % 97 ? noise : 5e4f;
    default:
        return 0;
    }
}

/* A sum of encoded chunks, and its expected value. */
struct sum {
    struct trib_codec *codec;
    const char *text;
    int ranks;
    size_t n;
    bool mean;
    uint8_t *word[RANKS_MAX];
    size_t len[RANKS_MAX];
    float *share;
    double *exact;
    double *magnitude;
    double *bound; /* of each element */
};

static struct sum sum_new(const char *text, int ranks, size_t n, bool mean)
{
    struct sum s = {.codec = codec_new(text, NULL),
                    .text = text,
                    .ranks = ranks,
                    .n = n,
                    .mean = mean};
    assert_status(trib_codec_for_ranks(s.codec, ranks, NULL), TRIB_OK);
    if (mean)
        trib_codec_for_mean(s.codec);
    for (int r = 0; r < ranks; r++)
        s.word[r] = malloc(trib_codec_bound(s.codec, n) + 1);
    s.share = calloc(n + 1, sizeof *s.share);
    s.exact = calloc(n + 1, sizeof *s.exact);
    s.magnitude = calloc(n + 1, sizeof *s.magnitude);
    s.bound = calloc(n + 1, sizeof *s.bound);
    return s;
}

static void sum_free(struct sum *s)
{
    trib_codec_destroy(s->codec);
    for (int r = 0; r < s->ranks; r++)
        free(s->word[r]);
    free(s->share), free(s->exact), free(s->magnitude), free(s->bound);
}

static void contribute(struct sum *s, int rank, const float *x)
{
    const size_t floats = trib_codec_agreed_floats(s->codec, s->n);
    const struct trib_encode in = {
        .x = x, .n = s->n, .agreed = floats ? s->share : NULL};
    s->len[rank] = trib_codec_encode(s->codec, &in, s->word[rank]);
    assert_true(s->len[rank] <= trib_codec_own_bound(s->codec, s->n));
    for (size_t i = 0; i < s->n; i++) {
        s->exact[i] += (double)x[i] / (s->mean ? s->ranks : 1);
        s->magnitude[i] += fabs((double)x[i]);
    }
}

/* Let the ranks agree on scales, which determine the bound of each element. */
static void agree(struct sum *s, enum kind kind, float *x)
{
    const struct trib_codec *c = s->codec;
    const size_t floats = trib_codec_agreed_floats(c, s->n);
    const size_t bucket = (size_t)c->param[TRIB_PARAM_BUCKET];
    float *own = calloc(floats + 1, sizeof *own);
    for (int r = 0; r < s->ranks && floats; r++) {
        for (size_t i = 0; i < s->n; i++)
            x[i] = element(kind, r, i);
        trib_codec_propose(c, x, s->n, own);
        for (size_t b = 0; b < floats; b++)
            s->share[b] = fmaxf(s->share[b], own[b]);
    }
    for (size_t i = 0; i < s->n; i++)
        s->bound[i] = floats ? c->param[TRIB_PARAM_REL] * (double)s->share[i / bucket]
                             : c->param[TRIB_PARAM_ABS];
    free(own);
}

static uint32_t random_below(uint32_t n)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

/* Merge two of the encoded chunks at a time in a random order, or all at once. */
static size_t merge_all(struct sum *s, bool pairs, uint8_t *dst)
{
    struct trib_encoded words[RANKS_MAX];
    size_t left = (size_t)s->ranks, len = 0;
    for (size_t r = 0; r < left; r++)
        words[r] = (struct trib_encoded){s->word[r], s->len[r]};
    while (pairs && left > 1) {
        const size_t a = random_below((uint32_t)left);
        struct trib_encoded two[2] = {words[a]};
        words[a] = words[--left];
        const size_t b = random_below((uint32_t)left);
        two[1] = words[b];
        const struct trib_merge m = {.words = two, .n_words = 2, .n = s->n};
        assert_status(trib_codec_merge(s->codec, &m, dst, &len), TRIB_OK);
        assert_true(len <= trib_codec_bound(s->codec, s->n));
        uint8_t *to = (uint8_t *)(uintptr_t)words[b].src;
        memcpy(to, dst, len);
        words[b] = (struct trib_encoded){to, len};
    }
    const struct trib_merge m = {.words = words,
                                 .n_words = left,
                                 .n = s->n,
                                 .final = true,
                                 .ranks = s->mean ? (uint32_t)s->ranks : 0};
    assert_status(trib_codec_merge(s->codec, &m, dst, &len), TRIB_OK);
    assert_true(len <= trib_codec_bound(s->codec, s->n));
    return len;
}

/* Half a unit in the last place is what rounding to float32 adds, and next to nothing
 * what sums of float64 do. */
static void check_bound(const struct sum *s, enum kind kind, const float *y)
{
    for (size_t i = 0; i < s->n; i++) {
        const double off = fabs((double)y[i] - s->exact[i]);
        const double rounding =
            0x1p-24 * fabs((double)y[i]) + 0x1p-150 +
            0x1p-53 * s->ranks * s->magnitude[i];
        if (!(off <= s->bound[i] + rounding))
            fail_msg("%s, kind %d, %d ranks, %zu elements%s: element %zu is %.9g, "
                     "not %.9g: %.9g off, the bound is %.9g",
                     s->text, (int)kind, s->ranks, s->n, s->mean ? ", mean" : "", i,
                     (double)y[i], s->exact[i], off, s->bound[i]);
    }
}

static void check_sum(const char *text, enum kind kind, int ranks, size_t n, bool mean)
{
    struct sum s = sum_new(text, ranks, n, mean);
    const size_t bound = trib_codec_bound(s.codec, n);
    float *x = malloc((n + 1) * sizeof *x), *y = malloc((n + 1) * sizeof *y);
    float *z = malloc((n + 1) * sizeof *z);
    uint8_t *dst = malloc(bound + 1);
    agree(&s, kind, x);
    for (int r = 0; r < ranks; r++) {
        for (size_t i = 0; i < n; i++)
            x[i] = element(kind, r, i);
        contribute(&s, r, x);
    }
    const size_t len = merge_all(&s, false, dst);
    assert_status(trib_codec_decode(s.codec, dst, len, y, n), TRIB_OK);
    check_bound(&s, kind, y);
    const size_t again = merge_all(&s, true, dst);
    assert_status(trib_codec_decode(s.codec, dst, again, z, n), TRIB_OK);
    check_bound(&s, kind, z);
    /* the order changes no bit of integers */
    if (kind != KIND_HUGE && kind != KIND_LARGE)
        assert_memory_equal(y, z, n * sizeof *y);
    free(x), free(y), free(z), free(dst);
    sum_free(&s);
}

TEST(test_every_element)
{
    static const char *const texts[] = {
        "bound:abs=1e-4",           "bound:abs=0.25,bucket=8", "bound:rel=1e-3",
        "bound:rel=0.1,bucket=40",  "bound:abs=1e-7,bucket=2048", "bound:rel=1e-6",
        "bound:abs=1e-30,bucket=64"};
    static const size_t sizes[] = {0, 1, 2, 31, 32, 33, 511, 512, 513, 1000, N_MAX};
    static const int ranks[] = {1, 2, 3, 7, RANKS_MAX};
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
        for (int kind = 0; kind < KINDS; kind++)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                for (size_t r = 0; r < sizeof ranks / sizeof *ranks; r++)
                    if (ranks[r] < RANKS_MAX || sizes[i] == 513)
                        check_sum(texts[t], (enum kind)kind, ranks[r], sizes[i],
                                  (i + r) % 2);
}

/* The largest error is close to the bound: a finer grid than necessary would cost bits.
 * Two ranks rarely have the largest error in the same element. */
TEST(test_grid_is_as_coarse_as_it_may_be)
{
    enum { N = 4096 };
    struct sum s = sum_new("bound:abs=0.01", 2, N, false);
    float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
    uint8_t *dst = malloc(trib_codec_bound(s.codec, N));
    double worst = 0;
    for (int r = 0; r < 2; r++) {
        for (size_t i = 0; i < N; i++)
            x[i] = element(KIND_NORMAL, 0, i);
        contribute(&s, r, x);
    }
    const size_t len = merge_all(&s, false, dst);
    assert_status(trib_codec_decode(s.codec, dst, len, y, N), TRIB_OK);
    for (size_t i = 0; i < N; i++)
        worst = fmax(worst, fabs((double)y[i] - s.exact[i]));
    assert_true(worst > 0.0099 && worst <= 0.01 + 1e-6);
    free(x), free(y), free(dst);
    sum_free(&s);
}

/* A bucket with an element that is not finite decodes to the float32 sum; others are
 * unchanged. */
TEST(test_not_finite)
{
    static const char *const texts[] = {"bound:abs=1e-3,bucket=64",
                                        "bound:rel=1e-3,bucket=64"};
    enum { N = 300, AT = 70 };
    for (int t = 0; t < 2; t++) {
        struct sum s = sum_new(texts[t], 3, N, false);
        float x[3][N], y[N], own[N];
        uint8_t *dst = malloc(trib_codec_bound(s.codec, N));
        for (int r = 0; r < 3; r++) {
            for (size_t i = 0; i < N; i++)
                x[r][i] = element(KIND_NORMAL, r, i);
            x[r][AT] = r == 1 ? INFINITY : 1;
            x[r][AT + 1] = r == 2 ? NAN : 1;
            trib_codec_propose(s.codec, x[r], N, own);
            for (size_t b = 0; b < trib_codec_agreed_floats(s.codec, N); b++)
                s.share[b] = fmaxf(s.share[b], own[b]);
        }
        for (int r = 0; r < 3; r++)
            contribute(&s, r, x[r]);
        const size_t len = merge_all(&s, false, dst);
        assert_status(trib_codec_decode(s.codec, dst, len, y, N), TRIB_OK);
        assert_true(isinf(y[AT]) && y[AT] > 0 && isnan(y[AT + 1]));
        for (size_t i = 0; i < N; i++)
            if (i != AT && i != AT + 1)
                assert_true(fabs((double)y[i] - s.exact[i]) <= 0.005);
        free(dst);
        sum_free(&s);
    }
}

static double bytes_of(const char *text, enum kind kind)
{
    enum { N = 8192 };
    struct codec_buffers b = buffers_new(text, NULL, N);
    float *x = malloc(N * sizeof *x);
    for (size_t i = 0; i < N; i++)
        x[i] = element(kind, 0, i);
    const double bytes = (double)encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0) / N;
    free(x);
    buffers_free(&b);
    return bytes;
}

TEST(test_bytes)
{
    assert_true(bytes_of("bound:abs=1e-4", KIND_ZERO) < 0.003); /* a byte a bucket */
    assert_true(bytes_of("bound:abs=0.05", KIND_SMOOTH) < 0.25);
    assert_true(bytes_of("bound:abs=0.01", KIND_STEEP) < 0.8);
    assert_true(bytes_of("bound:abs=1e-3", KIND_NORMAL) < 1.7);
}

/* Words of other scales, of more ranks, and finished ones add to nothing. */
TEST(test_refused)
{
    enum { N = 200 };
    struct sum s = sum_new("bound:rel=0.01,bucket=64", 2, N, false);
    uint8_t *dst = malloc(trib_codec_bound(s.codec, N));
    float x[N];
    size_t len;
    for (size_t i = 0; i < N; i++)
        x[i] = element(KIND_NORMAL, 0, i);
    for (int r = 0; r < 2; r++) {
        for (size_t b = 0; b < trib_codec_agreed_floats(s.codec, N); b++)
            s.share[b] = 5 + (float)r;
        contribute(&s, r, x);
    }
    struct trib_encoded words[3] = {{s.word[0], s.len[0]}, {s.word[1], s.len[1]}};
    struct trib_merge m = {.words = words, .n_words = 2, .n = N, .final = true};
    assert_status(trib_codec_merge(s.codec, &m, dst, &len), TRIB_ERR_CODEC);
    for (int r = 0; r < 3; r++)
        words[r] = (struct trib_encoded){s.word[0], s.len[0]};
    m.n_words = 3;
    assert_status(trib_codec_merge(s.codec, &m, dst, &len), TRIB_ERR_CODEC);
    for (int r = 0; r < 2; r++)
        words[r] = (struct trib_encoded){s.word[0], s.len[0]};
    m.n_words = 2;
    assert_status(trib_codec_merge(s.codec, &m, dst, &len), TRIB_OK);
    words[0] = (struct trib_encoded){dst, len};
    m.n_words = 1;
    assert_status(trib_codec_merge(s.codec, &m, s.word[1], &len), TRIB_ERR_CODEC);
    free(dst);
    sum_free(&s);
}

TEST(test_texts)
{
    struct trib_error err = {0};
    struct trib_codec *c = NULL;
    assert_status(trib_codec_create("bound:abs=1,rel=1", NULL, &err, &c),
                  TRIB_ERR_CODEC);
    assert_string_equal(trib_error_text(&err),
                        "codec \"bound:abs=1,rel=1\": give abs or rel, not both");
    c = codec_new("bound:abs=0.01", NULL);
    assert_string_equal(trib_codec_info(c)->text, "bound:abs=0.01,bucket=512,ef=0");
    assert_false(trib_codec_info(c)->flags & TRIB_CODEC_AGREES);
    trib_codec_destroy(c);
    c = codec_new("bound", NULL);
    assert_string_equal(trib_codec_info(c)->text, "bound:rel=0.001,bucket=512,ef=0");
    assert_true(trib_codec_info(c)->flags & TRIB_CODEC_AGREES);
    trib_codec_destroy(c);
}
