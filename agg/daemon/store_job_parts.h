/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of a store in tribd: shared state and per-thread state.
 *
 * A rank belongs to one thread, selected by its number. Threads share the vectors
 * (agg/store/store_walk.h), the keeper of snapshots, and the fields under the mutex.
 * The first thread controls the lifetime of the store and its snapshots.
 */
#ifndef AGG_DAEMON_STORE_JOB_PARTS_H
#define AGG_DAEMON_STORE_JOB_PARTS_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "agg/daemon/store_job.h"
#include "agg/daemon/store_keeper.h"
#include "agg/daemon/store_turns.h"
#include "agg/store/store_peer.h"
#include "base/error.h"

enum {
    STORE_KEPT_MAX = 8, /* snapshot results kept for threads that have not seen them */
};

enum store_presence {
    STORE_RANK_NEVER, /* has not joined yet */
    STORE_RANK_HERE,
    STORE_RANK_LEFT, /* sent GOODBYE */
    STORE_RANK_LOST,
};

/* A joined rank. */
struct store_member {
    struct store_member *next; /* list of joining or of departed ranks */
    struct trib_session *session;
    struct credentials *credentials;
    struct trib_store_peer *peer;
    struct trib_error err;
    uint32_t rank;
    bool notified; /* of the drain */
    bool more; /* the last pass may have left input unread */
    struct store_order order; /* number 0: it waits for none */
};

struct store_thread {
    struct store_job *job;
    uint32_t index;
    pthread_t thread;
    int wake_fd;
    struct trib_metrics_writer *writer; /* or NULL: nothing is counted */
    struct trib_store_tick tick; /* during long work */
    struct trib_store_tick alive; /* while waiting for a turn */
    struct store_turn turn;
    struct pollfd *fds; /* [1 + ranks of the thread] */
    uint32_t *who; /* [ranks of the thread] rank of fds[1 + i] */
    uint32_t n_here; /* its connected ranks */
    uint64_t kept_seen; /* number of snapshot results seen */
    _Atomic bool moved; /* a waiting pull may be satisfied now */
    _Atomic bool waits; /* a pull is waiting here */
    struct store_member *coming; /* under the job's mutex */
};

struct store_job {
    struct store_job_opts opts;
    struct store_flow flow;
    struct trib_store_table *table;
    struct store_keeper *keeper;
    struct store_member **members; /* [ranks], used by its thread; NULL: absent */
    uint8_t *presence; /* [ranks] enum store_presence, each used by its thread */
    struct store_thread *threads; /* [n_threads] */
    uint32_t n_threads;
    _Atomic bool emptied; /* its ranks have left, and its vectors are freed */
    _Atomic bool over;
    _Atomic bool stop; /* tells the threads to end */
    _Atomic bool draining;
    struct store_end end;
    _Atomic uint32_t present; /* ranks connected or joining */
    char why[300]; /* written before `stop` is set */

    pthread_mutex_t mutex; /* guards the fields below */
    struct store_member *gone;
    bool ending;
    bool closed; /* no further rank can join */
    char say[300];
    uint32_t n_here;
    uint32_t n_lost;
    uint64_t empty_ns; /* since when no rank is connected; 0: some are or will be */
    struct store_kept kept[STORE_KEPT_MAX]; /* latest snapshot results */
    uint64_t n_kept;
};

/** store_thread_wake - wake a thread so that it checks shared state. */
void store_thread_wake(struct store_thread *t);

/** store_thread_open - allocate state for its ranks; errors: as store_job_open. */
trib_status_t store_thread_open(struct store_job *job, uint32_t index,
                                struct trib_error *err);

/** store_thread_free - free it; the thread has ended. */
void store_thread_free(struct store_thread *t);

/** store_thread_serve - run one pass over the thread's ranks. */
void store_thread_serve(struct store_thread *t);

/** store_thread_rest - give up the turn after the last pass. */
void store_thread_rest(struct store_thread *t);

/** store_thread_take_joiners - accept the ranks that were handed over. */
void store_thread_take_joiners(struct store_thread *t);

/** store_thread_end - end the sessions of its ranks when the store has ended. */
void store_thread_end(struct store_thread *t);

#endif
