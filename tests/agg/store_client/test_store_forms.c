/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sparse and encoded pushes and pulls of several ranks at a tribd, bit for bit against
 * plain C; refused calls; connections that are cut anywhere.
 */
#include <math.h>

#include "base/digest.h"
#include "build-config.h"
#include "compress/kernels/kernels.h"
#include "compress/vectors/vector_words.h"
#include "tests/agg/store_client/store_rig.h"
#include "tests/harness/rng_draw.h"

enum { LONG = 70001, PUSHES = 4, PAIRS = 9001, MOST_RANKS = 3 };

static void *some(const struct ranks_self *self, size_t n, size_t each)
{
    void *p = calloc(n, each);

    ranks_assert(self, p);
    return p;
}

/* Sparse --------------------------------------------------------------------------- */

/* Return an index of a rank's push: unordered, and some are repeated. */
static uint64_t index_of(int rank, int push, int i)
{
    return ((uint64_t)i * 7919 + (uint64_t)(rank * 31 + push)) % 6007 * 11;
}

/* All ranks push pairs of integers at once. */
static void sparse_sums(const struct ranks_self *self, trib_store_t *store)
{
    trib_push_opts_t o = TRIB_PUSH_OPTS_INIT;
    trib_pull_opts_t p = TRIB_PULL_OPTS_INIT;
    uint64_t *indices = some(self, PAIRS, sizeof(*indices)), version;
    int16_t *values = some(self, PAIRS, sizeof(*values));
    int16_t *x = some(self, LONG, sizeof(*x)), *right = some(self, LONG, sizeof(*x));
    trib_vector_desc_t d =
        sized(trib_vector_desc_t, .name = "pairs", .count = LONG, .dtype = TRIB_I16);

    trib_vector_t *v = make(self, store, &d);
    for (int n = 0; n < PUSHES; n++) {
        for (int r = 0; r < self->size; r++)
            for (int i = 0; i < PAIRS; i++) {
                int16_t *at = &right[index_of(r, n, i)];
                *at = (int16_t)(*at + i + n);
            }
        for (int i = 0; i < PAIRS; i++) {
            indices[i] = index_of(self->rank, n, i);
            values[i] = (int16_t)(i + n);
        }
        o.indices = indices;
        o.count = PAIRS;
        need(self, store, trib_store_push(v, values, &o, NULL), "push");
        o.count = 0; /* an empty push counts */
        need(self, store, trib_store_push(v, NULL, &o, NULL), "push of nothing");
    }
    ranks_ok(self, trib_barrier(self->comm));
    need(self, store, trib_store_pull(v, x, NULL, &version), "pull");
    ranks_assert(self, version == (uint64_t)(2 * PUSHES * self->size));
    ranks_assert(self, memcmp(x, right, LONG * sizeof(*x)) == 0);
    p.indices = indices;
    p.count = PAIRS;
    need(self, store, trib_store_pull(v, values, &p, &version), "sparse pull");
    for (int i = 0; i < PAIRS; i++)
        ranks_assert(self, values[i] == right[indices[i]]);
    p.count = 0;
    need(self, store, trib_store_pull(v, values, &p, &version), "pull of nothing");
    free(indices);
    free(values);
    free(x);
    free(right);
}

/* SGD in turns, on some elements: the others keep their values and momentum. */
static void sparse_steps(const struct ranks_self *self, trib_store_t *store)
{
    static const uint64_t indices[] = {6, 1, 6, 0};
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    trib_push_opts_t o = TRIB_PUSH_OPTS_INIT;
    double x[7], v[7] = {0}, g[4], got[4];

    for (int i = 0; i < 7; i++)
        x[i] = i;
    d.name = "rows";
    d.count = 7;
    d.dtype = TRIB_F64;
    d.rule = "sgd:rate=0.25,momentum=0.5";
    d.initial = x;
    trib_vector_t *vector = make(self, store, &d);
    for (int n = 0; n < 4 * self->size; n++) {
        const int most = n % 4 == 3 ? 2 : 4; /* of 2 pairs, neither is repeated */
        double sum[7] = {0};
        for (int i = 0; i < most; i++)
            sum[indices[i]] += g[i] = (double)(i - n) / 3;
        for (int i = 0; i < most; i++)
            if (i != 2) {
                v[indices[i]] = 0.5 * v[indices[i]] + sum[indices[i]];
                x[indices[i]] -= 0.25 * v[indices[i]];
            }
        o.indices = indices;
        o.count = (size_t)most;
        o.result = n % 2 ? g : got;
        if (n % self->size == self->rank) {
            need(self, store, trib_store_push(vector, g, &o, NULL), "push");
            for (int i = 0; i < most; i++)
                ranks_assert(self, ((double *)o.result)[i] == x[indices[i]]);
        }
        ranks_ok(self, trib_barrier(self->comm));
    }
}

