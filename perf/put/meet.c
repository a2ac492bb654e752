/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connect client and server. A client that is not of this version is reported and
 * disconnected; the server keeps waiting.
 */
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/accept.h"
#include "base/time.h"
#include "base/wait.h"
#include "perf/put/put.h"

#define STRANGER_MS 2000 /* a client sends its hello at once */
#define AGAIN_NS 100000000

bool put_listen_text(const char *text, struct trib_tcp_root *out)
{
    char whole[64];

    if (strchr(text, ':') != NULL)
        return trib_tcp_root_parse(text, out);
    return snprintf(whole, sizeof(whole), "*:%s", text) < (int)sizeof(whole) &&
           trib_tcp_root_parse(whole, out);
}

/* --- client --- */

static trib_status_t nobody(struct put_endpoint *endpoint,
                            const struct trib_tcp_root *where, const char *why)
{
    return trib_fail(&endpoint->err, TRIB_ERR_BOOT,
                     "no trib-perf put at %s port %s within %d ms "
                     "(TRIB_BOOT_TIMEOUT_MS): %s; is \"trib-perf put --listen %s\" "
                     "running there, and does no firewall block it?",
                     where->host, where->port, endpoint->cfg->boot_timeout_ms, why,
                     where->port);
}

trib_status_t put_meet_client(struct put_endpoint *endpoint,
                              const struct trib_tcp_root *where)
{
    uint64_t deadline = trib_limit_deadline(endpoint->cfg->boot_timeout_ms);
    char why[128], who[96], before[128] = "";
    int fd;

    while ((fd = trib_sockets_connect(where, deadline, NULL, why, sizeof(why))) < 0) {
        bool known = errno != 0; /* the address resolved */
        if (!known && !before[0])
            return trib_fail(&endpoint->err, TRIB_ERR_BOOT, "%s: %s", where->host, why);
        if (!known || trib_deadline_passed(deadline))
            return nobody(endpoint, where, known ? why : before);
        snprintf(before, sizeof(before), "%s", why);
        nanosleep(&(struct timespec){0, AGAIN_NS}, NULL);
    }
    snprintf(who, sizeof(who), "%.60s:%s", where->host, where->port);
    return put_endpoint_hello(endpoint, fd, who, deadline);
}

/* --- server --- */

static trib_status_t cannot_listen(struct put_endpoint *endpoint,
                                   const struct trib_tcp_root *where, int error)
{
    if (error == EADDRINUSE)
        return trib_fail(&endpoint->err, TRIB_ERR_BOOT,
                         "port %s is in use: choose another, or end the program that "
                         "uses it (ss -ltnp \"sport = :%s\")",
                         where->port, where->port);
    if (error == EADDRNOTAVAIL)
        return trib_fail(&endpoint->err, TRIB_ERR_BOOT,
                         "%s is not an address of this host: give only the port, or "
                         "one of its addresses",
                         where->host);
    return trib_fail(&endpoint->err, TRIB_ERR_BOOT, "cannot listen at %s port %s: %s",
                     where->host, where->port, strerror(error));
}

/* Without a free descriptor the client stays in the backlog and its listener stays
 * readable: pause. */
static void rest(struct trib_accept_pause *pause, int error)
{
    const struct timespec nap = {0, TRIB_ACCEPT_PAUSE_MS * 1000000L};

    if (trib_accept_failed(pause, error))
        fprintf(stderr, "trib-perf: cannot accept a client: %s; %s.\n", strerror(error),
                trib_accept_cure(error));
    if (trib_accept_paused(pause))
        nanosleep(&nap, NULL);
}

/* Accept a connection, or return -1 and set errno: ETIMEDOUT after the deadline. */
static int next_guest(const int *listeners, int n, uint64_t deadline, char *who,
                      size_t who_bytes)
{
    struct pollfd ready[TRIB_TCP_LISTENERS_MAX];
    struct trib_accept_pause pause = {0};
    struct sockaddr_storage address;
    char host[64];

    while (!trib_deadline_passed(deadline)) {
        for (int i = 0; i < n; i++)
            ready[i] = (struct pollfd){.fd = listeners[i], .events = POLLIN};
        if (trib_poll(ready, (nfds_t)n, trib_deadline_left_ms(deadline)) < 0)
            return -1;
        for (int i = 0; i < n; i++) {
            socklen_t len = sizeof(address);
            int fd = ready[i].revents == 0
                         ? -1
                         : accept4(listeners[i], (struct sockaddr *)&address, &len,
                                   SOCK_CLOEXEC);
            if (fd < 0 && ready[i].revents)
                rest(&pause, errno);
            if (fd < 0)
                continue;
            if (getnameinfo((struct sockaddr *)&address, len, host, sizeof(host), NULL,
                            0, NI_NUMERICHOST) != 0)
                snprintf(host, sizeof(host), "an unknown address");
            snprintf(who, who_bytes, "the client %s", host);
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
            return fd;
        }
    }
    errno = ETIMEDOUT;
    return -1;
}

static trib_status_t await_client(struct put_endpoint *endpoint, const int *listeners,
                                  int n)
{
    uint64_t deadline = trib_limit_deadline(endpoint->cfg->boot_timeout_ms);
    char who[96];

    for (;;) {
        int fd = next_guest(listeners, n, deadline, who, sizeof(who));
        if (fd < 0 && errno != ETIMEDOUT)
            return trib_fail(&endpoint->err, TRIB_ERR_SYSTEM,
                             "cannot wait for a client (poll): %m");
        if (fd < 0)
            return trib_fail(&endpoint->err, TRIB_ERR_BOOT,
                             "no client connected within %d ms: start \"trib-perf "
                             "put HOST:PORT\" sooner, or raise TRIB_BOOT_TIMEOUT_MS",
                             endpoint->cfg->boot_timeout_ms);
        if (put_endpoint_hello(endpoint, fd, who, trib_deadline_ms(STRANGER_MS)) ==
            TRIB_OK)
            return TRIB_OK;
        fprintf(stderr, "trib-perf: refused a connection: %s\n",
                trib_error_text(&endpoint->err));
        trib_error_clear(&endpoint->err);
        put_wire_close(&endpoint->wire);
    }
}

trib_status_t put_meet_server(struct put_endpoint *endpoint,
                              const struct trib_tcp_root *where)
{
    int listeners[TRIB_TCP_LISTENERS_MAX], n = 0;
    int error = trib_sockets_bind(where, NULL, listeners, &n);

    if (error != 0)
        return cannot_listen(endpoint, where, error);
    printf("listening at port %s\n", where->port);
    fflush(stdout);
    trib_status_t status = await_client(endpoint, listeners, n);
    for (int i = 0; i < n; i++)
        close(listeners[i]);
    return status;
}
