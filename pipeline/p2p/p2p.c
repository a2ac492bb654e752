/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/p2p/p2p.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/p2p/direct_write.h"
#include "pipeline/p2p/pull.h"
#include "pipeline/run/events.h"
#include "pipeline/run/failure.h"

static void mark(struct trib_engine *e, trib_status_t st, int peer, const char *what)
{
    char who[128], text[400];

    trib_engine_name_rank(e, peer, who, sizeof(who));
    snprintf(text, sizeof(text), "rank %d: %s, in messages with %s", e->rank, what,
             who);
    trib_engine_mark(e, st, text);
}

/* Return true, and mark the engine, if a message does not fit its receive. */
static bool is_misfit(struct trib_engine *e, const struct trib_p2p_request *r,
                      unsigned dtype, uint64_t count)
{
    char text[300];

    assert(!r->sends);
    if (dtype == (unsigned)r->dtype && count == r->count)
        return false;
    trib_p2p_say_misfit(r, e->rank, dtype, count, text, sizeof(text));
    trib_engine_mark(e, TRIB_ERR_MISMATCH, text);
    return true;
}

/* Read a piece of the oldest message that is read from its sender's memory. */
static bool pull(struct trib_engine *e, struct trib_p2p_pair *p)
{
    struct trib_p2p_request *r = p->pulling.head;

    if (!r || e->failed)
        return false;
    const trib_status_t st = trib_pull(e, p, r);
    if (st == TRIB_OK)
        trib_p2p_append(&p->taken, trib_p2p_pop(&p->pulling));
    else if (st == TRIB_ERR_UNSUPPORTED)
        trib_p2p_append(&p->granting, trib_p2p_pop(&p->pulling));
    return true;
}

/* --- incoming entries --- */

/* Store the location of ANNOUNCE or GRANT; return false if the engine was marked. */
static bool take_place(struct trib_engine *e, struct trib_p2p_pair *p,
                       const struct trib_message *m, const uint8_t *payload,
                       struct trib_ref **out)
{
    trib_status_t st = TRIB_OK;

    *out = NULL;
    if (m->kind != TRIB_MESSAGE_IS_EAGER && m->bytes)
        st = trib_pull_place(m, payload, out);
    if (st == TRIB_ERR_PROTOCOL)
        trib_engine_protocol(e, p->peer, "a message with an invalid location");
    else if (st != TRIB_OK)
        mark(e, st, p->peer, "out of memory");
    return st == TRIB_OK;
}

/* Queue the receive of an announced message: to be read, or to be granted. */
static void take_announced(struct trib_p2p_pair *p, struct trib_p2p_request *r,
                           uint32_t send_id, struct trib_ref *place)
{
    r->peer_id = send_id;
    r->place = place;
    trib_p2p_append(place ? &p->pulling : &p->granting, r);
}

static void take_early(struct trib_engine *e, struct trib_p2p_pair *p,
                       const struct trib_message *m, const uint8_t *payload,
                       struct trib_ref *place)
{
    const bool eager = m->kind == TRIB_MESSAGE_IS_EAGER;
    const struct trib_p2p *all = trib_p2p_of(e);
    struct trib_p2p_early *early = NULL;

    if (eager ? p->early.n_eager >= TRIB_P2P_EAGER_MOST
              : p->early.n >= TRIB_P2P_EAGER_MOST + TRIB_P2P_ANNOUNCED_MOST)
        trib_engine_protocol(e, p->peer,
                             "too many messages without a receive");
    else if (!(early = trib_p2p_keep(&p->early, m, payload)))
        mark(e, TRIB_ERR_NO_MEMORY, p->peer, "out of memory");
    if (early)
        early->place = place;
    else
        free(place);
    if (early && m->tag < 0 && all->watch)
        all->watch(all->watch_arg, p->peer, early);
}

