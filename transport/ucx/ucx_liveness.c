/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx: loss of peers and disconnecting.
 *
 * The kernel closes the sockets of a process that ends, and the manager sees that.
 * DISCONNECT carries the number of messages sent. A disconnecting rank waits briefly
 * until its peer has received them all, because UCX drops unread data when a connection
 * breaks.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/time.h"
#include "transport/ucx/ucx.h"

enum {
    IN_FLIGHT_MS = 50, /* for messages from a dead peer, unless UCX reports the end */
    LEFT_MS = 500, /* for messages in flight from a peer that has disconnected */
    LEAVE_MS = 200, /* for sent messages to arrive */
};

/* Mark a peer as lost. A peer that was never connected is marked, too, but its loss is
 * not reported. */
static void lose_peer(struct ucx *u, int peer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void lose_peer(struct ucx *u, int peer, const char *format, ...)
{
    struct ucx_peer *p = &u->peers[peer];
    va_list args;

    assert(peer >= 0 && peer < u->size);
    if (!trib_peer_is_there(&p->base))
        return;
    p->mute = p->base.state == TRIB_PEER_UNKNOWN;
    trib_peer_drain(&p->base, &u->n_losing);
    va_start(args, format);
    vsnprintf(p->base.why, sizeof(p->base.why), format, args);
    va_end(args);
}

/* Call with `lock` and `links` held. */
static void handle_events_of(struct ucx *u, int peer)
{
    struct ucx_peer *p = &u->peers[peer];

    assert(ucx_lock_held(u) && ucx_links_held(u));
    if (p->violation)
        lose_peer(u, peer, "process %d %s", p->base.who.pid, p->violation);
    else if (p->dropped)
        lose_peer(u, peer, TRIB_PEER_GAVE_UP, p->base.who.pid);
    else if (p->got_disconnect || p->gone)
        lose_peer(u, peer, "process %d closed its connection", p->base.who.pid);
    else if (p->fault != UCS_OK)
        lose_peer(u, peer, "process %d: %s", p->base.who.pid,
                  trib_ucx_status_text(&u->api, p->fault));
}

/* Call with `lock` held. */
void trib_ucx_handle_async_events(struct ucx *u)
{
    atomic_store_explicit(&u->async_events, false, memory_order_relaxed);
    pthread_mutex_lock(&u->links);
    for (int i = 0; i < u->size; i++)
        handle_events_of(u, i);
    pthread_mutex_unlock(&u->links);
}

void trib_ucx_tick(struct ucx *u)
{
    uint64_t due = trib_peer_liveness_due(&u->stops_at);
    char why[TRIB_WHY_MAX];

    if (due)
        trib_heartbeat_note_away(u->local.heartbeat);
    for (int i = 0; i < u->size; i++) {
        struct ucx_peer *p = &u->peers[i];
        if (p->base.state == TRIB_PEER_CONNECTED &&
            trib_peer_liveness_lost(&p->base.liveness, due, u->cfg->stop_timeout_ms,
                                    why, sizeof(why)))
            lose_peer(u, i, "%s", why);
    }
}

/* Close the peer's sockets and endpoint, and refuse further connections from it. */
static void close_peer(struct ucx *u, int peer, enum trib_peer_state state)
{
    struct ucx_peer *p = &u->peers[peer];

    assert(state == TRIB_PEER_LOST || state == TRIB_PEER_LEFT);
    p->base.state = state;
    pthread_mutex_lock(&u->links);
    p->closed = true;
    p->wire_until = 0;
    trib_ucx_close_fd(u, &p->out);
    trib_ucx_close_fd(u, &p->in);
    pthread_mutex_unlock(&u->links);
    pthread_mutex_lock(&u->lock);
    p->expected = false;
    trib_ucx_endpoint_close(u, peer);
    assert(u->ready >= p->ready);
    u->ready -= p->ready;
    p->ready = 0;
    u->backlog -= p->head != p->tail;
    p->head = p->tail;
    pthread_mutex_unlock(&u->lock);
    trib_peer_liveness_end(&p->base.liveness);
}

/* Return true if no further message of this peer can arrive. *left_out is set if it
 * has sent DISCONNECT. */
static bool all_arrived(struct ucx *u, int peer, bool *left_out)
{
    struct ucx_peer *p = &u->peers[peer];
    double ms = (double)(trib_now_ns() - p->base.going_at) / 1e6;

    pthread_mutex_lock(&u->lock);
    uint64_t next = p->next;
    const bool ended = p->fault != UCS_OK; /* UCX has read its connection to the end */
    pthread_mutex_unlock(&u->lock);
    pthread_mutex_lock(&u->links);
    *left_out = p->got_disconnect;
    bool all = p->got_disconnect ? next >= p->sent || ms > LEFT_MS
                                 : (ended && p->gone) || ms > IN_FLIGHT_MS;
    bool gone = p->gone && !p->violation && !p->dropped;
    /* The kernel shows the end of a process slightly later than the end of its
     * sockets. */
    if (gone && !p->got_disconnect && p->base.liveness.by == TRIB_LIVENESS_BY_KERNEL)
        all &= trib_peer_liveness_dead(&p->base.liveness) || ms > IN_FLIGHT_MS;
    p->base.given_up = p->dropped && !p->got_disconnect;
    pthread_mutex_unlock(&u->links);
    if (*left_out)
        trib_peer_explain(&p->base, "process %d has left", p->base.who.pid);
    else if (gone) /* UCX may have noticed first, with less detail */
        trib_peer_explain_end(&p->base);
    return all;
}

/* Report a lost peer after all messages that it sent. */
int trib_ucx_report_losses(struct ucx *u, struct trib_event *events, int max)
{
    int n = 0;

    for (int i = 0; i < u->size && n < max && u->n_losing; i++) {
        struct ucx_peer *p = &u->peers[i];
        bool left;
        if (p->base.state != TRIB_PEER_DRAINING || !all_arrived(u, i, &left))
            continue;
        trib_ucx_send_control(u, i, left ? UCX_GOT_ALL : UCX_DROP, 0);
        if (!p->mute)
            trib_peer_report(&p->base, i, left, &events[n++]);
        close_peer(u, i, TRIB_PEER_LOST);
        assert(u->n_losing > 0);
        u->n_losing--;
    }
    return n;
}

static void send_disconnect(struct ucx *u, int peer)
{
    struct ucx_peer *p = &u->peers[peer];

    if (!trib_peer_is_there(&p->base))
        return;
    pthread_mutex_lock(&u->lock);
    uint64_t sent = p->tail;
    pthread_mutex_unlock(&u->lock);
    trib_ucx_send_control(u, peer, UCX_DISCONNECT, sent);
}

static bool is_one_of(const bool *which, int peer)
{
    return !which || which[peer];
}

/* Do not wait for a peer that is disconnecting, too. */
static bool is_awaited(struct ucx *u, int first, int last, const bool *which)
{
    bool waits = false;

    pthread_mutex_lock(&u->links);
    for (int i = first; i <= last && !waits; i++) {
        const struct ucx_peer *p = &u->peers[i];
        waits = is_one_of(which, i) && trib_peer_is_there(&p->base) &&
                (p->out >= 0 || p->in >= 0) && !p->got_all && !p->got_disconnect &&
                !p->gone && !p->dropped;
    }
    pthread_mutex_unlock(&u->links);
    return waits;
}

static void await_got_all(struct ucx *u, int first, int last, const bool *which,
                          uint64_t until)
{
    while (is_awaited(u, first, last, which) && !trib_deadline_passed(until)) {
        pthread_mutex_lock(&u->lock);
        unsigned n = trib_ucx_progress(u);
        if (n == 0)
            (void)u->api.ucp_worker_arm(u->worker);
        pthread_mutex_unlock(&u->lock);
        if (n == 0)
            trib_ucx_sleep(u);
    }
}

/* Disconnect from all peers at once: a large job must not wait for each in turn. */
static void disconnect_peers(struct ucx *u, int first, int last, const bool *which)
{
    uint64_t until = trib_deadline_ms(LEAVE_MS);

    assert(first >= 0 && last < u->size);
    pthread_mutex_lock(&u->links);
    for (int i = first; i <= last; i++)
        u->peers[i].closed |= is_one_of(which, i);
    pthread_mutex_unlock(&u->links);
    for (int i = first; i <= last; i++)
        if (is_one_of(which, i))
            send_disconnect(u, i);
    await_got_all(u, first, last, which, until);
    for (int i = first; i <= last; i++) {
        if (!is_one_of(which, i) || u->peers[i].base.state == TRIB_PEER_LEFT)
            continue;
        u->n_losing -= u->peers[i].base.state == TRIB_PEER_DRAINING;
        close_peer(u, i, TRIB_PEER_LEFT);
    }
}

void trib_ucx_disconnect(struct trib_transport *t, int peer)
{
    struct ucx *u = ucx_of(t);

    if (peer >= 0 && peer < u->size && u->peers[peer].base.state != TRIB_PEER_LEFT)
        disconnect_peers(u, peer, peer, NULL);
}

void trib_ucx_leave(struct trib_transport *t, const bool *which)
{
    struct ucx *u = ucx_of(t);

    disconnect_peers(u, 0, u->size - 1, which);
}
