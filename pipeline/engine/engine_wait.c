/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/engine/engine_wait.h"

#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "pipeline/payload/payload_agree.h"

enum {
    TELL_MS = 300, /* to tell of a failure the peers that take no notice at once */
    EVENTS = 16,
    PAUSES_PER_US = 25,      /* of trib_pause, about */
    EAGER = 64,              /* looks without a pause: an answer is often that near */
    EAGER_NS = 8000,         /* and no longer than this: a look may be a system call */
    BUSY_PAUSES = 8,         /* before a yield, with more ranks than cores */
    LOOK_EVERY = 16,         /* yields between two looks at the clock */
    POLL_NS = 5000000,       /* between two looks at a transport that need not be polled */
    SLEEP_AFTER_NS = 3000000, /* where peers' memory is looked at */
    SLEEP_US = 500,          /* a wake-up that is missed costs this much */
    NOTICE_NS = 100000000,
};

static void name_rank(const struct trib_engine *e, int rank, char *text, size_t bytes)
{
    const struct trib_peer *p = &e->peers[rank];

    snprintf(text, bytes, "rank %d (host %s, process %d)", rank, p->host, p->pid);
}

static void describe(const struct trib_engine *e, char *text, size_t bytes)
{
    const struct trib_run *run = e->head;

    if (!run) {
        snprintf(text, bytes, "after operation %u, phase idle", e->seq);
        return;
    }
    if (run->desc.op.leaving) {
        snprintf(text, bytes, "trib_free_comm, operation %u, phase free",
                 run->frame.seq);
        return;
    }
    snprintf(text, bytes, "%s%s%s%s (%s), operation %u, phase %s",
             trib_coll_name(run->desc.op.coll), run->label ? " \"" : "",
             run->label ? run->label : "", run->label ? "\"" : "",
             run->name ? run->name : "?", run->frame.seq,
             run->moved ? "transfer" : "start");
}

trib_status_t trib_engine_compare(const struct trib_engine *e,
                                  const struct trib_frame *theirs, int peer, char *text,
                                  size_t bytes)
{
    const struct trib_run *run = e->head;
    const trib_status_t st =
        trib_frame_check(&run->frame, theirs, e->rank, peer, text, bytes);
    const size_t n = strlen(text);

    if (st == TRIB_ERR_MISMATCH && run->label && n < bytes)
        snprintf(text + n, bytes - n, "; here the plan is \"%s\"", run->label);
    return st;
}

void trib_engine_protocol(struct trib_engine *e, int peer, const char *what)
{
    char who[128], where[160], text[400];

    name_rank(e, peer, who, sizeof(who));
    describe(e, where, sizeof(where));
    snprintf(text, sizeof(text), "%s sent %s to rank %d in %s", who, what, e->rank,
             where);
    trib_engine_fail(e, TRIB_ERR_PROTOCOL, text);
}

void trib_engine_misfit(struct trib_engine *e, const struct trib_frame *theirs, int peer)
{
    char text[400];
    const trib_status_t st = trib_engine_compare(e, theirs, peer, text, sizeof(text));

    if (st == TRIB_OK)
        trib_engine_protocol(e, peer, "a chunk that is not due");
    else
        trib_engine_fail(e, st, text);
}

void trib_engine_unable(struct trib_engine *e, int peer, trib_status_t status,
                        const char *why)
{
    char me[128], who[128], where[160], text[720];

    name_rank(e, e->rank, me, sizeof(me));
    name_rank(e, peer, who, sizeof(who));
    describe(e, where, sizeof(where));
    snprintf(text, sizeof(text), "%s cannot reach a buffer of %s in %s: %.200s", me, who,
             where, why);
    trib_engine_fail(e, status, text);
}

/* In the last barrier a peer that has what it needs may leave before this rank. A service has
 * nothing to do between two operations of the ranks: at the next it sees who is missing. */
static bool may_leave(const struct trib_engine *e)
{
    if (trib_engine_serves(e) && !e->head)
        return true;
    return e->head && e->head->desc.op.leaving;
}

static void take_notice(struct trib_engine *e, int peer)
{
    struct trib_notice n;
    char text[400];

    if (!trib_link_notice(&e->links[peer], &e->arena, peer, &n))
        return;
    const trib_status_t failed = trib_status_of_peer(n.status);
    if ((n.kind != TRIB_NOTICE_FAILED && n.kind != TRIB_NOTICE_WAITING) ||
        (n.kind == TRIB_NOTICE_FAILED && (failed == TRIB_OK || failed != n.status))) {
        trib_engine_protocol(e, peer, "a notice of a kind or status that there is none of");
        return;
    }
    if (n.kind == TRIB_NOTICE_FAILED) {
        trib_engine_fail(e, failed,
                         n.text[0] ? n.text : "a peer has failed, and does not say why");
        return;
    }
    if (!e->head || n.frame.seq != e->head->frame.seq)
        return;
    n.frame.kind = TRIB_FRAME_DATA;
    trib_status_t st = trib_engine_compare(e, &n.frame, peer, text, sizeof(text));
    if (st != TRIB_OK)
        trib_engine_fail(e, st, text);
}

