/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/encode_ahead.h"

#include <assert.h>
#include <stdlib.h>

#include "base/time.h"
#include "base/workers.h"
#include "pipeline/payload/encode.h"
#include "pipeline/payload/payload_agree.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/payload/encoded_store.h"
#include "pipeline/payload/chunk_parts.h"
#include "pipeline/run/engine_state.h"

enum { PIECE_MIN = 1024 }; /* elements: fewer are encoded sooner than a worker wakes */

/* A chunk of each round whose input is encoded. */
struct source {
    uint32_t chunk;
    enum trib_input_role use;
    uint32_t taken; /* number of rounds taken */
};

/* The content of the cell with the same number. */
struct word {
    struct source *source; /* NULL: the cell has no encoded chunk of this run */
    uint32_t round;
    uint32_t worker; /* worker that encoded it; this and the following members are read
                      * once it is done */
    uint32_t len;
    uint8_t *bytes;
    uint64_t begin_ns;
    uint64_t end_ns;
};

struct trib_encode_ahead {
    struct trib_engine *engine;
    struct trib_run *run;
    uint32_t n_sources;
    struct source *sources;    /* in the order of their tasks */
    struct source **source_of; /* [n_chunks], or NULL */
    uint32_t n_words;
    struct word *words;
    uint32_t threads;
    struct trib_encode_workspace *benches; /* [threads + 1]: the last is the engine's */
    /* The next source to hand out in the running operation. */
    uint32_t round;
    uint32_t at;  /* index of a source */
    bool waiting; /* a task waits for a worker */
};

static trib_status_t find_sources(struct trib_run *run, struct trib_encode_ahead *a)
{
    const struct trib_program *p = &run->program;

    a->sources = calloc(run->desc.n_chunks, sizeof(*a->sources));
    a->source_of = calloc(run->desc.n_chunks, sizeof(*a->source_of));
    if (!a->sources || !a->source_of)
        return TRIB_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        const struct trib_task *t = &p->tasks[i];
        enum trib_input_role use = trib_coded_input_role(run, t);
        if (use == TRIB_INPUT_UNUSED || a->source_of[t->chunk])
            continue;
        a->sources[a->n_sources] = (struct source){.chunk = t->chunk, .use = use};
        a->source_of[t->chunk] = &a->sources[a->n_sources++];
    }
    return TRIB_OK;
}

/* Return true if two chunks share a byte of the mask of sent elements, which has a bit
 * for each element. */
static bool chunks_share_bytes(const struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;

    return run->payload->feedback.sent &&
           (d->piece % 8 || (d->cut == TRIB_CUT_BLOCKED && d->count % 8));
}

static trib_status_t make_benches(const struct trib_run *run,
                                  struct trib_encode_ahead *a)
{
    size_t scratch =
        (trib_codec_scratch(run->desc.codec, run->desc.piece) + 64) / 64 * 64;

    a->benches = calloc(a->threads + 1, sizeof(*a->benches));
    if (!a->benches)
        return TRIB_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < a->threads; i++) {
        a->benches[i] = (struct trib_encode_workspace){
            .stage = malloc(run->desc.piece * sizeof(float)),
            .scratch = aligned_alloc(64, scratch),
        };
        if (!a->benches[i].stage || !a->benches[i].scratch)
            return TRIB_ERR_NO_MEMORY;
    }
    a->benches[a->threads] = (struct trib_encode_workspace){
        .stage = run->payload->stage, .scratch = run->payload->codec_scratch};
    return TRIB_OK;
}

static trib_status_t make_words(const struct trib_run *run, struct trib_encode_ahead *a)
{
    size_t bound = trib_codec_bound(run->desc.codec, run->desc.piece);

    a->words = calloc(a->n_words, sizeof(*a->words));
    for (uint32_t i = 0; a->words && i < a->n_words; i++) {
        a->words[i].bytes = malloc(bound + 1); /* same size as run->payload->encoded:
                                                * the two are swapped */
        if (!a->words[i].bytes)
            return TRIB_ERR_NO_MEMORY;
    }
    return a->words ? TRIB_OK : TRIB_ERR_NO_MEMORY;
}

