/* SPDX-License-Identifier: BSD-3-Clause */
/* Internals of a server, for the files of the control thread (README.md). */
#ifndef AGG_DAEMON_SERVER_PARTS_H
#define AGG_DAEMON_SERVER_PARTS_H

#include "agg/daemon/aggregator.h"
#include "agg/daemon/archive.h"
#include "agg/daemon/credentials.h"
#include "agg/daemon/ctl_server.h"
#include "agg/daemon/health.h"
#include "agg/daemon/quotas.h"
#include "agg/daemon/request_worker.h"
#include "agg/daemon/server.h"
#include "agg/daemon/store_job.h"
#include "agg/daemon/store_turns.h"
#include "agg/daemon/watchdog.h"
#include "agg/daemon/worker.h"
#include "agg/jobs/jobs.h"
#include "agg/metrics/http.h"
#include "agg/metrics/metrics.h"
#include "agg/protocol/session.h"
#include "base/acceptor.h"

enum {
    UNAUTHENTICATED_MAX = 512, /* maximum such connections; see listeners.c */
    LISTENERS_MAX = 32,
    HANDSHAKE_MS = 5000,
    GOODBYE_MS = 300, /* wait for a goodbye after the aggregator ended */
    PATIENCE_MS = 2000,
    GATE_MS = 600000, /* how long an oversized next job keeps slots free at first */
    RECLAIM_MS = 5000, /* maximum time for which an ended job keeps its slots */
    STUCK_MS = 10000,
    TICK_MS = 1000,
    BLIND_MS = 10, /* polling interval if the kernel cannot report events */
    IDLE_MS = 10000, /* time for an authenticated client to send a request */
    UNHEARD_MS = 10000, /* TCP_USER_TIMEOUT: a host without acknowledgements is lost */
    /* Token bucket for a user's JOINs: burst, and interval per JOIN. A wireup takes
     * milliseconds of a core, so unlimited joining would exhaust the cores. */
    JOINS_AT_ONCE = 128,
    JOIN_MS = 50,
    JOIN_USERS = 64,
    MESSAGES_MOST = 32, /* per client and pass, to serve others without delay */
    PLAN_SHARE = 8, /* a plan may use 1 / PLAN_SHARE of the memory */
    ENDED_STORES_MAX = 256, /* that wait for the disk; see store_share.c */
};

#define JOIN_NS ((uint64_t)JOIN_MS * 1000000)

struct query;
struct reload;

/* A connection of a job or of a future job. */
struct client {
    struct trib_pending base; /* in the acceptor's table until it authenticates */
    struct trib_session *session; /* NULL: closed, the aggregator is ending */
    struct credentials *credentials;
    struct trib_error err;
    struct aggregator *aggregator;
    struct store_job *store; /* has the sessions of its ranks; or NULL */
    struct trib_control_store_join store_join; /* request that creates the store */
    bool asks_store; /* its request is store_join, not join */
    uint64_t store_bytes; /* bytes held by the store when last published */
    uint64_t over_by; /* its aggregator failed: end of the wait for GOODBYE; or 0 */
    uint64_t job; /* id in the table of jobs; 0: none */
    struct trib_quota quota; /* memory of the job, used by table and aggregator */
    struct trib_control_join join;
    uint8_t *tree; /* bytes of the tree in `join` */
    short watched; /* events in the epoll set; 0: not in the set */
    bool ready; /* has input, according to the epoll set */
    struct query *query; /* pending question at the request worker, or NULL */
    bool proven; /* authenticated */
    uint64_t ask_by; /* authenticated: JOIN timeout */
    bool more; /* the last pass may have left input unread */
    bool asked;
    uint64_t asked_ns; /* arrival of a request waiting for its token; 0: none */
    uint64_t *join_bucket; /* token bucket of its user, owned by the server */
    bool left; /* it sent GOODBYE, was refused, or is lost */
    bool freed; /* its slots were returned to `jobs` */
    bool lends; /* idle, and its slots are lent */
    bool said; /* the end of its aggregator was logged */
    char from[64]; /* cached result of server_from */
    enum trib_service_reason lost; /* reason of the loss; 0: connection closed */
};

