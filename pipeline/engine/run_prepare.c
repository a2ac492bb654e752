/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prepares a run before its first start: links, and memory that no start allocates.
 */
#include <stdlib.h>

#include "compress/robust_op.h"
#include "pipeline/engine/engine.h"
#include "pipeline/engine/short_path.h"
#include "pipeline/payload/encode_ahead.h"
#include "pipeline/payload/error_feedback.h"
#include "pipeline/payload/narrow.h"
#include "pipeline/payload/partial.h"
#include "pipeline/payload/payload.h"
#include "pipeline/payload/payload_agree.h"
#include "pipeline/payload/agg_sum.h"
#include "pipeline/payload/undo_log.h"

/* Does u take the word that a SEND has of the own contribution, too? */
static bool same_encoded(const struct trib_task *u, bool linear)
{
    if (u->kind == TRIB_TASK_SEND)
        return u->flags & TRIB_TASK_INPUT;
    return u->flags & TRIB_TASK_INPUT_SENT ||
           (linear && (u->kind == TRIB_TASK_REDUCE || u->kind == TRIB_TASK_COPY));
}

/* A SEND takes its word from the store if the same word has another use, as sums of
 * words that add have; else it is made where it is sent from. */
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
            continue; /* all of an aggregator's, which has thousands where there are
                       * many ranks */
        for (uint32_t j = 0; j < p->n_tasks; j++) {
            const struct trib_task *u = &p->tasks[j];
            if (i != j && u->chunk == t->chunk && same_encoded(u, linear))
                t->flags |= TRIB_TASK_STORED;
        }
    }
}

