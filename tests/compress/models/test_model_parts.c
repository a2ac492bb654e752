/* SPDX-License-Identifier: BSD-3-Clause */
/* A chunk that is processed in parts has the bits of one that is processed whole. */
#include "tests/harness/tribtest.h"

#include <math.h>

#include "base/error.h"
#include "base/rng.h"
#include "compress/codec.h"
#include "compress/models/model.h"

enum { N = 200300 }; /* several parts, and no whole number of rows */

static float *numbers(uint32_t stream)
{
    const struct trib_rng rng = {.seed = 7, .stream = stream};
    float *x = malloc(N * sizeof(*x));

    for (size_t i = 0; i < N; i += 4) {
        const struct trib_rng_block b = trib_rng_draw4(rng, i);
        for (size_t j = i; j < i + 4 && j < N; j++)
            x[j] = (float)(int32_t)b.word[j - i] * 0x1p-31f;
    }
    return x;
}

static float *copy_of(const float *x)
{
    float *y = malloc(N * sizeof(*y));

    memcpy(y, x, N * sizeof(*y));
    return y;
}

struct rig {
    struct trib_codec *codec;
    struct trib_model *model;
    float *x, *residual;
    size_t floats; /* that ranks share */
};

static struct rig rig_new(const char *text)
{
    const struct trib_model_opts opts = {.total = N, .piece = N, .ranks = 1, .seed = 5};
    struct rig r = {.x = numbers(1), .residual = numbers(2)};
    struct trib_error err = {0};

    if (trib_codec_create(text, NULL, &err, &r.codec) != TRIB_OK ||
        trib_codec_for_ranks(r.codec, 1, &err) != TRIB_OK ||
        trib_model_create(r.codec, &opts, &err, &r.model) != TRIB_OK)
        fail_msg("%s", trib_error_text(&err));
    trib_model_begin(r.model, 1);
    r.floats = trib_codec_agreed_floats(r.codec, N);
    return r;
}

static void rig_free(struct rig *r)
{
    trib_model_destroy(r->model);
    trib_codec_destroy(r->codec);
    free(r->x), free(r->residual);
}

/* The residual and the proposal equal the ones computed from the whole sum. */
static void check_proposal(struct rig *r, float *share)
{
    const struct trib_model_chunk c = {.n = N};
    float *sum = copy_of(r->residual), *want = calloc(r->floats, sizeof(*want));

    for (size_t i = 0; i < N; i++)
        sum[i] += r->x[i];
    trib_model_propose(r->model, &c, sum, want);
    trib_model_propose_added(r->model, &c, r->x, r->residual, share);
    assert_memory_equal(r->residual, sum, N * sizeof(*sum));
    assert_memory_equal(share, want, r->floats * sizeof(*want));
    free(sum), free(want);
}

/* The rest of the sum stays in the residual, and 0 where that is no number. */
static void check_rest(struct rig *r, const float *share)
{
    const struct trib_model_chunk c = {.n = N, .agreed = share};
    const struct trib_encode in = {
        .x = r->residual, .n = N, .total = N, .agreed = share, .model = r->model};
    float *before = copy_of(r->residual), *y = malloc(N * sizeof(*y));
    uint8_t *word = malloc(trib_codec_bound(r->codec, N));

    const size_t len = trib_codec_encode_kept(r->codec, &in, r->residual, word);
    assert_status(trib_model_result(r->model, &c, word, len, y), TRIB_OK);
    for (size_t i = 0; i < N; i++) {
        const float rest = before[i] - y[i];
        before[i] = isfinite(rest) ? rest : 0.0f;
    }
    assert_memory_equal(r->residual, before, N * sizeof(*before));
    free(before), free(y), free(word);
}

static void check(const char *text, float odd)
{
    struct rig r = rig_new(text);
    float *share = calloc(r.floats, sizeof(*share));

    r.x[N / 2] += odd;
    check_proposal(&r, share);
    trib_model_settle(r.model, &(struct trib_model_chunk){.n = N}, share);
    check_rest(&r, share);
    free(share);
    rig_free(&r);
}

TEST(test_more_rows_than_columns)
{
    check("powersgd:rank=3,columns=300", 0);
}

TEST(test_more_columns_than_rows)
{
    check("powersgd:rank=3,columns=3000", 0);
}

TEST(test_no_number)
{
    check("powersgd:rank=3,columns=300", INFINITY);
    check("powersgd:rank=3,columns=3000", NAN);
}
