/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/daemon/ctl_server.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/accept.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "base/time.h"

enum {
    PATIENCE_MS = 5000, /* time limit for a client to send its line */
    LATER_MS = 3000, /* and for a command; tribctl waits for TOOL_TRIBD_TIMEOUT_MS */
    LOOK_MS = 20, /* interval of checks whether a command is done */
};

struct client {
    int fd; /* -1: unused */
    uint64_t until;
    size_t n;
    char line[CTL_LINE];
    uint64_t later; /* number of a command that takes time; 0: none */
    bool done; /* its result */
    char say[CTL_LINE];
};

struct ctl_server {
    struct ctl_server_ops ops;
    struct sockaddr_un address;
    int listener;
    struct trib_accept_pause pause; /* pause of the listener after a failed accept() */
    struct client clients[CTL_CLIENTS];
};

/* Opening -------------------------------------------------------------------------- */

static bool answers(const struct sockaddr_un *address)
{
    const int fd =
        trib_fd_keep(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const bool yes = fd >= 0 && (connect(fd, (const struct sockaddr *)address,
                                         sizeof(*address)) == 0 ||
                                 errno == EAGAIN);

    if (fd >= 0)
        close(fd);
    return yes;
}

/* Remove a leftover socket; refuse other files and live sockets. */
static trib_status_t remove_stale(const struct sockaddr_un *address,
                                  struct trib_error *err)
{
    struct stat st;

    if (lstat(address->sun_path, &st) != 0)
        return TRIB_OK; /* if something is wrong, bind reports it */
    if (!S_ISSOCK(st.st_mode))
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "socket: %s exists and is not a socket: choose another path",
                         address->sun_path);
    if (answers(address))
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "socket: another tribd listens at %s: use separate paths",
                         address->sun_path);
    (void)unlink(address->sun_path);
    return TRIB_OK;
}

