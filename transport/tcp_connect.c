/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp: how connections begin and end, and who is still there.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/time.h"
#include "transport/tcp.h"

enum {
    ATTEMPT_MS = 2000, /* for one address of a peer */
    HELLO_MS = 5000,   /* strangers that connect and say nothing */
    GOING_MS = 50,     /* for what a dead peer may have left in its stream */
    STOPS_MS = 25,     /* between two looks for stopped processes */
};

static void watch_fd(struct tcp *tcp, int fd)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

    (void)epoll_ctl(tcp->epoll, EPOLL_CTL_ADD, fd, &e);
}

static int bind_port(int fd, int family, uint16_t port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};

    if (family == AF_INET6)
        return bind(fd, (struct sockaddr *)&six, sizeof(six));
    return bind(fd, (struct sockaddr *)&four, sizeof(four));
}

/* One socket for IPv6 and IPv4, or for IPv4 where the kernel has no IPv6. */
static int listening_socket(int *family_out)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), no = 0;

    *family_out = AF_INET6;
    if (fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    *family_out = AF_INET;
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

trib_status_t trib_socket_listen(struct tcp *tcp, int first_port, int ports)
{
    struct sockaddr_storage own;
    socklen_t len = sizeof(own);
    int family, bound = -1;

    tcp->listener = listening_socket(&family);
    if (tcp->listener < 0)
        return trib_fail(tcp->err, TRIB_ERR_SYSTEM, "tcp: no socket: %m");
    for (int i = 0; i < (first_port ? ports : 1) && bound != 0; i++)
        bound = bind_port(tcp->listener, family, (uint16_t)(first_port + i));
    if (bound != 0)
        return trib_fail(tcp->err, TRIB_ERR_SYSTEM,
                         "tcp: none of the ports %d to %d can be bound: %m (choose others "
                         "with tcp:port=N,ports=N)",
                         first_port, first_port + ports - 1);
    if (listen(tcp->listener, SOMAXCONN) != 0 ||
        getsockname(tcp->listener, (struct sockaddr *)&own, &len) != 0)
        return trib_fail(tcp->err, TRIB_ERR_SYSTEM, "tcp: cannot listen: %m");
    tcp->port = ntohs(family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port
                                         : ((struct sockaddr_in *)&own)->sin_port);
    watch_fd(tcp, tcp->listener);
    return TRIB_OK;
}

/* An address of this host as peers may use it, mapped into IPv6; false: not one. */
static bool usable_address(const struct ifaddrs *i, int family, uint8_t ip_out[16])
{
    if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP) ||
        (i->ifa_flags & IFF_LOOPBACK))
        return false;
    if (family == AF_INET6) {
        const struct in6_addr *a = &((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr;
        memcpy(ip_out, a, 16);
        return !IN6_IS_ADDR_LINKLOCAL(a);
    }
    memset(ip_out, 0, 10);
    memset(ip_out + 10, 0xff, 2);
    memcpy(ip_out + 12, &((struct sockaddr_in *)i->ifa_addr)->sin_addr, 4);
    return true;
}

static uint16_t own_addresses(uint8_t ip_out[TCP_ADDRESSES][16])
{
    static const int families[] = {AF_INET, AF_INET6};
    struct ifaddrs *list = NULL;
    uint16_t n = 0;

    if (getifaddrs(&list) != 0)
        return 0;
    for (int f = 0; f < 2; f++) {
        for (const struct ifaddrs *i = list; i && n < TCP_ADDRESSES; i = i->ifa_next)
            n += usable_address(i, families[f], ip_out[n]);
    }
    freeifaddrs(list);
    return n;
}

trib_status_t trib_socket_address(struct trib_transport *t, struct trib_address *out)
{
    struct tcp *tcp = tcp_of(t);
    struct tcp_address a = {
        .magic = TCP_MAGIC,
        .port = tcp->port,
        .key = tcp->key,
        .start = tcp->me.start,
        .space = tcp->me.space,
        .boot = tcp->me.boot,
        .net = tcp->net,
        .pid = tcp->me.pid,
    };

    a.n = own_addresses(a.ip);
    memset(out, 0, sizeof(*out));
    out->len = sizeof(a);
    memcpy(out->bytes, &a, sizeof(a));
    return TRIB_OK;
}

/* A connected socket, or -1 and errno. */
static int dial(const uint8_t ip[16], uint16_t port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    bool mapped = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)ip);
    int yes = 1, error = 0;
    socklen_t len = sizeof(error);

    memcpy(&six.sin6_addr, ip, 16);
    memcpy(&four.sin_addr, ip + 12, 4);
    int fd = socket(mapped ? AF_INET : AF_INET6,
                    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    int rc = mapped ? connect(fd, (struct sockaddr *)&four, sizeof(four))
                    : connect(fd, (struct sockaddr *)&six, sizeof(six));
    if (rc != 0 && errno == EINPROGRESS) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        rc = poll(&p, 1, ATTEMPT_MS);
        error = rc == 0 ? ETIMEDOUT : errno;
        if (rc > 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && !error)
            return fd;
    } else if (rc == 0) {
        return fd;
    } else {
        error = errno;
    }
    close(fd);
    errno = error;
    return -1;
}

