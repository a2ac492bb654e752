/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0's control connections to the aggregators of a job (agg/protocol/session.h),
 * and the search for aggregators while the job has fewer than it names. */
#ifndef AGG_CLIENT_CONTROL_LINK_H
#define AGG_CLIENT_CONTROL_LINK_H

#include "agg/client/agg_tree.h"
#include "agg/protocol/session.h"
#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/secret.h"

struct trib_comm;

/* The job for which rank 0 connects; independent of its communicator. */
struct trib_control_link_job {
    struct trib_config cfg;
    int ranks;
    char name[TRIB_CONTROL_JOB_MAX + 1];
    char user[TRIB_CONTROL_JOB_MAX + 1];
    int n; /* number of aggregators */
    struct trib_secret secret; /* shared with aggregators, sent sealed; or not set */
    char addresses[TRIB_AGGREGATORS_MAX][TRIB_CONFIG_TEXT_BYTES];
    uint32_t peers[TRIB_AGGREGATORS_MAX]; /* of each aggregator */
    uint32_t tree_bytes; /* 0: no tree; then some aggregators suffice */
    uint8_t tree[TRIB_CONTROL_TREE_MAX];
};

struct trib_control_link {
    const struct trib_control_link_job *job;
    const struct trib_log *log; /* or NULL */
    struct trib_idle *idle; /* called while its calls block; or NULL */
    int wait_ms; /* maximum wait in an aggregator's queue */
    struct trib_auth *auth;
    int n;
    struct trib_session *sessions[TRIB_AGGREGATORS_MAX];
    struct trib_auth *renewed[TRIB_AGGREGATORS_MAX]; /* reconnected session; or NULL */
    int which[TRIB_AGGREGATORS_MAX]; /* index into job->addresses */
    struct trib_error err;
    uint64_t checked_ns;
};

/** trib_control_link_set_idle - set the function that blocking calls of the link call;
 * NULL: none. Must be called by the thread that owns the link from now on. */
void trib_control_link_set_idle(struct trib_control_link *s, struct trib_idle *idle);

/**
 * trib_control_link_describe - fill in the job of a communicator: its name, and the
 * aggregators of TRIB_SERVICE above its ranks.
 *
 * errors   as trib_tree_layout_make, with the message in err
 */
trib_status_t trib_control_link_describe(const struct trib_comm *parent,
                                         struct trib_control_link_job *job,
                                         struct trib_error *err);

/** trib_control_link_create - create a link without connections; job and log must
 * outlive it. */
trib_status_t trib_control_link_create(const struct trib_control_link_job *job,
                                       const struct trib_log *log,
                                       struct trib_error *err,
                                       struct trib_control_link **out);

/** trib_control_link_free - say goodbye to the aggregators and free the link. NULL is
 * allowed. */
void trib_control_link_free(struct trib_control_link *s);

/** trib_control_link_free_copy - free a forked child's copy: the aggregators do not
 * notice. NULL is allowed. */
void trib_control_link_free_copy(struct trib_control_link *s);

/**
 * trib_control_link_connect - connect to address `which` of the job. Blocks for seconds
 * at most.
 *
 * prove    wait until both sides are authenticated
 */
trib_status_t trib_control_link_connect(struct trib_control_link *s, int which,
                                        bool prove);

/** trib_control_link_open, trib_control_link_add - trib_control_link_connect in two
 * steps: open a session, and add it to the list. During the first, slow step another
 * thread may use the sessions in the list. */
trib_status_t trib_control_link_open(struct trib_control_link *s, int which, bool prove,
                                     struct trib_session **out);
void trib_control_link_add(struct trib_control_link *s, int which,
                           struct trib_session *session);

/* A replacement for a session. */
struct trib_control_fresh {
    struct trib_session *session;
    struct trib_auth *renewed; /* NULL: the key did not change */
};

/** trib_control_link_reconnect, trib_control_link_replace - reconnect session i, then
 * free the old session and list the new one. If the key is refused, the key file's
 * current key is tried. The first step blocks like trib_control_link_open with `prove`
 * and does not touch the old session. */
trib_status_t trib_control_link_reconnect(struct trib_control_link *s, int i,
                                          struct trib_control_fresh *out);
void trib_control_link_replace(struct trib_control_link *s, int i,
                               const struct trib_control_fresh *fresh);

/** trib_control_link_silent_ms - return how long a tribd may be silent before it counts
 * as lost; 0: forever. */
int trib_control_link_silent_ms(const struct trib_control_link *s);

/** trib_control_link_request - ask aggregator i of the link to admit the job. */
trib_status_t trib_control_link_request(struct trib_control_link *s, int i);

/** trib_control_link_step - keep the connections alive after the wireup, and discard
 * the aggregators' messages. Returns an error if a connection has ended. */
trib_status_t trib_control_link_step(struct trib_control_link *s);

/** trib_control_link_is_whole - return true if no aggregator has closed its connection.
 * Reads nothing. */
bool trib_control_link_is_whole(const struct trib_control_link *s);

/* The search: a thread of rank 0 that uses no communicator ------------------------- */

struct trib_discovery;

struct trib_discovery_opts {
    const struct trib_control_link_job *job; /* copied */
    uint64_t taken; /* bit i: skip address i */
    bool check_only; /* only check whether they would admit the job; keep no place */
    int pause_ms; /* before the first try; doubled after each failure, up to a minute */
};

trib_status_t trib_discovery_open(const struct trib_discovery_opts *opts,
                                  struct trib_discovery **out);

/** trib_discovery_found - return true if some aggregators would admit the job; for a
 * tree, all of them. */
bool trib_discovery_found(const struct trib_discovery *discovery);

/**
 * trib_discovery_take - return the connections to all aggregators that admitted the
 * job, or NULL.
 *
 * idle     called while this and later calls of the connections block; or NULL
 * May take seconds if the aggregators must be asked again. The caller must set job and
 * log of the result.
 */
struct trib_control_link *trib_discovery_take(struct trib_discovery *discovery,
                                              struct trib_idle *idle);

/** trib_discovery_close - end the search; does not block for long. NULL is allowed. */
void trib_discovery_close(struct trib_discovery *discovery);

#endif
