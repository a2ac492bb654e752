/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tap in the wire between two sides of a pair: it passes on what they send, in both
 * directions of each connection, keeps a copy, and changes one record as asked
 * to.
 *
 * Side i gets the other side's address with the tap's port in it. tap_pump moves what
 * is there and returns; nothing of it blocks.
 */
#ifndef TESTS_TRANSPORT_TCP_WIRETAP_H
#define TESTS_TRANSPORT_TCP_WIRETAP_H

#include "tests/transport/pair.h"

#include <errno.h>

#include "transport/common/sealed_record.h"
#include "transport/tcp/tcp.h"

enum {
    TAP_CALLS = 4,
    TAP_ROOM = 1 << 20, /* bytes of one direction that are not passed on yet */
    TAP_SEEN = 4 << 20, /* bytes of all directions that are kept */
    TAP_COPY = 1 << 17, /* bytes of one record that is kept or held */
};

enum tap_deed {
    TAP_NOTHING,
    TAP_FLIP, /* one bit of byte `at` */
    TAP_CUT, /* the connection ends at byte `at` */
    TAP_DROP,
    TAP_KEEP, /* passed on, and a copy kept */
    TAP_HOLD, /* passed on after the next one */
    TAP_REFLECT, /* sent back to its writer, and not passed on */
};

/* One direction of a connection. */
struct tap_way {
    int from, to;
    int writer; /* the side whose bytes these are */
    bool calls; /* it has made the connection: a hello and a proof come first, else a
                 * challenge */
    size_t handshake; /* bytes of those that are still to come */
    bool ended;
    uint8_t *bytes;
    size_t have;
};

struct tap {
    struct trib_net_port port[2]; /* [i]: in the place of side i's */
    uint16_t real[2];
    bool sealed; /* records follow the handshakes */
    uint32_t hello_loses, challenge_loses; /* flags that the tap clears on both sides */
    struct tap_way ways[2 * TAP_CALLS];
    int n;
    enum tap_deed deed; /* on the next record of side `writer` */
    int writer;
    size_t at;
    int done; /* deeds */
    uint8_t copy[TAP_COPY];
    size_t copied;
    bool holds; /* the copy is still to be passed on */
    uint8_t *seen;
    size_t n_seen;
};

static inline void tap_open(struct tap *tap, bool sealed)
{
    memset(tap, 0, sizeof(*tap));
    tap->sealed = sealed;
    tap->seen = malloc(TAP_SEEN);
    assert_non_null(tap->seen);
    for (int i = 0; i < 2; i++)
        assert_ok(trib_net_bind("tap", SOCK_STREAM, 0, 1, &tap->port[i], NULL));
}

static inline void tap_close(struct tap *tap)
{
    for (int i = 0; i < tap->n; i++) {
        close(tap->ways[i].from); /* which is `to` of its sister */
        free(tap->ways[i].bytes);
    }
    for (int i = 0; i < 2; i++)
        close(tap->port[i].fd);
    free(tap->seen);
}

/* Side i's address as the other side is to have it. */
static inline void tap_into(struct tap *tap, int i, struct trib_address *address)
{
    struct trib_ip_address a;

    memcpy(&a, address->bytes, sizeof(a));
    tap->real[i] = a.port;
    a.port = tap->port[i].port;
    memcpy(address->bytes, &a, sizeof(a));
}

static inline void tap_send(const struct tap_way *w, const uint8_t *bytes, size_t n)
{
    if (n) /* the side may have closed */
        (void)send(w->to, bytes, n, MSG_NOSIGNAL);
}

static inline void tap_end(struct tap_way *w)
{
    w->ended = true;
    (void)shutdown(w->to, SHUT_WR);
}

static inline void tap_accept(struct tap *tap, int listener)
{
    uint8_t ip[16];
    int caller = trib_accept_next(tap->port[listener].fd, ip);

    if (caller < 0)
        return;
    trib_net_accepted(&tap->port[listener], caller, ip);
    int callee = connect_to(trib_net_loopback, tap->real[listener],
                                     trib_deadline_ms(2000));
    assert_true(callee >= 0 && tap->n < 2 * TAP_CALLS);
    tap->ways[tap->n++] =
        (struct tap_way){.from = caller,
                         .to = callee,
                         .writer = !listener,
                         .calls = true,
                         .handshake = sizeof(struct tcp_hello) + TRIB_PROOF_BYTES,
                         .bytes = malloc(TAP_ROOM)};
    tap->ways[tap->n++] = (struct tap_way){.from = callee,
                                           .to = caller,
                                           .writer = listener,
                                           .handshake = sizeof(struct tcp_challenge),
                                           .bytes = malloc(TAP_ROOM)};
}

