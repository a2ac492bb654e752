/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp: writes. Each write goes to the socket at once, as far as the kernel accepts it.
 * The rest waits in the peer's queue, and still refers to its source. Meanwhile a
 * helper checks every TRIB_HEARTBEAT_SOON_MS if the owner still polls, and sends in its
 * place if not: a peer may wait for the rest although the owner is done.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"
#include "transport/common/heartbeat.h"
#include "transport/tcp/tcp.h"

#define BATCH 16 /* entries per system call */
#define SMALL ((size_t)1024) /* bytes that are cheaper to copy than to send as a list */

static struct tcp_entry *entry_at(struct tcp_peer *p, uint32_t i)
{
    return &p->queue[i % TCP_QUEUE];
}

/* Collect the entries from `sent` on, up to the last one for this connection, without
 * the bytes already sent. */
static int gather(struct tcp_peer *p, struct iovec *iov)
{
    size_t skip = p->sent_bytes;
    int n = 0;

    for (uint32_t i = p->sent; i != p->tail && i - p->sent < BATCH; i++) {
        struct tcp_entry *e = entry_at(p, i);
        if (skip < sizeof(e->head)) {
            iov[n++] =
                (struct iovec){(uint8_t *)&e->head + skip, sizeof(e->head) - skip};
            skip = 0;
        } else {
            skip -= sizeof(e->head);
        }
        if (e->payload && e->head.len > skip)
            iov[n++] = (struct iovec){(void *)(uintptr_t)(e->payload + skip),
                                      (size_t)e->head.len - skip};
        skip = 0;
        /* With encryption, TCP_BOTH_WAYS after TCP_LAST is a record of its own: the
         * inlet does not read it. */
        if (e->head.kind == TCP_LAST || (p->seals && e->head.kind == TCP_BOTH_WAYS))
            break;
    }
    assert(n <= 2 * BATCH);
    return n;
}

/* Let the next poll or wait notice room in a socket that was full. */
static void await_room(struct tcp *tcp, struct tcp_peer *p, bool yes)
{
    if (p->awaits_room == yes)
        return;
    trib_tcp_watch_for(tcp, p->fd, (int)(p - tcp->peers),
                       yes ? EPOLLIN | EPOLLOUT : EPOLLIN);
    p->awaits_room = yes;
    if (yes)
        trib_heartbeat_soon(tcp->local.heartbeat);
}

static void advance(struct tcp *tcp, struct tcp_peer *p, size_t bytes)
{
    bytes += p->sent_bytes;
    while (p->sent != p->tail) {
        const struct tcp_entry *e = entry_at(p, p->sent);
        size_t whole = sizeof(e->head) + (e->payload ? (size_t)e->head.len : 0);
        if (bytes < whole)
            break;
        bytes -= whole;
        p->sent++;
        if (e->head.kind == TCP_LAST) {
            await_room(tcp, p, false);
            p->fd = p->next_fd;
            p->goes_back = true;
        }
    }
    assert(bytes == 0 || p->sent != p->tail);
    p->sent_bytes = bytes;
}

/* Sending one buffer is about 0.1 us faster than sending a list. */
static ssize_t send_list(int fd, struct iovec *iov, int n)
{
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = (size_t)n};
    uint8_t small[SMALL];
    size_t bytes = 0;

    for (int i = 0; i < n; i++) {
        if (iov[i].iov_len > sizeof(small) - bytes)
            return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
        memcpy(small + bytes, iov[i].iov_base, iov[i].iov_len);
        bytes += iov[i].iov_len;
    }
    return send(fd, small, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* tcp.lock is held. */
static void push(struct tcp *tcp, struct tcp_peer *p)
{
    struct iovec iov[2 * BATCH];

    while (p->fd >= 0 && p->sent != p->tail) {
        const int parts = gather(p, iov);
        ssize_t n = p->seals ? trib_tcp_send_record(p, iov, parts)
                             : send_list(p->fd, iov, parts);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) { /* full; or broken, which the end of the stream will show */
            await_room(tcp, p, errno == EAGAIN);
            return;
        }
        advance(tcp, p, (size_t)n);
    }
    if (p->fd >= 0)
        await_room(tcp, p, false);
}

static bool has_backlog(const struct tcp_peer *p)
{
    return p->head != p->tail;
}

bool trib_tcp_flush(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];

    pthread_mutex_lock(&tcp->lock);
    push(tcp, p);
    bool done = p->sent == p->tail;
    pthread_mutex_unlock(&tcp->lock);
    return done;
}

