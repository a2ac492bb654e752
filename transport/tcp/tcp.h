/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of the tcp transport, shared by its .c files.
 *
 * Each rank listens on one port. To write to a peer, a rank connects to the peer's
 * port. It writes once both sides have proved that they have the job's secret
 * (tcp_proof.c), or at once if the job has none. The listener answers with a control
 * frame: accepted, or the reason for the refusal. A control frame is a struct tcp_head
 * without payload. Once both connections of a pair exist, the higher rank ends its own
 * with TCP_LAST. It continues on the lower rank's connection, after a TCP_BOTH_WAYS
 * frame. With TRIB_SEAL, everything after the proofs is in encrypted records
 * (tcp_seal.c).
 *
 * Peers on this host are watched through /proc, others by heartbeats (heartbeat.h).
 */
#ifndef TRANSPORT_TCP_TCP_H
#define TRANSPORT_TCP_TCP_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/accept.h"
#include "base/secret.h"
#include "base/stranger.h"
#include "transport/common/ip_endpoint.h"
#include "transport/common/region_table.h"
#include "transport/common/sealed_record.h"
#include "transport/transport.h"

#define TCP_MAGIC UINT32_C(0x54726254) /* "TrbT"; never changes */
#define TCP_VERSION 7
#define TCP_QUEUE 256u /* writes to one peer that the kernel has not accepted yet */
#define TCP_BUFFER ((size_t)64 << 10) /* per receive, plus payload received in place */
/* Maximum payload of a record: the receiver decrypts one while the sender encrypts the
 * next, and both fit a core's cache. */
#define TCP_RECORD ((size_t)16 << 10)
#define TCP_RAW (4 * (TCP_RECORD + TRIB_RECORD_MORE)) /* per receive, encrypted */

enum tcp_kind {
    TCP_WRITE = 1,
    TCP_QUIET, /* a write without an event */
    TCP_WAKE,
    TCP_BYE,
    /* Sent only by the listening side. ACCEPT and REFUSE never change their layout: */
    TCP_ACCEPT,
    TCP_REFUSE, /* imm: enum tcp_refusal; off: the listener's version */
    /* frames follow here, after all frames on the other connection up to TCP_LAST */
    TCP_BOTH_WAYS,
    /* the writer continues on the reader's connection; also the reader's answer that it
     * has seen TCP_LAST */
    TCP_LAST,
    /* sent only by the listener, before TCP_ACCEPT: struct tcp_challenge */
    TCP_CHALLENGE,
    /* both directions: the writer has declared the reader lost, and closes the
     * connection */
    TCP_GIVEN_UP,
};

enum tcp_refusal {
    TCP_NOT_REFUSED,
    TCP_OTHER_VERSION,
    TCP_OTHER_JOB, /* wrong key */
    TCP_OTHER_RANK, /* out of range, or the listener's own */
    TCP_TWICE, /* this rank has a connection already */
    TCP_WAS_LOST, /* the listener has declared this rank lost */
    TCP_OTHER_FLAGS, /* only one side has a secret */
    TCP_NOT_PROVED, /* the connecting side's proof is wrong */
    TCP_OTHER_SEAL, /* only one side encrypts (TRIB_SEAL) */
};

/* Precedes each write; in the layout of x86-64 and AArch64 Linux. */
struct tcp_head {
    uint32_t magic;
    uint32_t kind;
    uint32_t region; /* id at the receiver */
    uint32_t imm;
    uint64_t off;
    uint64_t len;
};
static_assert(sizeof(struct tcp_head) == 32, "no padding");

/* The first bytes of a connection. magic and version keep their place in every version,
 * so that two versions can recognize each other. */
struct tcp_hello {
    uint32_t magic;
    uint32_t version;
    int32_t rank; /* of the connecting side */
    int32_t size;
    /* of the listening side: identifies it if its port has changed hands */
    uint64_t key;
    uint32_t flags; /* TCP_HAS_… */
    uint32_t unused; /* 0 */
    uint8_t nonce[TRIB_NONCE_BYTES];
};
static_assert(sizeof(struct tcp_hello) == 48, "no padding");

