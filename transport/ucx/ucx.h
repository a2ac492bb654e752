/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the ucx transport: what its files share.
 *
 * Bytes travel as active messages of UCP. Beside its endpoint a pair of ranks has up to
 * two plain sockets, one for each direction of connecting: on them the two check that
 * they belong together and tell each other their workers' addresses, before UCX knows
 * of either; then they carry words: wake, farewell. The end of such a socket is the
 * death of a process, whatever UCX makes of it.
 *
 * Three threads. The owner's posts and polls. The manager (ucx_cm_thread.c) takes
 * connections and reads words, also while the owner computes, and moves UCX on as long
 * as an endpoint is coming up, or a peer that leaves waits until all has come. That of
 * the heartbeats moves UCX on (ucx_helper.c) where the owner does not poll and peers
 * may wait for what it has written. `lock` guards whatever touches UCX and what its
 * callbacks write; `links` the sockets and what was heard on them. Who needs both takes
 * `lock` first; the manager never does.
 *
 * Peers of this host are watched in /proc, others by heartbeats (heartbeat.h).
 */
#ifndef TRANSPORT_UCX_UCX_H
#define TRANSPORT_UCX_UCX_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/accept.h"
#include "base/secret.h"
#include "base/stranger.h"
#include "transport/common/heartbeat.h"
#include "transport/common/ip_endpoint.h"
#include "transport/common/region_table.h"
#include "transport/transport.h"
#include "transport/ucx/ucx_dl_api.h"
#include "transport/ucx/ucx_wire.h"

#define UCX_UNFLUSHED_MAX ((uint64_t)16 << 10) /* bytes that fit any socket's buffer */
#define UCX_INBOX_MAX (1u << 20) /* messages of one peer that are not reported yet */

/* A write until UCX is done with it. Its source lies still until then, the head,
 * too. */
struct ucx_send_req {
    struct ucx_head head;
    uint64_t token;
    bool signal;
    bool done;
    int32_t peer;
    struct ucx *ucx;
};

/* A message that came, perhaps before its turn. */
struct ucx_arrival {
    uint64_t len;
    uint32_t imm;
    uint32_t region;
    bool here; /* all its bytes */
    bool begun;
    bool quiet;
};

/* A large message that was sent for. */
struct ucx_fetch {
    struct ucx *ucx;
    uint64_t number;
    int peer;
    struct ucx_fetch *next; /* of those not in use */
};

struct ucx_peer {
    struct trib_peer_base base;
    uint64_t key; /* of its address */
    uint64_t out_key; /* of messages to it: its key, or what both proofs make of it */
    bool mute; /* not connected: its loss is nobody's concern */
    bool reported; /* that it does not go well: a loss needs no second reason */
    /* under `lock` */
    ucp_ep_h ep; /* NULL: none */
    bool expected; /* its hello was taken: its messages count */
    uint64_t in_key; /* that they have then */
    ucs_status_t fault; /* what UCX said of the endpoint, UCS_OK: nothing */
    const char *misdeed; /* what it sent that cannot be; NULL: nothing */
    struct ucx_send_req *send_reqs; /* [depth], a ring */
    uint64_t head, tail; /* oldest kept, next free; tail is the next message's number */
    uint32_t pending; /* requests of UCX that are not done */
    void *flush; /* request of the helper that UCX sends what it has; or NULL */
    struct ucx_arrival *inbox; /* [inbox_size], a ring */
    uint32_t inbox_size;
    uint64_t next; /* number of the message to be reported next */
    uint32_t ready; /* of its messages that are here */
    /* under `links` */
    int out, in; /* sockets: the one that this rank made, the one it took; -1: none */
    bool closed; /* no connection of it is taken any more */
    bool gone; /* a socket has ended */
    bool said_bye;
    bool answered; /* it was told that all it sent has come */
    uint64_t sent; /* what its BYE said */
    bool dropped; /* it has given this rank up */
    bool got_all; /* it answered our BYE */
    uint64_t wire_until; /* the manager helps its endpoint up till then; 0: it does
                          * not */
};

/* A connection whose hello has not come yet. */
struct ucx_pending_conn {
    int fd;
    uint32_t have;
    uint64_t until;
    bool refused; /* was told so, and has till then to read it */
    bool proves; /* hello and name are here, and it was challenged */
    uint8_t nonce[TRIB_NONCE_BYTES]; /* with which it was */
    uint8_t proof[TRIB_PROOF_BYTES];
    uint8_t ip[16];
    struct ucx_hello hello;
    uint8_t *name; /* of trib_ucx_name_room */
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
    const struct trib_secret *secret; /* NULL or not set: there is none */
    struct trib_idle *idle; /* called while connections are made; or NULL */
    struct trib_strangers strangers; /* the manager's */
    uint64_t settings;
    uint32_t depth; /* of send_reqs; a power of two */
    uint32_t release; /* of UCX */
    /* UCX */
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *name; /* of the worker, for peers */
    size_t name_len;
    int efd; /* of the worker */
    pthread_mutex_t lock;
    _Atomic int knocking; /* the manager waits for `lock`: let it in */
    uint32_t ready; /* of all peers' */
    uint32_t backlog; /* peers that have send_reqs */
    uint64_t unflushed; /* bytes written since UCX was seen to have sent all */
    uint64_t flushing; /* of these, what the helper's requests are about; 0: there are
                        * none */
    bool asks_help; /* the helper is to look: UCX may keep some of them */
    struct ucx_fetch *fetches; /* not in use */
    struct trib_region_table table; /* memory here; of peers, which is the owner's */
    /* descriptors */
    int wakeup_fd; /* eventfd: ends the own wait */
    int epoll; /* of wakeup_fd and the worker's efd; a sleep waits for it */
    int stop; /* eventfd: ends the manager */
    int manager_epoll; /* epoll: what the manager waits for */
    struct trib_net_port listener;
    struct trib_accept_pause pause; /* of the listener, the manager's */
    bool resting; /* the listener is not in manager_epoll */
    pthread_t manager;
    bool managed;
    pthread_mutex_t links;
    struct ucx_peer *peers;
    struct ucx_pending_conn *pending_conns; /* [max_pending], the manager's */
    int n_pending, max_pending;
    _Atomic bool async_events; /* some peer's gone, fault or the like is set */
    _Atomic bool slept; /* the next poll looks around at once */
    uint32_t polls_seen; /* the helper's */
    bool is_helped; /* the thread of the heartbeats runs the helper */
    /* the owner's */
    _Atomic uint32_t polls;
    uint64_t tick_at;
    uint64_t stops_at;
    int n_going;
    int turn; /* whose messages are reported first */
};

