/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_root_*: a rendezvous for ranks of several hosts, for programs that distribute
 * its text to all ranks themselves. The ranks use it in boot/tcp/tcp_boot.c.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/addresses.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/host.h"
#include "base/sockets.h"
#include "boot/launcher.h"
#include "boot/root_place.h"

struct trib_root {
    int hold; /* reserves the port until rank 0 listens there */
    int claim; /* reserves the port against other roots of this host; or -1 */
    char text[TRIB_ROOT_TEXT_MAX];
};

/* Parsed argument of trib_root_create_at. */
struct place {
    char host[TRIB_ROOT_TEXT_MAX]; /* as in a root text; "": this host's own */
    bool is_numeric; /* the host is the address `ip` */
    uint8_t ip[16];
    int first, last; /* port range; 0: any port */
};

static bool read_ports(const char *text, struct place *out)
{
    char *end;

    if (!*text)
        return true;
    if (text[0] != ':' || text[1] < '0' || text[1] > '9')
        return false;
    const long first = strtol(text + 1, &end, 10);
    const long last = end[0] == '-' && end[1] >= '0' && end[1] <= '9'
                          ? strtol(end + 1, &end, 10)
                          : first;
    if (*end || first < 1 || last > 65535 || first > last)
        return false;
    out->first = (int)first;
    out->last = (int)last;
    return true;
}

static bool read_host(const char *text, size_t len, struct place *out)
{
    enum { BEHIND = 8 + TRIB_SECRET_TEXT }; /* room for port and secret */
    char whole[TRIB_ROOT_TEXT_MAX + 8];
    struct trib_tcp_root root;
    struct in6_addr six;
    struct in_addr four;

    if (len == 0)
        return true;
    if (len + BEHIND > sizeof(out->host) || memchr(text, ',', len) ||
        memchr(text, '*', len) || memchr(text, '#', len))
        return false;
    snprintf(out->host, sizeof(out->host), "%.*s", (int)len, text);
    snprintf(whole, sizeof(whole), "%s:1", out->host);
    if (!trib_tcp_root_parse(whole, &root))
        return false;
    const bool local = strcmp(root.host, "localhost") == 0;
    memcpy(out->ip, trib_net_loopback, sizeof(out->ip));
    if (inet_pton(AF_INET, local ? "127.0.0.1" : root.host, &four) == 1) {
        memcpy(out->ip + 12, &four, sizeof(four));
        out->is_numeric = true;
    } else if (inet_pton(AF_INET6, root.host, &six) == 1) {
        memcpy(out->ip, &six, sizeof(six));
        out->is_numeric = true;
    }
    return out->is_numeric || text[0] != '[';
}

/* Parse "", "host", "host:port", ":port", ":first-last" or "[::1]:port". */
static bool read_place(const char *text, struct place *out)
{
    const char *behind = text[0] == '[' ? strchr(text, ']') : text;

    *out = (struct place){.host = ""};
    if (!behind)
        return false;
    const size_t len = (size_t)(behind - text) + strcspn(behind, ":");
    return read_host(text, len, out) && read_ports(text + len, out);
}

/*
 * Reserve a port by a name unique in this network namespace, which the kernel grants to
 * one process: two non-listening sockets may share a port.
 *
 * returns  -1: taken; -2: no such names on this system
 */
static int claim_port(int port)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int n = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1,
                           "tributary-meeting-at-%d", port);
    int fd = trib_fd_keep(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));

    if (fd < 0)
        return -2;
    if (bind(fd, (struct sockaddr *)&at,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0)
        return fd;
    const bool taken = errno == EADDRINUSE;
    close(fd);
    return taken ? -1 : -2;
}

/* Take the first free port; return false with errno. */
static bool take_port(struct trib_root *root, const struct place *place, int *port_out)
{
    const uint8_t *ip = place->is_numeric ? place->ip : NULL;

    for (int port = place->first; port <= place->last; port++) {
        *port_out = port;
        root->claim = port ? claim_port(port) : -2;
        errno = EADDRINUSE;
        root->hold = root->claim == -1 ? -1 : trib_launch_hold(ip, port_out);
        if (root->hold >= 0)
            return true;
        if (root->claim >= 0) {
            const int error = errno;
            close(root->claim);
            errno = error;
        }
        if (errno != EADDRINUSE && errno != EACCES)
            return false;
    }
    return false;
}

static trib_status_t refuse(const struct place *place, struct trib_error *err)
{
    const int error = errno;
    char host[TRIB_HOST_BYTES], ports[40];

    if (!trib_host_name(host))
        snprintf(host, sizeof(host), "this host");
    if (place->first == place->last)
        snprintf(ports, sizeof(ports), "port %d is", place->first);
    else
        snprintf(ports, sizeof(ports), "ports %d to %d are", place->first, place->last);
    if (error == EADDRINUSE && place->first)
        return trib_fail(err, TRIB_ERR_SYSTEM,
                         "%s in use on %s: choose others, or end the programs that "
                         "have them (ss -ltnp)",
                         ports, host);
    if (error == EACCES && place->first)
        return trib_fail(err, TRIB_ERR_SYSTEM,
                         "%s not for this user on %s: take ports from 1024 on", ports,
                         host);
    if (error == EADDRNOTAVAIL && place->is_numeric)
        return trib_fail(err, TRIB_ERR_SYSTEM,
                         "%s is no address of %s: give one that is (ip addr), or none",
                         place->host, host);
    errno = error;
    return trib_fail(err, TRIB_ERR_SYSTEM,
                     "no free port on %s for the rendezvous: %m", host);
}

trib_status_t trib_root_make(const char *bind, const struct trib_secret *secret,
                             struct trib_error *err, trib_root_t **root_out)
{
    struct place place;
    int port = 0;

    if (!root_out)
        return trib_fail(err, TRIB_ERR_INVALID, "trib_root_create: root_out is NULL");
    *root_out = NULL;
    if (!read_place(bind ? bind : "", &place))
        return trib_fail(
            err, TRIB_ERR_INVALID,
            "trib_root_create_at: \"%.80s\" is none of \"host\", "
            "\"host:port\", \":port\" and \":first-last\", with ports from "
            "1 to 65535 and IPv6 addresses in brackets",
            bind);
    struct trib_root *root = calloc(1, sizeof(*root));
    if (!root)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory");
    if (!take_port(root, &place, &port)) {
        free(root);
        return refuse(&place, err);
    }
    assert(root->hold >= 0 && port > 0);
    trib_launch_root_text(place.host, port, secret, root->text, sizeof(root->text));
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
    if (root->claim >= 0)
        close(root->claim);
    free(root);
}
