/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/undo_log.h"

#include "pipeline/payload/chunk_memory.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/run/engine_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { VECTORS = 1 + TRIB_FEEDBACK_STATES };

/* The data changed by one start, in its earlier state. */
struct kept {
    uint32_t *state_of; /* [chunks] newest step whose start saved the chunk's state */
    float *vector[VECTORS]; /* [total] each, or NULL: copies of vectors() */
    uint8_t *model;         /* the model before step model_of */
    uint32_t model_of;
};

struct trib_undo_log {
    struct kept kept[TRIB_UNDO_STARTS]; /* entry of a step: number % n */
    uint32_t n;
    uint32_t floor; /* nothing is saved for this step and earlier ones */
    uint32_t *input_of; /* [chunks] newest step whose start saved the chunk's input */
    uint8_t *input; /* [total] elements */
    void (*copy)(void *dst, const void *src, size_t bytes);
};

static void vectors(const struct trib_run *run, float *out[VECTORS])
{
    out[0] = run->payload->feedback.residual;
    memcpy(out + 1, run->payload->feedback.state, sizeof(run->payload->feedback.state));
}

static size_t chunks_of(const struct trib_run *run)
{
    return (size_t)trib_run_rounds(run) * run->desc.n_chunks;
}

static void copy_cached(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

static bool prepare_input(struct trib_undo_log *k, const struct trib_run *run)
{
    k->input_of = calloc(chunks_of(run) + 1, sizeof(*k->input_of));
    /* Only in-place operations touch this memory. */
    k->input = malloc(run->desc.total * run->desc.element + 1);
    return k->input_of && k->input;
}

static bool prepare_kept(struct kept *kept, const struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;
    float *live[VECTORS];
    bool ok = true;

    kept->state_of = calloc(chunks_of(run) + 1, sizeof(*kept->state_of));
    vectors(run, live);
    for (int i = 0; i < VECTORS; i++) {
        if (live[i])
            kept->vector[i] = malloc(d->total * sizeof(float) + 1);
        ok &= !live[i] || kept->vector[i];
    }
    if (d->model)
        kept->model = malloc(trib_model_bytes(d->model) + 1);
    ok &= !d->model || kept->model;
    return ok && kept->state_of;
}

/* Return true if the run has state between starts. */
static bool has_state(const struct trib_run *run)
{
    float *live[VECTORS];
    bool any = run->desc.model;

    vectors(run, live);
    for (int i = 0; i < VECTORS; i++)
        any |= live[i] != NULL;
    return any;
}

trib_status_t trib_undo_prepare(const struct trib_kernels *kernels,
                                struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;

    if (run->is_aggregator || !(d->may_undo || (d->may_rewind && has_state(run))))
        return TRIB_OK;
    struct trib_undo_log *k = run->payload->undo_log = calloc(1, sizeof(*k));
    if (!k)
        return TRIB_ERR_NO_MEMORY;
    k->copy = d->stream_undo ? kernels->copy_stream : copy_cached;
    k->n = d->may_rewind ? TRIB_UNDO_STARTS : 1;
    bool ok = !d->may_undo || d->pairs || prepare_input(k, run);
    for (uint32_t i = 0; i < k->n; i++)
        ok &= prepare_kept(&k->kept[i], run);
    return ok ? TRIB_OK : TRIB_ERR_NO_MEMORY;
}

void trib_undo_dispose(struct trib_run *run)
{
    struct trib_undo_log *k = run->payload->undo_log;

    if (!k)
        return;
    for (uint32_t n = 0; n < k->n; n++) {
        free(k->kept[n].state_of);
        for (int i = 0; i < VECTORS; i++)
            free(k->kept[n].vector[i]);
        free(k->kept[n].model);
    }
    free(k->input_of);
    free(k->input);
    free(k);
    run->payload->undo_log = NULL;
}

static struct kept *kept_of(struct trib_undo_log *k, uint32_t step)
{
    return &k->kept[step % k->n];
}

void trib_undo_save_model(struct trib_run *run)
{
    struct trib_undo_log *k = run->payload->undo_log;

    if (!k || !run->desc.model)
        return;
    struct kept *kept = kept_of(k, run->now.step + 1);
    trib_model_write(run->desc.model, kept->model);
    kept->model_of = run->now.step + 1;
}

static void copy(const struct trib_undo_log *k, float *const to[VECTORS],
                 float *const from[VECTORS], const struct trib_chunk *c)
{
    for (int i = 0; i < VECTORS; i++)
        if (from[i])
            k->copy(to[i] + c->first, from[i] + c->first, c->n * sizeof(float));
}

void trib_undo_save_state(const struct trib_run *run, const struct trib_chunk *c)
{
    struct trib_undo_log *k = run->payload->undo_log;
    float *live[VECTORS];

    if (!k || c->n == 0)
        return;
    struct kept *kept = kept_of(k, run->now.step);
    if (kept->state_of[c->index] == run->now.step)
        return;
    assert(c->index < chunks_of(run));
    kept->state_of[c->index] = run->now.step;
    vectors(run, live);
    copy(k, kept->vector, live, c);
}

static bool in_place(const struct trib_run *run)
{
    return run->now.input == run->now.recv;
}

void trib_undo_save_input(const struct trib_run *run, const struct trib_chunk *c)
{
    struct trib_undo_log *k = run->payload->undo_log;
    const size_t size = run->desc.element;

    if (!k || !k->input || c->n == 0 || !in_place(run) ||
        k->input_of[c->index] == run->now.step)
        return;
    k->input_of[c->index] = run->now.step;
    k->copy(k->input + c->first * size, trib_run_input(run, c), c->n * size);
}

static void restore_state(struct trib_run *run, const struct trib_chunk *c,
                          uint32_t step)
{
    struct trib_undo_log *k = run->payload->undo_log;
    const struct kept *kept = kept_of(k, step);
    float *live[VECTORS];

    if (!c->n || kept->state_of[c->index] != step)
        return;
    vectors(run, live);
    copy(k, live, kept->vector, c);
}

static void restore_model(struct trib_run *run, uint32_t step)
{
    const struct kept *kept = kept_of(run->payload->undo_log, step);

    if (!kept->model || kept->model_of != step)
        return;
    const trib_status_t st = trib_model_read(/* the model wrote these bytes */
                                             run->desc.model, kept->model,
                                             trib_model_bytes(run->desc.model), NULL);
    assert(st == TRIB_OK);
    (void)st;
}

void trib_undo_state(struct trib_run *run, const struct trib_chunk *c)
{
    restore_state(run, c, run->now.step);
}

void trib_undo_input(struct trib_run *run, const struct trib_chunk *c)
{
    struct trib_undo_log *k = run->payload->undo_log;
    const size_t size = run->desc.element;

    if (c->n && k->input && k->input_of[c->index] == run->now.step)
        memcpy(run->now.recv + (c->first - run->now.recv_first) * size,
               k->input + c->first * size, c->n * size);
}

static void each_chunk(struct trib_run *run,
                       void (*fn)(struct trib_run *run, const struct trib_chunk *c))
{
    for (uint32_t r = 0; r < trib_run_rounds(run); r++) {
        for (uint32_t i = 0; i < run->desc.n_chunks; i++) {
            const struct trib_chunk c = trib_vector_chunk(run, r, i);
            fn(run, &c);
        }
    }
}

/* Undo the state of the newest start. */
static void undo_step(struct trib_run *run)
{
    each_chunk(run, trib_undo_state);
    restore_model(run, run->now.step);
    assert(run->now.step > 0);
    run->now.step--;
}

void trib_undo_rollback(struct trib_run *run)
{
    assert(run->payload->undo_log && run->now.state != TRIB_RUN_QUEUED &&
           run->now.state != TRIB_RUN_ACTIVE);
    each_chunk(run, trib_undo_input);
    undo_step(run);
}

bool trib_undo_reaches(const struct trib_run *run, uint32_t step)
{
    const struct trib_undo_log *k = run->payload ? run->payload->undo_log : NULL;

    assert(step <= run->now.step);
    if (step == run->now.step || !run->payload || !has_state(run))
        return true;
    return k && step >= k->floor && run->now.step - step <= k->n;
}

void trib_undo_rewind(struct trib_run *run, uint32_t step)
{
    assert(trib_undo_reaches(run, step));
    while (run->now.step > step && run->payload && run->payload->undo_log)
        undo_step(run);
    run->now.step = step;
}

void trib_undo_forget(struct trib_run *run)
{
    struct trib_undo_log *k = run->payload ? run->payload->undo_log : NULL;

    if (!k)
        return;
    k->floor = run->now.step;
    for (uint32_t n = 0; n < k->n; n++) {
        memset(k->kept[n].state_of, 0, chunks_of(run) * sizeof(*k->kept[n].state_of));
        k->kept[n].model_of = 0;
    }
    if (k->input_of)
        memset(k->input_of, 0, chunks_of(run) * sizeof(*k->input_of));
}

static void take(float **to, float **from)
{
    float *was = *to;

    assert(!was == !*from);
    *to = *from;
    *from = was;
}

static void adopt_model(struct trib_run *run, const struct trib_run *from)
{
    const size_t bytes = trib_model_bytes(from->desc.model);
    uint8_t *state = malloc(bytes + 1);

    if (!state)
        return;
    trib_model_write(from->desc.model, state);
    (void)trib_model_read(run->desc.model, state, bytes, NULL);
    free(state);
}

void trib_run_adopt(struct trib_run *run, struct trib_run *from)
{
    struct trib_feedback *f = &run->payload->feedback, *g = &from->payload->feedback;
    uint8_t *sent = f->sent;

    assert(run->desc.total == from->desc.total);
    take(&f->residual, &g->residual);
    for (int i = 0; i < TRIB_FEEDBACK_STATES; i++)
        take(&f->state[i], &g->state[i]);
    take(&f->cleared, &g->cleared); /* a pointer to one of the states */
    f->sent = g->sent;
    g->sent = sent;
    run->now.step = from->now.step;
    if (run->desc.model && from->desc.model)
        adopt_model(run, from);
    trib_undo_forget(run);
}
