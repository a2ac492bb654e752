/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One job in this process: an aggregator of its communicator (offload/agg_comm.h). It
 * has an engine, a transport and slots of its own, so that no other job can reach them.
 *
 *     thread of the server               aggregator                      worker
 *      JOIN ────▶ aggregator_open: a thread wires up with the ranks
 *      BLOBS ◀──▶ aggregator_get_blob, aggregator_put_blobs (trib_comm_wireup)
 *                 … which hands the aggregator to ──▶ worker_add: steps it from now on
 *      PLAN ────▶ aggregator_announce ──────────────▶ makes the plan
 *      GOODBYE ─▶ aggregator_end ───────────────────▶ has a thread dispose of it:
 *                                                     AGGREGATOR_GONE
 */
#ifndef TRIBD_AGGREGATOR_H
#define TRIBD_AGGREGATOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "agg/protocol/control.h"
#include "agg/jobs/drr.h"
#include "offload/agg_comm.h"
#include "tribd/aggregator_metrics.h"

struct worker;

/* The transports that jobs may use unless the operator names others. */
#define AGGREGATOR_TRANSPORTS "auto,shm,tcp,verbs"

/*
 * The most bytes that an aggregator keeps for each declared rank, beside slots and
 * plans: the wireup messages, and the tables of links and transports. Measured: 5.5 KiB
 * over tcp alone, 12.5 KiB by auto with shm and tcp (tests/tribd/test_aggregator.c
 * holds it to this).
 */
#define AGGREGATOR_RANK_BYTES 16384

/* Announcements that wait for the worker at most: those of all plans that a
 * communicator may have, and that they are no more. */
enum { AGGREGATOR_PLANS_WAITING_MAX = 2 * TRIB_AGG_COMM_PLANS };

enum aggregator_state {
    AGGREGATOR_WIREUP,  /* its ranks, on a thread of its own */
    AGGREGATOR_RUNS, /* on a worker */
    AGGREGATOR_FAILED, /* its worker has it disposed of next: `why` says why */
    AGGREGATOR_GONE,   /* nobody uses it any more: aggregator_free */
};

struct plan_announcement {
    struct plan_announcement *next;
    uint32_t number;
    char text[];
};

struct aggregator {
    struct aggregator *next; /* on its worker */
    struct worker *worker;
    struct trib_drr_member share;
    _Atomic uint32_t weight; /* weight of `share`, as the server sets it */
    _Atomic uint64_t moved_ns; /* time of the last step that moved something; 0: none
                                * has. Its worker writes it */
    struct aggregator_metrics *metrics;     /* counters, written by its worker */
    int ranks, aggregators, index;
    struct trib_agg_tree *tree; /* or NULL */
    bool *peers; /* [ranks + aggregators] with whom it exchanges anything */
    int n_peers;
    struct trib_secret secret; /* secret shared by the job's ranks and aggregators; may
                                * be unset */
    struct trib_config cfg;
    struct trib_log log;
    char transports[256]; /* copy of the list in aggregator_opts */
    int64_t user; /* uid that the ranks' processes must have; TRIB_GUARD_ANYBODY: not
                   * known */
    int wake_fd; /* an eventfd of the server: something for it to look at */
    size_t plan_memory;
    uint64_t plans_taken; /* number of announcements that its worker has taken */
    uint64_t plans_paid;  /* state of the token bucket for plans: see aggregator.c */
    _Atomic uint32_t n_announced; /* number of announcements that wait for the worker;
                                   * grows under mutex */
    uint32_t vain; /* announcements that came after the failure; of the server's
                    * thread */
    struct trib_quota *quota;
    _Atomic int state; /* enum aggregator_state */
    _Atomic bool ending;
    _Atomic bool draining; /* end it between two operations */
    struct trib_comm *comm;
    int descriptor; /* event descriptor of its transport; -1: none */
    char why[400]; /* FAILED, GONE after a failure or for draining */

