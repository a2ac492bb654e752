/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp: connections made by peers, and the frame that accepts or refuses them.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/time.h"
#include "transport/tcp/tcp.h"

enum {
    VERSION_KNOWN = 8, /* bytes of a hello; the rest may be shorter in other versions */
    HELLO_MS = 5000, /* for connections that send no hello */
    REFUSED_MS = 1000, /* for a refused peer to read the refusal before the close */
    DISMISS_MS = 100, /* for proofs in flight when this rank closes */
};

trib_status_t trib_tcp_listen(struct tcp *tcp, int first_port, int ports)
{
    trib_status_t status =
        trib_net_bind("tcp", SOCK_STREAM, first_port, ports, &tcp->listener, tcp->err);

    if (status != TRIB_OK)
        return status;
    trib_net_fence(&tcp->local.ways.choice, "tcp", tcp->log, &tcp->listener);
    trib_tcp_watch_fd(tcp, tcp->listener.fd);
    return TRIB_OK;
}

static void warn(struct tcp *tcp, const struct tcp_pending_conn *g, const char *what)
{
    trib_stranger_warn(&tcp->strangers, tcp->log, "tcp", g->ip, tcp->listener.port,
                       what);
}

static void turn_away(struct tcp *tcp, struct tcp_pending_conn *g)
{
    /* else it may be a rank that has died or disconnected */
    if (!g->refused && !g->proves)
        warn(tcp, g, "did not send a valid hello");
    trib_tcp_close_fd(tcp, g->fd);
}

void trib_tcp_drain_pending(struct tcp *tcp)
{
    bool busy = true;

    for (uint64_t until = trib_deadline_ms(DISMISS_MS);
         busy && !trib_deadline_passed(until);) {
        trib_tcp_progress_pending(tcp);
        busy = false;
        pthread_mutex_lock(&tcp->lock);
        for (int i = 0; i < tcp->n_pending; i++)
            busy |= tcp->pending_conns[i].proves && !tcp->pending_conns[i].refused;
        pthread_mutex_unlock(&tcp->lock);
        if (busy)
            (void)poll(NULL, 0, 1);
    }
}

/* tcp.lock is held. */
static struct tcp_pending_conn take_out(struct tcp *tcp, int i)
{
    struct tcp_pending_conn g = tcp->pending_conns[i];

    tcp->pending_conns[i] = tcp->pending_conns[--tcp->n_pending];
    return g;
}

/* If the table is full, evict the connection with the earliest deadline. */
static void make_room(struct tcp *tcp)
{
    struct tcp_pending_conn g = {.fd = -1};
    int first = 0;

    pthread_mutex_lock(&tcp->lock);
    for (int i = 1; i < tcp->n_pending; i++) {
        if (tcp->pending_conns[i].until < tcp->pending_conns[first].until)
            first = i;
    }
    if (tcp->n_pending == tcp->max_pending)
        g = take_out(tcp, first);
    pthread_mutex_unlock(&tcp->lock);
    if (g.fd >= 0)
        turn_away(tcp, &g);
}

/* Stop polling the listener after accept() failed: it stays readable, and would end
 * every sleep. */
static void rest(struct tcp *tcp, int error)
{
    if (trib_accept_failed(&tcp->pause, error)) {
        errno = error;
        trib_log(tcp->log, TRIB_LOG_WARN, "tcp",
                 "rank %d cannot accept connections from peers: %m (%s)", tcp->self,
                 trib_accept_cure(error));
    }
    if (trib_accept_paused(&tcp->pause) && !tcp->resting) {
        trib_tcp_unwatch_fd(tcp, tcp->listener.fd);
        tcp->resting = true;
    }
}

/* Return true if the listener may be polled again. */
static bool rested(struct tcp *tcp)
{
    if (!tcp->resting)
        return true;
    if (trib_accept_paused(&tcp->pause))
        return false;
    trib_tcp_watch_fd(tcp, tcp->listener.fd);
    tcp->resting = false;
    return true;
}

/* A fruitless accept() makes a socket and drops it: 10 us, against 0.3 us for
 * poll(). */
static bool at_the_door(const struct tcp *tcp)
{
    struct pollfd door = {.fd = tcp->listener.fd, .events = POLLIN};

    return poll(&door, 1, 0) != 0;
}

/* tcp.lock is held. Return false if no connection is waiting, or accept() failed. */
static bool let_in(struct tcp *tcp)
{
    uint8_t ip[16];
    int fd = trib_net_accept(&tcp->listener, ip);

    if (fd < 0)
        return false;
    assert(tcp->n_pending < tcp->max_pending);
    struct tcp_pending_conn *g = &tcp->pending_conns[tcp->n_pending++];
    *g = (struct tcp_pending_conn){.fd = fd, .until = trib_deadline_ms(HELLO_MS)};
    memcpy(g->ip, ip, sizeof(g->ip));
    trib_tcp_watch_fd(tcp, fd);
    trib_tcp_watch_proof(tcp, fd, -1);
    return true;
}

