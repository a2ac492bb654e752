/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/run/events.h"

#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "pipeline/link/grants.h"
#include "pipeline/run/failure.h"

enum {
    ABORT_NOTIFY_MS = 20, /* as NOTIFY_MS, after the caller gave up */
    NOTIFY_MS = 300, /* time for peers that cannot accept a notice at once */
    DETACH_MS = 20, /* for writes from the caller's memory to complete … */
    RECALL_MS = 8000, /* … if they cannot be detached and stop_timeout_ms is 0 */
    ABORT_RECALL_MS = 300, /* the same, after the caller gave up */
    EVENTS = 16,
};

/* Return true if this frame is new. A duplicate, recognised by its position, would make
 * the next frame readable before it arrives. */
static bool is_new(const struct trib_engine *e, const struct trib_event *event)
{
    const struct trib_link *l = &e->links[event->peer];
    const uint32_t lane = event->imm & 0xffffff;

    if (event->kind != TRIB_EVENT_ARRIVED || event->imm >> 24 != TRIB_LINK_FRAME ||
        lane >= TRIB_LANES || !l->recv[lane].slots) /* slots not set up yet */
        return true;
    const struct trib_recv_lane *r = &l->recv[lane];
    const struct trib_entry *c =
        (const struct trib_entry *)(r->slots + trib_slot_off(l, &e->arena, r->arrived));
    return atomic_load_explicit(&c->position, memory_order_relaxed) == r->arrived + 1;
}

static bool take_event(struct trib_engine *e, const struct trib_event *event)
{
    if (e->p2p && e->p2p->ops->take_event(e, event))
        return true;
    if (!is_new(e, event)) {
        trib_engine_protocol(e, event->peer, "a duplicate frame");
        return false;
    }
    if (event->imm >> 24 == TRIB_LINK_CREDITS &&
        !trib_link_credits_fit(&e->links[event->peer], event)) {
        trib_engine_protocol(e, event->peer, "credits for frames that were never sent");
        return false;
    }
    if (!trib_grants_take(&e->arena, e->links, event)) {
        trib_engine_protocol(e, event->peer, "an invalid request or grant");
        return false;
    }
    if (!trib_link_event(&e->links[event->peer], event))
        return false;
    if (event->kind == TRIB_EVENT_ARRIVED)
        trib_trace_now(&e->trace, TRIB_TRACE_ARRIVED, event->peer, 0, event->len);
    return true;
}

bool trib_engine_events(struct trib_engine *e)
{
    struct trib_event events[EVENTS];
    bool moved = false;
    int n = e->transport->ops->poll(e->transport, events, EVENTS);

    for (int i = 0; i < n; i++) {
        if (events[i].kind != TRIB_EVENT_PEER_LOST) {
            moved |= take_event(e, &events[i]);
            continue;
        }
        e->links[events[i].peer].dead = events[i].dead;
        e->links[events[i].peer].lives = events[i].lives;
        e->links[events[i].peer].continues = events[i].continues;
        if (events[i].given_up)
            trib_engine_given_up(e);
        trib_engine_lost(e, events[i].peer, events[i].left, events[i].why);
    }
    return moved;
}

/* Return true if a peer on this other host is lost. Peers on this rank's own host
 * remain reachable whichever of them died. */
static bool host_is_lost(const struct trib_engine *e, const char *host)
{
    if (strcmp(e->peers[e->rank].host, host) == 0)
        return false;
    for (int p = 0; p < e->size; p++)
        if (e->links[p].lost && strcmp(e->peers[p].host, host) == 0)
            return true;
    return false;
}

/* Notify the peers whose transport was full; return true if some still are. */
static bool retry_notices(struct trib_engine *e, const struct trib_oob_notice *n)
{
    bool unnotified = false;

    (void)trib_engine_events(e);
    for (int p = 0; p < e->size; p++) {
        if (e->links[p].unnotified)
            trib_engine_notify(e, p, n);
        unnotified |= e->links[p].unnotified;
    }
    return unnotified;
}

/* Return true if some peers may have no link to this rank. Ranks that use aggregators
 * learn of failures from those, and a stopped rank would not answer. */
static bool may_lack_links(const struct trib_engine *e)
{
    return e->size == e->ranks || trib_engine_is_aggregator(e);
}

static struct trib_oob_notice failure_of(const struct trib_engine *e)
{
    struct trib_oob_notice n = {
        .kind = TRIB_OOB_NOTICE_FAILED, .status = e->failed, .lost = e->cause_lost};

    assert(e->failed);
    snprintf(n.text, sizeof(n.text), "%.199s", e->failure.text);
    return n;
}

