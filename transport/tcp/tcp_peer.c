/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp: the bottom of the transport. Descriptors in the epoll sets, single control
 * frames, and the reasons for which a peer is lost.
 */
#include "transport/tcp/tcp_peer.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

void trib_tcp_watch_fd(struct tcp *tcp, int fd)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = tcp_mark(fd, -1)};

    assert(fd >= 0);
    (void)epoll_ctl(tcp->epoll, EPOLL_CTL_ADD, fd, &e);
}

void trib_tcp_watch_for(struct tcp *tcp, int fd, int peer, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.u64 = tcp_mark(fd, peer)};

    assert(fd >= 0 && peer >= 0 && peer < tcp->size);
    (void)epoll_ctl(tcp->epoll, EPOLL_CTL_MOD, fd, &e);
}

void trib_tcp_unwatch_fd(struct tcp *tcp, int fd)
{
    (void)epoll_ctl(tcp->epoll, EPOLL_CTL_DEL, fd, NULL);
}

/* Edge-triggered: input that is left to the owner does not keep the thread busy. */
void trib_tcp_watch_proof(struct tcp *tcp, int fd, int peer)
{
    struct epoll_event e = {.events = EPOLLIN | EPOLLET,
                            .data.u64 = tcp_mark(fd, peer)};

    if (tcp->proofs >= 0)
        (void)epoll_ctl(tcp->proofs, EPOLL_CTL_ADD, fd, &e);
}

void trib_tcp_unwatch_proof(struct tcp *tcp, int fd)
{
    if (tcp->proofs >= 0)
        (void)epoll_ctl(tcp->proofs, EPOLL_CTL_DEL, fd, NULL);
}

static void drain(int fd)
{
    char rest[4096];

    while (recv(fd, rest, sizeof(rest), MSG_DONTWAIT) > 0)
        continue;
}

/* Read pending data first: otherwise the kernel answers the close with a reset, which
 * may overtake data sent before. */
void trib_tcp_close_fd(struct tcp *tcp, int fd)
{
    assert(fd >= 0);
    trib_tcp_unwatch_fd(tcp, fd);
    trib_tcp_unwatch_proof(tcp, fd);
    (void)shutdown(fd, SHUT_WR);
    drain(fd);
    close(fd);
}

void trib_tcp_send_control(int fd, enum tcp_kind kind, enum tcp_refusal reason)
{
    struct tcp_head frame = {
        .magic = TCP_MAGIC, .kind = kind, .imm = reason, .off = TCP_VERSION};

    (void)send(fd, &frame, sizeof(frame), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void going(struct tcp *tcp, int peer, const char *format, va_list args)
{
    struct tcp_peer *p = &tcp->peers[peer];

    assert(peer >= 0 && peer < tcp->size && peer != tcp->self);
    if (p->base.state != TRIB_PEER_CONNECTED &&
        !(p->base.state == TRIB_PEER_DRAINING && p->got_disconnect))
        return;
    if (p->base.state == TRIB_PEER_CONNECTED)
        trib_peer_drain(&p->base, &tcp->n_losing);
    vsnprintf(p->base.why, sizeof(p->base.why), format, args);
    if (p->got_disconnect)
        trib_peer_explain(&p->base, "process %d has left", p->base.who.pid);
}

void trib_tcp_mark_lost(struct tcp *tcp, int peer, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    going(tcp, peer, format, args);
    va_end(args);
}

void trib_tcp_blame(struct tcp *tcp, int peer, const char *format, ...)
{
    struct tcp_peer *p = &tcp->peers[peer];
    va_list args;

    if (p->base.state == TRIB_PEER_CONNECTED)
        p->blamed = true;
    va_start(args, format);
    going(tcp, peer, format, args);
    va_end(args);
}

void trib_tcp_forged(struct tcp *tcp, int peer)
{
    trib_tcp_blame(
        tcp, peer,
        "data from process %d was changed, repeated, dropped or reordered on its way: "
        "the network between the two is being tampered with (TRIB_SEAL)",
        tcp->peers[peer].base.who.pid);
}

void trib_tcp_stream_ended(struct tcp *tcp, int peer)
{
    tcp->peers[peer].closed_conn = true;
    trib_tcp_mark_lost(tcp, peer, "process %d closed its connection%s",
                       tcp->peers[peer].base.who.pid,
                       tcp->seals ? ", or it was cut or tampered with: see the error "
                                    "message of that process"
                                  : "");
}

void trib_tcp_given_up(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];

    p->base.given_up = true;
    trib_tcp_mark_lost(tcp, peer, TRIB_PEER_GAVE_UP, p->base.who.pid);
    if (p->base.state == TRIB_PEER_DRAINING && !p->blamed)
        trib_peer_explain(&p->base, TRIB_PEER_GAVE_UP, p->base.who.pid);
}
