/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/p2p/p2p.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/engine/failure.h"
#include "pipeline/p2p/mailbox.h"
#include "pipeline/payload/check.h"

/* What this rank exchanges with one peer. Each request is in one of the queues. */
struct trib_p2p_pair {
    int peer;
    bool self; /* this rank itself: without mailbox */
    bool joined; /* both adverts have come */
    struct trib_mailbox box;
    struct trib_p2p_queue fresh; /* sends of which the peer knows nothing */
    struct trib_p2p_queue announced; /* sends that wait for their receive */
    struct trib_p2p_queue streaming; /* sends whose elements go out, by turns */
    struct trib_p2p_queue flying; /* sends whose entries the transport may read */
    struct trib_p2p_queue posted; /* receives that wait for their message */
    struct trib_p2p_queue granting; /* receives of which the sender is to be told */
    struct trib_p2p_queue receiving; /* receives whose elements come */
    struct trib_p2p_earlies early;
    struct trib_p2p_pair *next;
};

struct trib_p2p {
    struct trib_engine_p2p base;
    bool checks; /* entries have checksums */
    void (*watch)(void *arg, int peer, const struct trib_p2p_early *early); /* or
                                                                             * NULL */
    void *watch_arg;
    uint32_t last_id;
    struct trib_p2p_pair *list;
    struct trib_p2p_pair *of[]; /* [size] or NULL */
};

static struct trib_p2p *p2p_of(const struct trib_engine *e)
{
    return (struct trib_p2p *)e->p2p;
}

static void finish(struct trib_engine *e, struct trib_p2p_request *r, trib_status_t st)
{
    assert(e->p2p->active > 0);
    e->p2p->active--;
    if (r->then) {
        r->then(e, r, st);
        return;
    }
    r->run->now.status = st;
    atomic_store_explicit(&r->run->now.state, TRIB_RUN_DONE, memory_order_release);
}

static void mark(struct trib_engine *e, trib_status_t st, int peer, const char *what)
{
    char who[128], text[400];

    trib_engine_name_rank(e, peer, who, sizeof(who));
    snprintf(text, sizeof(text), "rank %d: %s, with messages of %s", e->rank, what,
             who);
    trib_engine_mark(e, st, text);
}

/* True if a message is not what its receive expects; the engine is marked. */
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

static void copy(struct trib_engine *e, void *to, const void *from, size_t bytes)
{
    if (bytes)
        memmove(to, from, bytes);
    e->stats.copied_bytes += bytes;
}

/* ---- entries that go out --------------------------------------------------------- */

/* Fill the next entry with a head and a payload, and send it. */
static void put(struct trib_engine *e, struct trib_p2p_pair *p,
                const struct trib_message *head, const uint8_t *payload)
{
    uint8_t *to;
    struct trib_message *entry = trib_mailbox_next(&p->box, head->bytes, &to);

    memcpy(entry, head, offsetof(struct trib_message, payload));
    entry->magic = TRIB_MESSAGE_MAGIC;
    copy(e, to, payload, head->bytes);
    entry->check =
        p2p_of(e)->checks ? trib_message_sum(e->kernels->crc32c, entry, to) : 0;
    e->stats.messages++;
    e->stats.wire_bytes += sizeof(*entry) + head->bytes;
    e->stats.payload_bytes += head->bytes;
    e->stats.dense_bytes += head->bytes;
    (void)trib_mailbox_post(&p->box);
}

/* The elements of a send are all in entries. */
static void all_sent(struct trib_engine *e, struct trib_p2p_pair *p,
                     struct trib_p2p_request *r)
{
    r->last_entry = p->box.sent + p->box.unposted;
    if (p->box.link->mapped)
        finish(e, r, TRIB_OK);
    else
        trib_p2p_append(&p->flying, r);
}

/* Tell the peer of the oldest send; a short one is done with that. */
static bool put_fresh(struct trib_engine *e, struct trib_p2p_pair *p)
{
    const struct trib_p2p_request *first = p->fresh.head;
    const bool eager = first && first->bytes <= TRIB_MESSAGE_EAGER &&
                       first->bytes <= p->box.slot_bytes &&
                       trib_mailbox_eager(&p->box) < TRIB_P2P_EAGER_MOST;

    if (!first || (!eager && p->announced.n >= TRIB_P2P_ANNOUNCED_MOST))
        return false;
    struct trib_p2p_request *r = trib_p2p_pop(&p->fresh);
    const struct trib_message m = {.kind = eager ? TRIB_MESSAGE_IS_EAGER
                                                 : TRIB_MESSAGE_ANNOUNCE,
                                   .dtype = (uint8_t)r->dtype,
                                   .tag = r->tag,
                                   .send_id = r->id,
                                   .count = r->count,
                                   .bytes = eager ? (uint32_t)r->bytes : 0};
    p->box.sent_eager += eager;
    put(e, p, &m, r->buffer);
    if (eager)
        all_sent(e, p, r);
    else
        trib_p2p_append(&p->announced, r);
    return true;
}

