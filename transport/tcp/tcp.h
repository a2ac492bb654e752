/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the tcp transport: what tcp.c and its tcp_*.c share.
 *
 * Each rank listens at one port. To write to a peer it connects to that peer's port,
 * and writes once both have proved that they have the job's secret (tcp_proof.c), or at
 * once where there is none; the listener sends a word back that it takes the
 * connection, or why not. Once there are both connections of a pair, the higher rank
 * ends its own with TCP_LAST and goes on along the lower rank's, behind a word
 * TCP_BOTH_WAYS. Where the job seals (TRIB_SEAL), all that follows the proofs is in
 * records (tcp_seal.c).
 *
 * Peers of this host are watched in /proc, others by heartbeats (heartbeat.h).
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

#define TCP_MAGIC UINT32_C(0x54726254) /* "TrbT", for ever */
#define TCP_VERSION 7
#define TCP_QUEUE 256u /* writes to one peer that the kernel has not taken yet */
#define TCP_BUFFER \
    ((size_t)64 << 10) /* received at once, beside what goes to its \
                        * place */
/* Bytes that a record carries at most: the receiver decrypts one while the sender
 * encrypts the next, and both stay within a core's cache. */
#define TCP_RECORD ((size_t)16 << 10)
#define TCP_RAW \
    (4 * (TCP_RECORD + TRIB_RECORD_MORE)) /* received at once of sealed \
                                           * frames */

enum tcp_kind {
    TCP_WRITE = 1,
    TCP_QUIET, /* a write without an event */
    TCP_WAKE,
    TCP_BYE,
    /* Only on the way back, and as they are in every version: */
    TCP_ACCEPT,
    TCP_REFUSE, /* imm is an enum tcp_refusal, off the listener's version */
    TCP_BOTH_WAYS, /* frames follow those of the other connection, up to TCP_LAST */
    TCP_LAST, /* on the writer's connection: it goes on along the reader's; back:
               * seen */
    TCP_CHALLENGE, /* only on the way back, before TCP_ACCEPT: struct tcp_challenge */
    TCP_GIVEN_UP, /* both ways: the writer counts the reader as lost, and ends the
                   * connection */
};

enum tcp_refusal {
    TCP_NOT_REFUSED,
    TCP_OTHER_VERSION,
    TCP_OTHER_JOB, /* the key is wrong */
    TCP_OTHER_RANK, /* out of range, or the listener's own */
    TCP_TWICE, /* a connection of this rank is here */
    TCP_WAS_LOST, /* the listener has given this rank up */
    TCP_OTHER_FLAGS, /* one has a secret and the other has none */
    TCP_NOT_PROVED, /* the proof of who connects is wrong */
    TCP_OTHER_SEAL, /* one seals what it sends and the other does not */
};

/* In front of each write; everything as x86-64 and AArch64 Linux lay it out. */
struct tcp_head {
    uint32_t magic;
    uint32_t kind;
    uint32_t region; /* of the receiver */
    uint32_t imm;
    uint64_t off;
    uint64_t len;
};
static_assert(sizeof(struct tcp_head) == 32, "no padding");

/* The first bytes of a connection. magic and version stay where they are in every
 * version, so that two of them can tell each other. */
struct tcp_hello {
    uint32_t magic;
    uint32_t version;
    int32_t rank; /* of the connecting side */
    int32_t size;
    uint64_t key; /* of the listening side: tells it from others that had its port */
    uint32_t flags; /* TCP_HAS_… */
    uint32_t unused; /* 0 */
    uint8_t nonce[TRIB_NONCE_BYTES];
};
static_assert(sizeof(struct tcp_hello) == 48, "no padding");

enum {
    TCP_HAS_SECRET = 1,
    TCP_SEALS = 2, /* what follows the proofs is in records (record.h), in both
                    * directions */
    TCP_HAS_AES = 4, /* with TCP_SEALS: records are by AES256-GCM where both sides have
                      * it */
};

/* The listener's answer to a hello, where the job has a secret; the proof of who
 * connects, TRIB_PROOF_BYTES of them, follows in the other direction. */
struct tcp_challenge {
    struct tcp_head head; /* its kind is TCP_CHALLENGE; imm has the flags of the
                           * listener */
    uint8_t nonce[TRIB_NONCE_BYTES];
    uint8_t proof[TRIB_PROOF_BYTES];
};
static_assert(sizeof(struct tcp_challenge) == 80, "no padding");

enum { TCP_FORGED = -2 }; /* a record that is not as its writer made it */

