/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/undo_log.h"

#include "pipeline/engine/engine_state.h"
#include "pipeline/payload/chunk_memory.h"
#include "pipeline/payload/payload_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { VECTORS = 1 + TRIB_FEEDBACK_STATES };

struct trib_undo_log {
    uint32_t *state_of; /* [chunks] newest step before whose change the state was
                         * kept */
    uint32_t *input_of; /* [chunks] newest step before whose change the input was
                         * kept */
    float *vector[VECTORS]; /* [total] each, or NULL: copies of vectors() */
    uint8_t *input;         /* [total] elements */
    uint8_t *model;         /* model as it was before step model_of */
    uint32_t model_of;
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

trib_status_t trib_undo_prepare(const struct trib_kernels *kernels,
                                struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;
    float *live[VECTORS];
    bool ok = true;

    if (!d->may_undo || run->is_aggregator)
        return TRIB_OK;
    struct trib_undo_log *k = run->payload->undo_log = calloc(1, sizeof(*k));
    if (!k)
        return TRIB_ERR_NO_MEMORY;
    k->copy = d->stream_undo ? kernels->copy_stream : copy_cached;
    k->state_of = calloc(chunks_of(run) + 1, sizeof(*k->state_of));
    k->input_of = calloc(chunks_of(run) + 1, sizeof(*k->input_of));
    k->input = malloc(d->total * d->element + 1); /* touched by what is in place
                                                   * alone */
    vectors(run, live);
    for (int i = 0; i < VECTORS; i++) {
        if (live[i])
            k->vector[i] = malloc(d->total * sizeof(float) + 1);
        ok &= !live[i] || k->vector[i];
    }
    if (d->model)
        k->model = malloc(trib_model_bytes(d->model) + 1);
    ok &= !d->model || k->model;
    return ok && k->state_of && k->input_of && k->input ? TRIB_OK : TRIB_ERR_NO_MEMORY;
}

void trib_undo_dispose(struct trib_run *run)
{
    struct trib_undo_log *k = run->payload->undo_log;

    if (!k)
        return;
    free(k->state_of);
    free(k->input_of);
    for (int i = 0; i < VECTORS; i++)
        free(k->vector[i]);
    free(k->input);
    free(k->model);
    free(k);
    run->payload->undo_log = NULL;
}

void trib_undo_save_model(struct trib_run *run)
{
    struct trib_undo_log *k = run->payload->undo_log;

    if (!k || !k->model)
        return;
    trib_model_write(run->desc.model, k->model);
    k->model_of = run->now.step + 1;
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

    if (!k || c->n == 0 || k->state_of[c->index] == run->now.step)
        return;
    assert(c->index < chunks_of(run));
    k->state_of[c->index] = run->now.step;
    vectors(run, live);
    copy(k, k->vector, live, c);
}

static bool in_place(const struct trib_run *run)
{
    return run->now.input == run->now.recv;
}

void trib_undo_save_input(const struct trib_run *run, const struct trib_chunk *c)
{
    struct trib_undo_log *k = run->payload->undo_log;
    const size_t size = run->desc.element;

    if (!k || c->n == 0 || !in_place(run) || k->input_of[c->index] == run->now.step)
        return;
    k->input_of[c->index] = run->now.step;
    k->copy(k->input + c->first * size, trib_run_input(run, c), c->n * size);
}

void trib_undo_state(struct trib_run *run, const struct trib_chunk *c)
{
    struct trib_undo_log *k = run->payload->undo_log;
    float *live[VECTORS];

    if (!c->n || k->state_of[c->index] != run->now.step)
        return;
    vectors(run, live);
    copy(k, live, k->vector, c);
}

void trib_undo_input(struct trib_run *run, const struct trib_chunk *c)
{
    struct trib_undo_log *k = run->payload->undo_log;
    const size_t size = run->desc.element;

    if (c->n && k->input_of[c->index] == run->now.step)
        memcpy(run->now.recv + (c->first - run->now.recv_first) * size,
               k->input + c->first * size, c->n * size);
}

void trib_undo_rollback(struct trib_run *run)
{
    struct trib_undo_log *k = run->payload->undo_log;

    assert(k && run->now.state != TRIB_RUN_QUEUED && run->now.state != TRIB_RUN_ACTIVE);
    for (uint32_t r = 0; r < trib_run_rounds(run); r++) {
        for (uint32_t i = 0; i < run->desc.n_chunks; i++) {
            const struct trib_chunk c = trib_vector_chunk(run, r, i);
            trib_undo_state(run, &c);
            trib_undo_input(run, &c);
        }
    }
    if (k->model && k->model_of == run->now.step) { /* the model wrote these bytes */
        const trib_status_t st = trib_model_read(
            run->desc.model, k->model, trib_model_bytes(run->desc.model), NULL);
        assert(st == TRIB_OK);
        (void)st;
    }
    assert(run->now.step > 0);
    run->now.step--;
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
}