bool trib_tcp_push_for_owner(struct tcp *tcp)
{
    const uint32_t polls = atomic_load_explicit(&tcp->polls, memory_order_relaxed);
    const bool is_silent = polls == tcp->polls_seen;
    bool waits = false;

    tcp->polls_seen = polls;
    pthread_mutex_lock(&tcp->lock);
    for (int i = 0; i < tcp->size; i++) {
        struct tcp_peer *p = &tcp->peers[i];
        if (is_silent && p->awaits_room)
            push(tcp, p);
        waits |= p->awaits_room && p->fd >= 0;
    }
    pthread_mutex_unlock(&tcp->lock);
    return waits;
}

/* Drop sent entries at the head that need no WRITE_DONE. */
static void drop_done(struct tcp *tcp, struct tcp_peer *p)
{
    bool had = has_backlog(p);

    assert(p->sent - p->head <= TCP_QUEUE && p->tail - p->sent <= TCP_QUEUE);
    while (p->head != p->sent && !entry_at(p, p->head)->signal)
        p->head++;
    if (had && !has_backlog(p))
        atomic_fetch_sub_explicit(&tcp->backlog, 1, memory_order_relaxed);
}

/* Append all entries or none. tcp.lock is held. */
static trib_status_t append(struct tcp *tcp, struct tcp_peer *p,
                            const struct tcp_entry *entries, uint32_t n)
{
    if ((p->fd < 0 && p->proof.step != TRIB_PROOF_BEGUN) ||
        TCP_QUEUE - (p->tail - p->head) < n)
        return TRIB_ERR_NO_RESOURCE;
    if (!has_backlog(p))
        atomic_fetch_add_explicit(&tcp->backlog, 1, memory_order_relaxed);
    for (uint32_t i = 0; i < n; i++)
        *entry_at(p, p->tail++) = entries[i];
    /* A write without an event waits for the next write with one: this saves a system
     * call and a TCP segment. If there is no room for the next write, a poll sends the
     * quiet one. */
    if (entries[0].head.kind == TCP_QUIET)
        return TRIB_OK;
    push(tcp, p);
    drop_done(tcp, p);
    return TRIB_OK;
}

static trib_status_t enqueue(struct tcp *tcp, struct tcp_peer *p,
                             const struct tcp_entry *entry)
{
    pthread_mutex_lock(&tcp->lock);
    trib_status_t status = append(tcp, p, entry, 1);
    pthread_mutex_unlock(&tcp->lock);
    return status;
}

bool trib_tcp_enqueue_move(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];
    struct tcp_entry move[2] = {
        {.head = {.magic = TCP_MAGIC, .kind = TCP_LAST}},
        {.head = {.magic = TCP_MAGIC, .kind = TCP_BOTH_WAYS}},
    };

    pthread_mutex_lock(&tcp->lock);
    p->next_fd = p->in.fd;
    trib_status_t status = append(tcp, p, move, 2);
    if (status != TRIB_OK)
        p->next_fd = -1;
    pthread_mutex_unlock(&tcp->lock);
    return status == TRIB_OK;
}

trib_status_t trib_tcp_write(struct trib_transport *t, int peer,
                             const struct trib_write *write)
{
    struct tcp *tcp = tcp_of(t);
    struct tcp_peer *p = &tcp->peers[peer];
    struct tcp_entry entry = {
        .head = {.magic = TCP_MAGIC,
                 .kind = write->quiet ? TCP_QUIET : TCP_WRITE,
                 .imm = write->imm,
                 .len = write->len},
        .signal = write->signal,
        .token = write->token,
    };

    assert(peer >= 0 && peer < tcp->size);
    trib_status_t status = trib_peer_check_write(p->base.state);
    if (status != TRIB_OK)
        return status;
    if (write->len) {
        status = trib_table_check(write, peer, tcp->err);
        if (status != TRIB_OK)
            return status;
        entry.head.region = ((const struct trib_table_remote *)write->remote)->region;
        entry.head.off = write->remote_off;
        entry.payload =
            ((const struct trib_table_region *)write->local)->ptr + write->local_off;
    }
    return enqueue(tcp, p, &entry);
}

static bool is_detachable(const struct tcp_entry *e)
{
    return e->signal && e->payload && !e->detached;
}

/* Copy the sources to `copy`. tcp.lock is held. */
static void detach_queue(struct tcp_peer *p, uint8_t *copy)
{
    for (uint32_t i = p->sent; i != p->tail; i++) {
        struct tcp_entry *e = entry_at(p, i);
        if (!is_detachable(e))
            continue;
        memcpy(copy, e->payload, (size_t)e->head.len);
        e->payload = copy;
        e->detached = true;
        copy += e->head.len;
    }
    p->has_detached = true;
}

