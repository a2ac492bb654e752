/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/partial.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fpenv.h"
#include "base/time.h"
#include "pipeline/payload/agg_sum.h"
#include "pipeline/payload/checksum.h"
#include "pipeline/payload/contribution.h"
#include "pipeline/payload/error_feedback.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/payload/run_codec.h"
#include "pipeline/payload/undo_log.h"
#include "pipeline/run/engine_state.h"
#include "pipeline/run/failure.h"

/* Return the number of ranks in a bitmap. */
static int count_ranks(const uint8_t *mask, size_t bytes)
{
    int n = 0;

    for (size_t i = 0; i < bytes; i++)
        n += __builtin_popcount(mask[i]);
    return n;
}

bool trib_quorum_has(const struct trib_run *run, int peer)
{
    return trib_quorum_bit(run->payload->quorum->counted, peer);
}

int trib_quorum_contributors(const struct trib_engine *e, const struct trib_run *run)
{
    return run->payload->quorum ? count_ranks(run->payload->quorum->counted,
                                                   run->payload->quorum->mask_bytes)
                                : e->ranks;
}

static size_t chunks_of(const struct trib_run *run)
{
    return (size_t)run->desc.rounds * run->desc.n_chunks;
}

int trib_quorum_in_result(const struct trib_engine *e, const struct trib_run *run,
                          const struct trib_chunk *c)
{
    const struct trib_quorum *q = run->payload->quorum;

    return q ? count_ranks(q->masks + c->index * q->mask_bytes, q->mask_bytes)
             : e->ranks;
}

/* Preparation ---------------------------------------------------------------------- */

static bool prepare_node(struct trib_run *run, struct trib_quorum *q)
{
    const struct trib_program *p = &run->program;

    q->order = calloc(p->n_tasks + 1, sizeof(*q->order));
    q->out = calloc(p->n_neighbors + 1, sizeof(*q->out));
    for (uint32_t i = 0; q->order && i < p->n_tasks; i++)
        if (p->tasks[i].kind == TRIB_TASK_REDUCE)
            q->order[q->n_order++] = i;
    q->n_results = q->n_order * run->desc.rounds;
    q->stride = trib_codec_bound(run->desc.codec, run->desc.piece) + q->mask_bytes;
    q->results = malloc(q->n_results * q->stride + 1);
    q->bytes = calloc((size_t)q->n_results + 1, sizeof(*q->bytes));
    q->chunk = calloc((size_t)q->n_results + 1, sizeof(*q->chunk));
    q->elements = calloc((size_t)q->n_results + 1, sizeof(*q->elements));
    if (run->payload->agg_sum)
        q->sums = malloc(q->n_results * run->desc.piece * sizeof(float) + 1);
    for (uint32_t i = 0; q->out && i < p->n_neighbors; i++)
        q->out[i].run = run;
    return (q->sums || !run->payload->agg_sum) && q->order && q->out && q->results &&
           q->bytes && q->chunk && q->elements;
}

uint64_t trib_quorum_bytes(const struct trib_engine *e, const struct trib_run *run)
{
    const struct trib_quorum *q = NULL; /* only for sizeof */
    const struct trib_program *p = &run->program;
    const uint64_t result =
        trib_codec_bound(run->desc.codec, run->desc.piece) +
        trib_quorum_mask_bytes(e->ranks) + sizeof(*q->bytes) + sizeof(*q->chunk) +
        sizeof(*q->elements) +
        (trib_agg_sum_bytes(run) ? run->desc.piece * sizeof(float) : 0);
    uint64_t sums = 0;

    for (uint32_t i = 0; i < p->n_tasks; i++)
        sums += p->tasks[i].kind == TRIB_TASK_REDUCE;
    return sizeof(*q) + p->n_tasks * sizeof(*q->order) +
           (p->n_neighbors + 1) * sizeof(*q->out) + sums * run->desc.rounds * result;
}