/* Encoded -------------------------------------------------------------------------- */

/* A vector in plain C, with the residual of each rank. */
struct plain {
    const struct ranks_self *self;
    const char *name;
    trib_dtype_t dtype;
    const struct trib_kernels *kernels;
    float *x, *given, *decoded;
    void *wire; /* `given` in its dtype */
    float *residual[MOST_RANKS];
    uint8_t *bytes;
};

static struct plain plain_open(const struct ranks_self *self, const char *name,
                               trib_dtype_t dtype)
{
    struct plain p = {.self = self,
                      .name = name,
                      .dtype = dtype,
                      .kernels = trib_kernels_get("c"),
                      .x = some(self, LONG, 4),
                      .given = some(self, LONG, 4),
                      .decoded = some(self, LONG, 4),
                      .wire = some(self, LONG, 4),
                      .bytes = some(self, LONG, 16)};

    for (int r = 0; r < MOST_RANKS; r++)
        p.residual[r] = some(self, LONG, 4);
    return p;
}

static void plain_close(struct plain *p)
{
    for (int r = 0; r < MOST_RANKS; r++)
        free(p->residual[r]);
    free(p->x);
    free(p->given);
    free(p->decoded);
    free(p->wire);
    free(p->bytes);
}

static void round_to(const struct plain *p, float *x, void *wire)
{
    if (p->dtype == TRIB_F32) {
        memcpy(wire, x, LONG * sizeof(*x));
        return;
    }
    p->kernels->from_f32[p->dtype](wire, x, LONG);
    p->kernels->to_f32[p->dtype](x, wire, LONG);
}

static void draw(struct plain *p, int rank, int push)
{
    const struct trib_rng rng = {
        .seed = 5, .step = (uint32_t)push, .stream = (uint32_t)rank};

    for (int i = 0; i < LONG; i++)
        p->given[i] = draw_float(rng, (uint64_t)i) - 0.5f;
    round_to(p, p->given, p->wire);
}

/* Encode `n` elements, and decode them into p->decoded. */
static void code(struct plain *p, const char *text, size_t n,
                 const struct trib_words_source *s)
{
    struct trib_words_source source = *s;
    struct trib_codec *codec;
    struct trib_words *words;
    size_t bytes = 0;

    ranks_assert(p->self, trib_codec_create(text, NULL, NULL, &codec) == TRIB_OK);
    if (!(trib_codec_info(codec)->flags & TRIB_CODEC_FEEDBACK))
        source.residual = NULL;
    ranks_assert(p->self, trib_words_open(codec, n, &words) == TRIB_OK);
    ranks_assert(p->self, trib_words_bound(words) <= (size_t)LONG * 16);
    for (size_t i = 0; i < trib_words_chunks(words); i++)
        bytes += trib_words_encode(words, i, &source, p->bytes + bytes);
    trib_words_begin(words);
    ranks_assert(p->self,
                 trib_words_take(words, p->bytes, bytes, p->decoded) == TRIB_OK);
    trib_words_close(words);
    trib_codec_destroy(codec);
}

static void push_plain(struct plain *p, const char *text, int rank, uint32_t number)
{
    const struct trib_words_source source = {
        .x = p->given,
        .residual = p->residual[rank],
        .key = {.seed = trib_digest_seeded(p->name, strlen(p->name), 0),
                .step = number,
                .stream = (uint32_t)rank}};

    code(p, text, LONG, &source);
    for (int i = 0; i < LONG; i++)
        p->x[i] = (float)((double)p->x[i] + (double)p->decoded[i]);
}