/* An aggregator that adds words never has the elements, which may be as many as the
 * vector has. */
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

    run->word_bytes = bound;
    mark_stored(&run->program, trib_coded_linear(run));
    run->acc = malloc(floats);
    run->stage = malloc(floats);
    run->word = malloc(bound + 1);
    run->codec_scratch =
        aligned_alloc(64, (trib_codec_scratch(d->codec, d->piece) + 64) / 64 * 64);
    run->stores = calloc(n_chunks, sizeof(*run->stores));
    if (!run->acc || !run->stage || !run->word || !run->codec_scratch ||
        !run->stores || trib_feedback_prepare(run) != TRIB_OK ||
        trib_agg_sum_prepare(run) != TRIB_OK ||
        trib_share_prepare(run) != TRIB_OK)
        return TRIB_ERR_NO_MEMORY;
    for (uint32_t c = 0; c < n_chunks && !run->values_read; c++) {
        run->stores[c].bytes = malloc(bound + 1);
        if (!run->stores[c].bytes)
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

/* Too small, they are made anew, at least twice as large; runs that have the old ones
 * keep them. Where there is no such memory results go through slots. */
static void grow_values(struct trib_engine *e, size_t bytes)
{
    size_t more = bytes > 2 * e->values.bytes ? bytes : 2 * e->values.bytes;
    void *base;

    if (bytes <= e->values.bytes)
        return;
    if (trib_memory_alloc(&e->memories, more, &base) == TRIB_OK)
        e->values = (struct trib_values){base, more};
    else
        trib_error_clear(e->err);
}

/* Bytes of a result in memory that an aggregator opens: whole lines. */
static size_t value_bytes(const struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;

    if (!trib_coded_linear(run))
        return d->piece * d->element;
    return (trib_coded_bound(run) + 63) / 64 * 64;
}

/* The longest word that goes through a slot. */
static size_t longest_sent(const struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;

    return d->gathers && trib_coded_linear(run)
               ? trib_codec_star_bound(d->codec, d->piece)
               : trib_coded_bound(run);
}

/*
 * An aggregator has a place for each chunk of a round, which the next round takes over:
 * see trib_run_acc. Of large chunks, as elements or as words that add, it has a window
 * of rounds, where peers read them.
 */
static trib_status_t prepare_values(struct trib_engine *e, struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;
    const size_t round = d->n_chunks * run->value_bytes;

    if (d->zero_copy && some_mapped(e, run)) {
        grow_values(e, e->arena.window * round);
        run->values_read = e->values.bytes >= e->arena.window * round;
    }
    if (!run->values_read && d->codec && longest_sent(run) > e->arena.slot_bytes)
        return TRIB_ERR_NO_MEMORY;
    run->value_rounds = run->values_read ? e->arena.window : 1;
    run->scratch_value = run->values_read ? e->values.base : malloc(round + 64);
    return run->scratch_value ? TRIB_OK : TRIB_ERR_NO_MEMORY;
}

/* Sums of chunks that end up elsewhere need a place of their own. */
static trib_status_t prepare_scratch(struct trib_engine *e, struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;
    if (run->is_aggregator)
        return prepare_values(e, run);
    bool foreign = d->op.coll == TRIB_REDUCE_SCATTER ||
                   (d->op.coll == TRIB_REDUCE && (int)d->op.root != e->rank);

    for (uint32_t i = 0; foreign && i < run->program.n_tasks; i++) {
        const struct trib_task *t = &run->program.tasks[i];
        bool elsewhere =
            d->op.coll == TRIB_REDUCE || t->chunk != (uint32_t)e->rank;
        if (t->kind == TRIB_TASK_REDUCE && elsewhere && !trib_share_task(run, t) &&
            !run->scratch_value) {
            run->scratch_value = malloc(d->total * d->element + 64);
            if (!run->scratch_value)
                return TRIB_ERR_NO_MEMORY;
        }
    }
    return TRIB_OK;
}

static trib_status_t prepare_sources(struct trib_run *run)
{
    const struct trib_program *p = &run->program;
    uint32_t most = 0;

    for (uint32_t i = 0; i < p->n_tasks; i++)
        if (p->tasks[i].kind == TRIB_TASK_REDUCE && p->tasks[i].n_contribs > most)
            most = p->tasks[i].n_contribs;
    run->sources = calloc((size_t)most + 1, sizeof(*run->sources));
    run->narrow = trib_narrow_is(run);
    if (run->narrow)
        run->weights = calloc((size_t)most + 1, sizeof(*run->weights));
    if (trib_coded_linear(run))
        run->words = calloc((size_t)most + 1, sizeof(*run->words));
    const bool robust = trib_robust_is(run->desc.op.op);
    if (robust)
        run->rows = malloc(trib_robust_bytes(run->desc.op.dtype, (int)most + 1));
    return run->sources && (run->words || !trib_coded_linear(run)) &&
                   (run->rows || !robust) && (run->weights || !run->narrow)
               ? TRIB_OK
               : TRIB_ERR_NO_MEMORY;
}

/* Bytes by which the memories of results grow: all runs share them, and they last as
 * long as the engine. */
static uint64_t values_wanted(const struct trib_engine *e, const struct trib_run *run)
{
    const uint64_t bytes =
        (uint64_t)e->arena.window * run->desc.n_chunks * value_bytes(run);

    if (bytes <= e->values.bytes)
        return 0;
    return bytes > 2 * e->values.bytes ? bytes : 2 * e->values.bytes;
}

static uint64_t codec_bytes(const struct trib_run *run, bool values_read)
{
    const struct trib_run_desc *d = &run->desc;
    const uint64_t bound = trib_coded_bound(run) + 1;

    return 2 * elements_held(run, true) * sizeof(float) +
           trib_codec_scratch(d->codec, d->piece) +
           bound * (values_read ? 1 : d->n_chunks + 1) +
           d->n_chunks * sizeof(*run->stores) + trib_feedback_bytes(run) +
           trib_agg_sum_bytes(run) + trib_share_bytes(run);
}

uint64_t trib_run_bytes(const struct trib_engine *e, const struct trib_run *run,
                        uint64_t *values_out)
{
    const struct trib_run_desc *d = &run->desc;
    const struct trib_program *p = &run->program;
    const bool values_read = d->zero_copy && some_mapped(e, run);
    uint64_t bytes = values_read ? 0 : d->n_chunks * value_bytes(run);

    *values_out = values_read ? values_wanted(e, run) : 0;
    bytes += (p->n_tasks + p->n_contribs + 2) *
             (sizeof(*p->tasks) + sizeof(*p->contribs) + 2 * sizeof(*run->sources));
    bytes += (uint64_t)e->size * sizeof(*p->neighbors);
    if (d->codec)
        bytes += codec_bytes(run, values_read);
    if (trib_robust_is(d->op.op))
        bytes += trib_robust_bytes(run->desc.op.dtype, (int)p->n_contribs + 1);
    if (d->quorum.need)
        bytes += trib_quorum_bytes(e, run);
    return bytes;
}

/* The one place where the kind of a payload is asked for. */
static void choose_payload(struct trib_run *run)
{
    run->payload[0] = &trib_payload_raw;
    if (run->desc.codec)
        run->payload[0] =
            trib_coded_linear(run) ? &trib_payload_linear : &trib_payload_coded;
    run->payload[1] = &trib_payload_agreement;
}

trib_status_t trib_run_prepare(struct trib_engine *e, struct trib_run *run)
{
    struct trib_program *p = &run->program;
    trib_status_t st = TRIB_OK;

    const char *operation = run->desc.op.leaving ? "trib_free_comm"
                                                 : trib_coll_name(run->desc.op.coll);

    choose_payload(run);
    run->is_aggregator = trib_engine_is_aggregator(e);
    run->value_bytes = value_bytes(run);
    for (uint32_t i = 0; i < p->n_neighbors && st == TRIB_OK; i++)
        st = trib_engine_connect(e, p->neighbors[i].peer, operation);
    if (st != TRIB_OK)
        return st;
    run->frame = (struct trib_frame){.magic = TRIB_FRAME_MAGIC,
                                     .count = run->desc.count,
                                     .signature = trib_frame_signature(&run->desc.op),
                                     .digest = run->desc.digest};
    st = prepare_sources(run);
    if (st == TRIB_OK)
        st = prepare_scratch(e, run);
    if (st == TRIB_OK && run->desc.codec)
        st = prepare_codec(run);
    if (st == TRIB_OK && run->desc.quorum.need)
        st = trib_quorum_prepare(e, run);
    if (st == TRIB_OK)
        st = trib_undo_prepare(e->kernels, run);
    if (st == TRIB_OK && run->desc.op.feed != TRIB_FEED_WHOLE && !run->is_aggregator) {
        run->unfed = calloc((size_t)trib_run_rounds(run) * run->desc.n_chunks,
                            sizeof(*run->unfed));
        if (!run->unfed)
            st = TRIB_ERR_NO_MEMORY;
    }
    if (st == TRIB_OK && run->desc.codec)
        st = trib_encode_ahead_prepare(e, run);
    if (st == TRIB_OK)
        st = trib_short_prepare(e, run);
    if (st == TRIB_ERR_NO_MEMORY)
        return trib_fail(e->err, st, "no memory for a plan of %zu elements",
                         run->desc.count);
    return st;
}

void trib_run_dispose(struct trib_run *run)
{
    for (uint32_t c = 0; run->stores && !run->values_read && c < run->desc.n_chunks;
         c++)
        free(run->stores[c].bytes);
    free(run->stores);
    free(run->acc);
    free(run->stage);
    free(run->word);
    free(run->words);
    trib_share_dispose(run);
    free(run->codec_scratch);
    trib_encode_ahead_dispose(run);
    trib_short_dispose(run);
    trib_undo_dispose(run);
    trib_quorum_dispose(run);
    trib_feedback_dispose(run);
    trib_agg_sum_dispose(run);
    if (!run->values_read)
        free(run->scratch_value);
    free(run->sources);
    free(run->rows);
    free(run->weights);
    free((void *)run->unfed);
    trib_program_free(&run->program);
}

