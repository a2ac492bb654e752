/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 0's control connections to the aggregators of a job (agg/protocol/session.h),
 * and the search for aggregators while the job has none, or not all that it names.
 */
#ifndef OFFLOAD_CONTROL_LINK_H
#define OFFLOAD_CONTROL_LINK_H

#include "agg/protocol/session.h"
#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/secret.h"
#include "offload/agg_tree.h"

struct trib_comm;

/* The job for which rank 0 connects. A copy that needs no communicator. */
struct trib_control_link_job {
    struct trib_config cfg;
    int ranks;
    char name[TRIB_CONTROL_JOB_MAX + 1];
    char user[TRIB_CONTROL_JOB_MAX + 1];
    int n; /* number of aggregators that take part */
    struct trib_secret
        secret; /* of ranks and aggregators, sealed by the session; or not set */
    char addresses[TRIB_AGGREGATORS_MAX][TRIB_CONFIG_TEXT_BYTES];
    uint32_t peers[TRIB_AGGREGATORS_MAX]; /* number of peers of each aggregator */
    uint32_t tree_bytes; /* 0: a star, of which some aggregators suffice */
    uint8_t tree[TRIB_CONTROL_TREE_MAX];
};

struct trib_control_link {
    const struct trib_control_link_job *job;
    const struct trib_log *log; /* NULL: it logs nothing */
    struct trib_idle *idle; /* called while its calls wait; or NULL */
    int wait_ms; /* longest wait in an aggregator's queue */
    struct trib_auth *auth;
    int n;
    struct trib_session *sessions[TRIB_AGGREGATORS_MAX];
    struct trib_auth *renewed[TRIB_AGGREGATORS_MAX]; /* used by a session that was
                                                      * connected again; NULL: auth */
    int which[TRIB_AGGREGATORS_MAX]; /* index of the address in the job */
    struct trib_error err;
    uint64_t looked;
};

/** trib_control_link_set_idle - have this function called while a call of the link
 * waits, by the thread that has the link from now on; NULL: none. */
void trib_control_link_set_idle(struct trib_control_link *s, struct trib_idle *idle);

/**
 * trib_control_link_describe - describe the job of a communicator: its name, and the
 * aggregators of TRIB_SERVICE above its ranks.
 *
 * errors   those of trib_tree_layout_make, with the sentence in err
 */
trib_status_t trib_control_link_describe(const struct trib_comm *parent,
                                         struct trib_control_link_job *job,
                                         struct trib_error *err);

/** trib_control_link_create - make one without connections; job and log must outlive
 * it. */
trib_status_t trib_control_link_create(const struct trib_control_link_job *job,
                                       const struct trib_log *log,
                                       struct trib_error *err,
                                       struct trib_control_link **out);

/** trib_control_link_free - say goodbye and free it. NULL is allowed. */
void trib_control_link_free(struct trib_control_link *s);

/**
 * trib_control_link_connect - connect to address `which` of the job. Blocks for some
 * seconds at most.
 *
 * prove    wait until each side knows who the other is
 */
trib_status_t trib_control_link_connect(struct trib_control_link *s, int which,
                                        bool prove);

/** trib_control_link_open, trib_control_link_add - trib_control_link_connect in two
 * steps: open a session, and list it. Another thread may use the sessions that are in
 * the list during the first step, which takes the time. */
trib_status_t trib_control_link_open(struct trib_control_link *s, int which, bool prove,
                                     struct trib_session **out);
void trib_control_link_add(struct trib_control_link *s, int which,
                           struct trib_session *session);

/* A session that takes the place of another one. */
struct trib_control_fresh {
    struct trib_session *session;
    struct trib_auth *renewed; /* NULL: the known key */
};

/** trib_control_link_reconnect, trib_control_link_replace - connect session i again, if
 * need be with the key that the key file has by now; then free the old session, and
 * list the new one. The first step is as trib_control_link_open with `prove`, and
 * leaves the old session as it is. */
trib_status_t trib_control_link_reconnect(struct trib_control_link *s, int i,
                                          struct trib_control_fresh *out);
void trib_control_link_replace(struct trib_control_link *s, int i,
                               const struct trib_control_fresh *fresh);

/** trib_control_link_silent_ms - a tribd that says nothing for so long is lost; 0: it
 * is waited for without a limit. */
int trib_control_link_silent_ms(const struct trib_control_link *s);

/** trib_control_link_request - ask over connection i to be admitted, as aggregator i of
 * the present number. */
trib_status_t trib_control_link_request(struct trib_control_link *s, int i);

/** trib_control_link_step - keep the connections alive after the wireup, and drop what
 * aggregators say. An error if a connection has ended. */
trib_status_t trib_control_link_step(struct trib_control_link *s);

/** trib_control_link_is_whole - true if no aggregator has closed its connection. Reads
 * nothing. */
bool trib_control_link_is_whole(const struct trib_control_link *s);

/* The search: a thread of rank 0's process, which uses none of its communicators.
 * ------- */

struct trib_discovery;

struct trib_discovery_opts {
    const struct trib_control_link_job *job; /* copied */
    uint64_t taken; /* bit i: do not search for address i */
    bool look_only; /* only find out whether they would admit the job; else a place
                     * there is kept */
    int pause_ms; /* before the first try; doubled after each failure, up to a minute */
};

trib_status_t trib_discovery_open(const struct trib_discovery_opts *opts,
                                  struct trib_discovery **out);

/** trib_discovery_found - true if some aggregators would admit the job; of a tree, all
 * of them. */
bool trib_discovery_found(const struct trib_discovery *discovery);

/**
 * trib_discovery_take - take the connections to all aggregators that have admitted the
 * job; NULL if none would any more.
 *
 * idle     called meanwhile, and while calls of the connections wait later; or NULL
 * May take seconds if they have changed their minds. The caller sets job and log anew.
 */
struct trib_control_link *trib_discovery_take(struct trib_discovery *discovery,
                                              struct trib_idle *idle);

/** trib_discovery_close - end the search; does not block for long. NULL is allowed. */
void trib_discovery_close(struct trib_discovery *discovery);

#endif
