/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PowerSGD and GradiVeQ compared with their mathematics; one process plays the ranks in
 * turn. Encoded chunks and states from untrusted peers do not change a model.
 */
#include "tests/harness/tribtest.h"

#include <math.h>

#include "base/error.h"
#include "base/rng.h"
#include "compress/codec.h"
#include "compress/models/model.h"
#include "compress/models/pca.h"

enum { RANKS = 3 };

static float number(uint32_t stream, uint64_t i)
{
    const struct trib_rng rng = {.seed = 7, .stream = stream};
    return (float)(int32_t)trib_rng_draw4(rng, i).word[0] * 0x1p-31f;
}

/* ---- some ranks, one chunk ------------------------------------------------------- */

struct group {
    struct trib_codec *codec;
    struct trib_model *model[RANKS];
    int ranks;
    size_t n;
    uint32_t step;
    float *residual[RANKS];
    uint8_t *word[RANKS + 1]; /* the last one: of the sum */
    size_t len[RANKS + 1];
    float *share, *part, *exchanged, *exchange_part;
    float *y[RANKS]; /* results */
};

static struct group group_new(const char *text, int ranks, size_t n)
{
    struct group g = {.ranks = ranks, .n = n};
    const struct trib_model_opts opts = {
        .total = n, .piece = n, .ranks = ranks, .seed = 5};
    struct trib_error err = {0};
    if (trib_codec_create(text, NULL, &err, &g.codec) != TRIB_OK)
        fail_msg("%s", trib_error_text(&err));
    assert_int_equal(trib_codec_for_ranks(g.codec, ranks, NULL), TRIB_OK);
    for (int r = 0; r < ranks; r++) {
        struct trib_model_opts own = opts;
        own.rank = r;
        if (trib_model_create(g.codec, &own, &err, &g.model[r]) != TRIB_OK)
            fail_msg("%s", trib_error_text(&err));
        g.residual[r] = calloc(n, sizeof(float));
        g.y[r] = calloc(n, sizeof(float));
    }
    for (int r = 0; r <= ranks; r++)
        g.word[r] = malloc(trib_codec_bound(g.codec, n));
    const size_t floats = trib_codec_agreed_floats(g.codec, n) + 1;
    const size_t exchanged = trib_model_exchange_floats(g.model[0]) + 1;
    g.share = calloc(floats, sizeof(float)), g.part = calloc(floats, sizeof(float));
    g.exchanged = calloc(exchanged, sizeof(float));
    g.exchange_part = calloc(exchanged, sizeof(float));
    return g;
}

static void group_free(struct group *g)
{
    for (int r = 0; r < g->ranks; r++) {
        trib_model_destroy(g->model[r]);
        free(g->residual[r]), free(g->y[r]);
    }
    for (int r = 0; r <= g->ranks; r++)
        free(g->word[r]);
    free(g->share), free(g->part), free(g->exchanged), free(g->exchange_part);
    trib_codec_destroy(g->codec);
}

static void exchange(struct group *g)
{
    const size_t n = trib_model_exchange_floats(g->model[0]);
    int wanting = 0;
    memset(g->exchanged, 0, n * sizeof(float));
    for (int r = 0; r < g->ranks; r++) {
        if (!trib_model_exchange(g->model[r], g->step, g->exchange_part))
            continue;
        wanting++;
        for (size_t i = 0; i < n; i++)
            g->exchanged[i] += g->exchange_part[i];
    }
    assert_true(wanting == 0 || wanting == g->ranks);
    for (int r = 0; wanting && r < g->ranks; r++)
        assert_int_equal(trib_model_exchanged(g->model[r], g->exchanged, NULL),
                         TRIB_OK);
}

static void share(struct group *g, const float *const *p)
{
    const struct trib_model_chunk c = {.n = g->n};
    const size_t floats = trib_codec_agreed_floats(g->codec, g->n);
    const bool most = trib_codec_agreement_op(g->codec) == TRIB_MAX;
    for (int r = 0; r < g->ranks; r++) {
        trib_model_propose(g->model[r], &c, p[r], g->part);
        for (size_t i = 0; i < floats; i++)
            g->share[i] = r == 0 ? g->part[i]
                          : most ? fmaxf(g->share[i], g->part[i])
                                 : g->share[i] + g->part[i];
    }
    trib_model_settle(g->model[0], &c, g->share);
}

