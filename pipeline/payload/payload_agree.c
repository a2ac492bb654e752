/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/payload_agree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/payload/contribution.h"
#include "pipeline/payload/payload.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/run/engine_state.h"

static size_t floats_of_round(const struct trib_run *run)
{
    return run->payload->share.floats * run->desc.n_chunks;
}

/* Count the agreement's frames of a round. */
static void count_frames(struct trib_run *run)
{
    struct trib_program *p = &run->program;

    for (uint32_t i = 0; i < p->n_tasks; i++) {
        const struct trib_task *t = &p->tasks[i];
        if (!trib_share_task(run, t))
            continue;
        if (t->kind == TRIB_TASK_SEND)
            p->neighbors[t->neighbor].share_sends[t->lane]++;
        if (t->kind == TRIB_TASK_COPY_IN)
            p->neighbors[t->neighbor].share_recvs[t->lane]++;
        for (uint32_t k = 0; k < t->n_contribs; k++) {
            const struct trib_contrib *m = &p->contribs[t->contrib + k];
            p->neighbors[m->neighbor].share_recvs[m->lane]++;
        }
    }
    p->share_rounds = trib_run_rounds(run);
    p->share_lead = run->desc.share_lead;
}

uint64_t trib_share_bytes(const struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;
    const struct trib_feedback_rule *rule = &d->feedback;
    const uint64_t chunks = (uint64_t)trib_run_rounds(run) * d->n_chunks;
    const bool keep = trib_feedback_states(rule) > 0;

    if (!d->share_piece)
        return 0;
    return chunks * ((d->model ? 3 : 2) * sizeof(float) *
                         trib_codec_agreed_floats(d->codec, d->piece) +
                     sizeof(*run->payload->share.measured) +
                     sizeof(*run->payload->share.settled)) +
           (keep ? (d->total + 1) * sizeof(float) : 0);
}

trib_status_t trib_share_prepare(struct trib_run *run)
{
    struct trib_share *s = &run->payload->share;

    assert(!run->desc.share_piece == !run->desc.share_lead);
    if (!run->desc.share_piece)
        return TRIB_OK;
    count_frames(run);
    s->floats = trib_codec_agreed_floats(run->desc.codec, run->desc.piece);
    size_t rounds = trib_run_rounds(run), n = rounds * floats_of_round(run);
    s->proposed = calloc(n ? n : 1, sizeof(*s->proposed));
    s->acc = calloc(n ? n : 1, sizeof(*s->acc));
    s->agreed = run->desc.model ? calloc(n ? n : 1, sizeof(*s->agreed)) : NULL;
    s->measured = calloc(rounds, sizeof(*s->measured));
    s->settled = calloc(rounds * run->desc.n_chunks, sizeof(*s->settled));
    bool keep = run->payload->feedback.ops;
    if (keep && !run->payload->feedback.residual)
        s->kept = calloc(run->desc.total + 1, sizeof(*s->kept));
    bool whole = s->proposed && s->acc && s->measured && s->settled &&
                 (s->agreed || !run->desc.model) &&
                 (s->kept || run->payload->feedback.residual || !keep);
    return whole ? TRIB_OK : TRIB_ERR_NO_MEMORY;
}

void trib_share_dispose(struct trib_run *run)
{
    free(run->payload->share.proposed);
    free(run->payload->share.acc);
    free(run->payload->share.agreed);
    free(run->payload->share.measured);
    free(run->payload->share.settled);
    free(run->payload->share.kept);
}

void trib_share_begin(struct trib_run *run)
{
    run->payload->share.step++;
}

/* Return the number of floats of a round's nonempty chunks: the others are past the end
 * of the vector. */
static size_t floats_in(const struct trib_run *run, uint32_t round)
{
    const struct trib_run_desc *d = &run->desc;

    if (round >= trib_run_rounds(run))
        return 0;
    if (d->cut == TRIB_CUT_BLOCKED)
        return floats_of_round(run);
    if (d->op.feed == TRIB_FEED_BACKWARD)
        round = trib_run_rounds(run) - 1 - round;
    size_t chunks = (d->total + d->piece - 1) / d->piece - (size_t)round * d->n_chunks;
    return run->payload->share.floats * (chunks < d->n_chunks ? chunks : d->n_chunks);
}

/* Return the agreement's chunk of t in its next round; first and n count floats of that
 * round. */
static struct trib_chunk agree_chunk(const struct trib_run *run,
                                     const struct trib_task *t)
{
    const uint32_t round = t->done;
    size_t all = floats_in(run, round);
    size_t first = (t->chunk - run->desc.n_chunks) * run->desc.share_piece;
    struct trib_chunk c = {.index = TRIB_CHUNK_NO_ELEMENTS + round + 1, .first = first};

    if (first < all)
        c.n = all - first < run->desc.share_piece ? all - first : run->desc.share_piece;
    return c;
}