    /* under mutex */
    pthread_mutex_t mutex;
    pthread_cond_t met;
    uint8_t *blobs; /* [(ranks + aggregators) * each] of the exchange under way, or
                     * NULL */
    size_t each;
    uint32_t exchange;
    uint32_t n_given;
    bool sent; /* this aggregator's own blob has gone to rank 0 */
    struct plan_announcement *first, *last;
    bool behind; /* too many of them: until a few are left */
    char told[256]; /* sentence for its ranks when it ends; "": none */
};

struct aggregator_opts {
    const struct trib_control_join *join; /* its settings are any text, its tree any
                                           * bytes */
    struct worker *worker;
    int wake_fd; /* an eventfd of the server */
    const struct trib_log *log;
    const char *net; /* networks of its data ports, as net= of a transport; "":
                      * everywhere */
    size_t plan_memory; /* bytes that a plan may take beside its slots */
    struct trib_quota *quota; /* limit of all plans together, or NULL; it outlives the
                               * aggregator */
    const char *transports; /* allowed transports, with commas between them; NULL: the
                             * usual ones */
    const uid_t *user; /* proven owner of the job; NULL: the proof, a key, names no
                        * user */
};

/**
 * aggregator_open - start the aggregator of an admitted job: its thread begins the
 * wireup with the ranks.
 *
 * errors    TRIB_ERR_CONFIG: settings that a service does not take; TRIB_ERR_PROTOCOL:
 *           more than it asked for, or a tree that is none; TRIB_ERR_NO_MEMORY,
 *           TRIB_ERR_SYSTEM; the sentence is in err
 */
trib_status_t aggregator_open(const struct aggregator_opts *opts,
                              struct trib_error *err, struct aggregator **out);

/**
 * aggregator_count - count what it does for job `id`.
 *
 * Before the server gives it blobs, without which it does not come to its worker.
 */
void aggregator_count(struct aggregator *agg, struct trib_metrics *metrics,
                      uint64_t id);

/** aggregator_set_weight - its weight among those of its worker, from its next turn on;
 * 0: as it is. */
void aggregator_set_weight(struct aggregator *agg, uint32_t weight);

/** aggregator_free - one that is gone. */
void aggregator_free(struct aggregator *agg);

/** aggregator_get_blob - has it a blob for rank 0? Copied into out, once for each
 * exchange. */
bool aggregator_get_blob(struct aggregator *agg, struct trib_control *out,
                         uint8_t *blob, size_t bytes);

/** aggregator_put_blobs - blobs from rank 0; false: not of this exchange. */
bool aggregator_put_blobs(struct aggregator *agg,
                          const struct trib_control_blobs *blobs);

/**
 * aggregator_announce - a plan of rank 0's.
 *
 * errors    TRIB_ERR_NO_RESOURCE: AGGREGATOR_PLANS_WAITING_MAX wait already, or have
 *           come in vain since the aggregator has failed; TRIB_ERR_NO_MEMORY
 */
trib_status_t aggregator_announce(struct aggregator *agg, uint32_t number,
                                  const char *text);

/** aggregator_is_behind - so many plans wait for its worker that no more should come
 * now: the server is woken when it has caught up. */
bool aggregator_is_behind(struct aggregator *agg);

/**
 * aggregator_end - whatever it does; it will be GONE.
 *
 * say       its ranks are told that this is why; NULL: they have left, or know it
 */
void aggregator_end(struct aggregator *agg, const char *say);

/** aggregator_drain - end it between two operations. */
void aggregator_drain(struct aggregator *agg);

/** aggregator_step - do what can be done now; false if there was nothing. For its
 * worker. */
bool aggregator_step(struct aggregator *agg);

/**
 * aggregator_dispose - it is ending, or has failed, and its worker steps it no more;
 * then it is GONE.
 *
 * May take as long as the transport gives peers to hear of it: a fraction of a second.
 * thread   any one, but not that of a worker with other aggregators
 */
void aggregator_dispose(struct aggregator *agg);

#endif
