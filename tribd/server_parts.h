/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a server, for server*.c, admit.c, doors.c, draining.c, inquiries.c,
 * ready.c and reload.c. */
#ifndef TRIBD_SERVER_PARTS_H
#define TRIBD_SERVER_PARTS_H

#include "agg/metrics/http.h"
#include "agg/jobs/jobs.h"
#include "agg/metrics/metrics.h"
#include "agg/protocol/session.h"
#include "base/accept.h"
#include "tribd/clerk.h"
#include "tribd/health.h"
#include "tribd/worker.h"
#include "tribd/ctl_server.h"
#include "tribd/aggregator.h"
#include "tribd/archive.h"
#include "tribd/quotas.h"
#include "tribd/server.h"
#include "tribd/watchdog.h"
#include "tribd/credentials.h"
#include "tribd/store_job.h"
#include "tribd/store_turns.h"

enum {
    STRANGERS_MAX = 512, /* places for those who have not proved who they are: see
                          * doors.c */
    LISTENERS_MAX = 32,
    HANDSHAKE_MS = 5000,
    GOODBYE_MS = 300, /* time for a goodbye to arrive after the ranks have left the
                       * aggregator */
    PATIENCE_MS = 2000,
    GATE_MS = 600000, /* first time for which a job that is next, and too large, keeps
                       * slots free */
    RECLAIM_MS = 5000, /* a job that is gone has its slots no longer than that */
    STUCK_MS = 10000,
    TICK_MS = 1000,
    BLIND_MS = 10, /* interval between two looks at all clients when the kernel cannot
                    * say which are ready */
    IDLE_MS = 10000, /* time that a proven client has to ask for something */
    UNHEARD_MS = 10000, /* a host that acknowledges nothing for so long is gone */
    /* JOINs of a user: so many at once, and one more each so often. To meet the ranks
     * of a job takes milliseconds of a core, of which who comes and goes without end
     * would else have all. */
    JOINS_AT_ONCE = 128,
    JOIN_MS = 50,
    JOIN_USERS = 64,
    MESSAGES_MOST = 32, /* messages taken from one client in a pass, so that a talkative
                         * one delays nobody */
    PLAN_SHARE = 8, /* one plan may take this fraction of the memory: 1 / PLAN_SHARE */
};

#define JOIN_NS ((uint64_t)JOIN_MS * 1000000)

struct inquiry;
struct reload;

/* A job, or one that wants to be. */
struct client {
    struct trib_session *session; /* NULL: closed, its aggregator is ending */
    struct credentials *credentials;
    struct trib_error err;
    struct aggregator *aggregator;
    struct store_job *store; /* its ranks' sessions are there; or NULL */
    struct trib_control_store_join store_join; /* by which the store was made */
    uint64_t store_bytes; /* that the store held when the table was last published */
    uint64_t over_by; /* its aggregator has failed: a goodbye is due by then; 0: it has
                       * not */
    uint64_t job; /* number in the table of jobs; 0: none */
    struct trib_quota quota; /* memory that the job holds, in the table and in its
                              * aggregator */
    struct trib_control_join join;
    uint8_t *tree; /* bytes of the tree in `join` */
    uint64_t source;  /* a digest of the address it came from */
    uint64_t came_ns;
    short watched;    /* events for which ready.c waits; 0: it is not in the set */
    bool ready;       /* the set says that it has something */
    struct inquiry *inquiry; /* the question that the clerk answers for it, or NULL */
    bool proven; /* it has proved its identity */
    uint64_t ask_by; /* proven, a JOIN is due by then */
    bool more;   /* it may have said more than was taken in the last pass */
    bool asked;
    uint64_t asked_ns; /* time of a JOIN that waits for its turn; 0: none does */
    uint64_t *join_bucket; /* token bucket of its user, in the server */
    bool left; /* it said goodbye, was refused, or is known to be lost */
    bool freed; /* jobs has its slots back */
    bool lends; /* it is idle, and jobs knows */
    bool said;  /* the log has the reason why its aggregator ended */
    char from[64]; /* result of server_from, once it was called */
    enum trib_service_reason lost; /* reason of the loss; 0: the connection ended */
};

struct server {
    struct settings settings;
    struct trib_log log;
    uint64_t log_dropped; /* lines of it that /metrics has counted as dropped */
    struct credentials *credentials; /* credentials for the next client */
    struct clerk *clerk;
    struct reload *reload; /* under way, or NULL */
    const struct server_ear *reload_again; /* SIGHUP came meanwhile; or NULL */
    struct trib_jobs *jobs;
    struct trib_metrics *metrics;
    struct trib_http *http;
    struct ctl_server *ctl; /* or NULL: no socket */
    struct archive *archive; /* or NULL: no snapshots */
    struct worker **workers;
    int n_workers;
    struct store_turns *turns; /* of the threads of all stores */
    struct watchdog watchdog;
    int wake_fd;
    int epoll_fd; /* epoll set of the clients that may send something */
    int spare_fd; /* descriptor to close when there is no other; -1: there was none */
    uint64_t seed; /* random seed for the digests of sources */
    int listeners[LISTENERS_MAX];
    int n_listeners;
    struct trib_accept_pause pause; /* pause of the listeners */
    bool blind; /* the kernel did not tell what is ready in this pass */
    bool said_blind;
    uint64_t said_until_ns;   /* pace of what the log says of strangers */
    uint64_t strangers_left;  /* number of strangers that the log did not name */
    bool reached; /* other hosts reach one of these */
    char net[128]; /* networks of `listen`, as net= of a transport; "": everywhere */
    struct client **clients; /* [n_clients_max], in no order */
    int n_clients;
    int n_clients_max;
    uint64_t join_buckets[JOIN_USERS]; /* token buckets for JOINs, by a hash of the
                                        * user */
    struct health health;
    bool draining, drained; /* told to; and its time is up */
    uint64_t drain_until;
    uint64_t extend_at; /* when systemd may be asked for more time */
    uint64_t extended_for; /* bytes of snapshots, plus 1, when it was asked last */
};

