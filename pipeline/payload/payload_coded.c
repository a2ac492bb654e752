/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encoded chunks.
 *
 * With error feedback a rank encodes each element at most once per operation, so one
 * residual per element suffices:
 *
 *   - Sparse codecs select from the input, sent or not. Sums are sent whole, results as
 *     result= says; the loss of a result goes to the residual of the finishing rank.
 *   - Other codecs quantise the data that is sent: an input, a partial sum or, at the
 *     finishing rank, the result. The finishing rank's own input stays exact, unless
 *     others decode it as well (INPUT_SENT): then its decoded value is summed.
 *   - Encoded chunks that add without decoding are in payload_linear.c.
 *
 * A residual has the unit of contributions, even if the encoded sum is a mean or is
 * divided (narrow.h). Another schedule may therefore continue with it. The plan's
 * feedback (error_feedback.h) is applied when the input is read, once per operation.
 * The finishing rank decodes its result like all others, so all have the same bits.
 *
 * Contributions are added in rank order, so a sum does not depend on arrival order.
 */
#include "pipeline/payload/payload_coded.h"

#include <assert.h>
#include <string.h>

#include "pipeline/payload/agg_sum.h"
#include "pipeline/payload/chunk_memory.h"
#include "pipeline/payload/contribution.h"
#include "pipeline/payload/decode.h"
#include "pipeline/payload/encode.h"
#include "pipeline/payload/encode_ahead.h"
#include "pipeline/payload/error_feedback.h"
#include "pipeline/payload/narrow.h"
#include "pipeline/payload/partial.h"
#include "pipeline/payload/payload_agree.h"
#include "pipeline/payload/payload_raw.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/payload/run_codec.h"
#include "pipeline/payload/encoded_store.h"
#include "pipeline/run/engine_state.h"
#include "pipeline/run/failure.h"

/* Return the partial sum of a chunk as float32. */
static const float *partial_f32(struct trib_engine *e, struct trib_run *run,
                                const struct trib_task *t, const struct trib_chunk *c)
{
    if (run->payload->agg_sum)
        return trib_agg_sum_at(run, t->chunk);
    if (run->payload->feedback.partial)
        return run->payload->feedback.partial + c->first;
    return trib_as_f32(e, run, trib_run_acc(run, c), c->n, run->payload->stage);
}

static const float *input_or_kept(struct trib_engine *e, struct trib_run *run,
                                  const struct trib_chunk *c)
{
    const float *kept = trib_share_kept(run, c);

    return kept ? kept : trib_input_f32(e, run, c);
}

struct trib_encoded_store *trib_coded_input(struct trib_engine *e, struct trib_run *run,
                                            const struct trib_task *t,
                                            const struct trib_chunk *c, bool final)
{
    struct trib_encoded_store *s = &run->payload->stores[t->chunk];

    if (s->round == t->done + 1)
        return s;
    assert(s->round <= t->done);
    if (!trib_encode_ahead_take(e, run, t, &s->bytes, &s->len)) {
        const struct trib_encode_source source = {
            .x = input_or_kept(e, run, c),
            .mode = final ? trib_coded_mode(run, TRIB_ENCODE_EXACT)
                          : TRIB_ENCODE_CONTRIBUTION,
            .feedback = !final,
            .unit = 1.0f};
        s->len = trib_encode(e, run, c, source, s->bytes);
    }
    s->round = t->done + 1;
    return s;
}

/* Return true if the peer reads encoded chunks in this aggregator's memory: frames then
 * contain only the length. */
static bool read_in_place(const struct trib_engine *e, const struct trib_run *run,
                          const struct trib_neighbor *neighbor)
{
    return run->payload->acc_is_read && neighbor->peer < e->ranks &&
           e->links[neighbor->peer].mapped && run->now.advert.recv.blob.len;
}

/* Fill the frame of a stored chunk. A sum that peers read in place may be larger than a
 * slot. */
static void fill_stored(struct trib_engine *e, struct trib_run *run,
                        struct trib_task *t, const struct trib_encoded_store *s,
                        struct trib_entry *entry)
{
    struct trib_neighbor *neighbor = &run->program.neighbors[t->neighbor];
    struct trib_link *l = &e->links[neighbor->peer];

