/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/error_feedback.h"

#include "pipeline/payload/chunk_memory.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/payload/undo_log.h"
#include "pipeline/run/engine_state.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SQUARES = 4096, /* elements whose squares are summed in float32 */
    INFINITE = 0x7f800000,
};

static bool sums(const struct trib_run *run)
{
    return trib_coll_sums(run->desc.op.coll);
}

static bool narrow(const struct trib_run *run)
{
    return run->desc.op.dtype == TRIB_F16 || run->desc.op.dtype == TRIB_BF16;
}

static bool allocate(float **vector_out, bool wanted, size_t total)
{
    if (wanted)
        *vector_out = calloc(total + 1, sizeof(**vector_out));
    return !wanted || *vector_out;
}

const struct trib_feedback *trib_feedback_of(const struct trib_run *run)
{
    return run->payload ? &run->payload->feedback : NULL;
}

bool trib_feedback_gives_result(const struct trib_run *run)
{
    return run->payload->feedback.ops && run->payload->feedback.ops->result;
}

bool trib_feedback_feeds_back(const struct trib_run *run)
{
    return trib_feedback_for(&run->desc.feedback, run->desc.codec)->residual;
}

uint64_t trib_feedback_bytes(const struct trib_run *run)
{
    const struct trib_feedback_rule *rule = &run->desc.feedback;
    const uint64_t total = run->desc.total + 1;
    const unsigned vectors =
        trib_feedback_states(rule) + (rule->ops && rule->ops->sums_state);

    return vectors * total * sizeof(float) + total / 8 + 1;
}

static bool allocate_states(struct trib_feedback *f,
                            const struct trib_feedback_rule *rule, size_t total)
{
    bool ok = true;

    f->ops = trib_feedback_states(rule) ? rule->ops : NULL;
    for (unsigned i = 0; i < TRIB_FEEDBACK_STATES && f->ops; i++) {
        const struct trib_feedback_state *s = &f->ops->states[i];
        ok &= allocate(&f->state[i], trib_feedback_keeps(rule, i), total);
        if (s->cleared && rule->param[s->clears] > 0)
            f->cleared = f->state[i];
    }
    return ok;
}

/* Allocate the per-chunk zeros and marks of a codec that selects; return false if out
 * of memory. */
static bool prepare_chunks(struct trib_run *run)
{
    struct trib_feedback *f = &run->payload->feedback;

    f->n_carried = (size_t)run->desc.rounds * run->desc.n_chunks;
    f->carried = calloc(f->n_carried + 1, sizeof(*f->carried));
    f->zeros = calloc(f->n_carried + 1, sizeof(*f->zeros));
    if (!f->by_caller)
        return f->carried && f->zeros;
    f->marks_each = trib_marked_words(run->desc.piece);
    f->marks = calloc((f->n_carried + 1) * f->marks_each, sizeof(*f->marks));
    return f->carried && f->zeros && f->marks;
}

trib_status_t trib_feedback_prepare(struct trib_run *run)
{
    const struct trib_feedback_rule *rule = &run->desc.feedback;
    struct trib_feedback *f = &run->payload->feedback;
    const bool selects = trib_codec_selects(run->desc.codec);
    const size_t total = run->desc.total;

    assert(run->desc.codec);
    f->scale = 1.0f;
    f->coded = !trib_feedback_plain(rule);
    f->by_caller = trib_feedback_by_caller(rule);
    if (!allocate(&run->payload->feedback.residual,
                  trib_feedback_feeds_back(run) && !f->by_caller && !run->is_aggregator,
                  total) ||
        !allocate_states(f, rule, total) ||
        !allocate(&f->partial, f->ops && f->ops->sums_state && narrow(run), total))
        return TRIB_ERR_NO_MEMORY;
    if (selects && (f->residual || f->by_caller) && !prepare_chunks(run))
        return TRIB_ERR_NO_MEMORY;
    if (selects && sums(run)) {
        f->sent = calloc(total / 8 + 1, 1);
        if (!f->sent)
            return TRIB_ERR_NO_MEMORY;
    }
    return TRIB_OK;
}

void trib_feedback_dispose(struct trib_run *run)
{
    struct trib_feedback *f = &run->payload->feedback;

    trib_feedback_end(run);
    free(f->residual);
    free(f->marks);
    for (int i = 0; i < TRIB_FEEDBACK_STATES; i++)
        free(f->state[i]);
    free(f->sent);
    free(f->carried);
    free(f->zeros);
    free(f->partial);
}

