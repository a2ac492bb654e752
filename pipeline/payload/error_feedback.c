/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/error_feedback.h"

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
    trib_coll_t coll = run->desc.op.coll;

    return coll == TRIB_ALLREDUCE || coll == TRIB_REDUCE || coll == TRIB_REDUCE_SCATTER;
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

bool trib_feedback_feeds_back(const struct trib_run *run)
{
    const enum trib_feedback_kind kind = run->desc.feedback.kind;

    return kind == TRIB_FEEDBACK_EF14 ||
           (kind == TRIB_FEEDBACK_CODEC &&
            (trib_codec_info(run->desc.codec)->flags & TRIB_CODEC_FEEDBACK));
}

uint64_t trib_feedback_bytes(const struct trib_run *run)
{
    const struct trib_feedback_rule *rule = &run->desc.feedback;
    const uint64_t total = run->desc.total + 1;
    const unsigned vectors = (rule->momentum > 0) +
                             (rule->kind == TRIB_FEEDBACK_EF21 ? 3 : 0);

    return vectors * total * sizeof(float) + total / 8 + 1;
}

trib_status_t trib_feedback_prepare(struct trib_run *run)
{
    const struct trib_feedback_rule *rule = &run->desc.feedback;
    struct trib_feedback *f = &run->feedback;
    const bool ef21 = rule->kind == TRIB_FEEDBACK_EF21;
    const bool sparse = trib_codec_info(run->desc.codec)->flags & TRIB_CODEC_SPARSE;
    const size_t total = run->desc.total;

    f->scale = 1.0f;
    f->coded = !trib_feedback_plain(rule);
    if (!allocate(&run->residual, trib_feedback_feeds_back(run) && !run->is_aggregator,
                  total) ||
        !allocate(&f->momentum, rule->momentum > 0, total) ||
        !allocate(&f->own, ef21, total) || !allocate(&f->sum, ef21, total) ||
        !allocate(&f->partial, ef21 && narrow(run), total))
        return TRIB_ERR_NO_MEMORY;
    if (sparse && sums(run)) {
        f->sent = calloc(total / 8 + 1, 1);
        if (!f->sent)
            return TRIB_ERR_NO_MEMORY;
    }
    return TRIB_OK;
}

void trib_feedback_dispose(struct trib_run *run)
{
    struct trib_feedback *f = &run->feedback;

    free(run->residual);
    free(f->momentum);
    free(f->own);
    free(f->sum);
    free(f->sent);
    free(f->partial);
}

/* The norm of this rank's whole vector, in doubles as far as float32's range does not
 * suffice. */
static double norm_of(struct trib_engine *e, const struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;
    const bool direct =
        d->op.dtype == TRIB_F32 && (uintptr_t)run->input % sizeof(float) == 0;
    float block[SQUARES];
    double sum = 0;

    for (size_t i = 0; i < d->total; i += SQUARES) {
        const size_t n = d->total - i < SQUARES ? d->total - i : SQUARES;
        const uint8_t *own = run->input + i * d->element;
        const float *x = direct ? (const float *)(const void *)own : block;
        if (!direct)
            e->kernels->to_f32[d->op.dtype](block, own, n);
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
        /* of NaN and Inf no part is left to scale: they go as they are, and are seen */
        run->feedback.scale =
            norm > most && isfinite(norm) ? (float)(most / norm) : 1.0f;
    }
}

void trib_feedback_begin(struct trib_engine *e, struct trib_run *run)
{
    const struct trib_feedback_rule *rule = &run->desc.feedback;
    struct trib_feedback *f = &run->feedback;

    if (f->sent)
        memset(f->sent, 0, run->desc.total / 8 + 1);
    if (f->codec)
        trib_codec_set_ratio(f->codec,
                             trib_feedback_ratio(rule, f->ratio, run->step - 1));
    trib_feedback_clip(e, run);
}

/* x = wa * a + wb * b */
static const float *combined(const struct trib_engine *e, float *x, size_t n,
                             struct trib_combine c)
{
    e->kernels->combine(x, &c, n);
    return x;
}

/* EF14's correction, and EF21's estimator. */
static const float *moved(const struct trib_engine *e, const struct trib_run *run,
                          const struct trib_chunk *c, const float *x, float *stage)
{
    const struct trib_feedback_rule *rule = &run->desc.feedback;
    const float scale = run->feedback.scale, m = (float)rule->momentum;
    float *u = run->feedback.momentum + c->first;

    if (rule->kind == TRIB_FEEDBACK_EF21) {
        const float eta = run->step == 1 ? 1.0f : m; /* v begins with g */
        e->kernels->average(u, x, c->n, 1.0f - eta, eta * scale);
    } else if (!rule->nesterov) {
        e->kernels->average(u, x, c->n, m, scale);
    } else {
        e->kernels->average(u, x, c->n, m, m * scale);
        return combined(e, stage, c->n, (struct trib_combine){u, x, 1.0f, scale});
    }
    return u;
}

const float *trib_feedback_apply(const struct trib_engine *e,
                                 const struct trib_run *run, const struct trib_chunk *c,
                                 const float *x, float *stage)
{
    const struct trib_feedback *f = &run->feedback;
    float scale = f->scale;

    if (f->momentum) {
        x = moved(e, run, c, x, stage);
        scale = 1.0f;
    }
    if (f->own)
        return combined(e, stage, c->n,
                        (struct trib_combine){x, f->own + c->first, scale, -1.0f});
    if (scale < 1.0f) /* all is finite, else it would not be clipped */
        return combined(e, stage, c->n, (struct trib_combine){x, x, scale, 0.0f});
    return x;
}

bool trib_feedback_sent(const struct trib_run *run, const struct trib_chunk *c,
                        struct trib_sent *sent_out)
{
    const struct trib_feedback *f = &run->feedback;

    if (!f->sent)
        return false;
    *sent_out = (struct trib_sent){
        .mask = f->sent,
        .first = c->first,
        .clear = run->desc.feedback.masking ? f->momentum + c->first : NULL,
    };
    return true;
}

void trib_feedback_encoded(const struct trib_run *run, const struct trib_chunk *c,
                           const uint8_t *word, size_t len)
{
    if (run->feedback.own) /* its own word is valid */
        (void)trib_codec_decode_add(run->desc.codec, word, len, 1.0f,
                                    run->feedback.own + c->first, c->n);
}

/* The result now holds the NaN or Inf. */
static void begin_anew(struct trib_run *run, const struct trib_chunk *c)
{
    float *own = run->feedback.own + c->first, *sum = run->feedback.sum + c->first;

    for (size_t i = 0; i < c->n; i++)
        if (!isfinite(sum[i]))
            own[i] = sum[i] = 0.0f;
}

trib_status_t trib_feedback_result(struct trib_engine *e, struct trib_run *run,
                                   const struct trib_chunk *c, const uint8_t *word,
                                   size_t len)
{
    float *sum = run->feedback.sum + c->first;

    if (word) {
        trib_status_t st =
            trib_codec_decode_add(run->desc.codec, word, len, 1.0f, sum, c->n);
        if (st != TRIB_OK)
            return st;
    } else {
        e->kernels->axpy_f32(sum, run->acc, 1.0f, c->n);
    }
    e->kernels->from_f32[run->desc.op.dtype](trib_run_acc(run, c), sum, c->n);
    if (e->kernels->max_magnitude(sum, c->n) >= INFINITE)
        begin_anew(run, c);
    return TRIB_OK;
}