trib_status_t trib_quorum_prepare(struct trib_engine *e, struct trib_run *run)
{
    struct trib_quorum *q = calloc(1, sizeof(*q));
    bool ok;

    assert(run->desc.codec && !trib_coded_linear(run) && !run->desc.zero_copy);
    run->payload->quorum = q;
    if (!q)
        return TRIB_ERR_NO_MEMORY;
    q->mask_bytes = trib_quorum_mask_bytes(e->ranks);
    q->counted = calloc(q->mask_bytes, 1);
    if (run->is_aggregator) {
        ok = prepare_node(run, q);
    } else {
        q->masks = calloc(chunks_of(run) * q->mask_bytes + 1, 1);
        ok = q->masks;
    }
    return ok && q->counted ? TRIB_OK : TRIB_ERR_NO_MEMORY;
}

void trib_quorum_dispose(struct trib_run *run)
{
    struct trib_quorum *q = run->payload->quorum;

    if (!q)
        return;
    free(q->order);
    free(q->counted);
    free(q->results);
    free(q->sums);
    free(q->bytes);
    free(q->chunk);
    free(q->elements);
    free(q->out);
    free(q->masks);
    free(q);
    run->payload->quorum = NULL;
}

/* Aggregator ----------------------------------------------------------------------- */

static void queue_out(struct trib_engine *e, struct trib_link *l, struct trib_out *out)
{
    struct trib_out **end = &l->out;

    assert(!out->queued);
    while (*end)
        end = &(*end)->next;
    *end = out;
    out->next = NULL;
    out->sent = 0;
    out->queued = true;
    l->out_frames += out->run->payload->quorum->n_results;
    e->has_backlog = true;
}

bool trib_quorum_begin(struct trib_engine *e, struct trib_run *run)
{
    struct trib_quorum *q = run->payload->quorum;
    struct trib_program *p = &run->program;

    if (!run->is_aggregator)
        return true;
    q->closed = 0;
    q->opened_ns = 0;
    for (uint32_t i = 0; i < p->n_neighbors; i++) {
        const int peer = p->neighbors[i].peer;
        if (q->out[i].queued) {
            trib_engine_protocol(e, peer,
                                 "a new start before it received the previous result");
            return false;
        }
        queue_out(e, &e->links[peer], &q->out[i]);
    }
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        if (p->tasks[i].kind != TRIB_TASK_SEND)
            continue;
        p->tasks[i].done = run->desc.rounds;
        run->now.remaining--;
    }
    return true;
}

/* Collect the arrived contributions in q->counted and return their number; *behind_out
 * is the number of ranks whose contribution cannot have arrived yet. */
static uint32_t gather(struct trib_engine *e, struct trib_run *run,
                       const struct trib_task *t, uint32_t *behind_out)
{
    const struct trib_program *p = &run->program;
    struct trib_quorum *q = run->payload->quorum;
    uint32_t n = 0;

    *behind_out = 0;
    memset(q->counted, 0, q->mask_bytes);
    for (uint32_t i = 0; i < t->n_contribs; i++) {
        const struct trib_contrib *m = &p->contribs[t->contrib + i];
        const int peer = p->neighbors[m->neighbor].peer;
        if (e->links[peer].recv[m->lane].skip) {
            ++*behind_out;
        } else if (trib_run_due(e, run, m, t->done)) {
            q->counted[peer / 8] |= (uint8_t)(1u << peer % 8);
            n++;
        }
    }
    assert(n + *behind_out <= t->n_contribs);
    return n;
}

bool trib_quorum_due(struct trib_engine *e, struct trib_run *run,
                     const struct trib_task *t)
{
    struct trib_quorum *q = run->payload->quorum;
    uint32_t behind;

    assert(q->n_order > 0 && q->closed < q->n_results);
    if (t != &run->program.tasks[q->order[q->closed % q->n_order]])
        return false;
    const uint32_t n = gather(e, run, t, &behind);
    if (n == t->n_contribs)
        return true;
    if (n == 0)
        return false;
    const uint64_t now = trib_now_ns();
    if (!q->opened_ns)
        q->opened_ns = now;
    if (n < run->desc.quorum.need)
        return false;
    return n + behind == t->n_contribs ||
           now - q->opened_ns >= run->desc.quorum.deadline_ns;
}

void trib_quorum_skip(struct trib_engine *e, struct trib_link *l, int lane)
{
    l->recv[lane].skip++;
    e->has_backlog = true;
}

