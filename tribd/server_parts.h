/* SPDX-License-Identifier: BSD-3-Clause */
/* What a server is made of: for server*.c, and its parts doors.c, inquiries.c, ready.c,
 * reload.c. */
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
#include "tribd/node.h"
#include "tribd/quotas.h"
#include "tribd/server.h"
#include "tribd/watchdog.h"
#include "tribd/credentials.h"

enum {
    STRANGERS_MAX = 512, /* places for those who have not proved who they are: see
                          * doors.c */
    LISTENERS_MAX = 32,
    HANDSHAKE_MS = 5000,
    GOODBYE_MS = 300, /* by which a goodbye may come after the ranks have left the
                       * node */
    PATIENCE_MS = 2000,
    GATE_MS = 600000, /* how long a job that is next, and too large, keeps slots free at
                       * first */
    RECLAIM_MS = 5000, /* a job that is gone has its slots no longer than that */
    STUCK_MS = 10000,
    TICK_MS = 1000,
    BLIND_MS = 10, /* between two looks at all clients where the kernel cannot tell */
    IDLE_MS = 10000, /* of one that has proved who it is, until it asks for anything */
    UNHEARD_MS = 10000, /* a host that acknowledges nothing for so long is gone */
    /* JOINs of a user: so many at once, and one more each so often. To meet the ranks
     * of a job takes milliseconds of a core, of which who comes and goes without end
     * would else have all. */
    JOINS_AT_ONCE = 128,
    JOIN_MS = 50,
    JOIN_USERS = 64,
    MESSAGES_MOST = 32, /* of one client in a pass: who never stops talking keeps nobody
                         * waiting */
    PLAN_SHARE = 8, /* of the memory, one plan may have one part of so many */
};

struct inquiry;
struct reload;

/* A job, or one that wants to be. */
struct client {
    struct trib_session *session; /* NULL: closed, its node is ending */
    struct who *who;
    struct trib_error err;
    struct node *node;
    uint64_t over_by; /* its node has failed: a goodbye is due by then; 0: it has not */
    uint64_t job; /* of jobs; 0: none */
    struct trib_ledger ledger; /* what the job holds; its node's and the table's */
    struct trib_control_join join;
    uint8_t *tree; /* of join */
    uint64_t source;  /* a digest of the address it came from */
    uint64_t came_ns;
    short watched;    /* events for which ready.c waits; 0: it is not in the set */
    bool ready;       /* the set says that it has something */
    struct inquiry *inquiry; /* what the clerk asks for it, or NULL */
    bool proven; /* who it is */
    uint64_t ask_by; /* proven, a JOIN is due by then */
    bool more;   /* it may have said more than was taken in the last pass */
    bool asked;
    uint64_t asked_ns; /* and its JOIN has its turn later; 0: it has had it */
    uint64_t *turns;   /* of its user, in server */
    bool left; /* it said goodbye, was refused, or is known to be lost */
    bool freed; /* jobs has its slots back */
    bool lends; /* it is idle, and jobs knows */
    bool said;  /* why its node has ended, in the log */
    char from[64]; /* of server_from, once it was asked for */
    enum trib_service_reason lost; /* why, if it is; 0: its connection ends */
};

struct server {
    struct settings settings;
    struct trib_log log;
    struct who *who; /* of the next client */
    struct clerk *clerk;
    struct reload *reload; /* under way, or NULL */
    const struct server_ear *reload_again; /* SIGHUP came meanwhile; or NULL */
    struct trib_jobs *jobs;
    struct trib_metrics *metrics;
    struct trib_http *http;
    struct manage *manage; /* or NULL: no socket */
    struct lane **lanes;
    int n_lanes;
    struct watchdog watchdog;
    int wake_fd;
    int epoll_fd; /* of the clients that may say something */
    int spare_fd; /* to be closed where there is no other descriptor; -1: there was
                   * none */
    uint64_t seed; /* of sources: nobody else knows which of them look alike */
    int listeners[LISTENERS_MAX];
    int n_listeners;
    struct trib_accept_pause pause; /* of the listeners */
    bool blind; /* the kernel did not tell what is ready in this pass */
    bool said_blind;
    uint64_t said_until_ns;   /* pace of what the log says of strangers */
    uint64_t strangers_left;  /* that were not named in the log */
    bool reached; /* other hosts reach one of these */
    char net[128]; /* where `listen` is, as net= of a transport takes it; "":
                    * everywhere */
    struct client **clients; /* [n_clients_max], in no order */
    int n_clients;
    int n_clients_max;
    uint64_t join_paid_ns[JOIN_USERS]; /* of users by a hash: until when their JOINs are
                                        * used up */
    struct health health;
    bool draining, drained; /* told to; and its time is up */
    uint64_t drain_until;
};

/** server_holds - what a client says while its lane has enough of it lies in its
 * socket. */
static inline bool server_holds(const struct client *c)
{
    return c->node && node_is_behind(c->node);
}

/** server_event - count it. */
void server_event(struct server *s, enum trib_service_counter c);

/** server_publish - what has changed: for those who look, and among those who share a
 * thread. */
void server_publish(struct server *s);

/** server_hang_up - end the conversation; the node, if any, ends, and then the client
 * is gone. */
void server_hang_up(struct server *s, struct client *c);

/** server_free_client - of clients[i], which is gone; the last one takes its place. */
void server_free_client(struct server *s, int i);

/** door_answer - accept all that wait at a listener, or a bounded number. */
void door_answer(struct server *s, int listener);

/** door_say_end - in the log, why a client's session has ended. */
void door_say_end(struct server *s, struct client *c);

/** ready_note - mark the clients that have something to say as ready. */
void ready_note(struct server *s);

/** ready_watch - wait for what a client may say from now on. */
void ready_watch(struct server *s, struct client *c);

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

/** server_memory - behind all slots, in bytes, as the settings say. */
uint64_t server_memory(const struct settings *t);

/** server_warn - in the log, of doors that stand open. */
void server_warn(const struct server *s);

/** server_manage - what tribctl wants done; of struct manage_ops. */
bool server_manage(void *arg, const struct manage_request *request, char *say,
                   size_t bytes);

/** server_drain - no more jobs, and an end; whose word that was. */
void server_drain(struct server *s, uint32_t uid, uint32_t pid);

/** server_hang_up_saying - end a job's connection and its node, whose ranks hear `say`
 * or nothing. */
void server_hang_up_saying(struct server *s, struct client *c, const char *say);

/** server_from - the address of its connection: "10.1.2.3:45678"; lasts as long as the
 * client. */
const char *server_from(struct client *c);

#endif
