/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Byte 0 chooses a codec, byte 1 what strangers give its model: a word as the result of
 * a chunk, a word that is to be added to a valid one, a state, or what was exchanged.
 * Any bytes give a status; a model that refuses is what it was.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compress/codec.h"
#include "compress/models/model.h"
#include "tests/fuzz/reach.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

unsigned fuzz_reached; /* gifts that were taken */

static const char *const texts[] = {
    "powersgd:rank=2,columns=16",
    "gradiveq:slice=16,kept=3,train=1,coded=9",
    "gradiveq:slice=16,kept=3,train=1,coded=9,centre=1+int8:bucket=8",
    "gradiveq:slice=16,kept=3,train=1,coded=9+qsgd:bits=5,bucket=8",
};
enum { TEXTS = sizeof texts / sizeof *texts, N = 200, RANKS = 3 };

enum gift { RESULT, MERGE, STATE, EXCHANGED, GIFTS };

struct trained {
    struct trib_codec *codec;
    struct trib_model *model;
    uint8_t *state;
    float *share;
    uint8_t *word; /* a valid one */
    size_t len;
};

static void *room(size_t bytes)
{
    void *p = calloc(1, bytes + 1);
    if (!p)
        abort();
    return p;
}

static void *copy_new(const void *src, size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p)
        abort();
    if (bytes)
        memcpy(p, src, bytes);
    return p;
}

static void teach(struct trained *t, const char *text)
{
    const struct trib_model_opts opts = {
        .total = N, .piece = N, .ranks = RANKS, .seed = 3};
    const struct trib_model_chunk c = {.n = N};
    float x[N];

    for (int i = 0; i < N; i++)
        x[i] = (float)((i * 37 + i / 16 * 11) % 101) - 50.0f;
    if (trib_codec_create(text, NULL, NULL, &t->codec) != TRIB_OK ||
        trib_codec_for_ranks(t->codec, RANKS, NULL) != TRIB_OK ||
        trib_model_create(t->codec, &opts, NULL, &t->model) != TRIB_OK ||
        trib_model_train(t->model, x, N, NULL) != TRIB_OK)
        abort();
    t->share = room(trib_codec_agreed_floats(t->codec, N) * sizeof(float));
    trib_model_propose(t->model, &c, x, t->share);
    trib_model_settle(t->model, &c, t->share);
    t->word = room(trib_codec_bound(t->codec, N));
    const struct trib_encode in = {
        .x = x, .n = N, .agreed = t->share, .model = t->model};
    t->len = trib_codec_encode(t->codec, &in, t->word);
    t->state = room(trib_model_bytes(t->model));
    trib_model_write(t->model, t->state);
}

static void take_result(struct trained *t, const uint8_t *data, size_t size)
{
    const struct trib_model_chunk c = {.n = N, .agreed = t->share};
    uint8_t *src = copy_new(data, size);
    float *y = room(N * sizeof *y);
    const trib_status_t st = trib_model_result(t->model, &c, src, size, y);

    if (st != TRIB_OK && st != TRIB_ERR_CODEC)
        abort();
    fuzz_reached += st == TRIB_OK;
    if (trib_codec_decode(t->codec, src, size, y, N) == TRIB_OK &&
        size != 8 + N * sizeof(float))
        abort();
    free(src);
    free(y);
}

static void merge(struct trained *t, const uint8_t *data, size_t size)
{
    uint8_t *src = copy_new(data, size), *sum = room(trib_codec_bound(t->codec, N));
    struct trib_encoded words[] = {{t->word, t->len}, {src, size}};

    for (size_t count = 1; count <= 2; count++) {
        const struct trib_merge m = {.words = words + 2 - count,
                                     .n_words = count,
                                     .n = N,
                                     .piece = N,
                                     .final = true,
                                     .ranks = RANKS};
        size_t len = 0;
        const trib_status_t st = trib_codec_merge(t->codec, &m, sum, &len);
        if (st == TRIB_OK && len > trib_codec_bound(t->codec, N))
            abort();
        fuzz_reached += st == TRIB_OK;
    }
    free(src);
    free(sum);
}

/* Cut or filled up with what it had: so that not all of it is refused for its
 * length. */
static void read_state(struct trained *t, const uint8_t *data, size_t size)
{
    const size_t bytes = trib_model_bytes(t->model);
    uint8_t *src = copy_new(t->state, bytes), *after = room(bytes);
    const size_t at = size > 1 ? ((size_t)data[0] << 8 | data[1]) % bytes : 0;

    for (size_t i = 2; i < size && at + i - 2 < bytes; i++)
        src[at + i - 2] = data[i];
    if (trib_model_read(t->model, src, bytes, NULL) != TRIB_OK) {
        trib_model_write(t->model, after);
        if (memcmp(after, t->state, bytes) != 0)
            abort();
    } else {
        fuzz_reached++;
    }
    if (trib_model_read(t->model, data, size, NULL) == TRIB_OK && size != bytes)
        abort();
    free(src);
    free(after);
}

static void take_exchanged(struct trained *t, const uint8_t *data, size_t size)
{
    const size_t n = trib_model_exchange_floats(t->model);
    float *sum = room(n * sizeof *sum);

    if (n > 0)
        sum[0] = 1.0f;
    memcpy(sum, data, size < n * sizeof *sum ? size : n * sizeof *sum);
    if (n > 0)
        fuzz_reached += trib_model_exchanged(t->model, sum, NULL) == TRIB_OK;
    free(sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct trained trained[TEXTS];

    if (size < 2)
        return 0;
    struct trained *t = &trained[data[0] % TEXTS];
    if (!t->codec)
        teach(t, texts[data[0] % TEXTS]);
    static void (*const give[GIFTS])(struct trained * t, const uint8_t *data,
                                     size_t size) = {take_result, merge, read_state,
                                                     take_exchanged};
    give[data[1] % GIFTS](t, data + 2, size - 2);
    if (trib_model_read(t->model, t->state, trib_model_bytes(t->model), NULL) !=
        TRIB_OK)
        abort();
    return 0;
}
