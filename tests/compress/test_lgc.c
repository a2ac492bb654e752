/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LGC as a model of a plan, in both forms: ranks in one process, whose shares, words and
 * exchanges are summed here as a plan does.
 */
#include "tests/harness/tribtest.h"

#include <math.h>

#include "base/error.h"
#include "compress/autoencoder.h"
#include "compress/codec.h"
#include "compress/model.h"
#include "tests/compress/vectors.h"

enum { RANKS_MAX = 4, PIECE = 1270, LENGTH = 127 /* at ratio=0.1 */, LATENT = 28 };
enum { AE_HEAD = 16, ENCODER_WEIGHTS = 172996, DECODER_WEIGHTS = 43681 };

static const char *const forms[] = {"lgc", "lgc-ps"};

struct ring {
    struct trib_codec *codec;
    struct trib_model_opts opts;
    int ranks;
    uint32_t step; /* of the last start */
    bool exchanged; /* before it */
    struct trib_model *models[RANKS_MAX];
    float *x[RANKS_MAX], *residual[RANKS_MAX], *result[RANKS_MAX];
    float *shares; /* of all chunks, settled */
    size_t share, chunks;
    size_t bytes; /* of a word of the first chunk */
    const int *order; /* in which words are summed; NULL: of ranks */
};

static struct trib_codec *codec_of(const char *text)
{
    struct trib_error err = {0};
    struct trib_codec *c;
    if (trib_codec_create(text, NULL, &err, &c) != TRIB_OK)
        fail_msg("%s", trib_error_text(&err));
    return c;
}

static void models_new(struct ring *r)
{
    for (int k = 0; k < r->ranks; k++) {
        struct trib_error err = {0};
        r->opts.rank = k;
        if (trib_model_create(r->codec, &r->opts, &err, &r->models[k]) != TRIB_OK)
            fail_msg("%s", trib_error_text(&err));
    }
}

static void models_free(struct ring *r)
{
    for (int k = 0; k < r->ranks; k++)
        trib_model_destroy(r->models[k]);
}

static void ring_init(struct ring *r, const char *text, size_t total, int ranks, bool mean)
{
    struct trib_error err = {0};
    *r = (struct ring){.codec = codec_of(text), .ranks = ranks};
    r->opts = (struct trib_model_opts){
        .total = total, .piece = PIECE, .ranks = ranks, .mean = mean, .seed = 7};
    assert_status(trib_codec_for_ranks(r->codec, ranks, &err), TRIB_OK);
    r->share = trib_codec_share_floats(r->codec, PIECE);
    r->chunks = (total + PIECE - 1) / PIECE;
    r->shares = calloc(r->chunks * r->share, sizeof(float));
    for (int k = 0; k < ranks; k++) {
        r->x[k] = calloc(total, sizeof(float));
        r->residual[k] = calloc(total, sizeof(float));
        r->result[k] = calloc(total, sizeof(float));
    }
    models_new(r);
}

static void ring_free(struct ring *r)
{
    models_free(r);
    for (int k = 0; k < r->ranks; k++)
        free(r->x[k]), free(r->residual[k]), free(r->result[k]);
    free(r->shares);
    trib_codec_destroy(r->codec);
}

/* What ranks exchange before a start; all of them, or none. */
static void exchange(struct ring *r)
{
    const size_t n = trib_model_exchange_floats(r->models[0]);
    float *sum = calloc(n, sizeof *sum), *own = calloc(n, sizeof *own);
    struct trib_error err = {0};
    int asked = 0;
    for (int k = 0; k < r->ranks; k++) {
        assert_int_equal(trib_model_exchange_floats(r->models[k]), n);
        if (!trib_model_exchange(r->models[k], r->step, own))
            continue;
        asked++;
        for (size_t i = 0; i < n; i++)
            sum[i] += own[i];
    }
    assert_true(asked == 0 || asked == r->ranks);
    r->exchanged = asked;
    for (int k = 0; k < r->ranks && asked; k++)
        assert_status(trib_model_exchanged(r->models[k], sum, &err), TRIB_OK);
    free(sum), free(own);
}

static float *share_of(const struct ring *r, size_t chunk)
{
    return r->shares + chunk * r->share;
}

static struct trib_model_chunk chunk_of(const struct ring *r, size_t i)
{
    const size_t left = r->opts.total - i * PIECE;
    return (struct trib_model_chunk){i * PIECE, left < PIECE ? left : PIECE, share_of(r, i)};
}

/* The sum of the ranks' shares, which each settles to the same. */
static void agree(struct ring *r, size_t i)
{
    const struct trib_model_chunk c = chunk_of(r, i);
    float *sum = share_of(r, i);
    float *own = malloc(r->share * sizeof *own);
    memset(sum, 0, r->share * sizeof *sum);
    for (int k = 0; k < r->ranks; k++) {
        float *p = malloc(c.n * sizeof *p);
        for (size_t j = 0; j < c.n; j++)
            p[j] = r->residual[k][c.first + j] + r->x[k][c.first + j];
        trib_model_share(r->models[k], &c, p, own);
        for (size_t j = 0; j < r->share; j++)
            sum[j] += own[j];
        free(p);
    }
    for (int k = 0; k < r->ranks; k++)
        trib_model_settle(r->models[k], &c, sum);
    free(own);
}

