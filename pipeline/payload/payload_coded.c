/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chunks as code words.
 *
 * Who is encoded when. A rank encodes each element at most once per operation with
 * error feedback, so one residual per element suffices:
 *   - sparse codecs select from the own contribution, whether it is sent or stays here;
 *     sums and results are sent whole (TRIB_ENCODE_EXACT)
 *   - other codecs quantise what is sent: a contribution, a partial sum or, at the
 *     finisher, the result; the contribution of the finisher itself stays exact, except
 *     where others decode it, too (OWN_SENT): then it counts as they see it
 *   - words that add without decoding: payload_linear.c
 * What a residual keeps is of contributions, also where a mean of them, or a sum on its way
 * that is divided (narrow.h), is encoded: so another schedule may take it over.
 * What the plan's feedback makes of the own contribution (error_feedback.h) enters where it is
 * read: once per operation, too.
 * The finisher decodes its own result word as all others do: the same bits everywhere.
 *
 * Contributions are added in the order of ranks, so a sum does not depend on arrival.
 */
#include <assert.h>
#include <string.h>

#include "base/time.h"
#include "pipeline/payload/encode_ahead.h"
#include "pipeline/engine/engine_wait.h"
#include "pipeline/payload/undo_log.h"
#include "pipeline/payload/narrow.h"
#include "pipeline/payload/partial.h"
#include "pipeline/payload/service_sum.h"
#include "pipeline/payload/payload_agree.h"

static uint32_t codec_flags(const struct trib_run *run)
{
    return trib_codec_info(run->desc.codec)->flags;
}

bool trib_coded_linear(const struct trib_run *run)
{
    trib_coll_t coll = run->desc.op.coll;
    bool sums =
        coll == TRIB_ALLREDUCE || coll == TRIB_REDUCE || coll == TRIB_REDUCE_SCATTER;

    return run->desc.codec && sums && (codec_flags(run) & TRIB_CODEC_LINEAR) &&
           !(codec_flags(run) & TRIB_CODEC_IDENTITY);
}

size_t trib_coded_bound(const struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;

    return trib_coded_linear(run) ? trib_codec_sum_bound(d->codec, d->piece)
                                  : trib_codec_bound(d->codec, d->piece);
}

/* n elements at p as float32: in place where they are that, else staged. */
static const float *as_f32(const struct trib_engine *e, const struct trib_run *run,
                           const void *p, size_t n, float *stage)
{
    if (run->desc.op.dtype == TRIB_F32 && (uintptr_t)p % sizeof(float) == 0)
        return p;
    e->kernels->to_f32[run->desc.op.dtype](stage, p, n);
    return stage;
}

/* The own contribution, as feedback wants it sent. */
static const float *own_f32(const struct trib_engine *e, const struct trib_run *run,
                            const struct trib_chunk *c, float *stage)
{
    const float *x = as_f32(e, run, trib_run_own(run, c), c->n, stage);

    trib_keep_state(run, c);
    return trib_feedback_apply(e, run, c, x, stage);
}

const float *trib_own_f32(struct trib_engine *e, struct trib_run *run,
                          const struct trib_chunk *c)
{
    return own_f32(e, run, c, run->stage);
}

/* A sum on its way. */
static const float *partial_f32(struct trib_engine *e, struct trib_run *run,
                                const struct trib_task *t, const struct trib_chunk *c)
{
    if (run->sum)
        return trib_service_sum_at(run, t->chunk);
    if (run->feedback.partial)
        return run->feedback.partial + c->first;
    return as_f32(e, run, trib_run_value(run, c), c->n, run->stage);
}

enum feedback {
    NO_FEEDBACK,
    WITH_FEEDBACK,
};

/* What a code word is made of. */
struct source {
    const float *x;
    bool exact;
    enum feedback feedback;
    float unit; /* x is of contributions divided by this */
    void *scratch;
};

static void scale_residual(const struct trib_engine *e, float *residual, size_t n, float unit,
                           bool divide)
{
    const float one = 1.0f;
    struct trib_reduce r = {.src = {residual}, .n_src = 1, .dst = {residual}, .n_dst = 1,
                            .n = n, .weight = divide ? &one : &unit,
                            .divisor = divide ? unit : 0};

    if (unit > 1.0f)
        e->kernels->reduce[TRIB_F32][TRIB_SUM](&r);
}

