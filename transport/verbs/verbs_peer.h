/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State of the verbs transport and its peers.
 *
 * Each pair of ranks has up to two reliable connections (RC). Each rank creates one for
 * its own writes, its outlet, and accepts the peer's, its inlet. So the ranks need not
 * agree which of them connects. All queue pairs share one CQ and one SRQ; on a device
 * without SRQs each has its own receives. The receives have no buffers: they are
 * consumed by immediates.
 *
 * There are three threads. The owner posts and polls. The manager (verbs_cm_thread.c)
 * answers connection requests, also while the owner computes, and reads the events of
 * the connection manager. The adapter's thread (verbs_adapter.h) reads the events of
 * the device. `links` guards the state that they share. `posting` guards the send
 * queues, because any thread may call wake(). Objects are destroyed without either
 * lock: their destruction waits until their events are acknowledged.
 */
#ifndef TRANSPORT_VERBS_VERBS_PEER_H
#define TRANSPORT_VERBS_VERBS_PEER_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/acceptor.h"
#include "base/proof.h"
#include "base/rdma_counters.h"
#include "base/spin_lock.h"
#include "base/unauthenticated.h"
#include "transport/common/ip_endpoint.h"
#include "transport/multirail/multirail_wire.h"
#include "transport/transport.h"
#include "transport/verbs/verbs_adapter.h"
#include "transport/verbs/verbs_dl_api.h"
#include "transport/verbs/verbs_oob_proto.h"
#include "transport/verbs/verbs_wire.h"

#define VERBS_BATCH 32 /* receives per post, completions per poll */
#define VERBS_OUTLET_RECEIVES 4 /* without an SRQ */

/* A port of a device; "" and 0 match any. */
struct verbs_port {
    char device[IBV_SYSFS_NAME_MAX];
    uint8_t number; /* from 1; 0: any active port */
    uint8_t path, n_paths; /* of the transports over this port; n_paths 0: one */
    uint64_t key; /* of all rails of this rank; 0: a transport of its own */
};
#define VERBS_PORT_TEXT (IBV_SYSFS_NAME_MAX + 4) /* "mlx4_0:2", with the NUL */

/* The kind of work that a completion reports, in the upper four bits of its wr_id. */
enum verbs_work { VERBS_SENT, VERBS_RECEIVED, VERBS_SENT_DISCONNECT };
#define VERBS_WORK_SHIFT 60

struct verbs_region {
    struct ibv_mr *mr;
    uint32_t lkey;
    uint8_t *ptr;
    uint64_t iova; /* address of the first byte in requests: see verbs_mr.c */
    size_t len;
    size_t mapped; /* bytes mapped by alloc; 0: the caller's memory */
    struct verbs_cached *cached; /* borrowed; or NULL */
    bool is_closed; /* peers do not write to it */
    LIST_ENTRY(verbs_region) entry;
};

struct verbs_remote {
    int peer;
    uint32_t rkey;
    uint64_t address; /* the owner's iova */
    size_t len;
    LIST_ENTRY(verbs_remote) entry;
};

/* In state GOING: whether `why` is known to be the cause of the loss. */
enum verbs_unclear_failure {
    VERBS_CLEAR,
    VERBS_FLUSHED, /* the device stopped a queue pair; the cause may still be
                    * reported */
    VERBS_REFUSED, /* the peer's device refused a request, perhaps because the process
                    * is exiting */
};

/* Settings of connections; -1: not set. */
struct verbs_traffic {
    int64_t traffic_class, sl, pkey, hop_limit, ack_timeout, retry_count, rnr_retry;
};

/* How to connect. */
enum verbs_connect { VERBS_BY_BEST, VERBS_BY_RDMACM, VERBS_BY_GID };

/* The path of an OOB connection; librdmacm would resolve it. */
struct verbs_path {
    enum verbs_way way;
    struct verbs_gid own, peer;
    uint16_t lid; /* the peer's */
    bool global;
    uint8_t mtu;
    uint8_t traffic_class;
    uint16_t pkey;
    uint32_t qp_num; /* the peer's */
    uint32_t own_psn, peer_psn;
};

