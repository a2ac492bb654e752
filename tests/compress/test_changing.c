/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encoded chunks that change while they are read, because a malicious rank shares their
 * memory with a service. The output may be wrong, but nothing outside the chunk, the
 * result or the vector is touched: an inaccessible page follows each.
 */
#include "tests/compress/guarded.h"
#include "tests/compress/vectors.h"

#include <stdatomic.h>

enum { N = 1500, CHANGES = 100000 /* of each encoded chunk */, RANKS = 9 };

/* A thread that changes bytes of an encoded chunk, mainly at its start, and restores
 * them. */
struct stranger {
    pthread_t thread;
    volatile uint8_t *word;
    size_t len;
    atomic_bool done;
};

/* The race is intended. */
__attribute__((no_sanitize("thread"))) static void *change(void *arg)
{
    struct stranger *s = arg;
    uint32_t random = 2463534242u;
    for (int i = 0; i < CHANGES; i++) {
        random ^= random << 13, random ^= random >> 17, random ^= random << 5;
        const size_t near = s->len < 16 ? s->len : 16;
        const size_t at = random % 2 ? random / 2 % near : random / 2 % s->len;
        const uint8_t was = s->word[at];
        s->word[at] = (uint8_t)(random >> 24);
        for (volatile int wait = (int)(random >> 8 & 127); wait; wait--)
            ;
        s->word[at] = was;
        for (volatile int wait = (int)(random >> 16 & 127); wait; wait--)
            ;
    }
    atomic_store(&s->done, true);
    return NULL;
}

struct words {
    struct codec_buffers own; /* never changes */
    uint8_t *changing, *sum;  /* each ends at a guard page */
};

static struct words words_new(const char *text)
{
    struct words w = {.own = buffers_new(text, NULL, N)};
    float *x = (float *)(void *)place(0, N * sizeof(float), 0);
    assert_status(trib_codec_for_ranks(w.own.codec, RANKS, NULL), TRIB_OK);
    for (size_t i = 0; i < N; i++)
        x[i] = random_f32();
    encode(&w.own, x, TRIB_ENCODE_CONTRIBUTION, 0);
    w.changing = place(1, w.own.len, 0);
    memcpy(w.changing, w.own.code, w.own.len);
    w.sum = place(2, trib_codec_bound(w.own.codec, N), 0);
    return w;
}

static void merge(const struct words *w, bool final)
{
    struct trib_encoded both[] = {{w->changing, w->own.len}, {w->own.code, w->own.len}};
    const struct trib_merge m = {
        .words = both, .n_words = 2, .n = N, .piece = N, .final = final, .ranks = 2};
    size_t len;
    if (trib_codec_merge(w->own.codec, &m, w->sum, &len) == TRIB_OK)
        assert_true(len <= trib_codec_bound(w->own.codec, N));
}

static void read_all(const struct words *w)
{
    float *y = (float *)(void *)place(3, N * sizeof(float), 0);
    (void)trib_codec_decode(w->own.codec, w->changing, w->own.len, y, N);
    (void)trib_codec_decode_add(w->own.codec, w->changing, w->own.len, 1.0f, y, N);
    if (trib_codec_info(w->own.codec)->flags & TRIB_CODEC_LINEAR) {
        merge(w, false);
        merge(w, true);
    }
}

static void read_while_it_changes(const char *text)
{
    struct words w = words_new(text);
    struct stranger s = {.word = w.changing, .len = w.own.len};
    assert_int_equal(pthread_create(&s.thread, NULL, change, &s), 0);
    while (!atomic_load(&s.done))
        read_all(&w);
    assert_int_equal(pthread_join(s.thread, NULL), 0);
    buffers_free(&w.own);
}

TEST(test_all_codecs)
{
    for (int i = 0; codec_text(i); i++)
        read_while_it_changes(codec_text(i));
}

TEST_GROUP(buffers_create, NULL)