enum {
    TCP_HAS_SECRET = 1,
    /* everything after the proofs is in records (sealed_record.h), in both
     * directions */
    TCP_SEALS = 2,
    TCP_HAS_AES = 4, /* with TCP_SEALS: use AES256-GCM if both sides support it */
};

/* The listener's answer to a hello, if the job has a secret. The connecting side then
 * sends its proof of TRIB_PROOF_BYTES. */
struct tcp_challenge {
    struct tcp_head head; /* kind is TCP_CHALLENGE; imm holds the listener's flags */
    uint8_t nonce[TRIB_NONCE_BYTES];
    uint8_t proof[TRIB_PROOF_BYTES];
};
static_assert(sizeof(struct tcp_challenge) == 80, "no padding");

enum { TCP_FORGED = -2 }; /* a record fails authentication */

/* A queued write. Its source must not change until all bytes are in the socket. */
struct tcp_entry {
    struct tcp_head head;
    const uint8_t *payload;
    bool signal;
    uint64_t token;
};

enum tcp_proof {
    /* there is no secret; or the exchange failed, and `own` shows why */
    TCP_PROOF_NONE,
    /* only the heartbeat thread reads `own`; writes wait in the queue */
    TCP_PROOF_AWAITED,
    TCP_PROOF_DONE,
    TCP_PROOF_WRONG, /* the peer that answers does not have the job's secret */
};

/* Receives a peer's frames: on a connection that the peer made, or back on this
 * rank's. */
struct tcp_inlet {
    int fd; /* -1: none */
    size_t at, have; /* buf[at..have) is not parsed yet */
    bool in_payload;
    bool dry; /* the last read emptied the socket */
    bool rest; /* buf may hold more frames: the caller had no room for another event */
    bool heard, active; /* data came since the last tick, and in the tick before */
    struct tcp_head head; /* of the frame in progress, or the last one */
    int beside; /* frames for which only a small part of buf is filled */
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
    bool said_bye; /* the peer disconnects: the end of its stream is not a death */
    bool finished; /* its stream existed and has ended */
    bool hung_up; /* it closed a connection, with a goodbye or without */
    /* lost because of bytes that it sent, or because it refused this rank */
    bool blamed;
    int own; /* the connection that this rank made, -1: none; may equal in.fd */
    enum tcp_proof proof; /* on `own`; protected by tcp.lock */
    uint8_t nonce[TRIB_NONCE_BYTES]; /* of this rank, on `own` */
    bool welcome; /* the peer has accepted this rank's connection */
    bool both_ways; /* the peer sends frames back on `own` */
    bool last; /* TCP_LAST was received: the peer now sends nowhere else */
    bool moving; /* from `own` to the peer's connection */
    bool leaving; /* this rank has sent its goodbye, and waits for delivery */
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
};

