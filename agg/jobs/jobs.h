/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Admission of jobs: the table of jobs, their holdings, and the choice of the next job.
 *
 *     submit ──▶ QUEUED ──next──▶ ADMITTED ──end──▶ DRAINING ──deadline──▶ gone
 *       │          │ deadline, drain, end             │ remove
 *       ▼          ▼                                  ▼
 *    refused    refused                             gone
 *
 * Jobs share slots and the memory of those slots. A job keeps its grant until it ends,
 * so fairness is decided by the order of admission: start-time fair queuing (Goyal,
 * Vin, Cheng: "Start-time fair queueing", SIGCOMM 1996) over holdings × time.
 * agg/jobs/jobs_fair.c states the rule and its reasons. Jobs of one user are admitted
 * first in, first out. A job that fits now is admitted even if the queue is full.
 *
 * An idle job lends its number of slots, which bounds the chunks in flight. It does not
 * lend their memory, which stays registered for the job.
 *
 * Pure: no I/O, no clock, no lock. The caller supplies times, in nanoseconds of a
 * monotonic clock, never 0. One thread at a time.
 */
#ifndef AGG_JOBS_JOBS_H
#define AGG_JOBS_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;
struct trib_jobs;
struct trib_quota;

#define TRIB_JOB_NAME_BYTES 65 /* bytes of a job or user name, with the NUL */
#define TRIB_JOB_TEXT_BYTES 512
#define TRIB_JOB_WEIGHT_MAX 100
#define TRIB_JOBS_MAX 4096 /* queued and admitted */

enum trib_job_state {
    TRIB_JOB_QUEUED, /* waits for slots until its deadline */
    TRIB_JOB_ADMITTED, /* holds slots */
    TRIB_JOB_DRAINING, /* ended; holds slots until removed or its deadline */
};

/* 0 means no limit, except where noted. */
struct trib_jobs_limits {
    uint32_t slots;
    uint32_t jobs; /* jobs that hold slots; unused in a job's limits */
    uint32_t queued; /* jobs that wait; unused in a job's limits */
    uint64_t bytes; /* memory of slots, ranks and plans */
};

struct trib_jobs_opts {
    struct trib_jobs_limits service; /* slots, jobs, queued: at least 1 */
    struct trib_jobs_limits user; /* default; see trib_jobs_user */
    struct trib_jobs_limits job;
    uint64_t backfill_ns; /* backfilling: how long later jobs may pass one that is next
                           * but does not fit */
    uint64_t gate_ns; /* then: how long they are held back at first; 0: until it fits
                       * (the gate, agg/jobs/jobs_fair.c) */
};

struct trib_job_request {
    const char *name; /* 1 to 64 printable ASCII characters */
    const char *user; /* same; from authentication, never from the job */
    uint32_t weight; /* among jobs of its user: 1 to TRIB_JOB_WEIGHT_MAX */
    uint32_t ranks;
    uint32_t slots; /* all or nothing: ranks have already split vectors */
    uint64_t slot_bytes; /* memory of one slot */
    uint64_t wait_ns; /* refuse the job after this wait; 0: never queue it */
    uint64_t rank_bytes; /* memory for each rank, in addition to slots */
};

struct trib_job {
    uint64_t id; /* counts up from 1, never reused */
    uint32_t label; /* lowest number from 1 that no other job uses */
    char name[TRIB_JOB_NAME_BYTES];
    char user[TRIB_JOB_NAME_BYTES];
    enum trib_job_state state;
    uint32_t weight;
    uint32_t ranks;
    uint32_t slots_wanted;
    uint32_t slots; /* slots held; 0 while queued */
    uint64_t slot_bytes;
    uint64_t ranks_bytes; /* memory for all ranks; held as slots are */
    uint64_t plan_bytes; /* charged to its quota; as of trib_jobs_positions */
    uint64_t asked_ns;
    uint64_t since_ns; /* time at which the job entered its state */
    uint64_t deadline_ns; /* queued: refused then; draining: freed then; else 0 */
    bool lends; /* all its slots are idle: see trib_jobs_lend */
    uint32_t position; /* queued: from 1, as of trib_jobs_positions; else 0 */
};

