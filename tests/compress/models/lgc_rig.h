/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks in one process whose plans have LGC as their model: shares, encoded chunks and
 * exchanges are summed as in a plan.
 */
#ifndef TESTS_COMPRESS_MODELS_LGC_RIG_H
#define TESTS_COMPRESS_MODELS_LGC_RIG_H

#include "compress/models/autoencoder.h"
#include "compress/models/model.h"
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
    float *shares; /* agreed shares of all chunks */
    size_t share, chunks;
    size_t bytes; /* of the first encoded chunk */
    const int *order; /* order of summing; NULL: by rank */
};

static inline struct trib_codec *codec_of(const char *text)
{
    struct trib_error err = {0};
    struct trib_codec *c;
    if (trib_codec_create(text, NULL, &err, &c) != TRIB_OK)
        fail_msg("%s", trib_error_text(&err));
    return c;
}

static inline void models_new(struct ring *r)
{
    for (int k = 0; k < r->ranks; k++) {
        struct trib_error err = {0};
        r->opts.rank = k;
        if (trib_model_create(r->codec, &r->opts, &err, &r->models[k]) != TRIB_OK)
            fail_msg("%s", trib_error_text(&err));
    }
}

static inline void models_free(struct ring *r)
{
    for (int k = 0; k < r->ranks; k++)
        trib_model_destroy(r->models[k]);
}

static inline void ring_init(struct ring *r, const char *text, size_t total, int ranks,
                             bool mean)
{
    struct trib_error err = {0};
    *r = (struct ring){.codec = codec_of(text), .ranks = ranks};
    r->opts = (struct trib_model_opts){
        .total = total, .piece = PIECE, .ranks = ranks, .mean = mean, .seed = 7};
    assert_ok(trib_codec_for_ranks(r->codec, ranks, &err));
    r->share = trib_codec_agreed_floats(r->codec, PIECE);
    r->chunks = (total + PIECE - 1) / PIECE;
    r->shares = calloc(r->chunks * r->share, sizeof(float));
    for (int k = 0; k < ranks; k++) {
        r->x[k] = calloc(total, sizeof(float));
        r->residual[k] = calloc(total, sizeof(float));
        r->result[k] = calloc(total, sizeof(float));
    }
    models_new(r);
}

static inline void ring_free(struct ring *r)
{
    models_free(r);
    for (int k = 0; k < r->ranks; k++)
        free(r->x[k]), free(r->residual[k]), free(r->result[k]);
    free(r->shares);
    trib_codec_destroy(r->codec);
}

/* Run the exchange of the ranks before a start; all of them take part, or none. */
static inline void exchange(struct ring *r)
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
        assert_ok(trib_model_exchanged(r->models[k], sum, &err));
    free(sum), free(own);
}

static inline float *share_of(const struct ring *r, size_t chunk)
{
    return r->shares + chunk * r->share;
}

static inline struct trib_model_chunk chunk_of(const struct ring *r, size_t i)
{
    const size_t left = r->opts.total - i * PIECE;
    return (struct trib_model_chunk){i * PIECE, left < PIECE ? left : PIECE,
                                     share_of(r, i)};
}

/* Sum the ranks' shares. All ranks derive the same agreed share from the sum. */
static inline void agree(struct ring *r, size_t i)
{
    const struct trib_model_chunk c = chunk_of(r, i);
    float *sum = share_of(r, i);
    float *own = malloc(r->share * sizeof *own);
    memset(sum, 0, r->share * sizeof *sum);
    for (int k = 0; k < r->ranks; k++) {
        float *p = malloc(c.n * sizeof *p);
        for (size_t j = 0; j < c.n; j++)
            p[j] = r->residual[k][c.first + j] + r->x[k][c.first + j];
        trib_model_propose(r->models[k], &c, p, own);
        for (size_t j = 0; j < r->share; j++)
            sum[j] += own[j];
        free(p);
    }
    float *settled = malloc(r->share * sizeof *settled);
    memcpy(settled, sum, r->share * sizeof *sum);
    trib_model_settle(r->models[0], &c, settled);
    for (int k = 1; k < r->ranks; k++) {
        memcpy(own, sum, r->share * sizeof *own);
        trib_model_settle(r->models[k], &c, own);
        assert_memory_equal(own, settled, r->share * sizeof *own);
    }
    memcpy(sum, settled, r->share * sizeof *sum);
    free(own), free(settled);
}

static inline size_t encode_own(struct ring *r, int k, const struct trib_model_chunk *c,
                                uint8_t *dst)
{
    const struct trib_encode in = {.x = r->x[k] + c->first,
                                   .n = c->n,
                                   .mode = TRIB_ENCODE_CONTRIBUTION,
                                   .key = {.index = c->first, .step = r->step},
                                   .agreed = c->agreed,
                                   .model = r->models[k]};
    return trib_codec_encode_ef(r->codec, &in, r->residual[k] + c->first, dst);
}

