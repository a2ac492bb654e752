/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_root_*: where ranks of several hosts meet, for programs that have a way of their own
 * to tell all ranks a text. They meet in boot/tcp.c.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tributary/comm.h>

#include "base/fd.h"
#include "base/time.h"
#include "base/wait.h"
#include "boot/launcher.h"
#include "boot/tcp_net.h"

#define RESOLVE_MS 1000

struct trib_root {
    int hold; /* keeps the port until rank 0 listens there */
    char text[TRIB_ROOT_TEXT_MAX];
};

/* This host's name, asked for in an errand: a resolver may take minutes to answer. */
struct name {
    char host[256];
    bool good; /* the name leads to an address that is not of the loopback alone */
};

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

static void look_up(void *arg)
{
    struct name *name = arg;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;

    if (getaddrinfo(name->host, NULL, &hints, &list) != 0)
        return;
    for (const struct addrinfo *a = list; a; a = a->ai_next)
        name->good |= !is_loopback(a->ai_addr);
    freeaddrinfo(list);
}

static bool name_is_known(char *host, size_t bytes)
{
    struct name *name = calloc(1, sizeof(*name));
    struct trib_tcp_root parsed;
    char text[300];

    if (!name)
        return false;
    if (gethostname(name->host, sizeof(name->host) - 1))
        name->host[0] = '\0';
    snprintf(text, sizeof(text), "%s:1", name->host);
    if (!trib_tcp_root_parse(text, &parsed)) {
        free(name);
        return false;
    }
    snprintf(host, bytes, "%s", name->host);
    int error = trib_errand_run(look_up, free, name, trib_deadline_ms(RESOLVE_MS));
    bool good = error == 0 && name->good;
    if (error != ETIMEDOUT)
        free(name);
    return good;
}

/* The address by which this host would reach a far one; a datagram socket sends nothing
 * when it is connected. */
static bool way_out(int family, struct sockaddr_storage *out)
{
    struct sockaddr_storage far = {.ss_family = (sa_family_t)family};
    socklen_t bytes = sizeof(*out);

    if (family == AF_INET) {
        ((struct sockaddr_in *)&far)->sin_port = htons(9);
        inet_pton(family, "192.0.2.1", &((struct sockaddr_in *)&far)->sin_addr);
    } else {
        ((struct sockaddr_in6 *)&far)->sin6_port = htons(9);
        inet_pton(family, "2001:db8::1", &((struct sockaddr_in6 *)&far)->sin6_addr);
    }
    int fd = trib_fd_keep(socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    bool good = fd >= 0 && connect(fd, (struct sockaddr *)&far, sizeof(far)) == 0 &&
                getsockname(fd, (struct sockaddr *)out, &bytes) == 0 &&
                !is_loopback((struct sockaddr *)out);
    if (fd >= 0)
        close(fd);
    return good;
}

static bool first_address(int family, struct sockaddr_storage *out)
{
    struct ifaddrs *list = NULL;
    bool good = false;

    if (getifaddrs(&list))
        return false;
    for (const struct ifaddrs *i = list; i && !good; i = i->ifa_next) {
        if (!i->ifa_addr || i->ifa_addr->sa_family != family ||
            !(i->ifa_flags & IFF_UP) || is_loopback(i->ifa_addr))
            continue;
        size_t bytes = family == AF_INET ? sizeof(struct sockaddr_in)
                                         : sizeof(struct sockaddr_in6);
        memcpy(out, i->ifa_addr, bytes);
        good = family == AF_INET ||
               !IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)out)->sin6_addr);
    }
    freeifaddrs(list);
    return good;
}

/* A number that other hosts reach, if there is one; the loopback's on a host alone. */
static void address_text(char *host, size_t bytes)
{
    struct sockaddr_storage at;
    char number[INET6_ADDRSTRLEN] = "";

    if (way_out(AF_INET, &at) || first_address(AF_INET, &at)) {
        inet_ntop(AF_INET, &((struct sockaddr_in *)&at)->sin_addr, host,
                  (socklen_t)bytes);
    } else if (way_out(AF_INET6, &at) || first_address(AF_INET6, &at)) {
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&at)->sin6_addr, number,
                  sizeof(number));
        snprintf(host, bytes, "[%s]", number);
    } else {
        snprintf(host, bytes, "127.0.0.1");
    }
}

trib_status_t trib_root_create(trib_root_t **root_out)
{
    char host[256];
    int port;

    if (!root_out)
        return TRIB_ERR_INVALID;
    *root_out = NULL;
    struct trib_root *root = calloc(1, sizeof(*root));
    if (!root)
        return TRIB_ERR_NO_MEMORY;
    root->hold = trib_launch_hold(&port);
    if (root->hold < 0) {
        free(root);
        return TRIB_ERR_SYSTEM;
    }
    if (!name_is_known(host, sizeof(host)))
        address_text(host, sizeof(host));
    snprintf(root->text, sizeof(root->text), "%s:%d", host, port);
    *root_out = root;
    return TRIB_OK;
}

const char *trib_root_text(const trib_root_t *root)
{
    return root ? root->text : "";
}

void trib_root_destroy(trib_root_t *root)
{
    if (!root)
        return;
    close(root->hold);
    free(root);
}