bool trib_share_agreed(const struct trib_run *run, uint32_t round)
{
    const struct trib_program *p = &run->program;

    const uint32_t lead = run->desc.share_lead;

    if (!lead || round < lead)
        return true;
    for (uint32_t i = 0; i < p->n_tasks && trib_share_task(run, &p->tasks[i]); i++)
        if (p->tasks[i].kind != TRIB_TASK_SEND && p->tasks[i].done <= round - lead)
            return false;
    return true;
}

bool trib_share_ready(const struct trib_run *run, const struct trib_task *t)
{
    return !(t->flags & TRIB_TASK_INPUT) || trib_share_agreed(run, t->done);
}

/* Return the index of a round's first float in the arrays. */
static size_t round_at(const struct trib_run *run, uint32_t round)
{
    assert(round < trib_run_rounds(run));
    return (size_t)round * floats_of_round(run);
}

/* Return the index of a chunk's first float in the arrays. */
static size_t chunk_at(const struct trib_run *run, const struct trib_chunk *c)
{
    uint32_t chunk = c->index % run->desc.n_chunks,
             round = c->index / run->desc.n_chunks;

    if (run->desc.op.feed == TRIB_FEED_BACKWARD)
        round = trib_run_rounds(run) - 1 - round;
    return round_at(run, round) + chunk * run->payload->share.floats;
}

const float *trib_share_of(const struct trib_run *run, const struct trib_chunk *c)
{
    const struct trib_share *s = &run->payload->share;

    if (!run->desc.share_piece || c->n == 0)
        return NULL;
    return (run->desc.model ? s->agreed : s->acc) + chunk_at(run, c);
}

void trib_share_settle(struct trib_run *run, const struct trib_chunk *c)
{
    struct trib_share *s = &run->payload->share;

    if (!run->desc.model || !run->desc.share_piece || c->n == 0 ||
        s->settled[c->index] == s->step)
        return;
    assert(c->index < trib_run_rounds(run) * run->desc.n_chunks);
    s->settled[c->index] = s->step;
    const struct trib_model_chunk chunk = {.first = c->first, .n = c->n};
    const size_t at = chunk_at(run, c);
    memcpy(s->agreed + at, s->acc + at, s->floats * sizeof(*s->agreed));
    trib_model_settle(run->desc.model, &chunk, s->agreed + at);
}

/* Add the measured elements to the residual in the same pass: error feedback is applied
 * to a contribution once. */
static void keep_and_propose(struct trib_run *run, const struct trib_model_chunk *c,
                             const float *x, float *out)
{
    float *residual = run->payload->feedback.residual + c->first;

    if (run->desc.model)
        trib_model_propose_added(run->desc.model, c, x, residual, out);
    else
        trib_codec_propose_added(run->desc.codec, x, residual, c->n, out);
}

const float *trib_share_kept(const struct trib_run *run, const struct trib_chunk *c)
{
    if (!run->desc.share_piece)
        return NULL;
    if (run->payload->feedback.residual)
        return run->payload->feedback.residual + c->first;
    return run->payload->share.kept ? run->payload->share.kept + c->first : NULL;
}

static void measure(struct trib_engine *e, struct trib_run *run, uint32_t round)
{
    struct trib_share *s = &run->payload->share;

    if (s->measured[round] == s->step)
        return;
    assert(s->measured[round] < s->step);
    s->measured[round] = s->step;
    for (uint32_t k = 0; k < run->desc.n_chunks; k++) {
        struct trib_chunk c = trib_vector_chunk(run, round, k);
        float *out = s->proposed + round_at(run, round) + k * s->floats;
        memset(out, 0, s->floats * sizeof(*out));
        if (c.n == 0)
            continue;
        const float *x = trib_input_f32(e, run, &c);
        const struct trib_model_chunk chunk = {.first = c.first, .n = c.n};
        if (run->payload->feedback.residual) {
            keep_and_propose(run, &chunk, x, out);
            continue;
        }
        if (s->kept) {
            memcpy(s->kept + c.first, x, c.n * sizeof(*s->kept));
            x = s->kept + c.first;
        }
        if (run->desc.model)
            trib_model_propose(run->desc.model, &chunk, x, out);
        else
            trib_codec_propose(run->desc.codec, x, c.n, out);
    }
}

/* Return the floats that a task sends, or the first term of its sum. */
static const float *source_of(struct trib_engine *e, struct trib_run *run,
                              const struct trib_task *t, const struct trib_chunk *c)
{
    bool is_input = t->flags & TRIB_TASK_INPUT;

    if (c->n == 0)
        return run->payload->share.proposed;
    if (is_input)
        measure(e, run, t->done);
    return (is_input ? run->payload->share.proposed : run->payload->share.acc) +
           round_at(run, t->done) + c->first;
}