    assert(s->round == t->done + 1);
    if (!read_in_place(e, run, neighbor) && s->len > e->arena.slot_bytes) {
        trib_engine_unable(e, neighbor->peer, TRIB_ERR_NO_RESOURCE,
                           "the encoded sum does not fit into a slot");
        return;
    }
    if (!read_in_place(e, run, neighbor)) {
        memcpy(trib_link_to_send(l, &e->arena, t->lane, s->len), s->bytes, s->len);
        return;
    }
    entry->frame.kind = TRIB_FRAME_GET;
    entry->frame.source |= TRIB_SOURCE_RECV;
    entry->frame.bytes = sizeof(s->len);
    memcpy(trib_link_to_send(l, &e->arena, t->lane, sizeof(s->len)), &s->len,
           sizeof(s->len));
    neighbor->ref_end[t->lane] = l->send[t->lane].next + 1;
    e->stats.wire_bytes += s->len;
}

void trib_coded_fill(struct trib_engine *e, struct trib_run *run, struct trib_task *t,
                     const struct trib_chunk *c, struct trib_entry *entry)
{
    bool is_input = t->flags & TRIB_TASK_INPUT;
    struct trib_link *l = &e->links[run->program.neighbors[t->neighbor].peer];
    uint8_t *payload = trib_link_to_send(l, &e->arena, t->lane, e->arena.slot_bytes);
    uint32_t len;

    entry->frame = run->now.frame;
    entry->frame.chunk = c->index;
    entry->frame.kind = TRIB_FRAME_DATA;
    if (run->payload->narrow)
        trib_frame_set_divided(&entry->frame, trib_narrow_before(run, t));
    if (trib_agg_sum_goes(run, t, c)) {
        len = trib_agg_sum_fill(run, t, c, payload, entry);
        if (len <= l->small)
            memmove(trib_link_to_send(l, &e->arena, t->lane, len), payload, len);
    } else if (t->flags & TRIB_TASK_STORED) {
        const struct trib_encoded_store *s =
            is_input ? trib_coded_input(e, run, t, c, t->flags & TRIB_TASK_FINAL)
                     : &run->payload->stores[t->chunk];
        len = s->len;
        fill_stored(e, run, t, s, entry);
    } else if (is_input &&
               trib_encode_ahead_take(e, run, t, &run->payload->encoded, &len)) {
        memcpy(trib_link_to_send(l, &e->arena, t->lane, len), run->payload->encoded,
               len);
    } else {
        const struct trib_encode_source s = {
            .x = is_input ? input_or_kept(e, run, c) : partial_f32(e, run, t, c),
            .mode = is_input ? TRIB_ENCODE_CONTRIBUTION
                             : trib_coded_mode(run, TRIB_ENCODE_EXACT),
            .feedback = true,
            .unit = (float)trib_narrow_divisor(trib_frame_divided(&entry->frame))};
        len = trib_encode(e, run, c, s, payload);
        if (len <= l->small)
            memmove(trib_link_to_send(l, &e->arena, t->lane, len), payload, len);
    }
    if (entry->frame.kind == TRIB_FRAME_DATA)
        entry->frame.bytes = len;
    trib_payload_count_out(e, t, c->n * run->desc.element, len);
}

/* State of a sum of n elements. */
struct sum {
    float *acc; /* [n] */
    size_t n;
    bool first; /* the sum is empty */
    bool zeros; /* acc is 0 everywhere */
    uint64_t *marks; /* acc is 0 except where marked; or NULL */
    struct trib_narrow narrow;
};

/* Compute acc = acc op weight * decoded elements; the first term sets acc. */
static trib_status_t merge_word(struct trib_engine *e, struct trib_run *run,
                                struct sum *sum, float weight, struct trib_encoded word)
{
    const struct trib_codec *codec = run->desc.codec;
    trib_op_t op = run->desc.op.op;
    struct trib_reduce_args r = {.src = {sum->acc, run->payload->stage},
                                 .dst = {sum->acc},
                                 .n_dst = 1,
                                 .n = sum->n};
    trib_status_t st;

