/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Create and free the payload's part of a run: the payload of its tasks, and all
 * memory, as starts allocate none.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "compress/vectors/robust_op.h"
#include "pipeline/payload/agg_sum.h"
#include "pipeline/payload/chunk_memory.h"
#include "pipeline/payload/encode_ahead.h"
#include "pipeline/payload/narrow.h"
#include "pipeline/payload/partial.h"
#include "pipeline/payload/payload.h"
#include "pipeline/payload/payload_pairs.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/payload/peer_reads.h"
#include "pipeline/payload/run_codec.h"
#include "pipeline/payload/chunk_parts.h"
#include "pipeline/payload/undo_log.h"
#include "pipeline/run/engine_state.h"

/* Return true if u also uses the encoded input of a SEND. */
static bool same_encoded(const struct trib_task *u, bool linear)
{
    if (u->kind == TRIB_TASK_SEND)
        return u->flags & TRIB_TASK_INPUT;
    return u->flags & TRIB_TASK_INPUT_SENT ||
           (linear && (u->kind == TRIB_TASK_REDUCE || u->kind == TRIB_TASK_COPY));
}

/* Mark the SENDs whose encoded chunk has another use, such as sums of chunks that add
 * linearly: they take it from the store. The others encode directly into the slot. */
static void mark_stored(struct trib_program *p, bool linear)
{
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        struct trib_task *t = &p->tasks[i];
        if (t->kind != TRIB_TASK_SEND)
            continue;
        if (t->flags & (TRIB_TASK_FINAL | TRIB_TASK_FORWARD) ||
            (linear && !(t->flags & TRIB_TASK_INPUT)))
            t->flags |= TRIB_TASK_STORED;
        if (!(t->flags & TRIB_TASK_INPUT))
            continue; /* skips an aggregator's SENDs, thousands in a large job */
        for (uint32_t j = 0; j < p->n_tasks; j++) {
            const struct trib_task *u = &p->tasks[j];
            if (i != j && u->chunk == t->chunk && same_encoded(u, linear))
                t->flags |= TRIB_TASK_STORED;
        }
    }
}

/* Return the number of elements that a run has work memory for. An aggregator that adds
 * encoded chunks linearly never decodes them, and its piece may be the whole vector. */
static size_t elements_held(const struct trib_run *run, bool serves)
{
    if (serves && trib_coded_linear(run))
        return 1;
    return run->desc.piece ? run->desc.piece : 1;
}

static trib_status_t prepare_codec(struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;
    size_t floats = elements_held(run, run->is_aggregator) * sizeof(float);
    size_t bound = trib_coded_bound(run);
    uint32_t n_chunks = d->n_chunks;

    run->payload->encoded_max = bound;
    mark_stored(&run->program, trib_coded_linear(run));
    run->payload->acc = malloc(floats);
    run->payload->stage = malloc(floats);
    run->payload->encoded = malloc(bound + 1);
    run->payload->codec_scratch =
        aligned_alloc(64, (trib_codec_scratch(d->codec, d->piece) + 64) / 64 * 64);
    run->payload->stores = calloc(n_chunks, sizeof(*run->payload->stores));
    if (!run->payload->acc || !run->payload->stage || !run->payload->encoded ||
        !run->payload->codec_scratch || !run->payload->stores ||
        trib_feedback_prepare(run) != TRIB_OK || trib_agg_sum_prepare(run) != TRIB_OK ||
        trib_share_prepare(run) != TRIB_OK)
        return TRIB_ERR_NO_MEMORY;
    for (uint32_t c = 0; c < n_chunks && !run->payload->acc_is_read; c++) {
        run->payload->stores[c].bytes = malloc(bound + 1);
        if (!run->payload->stores[c].bytes)
            return TRIB_ERR_NO_MEMORY;
    }
    return TRIB_OK;
}

static bool some_mapped(const struct trib_engine *e, const struct trib_run *run)
{
    for (uint32_t i = 0; i < run->program.n_neighbors; i++)
        if (e->links[run->program.neighbors[i].peer].mapped)
            return true;
    return false;
}

/* If the memory for results is too small, allocate at least twice its size; running
 * plans keep the old memory. Without such memory results go through slots. */
static void grow_results(struct trib_engine *e, size_t bytes)
{
    size_t more = bytes > 2 * e->results.bytes ? bytes : 2 * e->results.bytes;
    void *base;

    assert(e->results.base || !e->results.bytes);
    if (bytes <= e->results.bytes)
        return;
    if (trib_memory_alloc(&e->memories, more, &base) == TRIB_OK)
        e->results = (struct trib_agg_results){base, more};
    else
        trib_error_clear(e->err);
}