static trib_status_t listen_at(struct ctl_server *m, struct trib_error *err)
{
    trib_status_t st = remove_stale(&m->address, err);

    assert(m->listener < 0 && m->address.sun_path[0] == '/');
    if (st != TRIB_OK)
        return st;
    const int fd =
        trib_fd_keep(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    /* Set the mode before the socket has a name, so that no other user can open it in
     * between. */
    if (fd < 0 || fchmod(fd, S_IRUSR | S_IWUSR) != 0 ||
        bind(fd, (const struct sockaddr *)&m->address, sizeof(m->address)) != 0) {
        const char *cure = errno == ENOENT ? ": create its directory"
                           : errno == EROFS
                               ? ": tribd.service may only write in /run/tribd"
                           : errno == EACCES ? ": choose a directory of tribd's user"
                                             : "";
        st = trib_fail(err, TRIB_ERR_BOOT, "socket: cannot listen at %s: %m%s",
                       m->address.sun_path, cure);
        if (fd >= 0)
            close(fd);
        return st;
    }
    m->listener = fd;
    if (listen(fd, CTL_CLIENTS) != 0)
        st = trib_fail(err, TRIB_ERR_CONFIG, "socket: cannot listen at %s: %m",
                       m->address.sun_path);
    return st;
}

trib_status_t ctl_server_open(const char *path, const struct ctl_server_ops *ops,
                              struct trib_error *err, struct ctl_server **out)
{
    struct ctl_server *m = calloc(1, sizeof(*m));

    assert(path && ops->act);
    *out = NULL;
    if (!m)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory for a socket");
    m->ops = *ops;
    m->listener = -1;
    for (int i = 0; i < CTL_CLIENTS; i++)
        m->clients[i].fd = -1;
    m->address.sun_family = AF_UNIX;
    trib_status_t st = TRIB_OK;
    if (path[0] != '/' || strlen(path) >= sizeof(m->address.sun_path))
        st = trib_fail(
            err, TRIB_ERR_CONFIG,
            "socket: \"%.120s\" must start with / and have at most %zu characters",
            path, sizeof(m->address.sun_path) - 1);
    else
        strcpy(m->address.sun_path, path);
    if (st == TRIB_OK)
        st = listen_at(m, err);
    if (st != TRIB_OK) {
        ctl_server_close(m);
        return st;
    }
    *out = m;
    return TRIB_OK;
}

static void hang_up(struct client *c)
{
    assert(c->fd >= 0);
    close(c->fd);
    c->fd = -1;
}

void ctl_server_close(struct ctl_server *m)
{
    if (!m)
        return;
    for (int i = 0; i < CTL_CLIENTS; i++)
        if (m->clients[i].fd >= 0)
            hang_up(&m->clients[i]);
    if (m->listener >= 0) {
        (void)unlink(m->address.sun_path);
        close(m->listener);
    }
    free(m);
}

/* Serving -------------------------------------------------------------------------- */

static struct client *free_place(struct ctl_server *m)
{
    for (int i = 0; i < CTL_CLIENTS; i++)
        if (m->clients[i].fd < 0)
            return &m->clients[i];
    return NULL;
}

int ctl_server_poll(const struct ctl_server *m, struct pollfd *fds)
{
    int n = 0;
    bool room = false;

    if (!m)
        return 0;
    for (int i = 0; i < CTL_CLIENTS; i++) {
        const struct client *c = &m->clients[i];
        if (c->fd >= 0 && !c->later)
            fds[n++] = (struct pollfd){.fd = c->fd, .events = POLLIN};
        room |= c->fd < 0;
    }
    if (room && !trib_accept_paused(&m->pause))
        fds[n++] = (struct pollfd){.fd = m->listener, .events = POLLIN};
    return n;
}

uint64_t ctl_server_due(const struct ctl_server *m)
{
    for (int i = 0; m && i < CTL_CLIENTS; i++)
        if (m->clients[i].fd >= 0 && m->clients[i].later)
            return trib_deadline_ms(LOOK_MS);
    return m && trib_accept_paused(&m->pause) ? m->pause.until : UINT64_MAX;
}

/* Send the answer, which fits any socket buffer. */
static void answer(struct client *c)
{
    char line[CTL_LINE + 16];
    const int n =
        snprintf(line, sizeof(line), "%s: %s\n", c->done ? "ok" : "error", c->say);

    (void)send(c->fd, line, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
    hang_up(c);
}

/* Answer a command that takes time once it is done, or has taken too long. */
static void answer_later(const struct ctl_server *m, struct client *c)
{
    const bool settled = m->ops.is_settled(m->ops.arg, c->later);

    if (!settled && !trib_deadline_passed(c->until))
        return;
    if (!settled)
        (void)trib_text_append(
            c->say, sizeof(c->say),
            ", but not deleted yet: the disk is slow or refuses, see "
            "the log");
    answer(c);
}

/* Execute a received line. */
static void act(const struct ctl_server *m, struct client *c)
{
    char *what = strchr(c->line, ' ');

    if (what)
        *what++ = 0;
    struct ucred by = {.uid = UINT32_MAX};
    socklen_t bytes = sizeof(by);
    (void)getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &by, &bytes);
    const struct ctl_request request = {.verb = c->line,
                                        .what = what ? what : "",
                                        .uid = by.uid,
                                        .pid = (uint32_t)by.pid};
    c->say[0] = 0;
    c->done = m->ops.act(m->ops.arg, &request, c->say, sizeof(c->say), &c->later);
    c->until = trib_deadline_ms(LATER_MS);
    if (!c->later)
        answer(c);
}

static void step(const struct ctl_server *m, struct client *c)
{
    assert(c->n < sizeof(c->line));
    const ssize_t n =
        recv(c->fd, c->line + c->n, sizeof(c->line) - 1 - c->n, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        if (trib_deadline_passed(c->until))
            hang_up(c);
        return;
    }
    if (n <= 0) {
        hang_up(c);
        return;
    }
    c->n += (size_t)n;
    c->line[c->n] = 0;
    char *end = strchr(c->line, '\n');
    if (end) {
        *end = 0;
        act(m, c);
    } else if (c->n == sizeof(c->line) - 1) {
        hang_up(c);
    }
}

static void say_full(struct ctl_server *m, int error)
{
    if (trib_accept_failed(&m->pause, error))
        trib_log(
            m->ops.log, TRIB_LOG_WARN, "tribd",
            "cannot accept tribctl connections at %s: %s; %s; retrying every %d ms",
            m->address.sun_path, strerror(error), trib_accept_cure(error),
            TRIB_ACCEPT_PAUSE_MS);
}

void ctl_server_step(struct ctl_server *m)
{
    struct client *c;

    if (!m)
        return;
    while (!trib_accept_paused(&m->pause) && (c = free_place(m))) {
        c->fd = trib_fd_keep(
            accept4(m->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (c->fd < 0) {
            say_full(m, errno);
            break;
        }
        c->n = 0;
        c->later = 0;
        c->until = trib_deadline_ms(PATIENCE_MS);
    }
    for (int i = 0; i < CTL_CLIENTS; i++)
        if (m->clients[i].fd >= 0 && m->clients[i].later)
            answer_later(m, &m->clients[i]);
        else if (m->clients[i].fd >= 0)
            step(m, &m->clients[i]);
}
