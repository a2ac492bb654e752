/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/store/store_peer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agg/store/store_form.h"
#include "agg/store/store_image.h"
#include "base/error.h"
#include "compress/vectors/vector_words.h"

enum state {
    IDLE, /* ready for a request */
    TAKING, /* receiving a push */
    WAITING, /* a pull waits for other ranks */
    KEEPING, /* a snapshot or restore is pending */
    GIVING, /* sending elements, then STORE_DONE */
    ANSWERS, /* sending one message */
};

struct trib_store_peer {
    struct trib_store_peer_opts opts;
    enum state state;
    struct trib_control_store_push push; /* head of the push being received */
    struct trib_control_store_pull pull; /* latest pull */
    uint64_t due_ns; /* end of its wait; 0: not set yet */
    struct trib_control_store_snapshot snapshot; /* latest snapshot order */
    uint64_t changes; /* of its vector, when ordered */
    struct trib_error refusal; /* why the current request is refused; or none */
    struct trib_store_form form; /* form of the next or current request */
    trib_status_t words; /* result of trib_words_take for an encoded push */
    struct trib_store_memory memory; /* elements of a push or an answer */
    uint64_t done; /* bytes received or sent */
    uint64_t total; /* bytes expected or to send */
    struct trib_control answer; /* sent in ANSWERS, after GIVING */
    struct trib_store_counts counts;
};

trib_status_t trib_store_peer_create(const struct trib_store_peer_opts *opts,
                                     struct trib_store_peer **out)
{
    struct trib_store_peer *peer = calloc(1, sizeof(*peer));

    *out = peer;
    if (!peer)
        return TRIB_ERR_NO_MEMORY;
    peer->opts = *opts;
    peer->memory.quota = peer->form.indices.quota = opts->quota;
    peer->form.table = opts->table;
    peer->form.rank = opts->rank;
    return TRIB_OK;
}

void trib_store_peer_free(struct trib_store_peer *peer)
{
    if (!peer)
        return;
    trib_store_form_free(&peer->form);
    trib_store_memory_free(&peer->memory);
    free(peer);
}

struct trib_store_counts trib_store_peer_counts(const struct trib_store_peer *peer)
{
    return peer->counts;
}

/* Answers -------------------------------------------------------------------------- */

static void answer_refusal(struct trib_store_peer *peer)
{
    struct trib_control_store_refused *r = &peer->answer.store_refused;

    assert(peer->refusal.status < 0);
    peer->answer = (struct trib_control){.kind = TRIB_CONTROL_STORE_REFUSED};
    r->status = (uint32_t)-peer->refusal.status;
    snprintf(r->text, sizeof(r->text), "%s", trib_error_text(&peer->refusal));
    trib_error_clear(&peer->refusal);
    trib_store_form_end(&peer->form);
    peer->state = ANSWERS;
}

/* Answer a request for a vector, after `bytes` bytes of elements. */
static void answer_state(struct trib_store_peer *peer, uint32_t vector,
                         uint64_t version, uint64_t bytes)
{
    const struct trib_store_table *table = peer->opts.table;

    peer->answer = (struct trib_control){
        .kind = TRIB_CONTROL_STORE_DONE,
        .store_state = {vector, version, trib_store_saved(table, vector),
                        trib_store_clock(table, vector, peer->opts.rank)}};
    trib_store_form_end(&peer->form);
    peer->state = bytes ? GIVING : ANSWERS;
    peer->done = 0;
    peer->total = bytes;
}

static bool has_vector(const struct trib_store_peer *peer, uint32_t vector)
{
    return vector < trib_store_table_size(peer->opts.table);
}

/* Make room for `bytes` bytes; false: peer->refusal is set. */
static bool make_room(struct trib_store_peer *peer, uint64_t bytes)
{
    return trib_store_memory_grow(&peer->memory, bytes, peer->opts.rank,
                                  &peer->refusal) == TRIB_OK;
}

/* Requests ------------------------------------------------------------------------- */