static bool is_read(const struct trib_link *l)
{
    return l->connected && !l->lost && (l->n_zcopies || l->n_direct);
}

/* Return true if some peer still reads the caller's memory. */
static bool is_any_read(const struct trib_engine *e)
{
    for (int p = 0; p < e->size; p++)
        if (is_read(&e->links[p]))
            return true;
    return false;
}

/* Detach what can be detached; return true if the rest must complete. */
static bool detach_all(struct trib_engine *e)
{
    bool rest = false;

    for (int p = 0; p < e->size; p++)
        if (is_read(&e->links[p]))
            rest |= !e->transport->ops->detach(e->transport, p);
    return rest;
}

/* A write that is late by seconds would send what the caller has by then stored there,
 * and the peer would take it for this rank's data. */
static void end_writes(struct trib_engine *e)
{
    for (int p = 0; p < e->size; p++) {
        if (!is_read(&e->links[p]))
            continue;
        e->transport->ops->disconnect(e->transport, p);
        trib_engine_lost(e, p, false, "its writes did not complete after a failure");
    }
}

static uint64_t recall_limit_ms(const struct trib_engine *e)
{
    if (trib_idle_answer(e->idle_fn))
        return ABORT_RECALL_MS;
    return e->cfg->stop_timeout_ms > 0 ? (uint64_t)e->cfg->stop_timeout_ms : RECALL_MS;
}

/* An aggregator's writes read its own memory. */
void trib_engine_recall(struct trib_engine *e)
{
    const struct trib_oob_notice n = failure_of(e);
    const uint64_t start = trib_now_ns();
    bool detaches = true;

    while (!trib_engine_is_aggregator(e) && is_any_read(e)) {
        const uint64_t ms = (trib_now_ns() - start) / 1000000;
        if (ms >= recall_limit_ms(e)) {
            end_writes(e);
            return;
        }
        if (ms >= DETACH_MS && detaches)
            detaches = detach_all(e);
        (void)retry_notices(e, &n);
        sched_yield();
    }
}

/* Return true if neither writes of this peer to this rank's memory nor the opposite
 * ones can be in flight. A failed peer posts its notice after all its writes. */
static bool is_quiet(struct trib_engine *e, int peer)
{
    struct trib_link *l = &e->links[peer];

    if (l->mapped || l->lost || !l->connected)
        return true;
    trib_engine_notice(e, peer);
    return l->has_failed && !l->n_zcopies && !l->n_direct;
}

uint64_t trib_engine_quiet_by(const struct trib_engine *e)
{
    return trib_deadline_ms(trib_idle_answer(e->idle_fn) ? ABORT_NOTIFY_MS : NOTIFY_MS);
}

bool trib_engine_await_peer(struct trib_engine *e, int peer, uint64_t until)
{
    const struct trib_oob_notice n = failure_of(e);
    bool quiet;

    (void)retry_notices(e, &n);
    while (!(quiet = is_quiet(e, peer)) && !trib_deadline_passed(until)) {
        sched_yield();
        (void)retry_notices(e, &n);
    }
    return quiet;
}

bool trib_engine_await_quiet(struct trib_engine *e, const struct trib_run *run)
{
    /* Not recv_place: peers write into memory that is itself copied out of, too. */
    bool quiet = run->now.borrowed[1] || run->now.advert_far.recv.blob.len;

    trib_engine_recall(e);
    const uint64_t until = trib_engine_quiet_by(e);
    for (uint32_t i = 0; quiet && i < run->program.n_neighbors; i++)
        quiet = trib_engine_await_peer(e, run->program.neighbors[i].peer, until);
    return quiet;
}

static void notify_rest(struct trib_engine *e, const struct trib_oob_notice *n)
{
    uint64_t until =
        trib_deadline_ms(trib_idle_answer(e->idle_fn) ? ABORT_NOTIFY_MS : NOTIFY_MS);

    for (int p = 0; may_lack_links(e) && p < e->size && !trib_deadline_passed(until);
         p++) {
        struct trib_link *l = &e->links[p];
        const struct trib_peer *peer = &e->peers[p];
        if (p == e->rank || l->lost || l->reported_lost || l->connected ||
            host_is_lost(e, peer->host))
            continue;
        if (trib_link_connect(l, &e->arena, p, &peer->address, &peer->arena) == TRIB_OK)
            trib_engine_notify(e, p, n);
    }
    while (retry_notices(e, n) && !trib_deadline_passed(until))
        sched_yield();
}

void trib_engine_notify_failure(struct trib_engine *e)
{
    const struct trib_oob_notice n = failure_of(e);

    notify_rest(e, &n);
}
