/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/sockets.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/addresses.h"
#include "base/dial.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/host.h"
#include "base/time.h"
#include "base/wait.h"

#define PORT_IN_USE_MS 1000 /* time for a previous job to release the port */
#define RESOLVE_MS 2000 /* timeout of name resolution, if addresses were tried before */
#define SEGMENT 1200 /* fits the minimum MTU of IPv6 */

/* Parse one host: a name, an IPv4 address, or a bracketed IPv6 address. */
static bool read_host(const char *text, size_t len, char *out, size_t bytes)
{
    if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    } else if (memchr(text, ':', len)) {
        return false;
    }
    if (len == 0 || len >= bytes || memchr(text, '/', len) || memchr(text, ' ', len))
        return false;
    memcpy(out, text, len);
    out[len] = '\0';
    return true;
}

bool trib_tcp_root_parse(const char *text, struct trib_tcp_root *out)
{
    const char *colon = strrchr(text, ':');
    char *end, *also = out->also;
    size_t room = sizeof(out->also);

    if (!colon || strlen(colon + 1) >= sizeof(out->port) || colon[1] < '0' ||
        colon[1] > '9')
        return false;
    long port = strtol(colon + 1, &end, 10);
    if (*end || port < 1 || port > 65535)
        return false;
    const char *comma = memchr(text, ',', (size_t)(colon - text));
    out->also[0] = '\0';
    if (!read_host(text, (size_t)((comma ? comma : colon) - text), out->host,
                   sizeof(out->host)))
        return false;
    while (comma) {
        const char *next = comma + 1;
        comma = memchr(next, ',', (size_t)(colon - next));
        if (also != out->also)
            *also++ = ',';
        room = sizeof(out->also) - (size_t)(also - out->also);
        if (room < 2 ||
            !read_host(next, (size_t)((comma ? comma : colon) - next), also, room - 1))
            return false;
        also += strlen(also);
    }
    snprintf(out->port, sizeof(out->port), "%ld", port);
    out->launcher = NULL;
    return true;
}

const char *trib_tcp_root_from(const struct trib_tcp_root *root, char text[64])
{
    if (!root->launcher)
        return "TRIB_ROOT";
    snprintf(text, 64, "chosen by what %.20s says; TRIB_ROOT is not set",
             root->launcher);
    return text;
}

/* A resolver query: run in a thread, as it may take minutes. */
struct question {
    struct trib_tcp_root root;
    struct addrinfo *list;
    int failed; /* result of getaddrinfo */
};

static int look_up(const char *host, const char *port, int flags, struct addrinfo **out)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = flags | AI_NUMERICSERV};

    *out = NULL;
    return getaddrinfo(host, port, &hints, out);
}

static void question_ask(void *arg)
{
    struct question *q = arg;

    q->failed = look_up(q->root.host, q->root.port, 0, &q->list);
}

static void question_free(void *arg)
{
    struct question *q = arg;

    if (q->list)
        freeaddrinfo(q->list);
    free(q);
}

/* Resolve a numeric address or the loopback name without the resolver. */
static int resolve_here(const struct trib_tcp_root *root, struct addrinfo **out)
{
    bool loopback = strcmp(root->host, "localhost") == 0;

    if (strcmp(root->host, "*") == 0) /* all addresses; glibc would resolve "*" to
                                       * loopback */
        return EAI_NONAME;
    return look_up(loopback ? NULL : root->host, root->port, AI_NUMERICHOST, out);
}

/* Deadline of the caller, and its idle function. */
struct patience {
    uint64_t deadline;
    struct trib_idle *idle;
};

/* Return false with the cause in `why`. */
static bool resolve(const struct trib_tcp_root *root, const struct patience *until,
                    struct addrinfo **out, char *why, size_t bytes)
{
    if (resolve_here(root, out) == 0)
        return true;
    struct question *q = calloc(1, sizeof(*q));
    if (!q) {
        snprintf(why, bytes, "out of memory");
        return false;
    }
    q->root = *root;
    int error = trib_detached_call(question_ask, question_free, q, until->deadline,
                                   until->idle);
    if (error == ETIMEDOUT || error == ECANCELED) {
        snprintf(why, bytes, "the resolver of this host has not answered for the name");
        return false;
    }
    if (error)
        snprintf(why, bytes, "cannot start a thread of boot: %s", strerror(error));
    else if (q->failed)
        snprintf(why, bytes, "the name cannot be resolved: %s",
                 gai_strerror(q->failed));
    bool found = !error && !q->failed;
    if (found) {
        *out = q->list;
        q->list = NULL;
    }
    question_free(q);
    return found;
}

