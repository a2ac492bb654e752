/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Passes of a codec over a vector. Thread t of T processes the chunks t, t + T, …
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "compress/kernels/kernels.h"
#include "compress/models/model.h"
#include "perf/codec/codec_perf.h"
#include "perf/common/samples.h"

struct chunk {
    size_t first;
    size_t n;
    uint8_t *word; /* encoded chunk of this rank */
    size_t len;
    uint8_t *other; /* encoded chunk of another rank, for linear codecs */
    size_t other_len;
    float *share;
    struct trib_carried carried; /* of a selection with feedback, kept between passes as
                                  * in a plan */
};

struct worker {
    struct codec_work *work;
    int number;
    pthread_t thread;
    void *scratch;
    uint8_t *sum;
    struct trib_model *model; /* of codecs that learn; trained before the measurement */
};

struct codec_work {
    struct trib_codec *codec;
    const struct trib_kernels *kernels;
    const float *x;
    size_t n;
    size_t piece; /* elements per chunk */
    size_t n_chunks;
    struct chunk *chunks;
    float *residual;
    float *y; /* destination of decode and copy */
    int threads;
    struct worker *workers; /* the first one is the caller */
    int started; /* the other workers */
    pthread_mutex_t lock; /* of the following fields */
    pthread_cond_t begin;
    pthread_cond_t end;
    unsigned round;
    int working;
    bool over;
    enum codec_pass pass;
    long times;
};

static bool linear(const struct codec_work *w)
{
    return trib_codec_info(w->codec)->flags & TRIB_CODEC_LINEAR &&
           !(trib_codec_info(w->codec)->flags & TRIB_CODEC_IDENTITY);
}

static bool learns(const struct codec_work *w)
{
    return trib_codec_info(w->codec)->flags & TRIB_CODEC_MODEL;
}

bool codec_work_can(const struct codec_work *w, enum codec_pass pass)
{
    if (pass == PASS_MERGE)
        return linear(w);
    if (pass == PASS_DECODE_ADD) /* codecs that learn sum encoded vectors, not decoded
                                  * ones */
        return !learns(w);
    return pass != PASS_ENCODE_EF ||
           (!trib_codec_feedback_grows(w->codec) &&
            !(trib_codec_info(w->codec)->flags & TRIB_CODEC_VOTE));
}

static size_t encode(struct worker *k, struct chunk *c, uint32_t rank, bool feedback,
                     uint8_t *dst)
{
    struct codec_work *w = k->work;
    struct trib_encode in = {.x = w->x + c->first,
                             .n = c->n,
                             .total = w->n,
                             .key = {.seed = 1, .stream = rank, .index = c->first},
                             .scratch = k->scratch,
                             .carried = feedback ? &c->carried : NULL,
                             .model = k->model};
    float *residual = feedback ? w->residual + c->first : NULL;

    if (!learns(w) && trib_codec_info(w->codec)->flags & TRIB_CODEC_AGREES) {
        in.agreed = c->share;
        if (feedback) { /* as in a plan: the scales are for input plus residual, which
                         * is kept */
            trib_codec_propose_added(w->codec, in.x, residual, c->n, c->share);
            in.x = residual;
            return trib_codec_encode_kept(w->codec, &in, residual, dst);
        }
        trib_codec_propose(w->codec, in.x, c->n, c->share);
    }
    return feedback ? trib_codec_encode_ef(w->codec, &in, residual, dst)
                    : trib_codec_encode(w->codec, &in, dst);
}

static void merge(struct worker *k, struct chunk *c)
{
    struct trib_encoded words[] = {{c->word, c->len}, {c->other, c->other_len}};
    const struct trib_merge m = {.words = words, .n_words = 2, .n = c->n,
                                 .piece = k->work->piece, .final = true};
    size_t len;

    if (trib_codec_merge(k->work->codec, &m, k->sum, &len) != TRIB_OK)
        abort(); /* cannot happen: both were just encoded */
}