/* Called by workers, too: nothing of the engine changes, and of the run only what is the
 * chunk's. */
static uint32_t make_word(const struct trib_engine *e, const struct trib_run *run,
                          const struct trib_chunk *c, const struct source *s, uint8_t *dst)
{
    bool exact = s->exact, with_feedback = s->feedback == WITH_FEEDBACK;
    struct trib_encode in = {
        .x = s->x,
        .n = c->n,
        .total = run->desc.total,
        .mode = exact ? TRIB_ENCODE_EXACT : TRIB_ENCODE_CONTRIBUTION,
        .key = {.seed = run->desc.seed,
                .step = run->step,
                .stream = (uint32_t)e->rank,
                .index = c->first},
        .scratch = s->scratch,
        .model = run->desc.model,
    };
    bool fed_back = run->residual && !exact && with_feedback;
    float *residual = fed_back ? run->residual + c->first : NULL;
    struct trib_sent sent;
    size_t len;

    if (with_feedback)
        in.share = trib_share_of(run, c);
    if (!exact && trib_feedback_sent(run, c, &sent))
        in.sent = &sent;
    if (fed_back)
        scale_residual(e, residual, c->n, s->unit, true);
    if (fed_back && s->x == residual)
        len = trib_codec_encode_kept(run->desc.codec, &in, residual, dst);
    else if (fed_back)
        len = trib_codec_encode_ef(run->desc.codec, &in, residual, dst);
    else
        len = trib_codec_encode(run->desc.codec, &in, dst);
    if (fed_back)
        scale_residual(e, residual, c->n, s->unit, false);
    if (!exact)
        trib_feedback_encoded(run, c, dst, len);
    assert(len <= e->arena.slot_bytes);
    return (uint32_t)len;
}

static uint32_t encode(struct trib_engine *e, struct trib_run *run,
                       const struct trib_chunk *c, struct source s, uint8_t *dst)
{
    s.scratch = run->codec_scratch;
    trib_trace_now(&e->trace, TRIB_TRACE_ENCODE_BEGIN, -1, c->index, c->n);
    uint64_t begin = trib_now_ns();
    trib_share_settle(run, c);
    uint32_t len = make_word(e, run, c, &s, dst);
    e->stats.encode_ns += trib_now_ns() - begin;
    trib_trace_now(&e->trace, TRIB_TRACE_ENCODE_END, -1, c->index, len);
    return len;
}

uint32_t trib_coded_encode_own(const struct trib_engine *e, const struct trib_run *run,
                               const struct trib_chunk *c, enum trib_own_use use,
                               const struct trib_bench *bench, uint8_t *dst)
{
    bool result = use == TRIB_OWN_RESULT;
    const float *kept = trib_share_kept(run, c);
    struct source s = {.x = kept ? kept : own_f32(e, run, c, bench->stage),
                       .exact = result && (codec_flags(run) & TRIB_CODEC_SPARSE),
                       .feedback = result ? NO_FEEDBACK : WITH_FEEDBACK,
                       .unit = 1.0f,
                       .scratch = bench->scratch};

    return make_word(e, run, c, &s, dst);
}

static bool has_stored_sends(const struct trib_run *run, uint32_t chunk)
{
    for (uint32_t i = 0; i < run->program.n_tasks; i++) {
        const struct trib_task *t = &run->program.tasks[i];
        if (t->kind == TRIB_TASK_SEND && t->chunk == chunk &&
            (t->flags & TRIB_TASK_STORED))
            return true;
    }
    return false;
}

static bool takes_from_store(const struct trib_run *run, const struct trib_task *t)
{
    return t->kind == TRIB_TASK_COPY ||
           (t->kind == TRIB_TASK_REDUCE && trib_coded_linear(run)) ||
           (t->kind == TRIB_TASK_SEND && (t->flags & TRIB_TASK_STORED)) ||
           (t->kind == TRIB_TASK_REDUCE && (t->flags & TRIB_TASK_OWN_SENT));
}

