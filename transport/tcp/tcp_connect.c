/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp: opening and closing connections, and detecting losses.
 */
#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "base/time.h"
#include "transport/common/heartbeat.h"
#include "transport/tcp/tcp.h"

enum {
    GOING_MS = 50, /* for data that a lost peer may have left in its stream */
    LIFE_MS = 500, /* for the heartbeat answer of a peer that closed its connection */
    /* for the stream of a dead peer: its kernel sends the stream to the end, and
     * retransmits lost segments */
    DEAD_MS = 1500,
    LEAVE_MS = 100, /* for the notices to all peers that are disconnected together */
    /* for their kernels to acknowledge the notices, over a lossy network */
    KNOWN_MS = 2000,
    /* for their proofs, which a thread sends whatever else a peer does */
    PROOF_MS = 500,
};

trib_status_t trib_tcp_address(struct trib_transport *t, struct trib_address *out)
{
    const struct tcp *tcp = tcp_of(t);

    trib_ip_endpoint_address(&tcp->local, tcp->listener.port, tcp->log, out);
    return TRIB_OK;
}

trib_status_t trib_tcp_reach(struct trib_transport *t, int peer,
                             const struct trib_address *address)
{
    const struct tcp *tcp = tcp_of(t);
    const struct trib_peers peers = tcp_peers(tcp);
    struct trib_ip_address a;

    return trib_ip_endpoint_read(&tcp->local, &peers, peer, address, &a);
}

static trib_status_t connect_and_send_hello(struct tcp *tcp, int peer,
                                            const struct trib_ip_address *a,
                                            struct trib_proof *proof, int *fd_out,
                                            struct trib_net_found *found)
{
    struct tcp_hello hello;
    trib_status_t status =
        trib_ip_endpoint_connect(&tcp->local, a, tcp->err, fd_out, found);

    if (status != TRIB_OK)
        return status;
    if (!trib_tcp_make_hello(tcp, peer, &hello, proof) ||
        send(*fd_out, &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello)) {
        close(*fd_out);
        *fd_out = -1;
        return trib_fail(tcp->err, TRIB_ERR_PEER_LOST,
                         "cannot send the hello to process %d: %m", a->pid);
    }
    return TRIB_OK;
}

trib_status_t trib_tcp_connect(struct trib_transport *t, int peer,
                               const struct trib_address *address)
{
    struct tcp *tcp = tcp_of(t);
    const struct trib_peers peers = tcp_peers(tcp);
    struct trib_ip_address a;
    struct trib_net_found found;
    struct trib_proof proof;
    trib_status_t status =
        trib_ip_endpoint_read(&tcp->local, &peers, peer, address, &a);

    if (status != TRIB_OK || tcp->peers[peer].base.state == TRIB_PEER_CONNECTED)
        return status;
    struct tcp_peer *p = &tcp->peers[peer];
    if (!p->queue)
        p->queue = calloc(TCP_QUEUE, sizeof(*p->queue));
    if (!p->queue || !trib_tcp_alloc_seals(tcp, peer))
        return trib_fail(tcp->err, TRIB_ERR_NO_MEMORY, "out of memory");
    p->key = a.key;
    status = connect_and_send_hello(tcp, peer, &a, &proof, &p->own, &found);
    if (status != TRIB_OK)
        return status;
    trib_tcp_watch_fd(tcp, p->own);
    const struct trib_ip_identity who = trib_ip_identity_of(&a);
    trib_ip_endpoint_watch(&tcp->local, peer, &who, found.ip, &p->base);
    trib_tcp_await_proof(tcp, peer, &proof);
    p->base.state = TRIB_PEER_CONNECTED;
    trib_tcp_move(tcp, peer);
    return TRIB_OK;
}

/* A reset of its connection does not mean that a process has died, so ask by heartbeat.
 * A live process answers at once; the host of an ended one refuses at once, unless a
 * firewall drops that. Return true if there is an answer, or none can be expected. */
static bool is_liveness_known(struct tcp_peer *p, uint64_t ms)
{
    struct trib_peer_liveness *l = &p->base.liveness;
    char why[TRIB_WHY_MAX];

    if (l->by == TRIB_LIVENESS_BY_NOBODY || ms > LIFE_MS ||
        (l->by == TRIB_LIVENESS_BY_KERNEL && !p->closed_conn))
        return true;
    if (!p->base.asked && !trib_peer_liveness_lost(l, 0, 0, why, sizeof(why)))
        p->base.asked = trib_peer_liveness_ask(l);
    if (!p->base.asked || trib_peer_liveness_dead(l))
        return true;
    if (!trib_peer_liveness_answered(l, p->base.asked))
        return false;
    if (!p->blamed)
        trib_peer_explain(&p->base, "process %d runs, but its connection was cut%s",
                          p->base.who.pid,
                          p->seals ? " or tampered with: see the error message of "
                                     "that process"
                                   : "");
    return true;
}

