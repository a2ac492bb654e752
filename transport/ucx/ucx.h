/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State shared by the files of the ucx transport.
 *
 * Payload travels as UCP active messages. Each pair of ranks also has up to two plain
 * TCP sockets, one per connecting direction. On such a socket the ranks first verify
 * that they belong together and exchange their worker addresses. Then the socket
 * carries control messages (struct ucx_control), such as wake and disconnect. A closed
 * socket means that the peer's process has died, whatever UCX reports.
 *
 * Three threads drive UCX. The owner posts and polls. The manager (ucx_cm_thread.c)
 * accepts connections and reads control messages, also while the owner computes. The
 * manager also progresses UCX while an endpoint is being wired up, or until everything
 * a disconnecting peer sent has arrived. The heartbeat thread progresses UCX
 * (ucx_helper.c) when the owner does not poll and peers may be waiting for its writes.
 * `lock` guards every use of UCX and the state its callbacks write. `links` guards the
 * sockets and the state read from them. A thread that needs both takes `lock` first;
 * the manager never holds both.
 *
 * Peers on this host are watched in /proc, others by heartbeats (heartbeat.h).
 */
#ifndef TRANSPORT_UCX_UCX_H
#define TRANSPORT_UCX_UCX_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/acceptor.h"
#include "base/proof.h"
#include "transport/common/heartbeat.h"
#include "transport/common/ip_endpoint.h"
#include "transport/common/region_table.h"
#include "transport/op_defaults.h"
#include "transport/open.h"
#include "transport/ucx/ucx_dl_api.h"
#include "transport/ucx/ucx_wire.h"

#define UCX_UNFLUSHED_MAX ((uint64_t)16 << 10) /* fits into any socket buffer */
#define UCX_INBOX_MAX (1u << 20) /* unreported messages per peer */

/* A write in progress. `head` and the source buffer must not change until UCX completes
 * it. */
struct ucx_send_req {
    struct ucx_head head;
    uint64_t token;
    bool signal;
    bool done;
    int32_t peer;
    struct ucx *ucx;
};

/* A received message, possibly out of order. */
struct ucx_arrival {
    uint64_t len;
    uint32_t imm;
    uint32_t region;
    bool here; /* complete */
    bool begun;
    bool quiet;
};

/* A large message being fetched from its sender. */
struct ucx_fetch {
    struct ucx *ucx;
    uint64_t number;
    int peer;
    struct ucx_fetch *next; /* free list */
};

struct ucx_peer {
    struct trib_peer_base base;
    uint64_t key; /* from the peer's address */
    uint64_t out_key; /* sent in messages to the peer: its key, or one derived from both
                       * proofs */
    bool mute; /* never connected: do not report its loss */
    /* guarded by `lock` */
    ucp_ep_h ep; /* NULL: none */
    bool expected; /* handshake done: accept its messages */
    uint64_t in_key; /* expected in its messages */
    ucs_status_t fault; /* first error of the endpoint */
    const char *violation; /* protocol violation by the peer; NULL: none */
    struct ucx_send_req *send_reqs; /* ring of `depth` */
    /* head: oldest request kept. tail: next free, and the number of the next
     * message. */
    uint64_t head, tail;
    uint32_t pending; /* incomplete UCX requests */
    void *flush; /* helper's flush request; or NULL */
    struct ucx_arrival *inbox; /* ring of `inbox_size` */
    uint32_t inbox_size;
    uint64_t next; /* number of the next message to report */
    uint32_t ready; /* messages received and not reported */
    /* guarded by `links` */
    int out, in; /* sockets connected and accepted by this rank; -1: none */
    bool closed; /* refuse further connections from it */
    bool gone; /* a socket has been closed */
    bool got_disconnect;
    bool answered; /* UCX_GOT_ALL was sent: all its messages have arrived */
    uint64_t sent; /* from its UCX_DISCONNECT */
    bool dropped; /* the peer has abandoned this rank */
    bool got_all; /* it answered our UCX_DISCONNECT */
    uint64_t wire_until; /* the manager progresses its wire-up until then; 0: done */
};