static size_t encode_own(struct ring *r, int k, const struct trib_model_chunk *c, uint8_t *dst)
{
    const struct trib_encode in = {.x = r->x[k] + c->first,
                                   .n = c->n,
                                   .mode = TRIB_ENCODE_CONTRIBUTION,
                                   .key = {.index = c->first, .step = r->step},
                                   .share = c->share,
                                   .model = r->models[k]};
    return trib_codec_encode_ef(r->codec, &in, r->residual[k] + c->first, dst);
}

/* One chunk by words; each rank takes the result. */
static void reduce(struct ring *r, size_t i)
{
    const struct trib_model_chunk c = chunk_of(r, i);
    const size_t bound = trib_codec_bound(r->codec, PIECE);
    uint8_t *words = malloc(((size_t)r->ranks + 1) * bound);
    uint8_t *sum = words + (size_t)r->ranks * bound;
    struct trib_word w[RANKS_MAX];
    size_t len;
    agree(r, i);
    for (int o = 0; o < r->ranks; o++) {
        const int k = r->order ? r->order[o] : o;
        uint8_t *dst = words + (size_t)k * bound;
        w[o] = (struct trib_word){dst, encode_own(r, k, &c, dst)};
        assert_true(w[o].len <= bound);
        r->bytes = i == 0 ? w[o].len : r->bytes;
    }
    const struct trib_merge m = {.words = w,
                                 .n_words = (size_t)r->ranks,
                                 .n = c.n,
                                 .piece = PIECE,
                                 .final = true,
                                 .ranks = r->opts.mean ? (uint32_t)r->ranks : 0};
    assert_status(trib_codec_merge(r->codec, &m, sum, &len), TRIB_OK);
    for (int k = 0; k < r->ranks; k++) {
        assert_status(
            trib_model_result(r->models[k], &c, sum, len, r->result[k] + c.first), TRIB_OK);
        assert_memory_equal(r->result[k] + c.first, r->result[0] + c.first,
                            c.n * sizeof(float));
    }
    free(words);
}

/* A start of the plan, the chunks in some order. */
static void start(struct ring *r)
{
    r->step++;
    exchange(r);
    for (int k = 0; k < r->ranks; k++)
        trib_model_begin(r->models[k], r->step);
    for (size_t i = 0; i < r->chunks; i++)
        reduce(r, (i + r->step) % r->chunks);
}

static uint8_t *state_new(const struct trib_model *m)
{
    uint8_t *bytes = malloc(trib_model_bytes(m));
    trib_model_write(m, bytes);
    return bytes;
}

/* Weights, that is, and what the optimiser remembers: the same at all ranks. */
static uint8_t *weights_new(const struct ring *r)
{
    const bool ps = strstr(trib_codec_info(r->codec)->text, "lgc-ps");
    const size_t floats = ENCODER_WEIGHTS + (ps ? (size_t)r->ranks * (DECODER_WEIGHTS + 1)
                                                : DECODER_WEIGHTS);
    const size_t bytes = AE_HEAD + 12 * floats + 16;
    uint8_t *first = state_new(r->models[0]);
    for (int k = 1; k < r->ranks; k++) {
        uint8_t *other = state_new(r->models[k]);
        assert_memory_equal(first, other, bytes);
        free(other);
    }
    memset(first + bytes, 0, trib_model_bytes(r->models[0]) - bytes);
    return first;
}

static bool same_weights(const struct ring *r, const uint8_t *a)
{
    uint8_t *b = weights_new(r);
    const bool same = memcmp(a, b, trib_model_bytes(r->models[0])) == 0;
    free(b);
    return same;
}

/* ---- what ranks contribute ------------------------------------------------------- */

/* Gradients that have much in common, as those of ranks have. */
static void draw(struct ring *r, uint64_t seed)
{
    for (int k = 0; k < r->ranks; k++)
        for (size_t i = 0; i < r->opts.total; i++)
            r->x[k][i] = normal_at(seed, i) + 0.2f * normal_at(seed + 100 + (uint64_t)k, i);
}

static void forget_residuals(struct ring *r)
{
    for (int k = 0; k < r->ranks; k++)
        memset(r->residual[k], 0, r->opts.total * sizeof(float));
}

/* The sum, or mean, of what goes in: contribution and residual. */
static float *dense_new(const struct ring *r)
{
    float *sum = calloc(r->opts.total, sizeof *sum);
    for (size_t i = 0; i < r->opts.total; i++) {
        double s = 0;
        for (int k = 0; k < r->ranks; k++)
            s += (double)r->x[k][i] + (double)r->residual[k][i];
        sum[i] = (float)(r->opts.mean ? s / r->ranks : s);
    }
    return sum;
}

/* 1 at the positions that the ranks agreed on. */
static uint8_t *chosen_new(const struct ring *r)
{
    uint8_t *chosen = calloc(r->opts.total, 1);
    for (size_t i = 0; i < r->chunks; i++) {
        const float *s = share_of(r, i);
        for (size_t j = 0; j < (size_t)s[1]; j++)
            chosen[i * PIECE + (size_t)s[2 + j]] = 1;
    }
    return chosen;
}