/* A write on its way into the socket. Its source lies still until it is there. */
struct tcp_entry {
    struct tcp_head head;
    const uint8_t *payload;
    bool signal;
    uint64_t token;
};

enum tcp_proof {
    TCP_PROOF_NONE, /* there is no secret; or nothing came of it, and `own` tells why */
    TCP_PROOF_AWAITED, /* only the heartbeats' thread reads `own`; writes wait in the
                        * queue */
    TCP_PROOF_DONE,
    TCP_PROOF_WRONG, /* who answers has not the job's secret */
};

/* Frames of a peer come here: by a connection that it made, or back along ours. */
struct tcp_inlet {
    int fd; /* -1: none */
    size_t at, have; /* bytes of buf that are not parsed yet */
    bool in_payload;
    bool dry; /* the socket had no more when it was read last */
    bool rest; /* more may be in the buffer: who asked had no room for another event */
    bool heard, active; /* since the last tick, and before that one */
    struct tcp_head head; /* of the frame that comes, or came last */
    int beside; /* frames for which only little is taken into the buffer */
    uint8_t *to; /* where the rest of the payload goes */
    size_t left;
    uint8_t *buf; /* [TCP_BUFFER]; sealed: room for TCP_RECORD bytes and a part of a
                   * head */
    struct trib_records *seal; /* NULL: frames come as they are */
    uint8_t *raw; /* [TCP_RAW], sealed: records that are not decrypted yet */
    size_t raw_at, raw_have;
};

/* A record on its way into the socket. */
struct tcp_record {
    size_t plain; /* bytes of the queue that it carries */
    size_t have, sent; /* bytes of the record; equal: there is none */
    uint8_t bytes[TCP_RECORD + TRIB_RECORD_MORE];
};

/* The directions of both connections of a pair. Those that go out are used under
 * tcp.lock, those that come in by the owner alone. */
struct tcp_seals {
    struct trib_records own_out, own_in; /* `own` */
    struct trib_records in_in, in_out; /* the peer's connection */
    struct tcp_record record;
};

struct tcp_peer {
    struct trib_peer_base base;
    uint64_t key; /* of its address */
    bool said_bye; /* it leaves: the end of its stream is no death */
    bool finished; /* its stream came and has ended */
    bool hung_up; /* it closed a connection, by a farewell or without one */
    bool blamed; /* lost because of what it sent, or because it refused this rank */
    int own; /* the connection that this rank made, -1: none; may be in.fd, too */
    enum tcp_proof proof; /* on `own`; under tcp.lock */
    uint8_t nonce[TRIB_NONCE_BYTES]; /* of this rank, on `own` */
    bool welcome; /* the peer has taken our connection */
    bool both_ways; /* the peer sends frames back along `own` */
    bool last; /* TCP_LAST has come: it does nowhere else */
    bool moving; /* from `own` to the peer's connection */
    bool leaving; /* this rank has said goodbye, and waits for it to get there */
    struct tcp_inlet in;
    struct tcp_seals *seals; /* NULL: nothing is sealed, or there was no connection */
    /* under tcp.lock, because wake() may be called by any thread */
    int fd; /* where frames go, `own` or in.fd; -1: none */
    int next_fd; /* where they go after TCP_LAST */
    bool goes_back; /* they do: along the peer's connection */
    bool awaits_room;
    struct tcp_entry *queue; /* [TCP_QUEUE], a ring */
    uint32_t head, sent, tail; /* oldest kept, next for the socket, next free */
    size_t sent_bytes; /* of entry `sent` */
};

/* A connection whose hello, or proof, has not come yet. */
struct tcp_pending_conn {
    int fd;
    size_t have; /* of hello, or of proof */
    bool proves; /* its hello is here, and it was challenged */
    bool proved; /* rightly */
    bool gone; /* its stream has ended */
    bool odd; /* it was not challenged, or proved nothing: the owner says so */
    uint8_t nonce[TRIB_NONCE_BYTES]; /* with which it was */
    uint8_t proof[TRIB_PROOF_BYTES];
    uint8_t ip[16];
    struct tcp_hello hello;
    uint64_t until;
    bool refused; /* was told so, and has till then to read it */
};

