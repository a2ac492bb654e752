/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/vectors/vector_words.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/minmax.h"

enum {
    LENGTH_BYTES = 4,
    /* of elements, unless the codec prescribes another length */
    CHUNK_BYTES = 256 * 1024,
    WORD_BYTES = 2 * CHUNK_BYTES, /* longest encoded chunk */
    LINE = 64,
};

struct trib_words {
    const struct trib_codec *codec;
    size_t count;
    size_t chunk; /* elements of all chunks but the last */
    size_t done; /* elements decoded so far */
    size_t have; /* bytes in `word`, the length included */
    uint8_t *scratch;
    uint8_t *word; /* an encoded chunk that is still incomplete */
};

trib_status_t trib_words_check(const struct trib_codec *codec, struct trib_error *err)
{
    const struct trib_codec_info *info = trib_codec_info(codec);

    if (info->flags & TRIB_CODEC_IDENTITY)
        return trib_fail(err, TRIB_ERR_UNSUPPORTED, "codec %s encodes nothing",
                         info->text);
    if (info->flags & TRIB_CODEC_MODEL)
        return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                         "codec %s must be trained by all-reduces and cannot encode a "
                         "single vector: use a codec without a model",
                         info->text);
    return TRIB_OK;
}

trib_status_t trib_words_check_state(const struct trib_codec *codec,
                                     struct trib_error *err)
{
    const struct trib_codec_info *info = trib_codec_info(codec);
    const trib_status_t st = trib_words_check(codec, err);

    if (st != TRIB_OK)
        return st;
    if (info->flags & (TRIB_CODEC_UNBIASED | TRIB_CODEC_ANY_OP))
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                     "codec %s is biased, and a pull has no error feedback: use an "
                     "unbiased one such as qsgd, one that rounds each element such as "
                     "bf16, or pull by indices",
                     info->text);
}

static size_t cut(const struct trib_codec *codec, size_t count)
{
    const size_t chunk =
        trib_codec_cut(codec, count, CHUNK_BYTES, WORD_BYTES, trib_codec_bound);

    return trib_min(chunk, count);
}

static size_t scratch_bytes(const struct trib_codec *codec, size_t chunk)
{
    return (trib_codec_scratch(codec, chunk) + LINE - 1) / LINE * LINE;
}

static size_t word_bytes(const struct trib_codec *codec, size_t n)
{
    return LENGTH_BYTES + trib_codec_bound(codec, n);
}

static size_t memory(const struct trib_codec *codec, size_t chunk)
{
    return (scratch_bytes(codec, chunk) + word_bytes(codec, chunk) + LINE - 1) / LINE *
           LINE;
}

size_t trib_words_memory(const struct trib_codec *codec, size_t count)
{
    return sizeof(struct trib_words) + memory(codec, cut(codec, count));
}

trib_status_t trib_words_open(const struct trib_codec *codec, size_t count,
                              struct trib_words **out)
{
    struct trib_words *w = calloc(1, sizeof(*w));

    assert(count > 0);
    *out = NULL;
    if (!w)
        return TRIB_ERR_NO_MEMORY;
    w->codec = codec;
    w->count = count;
    w->chunk = cut(codec, count);
    w->scratch = aligned_alloc(LINE, memory(codec, w->chunk));
    if (!w->scratch) {
        free(w);
        return TRIB_ERR_NO_MEMORY;
    }
    w->word = w->scratch + scratch_bytes(codec, w->chunk);
    *out = w;
    return TRIB_OK;
}

void trib_words_close(struct trib_words *words)
{
    if (words)
        free(words->scratch);
    free(words);
}

size_t trib_words_chunks(const struct trib_words *words)
{
    return (words->count - 1) / words->chunk + 1;
}

size_t trib_words_chunk(const struct trib_words *words)
{
    return words->chunk;
}

/* Return the elements of the chunk that starts at element `first`. */
static size_t chunk_at(const struct trib_words *w, size_t first)
{
    return trib_min(w->chunk, w->count - first);
}

size_t trib_words_bound(const struct trib_words *words)
{
    const size_t whole = trib_words_chunks(words) - 1;

    return whole * word_bytes(words->codec, words->chunk) +
           word_bytes(words->codec, chunk_at(words, whole * words->chunk));
}

size_t trib_words_encode(struct trib_words *words, size_t chunk,
                         const struct trib_words_source *source, uint8_t *out)
{
    const size_t first = chunk * words->chunk;
    struct trib_encode in = {.x = source->x + first,
                             .n = chunk_at(words, first),
                             .total = source->total ? source->total : words->count,
                             .mode = TRIB_ENCODE_CONTRIBUTION,
                             .key = source->key,
                             .scratch = words->scratch};

    in.key.index += first;
    const size_t len =
        source->residual
            ? trib_codec_encode_ef(words->codec, &in, source->residual + first,
                                   out + LENGTH_BYTES)
            : trib_codec_encode(words->codec, &in, out + LENGTH_BYTES);
    for (int i = 0; i < LENGTH_BYTES; i++)
        out[i] = (uint8_t)(len >> (8 * i));
    assert(len <= trib_codec_bound(words->codec, in.n));
    return LENGTH_BYTES + len;
}

void trib_words_begin(struct trib_words *words)
{
    words->done = words->have = 0;
}

/* Return the bytes of the incoming chunk, length included, or those of its length if
 * that is not complete. */
static size_t wanted(const struct trib_words *w)
{
    size_t len = 0;

    if (w->have < LENGTH_BYTES)
        return LENGTH_BYTES;
    for (int i = 0; i < LENGTH_BYTES; i++)
        len |= (size_t)w->word[i] << (8 * i);
    return LENGTH_BYTES + len;
}

static trib_status_t end_word(struct trib_words *w, float *x)
{
    const size_t n = chunk_at(w, w->done);
    const trib_status_t st = trib_codec_decode(w->codec, w->word + LENGTH_BYTES,
                                               w->have - LENGTH_BYTES, x + w->done, n);

    w->done += n;
    w->have = 0;
    return st;
}

trib_status_t trib_words_take(struct trib_words *words, const uint8_t *bytes, size_t n,
                              float *x)
{
    while (n > 0) {
        if (words->done == words->count)
            return TRIB_ERR_CODEC;
        const size_t want = wanted(words);
        const size_t most = word_bytes(words->codec, chunk_at(words, words->done));
        if (want > most)
            return TRIB_ERR_CODEC;
        const size_t take = trib_min(n, want - words->have);
        memcpy(words->word + words->have, bytes, take);
        words->have += take;
        bytes += take;
        n -= take;
        if (words->have >= LENGTH_BYTES && words->have == wanted(words)) {
            const trib_status_t st = end_word(words, x);
            if (st != TRIB_OK)
                return st;
        }
    }
    return words->done == words->count ? TRIB_OK : TRIB_INPROGRESS;
}