/* A complete piece of a handshake, with its flags changed where that is asked
 * for. */
static inline size_t tap_handshake(struct tap *tap, struct tap_way *w)
{
    struct tcp_hello h;
    struct tcp_challenge c;
    const bool hello = w->calls && w->handshake > TRIB_PROOF_BYTES;
    const size_t n = hello ? sizeof(h) : w->handshake;

    if (w->have < n)
        return 0;
    if (hello) {
        memcpy(&h, w->bytes, n);
        h.flags &= ~tap->hello_loses;
        memcpy(w->bytes, &h, n);
    } else if (!w->calls) {
        memcpy(&c, w->bytes, n);
        c.head.imm &= ~tap->challenge_loses;
        memcpy(w->bytes, &c, n);
    }
    tap_send(w, w->bytes, n);
    w->handshake -= n;
    return n;
}

/* A refusal, which is no record, is passed on as it comes. */
static inline size_t tap_record_bytes(const struct tap_way *w)
{
    struct trib_record_head head;

    if (w->have < sizeof(head))
        return 0;
    memcpy(&head, w->bytes, sizeof(head));
    if (head.magic != TRIB_RECORD_MAGIC)
        return w->have;
    return w->have < head.len + TRIB_RECORD_MORE ? 0 : head.len + TRIB_RECORD_MORE;
}

/* Does the deed to a record of n bytes. */
static inline void tap_act(struct tap *tap, struct tap_way *w, size_t n)
{
    const enum tap_deed deed = tap->deed;

    tap->deed = TAP_NOTHING;
    tap->done++;
    if (deed == TAP_FLIP)
        w->bytes[tap->at] ^= (uint8_t)(1u << tap->at % 8);
    assert_true(n <= sizeof(tap->copy));
    memcpy(tap->copy, w->bytes, n);
    tap->copied = n;
    tap->holds = deed == TAP_HOLD;
    if (deed == TAP_REFLECT)
        (void)send(w->from, w->bytes, n, MSG_NOSIGNAL);
    if (deed == TAP_FLIP || deed == TAP_KEEP)
        tap_send(w, w->bytes, n);
    if (deed == TAP_CUT) {
        tap_send(w, w->bytes, tap->at);
        tap_end(w);
        (void)shutdown(w->from, SHUT_RDWR);
    }
}

static inline size_t tap_record(struct tap *tap, struct tap_way *w)
{
    const size_t n = tap_record_bytes(w);

    if (n && tap->deed && w->writer == tap->writer) {
        tap_act(tap, w, n);
    } else if (n) {
        tap_send(w, w->bytes, n);
        if (tap->holds && w->writer == tap->writer)
            tap_send(w, tap->copy, tap->copied);
        tap->holds &= w->writer != tap->writer;
    }
    return n;
}

/* Passes on the next piece of a direction; 0: none is here whole. */
static inline size_t tap_piece(struct tap *tap, struct tap_way *w)
{
    if (!w->have || w->ended)
        return 0;
    if (tap->sealed && w->handshake)
        return tap_handshake(tap, w);
    if (tap->sealed)
        return tap_record(tap, w);
    tap_send(w, w->bytes, w->have);
    return w->have;
}

static inline void tap_read(struct tap *tap, struct tap_way *w)
{
    ssize_t got = recv(w->from, w->bytes + w->have, TAP_ROOM - w->have, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) { /* whatever the part is of, it is passed on */
        tap_send(w, w->bytes, w->have);
        tap_end(w);
        return;
    }
    assert_true(tap->n_seen + (size_t)got <= TAP_SEEN);
    memcpy(tap->seen + tap->n_seen, w->bytes + w->have, (size_t)got);
    tap->n_seen += (size_t)got;
    w->have += (size_t)got;
}

static inline void tap_pump(struct tap *tap)
{
    for (int i = 0; i < 2; i++)
        tap_accept(tap, i);
    for (int i = 0; i < tap->n; i++) {
        struct tap_way *w = &tap->ways[i];
        size_t n;
        if (!w->ended)
            tap_read(tap, w);
        while ((n = tap_piece(tap, w)) > 0) {
            memmove(w->bytes, w->bytes + n, w->have - n);
            w->have -= n;
        }
    }
}

/* Writes the record that was kept once more, along the direction of `writer` that is in
 * use. */
static inline void tap_replay(struct tap *tap, int writer)
{
    assert_true(tap->copied);
    for (int i = 0; i < tap->n; i++) {
        if (tap->ways[i].writer == writer && !tap->ways[i].ended) {
            tap_send(&tap->ways[i], tap->copy, tap->copied);
            return;
        }
    }
    fail_msg("no connection of side %d is there", writer);
}

#endif