enum trib_job_verdict {
    TRIB_JOB_ADMIT,
    TRIB_JOB_QUEUE,
    TRIB_JOB_REFUSE,
    TRIB_JOB_FREED
};

/* Reason for a refusal. */
enum trib_job_cause {
    TRIB_JOB_BY_NOTHING, /* not refused */
    TRIB_JOB_BY_LIMIT, /* exceeds a limit */
    TRIB_JOB_BY_QUEUE, /* the queue is full */
    TRIB_JOB_BY_WAIT, /* its wait timed out */
    TRIB_JOB_BY_DRAIN, /* the service is draining */
};

struct trib_job_answer {
    enum trib_job_verdict verdict;
    enum trib_job_cause cause; /* reason for a refusal */
    uint64_t id; /* 0: refused before an id was assigned */
    uint32_t slots; /* slots granted */
    uint32_t position; /* in the queue, from 1 */
    uint64_t deadline_ns; /* queued: end of its wait */
    char text[TRIB_JOB_TEXT_BYTES]; /* which limit blocks the job, and who holds it */
};

/**
 * trib_jobs_create - create an empty table.
 *
 * errors   TRIB_ERR_CONFIG: the limits admit no job, or more than TRIB_JOBS_MAX jobs;
 *          TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_jobs_create(const struct trib_jobs_opts *opts,
                               struct trib_error *err, struct trib_jobs **out);

/** trib_jobs_destroy - free a table; NULL is allowed. */
void trib_jobs_destroy(struct trib_jobs *jobs);

/** trib_jobs_name_ok - true for a valid name of a job or user: 1 to 64 printable ASCII
 * characters. */
bool trib_jobs_name_ok(const char *name);

/**
 * trib_jobs_limit - replace opts.user and opts.job, and discard all trib_jobs_user
 * calls.
 *
 * Jobs keep their holdings. The new limits apply to queued jobs.
 */
void trib_jobs_limit(struct trib_jobs *jobs, const struct trib_jobs_limits *user,
                     const struct trib_jobs_limits *job);

/**
 * trib_jobs_user - set a user's weight and individual limits.
 *
 * weight   1 to TRIB_JOB_WEIGHT_MAX, effective at once; the default is 1
 * limits   NULL: opts.user
 * errors   TRIB_ERR_CONFIG; TRIB_ERR_OVERFLOW: more than TRIB_JOBS_MAX users
 */
trib_status_t trib_jobs_user(struct trib_jobs *jobs, const char *name, uint32_t weight,
                             const struct trib_jobs_limits *limits,
                             struct trib_error *err);

/**
 * trib_jobs_submit - submit a new job: it is admitted, queued or refused.
 *
 * Call trib_jobs_next until it returns false beforehand, so that earlier jobs are
 * served first.
 */
void trib_jobs_submit(struct trib_jobs *jobs, uint64_t now_ns,
                      const struct trib_job_request *request,
                      struct trib_job_answer *out);

/** trib_jobs_follows - return true if a request would be admitted after the end of job
 * `id`, which may have ended, and after the queued jobs that then come first: at once,
 * and up to 2 s later. */
bool trib_jobs_follows(const struct trib_jobs *jobs, uint64_t now_ns,
                       const struct trib_job_request *request, uint64_t id);

/**
 * trib_jobs_next - apply one change caused by time or by returned slots.
 *
 * Admits or refuses a queued job, or frees a draining one. Call trib_jobs_next until it
 * returns false: after every other call, at trib_jobs_wake_ns, and about every second,
 * because the order also changes as running jobs accrue service.
 */
bool trib_jobs_next(struct trib_jobs *jobs, uint64_t now_ns,
                    struct trib_job_answer *out);