static void decode(struct worker *k, struct chunk *c, float *y)
{
    const struct trib_model_chunk chunk = {.first = c->first, .n = c->n};

    if (k->model != NULL)
        (void)trib_model_result(k->model, &chunk, c->word, c->len, y);
    else
        (void)trib_codec_decode(k->work->codec, c->word, c->len, y, c->n);
}

static void do_chunk(struct worker *k, struct chunk *c)
{
    struct codec_work *w = k->work;
    float *y = w->y + c->first;

    switch (w->pass) {
    case PASS_MEMCPY:
        memcpy(y, w->x + c->first, c->n * sizeof(*y));
        break;
    case PASS_ADD:
        w->kernels->axpy_f32(y, w->x + c->first, 1.0f, c->n);
        break;
    case PASS_ENCODE:
    case PASS_ENCODE_EF:
        c->len = encode(k, c, 0, w->pass == PASS_ENCODE_EF, c->word);
        break;
    case PASS_DECODE:
        decode(k, c, y);
        break;
    case PASS_DECODE_ADD:
        (void)trib_codec_decode_add(w->codec, c->word, c->len, 1.0f, y, c->n);
        break;
    default:
        merge(k, c);
    }
}

static void do_chunks(struct worker *k)
{
    const struct codec_work *w = k->work;

    for (long time = 0; time < w->times; time++)
        for (size_t i = (size_t)k->number; i < w->n_chunks; i += (size_t)w->threads)
            do_chunk(k, &w->chunks[i]);
}

static void *work_on(void *arg)
{
    struct worker *k = arg;
    struct codec_work *w = k->work;
    unsigned seen = 0;

    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->round == seen && !w->over)
            pthread_cond_wait(&w->begin, &w->lock);
        if (w->over)
            break;
        seen = w->round;
        pthread_mutex_unlock(&w->lock);
        do_chunks(k);
        pthread_mutex_lock(&w->lock);
        if (--w->working == 0)
            pthread_cond_signal(&w->end);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

double codec_work_pass(struct codec_work *w, enum codec_pass pass, long times)
{
    double start = perf_now();

    pthread_mutex_lock(&w->lock);
    w->pass = pass;
    w->times = times;
    w->working = w->started;
    w->round++;
    pthread_cond_broadcast(&w->begin);
    pthread_mutex_unlock(&w->lock);
    do_chunks(&w->workers[0]);
    pthread_mutex_lock(&w->lock);
    while (w->working > 0)
        pthread_cond_wait(&w->end, &w->lock);
    pthread_mutex_unlock(&w->lock);
    return (perf_now() - start) / (double)times;
}

/* --- buffers --- */

static bool open_chunk(struct codec_work *w, struct chunk *c)
{
    const size_t n = learns(w) ? w->piece : c->n;
    const size_t bound = trib_codec_bound(w->codec, n);
    const size_t floats = trib_codec_agreed_floats(w->codec, n);

    c->word = malloc(bound + 1);
    c->other = linear(w) ? malloc(bound + 1) : NULL;
    c->share = malloc((floats + 1) * sizeof(*c->share));
    if (c->word == NULL || (linear(w) && c->other == NULL) || c->share == NULL)
        return false;
    memset(c->word, 0, bound + 1);
    if (linear(w))
        c->other_len = encode(&w->workers[0], c, 1, false, c->other);
    return true;
}

static bool open_model(const struct codec_work *w, struct worker *k,
                       struct trib_error *err)
{
    const struct trib_model_opts opts = {
        .total = w->n, .piece = w->piece, .ranks = 1, .seed = 1};

    return trib_model_create(w->codec, &opts, err, &k->model) == TRIB_OK &&
           trib_model_train(k->model, w->x, w->n, err) == TRIB_OK;
}

