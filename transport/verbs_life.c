/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: who is still there, and leaving.
 *
 * A process that ends takes its connections down, and the peers' managers hear of it; a
 * host that is silent makes the writes to it fail. Only a stop of a process needs a
 * look, and only at processes of this host.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/time.h"
#include "transport/verbs.h"

enum {
    GOING_MS = 50, /* for what a dead peer may have under way */
    STOPS_MS = 25, /* between two looks for stopped processes */
    LEAVE_MS = 200, /* for what is posted to get there */
};

void trib_verbs_going(struct verbs *v, int peer, const char *format, ...)
{
    struct verbs_peer *p = &v->peers[peer];
    va_list args;

    if (p->state != VERBS_PEER_CONNECTED &&
        !(p->state == VERBS_PEER_GOING && (p->said_bye || p->flushed)))
        return;
    p->flushed = false;
    if (p->state == VERBS_PEER_CONNECTED) {
        p->state = VERBS_PEER_GOING;
        p->going_at = trib_now_ns();
        v->n_going++;
    }
    va_start(args, format);
    vsnprintf(p->why, sizeof(p->why), p->said_bye ? "process %d has left" : format,
              args);
    va_end(args);
}

/* What the manager noted. It may be busy with a request: then another time. */
void trib_verbs_take_news(struct verbs *v)
{
    if (pthread_mutex_trylock(&v->links) != 0)
        return;
    atomic_store_explicit(&v->news, false, memory_order_relaxed);
    for (int i = 0; i < v->size; i++) {
        struct verbs_peer *p = &v->peers[i];
        if (*p->fault)
            trib_verbs_going(v, i, "process %d: %s", p->who.pid, p->fault);
        else if (p->gone)
            trib_verbs_going(v, i, "process %d has died", p->who.pid);
    }
    pthread_mutex_unlock(&v->links);
}

/*
 * Only time during which somebody watched counts: a job that was suspended as a whole
 * and goes on must not find all its peers lost.
 */
static void look_for_stop(struct verbs *v, int peer, uint64_t elapsed)
{
    struct verbs_peer *p = &v->peers[peer];

    if (!p->watched || p->state != VERBS_PEER_CONNECTED)
        return;
    enum trib_process_state state = trib_process_watch_look(&p->watch);
    if (state == TRIB_PROCESS_DEAD)
        trib_verbs_going(v, peer, "process %d has died", p->who.pid);
    p->stopped_ns = state == TRIB_PROCESS_STOPPED
                        ? p->stopped_ns + (p->stopped_ns ? elapsed : 1)
                        : 0;
    if (p->stopped_ns >= (uint64_t)v->cfg->stop_timeout_ms * 1000000u)
        trib_verbs_going(v, peer, "process %d has been stopped for %.1f s", p->who.pid,
                         (double)p->stopped_ns / 1e9);
}

void trib_verbs_tick(struct verbs *v)
{
    uint64_t now = trib_now_ns(), elapsed = now - v->stops_at;
    const uint64_t step = STOPS_MS * UINT64_C(1000000);

    if (elapsed < step)
        return;
    v->stops_at = now;
    for (int i = 0; i < v->size; i++)
        look_for_stop(v, i, elapsed < 4 * step ? elapsed : 4 * step);
}

/* Both connections go, and none is made any more. */
static void part(struct verbs *v, int peer, enum verbs_peer_state state)
{
    struct verbs_peer *p = &v->peers[peer];
    struct verbs_link links[2];

    p->state = state;
    pthread_mutex_lock(&v->posting);
    p->qp = NULL;
    pthread_mutex_unlock(&v->posting);
    pthread_mutex_lock(&v->links);
    p->closed = true;
    links[0] = p->out;
    links[1] = p->in;
    memset(&p->out, 0, sizeof(p->out));
    memset(&p->in, 0, sizeof(p->in));
    for (int i = 0; i < 2; i++) {
        if (links[i].qp)
            trib_verbs_route_remove(v, links[i].qp->qp_num);
    }
    pthread_mutex_unlock(&v->links);
    for (int i = 0; i < 2; i++)
        trib_verbs_link_drop(v, &links[i]);
    p->bye_pending = false;
    if (p->watched)
        trib_process_watch_close(&p->watch);
    p->watched = false;
}

/* A lost peer is reported after everything that it wrote. */
int trib_verbs_report_losses(struct verbs *v, struct trib_event *events, int max)
{
    int n = 0;

    for (int i = 0; i < v->size && n < max && v->n_going; i++) {
        struct verbs_peer *p = &v->peers[i];
        bool late = trib_now_ns() - p->going_at > GOING_MS * UINT64_C(1000000);
        if (p->state != VERBS_PEER_GOING || (!p->finished && !late))
            continue;
        /* Its writes fail before its end is told: the cause is its death. */
        if (!p->said_bye && p->watched &&
            trib_process_watch_look(&p->watch) == TRIB_PROCESS_DEAD)
            snprintf(p->why, sizeof(p->why), "process %d has died", p->who.pid);
        events[n].kind = TRIB_EVENT_PEER_LOST;
        events[n].peer = i;
        events[n].left = p->said_bye;
        memcpy(events[n++].why, p->why, sizeof(p->why));
        part(v, i, VERBS_PEER_LOST);
        v->n_going--;
    }
    return n;
}

static bool is_there(const struct verbs_peer *p)
{
    return p->state == VERBS_PEER_CONNECTED || p->state == VERBS_PEER_UNKNOWN;
}

static void close_door(struct verbs *v, int first, int last)
{
    pthread_mutex_lock(&v->links);
    for (int i = first; i <= last; i++)
        v->peers[i].closed = true;
    pthread_mutex_unlock(&v->links);
}

void trib_verbs_disconnect(struct trib_transport *t, int peer)
{
    struct verbs *v = verbs_of(t);

    if (peer < 0 || peer >= v->size || v->peers[peer].state == VERBS_PEER_LEFT)
        return;
    struct verbs_peer *p = &v->peers[peer];
    close_door(v, peer, peer);
    if (p->state == VERBS_PEER_GOING)
        v->n_going--;
    if (is_there(p)) {
        trib_verbs_say_bye(v, peer);
        trib_verbs_drain(v, peer, trib_deadline_ms(LEAVE_MS));
    }
    part(v, peer, VERBS_PEER_LEFT);
}

/* Farewell to all at once: a job of many ranks must not wait for each in turn. */
void trib_verbs_leave_all(struct verbs *v)
{
    close_door(v, 0, v->size - 1);
    for (int i = 0; i < v->size; i++) {
        if (is_there(&v->peers[i]))
            trib_verbs_say_bye(v, i);
    }
    trib_verbs_drain(v, -1, trib_deadline_ms(LEAVE_MS));
    for (int i = 0; i < v->size; i++)
        part(v, i, VERBS_PEER_LEFT);
}