/**
 * trib_jobs_quota - initialise a job's quota, to which its plans are charged.
 *
 * The quota starts with the memory of the job's slots and ranks, and with the current
 * limit of a job. Its parents are the quotas of the user and of the service.
 *
 * id      an admitted job
 * owner   the caller, until the job was removed and all its memory was returned
 * thread  this call as all others; the quota may be used by any thread
 */
void trib_jobs_quota(struct trib_jobs *jobs, uint64_t id, struct trib_quota *out);

/**
 * trib_jobs_lend - mark an admitted job as idle or as active again.
 *
 * Slots of idle jobs do not count against the service's slots, so other jobs are
 * admitted in their place, with memory of their own. The slots of a job that becomes
 * active count again at once: it waits for no other job, jobs admitted in between stay,
 * and no further job is admitted until the sum fits. At most the service's number of
 * slots is lent at a time, so at most twice that number is held. The user's own
 * holdings still count. No effect on a job that is not admitted.
 */
void trib_jobs_lend(struct trib_jobs *jobs, uint64_t id, bool idle);

/** trib_jobs_wake_ns - return the next deadline of a queued or draining job; 0: none.
 */
uint64_t trib_jobs_wake_ns(const struct trib_jobs *jobs);

/** trib_jobs_remove - remove a job that holds nothing any longer; false: no such job.
 */
bool trib_jobs_remove(struct trib_jobs *jobs, uint64_t now_ns, uint64_t id);

/**
 * trib_jobs_end - end a job that died or was kicked; it keeps its slots until
 * deadline_ns.
 *
 * The slots are free at the deadline, or when the job is removed. A queued job is
 * removed at once. A job that is already draining keeps the earlier deadline.
 *
 * returns  false: no such job
 */
bool trib_jobs_end(struct trib_jobs *jobs, uint64_t now_ns, uint64_t id,
                   uint64_t deadline_ns);

/** trib_jobs_drain - start or stop refusing all new and queued jobs. */
void trib_jobs_drain(struct trib_jobs *jobs, bool drain);

/** trib_jobs_positions - set the position of each queued job; O(n log n). */
void trib_jobs_positions(struct trib_jobs *jobs, uint64_t now_ns);

/**
 * trib_jobs_weight - return a job's weight among all jobs of a thread (agg/jobs/drr.h).
 *
 * The user's weight is divided among its jobs by their weights, so that splitting work
 * into more jobs gains no share of a thread. 0: the job is not admitted.
 */
uint32_t trib_jobs_weight(const struct trib_jobs *jobs, uint64_t id);

/* Read-only view of the whole table. */
struct trib_jobs_view {
    const struct trib_job *jobs; /* all jobs, in order of arrival */
    size_t stride; /* bytes from one job to the next */
    uint32_t n;
    struct trib_jobs_limits limits; /* limits of the service */
    struct trib_jobs_limits held; /* slots, bytes, jobs and queued jobs in use */
    uint32_t lent; /* slots lent by idle jobs, part of held.slots */
    bool draining;
};

/** trib_jobs_view - return a view of the table, valid until the next non-const call. */
struct trib_jobs_view trib_jobs_view(const struct trib_jobs *jobs);

/** trib_jobs_at - return the i-th job of a view. */
static inline const struct trib_job *trib_jobs_at(const struct trib_jobs_view *view,
                                                  uint32_t i)
{
    return (const struct trib_job *)((const char *)view->jobs + i * view->stride);
}

/** trib_job_fixed_bytes - return the memory of a job's slots and ranks, held since its
 * admission. */
uint64_t trib_job_fixed_bytes(const struct trib_job *job);

/** trib_job_bytes - return all memory that a job holds: slots, ranks and plans. */
uint64_t trib_job_bytes(const struct trib_job *job);

/** trib_job_state_name - return "queued", "admitted" or "draining". */
const char *trib_job_state_name(enum trib_job_state state);

#endif
