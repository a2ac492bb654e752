/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/error.h"
#include "compress/models/model_ops.h"

struct lesson {
    struct trib_model *m;
    const float *x;
    size_t n;
    uint8_t *word;
    float *y;
    float *exchanged;
    void *scratch;
};

static trib_status_t exchange(struct lesson *l, uint32_t step, struct trib_error *err)
{
    return trib_model_exchange(l->m, step, l->exchanged)
               ? trib_model_exchanged(l->m, l->exchanged, err)
               : TRIB_OK;
}

/* Run a start on one chunk, cycling through the chunks. */
static trib_status_t take(struct lesson *l, uint32_t step)
{
    const size_t piece = l->m->opts.piece, pieces = (l->n + piece - 1) / piece;
    const size_t first = (step - 1) % pieces * piece;
    const size_t n = l->n - first < piece ? l->n - first : piece;
    const struct trib_encode in = {
        .x = l->x + first,
        .n = n,
        .key = {.seed = l->m->opts.seed, .step = step, .index = first},
        .scratch = l->scratch,
        .model = l->m};
    const size_t len = trib_codec_encode(l->m->codec, &in, l->word);
    const struct trib_model_chunk c = {.first = first, .n = n};

    return trib_model_result(l->m, &c, l->word, len, l->y);
}

static trib_status_t train(struct lesson *l, struct trib_error *err)
{
    trib_status_t status = TRIB_OK;

    for (uint32_t step = 1; status == TRIB_OK; step++) {
        status = exchange(l, step, err);
        if (status != TRIB_OK)
            break;
        trib_model_begin(l->m, step);
        if (!trib_model_learning(l->m))
            break;
        status = take(l, step);
    }
    return status;
}

trib_status_t trib_model_train(struct trib_model *m, const float *x, size_t n,
                               struct trib_error *err)
{
    const struct trib_codec *c = m->codec;
    const size_t piece = m->opts.piece;
    struct lesson l = {.m = m, .x = x, .n = n};
    trib_status_t status;

    l.word = malloc(trib_codec_bound(c, piece));
    l.y = malloc((piece + 1) * sizeof *l.y);
    l.exchanged = malloc((trib_model_exchange_floats(m) + 1) * sizeof *l.exchanged);
    l.scratch = aligned_alloc(64, (trib_codec_scratch(c, piece) + 64) / 64 * 64);
    if (!l.word || !l.y || !l.exchanged || !l.scratch)
        status = trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory to train a model");
    else
        status = n ? train(&l, err) : TRIB_OK;
    free(l.word);
    free(l.y);
    free(l.exchanged);
    free(l.scratch);
    return status;
}