/* A connection whose hello or proof is not complete yet. */
struct tcp_pending_conn {
    int fd;
    size_t have; /* bytes of hello, or of proof */
    bool proves; /* the hello is complete, and a challenge was sent */
    bool proved; /* the proof is correct */
    bool gone; /* its stream has ended */
    bool odd; /* it was not challenged, or its proof failed: the owner answers */
    uint8_t nonce[TRIB_NONCE_BYTES]; /* of the challenge */
    uint8_t proof[TRIB_PROOF_BYTES];
    uint8_t ip[16];
    struct tcp_hello hello;
    uint64_t until;
    bool refused; /* a refusal was sent; until `until` the peer may read it */
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
    struct trib_strangers strangers;
    int wakeup_fd; /* eventfd: ends this rank's own wait */
    int epoll; /* all sockets and wakeup_fd */
    pthread_mutex_t lock;
    struct tcp_peer *peers;
    /* [max_pending]; protected by `lock`, like n_pending */
    struct tcp_pending_conn *pending_conns;
    _Atomic int n_pending;
    int max_pending;
    struct trib_accept_pause pause; /* of the listener, while no descriptor is free */
    bool resting; /* the listener is not in `epoll` */
    int *inlets; /* peers whose frames are received here */
    int n_inlets;
    int next_inlet;
    int next_outlet;
    bool rest; /* some inlet has buffered frames, which epoll does not show */
    _Atomic int backlog; /* peers whose queue is not empty */
    struct trib_region_table table; /* local regions and imports */
    _Atomic uint32_t polls;
    uint32_t polls_seen; /* helper only: `polls` at its last run */
    bool is_helped; /* the heartbeat thread runs the helper */
    _Atomic bool slept; /* the next poll checks connections at once */
    uint64_t tick_at;
    uint64_t stops_at; /* time of the last check for stopped peers */
    int n_going;
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

/* tcp_devices.c */
void trib_socket_devices(char *text, size_t bytes);

/* tcp_listen.c: incoming connections. */
trib_status_t trib_socket_listen(struct tcp *tcp, int first_port, int ports);
void trib_socket_accept(struct tcp *tcp);
void trib_socket_greet(struct tcp *tcp);
/* Accept connections and read proofs, on the heartbeat thread. tcp.lock is held. */
void trib_socket_keep_door(struct tcp *tcp);
void trib_socket_hang_up(struct tcp *tcp, int fd);
/* Wait briefly for proofs in flight before this rank closes, so that those peers do not
 * take it for dead. */
void trib_socket_dismiss(struct tcp *tcp);
/* Send a control frame directly: only if no other bytes are queued. */
void trib_socket_say(int fd, enum tcp_kind kind, enum tcp_refusal reason);
/* Same, back on the peer's connection; in a record if TRIB_SEAL is set. */
void trib_socket_say_back(struct tcp *tcp, int peer, int fd, enum tcp_kind kind);

/* tcp_proof.c: mutual proof that both sides have the job's secret. */
/* Fill in the hello for a peer; false: the kernel has no random bytes. */
bool trib_socket_greeting(struct tcp *tcp, int peer, struct tcp_hello *out);
/* Send the challenge; return false on failure. */
bool trib_socket_challenge(struct tcp *tcp, struct tcp_pending_conn *g);
bool trib_socket_guest_proved(struct tcp *tcp, const struct tcp_pending_conn *g);
/* Return true if the stream has ended before its next n bytes were complete. Otherwise
 * the rest is still on its way. */
bool trib_socket_stays_part(int fd, size_t n);
/* Write the statement that a pending connection proved; its keys derive from that. */
void trib_socket_claim_of(const struct tcp *tcp, const struct tcp_pending_conn *g,
                          struct trib_proof *out);
/* Call once heartbeats run: their thread then helps with proofs, and sends for an owner
 * that does not poll. false and errno: no descriptor. */
bool trib_socket_helper_open(struct tcp *tcp);
void trib_socket_helper_close(struct tcp *tcp);
/* Let the heartbeat thread watch a socket of a peer; -1: of no known peer. */
void trib_socket_watch_proof(struct tcp *tcp, int fd, int peer);
void trib_socket_unwatch_proof(struct tcp *tcp, int fd);
/* Wait for the peer's proof on `own`; then, or at once without a secret, writes may be
 * sent. */
void trib_socket_await_proof(struct tcp *tcp, int peer);
void trib_socket_stop_proving(struct tcp *tcp, struct tcp_peer *p);
enum tcp_proof trib_socket_proof(struct tcp *tcp, int peer);

/* tcp_connect.c: opening and closing connections to peers. */
TRIB_TRANSPORT_PEERS(trib_socket);
void trib_socket_disconnect(struct trib_transport *t, int peer);
void trib_socket_leave(struct trib_transport *t, const bool *which);
/* Add to the epoll set; then record whose frames arrive there. */
void trib_socket_watch_fd(struct tcp *tcp, int fd);
void trib_socket_watch_for(struct tcp *tcp, int fd, int peer, uint32_t events);
/* Needed even before close(): while a forked child holds the socket, closing does not
 * remove it from epoll. */
void trib_socket_unwatch_fd(struct tcp *tcp, int fd);
void trib_socket_tick(struct tcp *tcp);
/* Mark the peer lost because of its misbehaviour. If it dies later, this reason
 * remains. */
void trib_socket_blame(struct tcp *tcp, int peer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void trib_socket_going(struct tcp *tcp, int peer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int trib_socket_report_losses(struct tcp *tcp, struct trib_event *events, int max);

/* tcp_duplex.c: one connection for both directions of a pair. */
/* Receive frames of the peer on this connection from now on; false: out of memory. */
bool trib_socket_seat(struct tcp *tcp, int peer, int fd);
/* If both sides have connected and this rank is the higher one, start moving its frames
 * to the peer's connection. */
void trib_socket_move(struct tcp *tcp, int peer);
/* Read control frames that come back on this rank's connection, until frames follow;
 * for one peer, or for the next `peers` peers in turn. */
void trib_socket_look_at_outlet(struct tcp *tcp, int peer);
void trib_socket_look_at_outlets(struct tcp *tcp, int peers);
/* Handle TCP_LAST; false: this peer has no reason to send it. */
bool trib_socket_last(struct tcp *tcp, int peer);
void trib_socket_inlet_close(struct tcp *tcp, int peer);
/* Close both directions and drop the queue. */
void trib_socket_close_peer(struct tcp *tcp, int peer);

/* tcp_send.c */
trib_status_t trib_socket_write(struct trib_transport *t, int peer,
                                const struct trib_write *write);
void trib_socket_wake(struct trib_transport *t, int peer);
/* Try to send the queue once more; true: the kernel has accepted everything. */
bool trib_socket_flush(struct tcp *tcp, int peer);
int trib_socket_reap(struct tcp *tcp, struct trib_event *events, int max);
/* Called by the heartbeat thread: send queued writes if the owner has not polled since
 * the last call. true: some are still queued. */
bool trib_socket_push_for_owner(struct tcp *tcp);
void trib_socket_say_bye(struct tcp *tcp, int peer);
/* Send an abort notice to a lost peer that may still run, in place of queued writes. It
 * is delivered if the peer's kernel has room. */
void trib_socket_say_given_up(struct tcp *tcp, int peer);
/* Queue TCP_LAST here, and continue on the peer's connection; false: no room now. */
bool trib_socket_enqueue_move(struct tcp *tcp, int peer);

/* tcp_seal.c: encrypted records. */
/* Allocate a peer's keys if TRIB_SEAL is set; false: out of memory. */
bool trib_socket_seals(struct tcp *tcp, int peer);
void trib_socket_free_seals(struct tcp_peer *p);
/* Derive the keys of the connection on which `about` was proved, if TRIB_SEAL is
 * set. */
void trib_socket_seal_own(struct tcp *tcp, int peer, const struct trib_proof *about);
void trib_socket_seal_in(struct tcp *tcp, int peer, const struct trib_proof *about);
/* Send the next bytes of the queue in a record. Return how many of them are sent, or
 * the result of send(). tcp.lock is held. */
ssize_t trib_socket_send_record(struct tcp_peer *p, const struct iovec *iov, int n);
/* Decrypt the next record into the inlet's buffer. Return 0: incomplete; TCP_FORGED:
 * authentication failed; another negative value: the stream has ended. */
ssize_t trib_socket_take_record(struct tcp_inlet *in);
/* Read the next control frame that came back on `own`. Return 1, or the result of
 * trib_socket_take_record. `sealed`: the frame was encrypted. */
int trib_socket_take_word(struct tcp_peer *p, struct tcp_head *head, bool *sealed);
/* Mark the peer lost: it sent a forged record, or its stream has ended. */
void trib_socket_forged(struct tcp *tcp, int peer);
void trib_socket_ended(struct tcp *tcp, int peer);
/* The peer has declared this rank lost. */
void trib_socket_given_up(struct tcp *tcp, int peer);

/* tcp_receive.c */
int trib_socket_receive(struct tcp *tcp, int peer, struct trib_event *events, int max);

/* tcp_mem.c */
TRIB_TRANSPORT_MEMORY(trib_socket);
trib_status_t trib_socket_borrow(struct trib_transport *t, void *ptr, size_t len,
                                 bool written, struct trib_region **out);
void trib_socket_give_back(struct trib_transport *t, struct trib_region *region,
                           bool broken);
/* Return the destination of a peer's write; NULL: not inside a region. */
uint8_t *trib_socket_place(struct tcp *tcp, const struct tcp_head *head);

#endif