    if (sum->marks) {
        const struct trib_marked_word marked = {word.src, word.len, weight, sum->first,
                                                sum->marks};
        sum->first = false;
        return trib_codec_decode_marked(codec, &marked, sum->acc, sum->n);
    }
    if (!sum->first && (op == TRIB_SUM || op == TRIB_MEAN))
        return trib_codec_decode_add(codec, word.src, word.len, weight, sum->acc,
                                     sum->n);
    st = trib_coded_to_elements(run, word, sum->first && sum->zeros,
                                sum->first ? sum->acc : run->payload->stage, sum->n);
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
    struct trib_reduce_args r = {.dst = {sum->acc}, .n_dst = 1, .n = sum->n};

    r.src[r.n_src++] = sum->first ? (const void *)x : sum->acc;
    if (!sum->first)
        r.src[r.n_src++] = x;
    r.weight = run->payload->narrow ? weights : NULL;
    e->kernels->reduce[TRIB_F32][run->desc.op.op](&r);
    sum->first = false;
}

static trib_status_t merge_input(struct trib_engine *e, struct trib_run *run,
                                 const struct trib_task *t, const struct trib_chunk *c,
                                 struct sum *sum)
{
    const float weight = sum->narrow.one;

    if (t->flags & TRIB_TASK_INPUT_SENT) {
        struct trib_encoded_store *s = trib_coded_input(e, run, t, c, false);
        return merge_word(e, run, sum, weight, (struct trib_encoded){s->bytes, s->len});
    }
    uint32_t len;
    bool ahead = trib_encode_ahead_take(e, run, t, &run->payload->encoded, &len);
    const float *x = ahead ? NULL : trib_input_f32(e, run, c);
    if (!(trib_codec_flags(run) & TRIB_CODEC_SPARSE)) {
        merge_elements(e, run, sum, weight, x);
        return TRIB_OK;
    }
    const struct trib_encode_source source = {.x = x, .feedback = true, .unit = 1.0f};
    if (!ahead)
        len = trib_encode(e, run, c, source, run->payload->encoded);
    return merge_word(e, run, sum, weight,
                      (struct trib_encoded){run->payload->encoded, len});
}

static trib_status_t merge_frame(struct trib_engine *e, struct trib_run *run,
                                 struct sum *sum, const struct trib_chunk *c,
                                 const struct trib_contrib_item *from)
{
    const struct trib_frame *f = &from->entry->frame;
    const uint8_t *payload = trib_contrib_received(e, from);
    const float weight = run->payload->narrow
                             ? trib_narrow_weight(&sum->narrow, trib_frame_divided(f))
                             : 1.0f;

    if (!(trib_codec_flags(run) & TRIB_CODEC_SPARSE) &&
        trib_agg_sum_valid(e, run, from->neighbor->peer, c, from->entry, 0)) {
        memcpy(run->payload->stage, payload, f->bytes);
        merge_elements(e, run, sum, weight, run->payload->stage);
        return TRIB_OK;
    }
    if (f->kind != TRIB_FRAME_DATA || f->bytes > e->arena.slot_bytes)
        return TRIB_ERR_PROTOCOL;
    return merge_word(e, run, sum, weight, (struct trib_encoded){payload, f->bytes});
}

static trib_status_t merge_all(struct trib_engine *e, struct trib_run *run,
                               const struct trib_task *t, const struct trib_chunk *c,
                               const struct trib_narrow *narrow, float *acc)
{
    struct trib_contrib_walk walk = trib_contrib_begin(e, run, t);
    struct sum sum = {.acc = acc, .n = c->n, .first = true, .narrow = *narrow};
    sum.marks = acc == run->payload->acc ? NULL : trib_feedback_marks(run, c);
    sum.zeros = trib_feedback_take_zeros(run, c) && acc != run->payload->acc;
    struct trib_contrib_item from;
    trib_status_t st = TRIB_OK;

    while (st == TRIB_OK && trib_contrib_next(&walk, &from)) {
        if (from.by == TRIB_BY_PEER) {
            st = merge_frame(e, run, &sum, c, &from);
            trib_payload_count_in(e, run, c, 1);
        } else if (from.by == TRIB_BY_INPUT) {
            st = merge_input(e, run, t, c, &sum);
        } else {
            merge_elements(e, run, &sum,
                           trib_narrow_weight(narrow, trib_narrow_before(run, t)),
                           partial_f32(e, run, t, c));
        }
    }
    return st;
}

/* Return true if sparse chunks can be summed directly in the result's memory: all
 * contributions, including the local one, are encoded by then, and nothing else needs
 * the sum. */
