/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a job has in this process: one node of its channel (offload/agg_comm.h), with an
 * engine, a transport and slots of its own, so that nothing of it is within another
 * job's reach.
 *
 *     server's thread                  node                      a thread that sums
 *      JOIN ──────────────▶ node_open: a thread meets the ranks
 *      BLOBS ◀──▶ node_sent, node_give (trib_comm_wireup)
 *                           … and gives the node to ──────────▶ lane_add: steps it
 *      PLAN ──────────────▶ node_announce ────────────────────▶ makes the plan
 *      GOODBYE ───────────▶ node_end ─────────────────────────▶ has a thread dispose of
 *      it:
 *                                                              NODE_GONE
 */
#ifndef TRIBD_NODE_H
#define TRIBD_NODE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "agg/protocol/control.h"
#include "agg/jobs/drr.h"
#include "offload/agg_comm.h"
#include "tribd/node_metrics.h"

struct lane;

/* What jobs may use where nothing else is said. */
#define NODE_TRANSPORTS "auto,shm,tcp,verbs"

/*
 * What a node keeps for each rank that its job declares, at most, beside slots and
 * plans: what ranks say of themselves as they meet, and tables of links and transports.
 * Measured: 5.5 KiB over tcp alone, 12.5 KiB by auto with shm and tcp
 * (tests/tribd/test_node.c holds it to this).
 */
#define NODE_RANK_BYTES 16384

/* Announcements that wait for the lane at most: those of all plans that a channel may
 * have, and that they are no more. */
enum { NODE_WAITING_MAX = 2 * TRIB_AGG_COMM_PLANS };

enum node_state {
    NODE_MEETS,  /* its ranks, on a thread of its own */
    NODE_SERVES, /* on a lane */
    NODE_FAILED, /* its lane has it disposed of next: `why` says why */
    NODE_GONE,   /* nobody uses it any more: node_free */
};

struct node_announcement {
    struct node_announcement *next;
    uint32_t number;
    char text[];
};

struct node {
    struct node *next; /* on its lane */
    struct lane *lane;
    struct trib_turns_member share;
    _Atomic uint32_t weight; /* of share, as the server wants it */
    _Atomic uint64_t moved_ns; /* by its lane: when something last moved; 0: nothing
                                * has */
    struct watch *watch;     /* of its lane */
    int ranks, services, index;
    struct trib_agg_tree *tree; /* or NULL */
    bool *peers; /* [ranks + services] with whom it exchanges anything */
    int n_peers;
    struct trib_secret secret; /* of the job's ranks and nodes; or not set */
    struct trib_config cfg;
    struct trib_log log;
    char transports[256]; /* of node_opts */
    int64_t user; /* whose the ranks' processes must be; TRIB_GUARD_ANYBODY: not
                   * known */
    int wake_fd; /* an eventfd of the server: something for it to look at */
    size_t plan_memory;
    uint64_t plans_taken; /* of its lane: announcements so far */
    uint64_t plans_paid;  /* and until when their time is used up: see node.c */
    _Atomic uint32_t n_announced; /* that wait for the lane; grows under mutex */
    uint32_t vain; /* of the server's thread: announcements since it has failed */
    struct trib_ledger *ledger;
    _Atomic int state; /* enum node_state */
    _Atomic bool ending;
    _Atomic bool draining; /* end it between two operations */
    struct trib_comm *channel;
    int descriptor; /* of its transport, to sleep on; -1: none */
    char why[400]; /* FAILED, GONE after a failure or for draining */

    /* under mutex */
    pthread_mutex_t mutex;
    pthread_cond_t met;
    uint8_t *blobs; /* [(ranks + services) * each] of the exchange under way, or NULL */
    size_t each;
    uint32_t exchange;
    uint32_t n_given;
    bool sent; /* this node's own blob has gone to rank 0 */
    struct node_announcement *first, *last;
    bool behind; /* too many of them: until a few are left */
    char told[256]; /* to its ranks when it ends; "": nothing */
};

struct node_opts {
    const struct trib_control_join *join; /* its settings are any text, its tree any
                                           * bytes */
    struct lane *lane;
    int wake_fd; /* an eventfd of the server */
    const struct trib_log *log;
    const char *net; /* of its data ports, as net= of a transport; "": everywhere */
    size_t plan_memory; /* bytes that a plan may take beside its slots */
    struct trib_ledger *ledger; /* and all of them; or NULL. It outlives the node */
    const char *transports; /* that jobs may use, with commas between them; NULL: the
                             * usual */
    const uid_t *user; /* who has proved to be the job's; NULL: a key does not tell */
};

/**
 * node_open - of a job that was admitted; its thread begins to meet the ranks.
 *
 * errors    TRIB_ERR_CONFIG: settings that a service does not take; TRIB_ERR_PROTOCOL:
 *           more than it asked for, or a tree that is none; TRIB_ERR_NO_MEMORY,
 *           TRIB_ERR_SYSTEM; the sentence is in err
 */
trib_status_t node_open(const struct node_opts *opts, struct trib_error *err,
                        struct node **out);

/** node_transports - true if the setting `transports` is a list of what jobs may have;
 * else why not, in err. */
bool node_transports(const char *list, struct trib_error *err);

/**
 * node_takes - true if a job may ask for these settings' transport, before it is
 * admitted.
 *
 * transports  as of node_opts
 * errors      the sentence is in err
 */
bool node_takes(const char *settings, const char *transports, struct trib_error *err);

/**
 * node_watch - count what it does for job `id`.
 *
 * Before the server gives it blobs, without which it does not come to its lane.
 */
void node_watch(struct node *n, struct trib_metrics *metrics, uint64_t id);

/** node_weigh - its weight among those of its lane, from its next turn on; 0: as it
 * is. */
void node_weigh(struct node *n, uint32_t weight);

/** node_free - one that is gone. */
void node_free(struct node *n);

/** node_sent - has it a blob for rank 0? Copied into out, once for each exchange. */
bool node_sent(struct node *n, struct trib_control *out, uint8_t *room, size_t bytes);

/** node_give - blobs from rank 0; false: not of this exchange. */
bool node_give(struct node *n, const struct trib_control_blobs *blobs);

/**
 * node_announce - a plan of rank 0's.
 *
 * errors    TRIB_ERR_NO_RESOURCE: NODE_WAITING_MAX wait already, or have come in vain
 *           since the node has failed; TRIB_ERR_NO_MEMORY
 */
trib_status_t node_announce(struct node *n, uint32_t number, const char *text);

/** node_is_behind - so many plans wait for its lane that no more should come now: the
 * server is woken when it has caught up. */
bool node_is_behind(struct node *n);

/**
 * node_end - whatever it does; it will be GONE.
 *
 * say       its ranks are told that this is why; NULL: they have left, or know it
 */
void node_end(struct node *n, const char *say);

/** node_drain - end it between two operations. */
void node_drain(struct node *n);

/** node_step - of its lane: what it can do now; false: nothing. */
bool node_step(struct node *n);

/**
 * node_dispose - it is ending, or has failed, and its lane steps it no more; then it is
 * GONE.
 *
 * May take as long as the transport gives peers to hear of it: a fraction of a second.
 * thread   any one, but not that of a lane with other nodes
 */
void node_dispose(struct node *n);

#endif