static bool put_grant(struct trib_engine *e, struct trib_p2p_pair *p)
{
    struct trib_p2p_request *r = trib_p2p_pop(&p->granting);

    if (!r)
        return false;
    const struct trib_message m = {.kind = TRIB_MESSAGE_GRANT,
                                   .dtype = (uint8_t)r->dtype,
                                   .tag = r->tag,
                                   .send_id = r->peer_id,
                                   .recv_id = r->id};
    put(e, p, &m, NULL);
    if (r->bytes)
        trib_p2p_append(&p->receiving, r);
    else
        finish(e, r, TRIB_OK);
    return true;
}

static bool put_data(struct trib_engine *e, struct trib_p2p_pair *p)
{
    struct trib_p2p_request *r = trib_p2p_pop(&p->streaming);

    if (!r)
        return false;
    const size_t left = r->bytes - r->moved;
    const size_t n = left < p->box.slot_bytes ? left : p->box.slot_bytes;
    const struct trib_message m = {.kind = TRIB_MESSAGE_DATA,
                                   .dtype = (uint8_t)r->dtype,
                                   .tag = r->tag,
                                   .recv_id = r->peer_id,
                                   .count = r->moved,
                                   .bytes = (uint32_t)n};
    assert(n > 0);
    put(e, p, &m, r->buffer + r->moved);
    r->moved += n;
    if (r->moved == r->bytes)
        all_sent(e, p, r);
    else
        trib_p2p_append(&p->streaming, r);
    return true;
}

/* Send what there is room for. Grants come first, as others wait for them. */
static bool push(struct trib_engine *e, struct trib_p2p_pair *p)
{
    bool moved = false;

    if (p->box.unposted && trib_mailbox_post(&p->box) != TRIB_OK)
        return false;
    while (trib_mailbox_has_room(&p->box) &&
           (put_grant(e, p) || put_fresh(e, p) || put_data(e, p)))
        moved = true;
    while (p->flying.head &&
           (int32_t)(p->box.written - p->flying.head->last_entry) >= 0) {
        finish(e, trib_p2p_pop(&p->flying), TRIB_OK);
        moved = true;
    }
    return moved;
}

/* ---- entries that come ----------------------------------------------------------- */

static void take_early(struct trib_engine *e, struct trib_p2p_pair *p,
                       const struct trib_message *m, const uint8_t *payload)
{
    const bool eager = m->kind == TRIB_MESSAGE_IS_EAGER;
    const struct trib_p2p *all = p2p_of(e);
    const struct trib_p2p_early *early = NULL;

    if (eager ? p->early.n_eager >= TRIB_P2P_EAGER_MOST
              : p->early.n >= TRIB_P2P_EAGER_MOST + TRIB_P2P_ANNOUNCED_MOST)
        trib_engine_protocol(e, p->peer,
                             "more messages that nobody receives than it may");
    else if (!(early = trib_p2p_keep(&p->early, m, payload)))
        mark(e, TRIB_ERR_NO_MEMORY, p->peer, "out of memory");
    if (early && m->tag < 0 && all->watch)
        all->watch(all->watch_arg, p->peer, early);
}

/* A message that is told of: by its elements, or by its head. */
static void take_message(struct trib_engine *e, struct trib_p2p_pair *p,
                         const struct trib_message *m, const uint8_t *payload)
{
    struct trib_p2p_request *r = trib_p2p_take_tag(&p->posted, m->tag);

    if (!r) {
        take_early(e, p, m, payload);
        return;
    }
    if (is_misfit(e, r, m->dtype, m->count)) {
        trib_p2p_append(&p->posted, r); /* the failure ends it */
        return;
    }
    if (m->kind == TRIB_MESSAGE_IS_EAGER) {
        copy(e, r->buffer, payload, m->bytes);
        p->box.consumed++;
        finish(e, r, TRIB_OK);
        return;
    }
    r->peer_id = m->send_id;
    trib_p2p_append(&p->granting, r);
}

