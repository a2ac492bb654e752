/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One job in this process: an aggregator of its communicator
 * (agg/client/agg_comm.h). It has its own engine, transport and slots, so that no other
 * job can access them.
 *
 *     server thread                      aggregator                      worker
 *      JOIN ────▶ aggregator_open: a thread wires up with the ranks
 *      BLOBS ◀──▶ aggregator_get_blob, aggregator_put_blobs (trib_comm_wireup)
 *                 … then hands the aggregator to ────▶ worker_add: stepped from now on
 *      PLAN ────▶ aggregator_announce ──────────────▶ make the plan
 *      GOODBYE ─▶ aggregator_end ───────────────────▶ let a thread dispose of it:
 *                                                     AGGREGATOR_GONE
 */
#ifndef AGG_DAEMON_AGGREGATOR_H
#define AGG_DAEMON_AGGREGATOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "agg/client/agg_comm.h"
#include "agg/daemon/aggregator_metrics.h"
#include "agg/jobs/drr.h"
#include "agg/protocol/control.h"

struct worker;

/* Transports that jobs may use by default. */
#define AGGREGATOR_TRANSPORTS "auto,shm,tcp,verbs"

/*
 * Maximum memory in bytes per declared rank, in addition to slots and plans: wireup
 * messages, and tables of links and transports. Measured: 5.5 KiB with tcp only, 12.5
 * KiB with auto over shm and tcp (tests/agg/daemon/test_aggregator.c enforces the
 * limit).
 */
#define AGGREGATOR_RANK_BYTES 16384

/* Maximum number of queued announcements: creation and release of every plan that a
 * communicator may have. */
enum { AGGREGATOR_PLANS_WAITING_MAX = 2 * TRIB_AGG_COMM_PLANS };

/* Announcements queued for the worker: from BEHIND on, the server reads no more until
 * CAUGHT_UP are left. */
enum { AGGREGATOR_BEHIND = 64, AGGREGATOR_CAUGHT_UP = 16 };

enum aggregator_state {
    AGGREGATOR_WIREUP,  /* wires up with its ranks, on its own thread */
    AGGREGATOR_RUNS, /* on a worker */
    AGGREGATOR_FAILED, /* to be disposed of; `why` has the reason */
    AGGREGATOR_GONE,   /* unused: call aggregator_free */
};

struct plan_announcement {
    struct plan_announcement *next;
    uint32_t number;
    char text[];
};

struct aggregator {
    struct aggregator *next; /* list of its worker */
    struct worker *worker;
    struct trib_drr_member share;
    _Atomic uint32_t weight; /* of `share`; set by the server */
    _Atomic uint64_t moved_ns; /* last progress; 0: none. Written by its worker */
    struct aggregator_metrics *metrics;     /* counters, written by its worker */
    int ranks, aggregators, index;
    struct trib_agg_tree *tree; /* or NULL */
    bool *peers; /* [ranks + aggregators] true: exchanges data with it */
    int n_peers;
    struct trib_secret secret; /* of the job's ranks and aggregators, or unset */
    struct trib_config cfg;
    struct trib_log log;
    char transports[256]; /* copy of the list in aggregator_opts */
    int64_t user; /* required uid of rank processes, or TRIB_GUARD_ANYBODY */
    int wake_fd; /* eventfd that wakes the server */
    size_t plan_memory;
    uint64_t plans_taken; /* announcements processed by its worker */
    uint64_t plans_paid;  /* state of the token bucket for plans */
    _Atomic uint32_t n_announced; /* queued announcements; incremented under mutex */
    uint32_t vain; /* announcements after the failure; server thread only */
    struct trib_quota *quota;
    _Atomic int state; /* enum aggregator_state */
    _Atomic bool ending;
    _Atomic bool draining; /* end it between two operations */
    struct trib_comm *comm;
    int descriptor; /* event descriptor of its transport; -1: none */
    char why[400]; /* reason of FAILED, or of GONE after a failure or drain */