static bool open_worker(struct codec_work *w, struct worker *k, size_t piece,
                        struct trib_error *err)
{
    k->work = w;
    k->number = (int)(k - w->workers);
    k->scratch =
        aligned_alloc(64, (trib_codec_scratch(w->codec, piece) + 127) / 64 * 64);
    k->sum = malloc(trib_codec_bound(w->codec, piece) + 1);
    return k->scratch != NULL && k->sum != NULL &&
           (!learns(w) || open_model(w, k, err));
}

static bool open_all(struct codec_work *w, size_t piece, struct trib_error *err)
{
    const size_t wished = trib_codec_piece(w->codec);

    if (wished != 0)
        piece = wished < w->n ? wished : w->n;
    w->piece = piece;
    w->n_chunks = (w->n + piece - 1) / piece;
    w->chunks = calloc(w->n_chunks, sizeof(*w->chunks));
    w->workers = calloc((size_t)w->threads, sizeof(*w->workers));
    w->residual = calloc(w->n, sizeof(*w->residual));
    w->y = malloc(w->n * sizeof(*w->y));
    if (w->chunks == NULL || w->workers == NULL || w->residual == NULL || w->y == NULL)
        return false;
    memset(w->y, 0, w->n * sizeof(*w->y));
    memset(w->residual, 0, w->n * sizeof(*w->residual));
    for (int t = 0; t < w->threads; t++)
        if (!open_worker(w, &w->workers[t], piece, err))
            return false;
    for (size_t i = 0; i < w->n_chunks; i++) {
        struct chunk *c = &w->chunks[i];
        c->first = i * piece;
        c->n = w->n - c->first < piece ? w->n - c->first : piece;
        if (!open_chunk(w, c))
            return false;
    }
    return true;
}

struct codec_work *codec_work_new(const struct codec_args *args,
                                  struct trib_codec *codec, const float *x, size_t n,
                                  struct trib_error *err)
{
    const int threads = args->threads;
    struct codec_work *w = calloc(1, sizeof(*w));

    if (w == NULL) {
        (void)trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for %zu elements", n);
        return NULL;
    }
    *w = (struct codec_work){.codec = codec,
                             .kernels = trib_kernels_get(NULL),
                             .x = x,
                             .n = n,
                             .threads = threads};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->begin, NULL);
    pthread_cond_init(&w->end, NULL);
    bool ok = open_all(w, args->chunk / sizeof(*x), err);
    for (int t = 1; ok && t < threads; t++) {
        struct worker *k = &w->workers[t];
        ok = pthread_create(&k->thread, NULL, work_on, k) == 0;
        w->started += ok;
    }
    if (ok)
        return w;
    (void)trib_fail(err, TRIB_ERR_NO_MEMORY,
                    "no memory, or cannot start a thread, "
                    "with %s",
                    trib_codec_info(codec)->text); /* the first message is kept */
    codec_work_free(w);
    return NULL;
}

void codec_work_free(struct codec_work *w)
{
    pthread_mutex_lock(&w->lock);
    w->over = true;
    pthread_cond_broadcast(&w->begin);
    pthread_mutex_unlock(&w->lock);
    for (int t = 1; t <= w->started; t++)
        pthread_join(w->workers[t].thread, NULL);
    for (int t = 0; w->workers != NULL && t < w->threads; t++) {
        free(w->workers[t].scratch);
        free(w->workers[t].sum);
        trib_model_destroy(w->workers[t].model);
    }
    for (size_t i = 0; w->chunks != NULL && i < w->n_chunks; i++) {
        free(w->chunks[i].word);
        free(w->chunks[i].other);
        free(w->chunks[i].share);
    }
    pthread_cond_destroy(&w->begin);
    pthread_cond_destroy(&w->end);
    pthread_mutex_destroy(&w->lock);
    free(w->workers);
    free(w->chunks);
    free(w->residual);
    free(w->y);
    free(w);
}

size_t codec_work_bytes(const struct codec_work *w)
{
    size_t bytes = 0;

    for (size_t i = 0; i < w->n_chunks; i++)
        bytes += w->chunks[i].len;
    return bytes;
}

const float *codec_work_decoded(const struct codec_work *w)
{
    return w->y;
}