/* One connection, made by librdmacm (id) or out of band (oob_fd). */
struct verbs_link {
    struct ibv_qp *qp; /* NULL: none */
    struct rdma_cm_id *id;
    bool by_oob;
    int oob_fd; /* by_oob: an idle TCP socket; its end means that the process has
                 * ended */
    uint8_t mtu; /* by librdmacm: path MTU limit, the smaller MTU of both ports */
    struct verbs_path path; /* by_oob */
};

/* A TCP connection to the OOB listener whose request is incomplete. */
struct verbs_pending_conn {
    struct trib_pending base;
    enum verbs_parsed parsed; /* of the request; STRANGER: its proof is wrong */
    size_t request_bytes;
    bool refused; /* request received, refusal sent in place of the challenge */
    struct trib_proof proof; /* TRIB_PROOF_NEW: the request is incomplete */
    uint8_t answer[TRIB_PROOF_BYTES]; /* to the challenge */
    uint8_t bytes[sizeof(struct verbs_oob_request)];
};

/* A challenge sent in answer to a request through librdmacm. */
struct verbs_cm_challenge {
    uint64_t until; /* 0: none */
    struct trib_proof proof;
};

/* The listener for OOB requests. Only the manager uses it, except for `epoll`. */
struct verbs_oob_listener {
    struct trib_net_port at; /* fd -1: closed */
    int epoll; /* watches the listener, pending connections and oob_fds */
    struct trib_acceptor acceptor;
};

/* The peer and direction of a queue pair. */
struct verbs_route {
    int peer; /* -1: unknown queue pair */
    bool outlet;
};

/* A send request whose completion is reported as WRITE_DONE. */
struct verbs_asked {
    uint64_t token;
    uint32_t position; /* in the send queue */
};

#define VERBS_SEND_LIST 4u /* requests per doorbell */

struct verbs_request {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
};

/* Send requests to one peer that are not posted yet. */
struct verbs_send_list {
    struct verbs_peer *to;
    int peer;
    struct verbs_request *next; /* of[n] */
    uint32_t n, n_asked;
    struct verbs_request of[VERBS_SEND_LIST]; /* each linked to the next */
    struct verbs_asked asked[VERBS_SEND_LIST]; /* position: in the list */
};

/* The result of an attempt to connect again. */
enum verbs_attempt {
    VERBS_ATTEMPT_FAILED,
    VERBS_ATTEMPT_CONNECTED,
    VERBS_ATTEMPT_NO_LISTENER, /* the peer's process no longer listens */
    VERBS_ATTEMPT_NOT_YET, /* it listens, but has not seen the loss yet */
    VERBS_ATTEMPT_NEVER, /* its device has failed, or it has left for good */
};

#define VERBS_REVIVALS 16 /* attempts at once, for one device */

/* An attempt to connect again to a lost peer, by a thread of its own. */
struct verbs_revival {
    struct verbs *v;
    pthread_t thread;
    bool running; /* not joined yet */
    int peer;
    _Atomic bool finished;
    enum verbs_attempt result;
};

#define VERBS_FAILURE_TEXT 800 /* a struct trib_error cuts it off */

/* The end of trib_verbs_try_devices. */
struct verbs_outcome {
    trib_status_t status;
    uint64_t until; /* a failure counts until this time */
    int at; /* the device in its choice */
    char why[VERBS_FAILURE_TEXT]; /* of the first failure; "": there was none */
};

