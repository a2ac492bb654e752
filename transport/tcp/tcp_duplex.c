/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp: one connection for both directions of a pair. A rank's writes then carry the
 * acknowledgements for its reads, which otherwise take separate segments in the
 * reader's time (ADR 16). Each rank still connects, so both directions open no matter
 * which rank comes first.
 */
#include <assert.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "transport/tcp/tcp.h"

bool trib_tcp_attach_inlet(struct tcp *tcp, int peer, int fd)
{
    struct tcp_inlet *in = &tcp->peers[peer].in;

    assert(fd >= 0 && in->fd < 0 && tcp->n_inlets < tcp->size);
    in->buf = malloc(tcp->seals ? TCP_RECORD + sizeof(in->head) : TCP_BUFFER);
    in->raw = tcp->seals ? malloc(TCP_RAW) : NULL;
    if (!in->buf || (tcp->seals && !in->raw)) {
        free(in->buf);
        free(in->raw);
        in->buf = in->raw = NULL;
        return false;
    }
    in->fd = fd;
    if (tcp->seals)
        in->seal = fd == tcp->peers[peer].own ? &tcp->peers[peer].seals->own_in
                                              : &tcp->peers[peer].seals->in_in;
    pthread_mutex_lock(&tcp->lock);
    const struct tcp_peer *p = &tcp->peers[peer];
    trib_tcp_watch_for(tcp, fd, peer,
                       p->fd == fd && p->awaits_room ? EPOLLIN | EPOLLOUT : EPOLLIN);
    pthread_mutex_unlock(&tcp->lock);
    tcp->inlets[tcp->n_inlets++] = peer;
    return true;
}

static void detach_inlet(struct tcp *tcp, int peer)
{
    struct tcp_inlet *in = &tcp->peers[peer].in;

    assert(in->fd >= 0);
    free(in->buf);
    free(in->raw);
    *in = (struct tcp_inlet){.fd = -1};
    for (int i = 0; i < tcp->n_inlets; i++) {
        if (tcp->inlets[i] == peer)
            tcp->inlets[i--] = tcp->inlets[--tcp->n_inlets];
    }
}

void trib_tcp_move(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];

    if (tcp->self > peer && p->base.state == TRIB_PEER_CONNECTED && !p->moving &&
        p->in.fd >= 0)
        p->moving = trib_tcp_enqueue_move(tcp, peer);
}

/* A listener that refuses the connection gives the reason. */
static void refused(struct tcp *tcp, int peer, const struct tcp_head *head)
{
    static const char *const reasons[] = {
        [TCP_NOT_REFUSED] = "no reason given",
        [TCP_OTHER_JOB] =
            "this rank's key belongs to another job: has its port changed hands?",
        [TCP_OTHER_RANK] =
            "it knows no such rank: do both have the same number of ranks?",
        [TCP_TWICE] = "it already has a connection from this rank",
        [TCP_WAS_LOST] = "it has declared this rank lost",
        [TCP_OTHER_FLAGS] =
            "only one of the two has a secret: set the same TRIB_KEY on all ranks, or "
            "on none",
        [TCP_NOT_PROVED] =
            "this rank has another secret: set the same TRIB_KEY on all ranks",
        [TCP_OTHER_SEAL] =
            "only one of the two encrypts its traffic: set the same TRIB_SEAL on all "
            "ranks",
    };
    const struct tcp_peer *p = &tcp->peers[peer];

    if (head->imm == TCP_OTHER_VERSION)
        trib_tcp_blame(
            tcp, peer,
            "process %d refused rank %d: it speaks version %u of tcp, this rank "
            "version %d; install the same version",
            p->base.who.pid, tcp->self, (unsigned)head->off, TCP_VERSION);
    else
        trib_tcp_blame(tcp, peer, "process %d refused rank %d: %s", p->base.who.pid,
                       tcp->self,
                       head->imm <= TCP_OTHER_SEAL ? reasons[head->imm]
                                                   : reasons[TCP_NOT_REFUSED]);
}

/* Receive frames on this rank's connection, once all frames on the peer's are read. */
static void receive_on_own(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];

    if (p->both_ways && p->last && p->own >= 0 && p->own != p->in.fd &&
        !trib_tcp_attach_inlet(tcp, peer, p->own))
        trib_tcp_mark_lost(tcp, peer, "out of memory");
}

/* If the peer has seen TCP_LAST, close the connection that this rank moved away
 * from. */
static bool finish_move(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];

    pthread_mutex_lock(&tcp->lock);
    bool yes = p->moving && p->fd != p->own;
    pthread_mutex_unlock(&tcp->lock);
    if (yes) {
        trib_tcp_close_fd(tcp, p->own);
        p->own = -1;
        p->accepted = true;
    }
    return yes;
}

