/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/agg_sum.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/payload/decode.h"
#include "pipeline/payload/error_feedback.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/payload/run_codec.h"
#include "pipeline/payload/undo_log.h"
#include "pipeline/payload/encoded_store.h"
#include "pipeline/run/engine_state.h"

/* Return true if encoding results loses something that a rank has to keep. A chunk of
 * such a codec has no more floats than fit into a slot. */
static bool wanted(const struct trib_run *run)
{
    if (!run->desc.codec || trib_coded_linear(run))
        return false;
    const uint32_t flags = trib_codec_flags(run);
    return (!(flags & TRIB_CODEC_SPARSE) || flags & TRIB_CODEC_RESULT_LOSES) &&
           trib_feedback_feeds_back(run);
}

static bool sparse(const struct trib_run *run)
{
    return trib_codec_flags(run) & TRIB_CODEC_SPARSE;
}

uint64_t trib_agg_sum_bytes(const struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;

    return wanted(run) ? d->n_chunks * (d->piece * sizeof(float) + 2 * sizeof(uint32_t))
                       : 0;
}

trib_status_t trib_agg_sum_prepare(struct trib_run *run)
{
    struct trib_program *p = &run->program;
    const struct trib_run_desc *d = &run->desc;

    if (!run->is_aggregator || !wanted(run))
        return TRIB_OK;
    struct trib_agg_sum *s = run->payload->agg_sum = calloc(1, sizeof(*s));
    if (!s)
        return TRIB_ERR_NO_MEMORY;
    s->floats = malloc(d->n_chunks * d->piece * sizeof(float) + 1);
    s->finals = calloc(d->n_chunks, sizeof(*s->finals));
    s->has_result = calloc(d->n_chunks, sizeof(*s->has_result));
    if (!s->floats || !s->finals || !s->has_result)
        return TRIB_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < p->n_tasks; i++)
        if (p->tasks[i].kind == TRIB_TASK_SEND && p->tasks[i].flags & TRIB_TASK_FINAL)
            p->tasks[i].contrib = s->finals[p->tasks[i].chunk]++;
    return TRIB_OK;
}

float *trib_agg_sum_at(const struct trib_run *run, uint32_t chunk)
{
    assert(run->is_aggregator && chunk < run->desc.n_chunks);
    return run->payload->agg_sum->floats + (size_t)chunk * run->desc.piece;
}

void trib_agg_sum_dispose(struct trib_run *run)
{
    if (!run->payload->agg_sum)
        return;
    free(run->payload->agg_sum->floats);
    free(run->payload->agg_sum->finals);
    free(run->payload->agg_sum->has_result);
    free(run->payload->agg_sum);
}

/* Encode a sum. Random rounding is keyed by the operation's number, which the
 * aggregator and the ranks both know. */
static uint32_t make_word(const struct trib_run *run, const struct trib_chunk *c,
                          enum trib_encode_mode mode, const float *x, uint8_t *dst)
{
    const struct trib_encode in = {.x = x,
                                   .n = c->n,
                                   .total = run->desc.total,
                                   .mode = mode,
                                   .key = {.step = run->now.frame.seq,
                                           .stream = TRIB_STREAM_OF_SUMS,
                                           .index = c->first},
                                   .scratch = run->payload->codec_scratch};

    return (uint32_t)trib_codec_encode(run->desc.codec, &in, dst);
}

void trib_agg_sum_finish(struct trib_run *run, const struct trib_task *t,
                         const struct trib_chunk *c)
{
    struct trib_encoded_store *s = trib_store_of(run, t, c);

    s->len =
        make_word(run, c, TRIB_ENCODE_RESULT, trib_agg_sum_at(run, t->chunk), s->bytes);
    s->round = t->done + 1;
    run->payload->agg_sum->has_result[t->chunk] = true;
}

bool trib_agg_sum_goes(const struct trib_run *run, const struct trib_task *t,
                       const struct trib_chunk *c)
{
    if (!run->payload->agg_sum)
        return false;
    if (!(t->flags & TRIB_TASK_FINAL))
        return !sparse(run);
    return run->payload->agg_sum->has_result[t->chunk] &&
           c->index % run->payload->agg_sum->finals[t->chunk] == t->contrib;
}

uint32_t trib_agg_sum_fill(const struct trib_run *run, const struct trib_task *t,
                           const struct trib_chunk *c, uint8_t *payload,
                           struct trib_entry *entry)
{
    const float *sum = trib_agg_sum_at(run, t->chunk);

    entry->frame.kind = TRIB_FRAME_SUM;
    entry->frame.bytes = (uint32_t)(c->n * sizeof(float));
    if (sparse(run))
        entry->frame.bytes = make_word(run, c, TRIB_ENCODE_EXACT, sum, payload);
    else
        memcpy(payload, sum, entry->frame.bytes);
    return entry->frame.bytes;
}

bool trib_agg_sum_valid(const struct trib_engine *e, const struct trib_run *run,
                        int peer, const struct trib_chunk *c,
                        const struct trib_entry *entry, size_t behind)
{
    const size_t bytes = entry->frame.bytes;

    if (entry->frame.kind != TRIB_FRAME_SUM || peer < e->ranks)
        return false;
    if (sparse(run))
        return trib_codec_flags(run) & TRIB_CODEC_RESULT_LOSES && bytes >= behind &&
               bytes <= e->arena.slot_bytes;
    return bytes == c->n * sizeof(float) + behind;
}

/* Read the sum from the payload of a SUM frame. */
static trib_status_t read_sum(const struct trib_run *run, const struct trib_chunk *c,
                              struct trib_encoded sum, float *x)
{
    if (sparse(run))
        return trib_codec_decode(run->desc.codec, sum.src, sum.len, x, c->n);
    memcpy(x, sum.src, c->n * sizeof(*x));
    return TRIB_OK;
}

trib_status_t trib_agg_sum_take(struct trib_engine *e, struct trib_run *run,
                                const struct trib_task *t, const struct trib_chunk *c,
                                struct trib_encoded sum, int ranks)
{
    float *x =
        run->is_aggregator ? trib_agg_sum_at(run, t->chunk) : run->payload->stage;
    trib_status_t st = read_sum(run, c, sum, x);

    if (st == TRIB_OK && run->is_aggregator)
        trib_agg_sum_finish(run, t, c);
    if (st != TRIB_OK || run->is_aggregator)
        return st;
    const uint32_t len =
        make_word(run, c, TRIB_ENCODE_RESULT, x, run->payload->encoded);
    st = trib_coded_to_acc(e, run, c, run->payload->encoded, len);
    if (st == TRIB_OK)
        trib_feedback_keep_rest(e, run, c,
                                (struct trib_encoded){run->payload->encoded, len}, x,
                                run->desc.op.op == TRIB_MEAN ? (float)ranks : 1.0f);
    return st;
}
