/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Byte 0 chooses a form of LGC and byte 1 what strangers give its model: a share and a
 * word of a chunk, a word that is to be added to a valid one, a state, or what was
 * exchanged. Any bytes give a status; a model that refuses is what it was.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compress/codec.h"
#include "compress/models/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const texts[] = {
    "lgc:ratio=0.2,dense=0,train=1",
    "lgc-ps:ratio=0.2,dense=0,train=1,innovation=0.02",
};
enum {
    TEXTS = sizeof texts / sizeof *texts,
    PIECE = 200,
    SHORT = 90,
    RANKS = 2,
    WORD = 64
};

enum gift { RESULT, TRAINING, MERGE, STATE, EXCHANGED, GIFTS };

struct trained {
    struct trib_codec *codec;
    struct trib_model *model;
    size_t share; /* floats */
    uint8_t *state;
    float x[PIECE];
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

/* exactly `bytes`, so that a sanitizer sees one byte more */
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
        .total = PIECE + SHORT, .piece = PIECE, .ranks = RANKS, .seed = 3};

    for (int i = 0; i < PIECE; i++)
        t->x[i] = (float)((i * 37 + i / 16 * 11) % 101) - 50.0f;
    if (trib_codec_create(text, NULL, NULL, &t->codec) != TRIB_OK ||
        trib_codec_for_ranks(t->codec, RANKS, NULL) != TRIB_OK ||
        trib_model_create(t->codec, &opts, NULL, &t->model) != TRIB_OK ||
        trib_model_train(t->model, t->x, PIECE, NULL) != TRIB_OK)
        abort();
    t->share = trib_codec_agreed_floats(t->codec, PIECE);
    t->word = room(trib_codec_bound(t->codec, PIECE));
    t->state = room(trib_model_bytes(t->model));
    trib_model_write(t->model, t->state);
}

/* Bytes behind the first are the share and, from WORD on, the word of one of two
 * chunks. */
static void take_result(struct trained *t, const uint8_t *data, size_t size)
{
    const size_t bytes = t->share * sizeof(float), word = size < WORD ? size : WORD;
    float *share = room(bytes), *y = room(PIECE * sizeof *y);
    struct trib_model_chunk c = {.n = PIECE, .agreed = share};
    uint8_t *src = copy_new(data + word, size - word);

    if (size && data[0] & 1)
        c.first = PIECE, c.n = SHORT;
    for (size_t i = 1; i < word && i <= t->share; i++) /* mostly whole numbers: else
                                                        * nothing gets further */
        share[i - 1] = (float)data[i];
    if (size && data[0] & 2)
        memcpy(share, data, word);
    trib_model_settle(t->model, &c, share);
    if (!t->len || (size && data[0] & 4)) { /* slow */
        const struct trib_encode in = {.x = t->x, .n = c.n, .key = {.index = c.first},
                                       .agreed = share, .model = t->model};
        t->len = trib_codec_encode(t->codec, &in, t->word);
        if (trib_model_result(t->model, &c, t->word, t->len, y) != TRIB_OK)
            abort();
    }
    const trib_status_t st = trib_model_result(t->model, &c, src, size - word, y);
    if (st != TRIB_OK && st != TRIB_ERR_CODEC)
        abort();
    free(share);
    free(src);
    free(y);
}

static void take_training(struct trained *t, const uint8_t *data, size_t size)
{
    trib_model_begin(t->model, 1);
    take_result(t, data, size);
    trib_model_begin(t->model, 2);
    t->len = 0;
}

static void merge(struct trained *t, const uint8_t *data, size_t size)
{
    uint8_t *src = copy_new(data, size), *sum = room(trib_codec_bound(t->codec, PIECE));
    struct trib_encoded words[] = {{t->word, t->len}, {src, size}};

    for (size_t count = 1; count <= 2; count++) {
        const struct trib_merge m = {.words = words + 2 - count,
                                     .n_words = count,
                                     .n = PIECE,
                                     .piece = PIECE,
                                     .final = true,
                                     .ranks = RANKS};
        size_t len = 0;
        if (trib_codec_merge(t->codec, &m, sum, &len) == TRIB_OK &&
            len > trib_codec_bound(t->codec, PIECE))
            abort();
    }
    free(src);
    free(sum);
}

/* Some bytes of a valid one changed: so that not all is refused for its length. */
static void read_state(struct trained *t, const uint8_t *data, size_t size)
{
    const size_t bytes = trib_model_bytes(t->model);
    uint8_t *src = copy_new(t->state, bytes), *after = room(bytes);
    size_t at = 0;

    if (trib_model_read(t->model, t->state, bytes, NULL) != TRIB_OK)
        abort(); /* other gifts have changed it */
    for (size_t i = 0; i < 3 && i < size; i++)
        at = (at << 8 | data[i]) % bytes;
    for (size_t i = 3; i < size && at + i - 3 < bytes; i++)
        src[at + i - 3] = data[i];
    if (trib_model_read(t->model, src, bytes, NULL) != TRIB_OK) {
        trib_model_write(t->model, after);
        if (memcmp(after, t->state, bytes) != 0)
            abort();
    } else if (trib_model_read(t->model, t->state, bytes, NULL) != TRIB_OK) {
        abort();
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

    trib_model_begin(t->model, 1);
    take_result(t, data, size);
    if (!trib_model_exchange(t->model, 2, sum))
        abort();
    memcpy(sum, data, size < n * sizeof *sum ? size : n * sizeof *sum);
    (void)trib_model_exchanged(t->model, sum, NULL);
    trib_model_begin(t->model, 2);
    t->len = 0;
    free(sum);
    if (trib_model_read(t->model, t->state, trib_model_bytes(t->model), NULL) !=
        TRIB_OK)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct trained trained[TEXTS];

    if (size < 2)
        return 0;
    struct trained *t = &trained[data[0] % TEXTS];
    if (!t->codec)
        teach(t, texts[data[0] % TEXTS]);
    if (!t->len)
        take_result(t, (const uint8_t[]){0, 1, 3, 5, 9, 70}, 6);
    static void (*const give[GIFTS])(struct trained * t, const uint8_t *data,
                                     size_t size) = {take_result, take_training, merge,
                                                     read_state, take_exchanged};
    give[data[1] % GIFTS](t, data + 2, size - 2);
    return 0;
}
