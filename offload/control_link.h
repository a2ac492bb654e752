/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 0's control connections to the services of a job (agg/protocol/session.h), and
 * its search for services while the job has none, or not all that it names.
 */
#ifndef OFFLOAD_CONTROL_LINK_H
#define OFFLOAD_CONTROL_LINK_H

#include "agg/protocol/session.h"
#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/secret.h"
#include "offload/agg_tree.h"

/* For whom they are. A copy that needs no communicator. */
struct trib_control_link_job {
    struct trib_config cfg;
    int ranks;
    char name[TRIB_CONTROL_JOB_MAX + 1];
    char user[TRIB_CONTROL_JOB_MAX + 1];
    int n; /* services that have a part in it */
    struct trib_secret secret; /* of ranks and nodes; a session seals it. Or not set */
    char addresses[TRIB_AGGREGATORS_MAX][TRIB_CONFIG_TEXT_BYTES];
    uint32_t peers[TRIB_AGGREGATORS_MAX]; /* with whom each exchanges anything */
    uint32_t tree_bytes;               /* 0: they are a star, of which some will do */
    uint8_t tree[TRIB_CONTROL_TREE_MAX];
};

struct trib_control_link {
    const struct trib_control_link_job *job;
    const struct trib_log *log; /* or NULL: it says nothing */
    int wait_ms; /* in a service's queue */
    struct trib_auth *auth;
    int n;
    struct trib_session *sessions[TRIB_AGGREGATORS_MAX];
    int which[TRIB_AGGREGATORS_MAX]; /* address of the job */
    struct trib_error err;
    uint64_t looked;
};

/** trib_control_link_create - without connections; job and log outlive it. */
trib_status_t trib_control_link_create(const struct trib_control_link_job *job,
                                       const struct trib_log *log,
                                       struct trib_error *err,
                                       struct trib_control_link **out);

/** trib_control_link_free - says goodbye. NULL is allowed. */
void trib_control_link_free(struct trib_control_link *s);

/** trib_control_link_connect - connect to that address of the job. Blocks for some
 * seconds at most.
 *
 * prove    wait until each side knows who the other is
 */
trib_status_t trib_control_link_connect(struct trib_control_link *s, int which,
                                        bool prove);

/** trib_control_link_request - connection i asks for room; as node i of as many as
 * there are by now. */
trib_status_t trib_control_link_request(struct trib_control_link *s, int i);

/** trib_control_link_step - keep them alive, once the ranks have met the nodes: what
 * they say is dropped. An error if one has ended. */
trib_status_t trib_control_link_step(struct trib_control_link *s);

/** trib_control_link_is_whole - has none been closed by the other side? Reads
 * nothing. */
bool trib_control_link_is_whole(const struct trib_control_link *s);

/* The search: a thread of rank 0's process, which calls nothing of its communicators.
 * -------- */

struct trib_discovery;

struct trib_discovery_opts {
    const struct trib_control_link_job *job; /* copied */
    uint64_t taken; /* bit i: address i is not looked for */
    bool look_only; /* whether they would have the job; else a place there is kept */
    int pause_ms;   /* before the first try, doubled after each that fails, up to a
                     * minute */
};

trib_status_t trib_discovery_open(const struct trib_discovery_opts *opts,
                                  struct trib_discovery **out);

/** trib_discovery_found - has it any of them? All of them, if they are a tree. */
bool trib_discovery_found(const struct trib_discovery *discovery);

/**
 * trib_discovery_take - all that would have the job, admitted: NULL if none would any
 * more.
 *
 * May take seconds where they have changed their minds. The caller sets job and log
 * anew.
 */
struct trib_control_link *trib_discovery_take(struct trib_discovery *discovery);

/** trib_discovery_close - never blocks for long; NULL is allowed. */
void trib_discovery_close(struct trib_discovery *discovery);

#endif