/** server_holds - true if a client is not read because its worker is behind with
 * plans. */
static inline bool server_holds(const struct client *c)
{
    return c->aggregator && aggregator_is_behind(c->aggregator);
}

/** server_event - count it. */
void server_event(struct server *s, enum trib_service_counter c);

/** server_publish - hand the state of all jobs to the metrics, and their weights to the
 * workers. */
void server_publish(struct server *s);

/** server_hang_up - end the conversation; the aggregator, if any, ends, and then the
 * client is gone. */
void server_hang_up(struct server *s, struct client *c);

/** server_free_client - free clients[i], which is gone; the last one takes its
 * place. */
void server_free_client(struct server *s, int i);

/** admit_join - a client's first JOIN: it is refused, or waits for its user's turn. */
void admit_join(struct server *s, struct client *c,
                const struct trib_control_join *join);

/** admit_due - hand the JOINs whose turn it is to the table of jobs, the oldest
 * first. */
void admit_due(struct server *s);

/** admit_waiting - answer the jobs for which time has changed something; false:
 * none. */
bool admit_waiting(struct server *s);

/** store_admit_join - a client asks for a store: its session goes there, or it is
 * refused. */
void store_admit_join(struct server *s, struct client *c,
                      const struct trib_control_store_join *join);

/* A rank that asks for a store, which has `ranks` of them. */
struct store_share {
    const char *user;
    uint32_t ranks;
};

/**
 * store_share_allows - true if stores leave open files for one more connection.
 *
 * why      receives the sentence if not
 */
bool store_share_allows(const struct server *s, const struct store_share *asked,
                        char *why, size_t bytes);

/** store_admit_sweep - look after a client's store; true if it is over, and gone. */
bool store_admit_sweep(struct server *s, struct client *c);

/** admit_name_user - the user of a client, as its proof names it. */
void admit_name_user(const struct client *c, char out[TRIB_JOB_NAME_BYTES]);

/** admit_join_bucket - the bucket from which the JOINs of a client's user are paid. */
uint64_t *admit_join_bucket(struct server *s, const struct client *c);

/** door_answer - accept all that wait at a listener, or a bounded number. */
void door_answer(struct server *s, int listener);

/** door_say_end - log why a client's session has ended. */
void door_say_end(struct server *s, struct client *c);

/** ready_note - mark the clients that have something to say as ready. */
void ready_note(struct server *s);

/** ready_watch - wait for what a client may say from now on. */
void ready_watch(struct server *s, struct client *c);

/** ready_forget - its session leaves this thread. */
void ready_forget(struct server *s, struct client *c);

/** ready_blind - all clients may be ready: `what` has failed with errno. */
void ready_blind(struct server *s, const char *what);

/**
 * inquiry_begin - have the clerk answer what a session asks, if it asks anything.
 *
 * returns  TRIB_INPROGRESS; TRIB_ERR_NO_MEMORY: the session has ended
 */
trib_status_t inquiry_begin(struct server *s, struct client *c);

/** inquiry_abandon - nobody waits for its answer any more. */
void inquiry_abandon(struct server *s, struct client *c);

/** reload_begin - read the settings again; they hold once the clerk has found whom they
 * name. */
void reload_begin(struct server *s, const struct server_ear *ear);

/** server_memory - the memory that the settings allow behind all slots, in bytes. */
uint64_t server_memory(const struct settings *t);

/** server_disk - the limits of snapshots that the settings give. */
struct archive_limits server_disk(const struct settings *t);

/** server_warn - warn in the log of settings that let strangers in. */
void server_warn(const struct server *s);

/** server_control - carry out a command of tribctl; for struct ctl_server_ops. */
bool server_control(void *arg, const struct ctl_request *request, char *say,
                   size_t bytes);

/** server_drain - no more jobs, and an end; whose word that was. */
void server_drain(struct server *s, uint32_t uid, uint32_t pid);

/** drain_step - do what is due of a drain: end it, and ask systemd for more time while
 * snapshots are written. */
void drain_step(struct server *s);

/** server_hang_up_saying - end a job's connection and its aggregator, whose ranks hear
 * `say` or nothing. */
void server_hang_up_saying(struct server *s, struct client *c, const char *say);

/** server_from - the address of its connection: "10.1.2.3:45678"; lasts as long as the
 * client. */
const char *server_from(struct client *c);

#endif
