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

static void warn(struct tcp *tcp, const struct tcp_pending_conn *pending,
                 const char *what)
{
    trib_unauthenticated_warn(&tcp->unauthenticated, tcp->log, "tcp", pending->ip,
                              tcp->listener.port, what);
}

static void drop_pending(struct tcp *tcp, struct tcp_pending_conn *pending)
{
    /* else it may be a rank that has died or disconnected */
    if (!pending->refused && pending->proof.step == TRIB_PROOF_NEW)
        warn(tcp, pending, "did not send a valid hello");
    trib_tcp_close_fd(tcp, pending->fd);
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
            busy |= tcp->pending_conns[i].proof.step != TRIB_PROOF_NEW &&
                    !tcp->pending_conns[i].refused;
        pthread_mutex_unlock(&tcp->lock);
        if (busy)
            (void)poll(NULL, 0, 1);
    }
}

/* tcp.lock is held. */
static struct tcp_pending_conn remove_pending(struct tcp *tcp, int i)
{
    struct tcp_pending_conn pending = tcp->pending_conns[i];

    assert(i >= 0 && i < tcp->n_pending);
    tcp->pending_conns[i] = tcp->pending_conns[--tcp->n_pending];
    return pending;
}

/* If the table is full, evict the connection with the earliest deadline. */
static void make_room(struct tcp *tcp)
{
    struct tcp_pending_conn pending = {.fd = -1};
    int first = 0;

    pthread_mutex_lock(&tcp->lock);
    for (int i = 1; i < tcp->n_pending; i++) {
        if (tcp->pending_conns[i].until < tcp->pending_conns[first].until)
            first = i;
    }
    if (tcp->n_pending == tcp->max_pending)
        pending = remove_pending(tcp, first);
    pthread_mutex_unlock(&tcp->lock);
    if (pending.fd >= 0)
        drop_pending(tcp, &pending);
}

/* Stop polling the listener after accept() failed: it stays readable, and would end
 * every sleep. */
static void pause_listener(struct tcp *tcp, int error)
{
    if (trib_accept_failed(&tcp->pause, error)) {
        errno = error;
        trib_log(tcp->log, TRIB_LOG_WARN, "tcp",
                 "rank %d cannot accept connections from peers: %m (%s)", tcp->self,
                 trib_accept_cure(error));
    }
    if (trib_accept_paused(&tcp->pause) && !tcp->listener_paused) {
        trib_tcp_unwatch_fd(tcp, tcp->listener.fd);
        tcp->listener_paused = true;
    }
}

/* Return true if the listener may be polled again. */
static bool resume_listener(struct tcp *tcp)
{
    if (!tcp->listener_paused)
        return true;
    if (trib_accept_paused(&tcp->pause))
        return false;
    trib_tcp_watch_fd(tcp, tcp->listener.fd);
    tcp->listener_paused = false;
    return true;
}

/* A fruitless accept() makes a socket and drops it: 10 us, against 0.3 us for
 * poll(). */
static bool is_connection_waiting(const struct tcp *tcp)
{
    struct pollfd listener = {.fd = tcp->listener.fd, .events = POLLIN};

    return poll(&listener, 1, 0) != 0;
}

/* tcp.lock is held. Return false if no connection is waiting, or accept() failed. */
static bool accept_one(struct tcp *tcp)
{
    uint8_t ip[16];
    int fd = trib_net_accept(&tcp->listener, ip);

    if (fd < 0)
        return false;
    assert(tcp->n_pending < tcp->max_pending);
    struct tcp_pending_conn *pending = &tcp->pending_conns[tcp->n_pending++];
    *pending = (struct tcp_pending_conn){.fd = fd, .until = trib_deadline_ms(HELLO_MS)};
    memcpy(pending->ip, ip, sizeof(pending->ip));
    trib_tcp_watch_fd(tcp, fd);
    trib_tcp_watch_proof(tcp, fd, -1);
    return true;
}

/* Accept at most max_pending connections, so that none is evicted before its hello is
 * read. */
