/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exchange of a request with all parts of a vector concurrently. If a session ends, it
 * is reopened and the part is asked again; tribd recognises a push that it has applied
 * by its number.
 */
#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "agg/store_client/rank_store.h"
#include "base/minmax.h"
#include "base/time.h"
#include "compress/vectors/vector_words.h"

enum {
    MESSAGES_ALIVE = 64
}; /* of 32 KiB, between two calls of trib_store_keep_alive */

static struct trib_session *session_of(const struct trib_store_request *r,
                                       const struct trib_vector_part *p)
{
    return r->vector->store->link->sessions[p->shard];
}

/* Restart the timeout after progress. */
static void put_off(const struct trib_store_request *r, struct trib_part_request *q)
{
    const int timeout_ms = r->vector->store->job.cfg.timeout_ms;

    q->until = trib_limit_deadline(timeout_ms);
    if (q->stage >= TRIB_PART_ANSWER)
        q->until = trib_deadline_later(q->until, trib_deadline_left_ms(r->wait_until) *
                                                     UINT64_C(1000000));
}

static void begin(const struct trib_store_request *r, struct trib_vector_part *p)
{
    struct trib_part_request *q = &p->request;

    assert(q->stage != TRIB_PART_DONE);
    q->stage = r->indices || r->codec ? TRIB_PART_FORM : TRIB_PART_BODY;
    q->sent = q->heard = 0;
    q->decoding = TRIB_INPROGRESS;
    if (q->words)
        trib_words_begin(q->words);
    put_off(r, q);
}

/* Sending -------------------------------------------------------------------------- */

/* Return the bytes to send in this stage. */
static size_t stage_bytes(const struct trib_store_request *r,
                          const struct trib_vector_part *p)
{
    const struct trib_part_request *q = &p->request;

    if (q->stage == TRIB_PART_FORM && r->indices)
        return q->n_indices * trib_control_index_bytes(p->count);
    return q->stage == TRIB_PART_BODY && r->purpose ? q->data_bytes : 0;
}

static struct trib_control compose_indices(const struct trib_vector_part *p, uint32_t n,
                                           uint8_t room[TRIB_CONTROL_STORE_BYTES])
{
    const struct trib_part_request *q = &p->request;
    const size_t each = trib_control_index_bytes(p->count);
    const uint64_t *from = q->indices + q->sent / each;

    assert(n <= TRIB_CONTROL_STORE_BYTES && n % each == 0);
    for (size_t i = 0; i < n / each; i++) {
        const uint64_t index = from[i] - q->first_index;
        memcpy(room + i * each, &index, each);
    }
    return (struct trib_control){.kind = TRIB_CONTROL_STORE_INDEX,
                                 .store_index = {.vector = p->number,
                                                 .count = q->n_indices,
                                                 .offset = q->sent,
                                                 .data = {room, n}}};
}

static struct trib_control compose_codec(const struct trib_store_request *r,
                                         const struct trib_vector_part *p)
{
    struct trib_control m = {
        .kind = TRIB_CONTROL_STORE_CODEC,
        .store_codec = {.vector = p->number,
                        .bytes = r->purpose ? p->request.data_bytes : 0}};

    snprintf(m.store_codec.codec, sizeof(m.store_codec.codec), "%s", r->codec);
    return m;
}

static struct trib_control compose_body(const struct trib_store_request *r,
                                        const struct trib_vector_part *p, uint32_t n)
{
    const struct trib_part_request *q = &p->request;

    if (r->order)
        return (struct trib_control){.kind = TRIB_CONTROL_STORE_SNAPSHOT,
                                     .store_snapshot = {p->number, r->order}};
    if (!r->purpose)
        return (struct trib_control){.kind = TRIB_CONTROL_STORE_PULL,
                                     .store_pull = {p->number, q->first, q->count,
                                                    r->at_least, r->bound, r->wait_ms}};
    return (struct trib_control){.kind = TRIB_CONTROL_STORE_PUSH,
                                 .store_push = {.vector = p->number,
                                                .purpose = r->purpose,
                                                .number = r->number,
                                                .rate = r->rate,
                                                .offset = q->sent,
                                                .data = {q->data + q->sent, n}}};
}