static void pull_coded(struct plain *p, trib_store_t *store, trib_vector_t *v,
                       const char *text)
{
    enum { FIRST = 13, COUNT = LONG - 20 };
    trib_pull_opts_t o = TRIB_PULL_OPTS_INIT;
    uint8_t *got = some(p->self, LONG, 4);
    uint64_t version = 0;

    o.first = FIRST;
    o.count = COUNT;
    o.codec = text;
    need(p->self, store, trib_store_pull(v, got, &o, &version), text);
    const struct trib_words_source source = {
        .x = p->x + FIRST,
        .key = {.seed = trib_digest(p->name, strlen(p->name)),
                .step = (uint32_t)version,
                .stream = (uint32_t)p->self->rank,
                .index = FIRST}};
    code(p, text, COUNT, &source);
    round_to(p, p->decoded, p->wire);
    ranks_assert(p->self, memcmp(got, p->wire, COUNT * trib_dtype_size(p->dtype)) == 0);
    free(got);
}

/* Residuals equal the residuals of plain C, and the next push adds a residual that the
 * rank sets. */
static void residuals(struct plain *p, trib_store_t *store, trib_vector_t *v)
{
    enum { FIRST = 11, COUNT = LONG - 30 };
    float *got = some(p->self, LONG, sizeof(*got));
    trib_push_opts_t o = TRIB_PUSH_OPTS_INIT;
    const int rank = p->self->rank;

    need(p->self, store, trib_store_residual_get(v, 0, LONG, got), "residual");
    ranks_assert(p->self, !memcmp(got, p->residual[rank], LONG * sizeof(*got)));
    for (int i = 0; i < COUNT; i++)
        got[i] = 2 * got[FIRST + i];
    need(p->self, store, trib_store_residual_set(v, FIRST, COUNT, got), "set");
    ranks_ok(p->self, trib_barrier(p->self->comm));
    for (int r = 0; r < p->self->size; r++) {
        for (int i = 0; i < COUNT; i++)
            p->residual[r][FIRST + i] *= 2;
        draw(p, r, 100);
        o.codec = "topk:ratio=0.1";
        if (r == rank)
            need(p->self, store, trib_store_push(v, p->wire, &o, NULL), "push");
        push_plain(p, o.codec, r, 6);
        ranks_ok(p->self, trib_barrier(p->self->comm));
    }
    pull_coded(p, store, v, "bf16");
    refused(p->self, store, trib_store_residual_get(v, 1, LONG, got), TRIB_ERR_INVALID,
            "elements from 1, but it has");
    free(got);
}

/* Ranks push in turns with codecs that change from push to push, and refused pushes
 * leave residuals unchanged. */
static void coded_sums(const struct ranks_self *self, trib_store_t *store,
                       trib_dtype_t dtype, const char *name)
{
    static const char *const codecs[] = {"topk:ratio=0.01", "efsign", "qsgd:bits=4",
                                         "topk:ratio=0.05+f16", "natural"};
    trib_push_opts_t o = TRIB_PUSH_OPTS_INIT, bad = TRIB_PUSH_OPTS_INIT;
    struct plain p = plain_open(self, name, dtype);
    uint8_t *got = some(self, LONG, 4);
    trib_vector_desc_t d =
        sized(trib_vector_desc_t, .name = name, .count = LONG, .dtype = dtype,
              .push_codec = codecs[0], .pull_codec = "bf16");

    trib_vector_t *v = make(self, store, &d);
    for (int n = 0; n < 5 * self->size; n++) {
        const int rank = n % self->size, number = n / self->size + 1;
        o.codec = number == 1 ? NULL : codecs[number - 1];
        bad.codec = codecs[0];
        bad.rate = 0.5;
        draw(&p, rank, n);
        if (rank == self->rank) {
            ranks_assert(self,
                         trib_store_push(v, p.wire, &bad, NULL) == TRIB_ERR_INVALID);
            o.result = n % 2 ? got : NULL;
            need(self, store, trib_store_push(v, p.wire, &o, NULL), "push");
        }
        push_plain(&p, codecs[number - 1], rank, (uint32_t)number);
        memcpy(p.decoded, p.x, LONG * sizeof(*p.x));
        round_to(&p, p.decoded, p.wire);
        if (rank == self->rank && o.result)
            ranks_assert(self, memcmp(got, p.wire, LONG * trib_dtype_size(dtype)) == 0);
        ranks_ok(self, trib_barrier(self->comm));
    }
    pull_coded(&p, store, v, "qsgd:bits=8");
    pull_coded(&p, store, v, "bf16");
    residuals(&p, store, v);
    free(got);
    plain_close(&p);
}