void trib_engine_notices(struct trib_engine *e)
{
    for (int p = 0; p < e->size && !e->failed; p++)
        if (p != e->rank)
            take_notice(e, p);
}

void trib_engine_lost(struct trib_engine *e, int peer, bool left, const char *why)
{
    char who[128], where[160], text[560];

    /* Who fails tells its peers before it leaves: that is the cause, not the leaving. */
    take_notice(e, peer);
    e->links[peer].lost = true;
    trib_trace_now(&e->trace, TRIB_TRACE_PEER_LOST, peer, 0, 0);
    if (e->failed || (left && may_leave(e)))
        return;
    name_rank(e, peer, who, sizeof(who));
    describe(e, where, sizeof(where));
    snprintf(text, sizeof(text), "%s is lost: %.160s; seen by rank %d in %s", who, why,
             e->rank, where);
    trib_engine_fail(e, TRIB_ERR_PEER_LOST, text);
}

/* This host is there, whoever died on it. */
static bool host_is_lost(const struct trib_engine *e, const char *host)
{
    if (strcmp(e->peers[e->rank].host, host) == 0)
        return false;
    for (int p = 0; p < e->size; p++)
        if (e->links[p].lost && strcmp(e->peers[p].host, host) == 0)
            return true;
    return false;
}

static void tell(struct trib_engine *e, int peer, const struct trib_notice *n)
{
    struct trib_link *l = &e->links[peer];

    l->untold = trib_link_notify(l, &e->arena, n) == TRIB_ERR_NO_RESOURCE;
}

void trib_engine_tell(struct trib_engine *e, const struct trib_notice *n)
{
    for (int p = 0; p < e->size; p++)
        tell(e, p, n);
}

/* Those whose transport was full; true: it still is for some. */
static bool tell_untold(struct trib_engine *e, const struct trib_notice *n)
{
    bool untold = false;

    (void)trib_engine_events(e);
    for (int p = 0; p < e->size; p++) {
        if (e->links[p].untold)
            tell(e, p, n);
        untold |= e->links[p].untold;
    }
    return untold;
}

/* Beside services ranks have no links to each other: they hear of it from those, and a rank that
 * is stopped would not answer. */
static bool has_strangers(const struct trib_engine *e)
{
    return e->size == e->ranks || trib_engine_serves(e);
}

void trib_engine_tell_rest(struct trib_engine *e, const struct trib_notice *n)
{
    uint64_t until = trib_deadline_ms(TELL_MS);

    for (int p = 0; has_strangers(e) && p < e->size && !trib_deadline_passed(until); p++) {
        struct trib_link *l = &e->links[p];
        const struct trib_peer *peer = &e->peers[p];
        if (p == e->rank || l->lost || l->connected || host_is_lost(e, peer->host))
            continue;
        if (trib_link_connect(l, &e->arena, p, &peer->address, &peer->arena) == TRIB_OK)
            tell(e, p, n);
    }
    while (tell_untold(e, n) && !trib_deadline_passed(until))
        sched_yield();
}

void trib_engine_tell_failure(struct trib_engine *e)
{
    struct trib_notice n = {.kind = TRIB_NOTICE_FAILED, .status = e->failed};

    assert(e->failed);
    snprintf(n.text, sizeof(n.text), "%.199s", e->failure.text);
    trib_engine_tell_rest(e, &n);
}

/* Has what an event tells of not been told before? By the cell's position: a frame that came twice
 * would else have the next one read before it is there. */
static bool is_new(const struct trib_engine *e, const struct trib_event *event)
{
    const struct trib_link *l = &e->links[event->peer];
    const uint32_t lane = event->imm & 0xffffff;

    if (event->kind != TRIB_EVENT_ARRIVED || event->imm >> 24 != TRIB_LINK_FRAME ||
        lane >= TRIB_LANES || !l->recv[lane].slots) /* it may come before they are looked at */
        return true;
    const struct trib_recv_lane *r = &l->recv[lane];
    const struct trib_cell *c =
        (const struct trib_cell *)(r->slots + trib_slot_off(l, &e->arena, r->arrived));
    return atomic_load_explicit(&c->position, memory_order_relaxed) == r->arrived + 1;
}

static bool take_event(struct trib_engine *e, const struct trib_event *event)
{
    if (!is_new(e, event)) {
        trib_engine_protocol(e, event->peer, "a frame twice");
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
        if (events[i].kind == TRIB_EVENT_PEER_LOST)
            trib_engine_lost(e, events[i].peer, events[i].left, events[i].why);
        else
            moved |= take_event(e, &events[i]);
    }
    return moved;
}

static void tell_waiting(struct trib_engine *e)
{
    struct trib_notice n = {.kind = TRIB_NOTICE_WAITING, .frame = e->head->frame};

    for (uint32_t i = 0; i < e->head->program.n_edges; i++)
        (void)trib_link_notify(&e->links[e->head->program.edges[i].peer], &e->arena, &n);
}

