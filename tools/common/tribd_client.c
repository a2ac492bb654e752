/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/tribd_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    FIRST_BYTES = 64 << 10,
    RESPONSE_MAX = 64 << 20, /* bytes; 4096 jobs with many ranks need several MB */
};

static int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Wait for an event. Return false with errno ETIMEDOUT at the deadline. */
static bool wait_for(int fd, short events, int64_t deadline)
{
    struct pollfd p = {.fd = fd, .events = events};
    int64_t left;

    while ((left = deadline - now_ms()) > 0) {
        const int n = poll(&p, 1, (int)left);
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
    }
    errno = ETIMEDOUT;
    return false;
}

/* Return true to repeat a call that has just failed. */
static bool again(int fd, short events, int64_t deadline)
{
    return errno == EINTR || (errno == EAGAIN && wait_for(fd, events, deadline));
}

static bool send_all(int fd, const char *text, int64_t deadline)
{
    size_t left = strlen(text);

    while (left) {
        const ssize_t n = send(fd, text, left, MSG_NOSIGNAL);
        if (n < 0 && !again(fd, POLLOUT, deadline))
            return false;
        text += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Receive until end of file and append a NUL. Return NULL with errno: EMSGSIZE beyond
 * RESPONSE_MAX. */
static char *receive_all(int fd, int64_t deadline)
{
    size_t n = 0, room = FIRST_BYTES;
    char *text = malloc(room), *more;
    ssize_t got;

    while (text && (got = recv(fd, text + n, room - n - 1, 0)) != 0) {
        if (got < 0 && !again(fd, POLLIN, deadline))
            goto failed;
        n += got > 0 ? (size_t)got : 0;
        if (n + 1 < room)
            continue;
        errno = EMSGSIZE;
        more = room < RESPONSE_MAX ? realloc(text, room * 2) : NULL;
        if (!more)
            goto failed;
        text = more;
        room *= 2;
    }
    if (text)
        text[n] = '\0';
    return text;
failed:
    free(text);
    return NULL;
}

/* Return the response, or NULL with errno. */
static char *exchange(int fd, const char *request, int64_t deadline)
{
    const int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return NULL;
    return send_all(fd, request, deadline) ? receive_all(fd, deadline) : NULL;
}

/* Write the cause of a failure, from errno. */
static void explain(int timeout_ms, char *why, size_t bytes)
{
    if (errno == ETIMEDOUT)
        snprintf(why, bytes, "no answer within %g s", timeout_ms / 1000.);
    else
        snprintf(why, bytes, "%s", strerror(errno));
}

char *tool_exchange(int fd, const char *request, int timeout_ms, char *why,
                    size_t bytes)
{
    char *text = exchange(fd, request, now_ms() + timeout_ms);

    if (!text)
        explain(timeout_ms, why, bytes);
    return text;
}

/* Return a connected socket, or -1 with errno. */
static int connect_one(const struct addrinfo *a, int64_t deadline)
{
    const int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                          a->ai_protocol);
    int error = 0;
    socklen_t len = sizeof(error);

    if (fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen) == 0)
        return fd;
    if ((errno != EINPROGRESS && errno != EINTR) || !wait_for(fd, POLLOUT, deadline) ||
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (!error)
        return fd;
    close(fd);
    errno = error;
    return -1;
}

/* Try the addresses in turn. Each one gets an equal share of the time that is left, so
 * one that never answers does not consume the time of the others. */
static int connect_any(const struct addrinfo *list, int64_t deadline)
{
    int fd = -1, n = 0;

    errno = EADDRNOTAVAIL;
    for (const struct addrinfo *a = list; a; a = a->ai_next)
        n++;
    for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
        fd = connect_one(a, now_ms() + (deadline - now_ms()) / n--);
    return fd;
}

/* Remove the header of a response in place. Return false if it is not a success. */
static bool keep_body(char *response)
{
    const char *body = strstr(response, "\r\n\r\n");

    if (!body || strncmp(response, "HTTP/1.", 7) != 0 ||
        strncmp(response + 8, " 200 ", 5) != 0)
        return false;
    memmove(response, body + 4, strlen(body + 4) + 1);
    return true;
}

/* Return the name of the host for the request. On loopback tribd accepts only names of
 * loopback, so numeric addresses become "localhost"; elsewhere it accepts any name. */
static const char *request_host(const char *host)
{
    unsigned char any[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, host, any) == 1 || inet_pton(AF_INET6, host, any) == 1
               ? "localhost"
               : host;
}

char *tool_tribd_status(const char *host, const char *port, int timeout_ms, char *why,
                        size_t bytes)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list;
    char request[512], *text = NULL;
    const int unresolved = getaddrinfo(host, port, &hints, &list);
    const int64_t deadline = now_ms() + timeout_ms;

    if (unresolved) {
        snprintf(why, bytes, "%s", gai_strerror(unresolved));
        return NULL;
    }
    /* HTTP/1.0: the response is not chunked and ends with the connection. */
    snprintf(request, sizeof(request),
             "GET /status HTTP/1.0\r\nHost: %.255s:%.15s\r\n\r\n", request_host(host),
             port);
    const int fd = connect_any(list, deadline);
    if (fd >= 0)
        text = exchange(fd, request, deadline);
    if (!text)
        explain(timeout_ms, why, bytes);
    if (fd >= 0)
        close(fd);
    freeaddrinfo(list);
    if (text && !keep_body(text)) {
        snprintf(why, bytes, "the server is not a tribd");
        free(text);
        text = NULL;
    }
    return text;
}