static bool is_mine(const uint8_t ip[16])
{
    uint8_t own[TCP_ADDRESSES][16];
    uint16_t n = own_addresses(own);

    for (uint16_t i = 0; i < n; i++) {
        if (memcmp(own[i], ip, 16) == 0)
            return true;
    }
    return false;
}

/* On one host through loopback; else an address that both hosts have, as that of a
 * container bridge, leads back here and is left out. */
static int dial_any(const struct tcp *tcp, const struct tcp_address *a, char *tried,
                    size_t bytes)
{
    static const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
    bool same_net = a->boot == tcp->me.boot && a->net == tcp->net && a->net;
    int fd = -1;

    snprintf(tried, bytes, "127.0.0.1");
    errno = EADDRNOTAVAIL;
    if (same_net)
        fd = dial(loopback, a->port);
    for (uint16_t i = 0; i < a->n && i < TCP_ADDRESSES && fd < 0; i++) {
        if (!same_net && is_mine(a->ip[i]))
            continue;
        inet_ntop(AF_INET6, a->ip[i], tried, (socklen_t)bytes);
        fd = dial(a->ip[i], a->port);
    }
    return fd;
}

static trib_status_t check_address(struct tcp *tcp, int peer,
                                   const struct trib_address *address,
                                   struct tcp_address *out)
{
    if (peer < 0 || peer >= tcp->size || peer == tcp->self)
        return trib_fail(tcp->err, TRIB_ERR_INVALID, "peer %d of %d cannot be connected",
                         peer, tcp->size);
    if (tcp->peers[peer].state == TCP_PEER_CONNECTED)
        return TRIB_OK;
    if (tcp->peers[peer].state != TCP_PEER_UNKNOWN)
        return trib_fail(tcp->err, TRIB_ERR_PEER_LOST, "peer %d was lost or left before",
                         peer);
    memset(out, 0, sizeof(*out));
    if (address->len == sizeof(*out))
        memcpy(out, address->bytes, sizeof(*out));
    if (out->magic != TCP_MAGIC)
        return trib_fail(tcp->err, TRIB_ERR_INVALID, "peer %d: not an address of tcp",
                         peer);
    return TRIB_OK;
}

trib_status_t trib_socket_connect(struct trib_transport *t, int peer,
                                const struct trib_address *address)
{
    struct tcp *tcp = tcp_of(t);
    struct tcp_address a;
    char tried[64];
    trib_status_t status = check_address(tcp, peer, address, &a);

    if (status != TRIB_OK || tcp->peers[peer].state == TCP_PEER_CONNECTED)
        return status;
    struct tcp_peer *p = &tcp->peers[peer];
    struct tcp_hello hello = {.magic = TCP_MAGIC, .rank = tcp->self, .key = a.key};
    int fd = dial_any(tcp, &a, tried, sizeof(tried));
    if (fd < 0)
        return trib_fail(tcp->err, TRIB_ERR_PEER_LOST,
                         "process %d cannot be reached at %s port %u: %m", a.pid, tried,
                         a.port);
    if (!p->queue)
        p->queue = calloc(TCP_QUEUE, sizeof(*p->queue));
    if (!p->queue || send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello)) {
        close(fd);
        return trib_fail(tcp->err, p->queue ? TRIB_ERR_PEER_LOST : TRIB_ERR_NO_MEMORY,
                         "process %d cannot be greeted: %m", a.pid);
    }
    p->key = a.key;
    p->who = (struct trib_process){
        .pid = a.pid, .start = a.start, .space = a.space, .boot = a.boot};
    p->watched = a.boot == tcp->me.boot && a.space == tcp->me.space &&
                 !trib_process_same(&p->who, &tcp->me) &&
                 trib_process_watch_open(&p->watch, &p->who, NULL) == TRIB_OK;
    pthread_mutex_lock(&tcp->lock);
    p->fd = fd;
    pthread_mutex_unlock(&tcp->lock);
    p->state = TCP_PEER_CONNECTED;
    watch_fd(tcp, fd);
    return TRIB_OK;
}