trib_status_t trib_encode_ahead_prepare(struct trib_engine *e, struct trib_run *run)
{
    uint32_t threads = (uint32_t)e->cfg->encode_threads;

    if (threads == 0 || run->desc.model || run->desc.piece < PIECE_MIN ||
        chunks_share_bytes(run)) /* a model is used only on the engine's thread */
        return TRIB_OK;
    struct trib_encode_ahead *a = calloc(1, sizeof(*a));
    if (!a)
        return TRIB_ERR_NO_MEMORY;
    run->payload->encode_ahead = a;
    *a = (struct trib_encode_ahead){.engine = e,
                                    .run = run,
                                    .threads = threads,
                                    .n_words = threads * TRIB_WORKERS_CELLS};
    trib_status_t st = find_sources(run, a);
    if (st == TRIB_OK && (uint64_t)a->n_sources * trib_run_rounds(run) < 2) {
        trib_encode_ahead_dispose(run); /* the only encoded chunk is due at once */
        return TRIB_OK;
    }
    if (st == TRIB_OK)
        st = make_benches(run, a);
    if (st == TRIB_OK)
        st = make_words(run, a);
    return st == TRIB_OK ? trib_parts_workers(e) : st;
}

void trib_encode_ahead_dispose(struct trib_run *run)
{
    struct trib_encode_ahead *a = run->payload->encode_ahead;

    if (!a)
        return;
    for (uint32_t i = 0; a->benches && i < a->threads; i++) {
        free(a->benches[i].stage);
        free(a->benches[i].scratch);
    }
    for (uint32_t i = 0; a->words && i < a->n_words; i++)
        free(a->words[i].bytes);
    free(a->benches);
    free(a->words);
    free(a->sources);
    free(a->source_of);
    free(a);
    run->payload->encode_ahead = NULL;
}

bool trib_encode_ahead_is_used(const struct trib_run *run)
{
    return run->payload->encode_ahead != NULL;
}

void trib_encode_ahead_begin(struct trib_run *run)
{
    struct trib_encode_ahead *a = run->payload->encode_ahead;

    if (!a)
        return;
    assert(trib_workers_free(a->engine->workers) == a->n_words);
    a->round = run->desc.share_lead;
    a->at = 0;
    for (uint32_t i = 0; i < a->n_sources; i++)
        a->sources[i].taken = 0;
}

void trib_encode_ahead_end(struct trib_engine *e, struct trib_run *run)
{
    struct trib_encode_ahead *a = run->payload->encode_ahead;

    if (!a || trib_workers_free(e->workers) == a->n_words)
        return;
    assert(e->failed); /* otherwise all encoded chunks were due and taken */
    trib_workers_clear(e->workers);
    for (uint32_t i = 0; i < a->n_words; i++)
        a->words[i].source = NULL;
}

/* Encode a chunk on a worker's thread, or on the engine's, which counts as the last
 * worker. */
static void make_word(void *arg, uint32_t cell, uint32_t worker)
{
    struct trib_encode_ahead *a = arg;
    struct word *w = &a->words[cell];
    struct trib_chunk c = trib_run_chunk(a->run, w->round, w->source->chunk);
    struct trib_trace *trace = worker == a->threads ? &a->engine->trace : NULL;

    assert(worker <= a->threads && w->source);
    if (trace)
        trib_trace_now(trace, TRIB_TRACE_ENCODE_BEGIN, -1, c.index, c.n);
    w->worker = worker;
    w->begin_ns = trib_now_ns();
    w->len = trib_coded_encode_input(a->engine, a->run, &c, w->source->use,
                                     &a->benches[worker], w->bytes);
    w->end_ns = trib_now_ns();
    if (trace)
        trib_trace_now(trace, TRIB_TRACE_ENCODE_END, -1, c.index, w->len);
}

/* Return the next source that can be encoded now, or NULL. */
static struct source *next_source(const struct trib_run *run,
                                  struct trib_encode_ahead *a)
{
    for (; a->round < run->desc.rounds; a->round++, a->at = 0) {
        for (; a->at < a->n_sources; a->at++) {
            struct source *s = &a->sources[a->at];
            struct trib_chunk c = trib_run_chunk(run, a->round, s->chunk);
            if (s->taken > a->round || c.n == 0)
                continue;
            bool there = trib_chunk_fed(run, &c) && trib_share_agreed(run, a->round);
            return there ? s : NULL;
        }
    }
    return NULL;
}