void trib_quorum_closed(struct trib_engine *e, struct trib_run *run,
                        const struct trib_task *t, const struct trib_chunk *c)
{
    struct trib_quorum *q = run->payload->quorum;
    const struct trib_encoded_store *s = &run->payload->stores[t->chunk];
    const uint32_t i = q->closed;
    uint8_t *to = q->results + i * q->stride;

    assert(i < q->n_results && s->round == t->done + 1 &&
           s->len + q->mask_bytes <= q->stride);
    memcpy(to, s->bytes, s->len);
    if (q->sums)
        memcpy(q->sums + i * run->desc.piece, trib_agg_sum_at(run, t->chunk),
               c->n * sizeof(float));
    memcpy(to + s->len, q->counted, q->mask_bytes);
    q->bytes[i] = s->len + (uint32_t)q->mask_bytes;
    q->chunk[i] = c->index;
    q->elements[i] = c->n;
    q->closed++;
    q->opened_ns = 0;
    e->stats.short_sums += count_ranks(q->counted, q->mask_bytes) < e->ranks;
    e->has_backlog = true;
}

bool trib_quorum_idle(const struct trib_run *run)
{
    const struct trib_quorum *q = run->payload->quorum;
    bool idle = true;

    for (uint32_t i = 0; q && q->out && i < run->program.n_neighbors; i++)
        idle &= !q->out[i].queued;
    return idle;
}

/* Drop a frame of a chunk that was closed without it. The payload may be anything, but
 * the header is checked, since the frames after it must keep their positions. */
static bool drop_one(struct trib_engine *e, struct trib_link *l, int lane)
{
    struct trib_recv_lane *r = &l->recv[lane];
    const struct trib_entry *entry = trib_link_peek(l, &e->arena, lane);

    if (!r->skip || !entry)
        return false;
    const struct trib_frame f = entry->frame;
    if (f.magic != TRIB_FRAME_MAGIC || f.kind != TRIB_FRAME_DATA ||
        (int32_t)(e->seq - f.seq) < 0) {
        trib_engine_protocol(e, l->peer, "a frame that is not a late contribution");
        return false;
    }
    e->stats.received_bytes += sizeof(f) + f.bytes;
    e->stats.late_frames++;
    trib_link_release(l, &e->arena, lane);
    r->skip--;
    return true;
}

/* Return true if this link carries the next result as floats. */
static bool goes_as_sum(const struct trib_out *out)
{
    const struct trib_quorum *q = out->run->payload->quorum;

    return q->sums && q->chunk[out->sent] % out->run->program.n_neighbors ==
                          (uint32_t)(out - q->out);
}

static uint32_t bytes_of(const struct trib_out *out)
{
    const struct trib_quorum *q = out->run->payload->quorum;

    return goes_as_sum(out)
               ? (uint32_t)(q->elements[out->sent] * sizeof(float) + q->mask_bytes)
               : q->bytes[out->sent];
}

static void fill(struct trib_engine *e, struct trib_link *l, const struct trib_out *out)
{
    const struct trib_quorum *q = out->run->payload->quorum;
    const uint8_t *word = q->results + out->sent * q->stride;
    struct trib_entry *entry = trib_link_entry(l, &e->arena, TRIB_LANE_DOWN);
    const uint32_t bytes = bytes_of(out), floats = bytes - (uint32_t)q->mask_bytes;
    uint8_t *to = trib_link_to_send(l, &e->arena, TRIB_LANE_DOWN, bytes);

    entry->frame = out->run->now.frame;
    entry->frame.chunk = q->chunk[out->sent];
    entry->frame.kind = goes_as_sum(out) ? TRIB_FRAME_SUM : TRIB_FRAME_DATA;
    entry->frame.bytes = bytes;
    if (!goes_as_sum(out)) {
        memcpy(to, word, bytes);
        return;
    }
    memcpy(to, q->sums + out->sent * out->run->desc.piece, floats);
    memcpy(to + floats, word + q->bytes[out->sent] - q->mask_bytes, q->mask_bytes);
}