static void take_open(struct trib_store_peer *peer,
                      const struct trib_control_store_open *m)
{
    const struct trib_store_spec spec = {m->name, (trib_dtype_t)m->dtype, m->count,
                                         m->rule};
    struct trib_store_found found;

    if (trib_store_table_open(peer->opts.table, &spec, &peer->refusal, &found) !=
        TRIB_OK) {
        answer_refusal(peer);
        return;
    }
    peer->counts.vectors += found.made;
    if (found.made && peer->opts.made)
        peer->opts.made(peer->opts.made_arg, found.vector);
    answer_state(peer, found.vector, trib_store_version(peer->opts.table, found.vector),
                 0);
    peer->answer.kind = TRIB_CONTROL_STORE_VECTOR;
}

static void end_push(struct trib_store_peer *peer)
{
    const struct trib_control_store_push *p = &peer->push;
    const bool gives = p->purpose == TRIB_CONTROL_PUSH_GIVE;
    struct trib_store_table_push push = {.rank = peer->opts.rank,
                                         .number = p->number,
                                         .data = peer->memory.bytes,
                                         .gives = gives,
                                         .indices =
                                             trib_store_form_indices(&peer->form),
                                         .count = peer->form.count,
                                         .decoded = peer->form.coded,
                                         .version = p->number - 1}; /* of a copy */
    const uint64_t given =
        peer->form.coded ? trib_store_bytes(peer->opts.table, p->vector) : peer->total;

    memcpy(&push.rate, &p->rate, sizeof(push.rate));
    if (!peer->refusal.status && p->purpose == TRIB_CONTROL_PUSH_SET)
        (void)trib_store_set(peer->opts.table, p->vector, peer->memory.bytes,
                             peer->opts.tick, &peer->refusal);
    else if (!peer->refusal.status && p->purpose == TRIB_CONTROL_PUSH_RESTORE)
        trib_store_replace(peer->opts.table, p->vector, peer->memory.bytes,
                           push.version, peer->opts.tick);
    else if (!peer->refusal.status)
        (void)trib_store_table_push(peer->opts.table, p->vector, &push, peer->opts.tick,
                                    &peer->refusal);
    if (peer->refusal.status) {
        answer_refusal(peer);
        return;
    }
    peer->counts.changes++;
    peer->counts.pushes += p->purpose < TRIB_CONTROL_PUSH_SET;
    answer_state(peer, p->vector, push.version, gives ? given : 0);
}

/* Return true if indices or a codec of the next request have arrived. */
static bool formed(const struct trib_store_peer *peer)
{
    return peer->form.sparse || peer->form.coded;
}

static trib_status_t take_index(struct trib_store_peer *peer,
                                const struct trib_control_store_index *m,
                                struct trib_error *err)
{
    peer->counts.received += m->data.n;
    return trib_store_form_index(&peer->form, m, &peer->refusal, err);
}

/* Prepare to receive an encoded push. */
static trib_status_t begin_words(struct trib_store_peer *peer, struct trib_error *err)
{
    struct trib_store_form *form = &peer->form;
    const uint64_t count = trib_store_bytes(peer->opts.table, form->vector) /
                           trib_store_element(peer->opts.table, form->vector);

    peer->total = form->bytes;
    peer->words = TRIB_INPROGRESS;
    if (peer->refusal.status || !make_room(peer, count * sizeof(float)) ||
        trib_store_form_words(form, count, &peer->refusal) != TRIB_OK)
        return TRIB_OK;
    trib_words_begin(form->words);
    if (form->bytes > trib_words_bound(form->words))
        return trib_fail(err, TRIB_ERR_PROTOCOL,
                         "invalid push: %" PRIu64 " elements encoded by codec %s take "
                         "at most %zu bytes, not %" PRIu64,
                         count, form->text, trib_words_bound(form->words), form->bytes);
    return TRIB_OK;
}

static trib_status_t begin_push(struct trib_store_peer *peer,
                                const struct trib_control_store_push *m,
                                struct trib_error *err)
{
    struct trib_store_form *form = &peer->form;