bool trib_coded_store_free(const struct trib_run *run, uint32_t chunk, uint32_t round)
{
    const struct trib_program *p = &run->program;

    for (uint32_t i = 0; i < p->n_tasks; i++) {
        const struct trib_task *t = &p->tasks[i];
        if (t->chunk == chunk && t->done < round && takes_from_store(run, t))
            return false;
    }
    return true;
}

bool trib_coded_store_ready(const struct trib_run *run, const struct trib_task *t)
{
    return !run->stores || !takes_from_store(run, t) ||
           run->stores[t->chunk].round == t->done + 1 ||
           trib_coded_store_free(run, t->chunk, t->done);
}

struct trib_store *trib_store_of(struct trib_run *run, const struct trib_task *t,
                                 const struct trib_chunk *c)
{
    struct trib_store *s = &run->stores[t->chunk];

    if (run->values_read)
        s->bytes = trib_run_value(run, c);
    return s;
}

enum trib_own_use trib_coded_own_use(const struct trib_run *run, const struct trib_task *t)
{
    bool linear = trib_coded_linear(run);

    if (!(t->flags & TRIB_TASK_OWN) || trib_share_task(run, t))
        return TRIB_OWN_UNUSED;
    switch ((enum trib_task_kind)t->kind) {
    case TRIB_TASK_SEND:
        return t->flags & TRIB_TASK_FINAL ? TRIB_OWN_RESULT : TRIB_OWN_CONTRIBUTION;
    case TRIB_TASK_REDUCE:
        return linear || (t->flags & TRIB_TASK_OWN_SENT) ||
                       (codec_flags(run) & TRIB_CODEC_SPARSE)
                   ? TRIB_OWN_CONTRIBUTION
                   : TRIB_OWN_UNUSED;
    case TRIB_TASK_COPY:
        if (linear)
            return TRIB_OWN_CONTRIBUTION;
        return has_stored_sends(run, t->chunk) ? TRIB_OWN_RESULT : TRIB_OWN_UNUSED;
    case TRIB_TASK_COPY_IN:
        break;
    }
    return TRIB_OWN_UNUSED;
}

static const float *own_or_kept(struct trib_engine *e, struct trib_run *run,
                                const struct trib_chunk *c)
{
    const float *kept = trib_share_kept(run, c);

    return kept ? kept : trib_own_f32(e, run, c);
}

struct trib_store *trib_coded_own(struct trib_engine *e, struct trib_run *run,
                                  const struct trib_task *t, const struct trib_chunk *c,
                                  bool final)
{
    struct trib_store *s = &run->stores[t->chunk];

    if (s->round == t->done + 1)
        return s;
    if (!trib_ahead_take(e, run, t, &s->bytes, &s->len)) {
        const struct source own = {.x = own_or_kept(e, run, c),
                                   .exact = final && (codec_flags(run) & TRIB_CODEC_SPARSE),
                                   .feedback = final ? NO_FEEDBACK : WITH_FEEDBACK,
                                   .unit = 1.0f};
        s->len = encode(e, run, c, own, s->bytes);
    }
    s->round = t->done + 1;
    return s;
}

/* A peer that has this service's memory within reach gets the length of the word alone. */
static bool read_in_place(const struct trib_engine *e, const struct trib_run *run,
                          const struct trib_edge *edge)
{
    return run->values_read && edge->peer < e->ranks && e->links[edge->peer].mapped &&
           run->open.recv.blob.len;
}

/* Sums of a service that peers read are as wide as they are, and may be wider than a slot. */
static void fill_stored(struct trib_engine *e, struct trib_run *run, struct trib_task *t,
                        const struct trib_store *s, struct trib_cell *cell)
{
    struct trib_edge *edge = &run->program.edges[t->edge];
    struct trib_link *l = &e->links[edge->peer];

    assert(s->round == t->done + 1);
    if (!read_in_place(e, run, edge) && s->len > e->arena.slot_bytes) {
        trib_engine_unable(e, edge->peer, TRIB_ERR_NO_RESOURCE,
                           "the sum is wider than the slot that it has to go through");
        return;
    }
    if (!read_in_place(e, run, edge)) {
        memcpy(trib_link_to_send(l, &e->arena, t->lane, s->len), s->bytes, s->len);
        return;
    }
    cell->frame.kind = TRIB_FRAME_REF;
    cell->frame.source |= TRIB_SOURCE_RECV;
    cell->frame.bytes = sizeof(s->len);
    memcpy(trib_link_to_send(l, &e->arena, t->lane, sizeof(s->len)), &s->len, sizeof(s->len));
    edge->ref_end[t->lane] = l->send[t->lane].next + 1;
    e->stats.wire_bytes += s->len;
}

