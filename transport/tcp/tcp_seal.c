/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp: frames in encrypted records (sealed_record.h), if TRIB_SEAL is set.
 *
 * The stream of frames, heads and payload, is cut into records of at most TCP_RECORD
 * bytes. The bytes are copied from their source and encrypted in the copy. The receiver
 * decrypts a record into the inlet's buffer, and copies payload from there to its
 * destination. So registered memory never holds a byte of a record whose tag was wrong.
 * Both copies stay within a core's cache, and cost little compared with the cipher.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "transport/tcp/tcp.h"

/* record size of a control frame */
enum { CONTROL_RECORD = sizeof(struct tcp_head) + TRIB_RECORD_MORE };

bool trib_tcp_alloc_seals(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];

    assert(peer >= 0 && peer < tcp->size);
    if (tcp->seals && !p->seals) {
        struct tcp_seals *seals = calloc(1, sizeof(*seals));
        pthread_mutex_lock(&tcp->lock);
        p->seals = seals;
        pthread_mutex_unlock(&tcp->lock);
    }
    return !tcp->seals || p->seals;
}

void trib_tcp_free_seals(struct tcp_peer *p)
{
    if (!p->seals)
        return;
    trib_record_wipe(&p->seals->own_out);
    trib_record_wipe(&p->seals->own_in);
    trib_record_wipe(&p->seals->in_out);
    trib_record_wipe(&p->seals->in_in);
    free(p->seals);
    p->seals = NULL;
}

static void begin(const struct tcp *tcp, const struct trib_proof *about,
                  struct trib_records *caller, struct trib_records *listener)
{
    const bool aes = (about->more & about->more >> 16 & TCP_HAS_AES) != 0;

    assert(tcp_has_secret(tcp) && about->step == TRIB_PROOF_DONE);
    trib_record_begin(caller, tcp->secret, about, TRIB_PROOF_CALLER, aes);
    trib_record_begin(listener, tcp->secret, about, TRIB_PROOF_LISTENER, aes);
}

void trib_tcp_seal_own(struct tcp *tcp, int peer, const struct trib_proof *about)
{
    struct tcp_seals *s = tcp->peers[peer].seals;

    if (s)
        begin(tcp, about, &s->own_out, &s->own_in);
}

void trib_tcp_seal_in(struct tcp *tcp, int peer, const struct trib_proof *about)
{
    struct tcp_seals *s = tcp->peers[peer].seals;

    if (s)
        begin(tcp, about, &s->in_in, &s->in_out);
}

/* Outgoing ------------------------------------------------------------------------- */

void trib_tcp_reply(struct tcp *tcp, int peer, int fd, enum tcp_kind kind)
{
    const struct tcp_head head = {.magic = TCP_MAGIC, .kind = kind, .off = TCP_VERSION};
    struct tcp_seals *s = tcp->peers[peer].seals;
    uint8_t record[CONTROL_RECORD];

    if (!s) {
        trib_tcp_send_control(fd, kind, TCP_NOT_REFUSED);
        return;
    }
    memcpy(record + sizeof(struct trib_record_head), &head, sizeof(head));
    pthread_mutex_lock(&tcp->lock);
    if (s->in_out.sodium)
        (void)!send(fd, record, trib_record_close(&s->in_out, record, sizeof(head)),
                    MSG_DONTWAIT | MSG_NOSIGNAL);
    pthread_mutex_unlock(&tcp->lock);
}

/* Make a record of as much of the queue as fits. */
static void fill(struct tcp_peer *p, const struct iovec *iov, int n)
{
    struct tcp_seals *s = p->seals;
    struct tcp_record *r = &s->record;
    uint8_t *to = r->bytes + sizeof(struct trib_record_head);

    assert(n > 0 && r->sent == r->have);
    r->plain = 0;
    for (int i = 0; i < n && r->plain < TCP_RECORD; i++) {
        const size_t room = TCP_RECORD - r->plain;
        const size_t part = iov[i].iov_len < room ? iov[i].iov_len : room;
        memcpy(to + r->plain, iov[i].iov_base, part);
        r->plain += part;
    }
    r->have =
        trib_record_close(p->goes_back ? &s->in_out : &s->own_out, r->bytes, r->plain);
    r->sent = 0;
}