/* NMSE of the result at those positions; elsewhere it is 0. */
static double error_at_chosen(const struct ring *r, const float *dense)
{
    uint8_t *chosen = chosen_new(r);
    double off = 0, all = 0;
    for (size_t i = 0; i < r->opts.total; i++) {
        const double e = (double)r->result[0][i] - (double)dense[i];
        if (!chosen[i]) {
            assert_true(r->result[0][i] == 0.0f);
            continue;
        }
        off += e * e;
        all += (double)dense[i] * (double)dense[i];
    }
    free(chosen);
    return all > 0 ? off / all : 0;
}

/* Both forms with the same parameters. */
static const char *text_of(int form, const char *params)
{
    static char text[160];
    snprintf(text, sizeof text, "%s:ratio=0.1,%s%s", forms[form], params,
             form ? ",innovation=0.01" : "");
    return text;
}

/* ---- stages ----------------------------------------------------------------------- */

/* Elements, then values at the positions, then latents: each from its start on. */
static void test_stages(void **state)
{
    enum { DENSE = 3, TRAIN = 2, TOTAL = 2 * PIECE + 300 };
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct ring r;
        ring_init(&r, text_of(form, "dense=3,train=2"), TOTAL, 3, form == 0);
        for (uint32_t step = 1; step <= DENSE + TRAIN + 2; step++) {
            draw(&r, step);
            float *dense = dense_new(&r);
            start(&r);
            const uint32_t epoch = step <= DENSE ? 0 : step <= DENSE + TRAIN ? 1 : 2;
            assert_int_equal(trib_model_epoch(r.models[0]), epoch);
            assert_int_equal(r.exchanged, step == DENSE + 2 || step == DENSE + TRAIN + 1);
            if (epoch == 0)
                assert_true(square_distance(r.result[0], dense, TOTAL) <
                            1e-12 * square_sum(dense, TOTAL));
            else if (epoch == 1)
                assert_true(error_at_chosen(&r, dense) < 1e-12);
            else
                assert_true(error_at_chosen(&r, dense) > 1e-6); /* it hardly learned */
            free(dense);
        }
        ring_free(&r);
    }
}

/* Which start ends a stage, where there is no first one. */
static void test_no_dense_stage(void **state)
{
    (void)state;
    struct ring r;
    ring_init(&r, text_of(0, "dense=0,train=1"), PIECE, 2, false);
    draw(&r, 1);
    start(&r);
    assert_int_equal(trib_model_epoch(r.models[0]), 1);
    assert_false(r.exchanged);
    start(&r);
    assert_int_equal(trib_model_epoch(r.models[0]), 2);
    assert_true(r.exchanged);
    ring_free(&r);
}

/* The master's largest are the positions, by falling value; masters take turns. */
static void test_positions(void **state)
{
    enum { RANKS = 3 };
    (void)state;
    struct ring r;
    ring_init(&r, text_of(0, "dense=0,train=9"), 2 * PIECE + 40, RANKS, false);
    for (int n = 1; n < 5; n++) {
        forget_residuals(&r);
        draw(&r, (uint64_t)n);
        start(&r);
        for (size_t i = 0; i < r.chunks; i++) {
            const struct trib_model_chunk c = chunk_of(&r, i);
            const float *x = r.x[(r.step + i) % RANKS] + c.first;
            const size_t kept = (size_t)c.share[1];
            assert_int_equal(kept, i < 2 ? LENGTH : 4);
            double least = INFINITY, sum = 0;
            float *rest = malloc(c.n * sizeof *rest);
            memcpy(rest, x, c.n * sizeof *rest);
            for (size_t j = 0; j < kept; j++) {
                const size_t at = (size_t)c.share[2 + j];
                assert_true(at < c.n);
                assert_true(j == 0 || x[at] <= x[(size_t)c.share[1 + j]]);
                least = fmin(least, fabs((double)x[at]));
                sum += (double)x[at] * (double)x[at];
                rest[at] = 0;
            }
            for (size_t j = 0; j < c.n; j++)
                assert_true(fabs((double)rest[j]) <= least);
            const double rms = sqrt(sum / (double)kept);
            assert_true(fabs((double)c.share[0] - rms) < 1e-5 * rms);
            free(rest);
        }
    }
    ring_free(&r);
}

/* ---- coding ------------------------------------------------------------------------ */

/* In the last stage with weights that the caller gives; weights end where innovations do. */
static void ring_coded(struct ring *r, int form, size_t total, int ranks, bool mean,
                       void (*set)(float *weights, int ranks))
{
    ring_init(r, text_of(form, "dense=0,train=1"), total, ranks, mean);
    struct trib_error err = {0};
    uint8_t *bytes = state_new(r->models[0]);
    if (set) {
        const size_t n = ENCODER_WEIGHTS + (form ? (size_t)ranks * (DECODER_WEIGHTS + 1)
                                                 : DECODER_WEIGHTS);
        memset(bytes + AE_HEAD, 0, n * sizeof(float));
        set((float *)(void *)(bytes + AE_HEAD), ranks);
    }
    for (int k = 0; k < ranks; k++)
        assert_status(
            trib_model_read(r->models[k], bytes, trib_model_bytes(r->models[k]), &err), TRIB_OK);
    free(bytes);
    r->step = 5; /* nothing was gathered before */
}