/* Return the size of a result in the memory that an aggregator advertises, in whole
 * cache lines. */
static size_t result_bytes(const struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;

    if (!trib_coded_linear(run))
        return d->piece * d->element;
    return (trib_coded_bound(run) + 63) / 64 * 64;
}

/* Return the maximum length of an encoded chunk that goes through a slot. */
static size_t longest_sent(const struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;

    return d->gathers && trib_coded_linear(run)
               ? trib_codec_star_bound(d->codec, d->piece)
               : trib_coded_bound(run);
}

/*
 * Allocate the accumulators of an aggregator: one for each chunk of a round, reused by
 * the next round (trib_run_acc). If peers read large chunks in place, allocate a window
 * of rounds.
 */
static trib_status_t prepare_results(struct trib_engine *e, struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;
    const size_t round = d->n_chunks * run->payload->acc_bytes;

    if (d->zero_copy && some_mapped(e, run)) {
        grow_results(e, e->arena.window * round);
        run->payload->acc_is_read = e->results.bytes >= e->arena.window * round;
    }
    if (!run->payload->acc_is_read && d->codec &&
        longest_sent(run) > e->arena.slot_bytes)
        return TRIB_ERR_NO_MEMORY;
    assert(run->is_aggregator);
    run->payload->acc_rounds = run->payload->acc_is_read ? e->arena.window : 1;
    run->payload->scratch_acc =
        run->payload->acc_is_read ? e->results.base : malloc(round + 64);
    if (run->payload->acc_is_read) {
        run->results = run->payload->scratch_acc;
        run->results_bytes = e->arena.window * round;
    }
    return run->payload->scratch_acc ? TRIB_OK : TRIB_ERR_NO_MEMORY;
}

/* Allocate accumulators for chunks without a result on this rank. */
static trib_status_t prepare_scratch(struct trib_engine *e, struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;
    if (d->pairs)
        return TRIB_OK; /* payload_pairs.c has its own */
    if (run->is_aggregator)
        return prepare_results(e, run);
    if (d->blocks) {
        if (d->blocks->held)
            run->payload->scratch_acc = malloc(d->blocks->held * d->element + 64);
        return run->payload->scratch_acc || !d->blocks->held ? TRIB_OK
                                                             : TRIB_ERR_NO_MEMORY;
    }
    bool foreign = d->op.coll == TRIB_REDUCE_SCATTER ||
                   (d->op.coll == TRIB_REDUCE && (int)d->op.root != e->rank);

    for (uint32_t i = 0; foreign && i < run->program.n_tasks; i++) {
        const struct trib_task *t = &run->program.tasks[i];
        bool elsewhere =
            d->op.coll == TRIB_REDUCE || t->chunk != (uint32_t)e->rank;
        if (t->kind == TRIB_TASK_REDUCE && elsewhere && !trib_share_task(run, t) &&
            !run->payload->scratch_acc) {
            run->payload->scratch_acc = malloc(d->total * d->element + 64);
            if (!run->payload->scratch_acc)
                return TRIB_ERR_NO_MEMORY;
        }
    }
    return TRIB_OK;
}

static trib_status_t prepare_sources(struct trib_run *run)
{
    const size_t most = trib_run_most_contribs(run);

    run->payload->sources = calloc(most + 1, sizeof(*run->payload->sources));
    run->payload->narrow = trib_narrow_is(run);
    if (run->payload->narrow)
        run->payload->weights = calloc(most + 1, sizeof(*run->payload->weights));
    if (trib_coded_linear(run))
        run->payload->merge_inputs =
            calloc(most + 1, sizeof(*run->payload->merge_inputs));
    const bool robust = trib_robust_is(run->desc.op.op);
    run->payload->reduces_one = robust || run->desc.is_truth;
    if (robust)
        run->payload->rows =
            malloc(trib_robust_bytes(run->desc.op.dtype, (int)most + 1));
    return run->payload->sources &&
                   (run->payload->merge_inputs || !trib_coded_linear(run)) &&
                   (run->payload->rows || !robust) &&
                   (run->payload->weights || !run->payload->narrow)
               ? TRIB_OK
               : TRIB_ERR_NO_MEMORY;
}

/* Return the growth of the memory for results, which all runs share and which is freed
 * with the engine. */