/* A peer that has continued without this rank sends a datagram, since the
 * connection may have ended, or carry nothing. */
static void check_continues(struct tcp *tcp, struct tcp_peer *p)
{
    if (p->got_disconnect || p->blamed || p->base.given_up ||
        !trib_peer_liveness_continues(&p->base.liveness))
        return;
    trib_tcp_mark_lost(tcp, (int)(p - tcp->peers), "%s", "");
    trib_peer_explain(&p->base, "process %d runs, and continues without this rank",
                      p->base.who.pid);
}

/* Return true if the loss of a peer may be reported now. A kernel reports the end of a
 * process shortly after the end of its connections. */
static bool is_loss_final(struct tcp_peer *p)
{
    const uint64_t ms = (trib_now_ns() - p->base.going_at) / 1000000;
    const bool by_kernel = p->base.liveness.by == TRIB_LIVENESS_BY_KERNEL;
    const bool dead = by_kernel && trib_peer_liveness_dead(&p->base.liveness);

    if (p->got_disconnect || p->base.given_up)
        return p->finished || ms > GOING_MS;
    if (!dead)
        return ((p->finished && !by_kernel) || ms > GOING_MS) &&
               is_liveness_known(p, ms);
    if (!p->finished && p->in.fd >= 0 && ms <= DEAD_MS)
        return false;
    if (!p->blamed)
        trib_peer_explain(&p->base, "process %d has died", p->base.who.pid);
    return true;
}

/*
 * A peer that declares this rank lost sends a notice before it closes, unless a frame
 * is half sent. If this rank was away for nearly the time-out, a live process on this
 * host that closed silently has done the same.
 */
static bool gave_up_silently(struct tcp *tcp, const struct tcp_peer *p)
{
    return p->closed_conn && !p->got_disconnect && !p->blamed &&
           p->base.liveness.by == TRIB_LIVENESS_BY_KERNEL && tcp->local.heartbeat &&
           !trib_peer_liveness_dead(&p->base.liveness) &&
           trib_heartbeat_away(tcp->local.heartbeat, true) != 0;
}

/* Report a lost peer only after everything that it sent. */
int trib_tcp_report_losses(struct tcp *tcp, struct trib_event *events, int max)
{
    int n = 0;

    for (int i = 0; i < tcp->size && n < max && tcp->n_losing; i++) {
        struct tcp_peer *p = &tcp->peers[i];
        if (p->base.state != TRIB_PEER_DRAINING || !is_loss_final(p))
            continue;
        check_continues(tcp, p);
        if (gave_up_silently(tcp, p)) {
            p->base.given_up = true;
            trib_peer_explain(&p->base, TRIB_PEER_GAVE_UP, p->base.who.pid);
        }
        trib_peer_report(&p->base, i, p->got_disconnect, &events[n++]);
        if (!p->got_disconnect)
            trib_tcp_send_given_up(tcp, i);
        trib_tcp_close_peer(tcp, i);
        p->base.state = TRIB_PEER_LOST;
        assert(tcp->n_losing > 0);
        tcp->n_losing--;
    }
    return n;
}

/* Return true if the peer's kernel may still acknowledge the notice. If the notice is
 * lost in the network, data from the peer to a closed socket would reset the
 * connection. A kernel that has reset the connection acknowledges nothing, nor does one
 * whose process does not read. */
static bool is_unacknowledged(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];
    struct tcp_info info = {.tcpi_state = TCP_CLOSE};
    socklen_t len = sizeof(info);

    pthread_mutex_lock(&tcp->lock);
    if (p->fd >= 0)
        (void)getsockopt(p->fd, IPPROTO_TCP, TCP_INFO, &info, &len);
    pthread_mutex_unlock(&tcp->lock);
    return info.tcpi_state != TCP_CLOSE && info.tcpi_unacked > 0;
}

/* Return true if the peer has yet to take queued writes, or to accept this rank. */
static bool is_disconnect_pending(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];

    return p->disconnecting && p->base.state == TRIB_PEER_CONNECTED &&
           (!trib_tcp_flush(tcp, peer) || !p->accepted || is_unacknowledged(tcp, peer));
}

/* Return true if writes wait for the peer's proof, and so have not even reached its
 * kernel. The disconnect notice does not count. */
static bool awaits_proof(struct tcp *tcp, const struct tcp_peer *p)
{
    pthread_mutex_lock(&tcp->lock);
    const bool awaits = p->proof.step == TRIB_PROOF_BEGUN && p->tail - p->head > 1;
    pthread_mutex_unlock(&tcp->lock);
    return awaits;
}

/* Return true if a late peer gets more time: its proof is still due, or its kernel has
 * room but the network loses packets. */
static bool may_wait(struct tcp *tcp, int peer, uint64_t proven_by)
{
    if (awaits_proof(tcp, &tcp->peers[peer]))
        return !trib_deadline_passed(proven_by);
    return trib_tcp_flush(tcp, peer) && is_unacknowledged(tcp, peer);
}

