/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inside of a store in tribd: what its threads share, and what each has.
 *
 * A rank belongs to one thread, by its number. The threads meet in the vectors
 * (agg/store/store_walk.h), in the keeper of snapshots, and in what is under the mutex.
 * The first one sees to the life of the store and to its snapshots.
 */
#ifndef TRIBD_STORE_JOB_PARTS_H
#define TRIBD_STORE_JOB_PARTS_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "agg/store/store_peer.h"
#include "base/error.h"
#include "tribd/store_job.h"
#include "tribd/store_keeper.h"
#include "tribd/store_turns.h"

enum {
    STORE_KEPT_MAX = 8, /* news of snapshots that not all threads have heard */
};

enum store_presence {
    STORE_RANK_NEVER, /* it has not joined yet */
    STORE_RANK_HERE,
    STORE_RANK_LEFT, /* it has said goodbye */
    STORE_RANK_LOST,
};

/* A rank that has joined. */
struct store_member {
    struct store_member *next; /* of those that come, or that are gone */
    struct trib_session *session;
    struct credentials *credentials;
    struct trib_store_peer *peer;
    struct trib_error err;
    uint32_t rank;
    bool told; /* of the drain */
    bool more; /* it may have said more than was taken in the last pass */
};

struct store_thread {
    struct store_job *job;
    uint32_t index;
    pthread_t thread;
    int wake_fd;
    struct trib_metrics_writer *writer; /* or NULL: nothing is counted */
    struct trib_store_tick tick; /* amid long work */
    struct trib_store_tick alive; /* while it waits for its turn */
    struct store_turn turn;
    struct pollfd *fds; /* [1 + ranks of the thread] */
    uint32_t *who; /* [ranks of the thread] rank of fds[1 + i] */
    uint32_t n_here; /* of its ranks */
    bool ordered; /* one of its ranks waits for a snapshot */
    uint64_t kept_seen; /* news of snapshots that its ranks have heard */
    _Atomic bool moved; /* a pull that waits may have what it waits for */
    _Atomic bool waits; /* a pull waits here */
    struct store_member *coming; /* under the job's mutex */
};

struct store_job {
    uint32_t ranks;
    struct trib_quota *quota;
    struct trib_metrics *metrics;
    uint64_t id;
    int server_fd;
    struct archive *archive; /* or NULL */
    struct trib_snapshot_about about; /* of its snapshots */
    struct store_turns *turns;
    struct store_flow flow;
    struct trib_store_table *table;
    struct store_keeper *keeper;
    struct store_member **members; /* [ranks], each of its thread; NULL: not here */
    uint8_t *presence; /* [ranks] enum store_presence, each of its thread */
    struct store_thread *threads; /* [n_threads] */
    uint32_t n_threads;
    _Atomic bool over;
    _Atomic bool stop; /* the threads are to end */
    _Atomic bool draining;
    _Atomic uint32_t present; /* ranks that are here, or are coming */
    char why[300]; /* written before `stop` */

    pthread_mutex_t mutex; /* of what follows */
    struct store_member *gone;
    bool ending;
    char say[300];
    uint32_t n_here;
    uint32_t n_lost;
    uint64_t empty_ns; /* since then nobody is here; 0: somebody is, or will be */
    struct store_kept kept[STORE_KEPT_MAX]; /* the newest news of snapshots */
    uint64_t n_kept;
};

/** store_thread_wake - have a thread look at what others have done. */
void store_thread_wake(struct store_thread *t);

/** store_thread_open - allocate what it needs for its ranks; errors: as
 * store_job_open. */
trib_status_t store_thread_open(struct store_job *job, uint32_t index,
                                struct trib_error *err);

/** store_thread_free - free it; the thread has ended. */
void store_thread_free(struct store_thread *t);

/** store_thread_serve - one pass of the thread's ranks. */
void store_thread_serve(struct store_thread *t);

/** store_thread_rest - after its last pass: another thread may work. */
void store_thread_rest(struct store_thread *t);

/** store_thread_take_comers - take in the ranks that were handed over. */
void store_thread_take_comers(struct store_thread *t);

/** store_thread_end - end the sessions of its ranks: the store is over. */
void store_thread_end(struct store_thread *t);

#endif