/* Send the next result if the link has room. */
static bool send_one(struct trib_engine *e, struct trib_link *l)
{
    struct trib_out *out = l->out;
    const struct trib_quorum *q = out ? out->run->payload->quorum : NULL;

    /* A result of the running operation may not exist yet. */
    if (!out || (out->run->now.state == TRIB_RUN_ACTIVE && out->sent == q->closed) ||
        !trib_link_can_send(l, TRIB_LANE_DOWN, bytes_of(out)))
        return false;
    assert(out->queued && out->sent < q->n_results);
    if (!l->send[TRIB_LANE_DOWN].filled) {
        fill(e, l, out);
        if (out->run->desc.check.sum)
            trib_checksum_set_slot(e, l, TRIB_LANE_DOWN);
    }
    if (trib_link_publish(l, &e->arena, TRIB_LANE_DOWN) != TRIB_OK)
        return false; /* the transport is full, or an event will report a loss */
    e->stats.messages++;
    e->stats.wire_bytes += sizeof(struct trib_frame) + bytes_of(out);
    e->stats.payload_bytes += bytes_of(out);
    e->stats.dense_bytes += q->elements[out->sent] * out->run->desc.element;
    l->out_frames--;
    if (++out->sent == q->n_results) {
        out->queued = false;
        l->out = out->next;
    }
    return true;
}

/* Send slot adverts and credits, as for the links of the running operation; return
 * false if some remain unsent. */
static bool pay(struct trib_engine *e, struct trib_link *l)
{
    bool owed = false;

    if (!l->slots)
        (void)trib_link_take_advert(l, &e->arena);
    for (int lane = 0; lane < TRIB_LANES; lane++) {
        if (l->recv[lane].owed)
            trib_link_give_back(l, lane);
        owed |= l->recv[lane].owed;
    }
    return !owed;
}

bool trib_quorum_progress(struct trib_engine *e)
{
    bool moved = false, has_backlog = false;

    for (int p = 0; p < e->ranks && !e->failed; p++) {
        struct trib_link *l = &e->links[p];
        if (!l->opened || l->lost || p == e->rank)
            continue;
        while (!e->failed && drop_one(e, l, TRIB_LANE_UP))
            moved = true;
        while (!e->failed && send_one(e, l))
            moved = true;
        has_backlog |= !pay(e, l) || l->out || l->recv[TRIB_LANE_UP].skip;
    }
    e->has_backlog = has_backlog;
    return moved;
}

/* Rank ----------------------------------------------------------------------------- */

static void clear_sent(struct trib_run *run, const struct trib_chunk *c)
{
    uint8_t *sent = run->payload->feedback.sent;

    for (size_t i = c->first; sent && i < c->first + c->n; i++)
        sent[i / 8] &= (uint8_t)~(1u << i % 8);
}

/* Add the contribution to a chunk to the residual, as if it had been computed and not
 * sent; the chunk's state is already restored. */
static void keep_back(struct trib_engine *e, struct trib_run *run,
                      const struct trib_chunk *c)
{
    assert(run->payload->feedback.residual);
    clear_sent(run, c);
    e->kernels->axpy_f32(run->payload->feedback.residual + c->first,
                         trib_input_f32(e, run, c), 1.0f, c->n);
}

/* Return true if only bits of existing ranks are set, and enough of them. */
static bool valid(const struct trib_engine *e, const struct trib_run *run,
                  const uint8_t *mask)
{
    const size_t bytes = run->payload->quorum->mask_bytes;

    if (e->ranks % 8 && mask[bytes - 1] >> e->ranks % 8)
        return false;
    return count_ranks(mask, bytes) >= (int)run->desc.quorum.need;
}

trib_status_t trib_quorum_result(struct trib_engine *e, struct trib_run *run,
                                 const struct trib_chunk *c, const uint8_t *payload,
                                 uint32_t *len)
{
    struct trib_quorum *q = run->payload->quorum;
    uint8_t *mask = q->masks + c->index * q->mask_bytes;

    assert(c->index < chunks_of(run));
    if (*len < q->mask_bytes)
        return TRIB_ERR_PROTOCOL;
    *len -= (uint32_t)q->mask_bytes;
    memcpy(mask, payload + *len, q->mask_bytes);
    if (!valid(e, run, mask))
        return TRIB_ERR_PROTOCOL;
    if (c->n && !trib_quorum_bit(mask, e->rank)) {
        trib_undo_state(run, c);
        keep_back(e, run, c);
    }
    return TRIB_OK;
}