/* The result is that of the decoder for the mean of latents, which the words' sum is. */
static void test_mean_of_latents(void **state)
{
    enum { RANKS = 4 };
    (void)state;
    for (int mean = 0; mean < 2; mean++) {
        struct ring r;
        struct trib_autoencoder *ae;
        struct trib_error err = {0};
        const struct trib_autoencoder_opts opts = {.length = LENGTH, .decoders = 1, .seed = 7};
        float c[LATENT], sum[LATENT] = {0}, v[LENGTH], out[LENGTH];
        ring_coded(&r, 0, PIECE, RANKS, mean, NULL);
        draw(&r, 3);
        start(&r);
        assert_status(trib_autoencoder_create(&opts, NULL, &err, &ae), TRIB_OK);
        const float *share = share_of(&r, 0);
        for (int k = 0; k < RANKS; k++) {
            for (size_t i = 0; i < LENGTH; i++)
                v[i] = r.x[k][(size_t)share[2 + i]] / share[0];
            trib_autoencoder_encode(ae, v, c);
            for (size_t i = 0; i < LATENT; i++)
                sum[i] += c[i];
        }
        for (size_t i = 0; i < LATENT; i++)
            sum[i] /= RANKS;
        trib_autoencoder_decode(ae, 0, sum, NULL, out);
        for (size_t i = 0; i < LENGTH; i++) {
            const float e = out[i] * share[0] * (mean ? 1 : RANKS);
            assert_true(r.result[0][(size_t)share[2 + i]] == e);
        }
        trib_autoencoder_destroy(ae);
        ring_free(&r);
    }
}

/*
 * Weights that only move samples, and between which nothing is below 0: LeakyReLU does
 * nothing. The encoder keeps samples 0, 5, 10 and 15 of every 16; the decoder writes each to
 * those that follow, up to the next.
 */
static void set_moving_weights(float *w, int decoders, bool innovation)
{
    static const size_t layer[] = {256, 24704, 98560, 49216, 260, 416, 6208, 24704, 12320};
    static const size_t in[] = {1, 64, 128, 256}, out[] = {64, 128, 256, 64};
    static const size_t up_out[] = {32, 64, 128, 32};
    for (size_t stage = 0; stage < 4; w += layer[stage], stage++)
        for (size_t have = (size_t)1 << stage, o = 0; o < 2 * have; o++)
            w[(o * in[stage] + o % have) * 3 + o / have] = 1;
    for (size_t o = 0; o < 4; o++)
        w[o * out[3] + 5 * o] = 1;
    w += layer[4];
    for (int k = 0; k < decoders; k++) {
        for (size_t phase = 0; phase < 16; phase++)
            w[(phase / 5 * up_out[0] + phase % 8) * 3 + phase / 8] = 1;
        w += layer[5];
        for (size_t stage = 1; stage < 4; w += layer[5 + stage], stage++)
            for (size_t give = (size_t)8 >> stage, c = 0; c < 2 * give; c++)
                w[(c * up_out[stage] + c % give) * 3 + c / give] = 1;
        w[0] = 1;
        w += 33 + innovation;
    }
}

static void moving_weights(float *w, int ranks)
{
    (void)ranks;
    set_moving_weights(w, 1, false);
}

static void moving_weights_ps(float *w, int ranks)
{
    set_moving_weights(w, ranks, true);
}

/* Positive, falling from group to group of the moved samples; rank k has `factor` times as
 * much as the master, in each group another. */
static void draw_groups(struct ring *r, bool alike)
{
    for (int k = 0; k < r->ranks; k++) {
        memset(r->x[k], 0, r->opts.total * sizeof(float));
        for (size_t i = 0; i < 16 * 7; i++) {
            const size_t group = i / 16 * 4 + i % 16 / 5;
            const float own = alike ? 1.0f : 1.0f + 0.3f * (float)((group * 7 + (size_t)k) % 5);
            r->x[k][11 * i + 2] = (40 - (float)group) * (k == 1 || alike ? 1.0f : own);
        }
    }
}

/* With weights that lose nothing, nothing is lost: sums are exact, and residuals empty. */
static void test_lossless(void **state)
{
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct ring r;
        ring_coded(&r, form, PIECE, 2, form, form ? moving_weights_ps : moving_weights);
        for (int n = 0; n < 3; n++) { /* all masters */
            forget_residuals(&r);
            draw_groups(&r, form || (r.step + 1) % 2 == 0);
            float *dense = dense_new(&r);
            start(&r);
            assert_true(square_distance(r.result[0], dense, PIECE) <
                        1e-12 * square_sum(dense, PIECE));
            for (int k = 0; k < 2; k++)
                assert_true(square_sum(r.residual[k], PIECE) < 1e-10 * square_sum(dense, PIECE));
            free(dense);
        }
        ring_free(&r);
    }
}