/* Handle an eager or an announced message. */
static void take_message(struct trib_engine *e, struct trib_p2p_pair *p,
                         const struct trib_message *m, const uint8_t *payload)
{
    struct trib_ref *place;

    if (!take_place(e, p, m, payload, &place))
        return;
    struct trib_p2p_request *r = trib_p2p_take_tag(&p->posted, m->tag);
    if (!r) {
        take_early(e, p, m, payload, place);
        return;
    }
    if (is_misfit(e, r, m->dtype, m->count)) {
        trib_p2p_append(&p->posted, r); /* the failure ends it */
        free(place);
        return;
    }
    if (m->kind == TRIB_MESSAGE_IS_EAGER) {
        trib_p2p_copy(e, r->buffer, payload, m->bytes);
        p->box.consumed++;
        trib_p2p_finish(e, r, TRIB_OK);
        return;
    }
    take_announced(p, r, m->send_id, place);
}

/* Handle TAKEN: the peer has read a message from this rank's memory. */
static void take_taken(struct trib_engine *e, struct trib_p2p_pair *p,
                       const struct trib_message *m)
{
    struct trib_p2p_request *r = trib_p2p_take_id(&p->announced, m->send_id);

    if (r && r->exposed) {
        e->stats.wire_bytes += r->bytes; /* they moved through memory */
        trib_p2p_count(e, r->bytes);
        trib_p2p_finish(e, r, TRIB_OK);
        return;
    }
    if (r)
        trib_p2p_append(&p->announced, r);
    trib_engine_protocol(e, p->peer, "TAKEN for a message without a location");
}

static void take_grant(struct trib_engine *e, struct trib_p2p_pair *p,
                       const struct trib_message *m, const uint8_t *payload)
{
    struct trib_ref *place;

    if (!take_place(e, p, m, payload, &place))
        return;
    struct trib_p2p_request *r = trib_p2p_take_id(&p->announced, m->send_id);
    if (!r) {
        trib_engine_protocol(e, p->peer, "GRANT for an unknown message");
        free(place);
        return;
    }
    r->peer_id = m->recv_id;
    r->place = place;
    if (place && (p->box.link->mapped || m->dtype != (unsigned)r->dtype ||
                  m->count != r->count)) {
        trib_p2p_append(&p->announced, r); /* the failure ends it */
        trib_engine_protocol(e, p->peer, "GRANT with a wrong location");
    } else if (!r->bytes) {
        trib_p2p_finish(e, r, TRIB_OK);
    } else {
        if (place)
            trib_direct_begin(e, r);
        trib_p2p_append(&p->streaming, r);
    }
}

static void take_data(struct trib_engine *e, struct trib_p2p_pair *p,
                      const struct trib_message *m, const uint8_t *payload)
{
    struct trib_p2p_request *r = trib_p2p_take_id(&p->receiving, m->recv_id);

    if (!r) {
        trib_engine_protocol(e, p->peer, "elements without a receive");
        return;
    }
    const bool landed = !m->bytes && r->lands;
    const size_t n = landed ? m->count - r->moved : m->bytes;
    const bool fits = n && n <= r->bytes - r->moved && (landed || m->count == r->moved);
    if (fits && landed) {
        e->stats.received_bytes += n;
        e->stats.received_dense_bytes += n;
    } else if (fits) {
        trib_p2p_copy(e, r->buffer + r->moved, payload, n);
    }
    r->moved += fits ? n : 0;
    if (fits && r->moved == r->bytes) {
        trib_p2p_finish(e, r, TRIB_OK);
        return;
    }
    trib_p2p_append(&p->receiving, r);
    if (!fits)
        trib_engine_protocol(e, p->peer, "elements out of order");
}