static void take_grant(struct trib_engine *e, struct trib_p2p_pair *p,
                       const struct trib_message *m)
{
    struct trib_p2p_request *r = trib_p2p_take_id(&p->announced, m->send_id);

    if (!r) {
        trib_engine_protocol(e, p->peer, "leave for a message that it was not told of");
        return;
    }
    r->peer_id = m->recv_id;
    if (r->bytes)
        trib_p2p_append(&p->streaming, r);
    else
        finish(e, r, TRIB_OK);
}

static void take_data(struct trib_engine *e, struct trib_p2p_pair *p,
                      const struct trib_message *m, const uint8_t *payload)
{
    struct trib_p2p_request *r = trib_p2p_take_id(&p->receiving, m->recv_id);

    if (!r) {
        trib_engine_protocol(e, p->peer, "elements that nobody receives");
        return;
    }
    const bool fits = m->count == r->moved && m->bytes <= r->bytes - r->moved;
    if (fits) {
        copy(e, r->buffer + r->moved, payload, m->bytes);
        r->moved += m->bytes;
    }
    if (fits && r->moved == r->bytes) {
        finish(e, r, TRIB_OK);
        return;
    }
    trib_p2p_append(&p->receiving, r);
    if (!fits)
        trib_engine_protocol(e, p->peer, "elements that are not those that follow");
}

static void take_entry(struct trib_engine *e, struct trib_p2p_pair *p,
                       const struct trib_message *m, const uint8_t *payload)
{
    const char *fault = trib_message_fault(m, p->box.slot_bytes);

    if (!fault && p2p_of(e)->checks &&
        trib_message_sum(e->kernels->crc32c, m, payload) != m->check)
        fault = "a message that was damaged on its way (TRIB_CHECK=sum)";
    if (fault) {
        trib_engine_protocol(e, p->peer, fault);
        return;
    }
    e->stats.received_bytes += sizeof(*m) + m->bytes;
    e->stats.received_dense_bytes += m->bytes;
    if (m->kind == TRIB_MESSAGE_GRANT)
        take_grant(e, p, m);
    else if (m->kind == TRIB_MESSAGE_DATA)
        take_data(e, p, m, payload);
    else
        take_message(e, p, m, payload);
}

/* Take what has come, a window at most, so that other work has its turn. */
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
        trib_engine_protocol(e, p->peer, "a mailbox that does not exist");
    } else if (st < TRIB_OK) {
        snprintf(why, sizeof(why), "%s", trib_error_text(e->err));
        trib_engine_unable(e, p->peer, st, why);
    }
}

static bool progress(struct trib_engine *e)
{
    bool moved = false;

    for (struct trib_p2p_pair *p = p2p_of(e)->list; p && !e->failed; p = p->next) {
        if (p->self)
            continue;
        if (!p->joined) {
            join(e, p);
            moved |= p->joined;
        }
        if (!e->failed && p->box.remote) {
            moved |= drain(e, p);
            moved |= !e->failed && push(e, p);
        }
    }
    return moved;
}

static void deliver(struct trib_engine *e, struct trib_p2p_request *s,
                    struct trib_p2p_request *r)
{
    copy(e, r->buffer, s->buffer, r->bytes);
    finish(e, s, TRIB_OK);
    finish(e, r, TRIB_OK);
}

/* A send to this rank itself. A short one is done, though nobody receives it yet. */
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
        finish(e, s, TRIB_OK);
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
        copy(e, r->buffer, early->payload, r->bytes);
        p->box.consumed++;
        finish(e, r, TRIB_OK);
    } else {
        r->peer_id = early->send_id;
        trib_p2p_append(&p->granting, r);
    }
    free(early);
}

void trib_p2p_start(struct trib_engine *e, struct trib_p2p_request *r)
{
    struct trib_p2p *all = p2p_of(e);
    struct trib_p2p_pair *p = all->of[r->peer];

    assert(p && (r->run || r->then));
    r->moved = 0;
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
        (void)push(e, p);
}

static bool take_event(struct trib_engine *e, const struct trib_event *event)
{
    const uint32_t kind = event->imm >> 24;
    struct trib_p2p_pair *p = p2p_of(e)->of[event->peer];
    const bool is_mine =
        event->kind == TRIB_EVENT_WRITE_DONE
            ? event->token >= TRIB_LINK_MESSAGE_TOKEN
            : event->kind == TRIB_EVENT_ARRIVED &&
                  (kind == TRIB_LINK_MESSAGE || kind == TRIB_LINK_MESSAGE_CREDITS);

    if (!is_mine || !p || p->self)
        return false;
    if (!trib_mailbox_event(&p->box, event))
        trib_engine_protocol(e, p->peer, "a message twice");
    return true;
}

