/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/daemon/ctl_client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/dial.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/sockets.h"
#include "base/time.h"
#include "base/wait.h"

enum {
    PATIENCE_MS = 5000,
    ANSWER_MAX = 64 << 20, /* bytes; 4096 jobs with many ranks need several MB */
};

/* An exchange that ends when the server closes the connection. */
struct talk {
    int fd;
    uint64_t until;
    const char *with; /* address or path, for messages */
    struct trib_error *err;
};

/* Report why an exchange failed. */
static trib_status_t failed(const struct talk *t)
{
    if (errno != ETIMEDOUT)
        return trib_fail(t->err, TRIB_ERR_PEER_LOST, "%s: %m", t->with);
    return trib_fail(t->err, TRIB_ERR_TIMEOUT, "%s did not answer within %d s", t->with,
                     PATIENCE_MS / 1000);
}

static trib_status_t say(const struct talk *t, const char *text)
{
    const struct trib_dialled server = {.fd = t->fd, .deadline = t->until};

    return trib_dial_send(&server, text, strlen(text)) ? TRIB_OK : failed(t);
}

/* Receive until end of file and append a NUL. */
static trib_status_t hear(const struct talk *t, char **out)
{
    size_t n = 0, room = 1 << 16;
    char *text = malloc(room);
    trib_status_t st = text ? TRIB_OK : TRIB_ERR_NO_MEMORY;

    while (st == TRIB_OK) {
        const ssize_t got = recv(t->fd, text + n, room - n - 1, MSG_DONTWAIT);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR &&
            !(errno == EAGAIN && trib_wait_fd(t->fd, POLLIN, t->until, NULL)))
            st = failed(t);
        n += got > 0 ? (size_t)got : 0;
        if (st != TRIB_OK || n + 1 < room)
            continue;
        char *more = room < ANSWER_MAX ? realloc(text, room *= 2) : NULL;
        text = more ? more : text;
        st = more ? TRIB_OK : TRIB_ERR_NO_MEMORY;
    }
    if (st == TRIB_ERR_NO_MEMORY)
        (void)trib_fail(t->err, st, "out of memory for the answer of %s", t->with);
    if (st != TRIB_OK) {
        free(text);
        return st;
    }
    text[n] = 0;
    *out = text;
    return TRIB_OK;
}

/* Return the body of a response; NULL: not a response of tribd. */
static const char *body_of(const char *answer)
{
    const char *body = strstr(answer, "\r\n\r\n");

    if (!body || strncmp(answer, "HTTP/1.", 7) != 0 ||
        strncmp(answer + 8, " 200 ", 5) != 0)
        return NULL;
    return body + 4;
}

trib_status_t ctl_client_status(const char *address, struct trib_error *err, char **out)
{
    struct talk t = {
        .until = trib_deadline_ms(PATIENCE_MS), .with = address, .err = err};
    struct trib_tcp_root at;
    char why[160], *answer = NULL;

    *out = NULL;
    if (!trib_tcp_root_parse(address, &at))
        return trib_fail(err, TRIB_ERR_CONFIG, "http: \"%s\" is not host:port",
                         address);
    if (strcmp(at.host, "*") == 0) /* all addresses of this host */
        snprintf(at.host, sizeof(at.host), "localhost");
    t.fd = trib_sockets_connect(&at, t.until, NULL, why, sizeof(why));
    if (t.fd < 0)
        return trib_fail(err, TRIB_ERR_PEER_LOST, "cannot reach a tribd at %s: %s",
                         address, why);
    /* HTTP/1.0: the response is not chunked and ends with the connection. */
    trib_status_t st = say(&t, "GET /status HTTP/1.0\r\nHost: localhost\r\n\r\n");
    if (st == TRIB_OK)
        st = hear(&t, &answer);
    close(t.fd);
    if (st != TRIB_OK)
        return st;
    const char *body = body_of(answer);
    if (body)
        *out = strdup(body);
    free(answer);
    if (!body)
        return trib_fail(err, TRIB_ERR_PEER_LOST, "the server at %s is not a tribd",
                         address);
    return *out ? TRIB_OK
                : trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory for an answer");
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval limit = {.tv_sec = PATIENCE_MS / 1000};
    int fd;

    errno = ENAMETOOLONG;
    if (strlen(path) >= sizeof(address.sun_path))
        return -1;
    strcpy(address.sun_path, path);
    fd = trib_fd_keep(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (fd < 0)
        return -1;
    /* connect blocks while the listen queue is full. */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

trib_status_t ctl_client_command(const char *path, const char *line,
                                 struct trib_error *err, char *answer, size_t bytes,
                                 bool *done_out)
{
    struct talk t = {.with = path, .err = err};
    char *text = NULL;

    t.fd = connect_to(path);
    if (t.fd < 0)
        return trib_fail(err, TRIB_ERR_PEER_LOST, "cannot reach a tribd at %s: %m",
                         path);
    t.until = trib_deadline_ms(PATIENCE_MS);
    trib_status_t st = say(&t, line);
    if (st == TRIB_OK)
        st = say(&t, "\n");
    if (st == TRIB_OK)
        st = hear(&t, &text);
    close(t.fd);
    if (st != TRIB_OK)
        return st;
    *done_out = strncmp(text, "ok: ", 4) == 0;
    if (*done_out || strncmp(text, "error: ", 7) == 0)
        snprintf(answer, bytes, "%.*s", (int)strcspn(strchr(text, ' ') + 1, "\n"),
                 strchr(text, ' ') + 1);
    else
        st =
            trib_fail(err, TRIB_ERR_PEER_LOST, "the server at %s is not a tribd", path);
    free(text);
    return st;
}