/* Count a message of a loop that may run for seconds, and keep all sessions alive. */
static void count_message(struct trib_store *store, unsigned *n)
{
    if (++*n % MESSAGES_ALIVE == 0)
        trib_store_keep_alive(store);
}

/* Send as much as there is room for. A stage without bytes still has one message. */
static trib_status_t send_some(const struct trib_store_request *r,
                               struct trib_vector_part *p)
{
    struct trib_part_request *q = &p->request;
    uint8_t room[TRIB_CONTROL_STORE_BYTES];
    unsigned messages = 0;

    while (q->stage < TRIB_PART_ANSWER && trib_session_has_room(session_of(r, p))) {
        const size_t bytes = stage_bytes(r, p);
        assert(q->sent <= bytes);
        const uint32_t n = (uint32_t)trib_min(bytes - q->sent, sizeof(room));
        const struct trib_control m = q->stage == TRIB_PART_BODY ? compose_body(r, p, n)
                                      : r->indices ? compose_indices(p, n, room)
                                                   : compose_codec(r, p);
        const trib_status_t st = trib_session_send(session_of(r, p), &m);
        if (st == TRIB_ERR_NO_RESOURCE)
            return TRIB_OK;
        if (st != TRIB_OK)
            return trib_store_lost(r->vector->store, p->shard, st);
        q->sent += n;
        r->vector->store->stats.sent_bytes += n;
        if (q->sent == bytes) {
            q->stage++;
            q->sent = 0;
        }
        put_off(r, q);
        count_message(r->vector->store, &messages);
    }
    return TRIB_OK;
}

/* Receiving ------------------------------------------------------------------------ */

static trib_status_t not_due(const struct trib_store_request *r,
                             const struct trib_vector_part *p, const char *what)
{
    const trib_status_t st =
        trib_session_end(session_of(r, p), TRIB_ERR_PROTOCOL,
                         "unexpected %s of vector %s", what, r->vector->name);

    return trib_store_lost(r->vector->store, p->shard, st);
}

/* Accept elements of an answer; false: unexpected. */
static bool take_data(struct trib_part_request *q,
                      const struct trib_control_store_data *d)
{
    if (d->offset != q->heard)
        return false;
    q->heard += d->data.n;
    if (q->words) {
        q->decoding = trib_words_take(q->words, d->data.at, d->data.n, q->decoded);
        return q->decoding >= TRIB_OK;
    }
    if (q->heard > q->out_bytes)
        return false;
    memcpy(q->out + d->offset, d->data.at, d->data.n);
    return true;
}

static trib_status_t end_answer(const struct trib_store_request *r,
                                struct trib_vector_part *p,
                                const struct trib_control_store_state *s)
{
    struct trib_part_request *q = &p->request;

    assert(q->stage == TRIB_PART_ANSWER);
    if (q->words ? q->decoding != TRIB_OK : q->heard != q->out_bytes)
        return not_due(r, p, "too few elements");
    q->stage = TRIB_PART_DONE;
    q->version = s->version;
    if (s->version > p->seen)
        p->seen = s->version;
    p->saved = s->saved;
    p->pushed = s->pushes;
    return TRIB_OK;
}

/* Process all received messages. */
static trib_status_t hear_some(const struct trib_store_request *r,
                               struct trib_vector_part *p)
{
    struct trib_store *store = r->vector->store;
    struct trib_part_request *q = &p->request;
    struct trib_control m;
    unsigned messages = 0;
    trib_status_t st;