void trib_tcp_accept(struct tcp *tcp)
{
    if (!resume_listener(tcp))
        return;
    for (int i = 0; i < tcp->max_pending && is_connection_waiting(tcp); i++) {
        make_room(tcp);
        pthread_mutex_lock(&tcp->lock);
        bool came = tcp->n_pending == tcp->max_pending || accept_one(tcp);
        int error = errno;
        pthread_mutex_unlock(&tcp->lock);
        if (!came) {
            pause_listener(tcp, error);
            return;
        }
    }
}

/* Check the parts of a hello that depend on no peer's state. */
static enum tcp_refusal check_hello(const struct tcp *tcp, const struct tcp_hello *h)
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

static enum tcp_refusal check_pending(const struct tcp *tcp,
                                      const struct tcp_pending_conn *pending)
{
    enum tcp_refusal reason = check_hello(tcp, &pending->hello);

    if (reason != TCP_NOT_REFUSED)
        return reason;
    if (tcp_has_secret(tcp) && pending->proof.step != TRIB_PROOF_DONE)
        return TCP_NOT_PROVED;
    const struct tcp_peer *p = &tcp->peers[pending->hello.rank];
    if (p->base.state == TRIB_PEER_LOST)
        return TCP_WAS_LOST;
    return p->in.fd >= 0 || p->last ? TCP_TWICE : TCP_NOT_REFUSED;
}

static void refuse(struct tcp *tcp, struct tcp_pending_conn *pending,
                   enum tcp_refusal reason)
{
    static const char *const claims[] = {
        [TCP_OTHER_VERSION] = "speaks another version of tcp",
        [TCP_OTHER_JOB] = "is a rank of another job",
        [TCP_OTHER_RANK] = "is a rank of a job of another size",
        [TCP_OTHER_FLAGS] = TRIB_PROOF_ONE_SIDED,
        [TCP_NOT_PROVED] = TRIB_PROOF_UNPROVED,
        [TCP_OTHER_SEAL] =
            "encrypts its traffic, but this rank does not (TRIB_SEAL), or vice versa",
    };

    if (claims[reason])
        warn(tcp, pending, claims[reason]);
    trib_tcp_send_control(pending->fd, TCP_REFUSE, reason);
    (void)shutdown(pending->fd, SHUT_WR);
    pending->refused = true;
    pending->until = trib_deadline_ms(REFUSED_MS);
}

/* Allocate the keys of an accepted connection; false: out of memory. */
static bool derive_keys(struct tcp *tcp, const struct tcp_pending_conn *pending)
{
    assert(pending->hello.rank >= 0 && pending->hello.rank < tcp->size);
    if (!trib_tcp_alloc_seals(tcp, pending->hello.rank))
        return false;
    trib_tcp_seal_in(tcp, pending->hello.rank, &pending->proof);
    return true;
}

/* Answer a complete hello, with its proof if required. Return true if the connection
 * was accepted or closed. */
static bool answer(struct tcp *tcp, struct tcp_pending_conn *pending)
{
    const struct tcp_hello *h = &pending->hello;
    enum tcp_refusal reason = check_pending(tcp, pending);
    struct tcp_peer *p = reason == TCP_NOT_REFUSED ? &tcp->peers[h->rank] : NULL;

    assert(!pending->refused);
    if (!p) {
        refuse(tcp, pending, reason);
        return false;
    }
    const bool keyed = derive_keys(tcp, pending);
    if (p->base.state == TRIB_PEER_LEFT) { /* it must not take this rank for dead */
        trib_tcp_reply(tcp, h->rank, pending->fd, TCP_DISCONNECT);
        trib_tcp_close_fd(tcp, pending->fd);
        return true;
    }
    trib_tcp_unwatch_proof(tcp, pending->fd);
    if (!keyed || !trib_tcp_attach_inlet(tcp, h->rank, pending->fd)) {
        trib_tcp_close_fd(tcp, pending->fd);
        return true;
    }
    trib_tcp_reply(tcp, h->rank, pending->fd, TCP_ACCEPT);
    trib_tcp_move(tcp, h->rank);
    return true;
}

/* Return true if the stream has ended, which means that the other side has read the
 * refusal. */