static bool sums_in_place(const struct trib_run *run, const struct trib_task *t)
{
    return trib_codec_flags(run) & TRIB_CODEC_SPARSE && t->flags & TRIB_TASK_FINISH &&
           t->flags & TRIB_TASK_INPUT_SENT && run->desc.op.dtype == TRIB_F32 &&
           !run->is_aggregator && !run->payload->agg_sum &&
           !run->payload->feedback.partial && !trib_feedback_gives_result(run);
}

static trib_status_t sum_in_place(struct trib_engine *e, struct trib_run *run,
                                  struct trib_task *t, const struct trib_chunk *c,
                                  const struct trib_narrow *narrow)
{
    float *result = (float *)(void *)trib_run_acc(run, c);

    (void)trib_coded_input(e, run, t, c, false); /* the sum may overwrite the input */
    const trib_status_t st = merge_all(e, run, t, c, narrow, result);
    if (st == TRIB_OK)
        trib_coded_divide(e, result, c->n, narrow->divisor,
                          trib_feedback_marks(run, c));
    e->stats.sums++;
    return st;
}

static trib_status_t coded_reduce(struct trib_engine *e, struct trib_run *run,
                                  struct trib_task *t, const struct trib_chunk *c)
{
    const uint32_t flags = trib_codec_flags(run);
    const bool sparse = flags & TRIB_CODEC_SPARSE;
    const bool finish = t->flags & TRIB_TASK_FINISH, mean = t->flags & TRIB_TASK_MEAN;
    const bool encodes = finish && !(t->flags & TRIB_TASK_INPUT_SENT) &&
                         trib_store_is_sent(run, t->chunk);
    const int counted = mean ? trib_quorum_contributors(e, run) : 1;
    struct trib_narrow sum = {1.0f, (float)counted};
    if (run->payload->narrow)
        sum = trib_narrow_begin(e, run, t);
    if (sums_in_place(run, t))
        return sum_in_place(e, run, t, c, &sum);
    trib_status_t st = merge_all(e, run, t, c, &sum, run->payload->acc);
    if (st != TRIB_OK)
        return st;
    e->stats.sums++;
    if (finish && !encodes && run->payload->feedback.residual && !sparse &&
        !(t->flags & TRIB_TASK_INPUT_SENT))
        trib_feedback_release(e, run, c, sum.one);
    trib_coded_divide(e, run->payload->acc, c->n, sum.divisor, NULL);
    struct trib_encoded_store *s = &run->payload->stores[t->chunk];
    if (run->payload->agg_sum)
        memcpy(trib_agg_sum_at(run, t->chunk), run->payload->acc, c->n * sizeof(float));
    if (encodes && run->payload->agg_sum) {
        trib_agg_sum_finish(run, t, c);
        return TRIB_OK;
    }
    if (encodes) {
        const struct trib_encode_source result = {
            .x = run->payload->acc,
            .mode = trib_coded_mode(run, TRIB_ENCODE_RESULT),
            .feedback = true,
            .unit = (float)counted};
        s->len = trib_encode(e, run, c, result, s->bytes);
        assert(s->len <= run->payload->encoded_max);
        s->round = t->done + 1;
        if (flags & TRIB_CODEC_RESULT_LOSES)
            trib_feedback_keep_rest(e, run, c, (struct trib_encoded){s->bytes, s->len},
                                    run->payload->acc, result.unit);
        return trib_coded_to_acc(e, run, c, s->bytes, s->len);
    }
    if (trib_feedback_gives_result(run) && !run->is_aggregator && finish)
        return trib_feedback_result(e, run, c, NULL, 0);
    trib_feedback_mark_all(run, c);
    (void)trib_feedback_take_zeros(run, c); /* the memory is written now */
    if (run->payload->feedback.partial)
        memcpy(run->payload->feedback.partial + c->first, run->payload->acc,
               c->n * sizeof(float));
    else
        e->kernels->from_f32[run->desc.op.dtype](trib_run_acc(run, c),
                                                 run->payload->acc, c->n);
    return TRIB_OK;
}

/*
 * Return the encoded chunk that a COPY_IN's frame contains or names; NULL if invalid.
 *
 * A forwarded chunk goes to a store with room for the codec's maximum length. Its
 * length is checked here because a forwarding rank does not decode it.
 */