static void only_innovations(float *w, int ranks)
{
    for (int k = 0; k < ranks; k++)
        w[ENCODER_WEIGHTS + (size_t)(k + 1) * (DECODER_WEIGHTS + 1) - 1] = (float)(k + 1);
}

/* lgc-ps: of each rank its few largest values, by its weight, are added where they are. */
static void test_innovations(void **state)
{
    enum { RANKS = 3, FEW = 13 /* 0.01 of PIECE */ };
    (void)state;
    struct ring r;
    ring_coded(&r, 1, PIECE, RANKS, false, only_innovations);
    draw(&r, 5);
    float *expected = calloc(PIECE, sizeof *expected);
    start(&r);
    const float *share = share_of(&r, 0);
    for (int k = 0; k < RANKS; k++) {
        for (size_t i = 0; i < LENGTH; i++) {
            const size_t at = (size_t)share[2 + i];
            size_t larger = 0;
            for (size_t j = 0; j < LENGTH; j++)
                larger += fabsf(r.x[k][(size_t)share[2 + j]]) > fabsf(r.x[k][at]);
            if (larger < FEW)
                expected[at] += (float)(k + 1) * r.x[k][at];
        }
    }
    assert_memory_equal(expected, r.result[0], PIECE * sizeof *expected);
    assert_true(r.bytes == 8 + 8 * FEW);
    free(expected);
    ring_free(&r);
}

/* Whoever comes first: the result is the same, to rounding. */
static void test_permutation(void **state)
{
    static const int orders[][3] = {{0, 1, 2}, {2, 0, 1}, {1, 2, 0}, {2, 1, 0}};
    (void)state;
    for (int form = 0; form < 2; form++) {
        float *first = malloc(PIECE * sizeof *first);
        for (int o = 0; o < 4; o++) {
            struct ring r;
            ring_coded(&r, form, PIECE, 3, true, NULL);
            draw(&r, 8);
            r.order = orders[o];
            start(&r);
            if (o == 0)
                memcpy(first, r.result[0], PIECE * sizeof *first);
            assert_true(square_distance(r.result[0], first, PIECE) <
                        1e-11 * square_sum(first, PIECE));
            ring_free(&r);
        }
        free(first);
    }
}

/* A rank keeps what it contributed, less what its own word says where something was sent. */
static void test_residual(void **state)
{
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct ring r;
        ring_coded(&r, form, PIECE, 2, false, NULL);
        draw(&r, 4);
        start(&r);
        uint8_t *chosen = chosen_new(&r);
        double own_sums = 0;
        for (size_t i = 0; i < PIECE; i++) {
            double kept = 0, own = 0;
            for (int k = 0; k < 2; k++) {
                if (!chosen[i])
                    assert_true(r.residual[k][i] == r.x[k][i]);
                kept += (double)r.residual[k][i];
                own += (double)r.x[k][i];
            }
            if (chosen[i])
                own_sums += fabs(own - kept - (double)r.result[0][i]);
        }
        /* the server's form is linear behind the latent: own words add up to the result */
        if (form)
            assert_true(own_sums < 1e-3);
        free(chosen);
        ring_free(&r);
    }
}

/* ---- learning ----------------------------------------------------------------------- */

static double error_after(int form, const char *params, uint32_t starts)
{
    struct ring r;
    double error = 0;
    ring_init(&r, text_of(form, params), 2 * PIECE, 2, true);
    for (uint32_t step = 1; step <= starts + 4; step++) {
        draw(&r, 1000 + step);
        forget_residuals(&r);
        float *dense = dense_new(&r);
        start(&r);
        if (trib_model_epoch(r.models[0]) == 2)
            error += error_at_chosen(&r, dense) / 4;
        free(dense);
    }
    free(weights_new(&r)); /* the same at all ranks */
    ring_free(&r);
    return error;
}

/* What was learned is of use for gradients that were not seen. */
static void test_learning(void **state)
{
    (void)state;
    for (int form = 0; form < 2; form++) {
        const double little = error_after(form, "dense=0,train=1", 1);
        const double much = error_after(form, "dense=0,train=60", 60);
        if (!(much < 0.3 && much < 0.5 * little))
            fail_msg("%s: NMSE %g after 1 start, %g after 60", forms[form], little, much);
    }
}