/* Accept at most max_pending connections, so that none is evicted before its hello is
 * read. */
void trib_tcp_accept(struct tcp *tcp)
{
    if (!rested(tcp))
        return;
    for (int i = 0; i < tcp->max_pending && at_the_door(tcp); i++) {
        make_room(tcp);
        pthread_mutex_lock(&tcp->lock);
        bool came = tcp->n_pending == tcp->max_pending || let_in(tcp);
        int error = errno;
        pthread_mutex_unlock(&tcp->lock);
        if (!came) {
            rest(tcp, error);
            return;
        }
    }
}

/* Check the parts of a hello that depend on no peer's state. */
static enum tcp_refusal judge_hello(const struct tcp *tcp, const struct tcp_hello *h)
{
    if (h->version != TCP_VERSION)
        return TCP_OTHER_VERSION;
    if (h->key != tcp->local.key)
        return TCP_OTHER_JOB;
    if (h->size != tcp->size || h->rank < 0 || h->rank >= tcp->size ||
        h->rank == tcp->self)
        return TCP_OTHER_RANK;
    const uint32_t differs = (h->flags ^ tcp_flags(tcp)) & ~(uint32_t)TCP_HAS_AES;
    if (differs == TCP_SEALS)
        return TCP_OTHER_SEAL;
    return differs ? TCP_OTHER_FLAGS : TCP_NOT_REFUSED;
}

static enum tcp_refusal judge(const struct tcp *tcp, const struct tcp_pending_conn *g)
{
    enum tcp_refusal reason = judge_hello(tcp, &g->hello);

    if (reason != TCP_NOT_REFUSED)
        return reason;
    if (tcp_has_secret(tcp) && !g->proved)
        return TCP_NOT_PROVED;
    const struct tcp_peer *p = &tcp->peers[g->hello.rank];
    if (p->base.state == TRIB_PEER_LOST)
        return TCP_WAS_LOST;
    return p->in.fd >= 0 || p->last ? TCP_TWICE : TCP_NOT_REFUSED;
}

static void refuse(struct tcp *tcp, struct tcp_pending_conn *g, enum tcp_refusal reason)
{
    static const char *const claims[] = {
        [TCP_OTHER_VERSION] = "speaks another version of tcp",
        [TCP_OTHER_JOB] = "is a rank of another job",
        [TCP_OTHER_RANK] = "is a rank of a job of another size",
        [TCP_OTHER_FLAGS] =
            "has no secret, but this rank has one (TRIB_KEY), or vice versa",
        [TCP_NOT_PROVED] = "did not prove that it has the secret of this job",
        [TCP_OTHER_SEAL] =
            "encrypts its traffic, but this rank does not (TRIB_SEAL), or vice versa",
    };

    if (claims[reason])
        warn(tcp, g, claims[reason]);
    trib_tcp_send_control(g->fd, TCP_REFUSE, reason);
    (void)shutdown(g->fd, SHUT_WR);
    g->refused = true;
    g->until = trib_deadline_ms(REFUSED_MS);
}

/* Allocate the keys of an accepted connection; false: out of memory. */
static bool keep_keys(struct tcp *tcp, const struct tcp_pending_conn *g)
{
    struct trib_proof about;

    if (!trib_tcp_alloc_seals(tcp, g->hello.rank))
        return false;
    trib_tcp_pending_claim(tcp, g, &about);
    trib_tcp_seal_in(tcp, g->hello.rank, &about);
    return true;
}

/* Answer a complete hello, with its proof if required. Return true if the connection
 * was accepted or closed. */
static bool answer(struct tcp *tcp, struct tcp_pending_conn *g)
{
    const struct tcp_hello *h = &g->hello;
    enum tcp_refusal reason = judge(tcp, g);
    struct tcp_peer *p = reason == TCP_NOT_REFUSED ? &tcp->peers[h->rank] : NULL;

    if (!p) {
        refuse(tcp, g, reason);
        return false;
    }
    const bool keyed = keep_keys(tcp, g);
    if (p->base.state == TRIB_PEER_LEFT) { /* it must not take this rank for dead */
        trib_tcp_reply(tcp, h->rank, g->fd, TCP_BYE);
        trib_tcp_close_fd(tcp, g->fd);
        return true;
    }
    trib_tcp_unwatch_proof(tcp, g->fd);
    if (!keyed || !trib_tcp_attach_inlet(tcp, h->rank, g->fd)) {
        trib_tcp_close_fd(tcp, g->fd);
        return true;
    }
    trib_tcp_reply(tcp, h->rank, g->fd, TCP_ACCEPT);
    trib_tcp_move(tcp, h->rank);
    return true;
}