void trib_encode_ahead_post(struct trib_engine *e, struct trib_run *run)
{
    struct trib_encode_ahead *a = run->payload->encode_ahead;
    struct source *s;

    /* Post several at a time: sleeping workers are then woken less often. */
    if (!a || trib_workers_free(e->workers) < a->n_words / 2)
        return;
    while (trib_workers_free(e->workers) && (s = next_source(run, a))) {
        uint32_t cell = trib_workers_cell(e->workers);
        assert(cell < a->n_words && !a->words[cell].source);
        a->words[cell].source = s;
        a->words[cell].round = a->round;
        trib_workers_post(e->workers, cell, (struct trib_work){make_word, a});
        a->at++;
    }
    trib_workers_rouse(e->workers);
}

/* Return the chunk of this round that was handed to workers; NULL if none was, or if it
 * was already taken. */
static struct word *given(struct trib_run *run, const struct trib_task *t)
{
    struct trib_encode_ahead *a = run->payload->encode_ahead;

    if (!a || trib_coded_input_role(run, t) == TRIB_INPUT_UNUSED)
        return NULL;
    const struct source *s = a->source_of[t->chunk];
    for (uint32_t i = 0; i < a->n_words; i++)
        if (a->words[i].source == s && a->words[i].round == t->done)
            return &a->words[i];
    return NULL;
}

bool trib_encode_ahead_ready(struct trib_engine *e, struct trib_run *run,
                             const struct trib_task *t)
{
    struct trib_encode_ahead *a = run->payload->encode_ahead;
    struct word *w = given(run, t);

    if (!w)
        return true;
    uint32_t cell = (uint32_t)(w - a->words);
    if (trib_workers_retract(e->workers, cell)) {
        w->source = NULL;
        return true;
    }
    if (trib_workers_done(e->workers, cell))
        return true;
    a->waiting = true;
    return false;
}

bool trib_encode_ahead_help(struct trib_engine *e, struct trib_run *run)
{
    struct trib_encode_ahead *a = run->payload->encode_ahead;

    if (!a || !a->waiting)
        return false;
    a->waiting = false;
    return trib_workers_help(e->workers);
}

/* Record the work of a worker afterwards, on the engine's thread. */
static void trace_word(struct trib_engine *e, const struct word *w, uint32_t chunk)
{
    struct trib_trace_event event = {.time_ns = w->begin_ns,
                                     .kind = TRIB_TRACE_AHEAD_BEGIN,
                                     .peer = (int32_t)w->worker,
                                     .chunk = chunk,
                                     .seq = (uint32_t)e->trace.count,
                                     .value = w->len};

    if (w->worker == (uint32_t)e->cfg->encode_threads)
        return; /* the engine has already recorded it */
    trib_trace_add(&e->trace, &event);
    event.time_ns = w->end_ns;
    event.kind = TRIB_TRACE_AHEAD_END;
    event.seq = (uint32_t)e->trace.count;
    trib_trace_add(&e->trace, &event);
}

bool trib_encode_ahead_take(struct trib_engine *e, struct trib_run *run,
                            const struct trib_task *t, uint8_t **word,
                            uint32_t *len_out)
{
    struct trib_encode_ahead *a = run->payload->encode_ahead;
    struct word *w = given(run, t);

    if (a && a->source_of[t->chunk])
        a->source_of[t->chunk]->taken = t->done + 1;
    if (!w)
        return false;
    assert(a && w->source->taken == w->round + 1);
    uint8_t *bytes = w->bytes;
    w->bytes = *word;
    *word = bytes;
    *len_out = w->len;
    e->stats.encode_ns += w->end_ns - w->begin_ns;
    e->stats.words_ahead++;
    trace_word(e, w, trib_run_chunk(run, t->done, t->chunk).index);
    w->source = NULL;
    trib_workers_release(e->workers, (uint32_t)(w - a->words));
    return true;
}
