/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/agg_sum.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/engine/engine_state.h"
#include "pipeline/payload/decode.h"
#include "pipeline/payload/error_feedback.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/payload/run_codec.h"
#include "pipeline/payload/undo_log.h"
#include "pipeline/payload/word_store.h"

/* A chunk of such a codec has no more floats than fit into a slot. */
static bool wanted(const struct trib_run *run)
{
    return run->desc.codec && !trib_coded_linear(run) &&
           !(trib_codec_info(run->desc.codec)->flags & TRIB_CODEC_SPARSE) &&
           trib_feedback_feeds_back(run);
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

/* Random rounding goes by what aggregator and ranks both know: the number of the
 * operation. */
static uint32_t make_word(const struct trib_run *run, const struct trib_chunk *c,
                          const float *x, uint8_t *dst)
{
    const struct trib_encode in = {.x = x,
                                   .n = c->n,
                                   .mode = TRIB_ENCODE_CONTRIBUTION,
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

    s->len = make_word(run, c, trib_agg_sum_at(run, t->chunk), s->bytes);
    s->round = t->done + 1;
    run->payload->agg_sum->has_result[t->chunk] = true;
}

bool trib_agg_sum_goes(const struct trib_run *run, const struct trib_task *t,
                       const struct trib_chunk *c)
{
    if (!run->payload->agg_sum)
        return false;
    if (!(t->flags & TRIB_TASK_FINAL))
        return true;
    return run->payload->agg_sum->has_result[t->chunk] &&
           c->index % run->payload->agg_sum->finals[t->chunk] == t->contrib;
}

uint32_t trib_agg_sum_fill(const struct trib_run *run, const struct trib_task *t,
                           const struct trib_chunk *c, uint8_t *payload,
                           struct trib_entry *entry)
{
    entry->frame.kind = TRIB_FRAME_SUM;
    entry->frame.bytes = (uint32_t)(c->n * sizeof(float));
    memcpy(payload, trib_agg_sum_at(run, t->chunk), entry->frame.bytes);
    return entry->frame.bytes;
}

bool trib_agg_sum_valid(const struct trib_engine *e, int peer,
                        const struct trib_chunk *c, const struct trib_entry *entry,
                        size_t behind)
{
    return entry->frame.kind == TRIB_FRAME_SUM && peer >= e->ranks &&
           entry->frame.bytes == c->n * sizeof(float) + behind;
}

/* Keeps the part of a result that the code word leaves out; in a mean it counts for all
 * its ranks. */
static void keep_rest(struct trib_engine *e, struct trib_run *run,
                      const struct trib_chunk *c, uint32_t len, int ranks)
{
    const float times = run->desc.op.op == TRIB_MEAN ? (float)ranks : 1.0f;

    if (!run->payload->feedback.residual)
        return;
    trib_undo_save_state(run, c);
    (void)trib_codec_decode_add(run->desc.codec, run->payload->encoded, len, -1.0f,
                                run->payload->stage, c->n);
    e->kernels->drop_not_finite(run->payload->stage, c->n);
    e->kernels->axpy_f32(run->payload->feedback.residual + c->first,
                         run->payload->stage, times, c->n);
}

trib_status_t trib_agg_sum_take(struct trib_engine *e, struct trib_run *run,
                                const struct trib_task *t,
                                const struct trib_chunk *c, const uint8_t *payload,
                                int ranks)
{
    const size_t bytes = c->n * sizeof(float);

    if (run->is_aggregator) {
        memcpy(trib_agg_sum_at(run, t->chunk), payload, bytes);
        trib_agg_sum_finish(run, t, c);
        return TRIB_OK;
    }
    memcpy(run->payload->stage, payload, bytes);
    const uint32_t len = make_word(run, c, run->payload->stage, run->payload->encoded);
    const trib_status_t st = trib_coded_to_acc(e, run, c, run->payload->encoded, len);
    if (st == TRIB_OK)
        keep_rest(e, run, c, len, ranks);
    return st;
}
