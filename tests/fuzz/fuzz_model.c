/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Byte 0 selects a codec that learns, byte 1 the untrusted data for its model: an
 * encoded chunk as a result, one to add to a valid one, a state, or the data of an
 * exchange; in both forms of LGC, also the data that ranks agree on (agreed). Any bytes
 * result in a status, and a model that refuses them is unchanged.
 */
#include "compress/codec.h"
#include "compress/models/model.h"
#include "tests/fuzz/reach.h"

unsigned fuzz_reached; /* accepted data */

enum { N = 200, SHORT = 90, WORD = 64, FORMS_MOST = 32 };

struct form {
    const char *text;
    int ranks;
    bool agreed; /* data also contain values that the ranks agree on, and there are two
                  * chunks */
};

/* The codecs of these inputs, followed by the other rows of codecs that learn. */
static const struct form tuned[] = {
    {"powersgd:rank=2,columns=16", 3, false},
    {"gradiveq:slice=16,kept=3,train=1,coded=9", 3, false},
    {"gradiveq:slice=16,kept=3,train=1,coded=9,centre=1+int8:bucket=8", 3, false},
    {"gradiveq:slice=16,kept=3,train=1,coded=9+qsgd:bits=5,bucket=8", 3, false},
    {"lgc:ratio=0.2,dense=0,train=1", 2, true},
    {"lgc-ps:ratio=0.2,dense=0,train=1,innovation=0.02", 2, true},
};
enum { TUNED = sizeof tuned / sizeof *tuned };

struct trained {
    struct form form;
    struct trib_codec *codec;
    struct trib_model *model;
    size_t n_agreed; /* floats */
    uint8_t *state;
    float *agreed;
    float x[N];
    uint8_t *word; /* a valid encoded chunk */
    size_t len;
};

static void *room(size_t bytes)
{
    void *p = calloc(1, bytes + 1);
    if (!p)
        abort();
    return p;
}

static size_t forms_of(struct form forms[FORMS_MOST])
{
    size_t n = TUNED;

    memcpy(forms, tuned, sizeof tuned);
    for (size_t i = 0; i < trib_codecs_count && n < FORMS_MOST; i++) {
        const size_t length = strlen(trib_codecs[i].name);
        bool known = !(trib_codecs[i].flags & TRIB_CODEC_MODEL);
        for (size_t k = 0; k < TUNED; k++)
            known |= strncmp(tuned[k].text, trib_codecs[i].name, length) == 0 &&
                     strcspn(tuned[k].text, ":+") == length;
        if (!known)
            forms[n++] = (struct form){trib_codecs[i].texts[0], 3, false};
    }
    return n;
}

static void encode(struct trained *t, const struct trib_model_chunk *c,
                   const float *agreed)
{
    const struct trib_encode in = {.x = t->x, .n = c->n, .key = {.index = c->first},
                                   .agreed = agreed, .model = t->model};

    t->len = trib_codec_encode(t->codec, &in, t->word);
}

static void teach(struct trained *t, const struct form *form)
{
    const struct trib_model_opts opts = {.total = form->agreed ? N + SHORT : N,
                                         .piece = N,
                                         .ranks = form->ranks,
                                         .seed = 3};
    const struct trib_model_chunk c = {.n = N};

    t->form = *form;
    for (int i = 0; i < N; i++)
        t->x[i] = (float)((i * 37 + i / 16 * 11) % 101) - 50.0f;
    if (trib_codec_create(form->text, NULL, NULL, &t->codec) != TRIB_OK ||
        trib_codec_for_ranks(t->codec, form->ranks, NULL) != TRIB_OK ||
        trib_model_create(t->codec, &opts, NULL, &t->model) != TRIB_OK ||
        trib_model_train(t->model, t->x, N, NULL) != TRIB_OK)
        abort();
    t->n_agreed = trib_codec_agreed_floats(t->codec, N);
    t->agreed = room(t->n_agreed * sizeof(float));
    t->word = room(trib_codec_bound(t->codec, N));
    if (!form->agreed) {
        trib_model_propose(t->model, &c, t->x, t->agreed);
        trib_model_settle(t->model, &c, t->agreed);
        encode(t, &c, t->agreed);
    }
    t->state = room(trib_model_bytes(t->model));
    trib_model_write(t->model, t->state);
}

static void take_word(struct trained *t, const struct trib_model_chunk *c,
                      const uint8_t *data, size_t size)
{
    uint8_t *src = copy_new(data, size);
    float *y = room(N * sizeof *y);
    const trib_status_t st = trib_model_result(t->model, c, src, size, y);

    if (st != TRIB_OK && st != TRIB_ERR_CODEC)
        abort();
    fuzz_reached += st == TRIB_OK;
    if (!t->form.agreed &&
        trib_codec_decode(t->codec, src, size, y, N) == TRIB_OK &&
        size != 8 + N * sizeof(float))
        abort();
    free(src);
    free(y);
}