/* The copy lives as long as the transport. */
bool trib_tcp_detach(struct trib_transport *t, int peer)
{
    struct tcp *tcp = tcp_of(t);
    struct tcp_peer *p = &tcp->peers[peer];
    struct trib_table_region *copy = NULL;
    size_t bytes = 0;

    assert(peer >= 0 && peer < tcp->size);
    pthread_mutex_lock(&tcp->lock);
    for (uint32_t i = p->sent; i != p->tail; i++)
        bytes += is_detachable(entry_at(p, i)) ? (size_t)entry_at(p, i)->head.len : 0;
    bool done = !bytes || trib_table_alloc(&tcp->table, bytes, NULL, &copy) == TRIB_OK;
    if (copy) {
        copy->closed = true;
        detach_queue(p, copy->ptr);
    }
    pthread_mutex_unlock(&tcp->lock);
    return done;
}

/* If the queue is full, the peer's wait ends anyway. */
void trib_tcp_wake(struct trib_transport *t, int peer)
{
    struct tcp *tcp = tcp_of(t);
    struct tcp_entry wake = {.head = {.magic = TCP_MAGIC, .kind = TCP_WAKE}};
    uint64_t one = 1;

    assert(peer >= 0 && peer < tcp->size);
    if (peer != tcp->self)
        (void)enqueue(tcp, &tcp->peers[peer], &wake);
    else if (write(tcp->wakeup_fd, &one, sizeof(one)) < 0)
        return; /* a wakeup is pending already */
}

/* Send TCP_DISCONNECT on the connection that carries the frames, and on the peer's
 * connection if that is another one. */
void trib_tcp_send_disconnect(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];
    struct tcp_entry notice = {.head = {.magic = TCP_MAGIC, .kind = TCP_DISCONNECT}};

    pthread_mutex_lock(&tcp->lock);
    (void)append(tcp, p, &notice, 1);
    bool there = p->in.fd < 0 || p->fd == p->in.fd || p->next_fd == p->in.fd;
    pthread_mutex_unlock(&tcp->lock);
    if (!there)
        trib_tcp_reply(tcp, peer, p->in.fd, TCP_DISCONNECT);
}

void trib_tcp_send_given_up(struct tcp *tcp, int peer)
{
    const struct tcp_entry notice = {
        .head = {.magic = TCP_MAGIC, .kind = TCP_GIVEN_UP}};
    struct tcp_peer *p = &tcp->peers[peer];

    pthread_mutex_lock(&tcp->lock);
    push(tcp, p);
    const bool whole = p->fd >= 0 && p->sent_bytes == 0 &&
                       (!p->seals || p->seals->record.sent == p->seals->record.have);
    if (whole) {
        if (has_backlog(p))
            atomic_fetch_sub_explicit(&tcp->backlog, 1, memory_order_relaxed);
        p->head = p->tail = p->sent;
        (void)append(tcp, p, &notice, 1);
    }
    const int back = p->in.fd != p->fd ? p->in.fd : -1;
    pthread_mutex_unlock(&tcp->lock);
    if (back >= 0)
        trib_tcp_reply(tcp, peer, back, TCP_GIVEN_UP);
}

/* Report detached writes, which the kernel has not accepted yet. */
static int reap_detached(struct tcp_peer *p, struct trib_event *events, int max,
                         int peer)
{
    int n = 0;

    for (uint32_t i = p->sent; i != p->tail; i++) {
        struct tcp_entry *e = entry_at(p, i);
        if (!e->detached || !e->signal)
            continue;
        if (n == max)
            return n;
        events[n++] = (struct trib_event){
            .kind = TRIB_EVENT_WRITE_DONE, .peer = peer, .token = e->token};
        e->signal = false;
    }
    p->has_detached = false;
    return n;
}

/* Report the writes that the kernel has accepted. */
static int reap_peer(struct tcp *tcp, int peer, struct trib_event *events, int max)
{
    struct tcp_peer *p = &tcp->peers[peer];
    int n = 0;

    push(tcp, p);
    drop_done(tcp, p);
    while (n < max && p->head != p->sent) {
        events[n++] = (struct trib_event){.kind = TRIB_EVENT_WRITE_DONE,
                                          .peer = peer,
                                          .token = entry_at(p, p->head)->token};
        entry_at(p, p->head)->signal = false;
        drop_done(tcp, p);
    }
    if (p->has_detached)
        n += reap_detached(p, events + n, max - n, peer);
    return n;
}

int trib_tcp_reap(struct tcp *tcp, struct trib_event *events, int max)
{
    int n = 0;

    if (atomic_load_explicit(&tcp->backlog, memory_order_relaxed) == 0)
        return 0;
    pthread_mutex_lock(&tcp->lock);
    for (int i = 0; i < tcp->size && n < max; i++) {
        if (tcp->peers[i].queue && has_backlog(&tcp->peers[i]))
            n += reap_peer(tcp, i, events + n, max - n);
    }
    pthread_mutex_unlock(&tcp->lock);
    return n;
}