/* Reads what is there first: else the kernel would answer the close with a reset, which
 * may overtake what was sent. */
static void hang_up(int fd)
{
    char rest[4096];

    (void)shutdown(fd, SHUT_WR);
    while (recv(fd, rest, sizeof(rest), MSG_DONTWAIT) > 0)
        continue;
    close(fd);
}

void trib_socket_inlet_close(struct tcp *tcp, int peer)
{
    struct tcp_inlet *in = &tcp->peers[peer].in;

    if (in->fd < 0)
        return;
    hang_up(in->fd);
    tcp->peers[peer].finished = true;
    free(in->buf);
    memset(in, 0, sizeof(*in));
    in->fd = -1;
    for (int i = 0; i < tcp->n_inlets; i++) {
        if (tcp->inlets[i] == peer)
            tcp->inlets[i--] = tcp->inlets[--tcp->n_inlets];
    }
}

static void outlet_close(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];

    pthread_mutex_lock(&tcp->lock);
    if (p->fd >= 0)
        hang_up(p->fd);
    p->fd = -1;
    if (p->head != p->tail)
        atomic_fetch_sub_explicit(&tcp->backlog, 1, memory_order_relaxed);
    p->head = p->sent = p->tail = 0;
    p->sent_bytes = 0;
    pthread_mutex_unlock(&tcp->lock);
    if (p->watched)
        trib_process_watch_close(&p->watch);
    p->watched = false;
}

void trib_socket_disconnect(struct trib_transport *t, int peer)
{
    struct tcp *tcp = tcp_of(t);

    if (peer < 0 || peer >= tcp->size || tcp->peers[peer].state == TCP_PEER_LEFT)
        return;
    struct tcp_peer *p = &tcp->peers[peer];
    if (p->state == TCP_PEER_GOING)
        tcp->n_going--;
    trib_socket_say_bye(tcp, peer);
    /* What is on its way should get there, but a peer that reads no more cannot hold us. */
    for (uint64_t until = trib_deadline_ms(100);
         p->fd >= 0 && p->sent != p->tail && !trib_deadline_passed(until);) {
        struct pollfd wait = {.fd = p->fd, .events = POLLOUT};
        (void)poll(&wait, 1, 10);
        trib_socket_flush(tcp, peer);
    }
    outlet_close(tcp, peer);
    trib_socket_inlet_close(tcp, peer);
    p->state = TCP_PEER_LEFT;
}

void trib_socket_going(struct tcp *tcp, int peer, const char *format, ...)
{
    struct tcp_peer *p = &tcp->peers[peer];
    va_list args;

    if (p->state != TCP_PEER_CONNECTED && !(p->state == TCP_PEER_GOING && p->said_bye))
        return;
    if (p->state == TCP_PEER_CONNECTED) {
        p->state = TCP_PEER_GOING;
        p->going_at = trib_now_ns();
        tcp->n_going++;
    }
    va_start(args, format);
    vsnprintf(p->why, sizeof(p->why), p->said_bye ? "process %d has left" : format, args);
    va_end(args);
}

/* A lost peer is reported after everything that it sent. */
int trib_socket_report_losses(struct tcp *tcp, struct trib_event *events, int max)
{
    int n = 0;

    for (int i = 0; i < tcp->size && n < max && tcp->n_going; i++) {
        struct tcp_peer *p = &tcp->peers[i];
        bool late = trib_now_ns() - p->going_at > GOING_MS * UINT64_C(1000000);
        if (p->state != TCP_PEER_GOING || (!p->finished && !late))
            continue;
        events[n].kind = TRIB_EVENT_PEER_LOST;
        events[n].peer = i;
        memcpy(events[n++].why, p->why, sizeof(p->why));
        outlet_close(tcp, i);
        trib_socket_inlet_close(tcp, i);
        p->state = TCP_PEER_LOST;
        tcp->n_going--;
    }
    return n;
}