/* Fields of a push that would be ignored, or that have no valid value. */
static void refused_fields(const struct ranks_self *self, trib_store_t *store,
                           trib_vector_t *v)
{
    trib_push_opts_t o = TRIB_PUSH_OPTS_INIT;
    const float x[3] = {1, 2, 3};

    o.count = 2;
    refused(self, store, trib_store_push(v, x, &o, NULL), TRIB_ERR_INVALID,
            "count is 2 but indices is NULL");
    o.count = 0;
    o.rate = (double)NAN;
    refused(self, store, trib_store_push(v, x, &o, NULL), TRIB_ERR_INVALID,
            "rate is nan");
}

/* The store remains usable after each refusal. */
static void refusals(const struct ranks_self *self, trib_store_t *store)
{
    static const uint64_t far[] = {0, 3}, near[] = {0, 2};
    trib_push_opts_t o = TRIB_PUSH_OPTS_INIT;
    trib_pull_opts_t p = TRIB_PULL_OPTS_INIT;
    trib_vector_t *v, *w = NULL;
    float x[3] = {1, 2, 3};
    trib_vector_desc_t d = sized(trib_vector_desc_t, .name = "small", .count = 3);

    v = make(self, store, &d);
    o.indices = p.indices = far;
    o.count = p.count = 2;
    refused(self, store, trib_store_push(v, x, &o, NULL), TRIB_ERR_INVALID,
            "index 3 at position 1, but the vector has 3 elements");
    refused(self, store, trib_store_pull(v, x, &p, NULL), TRIB_ERR_INVALID,
            "index 3 at position 1");
    o.indices = p.indices = near;
    o.codec = p.codec = "bf16";
    refused(self, store, trib_store_push(v, x, &o, NULL), TRIB_ERR_UNSUPPORTED,
            "encodes only whole vectors, not pairs");
    refused(self, store, trib_store_pull(v, x, &p, NULL), TRIB_ERR_UNSUPPORTED,
            "not indexed elements");
    o.codec = p.codec = "none";
    p.first = 1;
    refused(self, store, trib_store_pull(v, x, &p, NULL), TRIB_ERR_INVALID,
            "first or indices");
    o.indices = p.indices = NULL;
    p.first = p.count = o.count = 0;
    o.codec = "topq";
    refused(self, store, trib_store_push(v, x, &o, NULL), TRIB_ERR_CODEC,
            "did you mean \"topk\"");
    o.codec = "powersgd";
    refused(self, store, trib_store_push(v, x, &o, NULL), TRIB_ERR_UNSUPPORTED,
            "must be trained by all-reduces");
    p.codec = "topk";
    refused(self, store, trib_store_pull(v, x, &p, NULL), TRIB_ERR_UNSUPPORTED,
            "is biased");
    refused_fields(self, store, v);
    d.name = "other";
    d.dtype = TRIB_F64;
    d.push_codec = self->rank == 0 ? "bf16" : NULL;
    refused(self, store, trib_store_create(store, &d, &w), TRIB_ERR_UNSUPPORTED,
            self->rank == 0 ? "not f64" : "another rank failed");
    d.dtype = TRIB_F32;
    d.rule = "elastic:pull=0.5";
    w = make(self, store, &d);
    o.codec = "bf16";
    refused(self, store, trib_store_push(w, x, &o, NULL), TRIB_ERR_UNSUPPORTED,
            "push without a codec");
    o.codec = "none";
    need(self, store, trib_store_push(v, x, &o, NULL), "push");
    need(self, store, trib_store_push(w, x, &o, NULL), "push");
    /* A program built with the first headers passes a shorter struct, and nothing after
     * it is read. */
    o.codec = p.codec = "topq";
    o.size = offsetof(trib_push_opts_t, codec);
    p.size = offsetof(trib_pull_opts_t, codec);
    need(self, store, trib_store_push(v, x, &o, NULL), "push");
    need(self, store, trib_store_pull(v, x, &p, NULL), "pull");
}

