/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The store of one job in this process: threads, among which its ranks are dealt, the
 * vectors (agg/store), and a session with each rank that has joined.
 *
 *     thread of the server                      threads of the store
 *      STORE_JOIN ──▶ store_job_open (the first)
 *      the session ─▶ store_job_add ───────────▶ STORE_JOINED, and all that follows
 *      kick, drain ─▶ store_job_end, _drain ───▶ the ranks are told
 *      store_job_reap ◀──── wake_fd ──────────── a rank has left; the store is over
 *
 * The store ends when all ranks that had joined have said goodbye. A rank whose
 * connection is lost may come back for STORE_JOB_KEEP_MS: so long the store stays, even
 * if nobody else is there. A rank that says nothing for STORE_JOB_SILENT_MS is lost: a
 * thread of the library says ALIVE every second, so its process is stopped, or its host
 * cannot be reached.
 */
#ifndef TRIBD_STORE_JOB_H
#define TRIBD_STORE_JOB_H

#include <stdbool.h>

#include "agg/metrics/metrics.h"
#include "agg/protocol/session.h"
#include "agg/store/snapshot_about.h"

struct archive;
struct credentials;
struct store_job;
struct store_turns;
struct trib_log;
struct trib_quota;

enum { STORE_JOB_KEEP_MS = 10000, STORE_JOB_SILENT_MS = 5000 };

/* Memory for each declared rank: its session, and what this file keeps of it. */
#define STORE_JOB_RANK_BYTES (5 * TRIB_CONTROL_FRAME_BYTES + 8192)

struct store_job_opts {
    uint32_t ranks;
    uint32_t threads; /* at most so many */
    struct trib_quota *quota; /* outlives the store */
    struct trib_metrics *metrics;
    uint64_t id; /* of the job, in its table */
    int wake_fd; /* an eventfd of the server */
    struct archive *archive; /* NULL: no snapshots */
    const struct trib_log *log;
    struct store_turns *turns; /* outlives the store */
    uint64_t every_pushes, every_ms; /* of snapshots; 0: not by these */
    struct trib_snapshot_about about; /* owner, user and job of snapshots */
};

/** store_job_open - a store without vectors and ranks, and its threads; errors:
 * TRIB_ERR_NO_MEMORY, TRIB_ERR_SYSTEM, with a sentence in err. */
trib_status_t store_job_open(const struct store_job_opts *opts, struct trib_error *err,
                             struct store_job **out);

/**
 * store_job_add - hand over the session of a rank that asks for this store. It takes
 * the place of one that the rank had before.
 *
 * credentials  a reference, which store_job_reap gives back
 * returns      false: no memory, and the caller keeps both
 */
bool store_job_add(struct store_job *job, struct trib_session *session, uint32_t rank,
                   struct credentials *credentials);

/** store_job_end - end it; its ranks are told this sentence. */
void store_job_end(struct store_job *job, const char *say);

/** store_job_set_weight - its weight among stores, of trib_jobs_weight; 0: as
 * before. */
void store_job_set_weight(struct store_job *job, uint32_t weight);

/** store_job_drain - tell the ranks that the service is about to end. */
void store_job_drain(struct store_job *job);

/**
 * store_job_reap - free sessions of ranks that are gone.
 *
 * returns  true if the store is over, and store_job_free does not wait
 */
bool store_job_reap(struct store_job *job);

/** store_job_files - the open files of its ranks and threads. */
uint32_t store_job_files(const struct store_job *job);

/** store_job_is_deserted - true if none of its ranks is there now. */
bool store_job_is_deserted(const struct store_job *job);

/** store_job_why - why it is over; valid then. */
const char *store_job_why(const struct store_job *job);

/** store_job_free - end it, wait for its threads, and free all. */
void store_job_free(struct store_job *job);

#endif