/* One rank's exchange does what one autoencoder with all vectors would do. */
static void test_same_as_alone(void **state)
{
    enum { RANKS = 3, TRAIN = 3 };
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct ring r;
        struct trib_autoencoder *ae, *start_ae;
        struct trib_error err = {0};
        const struct trib_autoencoder_opts opts = {.length = LENGTH,
                                                   .decoders = form ? RANKS : 1,
                                                   .innovation = form,
                                                   .adam = true,
                                                   .seed = 7};
        float v[RANKS][LENGTH], s[RANKS][LENGTH];
        const float *vs[RANKS], *ss[RANKS];
        ring_init(&r, text_of(form, "dense=0,train=3"), PIECE, RANKS, form);
        assert_status(trib_autoencoder_create(&opts, NULL, &err, &ae), TRIB_OK);
        assert_status(trib_autoencoder_create(&opts, NULL, &err, &start_ae), TRIB_OK);
        for (uint32_t n = 0; n < TRAIN; n++) {
            draw(&r, n);
            forget_residuals(&r);
            start(&r);
            const float *share = share_of(&r, 0);
            for (int k = 0; k < RANKS; k++) {
                for (size_t i = 0; i < LENGTH; i++)
                    v[k][i] = r.x[k][(size_t)share[2 + i]] / share[0];
                for (size_t i = 0; i < LENGTH; i++) {
                    size_t larger = 0;
                    for (size_t j = 0; j < LENGTH; j++)
                        larger += fabsf(v[k][j]) > fabsf(v[k][i]);
                    s[k][i] = larger < 13 ? v[k][i] : 0;
                }
                vs[k] = v[k], ss[k] = s[k];
            }
            const struct trib_autoencoder_batch batch = {vs, ss, RANKS, n + 2};
            form ? trib_autoencoder_train_ps(ae, &batch) : trib_autoencoder_train_ring(ae, &batch);
        }
        start(&r); /* the last exchange is before it */
        uint8_t *theirs = weights_new(&r), *alone = malloc(trib_autoencoder_bytes(ae));
        uint8_t *before = malloc(trib_autoencoder_bytes(ae));
        trib_autoencoder_export(ae, alone), trib_autoencoder_export(start_ae, before);
        const size_t n = trib_autoencoder_weights(ae);
        const float *a = (const float *)(const void *)(alone + AE_HEAD);
        const float *b = (const float *)(const void *)(theirs + AE_HEAD);
        const float *c = (const float *)(const void *)(before + AE_HEAD);
        /* Adam's first steps are of the rate's size whatever the derivative: rounding may
         * turn some that are nearly 0 */
        const double apart = square_distance(a, b, n), moved = square_distance(a, c, n);
        if (!(apart <= (form ? 0 : 1e-3) * moved))
            fail_msg("%s: %g apart, %g moved", forms[form], apart, moved);
        free(theirs), free(alone), free(before);
        trib_autoencoder_destroy(ae), trib_autoencoder_destroy(start_ae);
        ring_free(&r);
    }
}

/* ---- real numbers -------------------------------------------------------------------- */

static bool finite_all(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

/* What is not finite teaches no rank anything; what comes behind does. */
static void test_not_finite_training(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f};
    (void)state;
    for (int form = 0; form < 2; form++) {
        for (size_t b = 0; b < 4; b++) {
            struct ring r;
            ring_init(&r, text_of(form, "dense=0,train=9"), PIECE, 2, false);
            uint8_t *before = weights_new(&r);
            draw(&r, 2);
            r.x[0][40] = 90; /* so it is chosen: rank 0 is the master of start 2 */
            r.x[1][40] = bad[b];
            r.step = 1;
            start(&r);
            assert_true(share_of(&r, 0)[0] > 5 && share_of(&r, 0)[0] < 10);
            assert_true(finite_all(r.residual[1], PIECE));
            assert_true(b == 3 || !isfinite(r.result[0][40]));
            draw(&r, 3);
            start(&r);
            assert_true(r.exchanged && same_weights(&r, before));
            forget_residuals(&r);
            start(&r);
            start(&r);
            assert_false(same_weights(&r, before));
            assert_true(finite_all(r.result[0], PIECE));
            free(before);
            ring_free(&r);
        }
    }
}

/* In the last stage they come out at positions that were sent, and are gone then. */
static void test_not_finite_coded(void **state)
{
    (void)state;
    for (int form = 0; form < 2; form++) {
        for (int rank = 0; rank < 2; rank++) {
            struct ring r;
            ring_coded(&r, form, PIECE, 2, false, NULL);
            draw(&r, 2);
            r.x[0][77] = rank == 0 ? NAN : 50;
            r.x[1][77] = rank == 1 ? INFINITY : 50;
            start(&r);
            uint8_t *chosen = chosen_new(&r);
            assert_true(!isfinite(r.result[0][77]));
            for (size_t i = 0; i < PIECE; i++)
                assert_true(chosen[i] || r.result[0][i] == 0.0f);
            assert_true(finite_all(r.residual[0], PIECE) && finite_all(r.residual[1], PIECE));
            draw(&r, 3);
            start(&r);
            assert_true(finite_all(r.result[0], PIECE));
            free(chosen);
            ring_free(&r);
        }
    }
}

/* Nothing, everything alike, one element, very small and very large ones: finite results, and
 * zeros stay zeros. */
static void test_unusual(void **state)
{
    static const struct {
        float all, one;
    } kinds[] = {{0, 0}, {1, 1}, {0, 5}, {1e-40f, 2e-40f}, {3e37f, 3e37f}};
    (void)state;
    for (int form = 0; form < 2; form++) {
        for (size_t kind = 0; kind < 5; kind++) {
            for (int coded = 0; coded < 2; coded++) {
                struct ring r;
                if (coded)
                    ring_coded(&r, form, PIECE, 2, true, NULL);
                else
                    ring_init(&r, text_of(form, "dense=0,train=2"), PIECE, 2, true);
                for (size_t i = 0; i < PIECE; i++)
                    r.x[0][i] = r.x[1][i] = i == 30 ? kinds[kind].one : kinds[kind].all;
                float *dense = dense_new(&r);
                start(&r);
                assert_true(finite_all(r.result[0], PIECE));
                const double error = error_at_chosen(&r, dense);
                assert_true(coded || error < 1e-12);
                assert_true(kind != 0 || square_sum(r.result[0], PIECE) == 0);
                free(dense);
                ring_free(&r);
            }
        }
    }
}