void trib_coded_fill(struct trib_engine *e, struct trib_run *run, struct trib_task *t,
                     const struct trib_chunk *c, struct trib_cell *cell)
{
    bool own = t->flags & TRIB_TASK_OWN;
    struct trib_link *l = &e->links[run->program.edges[t->edge].peer];
    uint8_t *payload = trib_link_to_send(l, &e->arena, t->lane, e->arena.slot_bytes);
    uint32_t len;

    cell->frame = run->frame;
    cell->frame.chunk = c->index;
    cell->frame.kind = TRIB_FRAME_DATA;
    if (run->narrow)
        trib_frame_set_divided(&cell->frame, trib_narrow_before(run, t));
    if (trib_service_sum_goes(run, t, c)) {
        len = trib_service_sum_fill(run, t, c, payload, cell);
        if (len <= l->small)
            memmove(trib_link_to_send(l, &e->arena, t->lane, len), payload, len);
    } else if (t->flags & TRIB_TASK_STORED) {
        const struct trib_store *s =
            own ? trib_coded_own(e, run, t, c, t->flags & TRIB_TASK_FINAL)
                : &run->stores[t->chunk];
        len = s->len;
        fill_stored(e, run, t, s, cell);
    } else if (own && trib_ahead_take(e, run, t, &run->word, &len)) {
        memcpy(trib_link_to_send(l, &e->arena, t->lane, len), run->word, len);
    } else {
        const struct source s = {
            .x = own ? own_or_kept(e, run, c) : partial_f32(e, run, t, c),
            .exact = !own && (codec_flags(run) & TRIB_CODEC_SPARSE),
            .feedback = WITH_FEEDBACK,
            .unit = (float)trib_narrow_divisor(trib_frame_divided(&cell->frame))};
        len = encode(e, run, c, s, payload);
        if (len <= l->small)
            memmove(trib_link_to_send(l, &e->arena, t->lane, len), payload, len);
    }
    if (cell->frame.kind == TRIB_FRAME_DATA)
        cell->frame.bytes = len;
    e->stats.dense_bytes += c->n * run->desc.element;
    e->stats.payload_bytes += len;
}

/* A sum as it is made: of n elements, in run->acc. */
struct sum {
    size_t n;
    bool first; /* nothing is in it */
    struct trib_narrow narrow;
};

/* acc = acc op weight * what a code word says; the first one sets acc. */
static trib_status_t merge_word(struct trib_engine *e, struct trib_run *run, struct sum *sum,
                                float weight, struct trib_word word)
{
    const struct trib_codec *codec = run->desc.codec;
    trib_op_t op = run->desc.op.op;
    struct trib_reduce r = {.src = {run->acc, run->stage}, .dst = {run->acc}, .n_dst = 1,
                            .n = sum->n};
    trib_status_t st;

    if (!sum->first && (op == TRIB_SUM || op == TRIB_MEAN))
        return trib_codec_decode_add(codec, word.src, word.len, weight, run->acc, sum->n);
    st = trib_codec_decode(codec, word.src, word.len, sum->first ? run->acc : run->stage,
                           sum->n);
    r.n_src = sum->first ? 1 : 2;
    r.weight = sum->first ? &weight : NULL;
    if (st == TRIB_OK && (!sum->first || weight < 1.0f || weight > 1.0f))
        e->kernels->reduce[TRIB_F32][op](&r);
    sum->first = false;
    return st;
}

static void merge_elements(struct trib_engine *e, struct trib_run *run, struct sum *sum,
                           float weight, const float *x)
{
    const float weights[2] = {sum->first ? weight : 1.0f, weight};
    struct trib_reduce r = {.dst = {run->acc}, .n_dst = 1, .n = sum->n};

    r.src[r.n_src++] = sum->first ? (const void *)x : run->acc;
    if (!sum->first)
        r.src[r.n_src++] = x;
    r.weight = run->narrow ? weights : NULL;
    e->kernels->reduce[TRIB_F32][run->desc.op.op](&r);
    sum->first = false;
}