/* The bytes after the first are agreed data and, from WORD on, the encoded chunk of one
 * of two chunks. */
static void take_agreed(struct trained *t, const uint8_t *data, size_t size)
{
    const size_t bytes = t->n_agreed * sizeof(float), word = size < WORD ? size : WORD;
    float *agreed = room(bytes), *y = room(N * sizeof *y);
    struct trib_model_chunk c = {.n = N, .agreed = agreed};

    if (size && data[0] & 1)
        c.first = N, c.n = SHORT;
    for (size_t i = 1; i < word && i <= t->n_agreed; i++) /* mostly integers, otherwise
                                                           * nothing passes the first
                                                           * checks */
        agreed[i - 1] = (float)data[i];
    if (size && data[0] & 2)
        memcpy(agreed, data, word);
    trib_model_settle(t->model, &c, agreed);
    if (!t->len || (size && data[0] & 4)) { /* slow */
        encode(t, &c, agreed);
        if (trib_model_result(t->model, &c, t->word, t->len, y) != TRIB_OK)
            abort();
    }
    take_word(t, &c, data + word, size - word);
    free(agreed);
    free(y);
}

static void take_result(struct trained *t, const uint8_t *data, size_t size)
{
    const struct trib_model_chunk c = {.n = N, .agreed = t->agreed};

    take_word(t, &c, data, size);
}

static void take_training(struct trained *t, const uint8_t *data, size_t size)
{
    trib_model_begin(t->model, 1);
    take_agreed(t, data, size);
    trib_model_begin(t->model, 2);
    t->len = 0;
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
                                     .ranks = (uint32_t)t->form.ranks};
        size_t len = 0;
        const trib_status_t st = trib_codec_merge(t->codec, &m, sum, &len);
        if (st == TRIB_OK && len > trib_codec_bound(t->codec, N))
            abort();
        fuzz_reached += st == TRIB_OK;
    }
    free(src);
    free(sum);
}

static void restore(struct trained *t)
{
    if (trib_model_read(t->model, t->state, trib_model_bytes(t->model), NULL) !=
        TRIB_OK)
        abort();
}

/* Change some bytes of a valid state, so that not every input is refused for its
 * length. The first bytes are the position. */
static void read_state(struct trained *t, const uint8_t *data, size_t size)
{
    const size_t bytes = trib_model_bytes(t->model), where = t->form.agreed ? 3 : 2;
    uint8_t *src = copy_new(t->state, bytes), *after = room(bytes);
    size_t at = 0;

    restore(t); /* other data has changed it */
    for (size_t i = 0; i < where && i < size; i++)
        at = (at << 8 | data[i]) % bytes;
    for (size_t i = where; i < size && at + i - where < bytes; i++)
        src[at + i - where] = data[i];
    if (trib_model_read(t->model, src, bytes, NULL) != TRIB_OK) {
        trib_model_write(t->model, after);
        if (memcmp(after, t->state, bytes) != 0)
            abort();
    } else {
        fuzz_reached++;
        restore(t);
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

    if (t->form.agreed) {
        trib_model_begin(t->model, 1);
        take_agreed(t, data, size);
        if (!trib_model_exchange(t->model, 2, sum))
            abort();
    } else if (n > 0) {
        sum[0] = 1.0f;
    }
    memcpy(sum, data, size < n * sizeof *sum ? size : n * sizeof *sum);
    if (n > 0)
        fuzz_reached += trib_model_exchanged(t->model, sum, NULL) == TRIB_OK;
    free(sum);
    if (t->form.agreed) {
        trib_model_begin(t->model, 2);
        t->len = 0;
        restore(t);
    }
}

typedef void (*give_fn)(struct trained *t, const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const give_fn plain[] = {take_result, merge, read_state, take_exchanged};
    static const give_fn agreed[] = {take_agreed, take_training, merge, read_state,
                                     take_exchanged};
    static struct trained trained[FORMS_MOST];
    struct form forms[FORMS_MOST];

    if (size < 2)
        return 0;
    const size_t at = data[0] % forms_of(forms);
    struct trained *t = &trained[at];
    if (!t->codec)
        teach(t, &forms[at]);
    if (!t->len)
        take_agreed(t, (const uint8_t[]){0, 1, 3, 5, 9, 70}, 6);
    const give_fn give =
        t->form.agreed ? agreed[data[1] % 5] : plain[data[1] % 4];
    give(t, data + 2, size - 2);
    if (!t->form.agreed)
        restore(t);
    return 0;
}