    while ((st = trib_session_step(session_of(r, p), &m)) == TRIB_OK) {
        count_message(store, &messages);
        st = trib_store_sort(store, p->shard, TRIB_CONTROL_STORE_DATA,
                             TRIB_CONTROL_STORE_DONE, &m);
        if (st == TRIB_INPROGRESS && trib_deadline_passed(q->until))
            break;
        if (st == TRIB_INPROGRESS)
            continue;
        put_off(r, q);
        if (q->stage != TRIB_PART_ANSWER)
            return not_due(r, p, "answers");
        if (st != TRIB_OK)
            return st;
        if (m.kind == TRIB_CONTROL_STORE_DONE)
            return end_answer(r, p, &m.store_state);
        if (!take_data(q, &m.store_data))
            return not_due(r, p, "elements");
        store->stats.received_bytes += m.store_data.data.n;
    }
    if (st == TRIB_INPROGRESS && !trib_deadline_passed(q->until))
        return TRIB_OK;
    if (st == TRIB_INPROGRESS && q->stage < TRIB_PART_ANSWER)
        st = trib_session_end(session_of(r, p), TRIB_ERR_TIMEOUT,
                              "messages are not read");
    if (st == TRIB_INPROGRESS)
        st = trib_session_end(session_of(r, p), TRIB_ERR_TIMEOUT,
                              "no answer within %d ms", store->job.cfg.timeout_ms);
    return trib_store_lost(store, p->shard, st);
}

/* Failures ------------------------------------------------------------------------- */

/* End the part's request. The first failure becomes that of the call. */
static void fail(struct trib_store_request *r, struct trib_vector_part *p,
                 trib_status_t st)
{
    assert(st != TRIB_OK);
    p->request.stage = TRIB_PART_DONE;
    if (r->status != TRIB_OK)
        return;
    r->status = st;
    r->err = r->vector->store->err;
}

/* Reopen a session and restart the part's request with its remaining wait. Reopening
 * may take seconds, so restart the timeouts of all parts. */
static void ask_again(struct trib_store_request *r, struct trib_vector_part *p)
{
    struct trib_vector *v = r->vector;

    trib_error_clear(&v->store->err);
    const trib_status_t st = trib_store_shard_again(v->store, p->shard);
    r->wait_ms = (uint32_t)trib_deadline_left_ms(r->wait_until);
    if (st == TRIB_OK)
        begin(r, p);
    else
        fail(r, p, st == TRIB_ERR_ABORTED ? st : trib_vector_append_seen(v, st));
    for (int i = 0; i < v->n_parts; i++)
        put_off(r, &v->parts[i].request);
}

static void step(struct trib_store_request *r, struct trib_vector_part *p)
{
    trib_status_t st = send_some(r, p);

    if (st == TRIB_OK)
        st = hear_some(r, p);
    if (st == TRIB_OK)
        return;
    if (st == TRIB_ERR_PROTOCOL || st == TRIB_ERR_ABORTED || st == TRIB_ERR_TIMEOUT ||
        !trib_store_shard_is_lost(r->vector->store, p->shard) ||
        ++p->request.tries == TRIB_STORE_TRIES)
        fail(r, p, st);
    else
        ask_again(r, p);
}

/* The caller's idle function aborted the call: end the sessions of pending requests. */
static void give_up(struct trib_store_request *r)
{
    for (int i = 0; i < r->vector->n_parts; i++) {
        struct trib_vector_part *p = &r->vector->parts[i];
        if (p->request.stage == TRIB_PART_DONE)
            continue;
        const trib_status_t st = trib_session_end(session_of(r, p), TRIB_ERR_ABORTED,
                                                  "aborted by the caller");
        fail(r, p, trib_store_lost(r->vector->store, p->shard, st));
    }
}

/* The exchange --------------------------------------------------------------------- */

/* Wait until a pending part can send or receive; false: none is pending. A request that
 * was restarted in a new session has unsent messages, but that session has none yet. */