static trib_status_t merge_own(struct trib_engine *e, struct trib_run *run,
                               const struct trib_task *t, const struct trib_chunk *c,
                               struct sum *sum)
{
    const float weight = sum->narrow.one;

    if (t->flags & TRIB_TASK_OWN_SENT) {
        struct trib_store *s = trib_coded_own(e, run, t, c, false);
        return merge_word(e, run, sum, weight, (struct trib_word){s->bytes, s->len});
    }
    uint32_t len;
    bool ahead = trib_ahead_take(e, run, t, &run->word, &len);
    const float *x = ahead ? NULL : trib_own_f32(e, run, c);
    if (!(codec_flags(run) & TRIB_CODEC_SPARSE)) {
        merge_elements(e, run, sum, weight, x);
        return TRIB_OK;
    }
    const struct source own = {.x = x, .feedback = WITH_FEEDBACK, .unit = 1.0f};
    if (!ahead)
        len = encode(e, run, c, own, run->word);
    return merge_word(e, run, sum, weight, (struct trib_word){run->word, len});
}

struct received {
    const struct trib_chunk *c;
    struct trib_cell *cell;
    int peer;
    int lane;
};

static trib_status_t merge_frame(struct trib_engine *e, struct trib_run *run, struct sum *sum,
                                 float weight, struct received r)
{
    const struct trib_frame *f = &r.cell->frame;
    const uint8_t *payload = trib_link_received(&e->links[r.peer], &e->arena, r.lane, r.cell);

    if (trib_service_sum_valid(e, r.peer, r.c, r.cell, 0)) {
        memcpy(run->stage, payload, f->bytes);
        merge_elements(e, run, sum, weight, run->stage);
        return TRIB_OK;
    }
    if (f->kind != TRIB_FRAME_DATA || f->bytes > e->arena.slot_bytes)
        return TRIB_ERR_PROTOCOL;
    return merge_word(e, run, sum, weight, (struct trib_word){payload, f->bytes});
}

static trib_status_t merge_all(struct trib_engine *e, struct trib_run *run,
                               const struct trib_task *t, const struct trib_chunk *c,
                               const struct trib_narrow *narrow)
{
    struct trib_program *p = &run->program;
    bool own_due = t->flags & TRIB_TASK_OWN, empty = t->flags & TRIB_TASK_EMPTY;
    struct sum sum = {.n = c->n, .first = true, .narrow = *narrow};
    trib_status_t st = TRIB_OK;

    if (!own_due && !empty)
        merge_elements(e, run, &sum, trib_narrow_weight(narrow, trib_narrow_before(run, t)),
                       partial_f32(e, run, t, c));
    for (uint32_t i = 0; i < t->n_members && st == TRIB_OK; i++) {
        struct trib_member *m = &p->members[t->member + i];
        int peer = p->edges[m->edge].peer;
        if (!trib_quorum_counts(run, peer))
            continue;
        if (own_due && peer > e->rank) {
            st = merge_own(e, run, t, c, &sum);
            own_due = false;
        }
        struct trib_link *l = &e->links[peer];
        struct trib_cell *cell = trib_link_peek(l, &e->arena, m->lane);
        float weight = run->narrow
                           ? trib_narrow_weight(narrow, trib_frame_divided(&cell->frame))
                           : 1.0f;
        if (st == TRIB_OK)
            st = merge_frame(e, run, &sum, weight, (struct received){c, cell, peer, m->lane});
    }
    if (own_due && st == TRIB_OK)
        st = merge_own(e, run, t, c, &sum);
    return st;
}