static const uint8_t *coded_word(struct trib_engine *e, const struct trib_run *run,
                                 const struct trib_task *t, const struct trib_chunk *c,
                                 uint32_t *len_out)
{
    const struct trib_neighbor *neighbor = &run->program.neighbors[t->neighbor];
    struct trib_link *l = &e->links[neighbor->peer];
    struct trib_entry *entry = trib_link_peek(l, &e->arena, t->lane);
    const uint8_t *payload = trib_link_received(l, &e->arena, t->lane, entry);

    *len_out = entry->frame.bytes;
    if (entry->frame.kind == TRIB_FRAME_DATA)
        return *len_out <= e->arena.slot_bytes &&
                       (!(t->flags & TRIB_TASK_RELAYED) ||
                        *len_out <= run->payload->encoded_max)
                   ? payload
                   : NULL;
    if (entry->frame.kind != TRIB_FRAME_GET || *len_out != sizeof(*len_out) ||
        neighbor->peer < e->ranks)
        return NULL;
    memcpy(len_out, payload, sizeof(*len_out));
    return *len_out <= run->payload->encoded_max && *len_out <= run->payload->acc_bytes
               ? trib_peer_result(run, &neighbor->peer_recv, c)
               : NULL;
}

static trib_status_t copy_in_sum(struct trib_engine *e, struct trib_run *run,
                                 const struct trib_task *t, const struct trib_chunk *c,
                                 struct trib_entry *entry)
{
    const int peer = run->program.neighbors[t->neighbor].peer;
    const size_t behind = run->payload->quorum ? run->payload->quorum->mask_bytes : 0;
    const uint8_t *payload =
        trib_link_received(&e->links[peer], &e->arena, t->lane, entry);
    uint32_t len = entry->frame.bytes;
    trib_status_t st = TRIB_OK;

    if (!trib_agg_sum_valid(e, run, peer, c, entry, behind) ||
        (run->is_aggregator && !run->payload->agg_sum))
        return TRIB_ERR_PROTOCOL;
    if (run->payload->quorum)
        st = trib_quorum_result(e, run, c, payload, &len);
    return st == TRIB_OK
               ? trib_agg_sum_take(e, run, t, c, (struct trib_encoded){payload, len},
                                   trib_quorum_in_result(e, run, c))
               : st;
}

trib_status_t trib_coded_copy_in(struct trib_engine *e, struct trib_run *run,
                                 struct trib_task *t, const struct trib_chunk *c,
                                 struct trib_entry *entry)
{
    uint32_t len;

    trib_payload_count_in(e, run, c, 1);
    if (entry->frame.kind == TRIB_FRAME_SUM)
        return copy_in_sum(e, run, t, c, entry);
    const uint8_t *word = coded_word(e, run, t, c, &len);
    if (!word)
        return TRIB_ERR_PROTOCOL;
    if (entry->frame.kind == TRIB_FRAME_GET)
        e->stats.received_bytes += len;
    if (t->flags & TRIB_TASK_RELAYED) {
        struct trib_encoded_store *s = trib_store_of(run, t, c);
        if (run->payload->agg_sum)
            run->payload->agg_sum->has_result[t->chunk] = false;
        assert(len <= run->payload->encoded_max);
        memcpy(s->bytes, word, len);
        s->len = len;
        s->round = t->done + 1;
    }
    if (run->payload->quorum) {
        trib_status_t st = trib_quorum_result(e, run, c, word, &len);
        if (st != TRIB_OK)
            return st;
    }
    return trib_coded_to_acc(e, run, c, word, len);
}

/* Copy the input of the only rank. This is lossless unless the plan has more than error
 * feedback. */
static trib_status_t copy_alone(struct trib_engine *e, struct trib_run *run,
                                const struct trib_chunk *c)
{
    struct trib_sent sent;

    if (run->payload->feedback.coded) {
        const struct trib_encode_source source = {
            .x = trib_input_f32(e, run, c), .feedback = true, .unit = 1.0f};
        uint32_t len = trib_encode(e, run, c, source, run->payload->encoded);
        return trib_coded_to_acc(e, run, c, run->payload->encoded, len);
    }
    if (trib_feedback_sent(run, c, &sent))
        trib_sent_mark_all(&sent, c->n);
    trib_raw_copy(e, run, c);
    return TRIB_OK;
}