void trib_feedback_loaded(struct trib_run *run)
{
    struct trib_feedback *f = &run->payload->feedback;

    for (size_t i = 0; f->residual && i < run->desc.total && !f->coded; i++)
        f->coded = f->residual[i] != 0;
}

/* Return the norm of this rank's whole vector; in doubles where the range of float32 is
 * too small. */
static double norm_of(struct trib_engine *e, const struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;
    const bool direct =
        d->op.dtype == TRIB_F32 && (uintptr_t)run->now.input % sizeof(float) == 0;
    float block[SQUARES];
    double sum = 0;

    for (size_t i = 0; i < d->total; i += SQUARES) {
        const size_t n = d->total - i < SQUARES ? d->total - i : SQUARES;
        const uint8_t *input = run->now.input + i * d->element;
        const float *x = direct ? (const float *)(const void *)input : block;
        if (!direct)
            e->kernels->to_f32[d->op.dtype](block, input, n);
        const float squares = e->kernels->sum_squares(x, n);
        double exact = (double)squares;
        if (!(squares > 0x1p-80f && squares <= FLT_MAX)) {
            exact = 0;
            for (size_t j = 0; j < n; j++)
                exact += (double)x[j] * (double)x[j];
        }
        sum += exact;
    }
    return sqrt(sum);
}

void trib_feedback_clip(struct trib_engine *e, struct trib_run *run)
{
    const struct trib_feedback_rule *rule = &run->desc.feedback;

    if (rule->clip > 0 && run->desc.total && !run->is_aggregator) {
        const double most = rule->clip / sqrt(e->ranks), norm = norm_of(e, run);
        /* Do not scale a vector with NaN or Inf: the ranks must see those unchanged. */
        run->payload->feedback.scale =
            norm > most && isfinite(norm) ? (float)(most / norm) : 1.0f;
    }
}

/* The caller's vector is the residual: it is read and written in place. */
static void begin_by_caller(struct trib_run *run)
{
    struct trib_feedback *f = &run->payload->feedback;

    assert(run->desc.op.dtype == TRIB_F32 && run->now.input != run->now.recv);
    f->residual = (float *)(uintptr_t)run->now.input;
    if (f->marks && f->marked != run->now.recv)
        memset(f->marks, 0xff, f->n_carried * f->marks_each * sizeof(*f->marks));
    f->marked = run->now.recv;
}

void trib_feedback_end(struct trib_run *run)
{
    struct trib_feedback *f = &run->payload->feedback;

    if (f->by_caller)
        f->residual = NULL;
}

uint64_t *trib_feedback_marks(const struct trib_run *run, const struct trib_chunk *c)
{
    const struct trib_feedback *f = &run->payload->feedback;

    return f->marks && c->index < f->n_carried ? f->marks + c->index * f->marks_each
                                               : NULL;
}

void trib_feedback_mark_all(const struct trib_run *run, const struct trib_chunk *c)
{
    uint64_t *marks = trib_feedback_marks(run, c);

    if (marks)
        memset(marks, 0xff, trib_marked_words(c->n) * sizeof(*marks));
}

void trib_feedback_begin(struct trib_engine *e, struct trib_run *run)
{
    const struct trib_feedback_rule *rule = &run->desc.feedback;
    struct trib_feedback *f = &run->payload->feedback;

    if (f->sent)
        memset(f->sent, 0, run->desc.total / 8 + 1);
    if (f->zeros)
        memset(f->zeros, 0, f->n_carried * sizeof(*f->zeros));
    if (f->by_caller)
        begin_by_caller(run);
    if (run->desc.warm_up.codec)
        trib_codec_set_ratio(
            run->desc.warm_up.codec,
            trib_feedback_ratio(rule, run->desc.warm_up.ratio, run->now.step - 1));
    trib_feedback_clip(e, run);
}

/* Return the chunk in the form that the rule's functions accept. */
static struct trib_feedback_chunk chunk_of(const struct trib_engine *e,
                                           const struct trib_run *run,
                                           const struct trib_chunk *c)
{
    return (struct trib_feedback_chunk){
        .rule = &run->desc.feedback,
        .kernels = e->kernels,
        .codec = run->desc.codec,
        .state = run->payload->feedback.state,
        .first = c->first,
        .n = c->n,
        .scale = run->payload->feedback.scale,
        .step = run->now.step,
    };
}