    if (m->offset != 0 || !has_vector(peer, m->vector))
        return trib_fail(err, TRIB_ERR_PROTOCOL,
                         "invalid push to vector %" PRIu32 " of %" PRIu32 ": it starts "
                         "at byte %" PRIu64,
                         m->vector, trib_store_table_size(peer->opts.table), m->offset);
    if (!trib_store_form_fits(form, m->vector) || (form->sparse && !form->rising) ||
        (formed(peer) && m->purpose > TRIB_CONTROL_PUSH_GIVE))
        return trib_fail(err, TRIB_ERR_PROTOCOL,
                         "a push to vector %" PRIu32 " of purpose %" PRIu32 " does not "
                         "match the preceding indices or codec",
                         m->vector, m->purpose);
    peer->push = *m;
    peer->done = 0;
    peer->state = TAKING;
    if (form->coded)
        return begin_words(peer, err);
    peer->total = form->sparse
                      ? form->count * trib_store_element(peer->opts.table, m->vector)
                      : trib_store_bytes(peer->opts.table, m->vector);
    if (!peer->refusal.status)
        (void)make_room(peer, peer->total);
    return TRIB_OK;
}

/* Receive bytes of a push. A refused push is read to its end. */
static trib_status_t collect(struct trib_store_peer *peer,
                             const struct trib_control_bytes *data,
                             struct trib_error *err)
{
    if (!peer->refusal.status && peer->form.coded)
        peer->words = trib_words_take(peer->form.words, data->at, data->n,
                                      (float *)(void *)peer->memory.bytes);
    else if (!peer->refusal.status && data->n)
        memcpy(peer->memory.bytes + peer->done, data->at, data->n);
    peer->done += data->n;
    peer->counts.received += data->n;
    if (peer->form.coded && !peer->refusal.status &&
        (peer->words < TRIB_OK ||
         (peer->words == TRIB_OK) != (peer->done == peer->total)))
        return trib_fail(err, TRIB_ERR_PROTOCOL,
                         "the data pushed by rank %" PRIu32 " is not a vector encoded "
                         "by codec %s",
                         peer->opts.rank, peer->form.text);
    return TRIB_OK;
}

static trib_status_t take_push(struct trib_store_peer *peer,
                               const struct trib_control_store_push *m,
                               struct trib_error *err)
{
    trib_status_t st = peer->state == IDLE ? begin_push(peer, m, err) : TRIB_OK;

    if (st != TRIB_OK)
        return st;
    if (m->vector != peer->push.vector || m->number != peer->push.number ||
        m->purpose != peer->push.purpose || m->offset != peer->done ||
        m->data.n > peer->total - peer->done)
        return trib_fail(err, TRIB_ERR_PROTOCOL,
                         "%" PRIu32 " bytes at %" PRIu64 " do not continue push "
                         "%" PRIu64 " to vector %" PRIu32 ", which has received "
                         "%" PRIu64 " of %" PRIu64 " bytes",
                         m->data.n, m->offset, peer->push.number, peer->push.vector,
                         peer->done, peer->total);
    st = collect(peer, &m->data, err);
    if (st == TRIB_OK && peer->done == peer->total)
        end_push(peer);
    return st;
}

/* Return what the pull waits for, all at one moment. Without a bound, ranks are not
 * compared. */
static struct trib_store_lead lead_of(const struct trib_store_peer *peer)
{
    const struct trib_store_table *table = peer->opts.table;
    const struct trib_control_store_pull *p = &peer->pull;

    if (p->bound == TRIB_CONTROL_UNBOUNDED)
        return (struct trib_store_lead){.version =
                                            trib_store_version(table, p->vector)};
    return trib_store_lead(table, p->vector, peer->opts.rank);
}

/* Return true if the vector is new enough and no rank lags too far. */
static bool may_pull(const struct trib_store_peer *peer,
                     const struct trib_store_lead *now)
{
    const struct trib_control_store_pull *p = &peer->pull;

    return now->version >= p->at_least && now->own - now->least <= p->bound;
}

/* Copy the elements of the pull, or set peer->refusal. */
static struct trib_store_coded copy_pull(struct trib_store_peer *peer)
{
    const struct trib_store_table *table = peer->opts.table;
    const struct trib_control_store_pull *p = &peer->pull;
    struct trib_store_coded out = {&peer->memory,
                                   p->count * trib_store_element(table, p->vector), 0};
    const struct trib_store_range range = {p->vector, p->first, p->count,
                                           trib_store_form_indices(&peer->form)};

    if (peer->form.coded)
        (void)trib_store_form_encode(&peer->form, p, peer->opts.tick, &out,
                                     &peer->refusal);
    else if (!out.bytes)
        out.version = trib_store_version(table, p->vector);
    else if (make_room(peer, out.bytes))
        out.version =
            trib_store_read(table, &range, peer->opts.tick, peer->memory.bytes);
    return out;
}