/* Return true if the stream has ended, which means that the other side has read the
 * refusal. */
static bool has_gone(const struct tcp_pending_conn *g)
{
    char byte;

    trib_tcp_drain(g->fd);
    ssize_t n = recv(g->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* Read up to `most` bytes into `at`. Return true if they are complete or the stream has
 * ended. */
static bool take_bytes(struct tcp_pending_conn *g, void *at, size_t most)
{
    ssize_t n = recv(g->fd, (uint8_t *)at + g->have, most - g->have, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    g->gone = n <= 0;
    g->have += n > 0 ? (size_t)n : 0;
    return g->gone || g->have == most;
}

/* Read the proof, and no byte after it. */
static bool hear_proof(struct tcp *tcp, struct tcp_pending_conn *g)
{
    if (!take_bytes(g, g->proof, sizeof(g->proof)))
        return false;
    g->proved = !g->gone && trib_tcp_pending_proved(tcp, g);
    g->odd = !g->proved;
    return true;
}

/* Advance a pending connection. tcp.lock is held, by the owner or the heartbeat thread.
 * Return true if the owner must handle the connection. */
static bool is_ready(struct tcp *tcp, struct tcp_pending_conn *g)
{
    if (g->refused || g->gone || g->proved || g->odd)
        return true;
    if (g->proves)
        return hear_proof(tcp, g);
    bool whole = take_bytes(g, &g->hello, sizeof(g->hello));
    bool ours = g->have < sizeof(g->hello.magic) || g->hello.magic == TCP_MAGIC;
    bool other = g->have >= VERSION_KNOWN && g->hello.version != TCP_VERSION;
    if (!g->gone && ours && !other && !whole)
        return false;
    if (g->gone || !ours || !tcp_has_secret(tcp) ||
        judge_hello(tcp, &g->hello) != TCP_NOT_REFUSED) {
        g->odd = true;
        return true;
    }
    g->gone = !trib_tcp_send_challenge(tcp, g);
    return g->gone || hear_proof(tcp, g);
}

/* Runs on the heartbeat thread, with tcp.lock held. Steps that need the owner's poll
 * are left to it. */
void trib_tcp_progress_listener(struct tcp *tcp)
{
    while (tcp->n_pending < tcp->max_pending && let_in(tcp))
        continue;
    for (int i = 0; i < tcp->n_pending; i++) {
        if (!tcp->pending_conns[i].refused)
            (void)is_ready(tcp, &tcp->pending_conns[i]);
    }
}

/* Return true if the connection was accepted or closed. */
static bool settle(struct tcp *tcp, struct tcp_pending_conn *g, bool late)
{
    if (g->refused) {
        bool over = late || has_gone(g);
        if (over)
            trib_tcp_close_fd(tcp, g->fd);
        return over;
    }
    bool hello =
        g->proves || (g->have >= VERSION_KNOWN && g->hello.magic == TCP_MAGIC &&
                      (g->have == sizeof(g->hello) || g->hello.version != TCP_VERSION));
    if (g->gone || late || !hello) {
        turn_away(tcp, g);
        return true;
    }
    return answer(tcp, g);
}

/* Put a refused connection back among the pending ones, so that the peer can read the
 * refusal. */
static void keep(struct tcp *tcp, struct tcp_pending_conn *g)
{
    pthread_mutex_lock(&tcp->lock);
    bool room = tcp->n_pending < tcp->max_pending;
    if (room)
        tcp->pending_conns[tcp->n_pending++] = *g;
    pthread_mutex_unlock(&tcp->lock);
    if (!room)
        trib_tcp_close_fd(tcp, g->fd);
}

void trib_tcp_progress_pending(struct tcp *tcp)
{
    pthread_mutex_lock(&tcp->lock);
    for (int i = 0, left = tcp->n_pending; left > 0 && i < tcp->n_pending; left--) {
        bool late = trib_deadline_passed(tcp->pending_conns[i].until);
        if (!is_ready(tcp, &tcp->pending_conns[i]) && !late) {
            i++;
            continue;
        }
        struct tcp_pending_conn g = take_out(tcp, i);
        pthread_mutex_unlock(&tcp->lock);
        if (!settle(tcp, &g, late))
            keep(tcp, &g);
        pthread_mutex_lock(&tcp->lock);
    }
    pthread_mutex_unlock(&tcp->lock);
}