struct verbs_peer {
    struct trib_peer_base base;
    struct verbs_outcome *outcome; /* connect_many has failed, and connect has not
                                    * asked yet; or NULL */
    struct verbs_address address; /* of the device that it was connected over */
    uint64_t revive_at; /* time of the next attempt to connect again */
    uint64_t revived_at; /* time of the last success; 0: none */
    uint64_t prove_until; /* a probe of a new outlet is pending; 0: none */
    uint32_t pause_ms; /* before the next attempt; 0: not lost yet */
    struct verbs_ip where; /* the address that it answered at */
    uint8_t device; /* index among the peer's devices */
    char by[TRIB_WHY_MAX]; /* description of the connection */
    uint64_t key;
    const char *never; /* why it refuses for good; or NULL */
    bool got_disconnect; /* the end of its connection is no death */
    bool finished; /* DISCONNECT received and nothing is in flight */
    enum verbs_unclear_failure unclear;
    bool broken; /* lost by a failure of the connection, not of the process */
    bool stopped, in_stopped; /* its outlet, its inlet is stopped before the loss is
                               * reported */
    bool ended; /* REFUSED: its connection has ended since */
    enum ibv_wc_status status; /* REFUSED: status of the failed completion */
    uint32_t vendor; /* REFUSED: vendor error of the completion */
    uint64_t question; /* REFUSED: from trib_peer_liveness_ask */
    uint64_t checked_at;
    uint64_t ahead; /* bytes of the pieces that precede their write */
    /* without an SRQ: receives of the inlet consumed and not reposted, and its QP */
    uint32_t owed, owed_qp_num;
    bool is_owed; /* listed in `owing` */
    struct verbs_asked *asked; /* ring of 2 * depth: as many may be complete and not
                                * reported as are in flight */
    uint32_t asked_head, asked_tail;
    uint32_t done; /* requests before this position have succeeded */
    bool is_asking; /* listed in `asking` */
    uint32_t polled_tail; /* `tail` when a poll last left requests uncovered */
    /* guarded by `posting`; `head` is written by the owner only */
    struct ibv_qp *qp; /* QP of the outlet; NULL: do not post */
    size_t piece; /* longest message to it; longer writes are split */
    _Atomic uint32_t head; /* oldest request not known to be complete */
    _Atomic uint32_t tail; /* next free; changed under `posting` */
    _Atomic int32_t room; /* free slots at least, without the one of the DISCONNECT;
                            * changed under `posting` */
    uint32_t unsignalled; /* requests since the last signalled one */
    uint32_t uncovered; /* the same, but only requests with a token */
    uint32_t covered; /* position after the last signalled one */
    bool disconnect_pending; /* last notice is posted on the inlet and incomplete */
    bool may_return; /* lost because stopped or silent: it may resume */
    struct verbs_link severed[2]; /* connections of a lost peer, to be destroyed */
    /* guarded by `links` */
    struct verbs_link out, in;
    bool in_established;
    pid_t in_pid; /* process that asked for the inlet */
    bool closed; /* refuse its requests … */
    bool barred; /* … and do so for good */
    bool gone; /* async event: its connection has ended */
    char fault[TRIB_WHY_MAX]; /* async event: the device's error on its queue pairs */
    _Atomic uint8_t piece_shift; /* log2 of the piece size of its writes */
};

