/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp: connections that peers make, and the word with which they are taken or not.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/time.h"
#include "transport/tcp.h"

enum {
    VERSION_KNOWN = 8, /* bytes of a hello; the rest of another version's may be shorter */
    HELLO_MS = 5000, /* strangers that connect and say nothing */
    REFUSED_MS =
        1000, /* for who was refused to read that, before the connection ends */
};

trib_status_t trib_socket_listen(struct tcp *tcp, int first_port, int ports)
{
    trib_status_t status =
        trib_net_bind("tcp", SOCK_STREAM, first_port, ports, &tcp->listener, tcp->err);

    if (status != TRIB_OK)
        return status;
    trib_net_fence(&tcp->ways.choice, "tcp", tcp->log, &tcp->listener);
    trib_socket_watch_fd(tcp, tcp->listener.fd);
    return TRIB_OK;
}

/* Reads what is there first: else the kernel would answer the close with a reset, which
 * may overtake what was sent. */
static void drain(int fd)
{
    char rest[4096];

    while (recv(fd, rest, sizeof(rest), MSG_DONTWAIT) > 0)
        continue;
}

void trib_socket_hang_up(struct tcp *tcp, int fd)
{
    trib_socket_unwatch_fd(tcp, fd);
    (void)shutdown(fd, SHUT_WR);
    drain(fd);
    close(fd);
}

static void warn(struct tcp *tcp, const struct tcp_guest *g, const char *what)
{
    trib_stranger_warn(&tcp->strangers, tcp->log, "tcp", g->ip, tcp->listener.port, what);
}

static void turn_away(struct tcp *tcp, struct tcp_guest *g)
{
    if (!g->refused)
        warn(tcp, g,
             g->proves ? "did not prove that it has the secret of this job"
                       : "said nothing that a rank says");
    trib_socket_hang_up(tcp, g->fd);
}

void trib_socket_dismiss(struct tcp *tcp)
{
    for (int i = 0; i < tcp->n_guests; i++) {
        if (tcp->guests[i].proves && !tcp->guests[i].refused)
            trib_socket_say(tcp->guests[i].fd, TCP_BYE, TCP_NOT_REFUSED);
        trib_socket_hang_up(tcp, tcp->guests[i].fd);
    }
    tcp->n_guests = 0;
}

/* Who goes is the one whose time ends first. */
static void make_room(struct tcp *tcp)
{
    int first = 0;

    if (tcp->n_guests < tcp->max_guests)
        return;
    for (int i = 1; i < tcp->n_guests; i++) {
        if (tcp->guests[i].until < tcp->guests[first].until)
            first = i;
    }
    turn_away(tcp, &tcp->guests[first]);
    tcp->guests[first] = tcp->guests[--tcp->n_guests];
}

/* Peers that cannot be let in wait; the listener stays readable, and would end each sleep. */
static void rest(struct tcp *tcp, int error)
{
    if (trib_accept_failed(&tcp->pause, error)) {
        errno = error;
        trib_log(tcp->log, TRIB_LOG_WARN, "tcp",
                 "rank %d cannot take connections of peers: %m (%s)", tcp->self,
                 trib_accept_cure(error));
    }
    if (trib_accept_paused(&tcp->pause) && !tcp->resting) {
        trib_socket_unwatch_fd(tcp, tcp->listener.fd);
        tcp->resting = true;
    }
}

/* true: the listener may be asked again. */
static bool rested(struct tcp *tcp)
{
    if (!tcp->resting)
        return true;
    if (trib_accept_paused(&tcp->pause))
        return false;
    trib_socket_watch_fd(tcp, tcp->listener.fd);
    tcp->resting = false;
    return true;
}

/* An accept for nobody makes a socket and drops it: 10 us where poll takes 0.3. */
static bool at_the_door(const struct tcp *tcp)
{
    struct pollfd door = {.fd = tcp->listener.fd, .events = POLLIN};

    return poll(&door, 1, 0) != 0;
}

/* At once as many as have places: nobody goes before his hello was looked for. */
void trib_socket_accept(struct tcp *tcp)
{
    uint8_t ip[16];

    if (!rested(tcp))
        return;
    for (int i = 0; i < tcp->max_guests && at_the_door(tcp); i++) {
        int fd = trib_net_accept(&tcp->listener, ip);
        if (fd < 0) {
            rest(tcp, errno);
            return;
        }
        make_room(tcp);
        tcp->guests[tcp->n_guests++] =
            (struct tcp_guest){.fd = fd, .until = trib_deadline_ms(HELLO_MS)};
        memcpy(tcp->guests[tcp->n_guests - 1].ip, ip, sizeof(ip));
        trib_socket_watch_fd(tcp, fd);
    }
}

