/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State of the tcp transport and its peers, and the functions at its bottom: epoll
 * sets, single control frames, and reasons for a loss.
 *
 * Peers on this host are watched through /proc, others by heartbeats (heartbeat.h).
 */
#ifndef TRANSPORT_TCP_TCP_PEER_H
#define TRANSPORT_TCP_TCP_PEER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/acceptor.h"
#include "base/proof.h"
#include "transport/common/ip_endpoint.h"
#include "transport/common/peer.h"
#include "transport/common/region_table.h"
#include "transport/common/sealed_record.h"
#include "transport/tcp/tcp_wire.h"
#include "transport/transport.h"

#define TCP_QUEUE 256u /* writes to one peer that the kernel has not accepted yet */
#define TCP_BUFFER ((size_t)64 << 10) /* per receive, plus payload received in place */
#define TCP_RAW (4 * (TCP_RECORD + TRIB_RECORD_MORE)) /* per receive, encrypted */

enum { TCP_FORGED = -2 }; /* a record fails authentication */

/* A queued write. Its source must not change until all bytes are in the socket. */
struct tcp_entry {
    struct tcp_head head;
    const uint8_t *payload;
    bool signal;
    bool detached; /* the source may change before the entry is sent */
    uint64_t token;
};

/* Receives a peer's frames: on a connection that the peer made, or back on this
 * rank's. */
struct tcp_inlet {
    int fd; /* -1: none */
    size_t at, have; /* buf[at..have) is not parsed yet */
    bool in_payload;
    bool dry; /* the last read emptied the socket */
    /* buf may hold more frames: the caller had no room for another event */
    bool buffered;
    bool heard, active; /* data came since the last tick, and in the tick before */
    struct tcp_head head; /* of the frame in progress, or the last one */
    int small_reads; /* frames for which only a small part of buf is filled */
    uint8_t *to; /* destination of the rest of the payload */
    size_t left;
    /* [TCP_BUFFER]; encrypted: room for TCP_RECORD bytes and a partial head */
    uint8_t *buf;
    struct trib_records *seal; /* NULL: frames are not encrypted */
    uint8_t *raw; /* [TCP_RAW]; encrypted: records that are not decrypted yet */
    size_t raw_at, raw_have;
};

/* A record being sent. */
struct tcp_record {
    size_t plain; /* bytes of the queue in it */
    size_t have, sent; /* bytes of the record; equal: no record in progress */
    uint8_t bytes[TCP_RECORD + TRIB_RECORD_MORE];
};

/* Keys for the directions of both connections of a pair. Outgoing ones are used under
 * tcp.lock, incoming ones only by the owner. */
struct tcp_seals {
    struct trib_records own_out, own_in; /* for `own` */
    struct trib_records in_in, in_out; /* for the peer's connection */
    struct tcp_record record;
};

struct tcp_peer {
    struct trib_peer_base base;
    uint64_t key; /* from its address */
    bool
        got_disconnect; /* the peer disconnects: the end of its stream is not a death */
    bool finished; /* its stream existed and has ended */
    bool closed_conn; /* it closed a connection, with a notice or without */
    /* lost because of bytes that it sent, or because it refused this rank */
    bool blamed;
    int own; /* the connection that this rank made, -1: none; may equal in.fd */
    bool accepted; /* the peer has accepted this rank's connection */
    bool both_ways; /* the peer sends frames back on `own` */
    bool last; /* TCP_LAST was received: the peer now sends nowhere else */
    bool moving; /* from `own` to the peer's connection */
    bool disconnecting; /* it was sent TCP_DISCONNECT, and delivery is awaited */
    struct tcp_inlet in;
    struct tcp_seals *seals; /* NULL: no encryption, or no connection yet */
    /* The members below are protected by tcp.lock: any thread may call wake(). */
    int fd; /* where frames are sent, `own` or in.fd; -1: none */
    int next_fd; /* where frames are sent after TCP_LAST */
    bool goes_back; /* frames are sent on the peer's connection */
    bool awaits_room;
    struct tcp_entry *queue; /* [TCP_QUEUE], a ring */
    uint32_t head, sent, tail; /* oldest kept, next to send, next free */
    size_t sent_bytes; /* of entry `sent` */
    bool has_detached; /* a detached entry may have no WRITE_DONE yet */
    /* On `own`. TRIB_PROOF_NEW: there is no secret; or the exchange failed, and `own`
     * shows why. TRIB_PROOF_BEGUN: only the heartbeat thread reads `own`, and writes
     * wait in the queue. */
    struct trib_proof proof;
};