/* An accepted connection whose handshake is incomplete. */
struct ucx_pending_conn {
    struct trib_pending base;
    uint64_t refusal; /* as in UCX_REFUSE */
    struct trib_proof proof; /* TRIB_PROOF_NEW: hello and name are incomplete */
    uint8_t answer[TRIB_PROOF_BYTES]; /* to the challenge */
    struct ucx_hello hello;
    uint8_t *name; /* from trib_ucx_name_room */
};

struct ucx {
    struct trib_transport base;
    struct trib_ucx_api api;
    int self;
    int size;
    const struct trib_config *cfg;
    const struct trib_log *log;
    struct trib_error *err;
    struct trib_ip_endpoint local;
    const struct trib_secret *secret; /* NULL or not set: the job has no secret */
    struct trib_idle *idle; /* called while connecting; or NULL */
    uint64_t settings;
    uint32_t depth; /* capacity of send_reqs, a power of two */
    uint32_t release; /* UCX's version */
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *name; /* worker address, sent to peers */
    size_t name_len;
    int efd; /* event descriptor of the worker */
    pthread_mutex_t lock;
    _Atomic int lock_waiters; /* the manager waits for `lock`: yield */
    uint32_t ready; /* sum over all peers */
    uint32_t backlog; /* peers with entries in send_reqs */
    uint64_t unflushed; /* bytes written since UCX was last known to be flushed */
    uint64_t flushing; /* `unflushed` at the start of the helper's flush; 0: none */
    bool asks_help; /* the helper must flush: UCX may hold some of these bytes */
    struct ucx_fetch *fetches; /* free list */
    struct trib_region_table table; /* local regions; remotes: owner only */
    int wakeup_fd; /* eventfd: ends the owner's wait */
    int epoll; /* the owner sleeps on this: wakeup_fd and the worker's efd */
    int stop; /* eventfd: stops the manager */
    int manager_epoll; /* the manager sleeps on this */
    struct trib_net_port listener;
    struct trib_acceptor acceptor; /* manager only */
    pthread_t manager;
    bool managed;
    pthread_mutex_t links;
    struct ucx_peer *peers;
    _Atomic bool async_events; /* state of some peer has changed (gone, fault, ...) */
    _Atomic bool slept; /* the next poll must check the clock */
    uint32_t polls_seen; /* helper only */
    bool is_helped; /* the heartbeat thread runs the helper */
    /* used by the owner; the helper reads `polls` */
    _Atomic uint32_t polls;
    uint64_t tick_at;
    uint64_t stops_at;
    int n_losing;
    int turn; /* the peer whose messages are reported first */
};

static inline bool ucx_has_secret(const struct ucx *u)
{
    return u->secret && u->secret->is_set;
}

static inline uint32_t ucx_flags(const struct ucx *u)
{
    return ucx_has_secret(u) ? UCX_HAS_SECRET : 0;
}

/* For asserts: return true if some thread holds `lock`, or `links`. */
static inline bool ucx_lock_held(struct ucx *u)
{
    return pthread_mutex_trylock(&u->lock) != 0;
}

static inline bool ucx_links_held(struct ucx *u)
{
    return pthread_mutex_trylock(&u->links) != 0;
}

static inline struct ucx *ucx_of(struct trib_transport *t)
{
    return (struct ucx *)t;
}

static inline struct trib_peers ucx_peers(const struct ucx *u)
{
    return (struct trib_peers){u->peers, sizeof(*u->peers), u->self, u->size, u->err};
}

/* ucx_worker.c: context, worker and endpoints */
trib_status_t trib_ucx_worker_make(struct ucx *u);
void trib_ucx_worker_free(struct ucx *u);
/** trib_ucx_endpoint - create the endpoint of a peer unless it has one. `name` is the
 * peer's worker address, in memory from trib_ucx_name_room. */
ucs_status_t trib_ucx_endpoint(struct ucx *u, int peer, const void *name);
/** trib_ucx_name_room - allocate memory for a worker address of `bytes` bytes, to be
 * freed by the caller. Return NULL if out of memory. */