/* Recovery without the aggregator -------------------------------------------------- */

static void set_head(const struct trib_run *run, struct trib_quorum_start *out)
{
    const struct trib_run_desc *d = &run->desc;

    *out = (struct trib_quorum_start){.count = d->total,
                                      .element = d->element,
                                      .piece = d->piece,
                                      .chunks = chunks_of(run),
                                      .mask_bytes = run->payload->quorum->mask_bytes};
}

struct trib_quorum_start *trib_quorum_room(const struct trib_run *run)
{
    struct trib_quorum_start head;

    set_head(run, &head);
    struct trib_quorum_start *s = malloc(trib_quorum_start_bytes(&head));
    if (s)
        *s = head;
    return s;
}

void trib_quorum_copy(const struct trib_run *run, uint64_t number,
                      struct trib_quorum_start *out)
{
    set_head(run, out);
    out->number = number;
    memcpy(out->bytes, run->payload->quorum->masks, out->chunks * out->mask_bytes);
    if (out->count)
        memcpy(out->bytes + out->chunks * out->mask_bytes, run->now.recv,
               out->count * out->element);
}

bool trib_quorum_of_run(const struct trib_quorum_start *s, const struct trib_run *run)
{
    struct trib_quorum_start head;

    if (!run->payload->quorum)
        return false;
    set_head(run, &head);
    return s->count == head.count && s->element == head.element &&
           s->piece == head.piece && s->chunks == head.chunks;
}

bool trib_quorum_valid(const struct trib_quorum_start *s, size_t bytes, int ranks)
{
    return bytes >= sizeof(*s) && s->mask_bytes == trib_quorum_mask_bytes(ranks) &&
           s->element <= sizeof(double) && s->count <= bytes && s->chunks <= bytes &&
           trib_quorum_start_bytes(s) == bytes;
}

static struct trib_chunk chunk_at(const struct trib_quorum_start *s, size_t i)
{
    struct trib_chunk c = {.index = (uint32_t)i, .first = i * s->piece};

    c.first = c.first < s->count ? c.first : s->count;
    c.n = s->count - c.first < s->piece ? s->count - c.first : s->piece;
    return c;
}

static const uint8_t *mask_at(const struct trib_quorum_start *s, size_t i)
{
    return s->bytes + i * s->mask_bytes;
}

void trib_quorum_absent(const struct trib_quorum_start *s, int ranks, size_t *out)
{
    memset(out, 0, (size_t)ranks * sizeof(*out));
    for (size_t i = 0; i < s->chunks; i++)
        for (int r = 0; r < ranks; r++)
            if (!trib_quorum_bit(mask_at(s, i), r))
                out[r] += chunk_at(s, i).n;
}

void trib_quorum_undo(struct trib_engine *e, struct trib_run *run,
                      const struct trib_quorum_start *s)
{
    assert(trib_quorum_of_run(s, run));
    for (size_t i = 0; i < s->chunks; i++) {
        const struct trib_chunk c = chunk_at(s, i);
        trib_undo_input(run, &c);
        if (!trib_quorum_bit(mask_at(s, i), e->rank))
            trib_undo_state(run, &c);
    }
}

void trib_quorum_deliver(struct trib_engine *e, struct trib_run *run,
                         const struct trib_quorum_start *s, const void *send,
                         void *recv, bool begun)
{
    const uint64_t modes = trib_fpenv_enter();

    trib_run_bind(e, run, send, recv);
    run->now.step += !begun;
    trib_feedback_clip(e, run);
    for (size_t i = 0; i < s->chunks; i++) {
        const struct trib_chunk whole = chunk_at(s, i);
        const size_t end = whole.first + whole.n, piece = run->desc.piece;
        if (trib_quorum_bit(mask_at(s, i), e->rank))
            continue;
        for (struct trib_chunk c = whole; c.first < end; c.first += c.n) {
            c.n = end - c.first < piece ? end - c.first : piece;
            keep_back(e, run, &c);
        }
    }
    if (s->count)
        memcpy(recv, trib_quorum_values(s), s->count * s->element);
    trib_fpenv_leave(modes);
}