trib_status_t trib_coded_value(struct trib_engine *e, struct trib_run *run,
                               const struct trib_chunk *c, const uint8_t *word, size_t len)
{
    if (run->serves)
        return TRIB_OK; /* nobody looks at it here */
    trib_keep_input(run, c);
    if (run->feedback.sum)
        return trib_feedback_result(e, run, c, word, len);
    uint8_t *value = trib_run_value(run, c);
    bool direct =
        run->desc.op.dtype == TRIB_F32 && (uintptr_t)value % sizeof(float) == 0;
    float *x = direct ? (float *)value : run->acc;
    trib_status_t st;

    if (run->desc.model) {
        const struct trib_model_chunk chunk = {c->first, c->n, trib_share_of(run, c)};
        trib_share_settle(run, c);
        st = trib_model_result(run->desc.model, &chunk, word, len, x);
    } else {
        st = trib_codec_decode(run->desc.codec, word, len, x, c->n);
    }
    if (st == TRIB_OK && !direct)
        e->kernels->from_f32[run->desc.op.dtype](value, x, c->n);
    return st;
}

/* Where nothing of a sum is encoded here that another schedule has encoded here, what is kept
 * of that goes into the sum. */
static void release_residual(struct trib_engine *e, struct trib_run *run,
                             const struct trib_chunk *c, float one)
{
    float *residual = run->residual + c->first;

    trib_keep_state(run, c);
    e->kernels->axpy_f32(run->acc, residual, one, c->n);
    memset(residual, 0, c->n * sizeof(*residual));
}

/* What a merged sum is divided by. */
static void divide(struct trib_engine *e, struct trib_run *run, size_t n, float divisor)
{
    const float one = 1.0f;
    struct trib_reduce r = {.src = {run->acc}, .n_src = 1, .dst = {run->acc}, .n_dst = 1,
                            .n = n, .weight = &one, .divisor = divisor};

    if (divisor < 1.0f || divisor > 1.0f)
        e->kernels->reduce[TRIB_F32][TRIB_MEAN](&r);
}

trib_status_t trib_coded_reduce(struct trib_engine *e, struct trib_run *run,
                                struct trib_task *t, const struct trib_chunk *c)
{
    if (trib_coded_linear(run))
        return trib_linear_reduce(e, run, t, c);
    const bool sparse = codec_flags(run) & TRIB_CODEC_SPARSE;
    const bool finish = t->flags & TRIB_TASK_FINISH, mean = t->flags & TRIB_TASK_MEAN;
    const bool encodes = finish && !(t->flags & TRIB_TASK_OWN_SENT) &&
                         has_stored_sends(run, t->chunk);
    const int counted = mean ? trib_quorum_contributors(e, run) : 1;
    struct trib_narrow sum = {1.0f, (float)counted};
    if (run->narrow)
        sum = trib_narrow_begin(e, run, t);
    trib_status_t st = merge_all(e, run, t, c, &sum);

    if (st != TRIB_OK)
        return st;
    if (finish && !encodes && run->residual && !sparse && !(t->flags & TRIB_TASK_OWN_SENT))
        release_residual(e, run, c, sum.one);
    divide(e, run, c->n, sum.divisor);
    struct trib_store *s = &run->stores[t->chunk];
    if (run->sum)
        memcpy(trib_service_sum_at(run, t->chunk), run->acc, c->n * sizeof(float));
    if (encodes && run->sum) {
        trib_service_sum_finish(run, t, c);
        return TRIB_OK;
    }
    if (encodes) {
        const struct source result = {.x = run->acc, .exact = sparse,
                                      .feedback = WITH_FEEDBACK, .unit = (float)counted};
        s->len = encode(e, run, c, result, s->bytes);
        s->round = t->done + 1;
        return trib_coded_value(e, run, c, s->bytes, s->len);
    }
    if (run->feedback.sum && !run->serves && finish)
        return trib_feedback_result(e, run, c, NULL, 0);
    if (run->feedback.partial)
        memcpy(run->feedback.partial + c->first, run->acc, c->n * sizeof(float));
    else
        e->kernels->from_f32[run->desc.op.dtype](trib_run_value(run, c), run->acc, c->n);
    return TRIB_OK;
}

