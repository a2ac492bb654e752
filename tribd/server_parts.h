/* SPDX-License-Identifier: BSD-3-Clause */
/* What a server is made of: for server.c and server_open.c. */
#ifndef TRIBD_SERVER_PARTS_H
#define TRIBD_SERVER_PARTS_H

#include "agg/http.h"
#include "agg/jobs.h"
#include "agg/metrics.h"
#include "agg/session.h"
#include "base/accept.h"
#include "tribd/lane.h"
#include "tribd/manage.h"
#include "tribd/quotas.h"
#include "tribd/server.h"
#include "tribd/who.h"

enum {
    CLIENTS_MAX = 1024,
    LISTENERS_MAX = 32,
    HANDSHAKE_MS = 5000,
    GOODBYE_MS = 300, /* by which a goodbye may come after the ranks have left the node */
    PATIENCE_MS = 2000,
    RECLAIM_MS = 5000, /* a job that is gone has its slots no longer than that */
    STUCK_MS = 10000,
    TICK_MS = 1000,
    IDLE_MS = 10000, /* of one that has proved who it is, until it asks for anything */
    UNHEARD_MS = 10000, /* a host that acknowledges nothing for so long is gone */
    /* JOINs of a user: so many at once, and one more each so often. To meet the ranks of a job takes
     * milliseconds of a core, of which who comes and goes without end would else have all. */
    JOINS_AT_ONCE = 128,
    JOIN_MS = 50,
    JOIN_USERS = 64,
    MESSAGES_MOST = 32, /* of one client in a pass: who never stops talking keeps nobody waiting */
    PLAN_SHARE = 8, /* of the memory, one plan may have one part of so many */
};

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
    bool proven; /* who it is */
    uint64_t ask_by; /* proven, a JOIN is due by then */
    bool more;   /* it may have said more than was taken in the last pass */
    bool asked;
    uint64_t asked_ns; /* and its JOIN has its turn later; 0: it has had it */
    uint64_t *turns;   /* of its user, in server */
    bool left; /* it said goodbye, was refused, or is known to be lost */
    bool freed; /* jobs has its slots back */
    bool said;  /* why its node has ended, in the log */
};

struct server {
    struct settings settings;
    struct trib_log log;
    struct who *who; /* of the next client */
    struct trib_jobs *jobs;
    struct trib_metrics *metrics;
    struct trib_http *http;
    struct manage *manage; /* or NULL: no socket */
    struct lane **lanes;
    int n_lanes;
    int wake_fd;
    int listeners[LISTENERS_MAX];
    int n_listeners;
    struct trib_accept_pause pause; /* of the listeners */
    bool said_blind; /* that poll() fails */
    bool reached; /* other hosts reach one of these */
    char net[128]; /* where `listen` is, as net= of a transport takes it; "": everywhere */
    struct client *clients[CLIENTS_MAX];
    int n_clients;
    uint64_t join_paid_ns[JOIN_USERS]; /* of users by a hash: until when their JOINs are used up */
    bool draining, drained; /* told to; and its time is up */
    uint64_t drain_until;
};

/** server_memory - behind all slots, in bytes, as the settings say. */
uint64_t server_memory(const struct settings *t);

/** server_warn - in the log, of doors that stand open. */
void server_warn(const struct server *s);

/** server_manage - what tribctl wants done; of struct manage_ops. */
bool server_manage(void *arg, const char *verb, const char *what, char *say, size_t bytes);

#endif