static uint64_t results_wanted(const struct trib_engine *e, const struct trib_run *run)
{
    const uint64_t bytes =
        (uint64_t)e->arena.window * run->desc.n_chunks * result_bytes(run);

    if (bytes <= e->results.bytes)
        return 0;
    return bytes > 2 * e->results.bytes ? bytes : 2 * e->results.bytes;
}

static uint64_t codec_bytes(const struct trib_run *run, bool results_read)
{
    const struct trib_run_desc *d = &run->desc;
    const uint64_t bound = trib_coded_bound(run) + 1;

    return 2 * elements_held(run, true) * sizeof(float) +
           trib_codec_scratch(d->codec, d->piece) +
           bound * (results_read ? 1 : d->n_chunks + 1) +
           d->n_chunks * sizeof(*run->payload->stores) + trib_feedback_bytes(run) +
           trib_agg_sum_bytes(run) + trib_share_bytes(run);
}

uint64_t trib_payload_bytes(const struct trib_engine *e, const struct trib_run *run,
                        uint64_t *results_out)
{
    const struct trib_run_desc *d = &run->desc;
    const struct trib_program *p = &run->program;
    const bool results_read = d->zero_copy && some_mapped(e, run);
    uint64_t bytes = results_read || d->pairs ? 0 : d->n_chunks * result_bytes(run);

    *results_out = results_read ? results_wanted(e, run) : 0;
    bytes += sizeof(*run->payload) +
             (p->n_contribs + 2) * 2 * sizeof(*run->payload->sources);
    if (d->codec)
        bytes += codec_bytes(run, results_read);
    if (d->pairs)
        bytes += trib_pairs_bytes(e, run);
    if (trib_robust_is(d->op.op))
        bytes += trib_robust_bytes(run->desc.op.dtype, (int)p->n_contribs + 1);
    if (d->quorum.need)
        bytes += trib_quorum_bytes(e, run);
    return bytes;
}

/* The only place that checks the kind of a payload. */
static void choose_payload(struct trib_run *run)
{
    run->payload_ops[0] = run->desc.blocks ? &trib_payload_blocks : &trib_payload_raw;
    if (run->desc.pairs)
        run->payload_ops[0] = &trib_payload_pairs;
    if (run->desc.codec)
        run->payload_ops[0] =
            trib_coded_linear(run) ? &trib_payload_linear : &trib_payload_coded;
    run->payload_ops[1] = &trib_payload_agreement;
}

trib_status_t trib_payload_prepare(struct trib_engine *e, struct trib_run *run)
{
    struct trib_payload_state *s = run->payload = calloc(1, sizeof(*s));

    if (!s)
        return TRIB_ERR_NO_MEMORY;
    choose_payload(run);
    s->acc_bytes = result_bytes(run);
    trib_status_t st = prepare_sources(run);
    if (st == TRIB_OK)
        st = trib_reads_prepare(run);
    if (st == TRIB_OK)
        st = prepare_scratch(e, run);
    if (st == TRIB_OK && run->desc.codec)
        st = prepare_codec(run);
    if (st == TRIB_OK && run->desc.pairs)
        st = trib_pairs_prepare(e, run);
    if (st == TRIB_OK && run->desc.quorum.need)
        st = trib_quorum_prepare(e, run);
    if (st == TRIB_OK)
        st = trib_undo_prepare(e->kernels, run);
    if (st == TRIB_OK)
        st = run->desc.codec ? trib_encode_ahead_prepare(e, run)
                             : trib_parts_prepare(e, run);
    return st;
}

void trib_payload_dispose(struct trib_run *run)
{
    struct trib_payload_state *s = run->payload;

    if (!s)
        return;
    for (uint32_t c = 0; s->stores && !s->acc_is_read && c < run->desc.n_chunks; c++)
        free(s->stores[c].bytes);
    free(s->stores);
    free(s->acc);
    free(s->stage);
    free(s->encoded);
    free(s->merge_inputs);
    free(s->codec_scratch);
    trib_share_dispose(run);
    trib_encode_ahead_dispose(run);
    trib_undo_dispose(run);
    trib_quorum_dispose(run);
    trib_feedback_dispose(run);
    trib_agg_sum_dispose(run);
    trib_pairs_dispose(run);
    if (!s->acc_is_read)
        free(s->scratch_acc);
    free(s->sources);
    trib_reads_dispose(run);
    free(s->rows);
    free(s->weights);
    free(s);
    run->payload = NULL;
}

bool trib_payload_is_plain(const struct trib_run *run)
{
    return !run->desc.codec && !run->desc.quorum.need && !run->payload->rows &&
           !run->payload->narrow && !run->payload->pairs;
}
