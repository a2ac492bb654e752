/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp: receiving frames. Heads and small payloads are received through the buffer,
 * large payloads directly at their destination. All input here is untrusted.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "transport/tcp/tcp.h"

enum {
    LARGE = 16384, /* bytes of a payload that should bypass the buffer */
    SMALL_READ = 4096, /* buffer bytes read along with large payloads: the next heads */
    BETWEEN = 4, /* small frames allowed between two large ones */
};

/* Large payloads follow each other, with a few control frames between them. Payload
 * bytes that land in the buffer are copied once more, so read only little into it. */
static size_t room_of(const struct tcp_inlet *in)
{
    size_t room = TCP_BUFFER - in->have;

    return in->small_reads && room > SMALL_READ ? SMALL_READ : room;
}

/* If fewer bytes come than fit, the socket is empty: asking again would waste a system
 * call. */
static ssize_t receive(struct tcp_inlet *in)
{
    size_t room = room_of(in);
    struct iovec iov[2] = {{in->to, in->left}, {in->buf + in->have, room}};
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};
    ssize_t got;

    do {
        got = in->in_payload ? recvmsg(in->fd, &m, MSG_DONTWAIT)
                             : recv(in->fd, in->buf + in->have, room, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    in->dry = got > 0 && (size_t)got < room + (in->in_payload ? in->left : 0);
    return got;
}

/* Read from the socket: first to the payload's destination, then into the buffer.
 * Return 0: nothing now; negative: the stream has ended. */
static ssize_t read_bytes(struct tcp_inlet *in)
{
    if (in->at && in->at == in->have)
        in->at = in->have = 0;
    ssize_t got = receive(in);
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : -1;
    in->heard = true;
    size_t rest = (size_t)got;
    if (in->in_payload) {
        size_t direct = rest < in->left ? rest : in->left;
        in->to += direct;
        in->left -= direct;
        rest -= direct;
    }
    in->have += rest;
    return got;
}

/* Move buffered payload bytes to their destination. */
static void read_payload(struct tcp_inlet *in)
{
    size_t n = in->have - in->at < in->left ? in->have - in->at : in->left;

    if (n == 0)
        return;
    memcpy(in->to, in->buf + in->at, n);
    in->to += n;
    in->left -= n;
    in->at += n;
}

/* Take the next head if the buffer holds all of it; otherwise move the buffered bytes
 * to the front. */
static bool read_head(struct tcp_inlet *in)
{
    if (in->have - in->at < sizeof(in->head)) {
        memmove(in->buf, in->buf + in->at, in->have - in->at);
        in->have -= in->at;
        in->at = 0;
        return false;
    }
    memcpy(&in->head, in->buf + in->at, sizeof(in->head));
    in->at += sizeof(in->head);
    return true;
}

/* Return false if the connection is no longer usable. */
static bool begin_frame(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];
    struct tcp_inlet *in = &p->in;
    const struct tcp_head *h = &in->head;

    if (h->magic == TCP_MAGIC && h->kind == TCP_WAKE && h->len == 0)
        return true;
    if (h->magic == TCP_MAGIC && h->kind == TCP_DISCONNECT) {
        p->got_disconnect = true;
        trib_tcp_mark_lost(tcp, peer, "process %d has left", p->base.who.pid);
        return true;
    }
    if (h->magic == TCP_MAGIC && h->kind == TCP_GIVEN_UP && h->len == 0) {
        trib_tcp_given_up(tcp, peer);
        return true;
    }
    if (h->magic == TCP_MAGIC && h->kind == TCP_LAST && trib_tcp_handle_last(tcp, peer))
        return true;
    if (h->magic != TCP_MAGIC || (h->kind != TCP_WRITE && h->kind != TCP_QUIET)) {
        trib_tcp_blame(tcp, peer, "process %d sent an invalid frame", p->base.who.pid);
        return false;
    }
    in->to = h->len ? trib_tcp_place(tcp, h) : NULL;
    if (h->len && !in->to) {
        trib_tcp_blame(tcp, peer, "process %d wrote outside a region", p->base.who.pid);
        return false;
    }
    in->left = (size_t)h->len;
    in->in_payload = true;
    if (h->len >= LARGE)
        in->small_reads = BETWEEN;
    else if (in->small_reads)
        in->small_reads--;
    return true;
}

int trib_tcp_receive(struct tcp *tcp, int peer, struct trib_event *events, int max)
{
    struct tcp_inlet *in = &tcp->peers[peer].in;
    int n = 0;

    in->dry = false;
    while (n < max && in->fd >= 0) {
        if (in->in_payload) {
            read_payload(in);
            if (in->left == 0) {
                in->in_payload = false;
                if (in->head.kind == TCP_WRITE)
                    events[n++] = (struct trib_event){.kind = TRIB_EVENT_ARRIVED,
                                                      .peer = peer,
                                                      .imm = in->head.imm,
                                                      .len = in->head.len};
                continue;
            }
        } else if (read_head(in)) {
            if (!begin_frame(tcp, peer))
                trib_tcp_close_inlet(tcp, peer);
            continue;
        }
        ssize_t got = in->seal  ? trib_tcp_read_record(in)
                      : in->dry ? 0
                                : read_bytes(in);
        if (got == 0)
            break;
        if (got == TCP_FORGED)
            trib_tcp_forged(tcp, peer);
        if (got < 0) {
            trib_tcp_stream_ended(tcp, peer);
            trib_tcp_close_inlet(tcp, peer);
        }
    }
    in->buffered = n == max && in->fd >= 0;
    return n;
}