static void end_pull(struct trib_store_peer *peer)
{
    const struct trib_store_coded out = copy_pull(peer);

    if (peer->refusal.status) {
        answer_refusal(peer);
        return;
    }
    peer->counts.pulls++;
    answer_state(peer, peer->pull.vector, out.version, out.bytes);
}

/* Describe lost ranks, for which the pull may have waited; "" if there are none. */
static void name_lost(const struct trib_store_peer *peer, char *out, size_t bytes)
{
    uint32_t first = 0;
    const uint32_t n = trib_store_lost_ranks(peer->opts.table, &first);

    out[0] = '\0';
    if (n == 1)
        snprintf(out, bytes, "; rank %" PRIu32 " is lost", first);
    else if (n)
        snprintf(out, bytes, "; %" PRIu32 " ranks are lost, the first is rank %" PRIu32,
                 n, first);
}

/* Refuse a pull whose wait timed out; name the missing version or the lagging rank. */
static void refuse_pull(struct trib_store_peer *peer, const struct trib_store_lead *now)
{
    const struct trib_control_store_pull *p = &peer->pull;
    char lost[80];

    name_lost(peer, lost, sizeof(lost));
    if (now->version < p->at_least)
        (void)trib_fail(&peer->refusal, TRIB_ERR_TIMEOUT,
                        "the vector has version %" PRIu64 "; version %" PRIu64 " was "
                        "not reached within %" PRIu32 " ms%s",
                        now->version, p->at_least, p->wait_ms, lost);
    else
        (void)trib_fail(&peer->refusal, TRIB_ERR_TIMEOUT,
                        "rank %" PRIu32 " has made %" PRIu64 " pushes, rank %" PRIu32
                        " %" PRIu64 ": more than %" PRIu32 " apart for %" PRIu32
                        " ms%s",
                        peer->opts.rank, now->own, now->last, now->least, p->bound,
                        p->wait_ms, lost);
    answer_refusal(peer);
}

static trib_status_t take_pull(struct trib_store_peer *peer,
                               const struct trib_control_store_pull *m,
                               struct trib_error *err)
{
    const struct trib_store_table *table = peer->opts.table;

    if (!has_vector(peer, m->vector))
        return trib_fail(err, TRIB_ERR_PROTOCOL, "vector %" PRIu32 " does not exist",
                         m->vector);
    const bool sparse = peer->form.sparse;
    const uint64_t all = sparse ? peer->form.count
                                : trib_store_bytes(table, m->vector) /
                                      trib_store_element(table, m->vector);
    if (!trib_store_form_fits(&peer->form, m->vector) ||
        (sparse && (m->first || m->count != all)) || (peer->form.coded && !m->count))
        return trib_fail(err, TRIB_ERR_PROTOCOL,
                         "a pull of vector %" PRIu32 " does not match the preceding "
                         "indices or codec",
                         m->vector);
    if (!sparse && (m->first >= all || m->count > all - m->first))
        return trib_fail(err, TRIB_ERR_PROTOCOL,
                         "invalid range: vector %" PRIu32 " has %" PRIu64 " elements, "
                         "but %" PRIu64 " were requested from %" PRIu64,
                         m->vector, all, m->count, m->first);
    peer->pull = *m;
    peer->due_ns = 0;
    const struct trib_store_lead now = lead_of(peer);
    if (peer->refusal.status)
        answer_refusal(peer);
    else if (may_pull(peer, &now))
        end_pull(peer);
    else
        peer->state = WAITING;
    return TRIB_OK;
}

void trib_store_peer_wake(struct trib_store_peer *peer, uint64_t now_ns)
{
    if (peer->state != WAITING)
        return;
    if (!peer->due_ns)
        peer->due_ns = now_ns + (uint64_t)peer->pull.wait_ms * 1000000;
    const struct trib_store_lead now = lead_of(peer);
    if (may_pull(peer, &now))
        end_pull(peer);
    else if (now_ns >= peer->due_ns)
        refuse_pull(peer, &now);
}

uint64_t trib_store_peer_due(const struct trib_store_peer *peer)
{
    return peer->state == WAITING ? peer->due_ns : UINT64_MAX;
}

/* Snapshots ------------------------------------------------------------------------ */