/* ---- state --------------------------------------------------------------------------- */

/* A plan that is loaded goes on with the same bits, in whatever stage it was saved. */
static void test_state(void **state)
{
    (void)state;
    for (int form = 0; form < 2; form++) {
        for (uint32_t saved = 1; saved < 7; saved++) {
            struct ring r, twin;
            struct trib_error err = {0};
            const char *text = text_of(form, "dense=2,train=3");
            ring_init(&r, text, PIECE + 500, 2, true);
            for (uint32_t step = 0; step < saved; step++) {
                draw(&r, step);
                start(&r);
            }
            ring_init(&twin, text, PIECE + 500, 2, true);
            for (int k = 0; k < 2; k++) {
                uint8_t *bytes = state_new(r.models[k]);
                assert_status(trib_model_read(twin.models[k], bytes,
                                              trib_model_bytes(r.models[k]), &err),
                              TRIB_OK);
                free(bytes);
                memcpy(twin.residual[k], r.residual[k], r.opts.total * sizeof(float));
            }
            twin.step = r.step;
            for (uint32_t step = saved; step < saved + 3; step++) {
                draw(&r, step), draw(&twin, step);
                start(&r), start(&twin);
                assert_memory_equal(r.result[0], twin.result[0], r.opts.total * sizeof(float));
                uint8_t *weights = weights_new(&r);
                assert_true(same_weights(&twin, weights));
                free(weights);
            }
            ring_free(&r), ring_free(&twin);
        }
    }
}

static void expect_refused(struct trib_model *m, const uint8_t *bytes, size_t len)
{
    struct trib_error err = {0};
    uint8_t *before = state_new(m);
    assert_status(trib_model_read(m, bytes, len, &err), TRIB_ERR_MISMATCH);
    assert_true(strlen(trib_error_text(&err)) > 10);
    uint8_t *after = state_new(m);
    assert_memory_equal(before, after, trib_model_bytes(m));
    free(before), free(after);
}

static void test_bad_state(void **state)
{
    static const float bad[] = {NAN, INFINITY};
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct ring r;
        ring_init(&r, text_of(form, "dense=0,train=9"), PIECE + 500, 2, true);
        draw(&r, 1);
        start(&r);
        struct trib_model *m = r.models[0];
        const size_t len = trib_model_bytes(m);
        uint8_t *bytes = state_new(m);
        expect_refused(m, bytes, len - 1);
        for (size_t at = 0; at < AE_HEAD; at++) {
            bytes[at] ^= 0x40;
            expect_refused(m, bytes, len);
            bytes[at] ^= 0x40;
        }
        for (size_t b = 0; b < 2; b++) { /* a weight; a mark of what is to be learned */
            uint8_t *weight = bytes + AE_HEAD + 400, was[4];
            memcpy(was, weight, 4), memcpy(weight, &bad[b], 4);
            expect_refused(m, bytes, len);
            memcpy(weight, was, 4);
            const size_t record = form ? 1 + LENGTH : 1 + 2 * LENGTH + LATENT;
            uint8_t *mark = bytes + len - record * sizeof(float);
            memcpy(was, mark, 4), memcpy(mark, &bad[b], 4);
            expect_refused(m, bytes, len);
            memcpy(mark, was, 4);
        }
        free(bytes);
        ring_free(&r);
    }
}

/* ---- what comes from others ------------------------------------------------------------ */

/* A share that is none: nothing is touched outside of the chunk, the result is 0. */
static void test_bad_share(void **state)
{
    static const float bad[] = {NAN,  INFINITY, -1.0f, 0.5f, 1e30f, 1270.0f,
                                -0.5f, 500.0f /* outside of the short chunk */};
    (void)state;
    for (int form = 0; form < 2; form++) {
        for (size_t b = 0; b < 8; b++) {
            for (size_t at = 0; at < 3; at++) { /* scale, number, a position */
                struct ring r;
                ring_coded(&r, form, PIECE + 500, 2, false, NULL);
                const struct trib_model_chunk c = chunk_of(&r, 1);
                float *share = share_of(&r, 1), *x = calloc(500, sizeof *x);
                share[0] = 1, share[1] = 3;
                share[2] = 1, share[3] = 499, share[4] = 7;
                share[at] = bad[b];
                for (int k = 0; k < 2; k++)
                    trib_model_begin(r.models[k], 9);
                trib_model_settle(r.models[0], &c, share);
                const bool taken = at == 0 && bad[b] > 0 && isfinite(bad[b]);
                assert_true(share[1] == (taken ? 3.0f : 0.0f));
                uint8_t *word = malloc(trib_codec_bound(r.codec, PIECE));
                for (size_t i = 0; i < 500; i++)
                    r.x[0][PIECE + i] = 1;
                const size_t len = encode_own(&r, 0, &c, word);
                assert_status(trib_model_result(r.models[0], &c, word, len, x), TRIB_OK);
                assert_true(taken || square_sum(x, 500) == 0);
                free(word), free(x);
                ring_free(&r);
            }
        }
    }
}