const float *trib_feedback_apply(const struct trib_engine *e,
                                 const struct trib_run *run, const struct trib_chunk *c,
                                 const float *x, float *stage)
{
    const struct trib_feedback *f = &run->payload->feedback;

    if (f->ops) {
        const struct trib_feedback_chunk chunk = chunk_of(e, run, c);
        return f->ops->before(&chunk, x, stage);
    }
    if (!(f->scale < 1.0f))
        return x;
    /* The input is finite, or scale would be 1. */
    const struct trib_combine scaled = {x, x, f->scale, 0.0f};
    e->kernels->combine(stage, &scaled, c->n);
    return stage;
}

bool trib_feedback_sent(const struct trib_run *run, const struct trib_chunk *c,
                        struct trib_sent *sent_out)
{
    const struct trib_feedback *f = &run->payload->feedback;

    if (!f->sent)
        return false;
    *sent_out = (struct trib_sent){
        .mask = f->sent,
        .first = c->first,
        .clear = f->cleared ? f->cleared + c->first : NULL,
    };
    return true;
}

float *trib_feedback_zeros(const struct trib_run *run, const struct trib_chunk *c,
                           const float *x)
{
    const struct trib_payload_state *p = run->payload;
    const bool kept = p->undo_log || p->quorum || trib_feedback_gives_result(run);

    if (!p->feedback.zeros || c->index >= p->feedback.n_carried || kept ||
        run->no_result || run->desc.op.coll != TRIB_ALLREDUCE ||
        run->desc.op.dtype != TRIB_F32)
        return NULL;
    float *result = (float *)(void *)trib_run_acc(run, c);
    return result == x ? result : NULL;
}

bool trib_feedback_take_zeros(struct trib_run *run, const struct trib_chunk *c)
{
    const struct trib_feedback *f = &run->payload->feedback;

    if (!f->zeros || c->index >= f->n_carried || !f->zeros[c->index])
        return false;
    f->zeros[c->index] = false;
    return true;
}

void trib_feedback_encoded(const struct trib_engine *e, const struct trib_run *run,
                           const struct trib_chunk *c, const uint8_t *word, size_t len)
{
    const struct trib_feedback_ops *ops = run->payload->feedback.ops;

    if (!ops || !ops->after)
        return;
    const struct trib_feedback_chunk chunk = chunk_of(e, run, c);
    ops->after(&chunk, &(struct trib_feedback_word){.bytes = word, .len = len});
}

void trib_feedback_keep_rest(struct trib_engine *e, struct trib_run *run,
                             const struct trib_chunk *c, struct trib_encoded word,
                             float *result, float times)
{
    float *residual = run->payload->feedback.residual;

    if (!residual || run->is_aggregator)
        return;
    trib_undo_save_state(run, c);
    (void)trib_codec_decode_add(run->desc.codec, word.src, word.len, -1.0f, result,
                                c->n);
    e->kernels->drop_not_finite(result, c->n);
    e->kernels->axpy_f32(residual + c->first, result, times, c->n);
}

trib_status_t trib_feedback_result(struct trib_engine *e, struct trib_run *run,
                                   const struct trib_chunk *c, const uint8_t *word,
                                   size_t len)
{
    const struct trib_feedback_ops *ops = run->payload->feedback.ops;
    const struct trib_feedback_chunk chunk = chunk_of(e, run, c);
    const struct trib_feedback_word sum = {
        .bytes = word, .len = len, .elements = run->payload->acc};
    const float *result;

    const trib_status_t st = ops->result(&chunk, &sum, &result);
    if (st != TRIB_OK)
        return st;
    e->kernels->from_f32[run->desc.op.dtype](trib_run_acc(run, c), result, c->n);
    if (e->kernels->max_magnitude(result, c->n) >= INFINITE)
        ops->restart(&chunk);
    return TRIB_OK;
}

void trib_feedback_release(const struct trib_engine *e, struct trib_run *run,
                           const struct trib_chunk *c, float one)
{
    float *residual = run->payload->feedback.residual + c->first;

    assert(!run->is_aggregator);
    trib_undo_save_state(run, c);
    e->kernels->axpy_f32(run->payload->acc, residual, one, c->n);
    memset(residual, 0, c->n * sizeof(*residual));
}