void *trib_ucx_name_room(size_t bytes);
void trib_ucx_endpoint_close(struct ucx *u, int peer);
unsigned trib_ucx_progress(struct ucx *u);
bool trib_ucx_flush(struct ucx *u, int peer, uint64_t until);
void trib_ucx_sleep(struct ucx *u);
void trib_ucx_signal_owner(struct ucx *u);
void trib_ucx_devices(const char *params, char *text, size_t bytes);

/* ucx_proof.c: mutual authentication by the job's secret */
/* Send the challenge. Return false if it cannot be sent. */
bool trib_ucx_challenge(struct ucx *u, struct ucx_pending_conn *g);
/* Begin the proof of a connecting rank, and put its nonce into the hello. */
bool trib_ucx_begin_proof(const struct ucx *u, int peer, struct ucx_hello *hello,
                          struct trib_proof *proof);
/* Return the key carried by messages from the connecting to the listening rank of a
 * connection, whose ranks have proved that they have the secret. */
uint64_t trib_ucx_message_key(const struct ucx *u, const struct trib_proof *proof);

/* ucx_cm_thread.c */
trib_status_t trib_ucx_listen(struct ucx *u, int first_port, int ports);
trib_status_t trib_ucx_manager_start(struct ucx *u);
void trib_ucx_manager_stop(struct ucx *u);
void trib_ucx_watch_fd(struct ucx *u, int fd, int peer, bool out);
/* Close *fd and set it to -1. Closing alone would leave it in manager_epoll while a
 * forked child holds it. */
void trib_ucx_close_fd(struct ucx *u, int *fd);
void trib_ucx_send_control(struct ucx *u, int peer, enum ucx_control_kind kind,
                           uint64_t value);

/* ucx_helper.c */
/* Call once heartbeats have started. */
void trib_ucx_helper_open(struct ucx *u);
void trib_ucx_helper_close(struct ucx *u);
/* Record that UCX was given `bytes` to send, or a large message to fetch. unfinished:
 * UCX has not completed it. Call with `lock` held. */
static inline void trib_ucx_ask_help(struct ucx *u, uint64_t bytes, bool unfinished)
{
    u->unflushed += bytes + 1; /* an answer without bytes counts, too */
    if (u->asks_help || !(unfinished || u->unflushed > UCX_UNFLUSHED_MAX))
        return;
    u->asks_help = true;
    trib_heartbeat_soon(u->local.heartbeat);
}

/* ucx_connect.c */
TRIB_TRANSPORT_PEERS(trib_ucx);

/* ucx_liveness.c: loss of peers and disconnecting */
void trib_ucx_tick(struct ucx *u);
void trib_ucx_handle_async_events(struct ucx *u);
int trib_ucx_report_losses(struct ucx *u, struct trib_event *events, int max);
void trib_ucx_disconnect(struct trib_transport *t, int peer);
/* Disconnect from all selected peers under one deadline. */
void trib_ucx_leave(struct trib_transport *t, const bool *which);

/* ucx_write.c */
trib_status_t trib_ucx_write(struct trib_transport *t, int peer,
                             const struct trib_write *write);
trib_status_t trib_ucx_send_first(struct ucx *u, int peer);
int trib_ucx_reap(struct ucx *u, struct trib_event *events, int max);
void trib_ucx_wake(struct trib_transport *t, int peer);

/* ucx_receive.c */
ucs_status_t trib_ucx_recv_cb(void *arg, const void *header, size_t header_length,
                              void *data, size_t length,
                              const ucp_am_recv_param_t *param);
int trib_ucx_deliver(struct ucx *u, struct trib_event *events, int max);

/* ucx_mem.c */
TRIB_TRANSPORT_MEMORY(trib_ucx);
/* Return the target of a peer's write, or NULL if it is not inside a region. Call with
 * `lock` held. */
uint8_t *trib_ucx_target(struct ucx *u, const struct ucx_head *head);

/* ucx_error_text.c: error messages */
const char *trib_ucx_status_text(const struct trib_ucx_api *api, ucs_status_t status);
void trib_ucx_refusal_text(uint64_t value, char *text, size_t bytes);

#endif