struct verbs {
    struct trib_transport base;
    struct trib_verbs_api api;
    int self;
    int size;
    const struct trib_config *cfg;
    const struct trib_log *log;
    struct trib_error *err;
    struct trib_ip_endpoint local; /* its networks are used for OOB requests */
    const struct trib_secret *secret; /* NULL or not set: the job has no secret */
    struct trib_idle *idle; /* called while connecting; or NULL */
    struct trib_idle_gate gate; /* its owner: several threads connect */
    struct trib_unauthenticated unauthenticated; /* manager only */
    struct verbs_cm_challenge *challenges; /* through librdmacm; under `links` */
    int next_challenge;
    uint64_t settings;
    int reach_ms; /* after that no further address of a peer is tried */
    /* chosen at open */
    char device[IBV_SYSFS_NAME_MAX];
    char label[VERBS_PORT_TEXT]; /* device name in messages: "mlx5_0", or "mlx4_0:2" */
    uint8_t path, n_paths; /* of its rails over this port; n_paths > 1: queue pairs have
                            * flow labels that differ */
    bool one_port; /* do not use the device's other ports */
    enum verbs_connect connect;
    bool reconnects; /* to lost peers */
    int gid, roce; /* GID index, -1: any; RoCE version, 0: any */
    struct trib_net_choice nets; /* networks of the devices to use */
    char no_rdmacm[240]; /* why librdmacm is not used; "": it is used */
    bool unfit; /* open failed because the device lacks a feature */
    uint8_t port_num; /* of the device */
    uint8_t layer; /* enum verbs_layer; 0: unknown */
    uint32_t mbps; /* nominal speed of the port, Mbit/s; 0: unknown */
    uint32_t message_max;
    struct verbs_ip ip[VERBS_ADDRESSES]; /* addresses of the device, then others of the
                                          * host */
    uint16_t n_ips; /* addresses of the device */
    uint16_t more_ips;
    uint16_t
        untold_ips; /* the last of them, for which an address of rails has no room */
    uint16_t port; /* of librdmacm's listener */
    uint32_t depth; /* limit of posted requests per peer; a power of two */
    uint32_t signal_every;
    uint32_t receives; /* in all */
    int relaxed; /* VERBS_RELAXED_ORDERING or 0 */
    uint32_t link_receives; /* of each inlet, without an SRQ */
    _Atomic uint32_t inline_bytes; /* that each outlet takes; threads that connect lower
                                    * it */
    uint8_t piece_shift;
    struct verbs_traffic traffic; /* ack_timeout, retry_count and rnr_retry are set */
    uint16_t pkey; /* partition of connections by GIDs */
    uint8_t traffic_class; /* of connections by GIDs */
    struct trib_rdma_counters counters; /* of its port when it was opened */
    bool has_class; /* traffic_class is known; else the peer's is taken */
    /* objects */
    struct verbs_adapter *adapter; /* shared by the transports of this process */
    struct ibv_context *context; /* of `adapter` */
    struct verbs_trust trust;
    struct verbs_domain *domain;
    struct ibv_pd *pd; /* of `domain` */
    size_t cache_bytes; /* that the process's cache of registrations may pin; 0: not
                         * used */
    bool cache_logged; /* why some memory is not registered */
    struct verbs_event_sink sink;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_srq *srq; /* NULL: the device has none */
    struct rdma_event_channel *events; /* NULL: no librdmacm */
    struct rdma_cm_id *listener;
    struct verbs_oob_listener oob;
    int wakeup_fd; /* eventfd: ends the owner's wait */
    int epoll; /* the owner sleeps on this: wakeup_fd and the completion channel */
    int stop; /* eventfd: stops the manager */
    pthread_t manager;
    bool managed;
    pthread_mutex_t links;
    struct trib_spin_lock posting;
    struct verbs_peer *peers;
    _Atomic uint64_t *routes; /* hash table: QP number to struct verbs_route */
    uint32_t routes_mask;
    const char *_Atomic device_end; /* how its device has failed, for good; or NULL */
    _Atomic bool async_events; /* `gone` or `fault` of some peer is set */
    _Atomic bool slept; /* the next poll must check the clock */
    _Atomic bool armed;
    _Atomic uint32_t unacked; /* completion events not acknowledged */
    /* used by the owner only */
    struct ibv_wc *deferred_cqes; /* deferred by trib_verbs_drain, [deferred_max] */
    uint32_t deferred_at, n_deferred, deferred_max;
    uint32_t owed; /* receives of the SRQ consumed and not reposted */
    int *owing; /* without an SRQ: peers whose inlets need receives, [size] */
    int n_owing;
    struct verbs_send_list list;
    int *asking; /* peers with requests in `asked`, [size] */
    int n_asking;
    bool completed; /* requests in `asked` may be complete */
    bool uncovered; /* no signalled request may follow some of them */
    bool may_sleep; /* from arm() to the next poll */
    LIST_HEAD(, verbs_region) regions;
    LIST_HEAD(, verbs_remote) remotes;
    struct verbs_revival revivals[VERBS_REVIVALS];
    uint32_t polls;
    uint64_t tick_at;
    uint64_t stops_at;
    int n_losing;
};

/* Return false in a forked child. A child shares the device's files; its calls would
 * act on its parent's queues and memory. */
static inline bool verbs_is_ours(const struct verbs *v)
{
    return getpid() == v->local.me.pid;
}

/* Return how the device of this rank has failed for good, or NULL. */
static inline const char *verbs_device_end(const struct verbs *v)
{
    return atomic_load_explicit(&v->device_end, memory_order_acquire);
}

/* Return the longest write that is posted inline. */
static inline uint32_t verbs_inline(const struct verbs *v)
{
    return atomic_load_explicit(&v->inline_bytes, memory_order_relaxed);
}

static inline bool verbs_has_secret(const struct verbs *v)
{
    return v->secret && v->secret->is_set;
}