    /* Under mutex: */
    pthread_mutex_t mutex;
    pthread_cond_t met;
    uint8_t *blobs; /* [(ranks + aggregators) * each], or NULL: no exchange */
    size_t each;
    uint32_t exchange;
    uint32_t n_given;
    bool sent; /* the local blob was sent to rank 0 */
    struct plan_announcement *first, *last;
    bool behind; /* announcements reached BEHIND, not CAUGHT_UP yet */
    char notice[256]; /* message to its ranks at the end; "": none */
};

struct aggregator_opts {
    const struct trib_control_join *join; /* settings and tree are unvalidated */
    struct worker *worker;
    int wake_fd; /* eventfd of the server */
    const struct trib_log *log;
    const char *net; /* networks of its data ports, as net= of a transport; "": all */
    size_t plan_memory; /* maximum bytes of a plan, in addition to its slots */
    struct trib_quota *quota; /* quota of all plans, or NULL; outlives the aggregator */
    const char *transports; /* allowed transports, comma-separated; NULL: default */
    const uid_t *user; /* owner of the job; NULL: unknown, authenticated by key */
};

/**
 * aggregator_open - start the aggregator of an admitted job; its thread wires up with
 * the ranks.
 *
 * errors    TRIB_ERR_CONFIG: unacceptable settings; TRIB_ERR_PROTOCOL: needs more than
 *           the job was granted, or an invalid tree; TRIB_ERR_NO_MEMORY,
 *           TRIB_ERR_SYSTEM
 */
trib_status_t aggregator_open(const struct aggregator_opts *opts,
                              struct trib_error *err, struct aggregator **out);

/**
 * aggregator_count - start counting for job `id`.
 *
 * Call it before the first aggregator_put_blobs: until then the aggregator cannot reach
 * its worker.
 */
void aggregator_count(struct aggregator *agg, struct trib_metrics *metrics,
                      uint64_t id);

/** aggregator_set_weight - set its weight on its worker, from its next turn; 0: no
 * change. */
void aggregator_set_weight(struct aggregator *agg, uint32_t weight);

/** aggregator_free - free an aggregator in state GONE. */
void aggregator_free(struct aggregator *agg);

/** aggregator_get_blob - copy the local blob for rank 0 to `out`, once per exchange;
 * false: none. */
bool aggregator_get_blob(struct aggregator *agg, struct trib_control *out,
                         uint8_t *blob, size_t bytes);

/** aggregator_put_blobs - accept blobs from rank 0; false: not of the current
 * exchange. */
bool aggregator_put_blobs(struct aggregator *agg,
                          const struct trib_control_blobs *blobs);

/**
 * aggregator_announce - queue a plan announced by rank 0.
 *
 * errors    TRIB_ERR_NO_RESOURCE: AGGREGATOR_PLANS_WAITING_MAX are queued, or have
 *           arrived since the aggregator failed; TRIB_ERR_NO_MEMORY
 */
trib_status_t aggregator_announce(struct aggregator *agg, uint32_t number,
                                  const char *text);

/** aggregator_is_behind - return true if too many plans are queued to read more; the
 * server is woken when the worker has caught up. */
bool aggregator_is_behind(struct aggregator *agg);

/**
 * aggregator_end - end the aggregator in any state; it becomes GONE.
 *
 * say       reason to send to its ranks; NULL: they have disconnected, or know it
 */
void aggregator_end(struct aggregator *agg, const char *say);

/** aggregator_drain - end it between two operations. */
void aggregator_drain(struct aggregator *agg);

/* On its worker: aggregator_step.c ------------------------------------------------- */

/** aggregator_set_state - set the state and wake the server; it may free a GONE
 * aggregator at once. */
void aggregator_set_state(struct aggregator *agg, enum aggregator_state state);

/** aggregator_wake_server - wake the server thread; any thread. */
void aggregator_wake_server(const struct aggregator *agg);

/** aggregator_step - make progress without blocking; false: there was no work. Called
 * by its worker. */
bool aggregator_step(struct aggregator *agg);

/**
 * aggregator_dispose - dispose of an aggregator that ends or has failed and is no
 * longer stepped; it becomes GONE.
 *
 * Takes as long as the transport lets peers receive the notice: a fraction of a second.
 *
 * thread   any, except that of a worker with other aggregators
 */
void aggregator_dispose(struct aggregator *agg);

#endif