static bool wait_for_parts(struct trib_store_request *r)
{
    struct pollfd fds[TRIB_AGGREGATORS_MAX];
    uint64_t due = UINT64_MAX;
    unsigned n = 0;

    assert(r->vector->n_parts <= TRIB_AGGREGATORS_MAX);
    for (int i = 0; i < r->vector->n_parts; i++) {
        const struct trib_vector_part *p = &r->vector->parts[i];
        const struct trib_session *session = session_of(r, p);
        if (p->request.stage == TRIB_PART_DONE)
            continue;
        const short sends = p->request.stage < TRIB_PART_ANSWER ? POLLOUT : 0;
        fds[n++] =
            (struct pollfd){.fd = trib_session_fd(session),
                            .events = (short)(trib_session_events(session) | sends)};
        due = trib_session_due(session) < due ? trib_session_due(session) : due;
        due = p->request.until < due ? p->request.until : due;
    }
    if (n)
        (void)trib_idle_poll(&r->vector->store->idle, fds, n,
                             trib_deadline_left_ms(due));
    return n > 0;
}

static void end(struct trib_store_request *r)
{
    struct trib_store_stats *stats = &r->vector->store->stats;

    r->version = UINT64_MAX;
    for (int i = 0; i < r->vector->n_parts; i++) {
        const struct trib_part_request *q = &r->vector->parts[i].request;
        if (q->asked && q->version < r->version)
            r->version = q->version;
    }
    if (r->status != TRIB_OK)
        r->vector->store->err = r->err;
    else if (r->purpose)
        stats->pushes++;
    else if (!r->order)
        stats->pulls++;
    assert(r->status != TRIB_OK || r->version != UINT64_MAX);
}

/* Start the request on each part that is asked. */
static void begin_all(struct trib_store_request *r)
{
    struct trib_vector *v = r->vector;

    for (int i = 0; i < v->n_parts; i++) {
        struct trib_vector_part *p = &v->parts[i];
        p->request.asked = p->request.stage != TRIB_PART_DONE;
        if (!p->request.asked)
            continue;
        if (trib_store_shard_is_lost(v->store, p->shard))
            ask_again(r, p);
        else
            begin(r, p);
    }
}

static trib_status_t exchange(struct trib_store_request *r)
{
    struct trib_vector *v = r->vector;
    const uint64_t began = trib_now_ns();

    r->status = TRIB_OK;
    r->wait_until = trib_deadline_later(began, r->wait_ms * UINT64_C(1000000));
    trib_store_lock(v->store);
    begin_all(r);
    do {
        for (int i = 0; i < v->n_parts; i++)
            if (v->parts[i].request.stage != TRIB_PART_DONE)
                step(r, &v->parts[i]);
        if (trib_idle_answer(&v->store->idle))
            give_up(r);
        trib_store_keep_alive(v->store); /* also to shards that are not asked */
    } while (wait_for_parts(r));
    trib_store_unlock(v->store);
    end(r);
    v->store->stats.wait_ns += trib_now_ns() - began;
    return r->status;
}

/* Return true if a request restores lost elements. */
static bool restores(const struct trib_store_request *r)
{
    return r->purpose == TRIB_CONTROL_PUSH_RESTORE ||
           r->order == TRIB_CONTROL_SNAPSHOT_RESTORE;
}

trib_status_t trib_vector_request(struct trib_store_request *r)
{
    struct trib_vector *v = r->vector;
    const struct trib_vector_part *p = r->only ? r->only : v->parts;

    assert(v->n_parts > 0);
    trib_error_clear(&v->store->err);
    while (!r->only && p < v->parts + v->n_parts - 1 && !p->lost)
        p++;
    if (p->lost && !restores(r)) {
        (void)trib_store_fail(v->store, TRIB_ERR_PEER_LOST,
                              "tribd at %s was lost, and is back without this vector",
                              v->store->job.addresses[p->shard]);
        return trib_vector_append_seen(v, TRIB_ERR_PEER_LOST);
    }
    trib_vector_deal(r);
    return exchange(r);
}