/* Return the descriptor to wait for. On a shared connection, data from the peer is
 * not read here. If such data were pending, poll() would not block, so request no
 * events. */
static struct pollfd outlet_pollfd(const struct tcp_peer *p)
{
    const bool shared = p->both_ways || p->own == p->in.fd;

    return (struct pollfd){.fd = p->own, .events = shared ? 0 : POLLIN};
}

/*
 * Block until queued writes have arrived: a frame from a listener after the close would
 * reset the connection. Peers that stop reading cannot hold this rank, however many
 * they are. Peers that are late but alive share more time for their proofs. A stopped
 * peer does not get its stop time-out a second time.
 */
static void wait_for_disconnects(struct tcp *tcp, int first, int last)
{
    const uint64_t until = trib_deadline_ms(LEAVE_MS);
    const uint64_t proven_by = trib_deadline_ms(PROOF_MS);
    const uint64_t known_by = trib_deadline_ms(KNOWN_MS);
    struct pollfd wait;

    do {
        const bool late = trib_deadline_passed(until);
        wait.fd = -1;
        for (int i = first; i <= last; i++) {
            if (!is_disconnect_pending(tcp, i) ||
                (late && !may_wait(tcp, i, proven_by)))
                continue;
            trib_tcp_poll_outlet(tcp, i);
            if (is_disconnect_pending(tcp, i))
                wait = outlet_pollfd(&tcp->peers[i]);
        }
        if (wait.fd < 0)
            return;
        (void)poll(&wait, 1, 1);
        trib_tcp_accept(tcp); /* peers may be waiting for this rank, too */
        trib_tcp_progress_pending(tcp);
    } while (!trib_deadline_passed(known_by));
}

static void leave(struct tcp *tcp, int first, int last, const bool *which)
{
    assert(first >= 0 && last < tcp->size);
    for (int i = first; i <= last; i++) {
        struct tcp_peer *p = &tcp->peers[i];
        const bool was_lost = which && p->base.state == TRIB_PEER_LOST;
        if (was_lost && which[i])
            trib_peer_liveness_send_continues(&p->base.liveness);
        p->disconnecting =
            !was_lost && p->base.state != TRIB_PEER_LEFT && (!which || which[i]);
        if (p->disconnecting)
            trib_tcp_send_disconnect(tcp, i);
    }
    wait_for_disconnects(tcp, first, last);
    for (int i = first; i <= last; i++) {
        struct tcp_peer *p = &tcp->peers[i];
        if (!p->disconnecting)
            continue;
        if (p->base.state == TRIB_PEER_DRAINING) /* noticed just now, or before */
            tcp->n_losing--;
        trib_tcp_close_peer(tcp, i);
        p->base.state = TRIB_PEER_LEFT;
        p->disconnecting = false;
    }
}

void trib_tcp_disconnect(struct trib_transport *t, int peer)
{
    struct tcp *tcp = tcp_of(t);

    if (peer >= 0 && peer < tcp->size)
        leave(tcp, peer, peer, NULL);
}

void trib_tcp_leave(struct trib_transport *t, const bool *which)
{
    struct tcp *tcp = tcp_of(t);

    leave(tcp, 0, tcp->size - 1, which);
}

/*
 * A connection that carries data one way makes the kernel acknowledge every small write
 * with a packet of its own. In its interactive mode the kernel acknowledges only every
 * other write. A pause of 40 ms ends that mode, so it is set again here.
 */
static void limit_acks(struct tcp_inlet *in)
{
    int no = 0;

    if (in->heard && !in->active)
        (void)setsockopt(in->fd, IPPROTO_TCP, TCP_QUICKACK, &no, sizeof(no));
    in->active = in->heard;
    in->heard = false;
}

void trib_tcp_tick(struct tcp *tcp)
{
    uint64_t due = trib_peer_liveness_due(&tcp->stops_at);
    char why[TRIB_WHY_MAX];

    if (due)
        trib_heartbeat_note_away(tcp->local.heartbeat);
    trib_tcp_accept(tcp);
    trib_tcp_progress_pending(tcp);
    for (int i = 0; i < tcp->size; i++) {
        struct tcp_peer *p = &tcp->peers[i];
        trib_tcp_poll_outlet(tcp, i);
        trib_tcp_move(tcp, i);
        if (p->in.fd >= 0)
            limit_acks(&p->in);
        if (p->base.state == TRIB_PEER_CONNECTED &&
            trib_peer_liveness_lost(&p->base.liveness, due, tcp->cfg->stop_timeout_ms,
                                    why, sizeof(why)))
            trib_tcp_mark_lost(tcp, i, "%s", why);
        if (p->base.state == TRIB_PEER_CONNECTED)
            check_continues(tcp, p);
    }
}