/* Words cut short, lengthened, of another epoch: a status, and no bad access. */
static void test_bad_words(void **state)
{
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct ring r;
        ring_coded(&r, form, PIECE, 2, false, NULL);
        draw(&r, 1);
        start(&r);
        const struct trib_model_chunk c = chunk_of(&r, 0);
        uint8_t *word = malloc(trib_codec_bound(r.codec, PIECE) + 8);
        float *x = malloc(PIECE * sizeof *x);
        const size_t len = encode_own(&r, 0, &c, word);
        for (size_t cut = 0; cut < len; cut += 3) {
            uint8_t *exact = malloc(cut);
            memcpy(exact, word, cut);
            assert_status(trib_model_result(r.models[0], &c, exact, cut, x), TRIB_ERR_CODEC);
            free(exact);
        }
        assert_status(trib_model_result(r.models[0], &c, word, len + 4, x), TRIB_ERR_CODEC);
        assert_status(trib_model_result(r.models[0], &c, word, len, x), TRIB_OK);
        word[0] ^= 1;
        assert_status(trib_model_result(r.models[0], &c, word, len, x), TRIB_ERR_CODEC);
        free(word), free(x);
        ring_free(&r);
    }
}

/* ---- refusals, sizes -------------------------------------------------------------------- */

static void expect_no_model(const char *text, size_t piece, int ranks, const char *says)
{
    struct trib_error err = {0};
    struct trib_codec *c = codec_of(text);
    struct trib_model *m = NULL;
    const struct trib_model_opts opts = {.total = 2 * piece, .piece = piece, .ranks = ranks};
    assert_status(trib_model_create(c, &opts, &err, &m), TRIB_ERR_CODEC);
    assert_null(m);
    if (!strstr(trib_error_text(&err), says))
        fail_msg("\"%s\" does not say \"%s\"", trib_error_text(&err), says);
    trib_codec_destroy(c);
}

static void test_refusals(void **state)
{
    (void)state;
    for (int form = 0; form < 2; form++) {
        expect_no_model(forms[form], 16320, 2, "at least 31000 elements");
        expect_no_model(forms[form], 16320, 2, "or ratio=0.0019 or more");
        expect_no_model(forms[form], (1 << 24) + 64, 2, "too large");
        expect_no_model(text_of(form, "dense=1"), PIECE, 1025, "at most 1024 ranks");
    }
    struct trib_error err = {0};
    struct trib_codec *c;
    assert_status(trib_codec_create("lgc-ps:ratio=0.001,innovation=0.01", NULL, &err, &c),
                  TRIB_ERR_CODEC);
    assert_non_null(strstr(trib_error_text(&err), "innovation is larger than ratio"));
    assert_status(trib_codec_create("lgc:innovation=0.01", NULL, &err, &c), TRIB_ERR_CODEC);
}

/* Bytes of each stage; a tail that is no longer than a latent goes as it is. */
static void test_bytes(void **state)
{
    static const size_t bytes[2][3] = {
        {8 + 4 * PIECE, 8 + 4 * (LENGTH + LATENT), 8 + 4 * LATENT},
        {8 + 4 * PIECE, 8 + 8 * LENGTH, 8 + 8 * 13}};
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct ring r;
        ring_init(&r, text_of(form, "dense=1,train=1"), PIECE + LATENT, 2, false);
        for (int n = 0; n < 3; n++) {
            draw(&r, 6);
            forget_residuals(&r);
            float *dense = dense_new(&r);
            start(&r);
            assert_int_equal(r.bytes, bytes[form][n]);
            assert_true(square_distance(r.result[0] + PIECE, dense + PIECE, LATENT) < 1e-10);
            free(dense);
        }
        ring_free(&r);
    }
}

/* Alone: nothing is shared with anybody, and all of it works. */
static void test_alone(void **state)
{
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct ring r;
        ring_init(&r, text_of(form, "dense=1,train=2"), 2 * PIECE, 1, true);
        for (int n = 0; n < 5; n++) {
            draw(&r, (uint64_t)n);
            start(&r);
            assert_true(finite_all(r.result[0], 2 * PIECE));
        }
        ring_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_no_dense_stage),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_mean_of_latents),
        cmocka_unit_test(test_lossless),
        cmocka_unit_test(test_innovations),
        cmocka_unit_test(test_permutation),
        cmocka_unit_test(test_residual),
        cmocka_unit_test(test_learning),
        cmocka_unit_test(test_same_as_alone),
        cmocka_unit_test(test_not_finite_training),
        cmocka_unit_test(test_not_finite_coded),
        cmocka_unit_test(test_unusual),
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_bad_state),
        cmocka_unit_test(test_bad_share),
        cmocka_unit_test(test_bad_words),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