static bool is_proved(const struct tcp *tcp, enum trib_proof_step proof)
{
    return proof == TRIB_PROOF_DONE || !tcp_has_secret(tcp);
}

/* Read one control frame; return false if there is nothing more to read. */
static bool read_control(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];
    enum trib_proof_step proof = trib_tcp_proof_state(tcp, peer);
    struct tcp_head head;
    bool sealed = false;

    if (proof == TRIB_PROOF_BEGUN)
        return false;
    if (proof == TRIB_PROOF_WRONG) {
        trib_tcp_blame(
            tcp, peer,
            "authentication failed: process %d, or another that answers in its "
            "place, " TRIB_PROOF_OTHER_SECRET,
            p->base.who.pid);
        return false;
    }
    const int n = trib_tcp_read_control(p, &head, &sealed);
    const bool is_frame = n == 1;
    if (n == 0)
        return false;
    /* A refusal is readable in every version, and may be unencrypted: a forged one
     * merely ends the connection, as cutting it would. */
    if (n == TCP_FORGED ||
        (is_frame && tcp->seals && !sealed && head.kind != TCP_REFUSE)) {
        trib_tcp_forged(tcp, peer);
        return false;
    }
    if (is_frame && !is_proved(tcp, proof) && head.kind != TCP_REFUSE &&
        head.kind != TCP_DISCONNECT) {
        trib_tcp_blame(tcp, peer,
                       "process %d has not proved that it belongs to this job",
                       p->base.who.pid);
        return false;
    }
    if (is_frame && head.kind == TCP_ACCEPT) {
        p->accepted = true;
        return true;
    }
    if (is_frame && head.kind == TCP_BOTH_WAYS && tcp->self < peer) {
        p->both_ways = true;
        receive_on_own(tcp, peer);
        return false;
    }
    if (is_frame && head.kind == TCP_LAST && finish_move(tcp, peer))
        return false;
    if (is_frame && head.kind == TCP_REFUSE) {
        refused(tcp, peer, &head);
        p->base.given_up |= head.imm == TCP_WAS_LOST && is_proved(tcp, proof);
    }
    if (is_frame && head.kind == TCP_GIVEN_UP)
        trib_tcp_given_up(tcp, peer);
    p->got_disconnect |= is_frame && head.kind == TCP_DISCONNECT;
    trib_tcp_stream_ended(tcp, peer);
    return false;
}

void trib_tcp_poll_outlet(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];

    if (p->own < 0 || p->own == p->in.fd || p->both_ways)
        return;
    while (read_control(tcp, peer))
        continue;
}

void trib_tcp_poll_outlets(struct tcp *tcp, int peers)
{
    for (int i = 0; i < peers; i++) {
        tcp->next_outlet = tcp->next_outlet + 1 < tcp->size ? tcp->next_outlet + 1 : 0;
        trib_tcp_poll_outlet(tcp, tcp->next_outlet);
    }
}

bool trib_tcp_handle_last(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];
    int fd = p->in.fd;

    assert(fd >= 0);
    if (tcp->self > peer || p->own < 0 || p->own == fd || p->in.at != p->in.have ||
        p->in.raw_at != p->in.raw_have)
        return false;
    p->last = true;
    detach_inlet(tcp, peer);
    trib_tcp_reply(tcp, peer, fd, TCP_LAST);
    trib_tcp_close_fd(tcp, fd);
    trib_tcp_poll_outlet(tcp, peer);
    receive_on_own(tcp, peer);
    return true;
}

void trib_tcp_close_inlet(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];
    int fd = p->in.fd;

    if (fd < 0)
        return;
    pthread_mutex_lock(&tcp->lock);
    p->fd = p->fd == fd ? -1 : p->fd;
    p->next_fd = -1;
    pthread_mutex_unlock(&tcp->lock);
    p->own = p->own == fd ? -1 : p->own;
    p->finished = true;
    detach_inlet(tcp, peer);
    trib_tcp_close_fd(tcp, fd);
}

void trib_tcp_close_peer(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];

    trib_tcp_cancel_proof(tcp, p);
    pthread_mutex_lock(&tcp->lock);
    p->fd = p->next_fd = -1;
    p->awaits_room = false;
    if (p->head != p->tail)
        atomic_fetch_sub_explicit(&tcp->backlog, 1, memory_order_relaxed);
    p->head = p->sent = p->tail = 0;
    p->sent_bytes = 0;
    if (p->seals)
        p->seals->record.have = p->seals->record.sent = 0;
    pthread_mutex_unlock(&tcp->lock);
    if (p->own >= 0 && p->own != p->in.fd)
        trib_tcp_close_fd(tcp, p->own);
    p->own = -1;
    trib_tcp_close_inlet(tcp, peer);
    trib_peer_liveness_end(&p->base.liveness);
}