static trib_status_t take_snapshot(struct trib_store_peer *peer,
                                   const struct trib_control_store_snapshot *m,
                                   struct trib_error *err)
{
    if (!has_vector(peer, m->vector))
        return trib_fail(err, TRIB_ERR_PROTOCOL, "vector %" PRIu32 " does not exist",
                         m->vector);
    if (!peer->opts.keeps) {
        (void)trib_fail(&peer->refusal, TRIB_ERR_UNSUPPORTED,
                        "snapshots are disabled: set \"snapshots = DIRECTORY\" in "
                        "tribd.conf (or TRIBD_SNAPSHOTS) and restart");
        answer_refusal(peer);
        return TRIB_OK;
    }
    peer->snapshot = *m;
    peer->changes = trib_store_changes(peer->opts.table, m->vector);
    peer->state = KEEPING;
    return TRIB_OK;
}

bool trib_store_peer_wants(const struct trib_store_peer *peer,
                           struct trib_control_store_snapshot *out)
{
    *out = peer->snapshot;
    return peer->state == KEEPING;
}

void trib_store_peer_kept(struct trib_store_peer *peer,
                          const struct trib_control_store_snapshot *what,
                          uint64_t changes, const struct trib_error *err)
{
    const bool restores = what->order == TRIB_CONTROL_SNAPSHOT_RESTORE;

    if (peer->state != KEEPING || peer->snapshot.vector != what->vector ||
        peer->snapshot.order != what->order || (!restores && changes < peer->changes))
        return;
    if (err->status) {
        peer->refusal = *err;
        answer_refusal(peer);
        return;
    }
    answer_state(peer, what->vector, trib_store_version(peer->opts.table, what->vector),
                 0);
    if (!restores && peer->answer.store_state.saved) /* the vector may be newer now */
        peer->answer.store_state.version = peer->answer.store_state.saved - 1;
}

trib_status_t trib_store_peer_take(struct trib_store_peer *peer,
                                   const struct trib_control *m, struct trib_error *err)
{
    if (m->kind == TRIB_CONTROL_STORE_SNAPSHOT && peer->state == IDLE && !formed(peer))
        return take_snapshot(peer, &m->store_snapshot, err);
    if (m->kind == TRIB_CONTROL_STORE_PUSH && peer->state <= TAKING)
        return take_push(peer, &m->store_push, err);
    if (m->kind == TRIB_CONTROL_STORE_PULL && peer->state == IDLE)
        return take_pull(peer, &m->store_pull, err);
    if (m->kind == TRIB_CONTROL_STORE_INDEX && peer->state == IDLE)
        return take_index(peer, &m->store_index, err);
    if (m->kind == TRIB_CONTROL_STORE_CODEC && peer->state == IDLE)
        return trib_store_form_codec(&peer->form, &m->store_codec, &peer->refusal, err);
    if (m->kind != TRIB_CONTROL_STORE_OPEN || peer->state != IDLE || formed(peer))
        return trib_fail(err, TRIB_ERR_PROTOCOL, "unexpected message %s",
                         trib_control_name(m->kind));
    take_open(peer, &m->store_open);
    return TRIB_OK;
}

/* Sending -------------------------------------------------------------------------- */

static uint32_t piece(const struct trib_store_peer *peer)
{
    const uint64_t left = peer->total - peer->done;

    return left < TRIB_CONTROL_STORE_BYTES ? (uint32_t)left : TRIB_CONTROL_STORE_BYTES;
}

bool trib_store_peer_next(const struct trib_store_peer *peer, struct trib_control *out)
{
    if (peer->state == ANSWERS)
        *out = peer->answer;
    if (peer->state == GIVING)
        *out = (struct trib_control){
            .kind = TRIB_CONTROL_STORE_DATA,
            .store_data = {.vector = peer->answer.store_state.vector,
                           .offset = peer->done,
                           .data = {peer->memory.bytes + peer->done, piece(peer)}}};
    return peer->state >= GIVING;
}

void trib_store_peer_sent(struct trib_store_peer *peer)
{
    assert(peer->state >= GIVING);
    if (peer->state == ANSWERS) {
        peer->state = IDLE;
        return;
    }
    peer->counts.sent += piece(peer);
    peer->done += piece(peer);
    if (peer->done == peer->total)
        peer->state = ANSWERS;
}