static void agree_fill(struct trib_engine *e, struct trib_run *run, struct trib_task *t,
                       const struct trib_chunk *c, struct trib_entry *entry)
{
    struct trib_link *l = &e->links[run->program.neighbors[t->neighbor].peer];
    size_t bytes = c->n * sizeof(float);

    entry->frame = run->now.frame;
    entry->frame.chunk = c->index;
    entry->frame.kind = TRIB_FRAME_DATA;
    entry->frame.bytes = (uint32_t)bytes;
    if (bytes)
        memcpy(trib_link_to_send(l, &e->arena, t->lane, bytes), source_of(e, run, t, c),
               bytes);
    e->stats.payload_bytes += bytes;
}

/* Return the floats in a frame; NULL if the frame is invalid. */
static const uint8_t *received(const struct trib_engine *e,
                               const struct trib_neighbor *neighbor, int lane,
                               const struct trib_chunk *c, struct trib_entry *entry)
{
    if (entry->frame.kind != TRIB_FRAME_DATA ||
        entry->frame.bytes != c->n * sizeof(float))
        return NULL;
    return trib_link_received(&e->links[neighbor->peer], &e->arena, lane, entry);
}

/* Compute acc = acc op x; the first contribution sets acc. */
static void join(struct trib_engine *e, const struct trib_run *run, float *acc,
                 const void *x, size_t n, bool first)
{
    struct trib_reduce_args r = {.src = {first ? x : acc, x},
                            .n_src = first ? 1 : 2,
                            .dst = {acc},
                            .n_dst = 1,
                            .n = n};

    e->kernels->reduce[TRIB_F32][trib_codec_agreement_op(run->desc.codec)](&r);
}

/* Sum in rank order, like all sums; an earlier sum is already in place. */
static trib_status_t agree_reduce(struct trib_engine *e, struct trib_run *run,
                                  struct trib_task *t, const struct trib_chunk *c)
{
    float *acc =
        run->payload->share.acc + (c->n ? round_at(run, t->done) + c->first : 0);
    struct trib_contrib_walk walk = trib_contrib_begin(e, run, t);
    struct trib_contrib_item from;
    bool first = true;

    while (trib_contrib_next(&walk, &from)) {
        const void *x = acc;
        if (from.by == TRIB_BY_INPUT)
            x = source_of(e, run, t, c);
        else if (from.by == TRIB_BY_PEER)
            x = received(e, from.neighbor, from.contrib->lane, c, from.entry);
        if (!x)
            return TRIB_ERR_PROTOCOL;
        if (from.by != TRIB_BY_ACC)
            join(e, run, acc, x, c->n, first);
        first = false;
    }
    return TRIB_OK;
}

static trib_status_t agree_copy_in(struct trib_engine *e, struct trib_run *run,
                                   struct trib_task *t, const struct trib_chunk *c,
                                   struct trib_entry *entry)
{
    const uint8_t *theirs =
        received(e, &run->program.neighbors[t->neighbor], t->lane, c, entry);

    if (!theirs)
        return TRIB_ERR_PROTOCOL;
    if (c->n)
        memcpy(run->payload->share.acc + round_at(run, t->done) + c->first, theirs,
               c->n * sizeof(float));
    return TRIB_OK;
}

static trib_status_t agree_copy(struct trib_engine *e, struct trib_run *run,
                                struct trib_task *t, const struct trib_chunk *c)
{
    if (c->n)
        memcpy(run->payload->share.acc + round_at(run, t->done) + c->first,
               source_of(e, run, t, c), c->n * sizeof(float));
    return TRIB_OK;
}

/* Return true if all chunks of the round are ready, because the proposal covers them
 * all. */
static bool agree_ready(struct trib_engine *e, struct trib_run *run,
                        const struct trib_task *t, const struct trib_chunk *c)
{
    bool all = true;

    (void)e;
    if (t->kind == TRIB_TASK_COPY_IN || !run->now.unfed ||
        !(t->flags & TRIB_TASK_INPUT))
        return true;
    for (uint32_t k = 0; c->n && all && k < run->desc.n_chunks; k++) {
        const struct trib_chunk of_vector = trib_vector_chunk(run, t->done, k);
        all = trib_chunk_fed(run, &of_vector);
    }
    return all;
}

static size_t agree_room(const struct trib_engine *e, const struct trib_run *run,
                         const struct trib_task *t, const struct trib_chunk *c)
{
    (void)run;
    (void)t;
    (void)c;
    return e->arena.slot_bytes;
}

/* No begin and end: the vector's payload begins and ends an operation. */
const struct trib_payload_ops trib_payload_agreement = {
    .name = "agreement",
    .chunk = agree_chunk,
    .room = agree_room,
    .ready = agree_ready,
    .fill = agree_fill,
    .reduce = agree_reduce,
    .copy_in = agree_copy_in,
    .copy = agree_copy,
};
