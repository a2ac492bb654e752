/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/time.h"
#include "base/wait.h"

enum {
    ATTEMPT_MS = 2000, /* for one address of a peer */
    OWN_MAX = 64,
};

const uint8_t trib_net_loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

bool trib_net_is_v4(const uint8_t ip[16])
{
    return memcmp(ip, trib_net_loopback, 12) == 0;
}

socklen_t trib_net_sockaddr(const uint8_t ip[16], uint16_t port, int family,
                            struct sockaddr_storage *out)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};

    memset(out, 0, sizeof(*out));
    if (family == AF_INET) {
        memcpy(&four.sin_addr, ip + 12, 4);
        memcpy(out, &four, sizeof(four));
        return sizeof(four);
    }
    memcpy(&six.sin6_addr, ip, 16);
    memcpy(out, &six, sizeof(six));
    return sizeof(six);
}

void trib_net_ip(const struct sockaddr *from, uint8_t ip_out[16])
{
    const struct sockaddr_in *four = (const void *)from;
    const struct sockaddr_in6 *six = (const void *)from;

    memcpy(ip_out, trib_net_loopback, 12);
    if (from->sa_family == AF_INET)
        memcpy(ip_out + 12, &four->sin_addr, 4);
    else
        memcpy(ip_out, &six->sin6_addr, 16);
}

void trib_net_text(const uint8_t ip[16], char *text, unsigned bytes)
{
    bool four = trib_net_is_v4(ip);

    text[0] = '\0';
    (void)inet_ntop(four ? AF_INET : AF_INET6, four ? ip + 12 : ip, text, bytes);
}

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

trib_status_t trib_net_bind(const char *owner, int type, int first, int ports,
                            struct trib_net_port *out, struct trib_error *err)
{
    static const uint8_t any[16] = {0};
    struct sockaddr_storage own;
    int bound = -1;

    out->fd = open_socket(type, &out->family);
    if (out->fd < 0)
        return trib_fail(err, TRIB_ERR_SYSTEM, "%s: no socket: %m", owner);
    if (first && first + ports > 65536)
        ports = 65536 - first;
    for (int i = 0; i < (first ? ports : 1) && bound != 0; i++) {
        socklen_t len =
            trib_net_sockaddr(any, (uint16_t)(first + i), out->family, &own);
        bound = bind(out->fd, (struct sockaddr *)&own, len);
    }
    socklen_t len = sizeof(own);
    if (bound == 0 && getsockname(out->fd, (struct sockaddr *)&own, &len) == 0) {
        out->port =
            ntohs(out->family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port
                                          : ((struct sockaddr_in *)&own)->sin_port);
        return TRIB_OK;
    }
    cannot_bind(owner, type, first, ports, err);
    close(out->fd);
    out->fd = -1;
    return TRIB_ERR_SYSTEM;
}

int trib_net_dial(const uint8_t ip[16], uint16_t port, uint64_t deadline)
{
    int family = trib_net_is_v4(ip) ? AF_INET : AF_INET6;
    int fd =
        trib_fd_keep(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    struct sockaddr_storage to;
    socklen_t to_len = trib_net_sockaddr(ip, port, family, &to);
    int yes = 1, error = 0;
    socklen_t len = sizeof(error);

    if (fd < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    if (connect(fd, (struct sockaddr *)&to, to_len) != 0)
        error = errno;
    /* A connection that a signal interrupts is made all the same. */
    if ((error == EINPROGRESS || error == EINTR) &&
        (!trib_wait_fd(fd, POLLOUT, deadline) ||
         getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0))
        error = errno;
    if (!error)
        return fd;
    close(fd);
    errno = error;
    return -1;
}

static bool is_among(const uint8_t ip[16], uint8_t (*list)[16], int n)
{
    for (int i = 0; i < n; i++) {
        if (memcmp(list[i], ip, 16) == 0)
            return true;
    }
    return false;
}

int trib_net_dial_any(const struct trib_net_place *place, uint8_t ip_out[16])
{
    uint8_t own[OWN_MAX][16];
    int n_own = place->near ? 0 : trib_net_own(own, OWN_MAX), fd = -1;

    memcpy(ip_out, trib_net_loopback, 16);
    errno = EADDRNOTAVAIL;
    if (place->near)
        fd = trib_net_dial(ip_out, place->port, trib_deadline_ms(ATTEMPT_MS));
    for (int i = 0; i < place->n && fd < 0; i++) {
        if (is_among(place->ip[i], own, n_own))
            continue;
        memcpy(ip_out, place->ip[i], 16);
        fd = trib_net_dial(ip_out, place->port, trib_deadline_ms(ATTEMPT_MS));
    }
    return fd;
}

bool trib_net_usable(const struct ifaddrs *i, int family, uint8_t ip_out[16])
{
    if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP) ||
        (i->ifa_flags & IFF_LOOPBACK))
        return false;
    if (family == AF_INET6) {
        const struct in6_addr *a = &((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr;
        memcpy(ip_out, a, 16);
        return !IN6_IS_ADDR_LINKLOCAL(a);
    }
    memcpy(ip_out, trib_net_loopback, 12);
    memcpy(ip_out + 12, &((struct sockaddr_in *)i->ifa_addr)->sin_addr, 4);
    return true;
}

int trib_net_own(uint8_t (*ip_out)[16], int max)
{
    static const int families[] = {AF_INET, AF_INET6};
    struct ifaddrs *list = NULL;
    int n = 0;

    if (getifaddrs(&list) != 0)
        return 0;
    for (int f = 0; f < 2; f++) {
        for (const struct ifaddrs *i = list; i && n < max; i = i->ifa_next)
            n += trib_net_usable(i, families[f], ip_out[n]);
    }
    freeifaddrs(list);
    return n;
}

uint64_t trib_net_space(void)
{
    struct stat net;

    return stat("/proc/self/ns/net", &net) == 0 ? net.st_ino : 0;
}