void trib_socket_say(int fd, enum tcp_kind kind, enum tcp_refusal reason)
{
    struct tcp_head word = {
        .magic = TCP_MAGIC, .kind = kind, .imm = reason, .off = TCP_VERSION};

    (void)send(fd, &word, sizeof(word), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static enum tcp_refusal judge(const struct tcp *tcp, const struct tcp_hello *h)
{
    if (h->version != TCP_VERSION)
        return TCP_OTHER_VERSION;
    if (h->key != tcp->key)
        return TCP_OTHER_JOB;
    if (h->size != tcp->size || h->rank < 0 || h->rank >= tcp->size ||
        h->rank == tcp->self)
        return TCP_OTHER_RANK;
    if (h->flags != tcp_flags(tcp))
        return TCP_OTHER_FLAGS;
    const struct tcp_peer *p = &tcp->peers[h->rank];
    if (p->state == TCP_PEER_LOST)
        return TCP_WAS_LOST;
    return p->in.fd >= 0 || p->last ? TCP_TWICE : TCP_NOT_REFUSED;
}

static void refuse(struct tcp *tcp, struct tcp_guest *g, enum tcp_refusal reason)
{
    static const char *const claims[] = {
        [TCP_OTHER_VERSION] = "speaks another version of tcp",
        [TCP_OTHER_JOB] = "is a rank of another job",
        [TCP_OTHER_RANK] = "is a rank of a job of other size",
        [TCP_OTHER_FLAGS] = "has no secret where this rank has one (TRIB_KEY), or the other "
                            "way round",
        [TCP_NOT_PROVED] = "did not prove that it has the secret of this job",
    };

    if (claims[reason])
        warn(tcp, g, claims[reason]);
    trib_socket_say(g->fd, TCP_REFUSE, reason);
    (void)shutdown(g->fd, SHUT_WR);
    g->refused = true;
    g->until = trib_deadline_ms(REFUSED_MS);
}

/* The whole hello is here. true: at the table, or gone. */
static bool answer(struct tcp *tcp, struct tcp_guest *g)
{
    const struct tcp_hello *h = &g->hello;
    enum tcp_refusal reason = judge(tcp, h);
    struct tcp_peer *p = reason == TCP_NOT_REFUSED ? &tcp->peers[h->rank] : NULL;

    if (p && p->state == TCP_PEER_LEFT) { /* it must not take us for dead */
        trib_socket_say(g->fd, TCP_BYE, TCP_NOT_REFUSED);
        trib_socket_hang_up(tcp, g->fd);
        return true;
    }
    if (!p) {
        refuse(tcp, g, reason);
        return false;
    }
    if (tcp_has_secret(tcp) && !g->proves) {
        if (trib_socket_challenge(tcp, g))
            return false;
        trib_socket_hang_up(tcp, g->fd);
        return true;
    }
    if (!trib_socket_seat(tcp, h->rank, g->fd)) {
        trib_socket_hang_up(tcp, g->fd);
        return true;
    }
    trib_socket_say(g->fd, TCP_ACCEPT, TCP_NOT_REFUSED);
    trib_socket_move(tcp, h->rank);
    return true;
}

/* A peek at its end, which comes when the guest has read why. */
static bool has_gone(const struct tcp_guest *g)
{
    char byte;

    drain(g->fd);
    ssize_t n = recv(g->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* true: it is at the table, or gone. Not a byte behind the proof is read here. */
static bool hear_proof(struct tcp *tcp, struct tcp_guest *g, bool late)
{
    ssize_t n = recv(g->fd, g->proof + g->have, sizeof(g->proof) - g->have, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR) && !late)
        return false;
    g->have += n > 0 ? (size_t)n : 0;
    if (n > 0 && g->have < sizeof(g->proof))
        return false;
    if (n <= 0) {
        turn_away(tcp, g);
        return true;
    }
    if (trib_socket_guest_proved(tcp, g))
        return answer(tcp, g);
    refuse(tcp, g, TCP_NOT_PROVED);
    return false;
}

/* true: it is at the table, or gone. */
static bool seat(struct tcp *tcp, struct tcp_guest *g)
{
    bool late = trib_deadline_passed(g->until);

    if (g->refused) {
        bool over = late || has_gone(g);
        if (over)
            trib_socket_hang_up(tcp, g->fd);
        return over;
    }
    if (g->proves)
        return hear_proof(tcp, g, late);
    ssize_t n = recv(g->fd, (uint8_t *)&g->hello + g->have, sizeof(g->hello) - g->have,
                     MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR) && !late)
        return false;
    g->have += n > 0 ? (size_t)n : 0;
    bool ours = g->have < sizeof(g->hello.magic) || g->hello.magic == TCP_MAGIC;
    bool other = g->have >= VERSION_KNOWN && g->hello.version != TCP_VERSION;
    if (n > 0 && ours && !other && g->have < sizeof(g->hello))
        return false;
    if (n > 0 && ours)
        return answer(tcp, g);
    turn_away(tcp, g);
    return true;
}

void trib_socket_greet(struct tcp *tcp)
{
    for (int i = 0; i < tcp->n_guests; i++) {
        if (seat(tcp, &tcp->guests[i]))
            tcp->guests[i--] = tcp->guests[--tcp->n_guests];
    }
}
