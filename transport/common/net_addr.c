/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/common/net_addr.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <linux/errqueue.h> /* needs struct timespec */

#include "base/error.h"
#include "base/fd.h"

enum { HELLO_MS = 5000 }; /* for connections that send no hello */

static int open_socket(int type, int *family_out)
{
    int fd = trib_fd_keep(socket(AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
        no = 0;

    *family_out = AF_INET6;
    if (fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    *family_out = AF_INET;
    return trib_fd_keep(socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/* A socket that bound a port but lost the race to listen cannot be bound again, so
 * replace it. */
static int renew_socket(int fd, int type, int *family_out)
{
    struct sockaddr_storage own;
    socklen_t len = sizeof(own);
    int error = errno;

    if (getsockname(fd, (struct sockaddr *)&own, &len) == 0 &&
        trib_net_port((struct sockaddr *)&own) != 0) {
        close(fd);
        fd = open_socket(type, family_out);
    }
    errno = error;
    return fd;
}

static void cannot_bind(const char *owner, int type, int first, int ports,
                        struct trib_error *err)
{
    const char *kind = type == SOCK_DGRAM ? "UDP" : "TCP";

    if (first)
        trib_fail(err, TRIB_ERR_SYSTEM,
                  "%s: none of the %s ports %d to %d can be bound: %m (choose others "
                  "with port=N,ports=N in TRIB_TRANSPORT)",
                  owner, kind, first, first + ports - 1);
    else
        trib_fail(err, TRIB_ERR_SYSTEM, "%s: no %s port can be bound: %m", owner, kind);
}

/*
 * Set SO_REUSEADDR on listeners: connections of a finished job keep their port for a
 * minute (TIME_WAIT). Two such sockets may be bound to one port, so only listen()
 * claims it. UDP ports are free at once, and this option would share them.
 */
static int take_port(int fd, int type, const struct sockaddr *own, socklen_t len)
{
    if (type == SOCK_STREAM)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(fd, own, len) != 0)
        return -1;
    return type == SOCK_STREAM ? listen(fd, SOMAXCONN) : 0;
}

trib_status_t trib_net_bind(const char *owner, int type, int first, int ports,
                            struct trib_net_port *out, struct trib_error *err)
{
    static const uint8_t any[16] = {0};
    struct sockaddr_storage own;

    assert((type == SOCK_STREAM || type == SOCK_DGRAM) && ports > 0);
    out->fenced = false;
    out->fd = open_socket(type, &out->family);
    if (out->fd < 0)
        return trib_fail(err, TRIB_ERR_SYSTEM, "%s: cannot create a socket: %m", owner);
    if (first && first + ports > 65536)
        ports = 65536 - first;
    for (int i = 0; i < (first ? ports : 1) && out->fd >= 0; i++) {
        socklen_t len =
            trib_net_sockaddr(any, (uint16_t)(first + i), out->family, &own);
        if (take_port(out->fd, type, (struct sockaddr *)&own, len) == 0 &&
            getsockname(out->fd, (struct sockaddr *)&own, &len) == 0) {
            out->port = trib_net_port((struct sockaddr *)&own);
            return TRIB_OK;
        }
        out->fd = renew_socket(out->fd, type, &out->family);
    }
    cannot_bind(owner, type, first, ports, err);
    if (out->fd >= 0)
        close(out->fd);
    out->fd = -1;
    return TRIB_ERR_SYSTEM;
}

void trib_net_accepted(const struct trib_net_port *port, int fd, const uint8_t ip[16])
{
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (trib_net_is_loopback(ip))
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, TRIB_NET_UNPACED,
                         sizeof(TRIB_NET_UNPACED) - 1);
    if (port->fenced) /* inherited, and no longer needed */
        (void)setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &(int){0}, sizeof(int));
}

bool trib_net_is_truncated(int fd, size_t n)
{
    struct pollfd end = {.fd = fd, .events = POLLRDHUP};
    uint8_t bytes[TRIB_NET_PEEK_MAX];

    assert(n <= sizeof(bytes));
    if (poll(&end, 1, 0) <= 0)
        return false;
    /* The rest may have arrived together with the end, after the first peek. */
    return recv(fd, bytes, n, MSG_DONTWAIT | MSG_PEEK) < (ssize_t)n;
}

trib_status_t trib_net_acceptor_open(struct trib_acceptor *a,
                                     const struct trib_net_rank *rank,
                                     const struct trib_net_port *port,
                                     struct trib_error *err)
{
    a->component = rank->component;
    snprintf(a->cannot, sizeof(a->cannot),
             "rank %d cannot accept connections from peers", rank->self);
    a->port = port->port;
    a->max = a->batch = rank->size + TRIB_NET_UNAUTHENTICATED;
    a->hello_ms = HELLO_MS;
    return trib_acceptor_open(a) ? TRIB_OK
                                 : trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory");
}

uint64_t trib_net_space(void)
{
    struct stat net;

    return stat("/proc/self/ns/net", &net) == 0 ? net.st_ino : 0;
}

bool trib_net_is_port_closed(struct msghdr *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        struct sock_extended_err e;
        if (!(c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) &&
            !(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
            continue;
        memcpy(&e, CMSG_DATA(c), sizeof(e));
        return e.ee_errno == ECONNREFUSED &&
               (e.ee_origin == SO_EE_ORIGIN_ICMP || e.ee_origin == SO_EE_ORIGIN_ICMP6);
    }
    return false;
}