struct tcp {
    struct trib_transport base;
    int self;
    int size;
    const struct trib_config *cfg;
    const struct trib_log *log;
    struct trib_error *err;
    struct trib_ip_endpoint local;
    const struct trib_secret *secret; /* NULL or not set: there is none */
    bool seals; /* TRIB_SEAL: what it sends, and it takes nothing else */
    bool aes; /* this CPU has it */
    int proofs; /* epoll, of what the heartbeats' thread sees to: the listener, guests,
                 * and `own` of peers whose proof is awaited; -1: there is no secret */
    struct trib_net_port listener;
    struct trib_strangers strangers;
    int wakeup_fd; /* eventfd: ends the own wait */
    int epoll; /* all sockets and the bell */
    pthread_mutex_t lock;
    struct tcp_peer *peers;
    struct tcp_pending_conn *pending_conns; /* [max_pending]; under `lock`, as
                                             * n_pending */
    _Atomic int n_pending;
    int max_pending;
    struct trib_accept_pause pause; /* of the listener, when no descriptor is free */
    bool resting; /* the listener is not in `epoll` */
    int *inlets; /* peers whose frames come here */
    int n_inlets;
    int next_inlet;
    int next_outlet;
    bool rest; /* of some inlet: epoll does not know of buffers */
    _Atomic int backlog; /* peers whose queue is not empty */
    struct trib_region_table table; /* memory here and of peers */
    _Atomic uint32_t polls;
    uint32_t polls_seen; /* the same as the helper saw it last; the helper's */
    bool is_helped; /* the thread of the heartbeats runs the helper */
    _Atomic bool slept; /* the next poll looks around at once */
    uint64_t tick_at;
    uint64_t stops_at; /* when stops were looked for last */
    int n_going;
};

/* The data of epoll for a descriptor: its number in the lower half, 1 + its peer in the
 * upper one. */
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

/* tcp_listen.c: connections that peers make. */
trib_status_t trib_socket_listen(struct tcp *tcp, int first_port, int ports);
void trib_socket_accept(struct tcp *tcp);
void trib_socket_greet(struct tcp *tcp);
/* By the heartbeats' thread, under tcp.lock: connections come in, and prove. */
void trib_socket_keep_door(struct tcp *tcp);
void trib_socket_hang_up(struct tcp *tcp, int fd);
/* This rank leaves: who is still to prove who he is must not take it for dead. */
void trib_socket_dismiss(struct tcp *tcp);
/* A word that is not queued: where nothing else is on its way. */
void trib_socket_say(int fd, enum tcp_kind kind, enum tcp_refusal reason);
/* The same back along the peer's connection, in a record where the job seals. */
void trib_socket_say_back(struct tcp *tcp, int peer, int fd, enum tcp_kind kind);

/* tcp_proof.c: who connects, and who listens, has the job's secret. */
/* The first bytes to a peer; false: the kernel has no random bytes. */
bool trib_socket_greeting(struct tcp *tcp, int peer, struct tcp_hello *out);
/* false: it cannot be sent. */
bool trib_socket_challenge(struct tcp *tcp, struct tcp_pending_conn *g);
bool trib_socket_guest_proved(struct tcp *tcp, const struct tcp_pending_conn *g);
/* True if the stream has ended before n bytes of it have come. Else the rest is on its
 * way. */
bool trib_socket_stays_part(int fd, size_t n);
/* Tells what a guest has proved: the keys of its connection come from that. */
void trib_socket_claim_of(const struct tcp *tcp, const struct tcp_pending_conn *g,
                          struct trib_proof *out);
/* Once there are heartbeats: their thread helps with proofs, and sends for an owner
 * that does not poll. false and errno: no descriptor. */
bool trib_socket_helper_open(struct tcp *tcp);
void trib_socket_helper_close(struct tcp *tcp);
/* Have the heartbeats' thread look at a socket, of a peer or of -1: somebody's. */
void trib_socket_watch_proof(struct tcp *tcp, int fd, int peer);
void trib_socket_unwatch_proof(struct tcp *tcp, int fd);
/* The peer's proof on `own`; then, or at once where there is no secret, it may be
 * written to. */
void trib_socket_await_proof(struct tcp *tcp, int peer);
void trib_socket_stop_proving(struct tcp *tcp, struct tcp_peer *p);
enum tcp_proof trib_socket_proof(struct tcp *tcp, int peer);

/* tcp_connect.c: connections to peers, their beginning and their end. */
TRIB_TRANSPORT_PEERS(trib_socket);
void trib_socket_disconnect(struct trib_transport *t, int peer);
void trib_socket_leave(struct trib_transport *t, const bool *which);
/* Into the epoll set; then say whose frames come by it. */
void trib_socket_watch_fd(struct tcp *tcp, int fd);
void trib_socket_watch_for(struct tcp *tcp, int fd, int peer, uint32_t events);
/* Also while a forked child holds the socket: closing alone would leave it in epoll. */
void trib_socket_unwatch_fd(struct tcp *tcp, int fd);
void trib_socket_tick(struct tcp *tcp);
/* Mark the peer as lost because of its misbehaviour. Its death, which may follow, does
 * not replace this reason. */