static void end_queue(struct trib_engine *e, struct trib_p2p_queue *q)
{
    struct trib_p2p_request *r;

    while ((r = trib_p2p_pop(q)))
        finish(e, r, (trib_status_t)e->failed);
}

static void end(struct trib_engine *e)
{
    assert(e->failed);
    for (struct trib_p2p_pair *p = p2p_of(e)->list; p; p = p->next) {
        struct trib_p2p_queue *const queues[] = {
            &p->fresh,  &p->announced, &p->streaming, &p->flying,
            &p->posted, &p->granting,  &p->receiving};
        for (size_t i = 0; i < sizeof(queues) / sizeof(*queues); i++)
            end_queue(e, queues[i]);
        trib_p2p_drop_earlies(&p->early);
    }
    assert(e->p2p->active == 0);
}

/* The request of a pair that has waited for longest, receives first. */
static const struct trib_p2p_request *oldest(const struct trib_p2p_pair *p)
{
    const struct trib_p2p_queue *const queues[] = {
        &p->receiving, &p->posted, &p->granting, &p->streaming,
        &p->announced, &p->fresh,  &p->flying};

    for (size_t i = 0; i < sizeof(queues) / sizeof(*queues); i++)
        if (queues[i]->head)
            return queues[i]->head;
    return NULL;
}

static void describe(const struct trib_engine *e, char *text, size_t bytes)
{
    snprintf(text, bytes, "no message");
    for (const struct trib_p2p_pair *p = p2p_of(e)->list; p; p = p->next) {
        const struct trib_p2p_request *r = oldest(p);
        if (!r)
            continue;
        trib_p2p_say(r, text, bytes);
        return;
    }
}

static void close_all(struct trib_engine *e)
{
    struct trib_p2p *all = p2p_of(e);

    while (all->list) {
        struct trib_p2p_pair *p = all->list;
        all->list = p->next;
        trib_p2p_drop_earlies(&p->early);
        if (!p->self)
            trib_mailbox_close(&p->box);
        free(p);
    }
    free(all);
    e->p2p = NULL;
}

static const struct trib_engine_p2p_ops ops = {
    .progress = progress,
    .take_event = take_event,
    .end = end,
    .describe = describe,
    .close = close_all,
};

static trib_status_t make_all(struct trib_engine *e)
{
    struct trib_check check;
    struct trib_p2p *all =
        calloc(1, sizeof(*all) + (size_t)e->size * sizeof(all->of[0]));

    if (!all)
        return trib_fail(e->err, TRIB_ERR_NO_MEMORY, "no memory for messages");
    all->base.ops = &ops;
    /* The settings were checked at the start. */
    (void)trib_check_parse(e->cfg->check, NULL, &check);
    all->checks = check.sum;
    e->p2p = &all->base;
    return TRIB_OK;
}

trib_status_t trib_p2p_open(struct trib_engine *e, int peer)
{
    trib_status_t st = e->p2p ? TRIB_OK : make_all(e);

    assert(peer >= 0 && peer < e->size);
    if (st != TRIB_OK || p2p_of(e)->of[peer])
        return st;
    struct trib_p2p_pair *p = calloc(1, sizeof(*p));
    if (!p)
        return trib_fail(e->err, TRIB_ERR_NO_MEMORY, "no memory for messages");
    p->peer = peer;
    p->self = peer == e->rank;
    if (!p->self)
        st = trib_mailbox_open(&p->box, &e->links[peer], &e->arena);
    if (st != TRIB_OK) {
        free(p);
        return trib_fail(e->err, st, "no memory for messages of rank %d", peer);
    }
    p->next = p2p_of(e)->list;
    p2p_of(e)->list = p;
    p2p_of(e)->of[peer] = p;
    return TRIB_OK;
}

size_t trib_p2p_bytes(const struct trib_engine *e)
{
    size_t bytes = 0;

    for (const struct trib_p2p_pair *p = e->p2p ? p2p_of(e)->list : NULL; p;
         p = p->next)
        bytes += p->self ? 0 : trib_mailbox_bytes(&p->box);
    return bytes;
}

void trib_p2p_watch(struct trib_engine *e,
                    void (*fn)(void *arg, int peer, const struct trib_p2p_early *early),
                    void *arg)
{
    struct trib_p2p *all = p2p_of(e);

    if (!all)
        return;
    all->watch = fn;
    all->watch_arg = arg;
    for (const struct trib_p2p_pair *p = all->list; p && fn; p = p->next)
        for (const struct trib_p2p_early *k = p->early.head; k; k = k->next)
            if (k->tag < 0)
                fn(arg, p->peer, k);
}