/* The peer that the first unfinished task waits for, or -1: for the caller's data. */
static int waits_for(const struct trib_engine *e, const char **what_out)
{
    const struct trib_program *p = &e->head->program;

    for (uint32_t i = 0; i < p->n_edges; i++) {
        if (p->edges[i].open_in) {
            *what_out = "its call";
            return p->edges[i].peer;
        }
    }
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        const struct trib_task *t = &p->tasks[i];
        if (trib_task_over(e->head, t))
            continue;
        if (t->kind == TRIB_TASK_COPY_IN || t->kind == TRIB_TASK_SEND) {
            struct trib_link *l = &e->links[p->edges[t->edge].peer];
            bool full = !trib_link_can_send(l, t->lane, e->arena.slot_bytes);
            *what_out = t->kind == TRIB_TASK_SEND ? "room in its slots" : "a result";
            if (t->kind == TRIB_TASK_COPY_IN || full)
                return l->peer;
        }
        for (uint32_t k = 0; t->kind == TRIB_TASK_REDUCE && k < t->n_members; k++) {
            const struct trib_member *m = &p->members[t->member + k];
            int peer = p->edges[m->edge].peer;
            *what_out = "a contribution";
            if (!trib_link_peek(&e->links[peer], &e->arena, m->lane))
                return peer;
        }
    }
    for (uint32_t i = 0; i < p->n_edges; i++) {
        *what_out = "the end of a write to the memory";
        if (e->links[p->edges[i].peer].carrying)
            return p->edges[i].peer;
    }
    *what_out = "elements that trib_plan_ready has not named";
    return -1;
}

static void time_out(struct trib_engine *e)
{
    const char *what = "";
    char who[128] = "this rank's own", where[160], text[500];
    int peer = waits_for(e, &what);

    if (peer >= 0)
        name_rank(e, peer, who, sizeof(who));
    describe(e, where, sizeof(where));
    snprintf(text, sizeof(text),
             "rank %d made no progress for %d ms in %s: it waits for %s of %s "
             "(raise TRIB_TIMEOUT_MS if that is expected)",
             e->rank, e->cfg->timeout_ms, where, what, who);
    trib_engine_fail(e, TRIB_ERR_TIMEOUT, text);
}

bool trib_engine_look(struct trib_engine *e)
{
    uint64_t now = trib_now_ns();

    if (!e->last_progress) {
        e->last_progress = e->last_notice = now;
        return false;
    }
    if (now - e->last_poll > POLL_NS) {
        e->last_poll = now;
        (void)trib_engine_events(e);
        trib_engine_notices(e);
    }
    if (e->failed || !e->head)
        return false;
    if (now - e->last_notice > NOTICE_NS) {
        e->last_notice = now;
        tell_waiting(e);
    }
    if (now - e->last_progress > (uint64_t)e->cfg->timeout_ms * 1000000u)
        time_out(e);
    /* Each look at a network is a system call, or a bus, that others have to wait for. */
    return now - e->last_progress >
           (e->all_mapped ? SLEEP_AFTER_NS : (uint64_t)e->cfg->spin_us * 1000);
}

/* Can an answer be so near that the core is not to be given away? */
static bool is_eager(struct trib_engine *e)
{
    if (e->oversubscribed)
        return e->idle < BUSY_PAUSES;
    if (e->all_mapped)
        return e->idle < (uint32_t)e->cfg->spin_us * PAUSES_PER_US;
    if (e->idle == 1)
        e->idle_since = trib_now_ns();
    return e->idle < EAGER && trib_now_ns() - e->idle_since < EAGER_NS;
}

/*
 * Spin while an answer can be near; then give the core to others, most of all with more
 * ranks than cores; true: it is time to sleep.
 */
static bool idle(struct trib_engine *e)
{
    e->idle++;
    if (!e->yields && is_eager(e)) {
        if (e->idle > EAGER)
            trib_pause();
        return false;
    }
    if (e->yields++ % LOOK_EVERY == 0) {
        if (e->aside)
            e->aside(e->aside_arg);
        if (trib_engine_look(e))
            return true;
    }
    sched_yield();
    return false;
}

/* Until somebody writes, at most SLEEP_US. */
static void sleep_until_write(struct trib_engine *e)
{
    e->transport->ops->arm(e->transport);
    if (!trib_engine_progress(e))
        e->transport->ops->wait(e->transport, SLEEP_US);
    else
        trib_engine_awake(e);
}

void trib_engine_awake(struct trib_engine *e)
{
    e->idle = e->yields = 0;
    e->last_progress = 0;
}

trib_status_t trib_engine_wait(struct trib_engine *e, struct trib_run *run)
{
    trib_engine_awake(e);
    while (atomic_load_explicit(&run->state, memory_order_acquire) != TRIB_RUN_DONE) {
        if (trib_engine_progress(e))
            trib_engine_awake(e);
        else if (idle(e))
            sleep_until_write(e);
    }
    return run->status;
}
