/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/protocol/control_conn.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

trib_status_t trib_control_conn_new(int fd, struct trib_control_conn **out)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK)) {
        int error = errno;
        close(fd);
        errno = error;
        return TRIB_ERR_SYSTEM;
    }
    /* Fails on a unix-domain socket, which needs no such option. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    struct trib_control_conn *conn = malloc(sizeof(*conn));
    if (!conn) {
        close(fd);
        return TRIB_ERR_NO_MEMORY;
    }
    /* Do not clear the buffers: an unauthenticated connection then touches few of their
     * pages. */
    memset(conn, 0, offsetof(struct trib_control_conn, in));
    conn->fd = fd;
    *out = conn;
    return TRIB_OK;
}

void trib_control_conn_free(struct trib_control_conn *conn)
{
    if (!conn)
        return;
    if (conn->fd >= 0)
        close(conn->fd);
    free(conn);
}

trib_status_t trib_control_conn_take(struct trib_control_conn *conn, uint32_t seal,
                                     enum trib_control_role from,
                                     struct trib_control_frame *out)
{
    trib_status_t status = trib_control_parse(
        conn->in + conn->in_begin, conn->in_end - conn->in_begin, seal, from, out);

    if (status == TRIB_OK)
        conn->in_begin += trib_control_frame_bytes(out);
    assert(conn->in_begin <= conn->in_end);
    return status;
}

trib_status_t trib_control_conn_fill(struct trib_control_conn *conn)
{
    memmove(conn->in, conn->in + conn->in_begin, conn->in_end - conn->in_begin);
    conn->in_end -= conn->in_begin;
    conn->in_begin = 0;
    /* A whole frame fits, and the caller took all whole frames. */
    assert(conn->in_end < sizeof(conn->in));
    ssize_t n = recv(conn->fd, conn->in + conn->in_end, sizeof(conn->in) - conn->in_end,
                     MSG_DONTWAIT);
    if (n > 0) {
        conn->in_end += (size_t)n;
        return TRIB_OK;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        errno = conn->broken;
        return conn->broken ? TRIB_ERR_PEER_LOST : TRIB_INPROGRESS;
    }
    errno = n < 0 ? errno : 0;
    return TRIB_ERR_PEER_LOST;
}

uint8_t *trib_control_conn_room(struct trib_control_conn *conn, size_t n)
{
    if (!trib_control_conn_fits(conn, n))
        return NULL;
    if (n > sizeof(conn->out) - conn->out_end) {
        memmove(conn->out, conn->out + conn->out_begin,
                conn->out_end - conn->out_begin);
        conn->out_end -= conn->out_begin;
        conn->out_begin = 0;
    }
    assert(n <= sizeof(conn->out) - conn->out_end);
    return conn->out + conn->out_end;
}

void trib_control_conn_add(struct trib_control_conn *conn, size_t n)
{
    assert(n <= sizeof(conn->out) - conn->out_end);
    conn->out_end += n;
}

trib_status_t trib_control_conn_flush(struct trib_control_conn *conn)
{
    assert(conn->out_begin <= conn->out_end && conn->out_end <= sizeof(conn->out));
    while (conn->out_begin < conn->out_end && !conn->broken) {
        ssize_t n = send(conn->fd, conn->out + conn->out_begin,
                         conn->out_end - conn->out_begin, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return TRIB_INPROGRESS;
        if (n < 0)
            conn->broken = errno;
        else
            conn->out_begin += (size_t)n;
    }
    conn->out_begin = conn->out_end = 0;
    return TRIB_OK;
}

short trib_control_conn_events(const struct trib_control_conn *conn)
{
    return (short)(POLLIN | (conn->out_begin < conn->out_end ? POLLOUT : 0));
}