struct server {
    struct settings settings;
    struct trib_log log;
    uint64_t log_dropped; /* dropped lines already counted in /metrics */
    struct credentials *credentials; /* for new clients */
    struct request_worker *request_worker;
    struct reload *reload; /* in progress, or NULL */
    const struct server_ear *reload_again; /* after another SIGHUP; or NULL */
    struct trib_jobs *jobs;
    struct trib_metrics *metrics;
    struct trib_http *http;
    struct ctl_server *ctl; /* NULL: no socket */
    struct archive *archive; /* NULL: no snapshots */
    struct worker **workers;
    int n_workers;
    struct store_turns *turns; /* for the threads of all stores */
    struct watchdog watchdog;
    int wake_fd;
    int epoll_fd; /* epoll set of the clients */
    int spare_fd; /* reserve to close when descriptors run out; -1: none */
    int listeners[LISTENERS_MAX];
    int n_listeners;
    struct trib_acceptor acceptor; /* of all listeners */
    bool blind; /* the kernel could not report events in this pass */
    bool said_blind;
    uint64_t said_until_ns; /* token bucket for logging unauthenticated peers */
    uint64_t unauthenticated_left; /* unauthenticated peers not logged */
    bool reached; /* a listener is reachable from other hosts */
    char net[128]; /* networks of `listen`, as net= of a transport; "": all */
    struct client **clients; /* [n_clients_max], unordered */
    int n_clients;
    int n_clients_max;
    uint64_t join_buckets[JOIN_USERS]; /* for JOINs, by hash of the user */
    struct health health;
    bool draining, drained; /* drain requested; drain time is over */
    uint64_t drain_until;
    uint64_t extend_at; /* when to ask systemd for more time */
    bool extends; /* since the last request, there was progress */
    uint64_t progress; /* of the last snapshots, at the last check */
    uint64_t looked_ns; /* time of the last check; 0: none yet */
    uint64_t stalled_ns; /* time without a change, apart from stops of this process */
    bool said_stall; /* logged that there is no progress */
    bool gave_up; /* no progress for disk_ms: exit without the snapshots */
};

/** server_awaits_store - return true if a request to create a store waits for its
 * token. What follows it is for the store. */
static inline bool server_awaits_store(const struct client *c)
{
    return c->asks_store && c->asked_ns;
}

/** server_holds - return true if a client is not read because its worker is behind with
 * plans, or because it has no store yet. */
static inline bool server_holds(const struct client *c)
{
    return server_awaits_store(c) ||
           (c->aggregator && aggregator_is_behind(c->aggregator));
}

/* Shared by all below: server_clients.c -------------------------------------------- */

/** server_event - count an event. */
void server_event(struct server *s, enum trib_service_counter c);

/** server_publish - publish the table of jobs to the metrics, and weights to the
 * workers. */
void server_publish(struct server *s);

/** server_from - return the address of its connection, such as "10.1.2.3:45678"; valid
 * as long as the client. */
const char *server_from(struct client *c);

/** server_hang_up - close a client's connection and end its aggregator or store; the
 * client is freed once these are gone. */
void server_hang_up(struct server *s, struct client *c);

/** server_hang_up_saying - close a job's connection and end its aggregator, whose ranks
 * receive `say`, or nothing if NULL. */
void server_hang_up_saying(struct server *s, struct client *c, const char *say);

/** server_free_slots - remove the job of a client from the table of jobs: its
 * aggregator is gone, or its store is empty. */
void server_free_slots(struct server *s, struct client *c);

/** server_free_client - free clients[i]; the last client takes its index. */
void server_free_client(struct server *s, int i);

/** server_memory - return the memory limit of all jobs, in bytes. */
uint64_t server_memory(const struct settings *t);

/** server_disk - return the limits on snapshots. */
struct archive_limits server_disk(const struct settings *t);

/** server_warn - log warnings about insecure settings. */
void server_warn(const struct server *s);

/* Its users ------------------------------------------------------------------------ */

/** admit_join - process a JOIN: refuse it, or let it wait for its user's token
 * bucket. */
void admit_join(struct server *s, struct client *c,
                const struct trib_control_join *join);