static void take_entry(struct trib_engine *e, struct trib_p2p_pair *p,
                       const struct trib_message *m, const uint8_t *payload)
{
    const char *fault = trib_message_fault(m, p->box.slot_bytes);

    if (!fault && trib_p2p_of(e)->checks &&
        trib_message_sum(e->kernels->crc32c, m, payload) != m->check)
        fault = "a message damaged in transit (TRIB_CHECK=sum)";
    if (fault) {
        trib_engine_protocol(e, p->peer, fault);
        return;
    }
    e->stats.received_bytes += sizeof(*m) + m->bytes;
    if (m->kind == TRIB_MESSAGE_IS_EAGER || m->kind == TRIB_MESSAGE_DATA)
        e->stats.received_dense_bytes += m->bytes;
    if (m->kind == TRIB_MESSAGE_GRANT)
        take_grant(e, p, m, payload);
    else if (m->kind == TRIB_MESSAGE_TAKEN)
        take_taken(e, p, m);
    else if (m->kind == TRIB_MESSAGE_DATA)
        take_data(e, p, m, payload);
    else
        take_message(e, p, m, payload);
}

/* Handle arrived entries, at most a window, so that other work gets its turn. */
static bool drain(struct trib_engine *e, struct trib_p2p_pair *p)
{
    const struct trib_message *m;
    const uint8_t *payload;
    uint32_t n = 0;

    while (n < p->box.slots && !e->failed &&
           (m = trib_mailbox_peek(&p->box, &payload))) {
        take_entry(e, p, m, payload);
        trib_mailbox_release(&p->box);
        n++;
    }
    trib_mailbox_pay(&p->box);
    return n > 0;
}

static void join(struct trib_engine *e, struct trib_p2p_pair *p)
{
    char why[sizeof(e->err->text)];
    const trib_status_t st = trib_mailbox_join(&p->box);

    p->joined = st == TRIB_OK;
    if (st == TRIB_ERR_PROTOCOL) {
        trib_engine_protocol(e, p->peer, "an advert of a nonexistent mailbox");
    } else if (st < TRIB_OK) {
        snprintf(why, sizeof(why), "%s", trib_error_text(e->err));
        trib_engine_unable(e, p->peer, st, why);
    }
}

bool trib_p2p_progress(struct trib_engine *e)
{
    bool moved = false;

    for (struct trib_p2p_pair *p = trib_p2p_of(e)->list; p && !e->failed; p = p->next) {
        if (p->self)
            continue;
        if (!p->joined) {
            join(e, p);
            moved |= p->joined;
        }
        if (!e->failed && p->box.remote) {
            moved |= drain(e, p);
            moved |= pull(e, p);
            moved |= !e->failed && trib_p2p_push(e, p);
        }
    }
    return moved;
}

static void deliver(struct trib_engine *e, struct trib_p2p_request *s,
                    struct trib_p2p_request *r)
{
    trib_p2p_copy(e, r->buffer, s->buffer, r->bytes);
    trib_p2p_finish(e, s, TRIB_OK);
    trib_p2p_finish(e, r, TRIB_OK);
}

/* Send to this rank itself. A short send completes even without a receive. */
static void send_self(struct trib_engine *e, struct trib_p2p_pair *p,
                      struct trib_p2p_request *s)
{
    struct trib_p2p_request *r = trib_p2p_take_tag(&p->posted, s->tag);

    if (r && is_misfit(e, r, (unsigned)s->dtype, s->count)) {
        trib_p2p_append(&p->posted, r);
        trib_p2p_append(&p->announced, s);
        return;
    }
    if (r) {
        deliver(e, s, r);
        return;
    }
    const bool eager =
        s->bytes <= TRIB_MESSAGE_EAGER && p->early.n_eager < TRIB_P2P_EAGER_MOST;
    const struct trib_message m = {.kind = eager ? TRIB_MESSAGE_IS_EAGER
                                                 : TRIB_MESSAGE_ANNOUNCE,
                                   .dtype = (uint8_t)s->dtype,
                                   .tag = s->tag,
                                   .count = s->count,
                                   .bytes = eager ? (uint32_t)s->bytes : 0};
    struct trib_p2p_early *early = trib_p2p_keep(&p->early, &m, s->buffer);
    if (!early)
        mark(e, TRIB_ERR_NO_MEMORY, p->peer, "out of memory");
    else if (!eager)
        early->local = s;
    if (early && eager)
        trib_p2p_finish(e, s, TRIB_OK);
    else
        trib_p2p_append(&p->announced, s);
}

