/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encoded chunks that add without decoding.
 *
 * Every rank encodes its input once. From then on encoded chunks are merged and
 * forwarded, and each rank decodes the finished one. The store of a chunk is therefore
 * its accumulator: it holds the encoded input first, then the partial sum, finally the
 * result. A rank that sends its input does so before the sum overwrites the store, as
 * schedule.h requires of in-place operations (STABLE).
 */
#include <assert.h>
#include <string.h>

#include "pipeline/payload/chunk_memory.h"
#include "pipeline/payload/contribution.h"
#include "pipeline/payload/decode.h"
#include "pipeline/payload/payload_coded.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/payload/encoded_store.h"
#include "pipeline/run/engine_state.h"

/* Collect the encoded chunks of a task in rank order; an earlier sum comes first. */
static trib_status_t gather_words(struct trib_engine *e, struct trib_run *run,
                                  const struct trib_task *t, struct trib_encoded mine,
                                  size_t *n_out)
{
    struct trib_contrib_walk walk = trib_contrib_begin(e, run, t);
    struct trib_contrib_item from;

    for (*n_out = 0; trib_contrib_next(&walk, &from); ++*n_out) {
        run->payload->merge_inputs[*n_out] = mine;
        if (from.by != TRIB_BY_PEER)
            continue;
        const struct trib_frame *f = &from.entry->frame;
        if (f->kind != TRIB_FRAME_DATA || f->bytes > e->arena.slot_bytes)
            return TRIB_ERR_PROTOCOL;
        run->payload->merge_inputs[*n_out] = (struct trib_encoded){
            .src = trib_contrib_received(e, &from), .len = f->bytes};
    }
    assert(*n_out > 0 && *n_out <= t->n_contribs + 1u);
    return TRIB_OK;
}

/* Move a sum to its store: swap the buffers, or copy if peers read the store. */
static void keep_sum(struct trib_run *run, struct trib_encoded_store *s, size_t len)
{
    uint8_t *sum = run->payload->encoded;

    if (run->payload->acc_is_read) {
        memcpy(s->bytes, sum, len);
        return;
    }
    run->payload->encoded = s->bytes;
    s->bytes = sum;
}

static trib_status_t linear_reduce(struct trib_engine *e, struct trib_run *run,
                                   struct trib_task *t, const struct trib_chunk *c)
{
    bool is_input = t->flags & TRIB_TASK_INPUT, finish = t->flags & TRIB_TASK_FINISH;
    bool first = t->flags & TRIB_TASK_EMPTY;
    struct trib_encoded_store *s =
        is_input ? trib_coded_input(e, run, t, c, false) : trib_store_of(run, t, c);
    uint8_t *sum =
        run->payload->acc_is_read && first ? s->bytes : run->payload->encoded;
    size_t n, len;

    const struct trib_encoded mine = {.src = s->bytes, .len = s->len};
    trib_status_t st = gather_words(e, run, t, mine, &n);
    struct trib_merge m = {.words = run->payload->merge_inputs,
                           .n_words = n,
                           .n = c->n,
                           .piece = run->desc.piece,
                           .of_plan = true,
                           .final = finish,
                           .ranks = t->flags & TRIB_TASK_MEAN ? (uint32_t)e->ranks : 0,
                           .key = {.seed = run->desc.seed,
                                   .step = run->now.step,
                                   .stream = TRIB_STREAM_OF_SUMS,
                                   .index = c->first}};
    if (st == TRIB_OK)
        st = trib_codec_merge(run->desc.codec, &m, sum, &len);
    if (st != TRIB_OK)
        return st;
    assert(len <= run->payload->encoded_max);
    trib_payload_count_in(e, run, c, t->n_contribs);
    e->stats.sums++;
    if (sum == run->payload->encoded)
        keep_sum(run, s, len);
    s->len = (uint32_t)len;
    s->round = t->done + 1;
    return finish ? trib_coded_to_acc(e, run, c, s->bytes, s->len) : TRIB_OK;
}

/* Copy an encoded chunk. Such chunks are sent whole, so an aggregator never has their
 * sum as floats. */
static trib_status_t linear_copy_in(struct trib_engine *e, struct trib_run *run,
                                    struct trib_task *t, const struct trib_chunk *c,
                                    struct trib_entry *entry)
{
    if (entry->frame.kind == TRIB_FRAME_SUM)
        return TRIB_ERR_PROTOCOL;
    return trib_coded_copy_in(e, run, t, c, entry);
}

/* Copy the input of the only rank, through the encoding that it would send. */
static trib_status_t linear_copy(struct trib_engine *e, struct trib_run *run,
                                 struct trib_task *t, const struct trib_chunk *c)
{
    return trib_coded_copy_input(e, run, t, c, false);
}

const struct trib_payload_ops trib_payload_linear = {
    .name = "linear",
    .begin = trib_coded_begin,
    .end = trib_coded_end,
    .chunk = trib_task_chunk,
    .room = trib_coded_room,
    .ready = trib_coded_ready,
    .fill = trib_coded_fill,
    .reduce = linear_reduce,
    .copy_in = linear_copy_in,
    .copy = linear_copy,
    .sent = trib_coded_sent,
    .received = trib_coded_received,
};