void trib_socket_blame(struct tcp *tcp, int peer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void trib_socket_going(struct tcp *tcp, int peer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int trib_socket_report_losses(struct tcp *tcp, struct trib_event *events, int max);

/* tcp_duplex.c: one connection for both directions of a pair. */
/* From now on frames of the peer come by this connection; false: out of memory. */
bool trib_socket_seat(struct tcp *tcp, int peer, int fd);
/* Once both sides have connected, the higher rank moves. */
void trib_socket_move(struct tcp *tcp, int peer);
/* Words that come back along the own connection, until frames do; and of that many
 * peers in turn. */
void trib_socket_look_at_outlet(struct tcp *tcp, int peer);
void trib_socket_look_at_outlets(struct tcp *tcp, int peers);
/* TCP_LAST has come. false: from a peer that has no reason to send it. */
bool trib_socket_last(struct tcp *tcp, int peer);
void trib_socket_inlet_close(struct tcp *tcp, int peer);
/* Both ways, and what is still in the queue. */
void trib_socket_close_peer(struct tcp *tcp, int peer);

/* tcp_send.c */
trib_status_t trib_socket_write(struct trib_transport *t, int peer,
                                const struct trib_write *write);
void trib_socket_wake(struct trib_transport *t, int peer);
/* Tries once more. true: the kernel has everything. */
bool trib_socket_flush(struct tcp *tcp, int peer);
int trib_socket_reap(struct tcp *tcp, struct trib_event *events, int max);
/* By the thread of the heartbeats: sends what waits for room if the owner has not
 * polled since the last call. true: writes still wait for room. */
bool trib_socket_push_for_owner(struct tcp *tcp);
void trib_socket_say_bye(struct tcp *tcp, int peer);
/* The last word to a peer that is lost and may go on, in place of what has not been
 * sent. It gets there if the peer's kernel has room for it. */
void trib_socket_say_given_up(struct tcp *tcp, int peer);
/* TCP_LAST here, and on along the peer's connection. false: no room just now. */
bool trib_socket_enqueue_move(struct tcp *tcp, int peer);

/* tcp_seal.c: records. */
/* Makes room for the keys of a peer where the job seals. false: out of memory. */
bool trib_socket_seals(struct tcp *tcp, int peer);
void trib_socket_free_seals(struct tcp_peer *p);
/* Make the keys of the connection on which `about` was proved, where the job seals. */
void trib_socket_seal_own(struct tcp *tcp, int peer, const struct trib_proof *about);
void trib_socket_seal_in(struct tcp *tcp, int peer, const struct trib_proof *about);
/* Sends the queue's next bytes in a record. Returns how many of them are gone, or what
 * send() does. Under the lock. */
ssize_t trib_socket_send_record(struct tcp_peer *p, const struct iovec *iov, int n);
/* Decrypts the next record into the inlet's buffer. 0: none is here; TCP_FORGED: it is
 * not as it was written; else negative: the stream has ended. */
ssize_t trib_socket_take_record(struct tcp_inlet *in);
/* Reads the next word on the way back along `own`; returns 1, or what
 * trib_socket_take_record does. `sealed`: the word came in a record. */
int trib_socket_take_word(struct tcp_peer *p, struct tcp_head *head, bool *sealed);
/* The peer goes: by a record that is not as it was written, or by the end of its
 * stream. */
void trib_socket_forged(struct tcp *tcp, int peer);
void trib_socket_ended(struct tcp *tcp, int peer);
/* The peer has given this rank up. */
void trib_socket_given_up(struct tcp *tcp, int peer);

/* tcp_receive.c */
int trib_socket_receive(struct tcp *tcp, int peer, struct trib_event *events, int max);

/* tcp_mem.c */
TRIB_TRANSPORT_MEMORY(trib_socket);
trib_status_t trib_socket_borrow(struct trib_transport *t, void *ptr, size_t len,
                                 bool written, struct trib_region **out);
void trib_socket_give_back(struct trib_transport *t, struct trib_region *region,
                           bool broken);
/* The target of a peer's write; NULL: not inside a region. */
uint8_t *trib_socket_place(struct tcp *tcp, const struct tcp_head *head);

#endif