/* Sum the encoded chunks of one chunk; each rank decodes the result. */
static inline void reduce(struct ring *r, size_t i)
{
    const struct trib_model_chunk c = chunk_of(r, i);
    const size_t bound = trib_codec_bound(r->codec, PIECE);
    uint8_t *words = malloc(((size_t)r->ranks + 1) * bound);
    uint8_t *sum = words + (size_t)r->ranks * bound;
    struct trib_encoded w[RANKS_MAX];
    size_t len;
    agree(r, i);
    for (int o = 0; o < r->ranks; o++) {
        const int k = r->order ? r->order[o] : o;
        uint8_t *dst = words + (size_t)k * bound;
        w[o] = (struct trib_encoded){dst, encode_own(r, k, &c, dst)};
        assert_true(w[o].len <= bound);
        r->bytes = i == 0 ? w[o].len : r->bytes;
    }
    const struct trib_merge m = {.words = w,
                                 .n_words = (size_t)r->ranks,
                                 .n = c.n,
                                 .piece = PIECE,
                                 .final = true,
                                 .ranks = r->opts.mean ? (uint32_t)r->ranks : 0};
    assert_ok(trib_codec_merge(r->codec, &m, sum, &len));
    for (int k = 0; k < r->ranks; k++) {
        assert_ok(
            trib_model_result(r->models[k], &c, sum, len, r->result[k] + c.first));
        assert_memory_equal(r->result[k] + c.first, r->result[0] + c.first,
                            c.n * sizeof(float));
    }
    free(words);
}

/* A start of the plan, the chunks in some order. */
static inline void start(struct ring *r)
{
    r->step++;
    exchange(r);
    for (int k = 0; k < r->ranks; k++)
        trib_model_begin(r->models[k], r->step);
    for (size_t i = 0; i < r->chunks; i++)
        reduce(r, (i + r->step) % r->chunks);
}

static inline uint8_t *state_new(const struct trib_model *m)
{
    uint8_t *bytes = malloc(trib_model_bytes(m));
    trib_model_write(m, bytes);
    return bytes;
}

/* Return the weights and the state of the optimizer, which are the same on all
 * ranks. */
static inline uint8_t *weights_new(const struct ring *r)
{
    const bool ps = strstr(trib_codec_info(r->codec)->text, "lgc-ps");
    const size_t floats =
        ENCODER_WEIGHTS +
        (ps ? (size_t)r->ranks * (DECODER_WEIGHTS + 1) : DECODER_WEIGHTS);
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

static inline bool same_weights(const struct ring *r, const uint8_t *a)
{
    uint8_t *b = weights_new(r);
    const bool same = memcmp(a, b, trib_model_bytes(r->models[0])) == 0;
    free(b);
    return same;
}

/* ---- contributions of ranks ------------------------------------------------------ */

/* Draw correlated gradients, like those of data-parallel ranks. */
static inline void draw(struct ring *r, uint64_t seed)
{
    for (int k = 0; k < r->ranks; k++)
        for (size_t i = 0; i < r->opts.total; i++)
            r->x[k][i] =
                normal_at(seed, i) + 0.2f * normal_at(seed + 100 + (uint64_t)k, i);
}

static inline void forget_residuals(struct ring *r)
{
    for (int k = 0; k < r->ranks; k++)
        memset(r->residual[k], 0, r->opts.total * sizeof(float));
}

/* Return the sum, or mean, of the inputs: contribution and residual. */
static inline float *dense_new(const struct ring *r)
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
static inline uint8_t *chosen_new(const struct ring *r)
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
static inline double error_at_chosen(const struct ring *r, const float *dense)
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
static inline const char *text_of(int form, const char *params)
{
    static char text[160];
    snprintf(text, sizeof text, "%s:ratio=0.1,%s%s", forms[form], params,
             form ? ",innovation=0.01" : "");
    return text;
}

/* In the last stage with weights that the caller gives; weights end where innovations
 * do. */
static inline void ring_coded_by(struct ring *r, int form, const char *params,
                                 size_t total, int ranks, bool mean,
                                 void (*set)(float *weights, int ranks))
{
    ring_init(r, text_of(form, params), total, ranks, mean);
    struct trib_error err = {0};
    uint8_t *bytes = state_new(r->models[0]);
    if (set) {
        const size_t n = ENCODER_WEIGHTS + (form ? (size_t)ranks * (DECODER_WEIGHTS + 1)
                                                 : DECODER_WEIGHTS);
        memset(bytes + AE_HEAD, 0, n * sizeof(float));
        set((float *)(void *)(bytes + AE_HEAD), ranks);
    }
    for (int k = 0; k < ranks; k++)
        assert_ok(
            trib_model_read(r->models[k], bytes, trib_model_bytes(r->models[k]), &err));
    free(bytes);
    r->step = 5; /* nothing was gathered before */
}

static inline void ring_coded(struct ring *r, int form, size_t total, int ranks,
                              bool mean, void (*set)(float *weights, int ranks))
{
    ring_coded_by(r, form, "dense=0,train=1", total, ranks, mean, set);
}

static inline bool finite_all(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

#endif