static void start_receive(struct trib_engine *e, struct trib_p2p_pair *p,
                          struct trib_p2p_request *r)
{
    struct trib_p2p_early *early = trib_p2p_take_early(&p->early, r->tag);

    if (!early || is_misfit(e, r, early->dtype, early->count)) {
        trib_p2p_append(&p->posted, r);
    } else if (early->local) {
        deliver(e, trib_p2p_take_id(&p->announced, early->local->id), r);
    } else if (early->eager) {
        trib_p2p_copy(e, r->buffer, early->payload, r->bytes);
        p->box.consumed++;
        trib_p2p_finish(e, r, TRIB_OK);
    } else {
        take_announced(p, r, early->send_id, early->place);
        early->place = NULL;
    }
    trib_p2p_drop_early(early);
}

void trib_p2p_start(struct trib_engine *e, struct trib_p2p_request *r)
{
    struct trib_p2p *all = trib_p2p_of(e);
    struct trib_p2p_pair *p = all->of[r->peer];

    assert(p && (r->run || r->then));
    r->moved = 0;
    r->exposed = r->lands = false;
    r->n_direct = 0;
    r->hold = (struct trib_hold){.borrowed = NULL};
    r->id = ++all->last_id;
    all->base.active++;
    if (!r->then)
        atomic_store_explicit(&r->run->now.state, TRIB_RUN_ACTIVE,
                              memory_order_relaxed);
    if (!r->sends)
        start_receive(e, p, r);
    else if (p->self)
        send_self(e, p, r);
    else
        trib_p2p_append(&p->fresh, r);
    if (!p->self && p->box.remote && !e->failed)
        (void)trib_p2p_push(e, p);
}

bool trib_p2p_take_event(struct trib_engine *e, const struct trib_event *event)
{
    const uint32_t kind = event->imm >> 24;
    struct trib_p2p_pair *p = trib_p2p_of(e)->of[event->peer];
    const bool is_mine =
        event->kind == TRIB_EVENT_WRITE_DONE
            ? event->token >= TRIB_LINK_MESSAGE_TOKEN
            : event->kind == TRIB_EVENT_ARRIVED &&
                  (kind == TRIB_LINK_MESSAGE || kind == TRIB_LINK_MESSAGE_CREDITS);

    if (!is_mine || !p || p->self)
        return false;
    if (event->kind == TRIB_EVENT_WRITE_DONE && trib_direct_written(p, event->token))
        return true;
    if (!trib_mailbox_event(&p->box, event))
        trib_engine_protocol(e, p->peer,
                             "a duplicate message, or credits for messages that were "
                             "never sent");
    return true;
}

/* Return true if the peer may write to the memory of a receive. */
static bool is_written(const struct trib_p2p_pair *p)
{
    for (const struct trib_p2p_request *r = p->receiving.head; r; r = r->next)
        if (r->lands)
            return true;
    return false;
}

static void end_queue(struct trib_engine *e, struct trib_p2p_queue *q, bool broken)
{
    struct trib_p2p_request *r;

    while ((r = trib_p2p_pop(q))) {
        trib_direct_end(e, r, broken && r->lands);
        trib_p2p_finish(e, r, (trib_status_t)e->failed);
    }
}

void trib_p2p_end(struct trib_engine *e)
{
    assert(e->failed);
    if (e->p2p->active)
        trib_engine_recall(e);
    const uint64_t until = trib_engine_quiet_by(e);
    for (struct trib_p2p_pair *p = trib_p2p_of(e)->list; p; p = p->next) {
        struct trib_p2p_queue *const queues[] = {
            &p->fresh,    &p->announced, &p->streaming, &p->flying, &p->posted,
            &p->granting, &p->receiving, &p->pulling,   &p->taken};
        const bool broken = is_written(p) && !trib_engine_await_peer(e, p->peer, until);
        for (size_t i = 0; i < sizeof(queues) / sizeof(*queues); i++)
            end_queue(e, queues[i], broken);
        trib_p2p_drop_earlies(&p->early);
    }
    assert(e->p2p->active == 0);
}