/* For asserts: return true if some thread holds `links`. */
static inline bool verbs_links_held(struct verbs *v)
{
    return pthread_mutex_trylock(&v->links) != 0;
}

static inline void verbs_list_clear(struct verbs_send_list *l)
{
    l->next = l->of;
    l->n = l->n_asked = 0;
}

/* Return true if all requests posted to a peer are complete. */
static inline bool verbs_sends_done(const struct verbs_peer *p)
{
    return atomic_load_explicit(&p->tail, memory_order_relaxed) ==
           atomic_load_explicit(&p->head, memory_order_relaxed);
}

static inline struct verbs *verbs_of(struct trib_transport *t)
{
    return (struct verbs *)t;
}

/* Return log2 of the longest message that both ports take. */
static inline uint8_t verbs_out_shift(const struct verbs *v,
                                      const struct verbs_address *a)
{
    return v->piece_shift < a->piece_shift ? v->piece_shift : a->piece_shift;
}

static inline struct trib_peers verbs_peers(const struct verbs *v)
{
    return (struct trib_peers){v->peers, sizeof(*v->peers), v->self, v->size, v->err};
}

#define VERBS_IP_TEXT TRIB_IP_TEXT_BYTES

static inline char *verbs_ip_text(const struct verbs_ip *ip, char text[VERBS_IP_TEXT])
{
    trib_net_text(ip->bytes, text, VERBS_IP_TEXT);
    return text;
}

static inline void verbs_ip_socket(const struct verbs_ip *ip, uint16_t port,
                                   struct sockaddr_storage *out)
{
    (void)trib_net_sockaddr(ip->bytes, port,
                            trib_net_is_v4(ip->bytes) ? AF_INET : AF_INET6, out);
}

static inline uint64_t verbs_work_id(enum verbs_work work, int peer, uint32_t position)
{
    return (uint64_t)work << VERBS_WORK_SHIFT | (uint64_t)peer << 32 | position;
}

/* verbs_peer.c: the state of a peer */
trib_status_t trib_verbs_no_device(struct verbs *v);
/* Set the error of calls in a forked child. */
trib_status_t trib_verbs_forked(struct verbs *v);
/* Explain that the device has failed: "this host's RDMA device mlx5_0 has failed". */
void trib_verbs_device_end_text(const struct verbs *v, char why[TRIB_WHY_MAX]);
/* The operation `route`. */
void trib_verbs_peer_route(struct trib_transport *t, int peer, struct trib_route *out);
/* Record for the owner that async events have happened, and end its wait. */
void trib_verbs_wake_owner(struct verbs *v);
/* Watch a socket in the manager's thread. */
void trib_verbs_watch_fd(struct verbs *v, int fd);
void trib_verbs_unwatch_fd(struct verbs *v, int fd);
/* Check a request. Returns the peer if it is welcome, or connected already: verdict
 * VERBS_TWICE. */
struct verbs_peer *trib_verbs_check_hello(struct verbs *v,
                                          const struct verbs_hello *hello,
                                          bool own_port, enum verbs_refusal *verdict);
/* A peer that is connected already asks again. If it is the same process, it has lost
 * its connection: have the owner lose it, too. Returns false for another process. */
bool trib_verbs_supersede(struct verbs *v, struct verbs_peer *p,
                          const struct verbs_hello *hello);
/* Forget all requests to a peer: they count as done. Its outlet must not be in use. */
void trib_verbs_forget_requests(struct verbs *v, int peer);
/* Allocate `asked`. Return false if there is no memory. */
bool trib_verbs_make_asked(struct verbs *v, int peer);
/* Forget the failure of connect_many, if there is one. */
void trib_verbs_forget_failure(struct verbs *v, int peer);
/* Report it, once. */
trib_status_t trib_verbs_take_failure(struct verbs *v, int peer);
/* Wait for the end of an attempt to connect again to this peer, if there is one. */
void trib_verbs_end_revival(struct verbs *v, int peer);
void trib_verbs_lose_peer(struct verbs *v, int peer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void trib_verbs_note_refusal(struct verbs *v, int peer, const struct ibv_wc *wc);
void trib_verbs_report_error(struct verbs *v, int peer, enum ibv_wc_status status,
                             uint32_t vendor);

#endif