static void merge(struct group *g)
{
    struct trib_encoded words[RANKS];
    for (int r = 0; r < g->ranks; r++)
        words[r] = (struct trib_encoded){g->word[r], g->len[r]};
    const struct trib_merge m = {.words = words,
                                 .n_words = (size_t)g->ranks,
                                 .n = g->n,
                                 .piece = g->n,
                                 .final = true};
    assert_int_equal(
        trib_codec_merge(g->codec, &m, g->word[g->ranks], &g->len[g->ranks]), TRIB_OK);
}

/* A start: x of each rank; results in y, the same on all ranks. */
static void step(struct group *g, const float *const *x)
{
    const float *p[RANKS];
    g->step++;
    exchange(g);
    for (int r = 0; r < g->ranks; r++) {
        trib_model_begin(g->model[r], g->step);
        for (size_t i = 0; i < g->n; i++)
            g->residual[r][i] += x[r][i];
        p[r] = g->residual[r];
    }
    share(g, p);
    for (int r = 0; r < g->ranks; r++) {
        const struct trib_encode in = {
            .x = p[r],
            .n = g->n,
            .key = {.seed = 5, .step = g->step, .stream = (uint32_t)r},
            .agreed = g->share,
            .model = g->model[r]};
        g->len[r] = trib_codec_encode_kept(g->codec, &in, g->residual[r], g->word[r]);
    }
    merge(g);
    for (int r = 0; r < g->ranks; r++) {
        const struct trib_model_chunk c = {.n = g->n, .agreed = g->share};
        assert_int_equal(trib_model_result(g->model[r], &c, g->word[g->ranks],
                                           g->len[g->ranks], g->y[r]),
                         TRIB_OK);
        assert_memory_equal(g->y[r], g->y[0], g->n * sizeof(float));
    }
}

static void forget_residuals(struct group *g)
{
    for (int r = 0; r < g->ranks; r++)
        memset(g->residual[r], 0, g->n * sizeof(float));
}