/*
 * Use small segments: boot needs no speed, and ranks can still exchange and report
 * errors if host and network MTUs do not match.
 */
static void keep_segments_small(int fd)
{
    setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &(int){SEGMENT}, sizeof(int));
}

/* Listening ------------------------------------------------------------------------ */

/* both: an IPv6 socket that also accepts IPv4. Return -1 with errno. */
static int listen_at(const struct addrinfo *address, bool both)
{
    int only = !both;
    int fd = trib_fd_keep(
        socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    keep_segments_small(fd);
    if (address->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
    if (bind(fd, address->ai_addr, address->ai_addrlen) || listen(fd, SOMAXCONN)) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* Listen at all addresses of a list; return 0 or the errno of the failure. */
static int listen_each(const struct addrinfo *list, int *fds_out, int *n_out)
{
    int error = 0;

    *n_out = 0;
    for (const struct addrinfo *a = list; a && *n_out < TRIB_TCP_LISTENERS_MAX;
         a = a->ai_next) {
        int fd = listen_at(a, false);
        if (fd >= 0) {
            fds_out[(*n_out)++] = fd;
            continue;
        }
        error = errno;
        if (error == EADDRINUSE)
            break; /* else half of the ranks would connect to the other program */
    }
    if (*n_out > 0 && error != EADDRINUSE)
        return 0; /* a host without IPv6 still resolves ::1 */
    while (*n_out > 0)
        close(fds_out[--*n_out]);
    return error ? error : EADDRNOTAVAIL;
}

static int listen_everywhere(const struct addrinfo *list, int *fds_out, int *n_out)
{
    int error = EADDRNOTAVAIL;

    *n_out = 0;
    for (int pass = 0; pass < 2; pass++) {
        int family = pass == 0 ? AF_INET6 : AF_INET;
        for (const struct addrinfo *a = list; a; a = a->ai_next) {
            if (a->ai_family != family)
                continue;
            fds_out[0] = listen_at(a, true);
            if (fds_out[0] >= 0) {
                *n_out = 1;
                return 0;
            }
            error = errno;
            if (error == EADDRINUSE)
                return error;
        }
    }
    return error;
}

static trib_status_t listen_failed(const struct trib_tcp_root *root,
                                   struct trib_error *err, int error)
{
    char host[TRIB_HOST_BYTES], from[64];

    if (!trib_host_name(host))
        snprintf(host, sizeof(host), "this host");
    if (error == EADDRINUSE)
        return trib_fail(
            err, TRIB_ERR_BOOT,
            "port %s (%s) is in use on %s, where rank 0 runs: choose "
            "another%s, or end the program that has it (ss -ltnp \"sport = :%s\")",
            root->port, trib_tcp_root_from(root, from), host,
            root->launcher ? " by TRIB_ROOT=host:port, the same for all ranks" : "",
            root->port);
    if (error == EADDRNOTAVAIL)
        return trib_fail(err, TRIB_ERR_BOOT,
                         "%s (%s) is no address of %s, where rank 0 runs: give an "
                         "address of rank 0's host",
                         root->host, trib_tcp_root_from(root, from), host);
    errno = error;
    return trib_fail(err, TRIB_ERR_BOOT, "rank 0 cannot listen at %s port %s on %s: %m",
                     root->host, root->port, host);
}

int trib_sockets_bind(const struct trib_tcp_root *root, struct trib_idle *idle,
                      int fds_out[TRIB_TCP_LISTENERS_MAX], int *n_out)
{
    struct addrinfo *list = NULL;
    uint64_t deadline = trib_deadline_ms(PORT_IN_USE_MS);
    bool exact = !root->also[0] && resolve_here(root, &list) == 0;
    int error = 0;

    if (!exact && look_up(NULL, root->port, AI_PASSIVE, &list) != 0)
        return EAFNOSUPPORT;
    for (;;) {
        error = exact ? listen_each(list, fds_out, n_out)
                      : listen_everywhere(list, fds_out, n_out);
        if (error != EADDRINUSE || trib_deadline_passed(deadline) ||
            !trib_idle_sleep(idle, 50000000))
            break;
    }
    freeaddrinfo(list);
    return error;
}

trib_status_t trib_sockets_listen(const struct trib_tcp_root *root,
                                  struct trib_idle *idle, struct trib_error *err,
                                  int fds_out[TRIB_TCP_LISTENERS_MAX], int *n_out)
{
    int error = trib_sockets_bind(root, idle, fds_out, n_out);

    if (error && trib_idle_answer(idle))
        return trib_idle_fail(idle, err, "rank 0 has given up waiting for port %s",
                              root->port);
    return error ? listen_failed(root, err, error) : TRIB_OK;
}

/* Connecting ----------------------------------------------------------------------- */

/* Set SO_REUSEADDR: this socket might get the very port where rank 0 is to listen. */
static int dial_list(struct trib_dial_to *to, int n, const struct patience *until)
{
    struct trib_dial dial = {.to = to,
                             .n = n,
                             .deadline = until->deadline,
                             .reuse = true,
                             .segment = SEGMENT,
                             .idle = until->idle};
    int which;

    return trib_dial(&dial, &which);
}

static int add_list(const struct addrinfo *list, struct trib_dial_to *to, int n)
{
    for (const struct addrinfo *a = list; a && n < TRIB_DIAL_MAX; a = a->ai_next) {
        memcpy(&to[n].at, a->ai_addr, a->ai_addrlen);
        to[n++].len = a->ai_addrlen;
    }
    return n;
}

/* Add the addresses after the first host, which need no resolver. */
static int add_also(const struct trib_tcp_root *root, struct trib_dial_to *to)
{
    struct trib_tcp_root one = {.host = ""};
    struct addrinfo *list;
    int n = 0;

    memcpy(one.port, root->port, sizeof(one.port));
    for (const char *at = root->also; *at; at += *at == ',') {
        size_t len = strcspn(at, ",");
        snprintf(one.host, sizeof(one.host), "%.*s", (int)len, at);
        at += len;
        if (resolve_here(&one, &list) != 0)
            continue;
        n = add_list(list, to, n);
        freeaddrinfo(list);
    }
    return n;
}

/* Return 0, or 1 + errno of the attempts at those addresses; the connection is in
 * *fd_out. */
static int dial_also(const struct trib_tcp_root *root, const struct patience *until,
                     int *fd_out, char *why, size_t bytes)
{
    struct trib_dial_to to[TRIB_DIAL_MAX];
    int n = add_also(root, to);
    char ip[TRIB_IP_TEXT_BYTES];
    uint8_t first[16];

    *fd_out = -1;
    if (n == 0)
        return 0;
    *fd_out = dial_list(to, n, until);
    int error = errno;
    trib_net_ip((struct sockaddr *)&to[0].at, first);
    trib_net_text(first, ip, sizeof(ip));
    snprintf(why, bytes, "%s%s: %s", ip, n > 1 ? " and others" : "", strerror(error));
    return 1 + error;
}

int trib_sockets_connect(const struct trib_tcp_root *root, uint64_t deadline,
                         struct trib_idle *idle, char *why, size_t bytes)
{
    const struct patience until = {deadline, idle};
    struct patience resolver = {trib_deadline_ms(RESOLVE_MS), idle};
    struct trib_dial_to to[TRIB_DIAL_MAX];
    struct addrinfo *list = NULL;
    char unresolved[128];
    int fd;

    snprintf(why, bytes, "the caller gave up");
    const int tried = dial_also(root, &until, &fd, why, bytes);
    if (fd >= 0)
        return fd;
    if (!tried || resolver.deadline > deadline)
        resolver.deadline = deadline;
    if (trib_idle_answer(idle) ||
        !resolve(root, &resolver, &list, tried ? unresolved : why,
                 tried ? sizeof(unresolved) : bytes)) {
        errno = tried ? tried - 1 : 0;
        return -1;
    }
    fd = dial_list(to, add_list(list, to, 0), &until);
    int error = errno;
    if (fd < 0 && !tried)
        snprintf(why, bytes, "%s", strerror(error));
    freeaddrinfo(list);
    errno = error;
    return fd;
}

bool trib_sockets_sent(int fd)
{
    int left = 0;

    return ioctl(fd, SIOCOUTQ, &left) != 0 || left == 0;
}