static inline bool ucx_has_secret(const struct ucx *u)
{
    return u->secret && u->secret->is_set;
}

static inline uint32_t ucx_flags(const struct ucx *u)
{
    return ucx_has_secret(u) ? UCX_HAS_SECRET : 0;
}

static inline struct ucx *ucx_of(struct trib_transport *t)
{
    return (struct ucx *)t;
}

static inline struct trib_peers ucx_peers(const struct ucx *u)
{
    return (struct trib_peers){u->peers, sizeof(*u->peers), u->self, u->size, u->err};
}

/* ucx_worker.c: what hangs on UCX alone. */
trib_status_t trib_ucx_worker_make(struct ucx *u);
void trib_ucx_worker_free(struct ucx *u);
/** trib_ucx_endpoint - `name` is a worker's address, in memory of
 * trib_ucx_name_room. */
ucs_status_t trib_ucx_endpoint(struct ucx *u, int peer, const void *name);
/** trib_ucx_name_room - memory for a worker's address of so many bytes, to be freed;
 * NULL: none. */
void *trib_ucx_name_room(size_t bytes);
void trib_ucx_endpoint_close(struct ucx *u, int peer);
unsigned trib_ucx_progress(struct ucx *u);
bool trib_ucx_flush(struct ucx *u, int peer, uint64_t until);
void trib_ucx_nap(struct ucx *u);
void trib_ucx_ring(struct ucx *u);
void trib_ucx_devices(char *text, size_t bytes);

/* ucx_proof.c: who connects, and who listens, has the job's secret. */
/* false: it cannot be sent. */
bool trib_ucx_challenge(struct ucx *u, struct ucx_pending_conn *g);
/* The key of the messages of a pending connection. */
uint64_t trib_ucx_pending_key(struct ucx *u, const struct ucx_pending_conn *g);
bool trib_ucx_pending_proved(struct ucx *u, const struct ucx_pending_conn *g);
/* false: the listener's proof is wrong. */
bool trib_ucx_answer_challenge(struct ucx *u, int peer, const struct ucx_hello *hello,
                               const struct ucx_challenge *c,
                               uint8_t proof[TRIB_PROOF_BYTES]);

/* ucx_cm_thread.c */
trib_status_t trib_ucx_listen(struct ucx *u, int first_port, int ports);
trib_status_t trib_ucx_manager_start(struct ucx *u);
void trib_ucx_manager_stop(struct ucx *u);
void trib_ucx_look_at(struct ucx *u, int fd, int peer, bool out);
/* Closes one that is looked at: closing alone would leave it in manager_epoll as long
 * as a forked child holds it. */
void trib_ucx_hang_up(struct ucx *u, int *fd);
void trib_ucx_say(struct ucx *u, int peer, enum ucx_word_kind kind, uint64_t value);

/* ucx_helper.c */
/* Once there are heartbeats. */
void trib_ucx_helper_open(struct ucx *u);
void trib_ucx_helper_close(struct ucx *u);
/* Under `lock`: UCX has been given these bytes, or a large message of a peer;
 * unfinished: it keeps a part. */
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

/* ucx_liveness.c: who is still there, and leaving. */
void trib_ucx_tick(struct ucx *u);
void trib_ucx_take_async_events(struct ucx *u);
int trib_ucx_report_losses(struct ucx *u, struct trib_event *events, int max);
void trib_ucx_disconnect(struct trib_transport *t, int peer);
/* To all at once, under one deadline. */
void trib_ucx_leave(struct trib_transport *t, const bool *which);

/* ucx_write.c */
trib_status_t trib_ucx_write(struct trib_transport *t, int peer,
                             const struct trib_write *write);
trib_status_t trib_ucx_send_first(struct ucx *u, int peer);
int trib_ucx_reap(struct ucx *u, struct trib_event *events, int max);
void trib_ucx_wake(struct trib_transport *t, int peer);

/* ucx_receive.c */
ucs_status_t trib_ucx_take(void *arg, const void *header, size_t header_length,
                           void *data, size_t length, const ucp_am_recv_param_t *param);
int trib_ucx_deliver(struct ucx *u, struct trib_event *events, int max);

/* ucx_mem.c */
TRIB_TRANSPORT_MEMORY(trib_ucx);
/* The target of a peer's write; NULL: not inside a region. Under `lock`. */
uint8_t *trib_ucx_place(struct ucx *u, const struct ucx_head *head);

/* ucx_error_text.c: what went wrong, in words. */
const char *trib_ucx_status_text(const struct trib_ucx_api *api, ucs_status_t status);
void trib_ucx_refusal_text(uint64_t value, char *text, size_t bytes);

#endif