/** admit_next - return the oldest request whose token bucket allows it, and take the
 * token; NULL: none. admit_submit or store_admit_due follows. */
struct client *admit_next(struct server *s);

/** admit_submit - submit the job of a JOIN; it may be queued. */
void admit_submit(struct server *s, struct client *c);

#define ADMIT_TOO_MANY "too many requests of this user wait already: retry later"

/** admit_refuse_waiting - refuse a JOIN that waits for its token: ADMIT_TOO_MANY. */
void admit_refuse_waiting(struct server *s, struct client *c);

/** admit_waiting - answer jobs whose state has changed with time; false: none. */
bool admit_waiting(struct server *s);

/** store_admit_join - process a STORE_JOIN: hand the session to a store, refuse it, or
 * let it wait for its user's token bucket. */
void store_admit_join(struct server *s, struct client *c,
                      const struct trib_control_store_join *join);

/** store_admit_due - create the store of a request that has its token, or refuse it. */
void store_admit_due(struct server *s, struct client *c);

/** store_admit_refuse - refuse a STORE_JOIN for lack of resources. */
void store_admit_refuse(struct server *s, struct client *c, const char *why);

/* A request to create a store of `ranks` ranks, or to join one that `exists`. */
struct store_share {
    const char *user;
    uint32_t ranks;
    bool exists;
    uint32_t freed; /* open files of stores that the new one replaces */
};

/**
 * store_share_allows - return true if the limits on open files, and on stores that wait
 * for the disk, allow the request.
 *
 * why      receives a message if not
 */
bool store_share_allows(const struct server *s, const struct store_share *asked,
                        char *why, size_t bytes);

/** store_share_threads - return the number of threads of a new store. */
uint32_t store_share_threads(const struct server *s, const struct store_share *asked);

/** store_admit_sweep - maintain a client's store; true: it has ended and was freed.
 * *changed: set if the caller must call server_publish, once for all stores. */
bool store_admit_sweep(struct server *s, struct client *c, bool *changed);

/** admit_name_user - return the authenticated user of a client. */
void admit_name_user(const struct client *c, char out[TRIB_JOB_NAME_BYTES]);

/** admit_join_bucket - return the token bucket for JOINs of a client's user. */
uint64_t *admit_join_bucket(struct server *s, const struct client *c);

/** listener_open - open the acceptor of all listeners; false: out of memory. */
bool listener_open(struct server *s);

/** listener_log_end - log why a client's session has ended. */
void listener_log_end(struct server *s, struct client *c);

/** ready_note - mark clients with input as ready. */
void ready_note(struct server *s);

/** ready_watch - update the client's events in the epoll set. */
void ready_watch(struct server *s, struct client *c);

/** ready_forget - remove a session that another thread takes over from the epoll set.
 */
void ready_forget(struct server *s, struct client *c);

/** ready_blind - treat all clients as ready, because `what` failed with errno. */
void ready_blind(struct server *s, const char *what);

/**
 * query_begin - pass the session's question, if any, to the request worker.
 *
 * returns  TRIB_INPROGRESS; TRIB_ERR_NO_MEMORY: the session has ended
 */
trib_status_t query_begin(struct server *s, struct client *c);

/** query_abandon - discard the answer to a client's question. */
void query_abandon(struct server *s, struct client *c);

/** reload_begin - reload the settings; they apply once the request worker has looked up
 * their users. */
void reload_begin(struct server *s, const struct server_ear *ear);

/** server_control, server_is_settled - execute a command of tribctl; for struct
 * ctl_server_ops. */
bool server_control(void *arg, const struct ctl_request *request, char *say,
                    size_t bytes, uint64_t *later_out);
bool server_is_settled(void *arg, uint64_t later);

/** server_drain - accept no more jobs and end the current ones; uid and pid of the
 * requester are logged. */
void server_drain(struct server *s, uint32_t uid, uint32_t pid);

/** drain_step - advance a drain: end it when due, and ask systemd for more time while
 * snapshots are written. If the disk hangs, set gave_up. */
void drain_step(struct server *s);

/** drain_end - wait for the threads of snapshots; false: the disk hangs, and they do
 * not end. */
bool drain_end(struct server *s);

#endif