const uint8_t *trib_coded_word(struct trib_engine *e, const struct trib_run *run,
                               const struct trib_task *t, const struct trib_chunk *c,
                               uint32_t *len_out)
{
    const struct trib_edge *edge = &run->program.edges[t->edge];
    struct trib_link *l = &e->links[edge->peer];
    struct trib_cell *cell = trib_link_peek(l, &e->arena, t->lane);
    const uint8_t *payload = trib_link_received(l, &e->arena, t->lane, cell);

    *len_out = cell->frame.bytes;
    if (cell->frame.kind == TRIB_FRAME_DATA)
        return *len_out <= e->arena.slot_bytes &&
                       (!(t->flags & TRIB_TASK_RELAYED) || *len_out <= run->word_bytes)
                   ? payload
                   : NULL;
    if (cell->frame.kind != TRIB_FRAME_REF || *len_out != sizeof(*len_out) ||
        edge->peer < e->ranks)
        return NULL;
    memcpy(len_out, payload, sizeof(*len_out));
    return *len_out <= run->word_bytes && *len_out <= run->value_bytes
               ? trib_value_at(run, &edge->peer_recv, c)
               : NULL;
}

static trib_status_t copy_in_sum(struct trib_engine *e, struct trib_run *run,
                                 const struct trib_task *t, const struct trib_chunk *c,
                                 struct trib_cell *cell)
{
    const int peer = run->program.edges[t->edge].peer;
    const size_t behind = run->quorum ? run->quorum->mask_bytes : 0;
    const uint8_t *payload = trib_link_received(&e->links[peer], &e->arena, t->lane, cell);
    uint32_t len = cell->frame.bytes;
    trib_status_t st = TRIB_OK;

    if (!trib_service_sum_valid(e, peer, c, cell, behind) || trib_coded_linear(run) ||
        codec_flags(run) & TRIB_CODEC_SPARSE || (run->serves && !run->sum))
        return TRIB_ERR_PROTOCOL;
    if (run->quorum)
        st = trib_quorum_result(e, run, c, payload, &len);
    return st == TRIB_OK ? trib_service_sum_take(e, run, t, c, payload,
                                                 trib_quorum_in_result(e, run, c))
                         : st;
}

trib_status_t trib_coded_copy_in(struct trib_engine *e, struct trib_run *run,
                                 struct trib_task *t, const struct trib_chunk *c,
                                 struct trib_cell *cell)
{
    uint32_t len;

    if (cell->frame.kind == TRIB_FRAME_SUM)
        return copy_in_sum(e, run, t, c, cell);
    const uint8_t *word = trib_coded_word(e, run, t, c, &len);
    if (!word)
        return TRIB_ERR_PROTOCOL;
    if (cell->frame.kind == TRIB_FRAME_REF)
        e->stats.received_bytes += len;
    if (t->flags & TRIB_TASK_RELAYED) {
        struct trib_store *s = trib_store_of(run, t, c);
        if (run->sum)
            run->sum->has_result[t->chunk] = false;
        memcpy(s->bytes, word, len);
        s->len = len;
        s->round = t->done + 1;
    }
    if (run->quorum) {
        trib_status_t st = trib_quorum_result(e, run, c, word, &len);
        if (st != TRIB_OK)
            return st;
    }
    return trib_coded_value(e, run, c, word, len);
}

/* Nobody else is there: nothing is lost, unless the plan has more than error feedback, whose
 * result then is what it would be with others. */
static trib_status_t copy_alone(struct trib_engine *e, struct trib_run *run,
                                const struct trib_chunk *c)
{
    struct trib_sent sent;

    if (run->feedback.coded) {
        const struct source own = {
            .x = trib_own_f32(e, run, c), .feedback = WITH_FEEDBACK, .unit = 1.0f};
        uint32_t len = encode(e, run, c, own, run->word);
        return trib_coded_value(e, run, c, run->word, len);
    }
    if (trib_feedback_sent(run, c, &sent))
        trib_sent_mark_all(&sent, c->n);
    trib_raw_copy(e, run, c);
    return TRIB_OK;
}

trib_status_t trib_coded_copy(struct trib_engine *e, struct trib_run *run,
                              struct trib_task *t, const struct trib_chunk *c)
{
    bool alone = trib_coded_linear(run); /* one rank's sum is what it would send */

    if (!alone && !has_stored_sends(run, t->chunk))
        return copy_alone(e, run, c);
    struct trib_store *s = trib_coded_own(e, run, t, c, !alone);
    return run->no_result ? TRIB_OK : trib_coded_value(e, run, c, s->bytes, s->len);
}