static bool has_closed(const struct tcp_pending_conn *pending)
{
    char byte;

    trib_tcp_drain(pending->fd);
    ssize_t n = recv(pending->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* Read up to `most` bytes into `at`. Return true if they are complete or the stream has
 * ended. */
static bool read_bytes(struct tcp_pending_conn *pending, void *at, size_t most)
{
    ssize_t n = recv(pending->fd, (uint8_t *)at + pending->have, most - pending->have,
                     MSG_DONTWAIT);

    assert(pending->have < most);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    pending->closed = n <= 0;
    pending->have += n > 0 ? (size_t)n : 0;
    return pending->closed || pending->have == most;
}

/* Read the proof, and no byte after it. */
static bool read_proof(struct tcp *tcp, struct tcp_pending_conn *pending)
{
    if (!read_bytes(pending, pending->answer, sizeof(pending->answer)))
        return false;
    pending->for_owner =
        pending->closed || !trib_proof_check(tcp->secret, &pending->proof,
                                             pending->answer, sizeof(pending->answer));
    return true;
}

/* Advance a pending connection. tcp.lock is held, by the owner or the heartbeat thread.
 * Return true if the owner must handle the connection. */
static bool is_ready(struct tcp *tcp, struct tcp_pending_conn *pending)
{
    if (pending->refused || pending->closed || pending->for_owner ||
        pending->proof.step == TRIB_PROOF_DONE)
        return true;
    if (pending->proof.step == TRIB_PROOF_CHALLENGED)
        return read_proof(tcp, pending);
    bool whole = read_bytes(pending, &pending->hello, sizeof(pending->hello));
    bool ours = pending->have < sizeof(pending->hello.magic) ||
                pending->hello.magic == TCP_MAGIC;
    bool other =
        pending->have >= VERSION_KNOWN && pending->hello.version != TCP_VERSION;
    if (!pending->closed && ours && !other && !whole)
        return false;
    if (pending->closed || !ours || !tcp_has_secret(tcp) ||
        check_hello(tcp, &pending->hello) != TCP_NOT_REFUSED) {
        pending->for_owner = true;
        return true;
    }
    pending->closed = !trib_tcp_send_challenge(tcp, pending);
    return pending->closed || read_proof(tcp, pending);
}

/* Runs on the heartbeat thread, with tcp.lock held. Steps that need the owner's poll
 * are left to it. */
void trib_tcp_progress_listener(struct tcp *tcp)
{
    while (tcp->n_pending < tcp->max_pending && accept_one(tcp))
        continue;
    for (int i = 0; i < tcp->n_pending; i++) {
        if (!tcp->pending_conns[i].refused)
            (void)is_ready(tcp, &tcp->pending_conns[i]);
    }
}

/* Return true if the connection was accepted or closed. */
static bool finish_pending(struct tcp *tcp, struct tcp_pending_conn *pending, bool late)
{
    if (pending->refused) {
        bool over = late || has_closed(pending);
        if (over)
            trib_tcp_close_fd(tcp, pending->fd);
        return over;
    }
    bool hello = pending->proof.step != TRIB_PROOF_NEW ||
                 (pending->have >= VERSION_KNOWN && pending->hello.magic == TCP_MAGIC &&
                  (pending->have == sizeof(pending->hello) ||
                   pending->hello.version != TCP_VERSION));
    if (pending->closed || late || !hello) {
        drop_pending(tcp, pending);
        return true;
    }
    return answer(tcp, pending);
}

/* Put a refused connection back among the pending ones, so that the peer can read the
 * refusal. */
static void keep_pending(struct tcp *tcp, struct tcp_pending_conn *pending)
{
    pthread_mutex_lock(&tcp->lock);
    bool room = tcp->n_pending < tcp->max_pending;
    if (room)
        tcp->pending_conns[tcp->n_pending++] = *pending;
    pthread_mutex_unlock(&tcp->lock);
    if (!room)
        trib_tcp_close_fd(tcp, pending->fd);
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
        struct tcp_pending_conn pending = remove_pending(tcp, i);
        pthread_mutex_unlock(&tcp->lock);
        if (!finish_pending(tcp, &pending, late))
            keep_pending(tcp, &pending);
        pthread_mutex_lock(&tcp->lock);
    }
    pthread_mutex_unlock(&tcp->lock);
}