static double square_sum(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

static double square_distance(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sum;
}

/* ---- PowerSGD -------------------------------------------------------------------- */

/* With singular values 2 and 1, the kept direction turns towards the first singular
 * vector: the tangent of the angle falls to a quarter at each start. */
TEST(test_iteration_converges)
{
    enum { SIDE = 64, N = SIDE * SIDE };
    struct group g = group_new("powersgd:rank=1,columns=64,ef=0", 1, N);
    float *m = calloc(N, sizeof *m), q[SIDE];
    const float *x[] = {m};
    double before = 0;
    m[0] = 2.0f, m[SIDE + 1] = 1.0f;
    assert_int_equal(trib_model_bytes(g.model[0]), sizeof q);
    for (int i = 0; i < 8; i++) {
        forget_residuals(&g);
        step(&g, x);
        trib_model_write(g.model[0], (uint8_t *)q);
        const double tangent = fabs((double)q[1] / (double)q[0]);
        if (i > 0)
            assert_true(fabs(tangent / before - 0.25) < 1e-5);
        before = tangent;
    }
    assert_true(square_distance(g.y[0], m, N) < 1.001);
    free(m);
    group_free(&g);
}

/* The result is the part of the sum in the span of the factor that ranks share: never
 * more than the sum, and the same as its own approximation. */
TEST(test_projects)
{
    enum { N = 100 * 64 };
    struct group g = group_new("powersgd:rank=4,columns=64", RANKS, N);
    float *x[RANKS], *sum = calloc(N, sizeof *sum);
    for (int r = 0; r < RANKS; r++) {
        x[r] = malloc(N * sizeof *x[r]);
        for (size_t i = 0; i < N; i++)
            sum[i] += x[r][i] = number((uint32_t)r, i);
    }
    step(&g, (const float *const *)x);
    assert_true(square_sum(g.y[0], N) < square_sum(sum, N));
    /* orthogonal: |sum|^2 = |y|^2 + |sum - y|^2 */
    const double rest = square_distance(sum, g.y[0], N);
    assert_true(fabs(square_sum(g.y[0], N) + rest - square_sum(sum, N)) <
                1e-4 * square_sum(sum, N));
    for (size_t i = 0; i < N; i++) {
        float kept = 0;
        for (int r = 0; r < RANKS; r++)
            kept += g.residual[r][i];
        assert_true(fabsf(kept + g.y[0][i] - sum[i]) < 1e-5f);
    }
    for (int r = 0; r < RANKS; r++)
        free(x[r]);
    free(sum);
    group_free(&g);
}

/* Zeros and values that are not finite do not affect the next start. */
TEST(test_powersgd_of_odd_input)
{
    enum { N = 64 * 64 };
    static const float odd[] = {0.0f, NAN, INFINITY, 3e38f, 1e-41f};
    float x[N], good[N];
    const float *bad_in[] = {x}, *good_in[] = {good};
    for (size_t i = 0; i < N; i++)
        good[i] = (float)(1 + i / 64) * number(9, i % 64);
    for (size_t k = 0; k < 5; k++) {
        struct group g = group_new("powersgd:rank=2,columns=64", 1, N);
        for (size_t i = 0; i < N; i++)
            x[i] = odd[k];
        step(&g, bad_in);
        for (size_t i = 0; i < N; i++)
            assert_true(isfinite(g.residual[0][i]));
        forget_residuals(&g);
        step(&g, good_in);
        assert_true(square_distance(g.y[0], good, N) < 1e-9 * square_sum(good, N));
        group_free(&g);
    }
}

/* Less than a factor would be: the elements themselves. */
TEST(test_short_chunks_are_exact)
{
    for (size_t n = 1; n <= 64; n++) {
        struct group g = group_new("powersgd:rank=4,columns=16", 1, n);
        float x[64];
        const float *in[] = {x};
        for (size_t i = 0; i < n; i++)
            x[i] = number(3, i);
        step(&g, in);
        assert_memory_equal(g.y[0], x, n * sizeof *x);
        group_free(&g);
    }
}

/* ---- GradiVeQ -------------------------------------------------------------------- */

enum { SLICE = 64, SLICES = 200, ELEMENTS = SLICE * SLICES };

static void fill_slices(float *x, uint32_t stream)
{
    for (size_t s = 0; s < SLICES; s++)
        for (size_t j = 0; j < SLICE; j++) {
            float v = 0.1f * number(stream, s * SLICE + j);
            for (uint32_t k = 0; k < 6; k++)
                v += number(stream, (1u << 20) + s * 8 + k) *
                     number(99, k * SLICE + j) / (float)(k + 1);
            x[s * SLICE + j] = v;
        }
}

/* The lost energy of the slices that the basis was fitted to equals the dropped
 * eigenvalues. */
TEST(test_loses_what_was_dropped)
{
    for (int kept = 2; kept <= 64; kept *= 2) {
        char text[80];
        snprintf(text, sizeof text, "gradiveq:slice=64,kept=%d,train=1,coded=9,ef=0",
                 kept);
        struct group g = group_new(text, RANKS, ELEMENTS);
        struct trib_pca *pca;
        const struct trib_pca_opts opts = {.slice = SLICE, .kept = (size_t)kept};
        float *x[RANKS];
        for (int r = 0; r < RANKS; r++) {
            x[r] = malloc(ELEMENTS * sizeof *x[r]);
            fill_slices(x[r], (uint32_t)r);
        }
        step(&g, (const float *const *)x);
        float *sum = malloc(ELEMENTS * sizeof *sum);
        memcpy(sum, g.y[0], ELEMENTS * sizeof *sum); /* still exact */
        assert_int_equal(trib_pca_create(&opts, NULL, NULL, &pca), TRIB_OK);
        trib_pca_add(pca, sum, ELEMENTS);
        assert_int_equal(trib_pca_fit(pca, NULL), TRIB_OK);
        forget_residuals(&g);
        step(&g, (const float *const *)x);
        const double lost =
            square_distance(g.y[0], sum, ELEMENTS) / square_sum(sum, ELEMENTS);
        assert_true(fabs(lost - trib_pca_dropped(pca)) < 1e-5);
        char told[160], expected[160];
        (void)trib_model_describe(g.model[0], told, sizeof told);
        snprintf(expected, sizeof expected,
                 "basis 1 keeps %.3f of the energy in its training, ",
                 1 - trib_pca_dropped(pca));
        assert_memory_equal(told, expected, strlen(expected));
        if (kept == SLICE)
            assert_true(lost < 1e-10);
        trib_pca_destroy(pca);
        for (int r = 0; r < RANKS; r++)
            free(x[r]);
        free(sum);
        group_free(&g);
    }
}

/* Two cycles: exact while it learns, another basis then; all ranks have the same. */
TEST(test_cycles)
{
    struct group g =
        group_new("gradiveq:slice=64,kept=4,train=2,coded=3", RANKS, ELEMENTS);
    float *x[RANKS];
    for (int r = 0; r < RANKS; r++) {
        x[r] = malloc(ELEMENTS * sizeof *x[r]);
        fill_slices(x[r], (uint32_t)r + 40);
    }
    const size_t whole = 8 + ELEMENTS * sizeof(float),
                 coded = 8 + (size_t)SLICES * 4 * 4;
    const size_t basis = 8 + 24 + (SLICE + SLICE * 4) * sizeof(float);
    uint8_t *a = malloc(trib_model_bytes(g.model[0])),
            *b = malloc(trib_model_bytes(g.model[0]));
    for (uint32_t i = 0; i < 10; i++) {
        step(&g, (const float *const *)x);
        assert_int_equal(g.len[0], i % 5 < 2 ? whole : coded);
        assert_int_equal(trib_model_epoch(g.model[0]), i % 5 < 2 ? 0 : 1 + i / 5);
        trib_model_write(g.model[0], a);
        trib_model_write(g.model[RANKS - 1], b);
        assert_memory_equal(a, b, basis);
    }
    for (int r = 0; r < RANKS; r++)
        free(x[r]);
    free(a), free(b);
    group_free(&g);
}

/* With a memory the second basis still contains the direction of the first cycle. */
TEST(test_memory)
{
    static const char *const texts[] = {
        "gradiveq:slice=64,kept=1,train=1,coded=1",
        "gradiveq:slice=64,kept=1,train=1,coded=1,memory=0.5"};
    for (int remembers = 0; remembers < 2; remembers++) {
        struct group g = group_new(texts[remembers], RANKS, ELEMENTS);
        float *x = calloc(ELEMENTS, sizeof *x);
        const float *same[RANKS];
        for (int r = 0; r < RANKS; r++)
            same[r] = x;
        for (uint32_t i = 0; i < 4; i++) { /* the first direction is the stronger one */
            for (size_t s = 0; s < SLICES; s++) {
                x[s * SLICE + 3] = i < 2 ? 2 : 0;
                x[s * SLICE + 5] = i < 2 ? 0 : 1;
            }
            forget_residuals(&g);
            step(&g, same);
        }
        assert_true((g.y[0][5] == 0.0f) == remembers);
        free(x);
        group_free(&g);
    }
}

/* A slice that is not finite decodes to values that are not finite. The other slices
 * and the basis are unaffected. */
TEST(test_gradiveq_of_odd_input)
{
    struct group g =
        group_new("gradiveq:slice=64,kept=64,train=1,coded=9", 1, ELEMENTS);
    float *x = malloc(ELEMENTS * sizeof *x);
    const float *in[] = {x};
    fill_slices(x, 1);
    x[SLICE * 3 + 5] = NAN;
    x[SLICE * 7] = INFINITY;
    step(&g, in);
    for (int i = 0; i < 2; i++) {
        step(&g, in);
        for (size_t j = 0; j < ELEMENTS; j++) {
            const bool odd = j / SLICE == 3 || j / SLICE == 7;
            assert_true(odd ? !isfinite(g.y[0][j]) : fabsf(g.y[0][j] - x[j]) < 1e-5f);
            assert_true(isfinite(g.residual[0][j]));
        }
    }
    free(x);
    group_free(&g);
}

/* ---- untrusted input ------------------------------------------------------------- */

static const char *const texts[] = {
    "powersgd:rank=2,columns=64",
    "gradiveq:slice=64,kept=4,train=1,coded=9",
    "gradiveq:slice=64,kept=4,train=1,coded=9+int8",
};
enum { TEXTS = sizeof texts / sizeof *texts };

static struct group trained(const char *text, float *x)
{
    struct group g = group_new(text, 1, ELEMENTS);
    const float *in[] = {x};
    fill_slices(x, 2);
    step(&g, in);
    step(&g, in);
    return g;
}

/* Encoded chunks of another epoch or length are rejected, and so are truncated ones. */
TEST(test_foreign_words)
{
    static float x[ELEMENTS], y[ELEMENTS];
    for (int t = 0; t < TEXTS; t++) {
        struct group g = trained(texts[t], x);
        const struct trib_model_chunk c = {.n = ELEMENTS, .agreed = g.share};
        uint8_t *word = malloc(g.len[0] + 4);
        memcpy(word, g.word[0], g.len[0]);
        for (size_t len = 0; len < g.len[0]; len += len < 40 ? 1 : 997)
            assert_int_equal(trib_model_result(g.model[0], &c, word, len, y),
                             TRIB_ERR_CODEC);
        assert_int_equal(trib_model_result(g.model[0], &c, word, g.len[0] + 4, y),
                         TRIB_ERR_CODEC);
        word[0] ^= 2; /* epoch */
        assert_int_equal(trib_model_result(g.model[0], &c, word, g.len[0], y),
                         TRIB_ERR_CODEC);
        struct trib_encoded words[] = {{g.word[0], g.len[0]}, {word, g.len[0]}};
        const struct trib_merge m = {
            .words = words, .n_words = 2, .n = ELEMENTS, .piece = ELEMENTS};
        size_t len;
        assert_int_equal(trib_codec_merge(g.codec, &m, g.word[1], &len),
                         TRIB_ERR_CODEC);
        /* without a model only raw elements are accepted */
        assert_int_equal(trib_codec_decode(g.codec, g.word[0], g.len[0], y, ELEMENTS),
                         TRIB_ERR_CODEC);
        free(word);
        group_free(&g);
    }
}

TEST(test_foreign_states)
{
    static float x[ELEMENTS];
    for (int t = 0; t < TEXTS; t++) {
        struct group g = trained(texts[t], x);
        const size_t bytes = trib_model_bytes(g.model[0]);
        uint8_t *a = malloc(bytes), *b = malloc(bytes);
        trib_model_write(g.model[0], a);
        assert_int_equal(trib_model_read(g.model[0], a, bytes - 1, NULL),
                         TRIB_ERR_MISMATCH);
        memcpy(b, a, bytes);
        memset(b + bytes / 4, 0xff, 16); /* NaN, as floats and as doubles */
        assert_int_equal(trib_model_read(g.model[0], b, bytes, NULL),
                         TRIB_ERR_MISMATCH);
        trib_model_write(g.model[0], b);
        assert_memory_equal(a, b, bytes);
        assert_int_equal(trib_model_read(g.model[0], a, bytes, NULL), TRIB_OK);
        trib_model_write(g.model[0], b);
        assert_memory_equal(a, b, bytes);
        free(a), free(b);
        group_free(&g);
    }
}

/* For tools: train until the model stops learning. */
TEST(test_teach)
{
    static float x[ELEMENTS];
    fill_slices(x, 2);
    for (int t = 0; t < TEXTS; t++) {
        struct group g = group_new(texts[t], 1, ELEMENTS);
        assert_int_equal(trib_model_train(g.model[0], x, ELEMENTS, NULL), TRIB_OK);
        assert_false(trib_model_learning(g.model[0]));
        assert_int_equal(trib_model_epoch(g.model[0]), 1);
        group_free(&g);
    }
}
