/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/kinds/neighbor_words.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "comm/core/communicator.h"
#include "compress/vectors/vector_words.h"

struct trib_neighbor_words {
    struct trib_codec *codec;
    struct trib_words *giving, *taking; /* used by the caller, and by the thread that
                                         * makes progress */
    const struct trib_kernels *kernels;
    size_t count;
    uint64_t seed;
    uint32_t stream;
};

/* Refuse selecting codecs: they would transfer the full weight with few elements. */
static trib_status_t check(const struct trib_codec *codec, struct trib_error *err)
{
    const struct trib_codec_info *info = trib_codec_info(codec);
    const trib_status_t st = trib_words_check(codec, err);

    if (st != TRIB_OK || (!trib_codec_selects(codec) &&
                          info->flags & (TRIB_CODEC_UNBIASED | TRIB_CODEC_ANY_OP)))
        return st;
    return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                     "codec %s drops too much of a part for neighbours: use an "
                     "unbiased codec, such as int8 or qsgd, or one that rounds each "
                     "element, such as f16",
                     info->text);
}

static trib_status_t fill(struct trib_neighbor_words *w, const char *codec,
                          struct trib_error *err)
{
    trib_status_t st = trib_codec_create(codec, NULL, err, &w->codec);

    if (st == TRIB_OK)
        st = check(w->codec, err);
    if (st == TRIB_OK && w->count > 0)
        st = trib_words_open(w->codec, w->count, &w->giving);
    if (st == TRIB_OK && w->count > 0)
        st = trib_words_open(w->codec, w->count, &w->taking);
    return st == TRIB_ERR_NO_MEMORY
               ? trib_fail(err, st, "no memory for codec %s", codec)
               : st;
}

trib_status_t trib_neighbor_words_open(struct trib_comm *comm, const char *codec,
                                       size_t count, struct trib_neighbor_words **out)
{
    struct trib_neighbor_words *w = calloc(1, sizeof(*w));
    struct trib_error err = {0};

    *out = NULL;
    if (!w)
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for codec %s",
                              codec);
    w->count = count;
    w->kernels = comm->engine.kernels;
    w->seed = (uint64_t)comm->cfg.seed;
    w->stream = (uint32_t)comm->engine.rank;
    const trib_status_t st = fill(w, codec, &err);
    if (st != TRIB_OK) {
        trib_neighbor_words_close(w);
        return trib_comm_fail(comm, st, "%s", trib_error_text(&err));
    }
    *out = w;
    return TRIB_OK;
}

void trib_neighbor_words_close(struct trib_neighbor_words *w)
{
    if (!w)
        return;
    trib_words_close(w->giving);
    trib_words_close(w->taking);
    trib_codec_destroy(w->codec);
    free(w);
}

/* A part is preceded by its encoded length. */
size_t trib_neighbor_words_bytes(const struct trib_neighbor_words *w)
{
    return sizeof(uint64_t) + (w->count ? trib_words_bound(w->giving) : 0);
}

uint64_t trib_neighbor_words_digest(const struct trib_neighbor_words *w)
{
    return w ? trib_codec_info(w->codec)->digest : 0;
}

const char *trib_neighbor_words_text(const struct trib_neighbor_words *w)
{
    return trib_codec_info(w->codec)->text;
}

void trib_neighbor_words_give(struct trib_neighbor_words *w, uint32_t edge, float *part,
                              float *x, uint8_t *out)
{
    const struct trib_words_source source = {
        .x = part,
        .key = {.seed = w->seed + edge,
                .step = w->kernels->crc32c(0, part, w->count * sizeof(*part)),
                .stream = w->stream}};
    uint8_t *words = out + sizeof(uint64_t);
    uint64_t bytes = 0;

    memset(out, 0, trib_neighbor_words_bytes(w));
    if (w->count == 0)
        return;
    for (size_t chunk = 0; chunk < trib_words_chunks(w->giving); chunk++)
        bytes += trib_words_encode(w->giving, chunk, &source, words + bytes);
    assert(bytes <= trib_words_bound(w->giving));
    memcpy(out, &bytes, sizeof(bytes));
    for (size_t i = 0; i < w->count; i++)
        x[i] += part[i];
    trib_words_begin(w->giving);
    const trib_status_t st = trib_words_take(w->giving, words, bytes, part);
    assert(st == TRIB_OK);
    (void)st;
    for (size_t i = 0; i < w->count; i++)
        x[i] -= part[i];
}

trib_status_t trib_neighbor_words_take(struct trib_neighbor_words *w,
                                       const uint8_t *words, float *part_out)
{
    uint64_t bytes;

    memcpy(&bytes, words, sizeof(bytes));
    if (bytes > trib_neighbor_words_bytes(w) - sizeof(bytes))
        return TRIB_ERR_CODEC;
    if (w->count == 0)
        return TRIB_OK;
    trib_words_begin(w->taking);
    return trib_words_take(w->taking, words + sizeof(bytes), bytes, part_out) == TRIB_OK
               ? TRIB_OK
               : TRIB_ERR_CODEC;
}
