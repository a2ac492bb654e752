/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The store of one job in this process: threads among which its ranks are distributed,
 * the vectors (agg/store), and a session with each joined rank.
 *
 *     server thread                             threads of the store
 *      STORE_JOIN ──▶ store_job_open (the first)
 *      the session ─▶ store_job_add ───────────▶ STORE_JOINED, and all that follows
 *      kick, drain ─▶ store_job_end, _drain ───▶ notify the ranks
 *      store_job_reap ◀──── wake_fd ──────────── a rank has left; the store has ended
 *
 * The store ends when all joined ranks have sent GOODBYE. A rank that lost its
 * connection may reconnect within STORE_JOB_KEEP_MS; the store stays that long even
 * without ranks. A rank that is silent for STORE_JOB_SILENT_MS is lost. A thread of the
 * library sends ALIVE every second, so either its process is stopped, or its host is
 * unreachable.
 */
#ifndef AGG_DAEMON_STORE_JOB_H
#define AGG_DAEMON_STORE_JOB_H

#include <stdbool.h>

#include "agg/metrics/metrics.h"
#include "agg/protocol/session.h"
#include "agg/store/store_snapshot.h"

struct archive;
struct credentials;
struct store_job;
struct store_turns;
struct trib_log;
struct trib_quota;

enum { STORE_JOB_KEEP_MS = 10000, STORE_JOB_SILENT_MS = 5000 };

/* Memory for each declared rank: its session and bookkeeping. */
#define STORE_JOB_RANK_BYTES (5 * TRIB_CONTROL_FRAME_BYTES + 8192)

struct store_job_opts {
    uint32_t ranks;
    uint32_t threads; /* maximum number of threads */
    struct trib_quota *quota; /* outlives the store */
    struct trib_metrics *metrics;
    uint64_t id; /* of the job, in the table of jobs */
    int wake_fd; /* eventfd of the server */
    struct archive *archive; /* NULL: no snapshots */
    const struct trib_log *log;
    struct store_turns *turns; /* outlives the store */
    uint64_t every_pushes, every_ms; /* snapshot intervals; 0: none */
    struct trib_snapshot_about about; /* owner, user and job of snapshots */
};

/** store_job_open - create a store without vectors and ranks, and start its threads;
 * errors: TRIB_ERR_NO_MEMORY, TRIB_ERR_SYSTEM. */
trib_status_t store_job_open(const struct store_job_opts *opts, struct trib_error *err,
                             struct store_job **out);

/**
 * store_job_add - hand over the session of a joining rank; it replaces the rank's
 * previous session.
 *
 * credentials  a reference, released by store_job_reap
 * errors       TRIB_ERR_NO_MEMORY; TRIB_ERR_PEER_LOST: the store has ended, though it
 *              may still wait for the disk. The caller keeps both
 */
trib_status_t store_job_add(struct store_job *job, struct trib_session *session,
                            uint32_t rank, struct credentials *credentials);

/** store_job_end - end the store; its ranks receive `say`. Unless the service drains,
 * it discards further snapshots; one that is queued in the archive is still written. */
void store_job_end(struct store_job *job, const char *say);

/** store_job_replace - end the store because another store uses its snapshot key. It
 * discards further snapshots; one that is queued in the archive is still written. */
void store_job_replace(struct store_job *job);

/** store_job_set_weight - set its weight among stores, from trib_jobs_weight; 0: no
 * change. */
void store_job_set_weight(struct store_job *job, uint32_t weight);

/** store_job_drain - notify the ranks that the service will end. */
void store_job_drain(struct store_job *job);

/**
 * store_job_reap - free the sessions of ranks that have left.
 *
 * returns  true: the store has ended, and store_job_free does not wait
 */
bool store_job_reap(struct store_job *job);

/** store_job_is_empty - return true if it has ended and its vectors are freed. It may
 * still wait for the disk, for any time. */
bool store_job_is_empty(const struct store_job *job);

/** store_job_files - return the number of open files of its threads and, until it is
 * empty, of all its ranks, present or not. */
uint32_t store_job_files(const struct store_job *job);

/** store_job_threads - return the number of its threads, without the one that copies
 * vectors for snapshots. */
uint32_t store_job_threads(const struct store_job *job);

/** store_job_is_deserted - return true if no rank is connected. */
bool store_job_is_deserted(const struct store_job *job);

/** store_job_why - return why it ended; valid after the end. */
const char *store_job_why(const struct store_job *job);

/** store_job_free - end it, wait for its threads, and free it. */
void store_job_free(struct store_job *job);

#endif