static trib_status_t coded_copy(struct trib_engine *e, struct trib_run *run,
                                struct trib_task *t, const struct trib_chunk *c)
{
    if (!trib_store_is_sent(run, t->chunk))
        return copy_alone(e, run, c);
    return trib_coded_copy_input(e, run, t, c, true);
}

trib_status_t trib_coded_copy_input(struct trib_engine *e, struct trib_run *run,
                                    const struct trib_task *t,
                                    const struct trib_chunk *c, bool final)
{
    const struct trib_encoded_store *s = trib_coded_input(e, run, t, c, final);

    return run->no_result ? TRIB_OK : trib_coded_to_acc(e, run, c, s->bytes, s->len);
}

static bool begin_model(struct trib_engine *e, struct trib_run *run)
{
    struct trib_error err = {0};
    trib_status_t st = TRIB_OK;

    if (run->now.exchanged)
        st = trib_model_exchanged(run->desc.model, run->now.exchanged, &err);
    if (st == TRIB_OK)
        trib_model_begin(run->desc.model, run->now.step);
    else
        trib_engine_mark(e, st, trib_error_text(&err));
    return st == TRIB_OK;
}

bool trib_coded_begin(struct trib_engine *e, struct trib_run *run)
{
    for (uint32_t i = 0; i < run->desc.n_chunks; i++)
        run->payload->stores[i].round = 0;
    trib_share_begin(run);
    if (run->desc.model && !begin_model(e, run))
        return false;
    if (run->payload->quorum && !trib_quorum_begin(e, run))
        return false;
    trib_feedback_begin(e, run);
    trib_encode_ahead_begin(run);
    return true;
}

void trib_coded_end(struct trib_engine *e, struct trib_run *run)
{
    trib_encode_ahead_end(e, run);
    trib_feedback_end(run);
}

size_t trib_coded_room(const struct trib_engine *e, const struct trib_run *run,
                       const struct trib_task *t, const struct trib_chunk *c)
{
    (void)run;
    (void)t;
    (void)c;
    return e->arena.slot_bytes; /* the chunk is not encoded yet */
}

bool trib_coded_ready(struct trib_engine *e, struct trib_run *run,
                      const struct trib_task *t, const struct trib_chunk *c)
{
    if (t->kind == TRIB_TASK_COPY_IN)
        return trib_acc_free(e, run, t) &&
               (!(t->flags & TRIB_TASK_RELAYED) ||
                trib_coded_store_free(run, t->chunk, t->done));
    if (!trib_run_fed(run, t, c) || !trib_share_ready(run, t))
        return false;
    if (t->kind == TRIB_TASK_REDUCE ? !trib_acc_free(e, run, t) ||
                                          !trib_coded_store_free(run, t->chunk, t->done)
                                    : !trib_coded_store_ready(run, t))
        return false;
    return trib_encode_ahead_ready(e, run, t);
}

struct trib_bytes trib_coded_sent(const struct trib_engine *e,
                                  const struct trib_run *run, const struct trib_task *t,
                                  const struct trib_chunk *c)
{
    struct trib_link *l = &e->links[run->program.neighbors[t->neighbor].peer];
    const struct trib_encoded_store *s = &run->payload->stores[t->chunk];

    (void)c;
    if (trib_link_entry(l, &e->arena, t->lane)->frame.kind != TRIB_FRAME_GET)
        return (struct trib_bytes){.at = NULL};
    return (struct trib_bytes){s->bytes, s->len};
}

struct trib_bytes trib_coded_received(struct trib_engine *e, const struct trib_run *run,
                                      const struct trib_task *t,
                                      const struct trib_contrib *from,
                                      const struct trib_chunk *c)
{
    uint32_t len = 0;
    const uint8_t *word =
        t->kind == TRIB_TASK_COPY_IN ? coded_word(e, run, t, c, &len) : NULL;

    (void)from;
    return (struct trib_bytes){word, len};
}

const struct trib_payload_ops trib_payload_coded = {
    .name = "coded",
    .begin = trib_coded_begin,
    .end = trib_coded_end,
    .chunk = trib_task_chunk,
    .room = trib_coded_room,
    .ready = trib_coded_ready,
    .fill = trib_coded_fill,
    .reduce = coded_reduce,
    .copy_in = trib_coded_copy_in,
    .copy = coded_copy,
    .sent = trib_coded_sent,
    .received = trib_coded_received,
};