static int walk(struct ranks_self *self)
{
    trib_store_t *store = NULL;

    ranks_ok(self, trib_store_open(self->comm, &store));
    sparse_sums(self, store);
    sparse_steps(self, store);
    coded_sums(self, store, TRIB_F32, "f32");
    coded_sums(self, store, TRIB_BF16, "bf16");
    refusals(self, store);
    ranks_ok(self, trib_store_free(store));
    return 0;
}

TEST_ON(test_walk, "shm", "tcp", IF_UCX("ucx"))
{
    ranks_on_daemon(walk, *state);
}

enum { THIRD = 20000 };

/* Return the value of an element after the pushes below of `size` ranks. */
static float cut_sum(int size, uint64_t i)
{
    const int listed = i % 3 == 0 && i / 3 < THIRD, x = (int)(i % 100);

    return (float)(size * (4 * x + 16 + (listed ? 4 * x + 12 : 0)));
}

/* Push pairs, in one order or the other, alternating with vectors. */
static void push_any(const struct ranks_self *self, trib_store_t *store,
                     trib_vector_t *v, uint64_t *indices, float *x)
{
    trib_push_opts_t o = TRIB_PUSH_OPTS_INIT;

    for (int n = 0; n < 2 * PUSHES; n++) {
        const bool sparse = n % 2 == 0;
        for (int i = 0; i < (sparse ? THIRD : LONG); i++) {
            indices[i] = (uint64_t)(n % 4 ? i : THIRD - 1 - i) * 3;
            x[i] = (float)((int)(sparse ? indices[i] : (uint64_t)i) % 100 + n);
        }
        o.result = n % 3 ? x : NULL;
        o.codec = sparse ? NULL : "bf16";
        o.indices = sparse ? indices : NULL;
        o.count = sparse ? THIRD : 0;
        need(self, store, trib_store_push(v, x, &o, NULL), "push");
    }
}

/* Numbers that the codecs and float32 represent: sums do not depend on their order. */
static int pushes_through(struct ranks_self *self)
{
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    trib_pull_opts_t p = TRIB_PULL_OPTS_INIT;
    trib_store_t *store = NULL;
    float *x = some(self, LONG, sizeof(*x));
    uint64_t *indices = some(self, LONG, sizeof(*indices)), version = 0;

    ranks_ok(self, trib_store_open(self->comm, &store));
    d.name = "cut";
    d.count = LONG;
    trib_vector_t *v = make(self, store, &d);
    push_any(self, store, v, indices, x);
    ranks_ok(self, trib_barrier(self->comm));
    p.indices = indices;
    p.count = THIRD;
    need(self, store, trib_store_pull(v, x, &p, &version), "pull");
    ranks_assert(self, version == (uint64_t)(2 * PUSHES * self->size));
    for (int i = 0; i < THIRD; i++)
        ranks_assert(self, x[i] == cut_sum(self->size, indices[i]));
    p.indices = NULL;
    p.count = 0;
    p.codec = "f16";
    need(self, store, trib_store_pull(v, x, &p, &version), "pull by a codec");
    for (int i = 0; i < LONG; i++) /* f16 represents these numbers */
        ranks_assert(self, x[i] == cut_sum(self->size, (uint64_t)i));
    free(x);
    free(indices);
    ranks_ok(self, trib_store_free(store));
    return 0;
}

TEST(test_cut)
{
    ranks_cut(pushes_through);
}