ssize_t trib_tcp_send_record(struct tcp_peer *p, const struct iovec *iov, int n)
{
    struct tcp_record *r = &p->seals->record;

    if (r->sent == r->have)
        fill(p, iov, n);
    ssize_t sent =
        send(p->fd, r->bytes + r->sent, r->have - r->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0)
        return sent;
    r->sent += (size_t)sent;
    return r->sent == r->have ? (ssize_t)r->plain : 0;
}

/* Incoming ------------------------------------------------------------------------- */

/* Return the length of the next record; 0: incomplete; SIZE_MAX: not a record. */
static size_t next_bytes(const struct tcp_inlet *in)
{
    struct trib_record_head head;

    if (in->raw_have - in->raw_at < sizeof(head))
        return 0;
    memcpy(&head, in->raw + in->raw_at, sizeof(head));
    if (head.magic != TRIB_RECORD_MAGIC || head.len == 0 || head.len > TCP_RECORD)
        return SIZE_MAX;
    return head.len + TRIB_RECORD_MORE;
}

/* Read from the socket. Return values as trib_tcp_read_record. */
static ssize_t fetch(struct tcp_inlet *in)
{
    ssize_t got;

    if (in->dry)
        return 0;
    if (in->raw_at) {
        memmove(in->raw, in->raw + in->raw_at, in->raw_have - in->raw_at);
        in->raw_have -= in->raw_at;
        in->raw_at = 0;
    }
    const size_t room = TCP_RAW - in->raw_have;
    do {
        got = recv(in->fd, in->raw + in->raw_have, room, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : -1;
    in->heard = true;
    in->dry = (size_t)got < room;
    in->raw_have += (size_t)got;
    return got;
}

/* On entry the buffer holds less than a head, so it has room for a record. */
ssize_t trib_tcp_read_record(struct tcp_inlet *in)
{
    size_t whole = next_bytes(in);

    assert(in->have - in->at < sizeof(struct tcp_head));
    while (whole == 0 || (whole != SIZE_MAX && in->raw_have - in->raw_at < whole)) {
        ssize_t got = fetch(in);
        if (got <= 0)
            return got;
        whole = next_bytes(in);
    }
    if (in->at == in->have)
        in->at = in->have = 0;
    if (whole == SIZE_MAX ||
        !trib_record_open(in->seal, in->raw + in->raw_at, in->buf + in->have))
        return TCP_FORGED;
    in->raw_at += whole;
    in->have += whole - TRIB_RECORD_MORE;
    return (ssize_t)whole;
}

/* Read a control frame once it is complete, and no byte after it: frames may follow. */
int trib_tcp_read_control(struct tcp_peer *p, struct tcp_head *head, bool *sealed)
{
    uint8_t bytes[CONTROL_RECORD];
    struct trib_record_head first = {0};
    ssize_t n = recv(p->own, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_PEEK);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return -1;
    memcpy(&first, bytes, (size_t)n < sizeof(first) ? (size_t)n : sizeof(first));
    *sealed = p->seals && p->seals->own_in.sodium && first.magic == TRIB_RECORD_MAGIC;
    const size_t whole = *sealed ? sizeof(bytes) : sizeof(*head);
    if ((size_t)n < whole)
        return trib_net_is_truncated(p->own, whole) ? -1 : 0;
    (void)!recv(p->own, bytes, whole, MSG_DONTWAIT);
    if (!*sealed) {
        memcpy(head, bytes, sizeof(*head));
        if (head->magic == TCP_MAGIC)
            return 1;
        return p->seals ? TCP_FORGED : -1;
    }
    return first.len == sizeof(*head) &&
                   trib_record_open(&p->seals->own_in, bytes, (uint8_t *)head) &&
                   head->magic == TCP_MAGIC
               ? 1
               : TCP_FORGED;
}