void trib_socket_accept(struct tcp *tcp)
{
    int yes = 1;

    while (tcp->n_guests < TCP_GUESTS) {
        int fd = accept4(tcp->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        tcp->guests[tcp->n_guests++] =
            (struct tcp_guest){.fd = fd, .until = trib_deadline_ms(HELLO_MS)};
        watch_fd(tcp, fd);
    }
}

/* true: it is at the table, or gone. */
static bool seat(struct tcp *tcp, struct tcp_guest *g)
{
    ssize_t n = recv(g->fd, (uint8_t *)&g->hello + g->have, sizeof(g->hello) - g->have,
                     MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR) && !trib_deadline_passed(g->until))
        return false;
    g->have += n > 0 ? (size_t)n : 0;
    if (n > 0 && g->have < sizeof(g->hello))
        return false;
    const struct tcp_hello *h = &g->hello;
    bool known = g->have == sizeof(*h) && h->magic == TCP_MAGIC && h->key == tcp->key &&
                 h->rank >= 0 && h->rank < tcp->size && h->rank != tcp->self;
    struct tcp_peer *p = known ? &tcp->peers[h->rank] : NULL;
    if (!p || p->in.fd >= 0 || p->state == TCP_PEER_LOST || p->state == TCP_PEER_LEFT ||
        !(p->in.buf = malloc(TCP_BUFFER))) {
        if (!known)
            trib_log(tcp->log, TRIB_LOG_WARN, "tcp",
                     "a stranger connected to port %u and was turned away", tcp->port);
        if (p && p->state == TCP_PEER_LEFT) /* it must not take us for dead */
            (void)send(g->fd, &(struct tcp_head){.magic = TCP_MAGIC, .kind = TCP_BYE},
                       sizeof(struct tcp_head), MSG_DONTWAIT | MSG_NOSIGNAL);
        hang_up(g->fd);
        return true;
    }
    p->in.fd = g->fd;
    tcp->inlets[tcp->n_inlets++] = h->rank;
    return true;
}

void trib_socket_greet(struct tcp *tcp)
{
    for (int i = 0; i < tcp->n_guests; i++) {
        if (seat(tcp, &tcp->guests[i]))
            tcp->guests[i--] = tcp->guests[--tcp->n_guests];
    }
}

/* The way back of the own connection: a BYE, or its end. */
static void look_at_outlet(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];
    struct tcp_head head;
    ssize_t n = recv(p->fd, &head, sizeof(head), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    p->said_bye |= n == sizeof(head) && head.magic == TCP_MAGIC && head.kind == TCP_BYE;
    trib_socket_going(tcp, peer, "process %d has died", p->who.pid);
}

/*
 * Only time during which somebody watched counts: a job that was suspended as a whole
 * and goes on must not find all its peers lost.
 */
static void look_for_stop(struct tcp *tcp, int peer, uint64_t elapsed)
{
    struct tcp_peer *p = &tcp->peers[peer];

    if (!p->watched || p->state != TCP_PEER_CONNECTED)
        return;
    enum trib_process_state state = trib_process_watch_look(&p->watch);
    if (state == TRIB_PROCESS_DEAD)
        trib_socket_going(tcp, peer, "process %d has died", p->who.pid);
    p->stopped_ns =
        state == TRIB_PROCESS_STOPPED ? p->stopped_ns + (p->stopped_ns ? elapsed : 1) : 0;
    if (p->stopped_ns >= (uint64_t)tcp->cfg->stop_timeout_ms * 1000000u)
        trib_socket_going(tcp, peer, "process %d has been stopped for %.1f s", p->who.pid,
                        (double)p->stopped_ns / 1e9);
}

void trib_socket_tick(struct tcp *tcp)
{
    uint64_t now = trib_now_ns(), elapsed = now - tcp->stops_at;
    const uint64_t step = STOPS_MS * UINT64_C(1000000);
    bool stops = elapsed >= step;

    trib_socket_accept(tcp);
    trib_socket_greet(tcp);
    if (stops)
        tcp->stops_at = now;
    for (int i = 0; i < tcp->size; i++) {
        if (tcp->peers[i].state == TCP_PEER_CONNECTED)
            look_at_outlet(tcp, i);
        if (stops)
            look_for_stop(tcp, i, elapsed < 4 * step ? elapsed : 4 * step);
    }
}