/* A connection whose hello or proof is not complete yet. */
struct tcp_pending_conn {
    struct trib_pending base;
    struct trib_proof proof; /* TRIB_PROOF_NEW: the hello is incomplete or refused */
    uint8_t answer[TRIB_PROOF_BYTES]; /* to the challenge */
    struct tcp_hello hello;
};

struct tcp {
    struct trib_transport base;
    int self;
    int size;
    const struct trib_config *cfg;
    const struct trib_log *log;
    struct trib_error *err;
    struct trib_ip_endpoint local;
    const struct trib_secret *secret; /* NULL or not set: the job has no secret */
    bool seals; /* TRIB_SEAL: encrypt all traffic, and accept no other */
    bool aes; /* this CPU supports it */
    /* epoll set of the heartbeat thread: the listener, pending connections, and `own`
     * of peers whose proof is awaited; -1: no secret */
    int proofs;
    struct trib_net_port listener;
    int wakeup_fd; /* eventfd: ends this rank's own wait */
    int epoll; /* all sockets and wakeup_fd */
    pthread_mutex_t lock;
    struct tcp_peer *peers;
    struct trib_acceptor acceptor; /* its table is protected by `lock` */
    int *inlets; /* peers whose frames are received here */
    int n_inlets;
    int next_inlet;
    int next_outlet;
    bool buffered; /* some inlet has buffered frames, which epoll does not show */
    _Atomic int backlog; /* peers whose queue is not empty */
    struct trib_region_table table; /* local regions and imports */
    _Atomic uint32_t polls;
    uint32_t polls_seen; /* helper only: `polls` at its last run */
    bool is_helped; /* the heartbeat thread runs the helper */
    _Atomic bool slept; /* the next poll checks connections at once */
    uint64_t tick_at;
    uint64_t stops_at; /* time of the last check for stopped peers */
    int n_losing;
};

/* The epoll data of a descriptor: its number in the lower half, 1 + its peer in the
 * upper half. */
static inline uint64_t tcp_mark(int fd, int peer)
{
    return (uint64_t)(uint32_t)(peer + 1) << 32 | (uint32_t)fd;
}

static inline struct tcp *tcp_of(struct trib_transport *t)
{
    return (struct tcp *)t;
}

static inline struct trib_peers tcp_peers(const struct tcp *tcp)
{
    return (struct trib_peers){tcp->peers, sizeof(*tcp->peers), tcp->self, tcp->size,
                               tcp->err};
}

static inline bool tcp_has_secret(const struct tcp *tcp)
{
    return tcp->secret && tcp->secret->is_set;
}

static inline uint32_t tcp_flags(const struct tcp *tcp)
{
    return (tcp_has_secret(tcp) ? TCP_HAS_SECRET : 0u) | (tcp->seals ? TCP_SEALS : 0u) |
           (tcp->seals && tcp->aes ? TCP_HAS_AES : 0u);
}

/* Add to the owner's epoll set; then record whose frames arrive there. */
void trib_tcp_watch_fd(struct tcp *tcp, int fd);
void trib_tcp_watch_for(struct tcp *tcp, int fd, int peer, uint32_t events);
/* Needed even before close(): while a forked child holds the socket, closing does not
 * remove it from epoll. */
void trib_tcp_unwatch_fd(struct tcp *tcp, int fd);
/* Let the heartbeat thread watch a socket of a peer; -1: of no known peer. */
void trib_tcp_watch_proof(struct tcp *tcp, int fd, int peer);
void trib_tcp_unwatch_proof(struct tcp *tcp, int fd);

void trib_tcp_close_fd(struct tcp *tcp, int fd);
/* Send a control frame directly: only if no other bytes are queued. */
void trib_tcp_send_control(int fd, enum tcp_kind kind, enum tcp_refusal reason);

/* Mark the peer lost; its reason may still change. */
void trib_tcp_mark_lost(struct tcp *tcp, int peer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Mark the peer lost because of its misbehaviour. If it dies later, this reason
 * remains. */
void trib_tcp_blame(struct tcp *tcp, int peer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Mark the peer lost: it sent a forged record, or its stream has ended. */
void trib_tcp_forged(struct tcp *tcp, int peer);
void trib_tcp_stream_ended(struct tcp *tcp, int peer);
/* The peer has declared this rank lost. */
void trib_tcp_given_up(struct tcp *tcp, int peer);

#endif
