/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Admission of jobs: the jobs, what they hold, and which one is next.
 *
 *     ask ──▶ QUEUED ──next──▶ ADMITTED ──end──▶ DRAINING ──deadline──▶ gone
 *      │         │ deadline, drain, end             │ leave
 *      ▼         ▼                                  ▼
 *   refused   refused                             gone
 *
 * Jobs share slots and the memory behind them. A job keeps what it was given until it
 * ends, so fairness is a matter of who comes next: start-time fair queuing (Goyal, Vin,
 * Cheng: "Start-time fair queueing", SIGCOMM 1996) over what users hold × time;
 * agg/jobs/jobs_fair.c has the rule and why it is that one. Within a user it is first
 * in, first out. A job that fits now is admitted whether there is room in the queue or
 * not.
 *
 * A job that is idle lends the number of its slots, which bounds the chunks that are
 * under way, and not their memory, which stays registered for it.
 *
 * Pure: no I/O, no clock, no lock. Moments are the caller's, in nanoseconds of one
 * clock that does not go backwards, and never 0. Thread: one at a time.
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

#define TRIB_JOB_NAME_BYTES 65 /* length of the name of a job or a user, with the
                                * zero */
#define TRIB_JOB_TEXT_BYTES 512
#define TRIB_JOB_WEIGHT_MAX 100
#define TRIB_JOBS_MAX 4096 /* queued and admitted */

enum trib_job_state {
    TRIB_JOB_QUEUED,   /* waits for slots, or for its deadline */
    TRIB_JOB_ADMITTED, /* holds slots */
    TRIB_JOB_DRAINING, /* has ended, or was ended; holds slots until leave or its
                        * deadline */
};

/* 0: no limit, except where it says so. */
struct trib_jobs_limits {
    uint32_t slots;
    uint32_t jobs;   /* number of jobs that hold slots; unused in the limits of a job */
    uint32_t queued; /* number of jobs that wait; unused in the limits of a job */
    uint64_t bytes;  /* memory behind the slots, for ranks, and of plans */
};

struct trib_jobs_opts {
    struct trib_jobs_limits service; /* slots, jobs and queued: at least 1 */
    struct trib_jobs_limits user;    /* limits of users for whom trib_jobs_user was not
                                      * called */
    struct trib_jobs_limits job;
    uint64_t patience_ns; /* time for which others may pass the next job while it does
                           * not fit */
    uint64_t gate_ns; /* first time after that for which nobody may pass it; 0: until it
                       * fits */
};

struct trib_job_request {
    const char *name; /* 1 to 64 printable characters of ASCII */
    const char *user; /* the same; from the authentication, never from the job */
    uint32_t weight;  /* weight among the jobs of its user: 1 to TRIB_JOB_WEIGHT_MAX */
    uint32_t ranks;
    uint32_t slots;      /* it is given so many, or none: its ranks have cut their
                          * vectors for them */
    uint64_t slot_bytes; /* memory behind one slot */
    uint64_t wait_ns;    /* refuse it rather than let it wait longer; 0: now or never */
    uint64_t rank_bytes; /* memory kept for each of its ranks, beside the slots */
};

struct trib_job {
    uint64_t id; /* numbers from 1 upwards, each used once */
    uint32_t label; /* the lowest number from 1 that no other job has */
    char name[TRIB_JOB_NAME_BYTES];
    char user[TRIB_JOB_NAME_BYTES];
    enum trib_job_state state;
    uint32_t weight;
    uint32_t ranks;
    uint32_t slots_wanted;
    uint32_t slots; /* held: 0 while it is queued */
    uint64_t slot_bytes;
    uint64_t ranks_bytes; /* memory for all of its ranks; held as slots are */
    uint64_t plan_bytes; /* taken from its quota, as of the last look at the table */
    uint64_t asked_ns;
    uint64_t since_ns;    /* time at which it entered this state */
    uint64_t deadline_ns; /* queued: refused then; draining: freed then; else 0 */
    bool lends;           /* it uses none of its slots now: see trib_jobs_lend */
    uint32_t position;    /* queued: from 1, as of trib_jobs_positions; else 0 */
};

enum trib_job_verdict {
    TRIB_JOB_ADMIT,
    TRIB_JOB_QUEUE,
    TRIB_JOB_REFUSE,
    TRIB_JOB_FREED
};

/* The cause of a refusal. */
enum trib_job_cause {
    TRIB_JOB_BY_NOTHING, /* it was not */
    TRIB_JOB_BY_LIMIT,   /* more than it may ever have */
    TRIB_JOB_BY_QUEUE,   /* too many wait */
    TRIB_JOB_BY_WAIT,    /* its turn has not come while it would wait */
    TRIB_JOB_BY_DRAIN,   /* there are no new jobs */
};

struct trib_job_answer {
    enum trib_job_verdict verdict;
    enum trib_job_cause cause; /* cause of a refusal */
    uint64_t id;          /* 0: the job was refused before it had one */
    uint32_t slots;       /* given */
    uint32_t position;    /* position in the queue, from 1 */
    uint64_t deadline_ns; /* queued: of its wait */
    char text[TRIB_JOB_TEXT_BYTES]; /* a sentence: what holds it up, and by whom */
};

/**
 * trib_jobs_create - a table without jobs.
 *
 * errors   TRIB_ERR_CONFIG: limits that admit nothing, or more jobs than TRIB_JOBS_MAX;
 *          TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_jobs_create(const struct trib_jobs_opts *opts,
                               struct trib_error *err, struct trib_jobs **out);

/** trib_jobs_destroy - NULL is allowed. */
void trib_jobs_destroy(struct trib_jobs *jobs);

/** trib_jobs_name_ok - true if it may name a job or a user: 1 to 64 printable
 * characters of ASCII. */
bool trib_jobs_name_ok(const char *name);

/**
 * trib_jobs_limit - opts.user and opts.job, from now on; what trib_jobs_user said is
 * forgotten.
 *
 * Jobs keep their holdings; those that wait are measured by the new limits of their
 * users.
 */
void trib_jobs_limit(struct trib_jobs *jobs, const struct trib_jobs_limits *user,
                     const struct trib_jobs_limits *job);

/**
 * trib_jobs_user - a user's weight among users, and limits of its own.
 *
 * weight   1 to TRIB_JOB_WEIGHT_MAX, from now on; users who are never named here have 1
 * limits   NULL: those of opts.user
 * errors   TRIB_ERR_CONFIG; TRIB_ERR_OVERFLOW: more users than TRIB_JOBS_MAX
 */
trib_status_t trib_jobs_user(struct trib_jobs *jobs, const char *name, uint32_t weight,
                             const struct trib_jobs_limits *limits,
                             struct trib_error *err);

/**
 * trib_jobs_submit - a new job: admitted, queued or refused.
 *
 * Call trib_jobs_next until it says false before, so that who came earlier was served.
 */
void trib_jobs_submit(struct trib_jobs *jobs, uint64_t now_ns,
                   const struct trib_job_request *request, struct trib_job_answer *out);

/**
 * trib_jobs_next - apply what time, and returned slots, have changed.
 *
 * One job at a time: a queued one is admitted or refused, a draining one is freed. Call
 * it until it says false, after every other call, at trib_jobs_wake_ns, and every
 * second or so: who is next also changes as those who run go on.
 */
bool trib_jobs_next(struct trib_jobs *jobs, uint64_t now_ns,
                    struct trib_job_answer *out);

/**
 * trib_jobs_quota - make a job's quota, from which its plans take memory beside its
 * slots.
 *
 * It has what is behind the slots, and for the ranks, already, and the limit that jobs
 * have at this moment; above it are those of its user and of all.
 * id      of a job that was admitted
 * owner   the caller: until the job has left, and all that was taken is given back
 * thread  this call as all others; the quota is of all threads
 */
void trib_jobs_quota(struct trib_jobs *jobs, uint64_t id, struct trib_quota *out);

/**
 * trib_jobs_lend - an admitted job is idle, or is so no longer.
 *
 * While it is, its slots are not counted against the service's, so that others are
 * admitted in their place, with memory of their own. When it sums again its slots count
 * at once: it waits for nobody, those who were admitted meanwhile stay, and nobody else
 * comes until the sum fits again. No more than the service's slots are lent at a time,
 * so twice as many are held at most. What its user may hold is counted as before.
 * Nothing happens to a job that is not admitted.
 */
void trib_jobs_lend(struct trib_jobs *jobs, uint64_t id, bool idle);

/** trib_jobs_wake_ns - the next deadline, of a wait or of a job that drains; 0: there
 * is none. */
uint64_t trib_jobs_wake_ns(const struct trib_jobs *jobs);

/** trib_jobs_remove - a job is gone and has let go of everything; false: no such
 * job. */
bool trib_jobs_remove(struct trib_jobs *jobs, uint64_t now_ns, uint64_t id);

/**
 * trib_jobs_end - a job has died, or is kicked: it has until deadline_ns to let go.
 *
 * Its slots are free at the deadline, or when it leaves. A queued job is gone at once.
 * A job that is draining keeps the earlier deadline.
 * returns  false: no such job
 */
bool trib_jobs_end(struct trib_jobs *jobs, uint64_t now_ns, uint64_t id,
                   uint64_t deadline_ns);

/** trib_jobs_drain - refuse every new job, and every queued one, from now on; or no
 * longer. */
void trib_jobs_drain(struct trib_jobs *jobs, bool drain);

/** trib_jobs_positions - write into each queued job where it stands; O(n log n). */
void trib_jobs_positions(struct trib_jobs *jobs, uint64_t now_ns);

/**
 * trib_jobs_weight - the weight of a job among all that share a thread
 * (agg/jobs/drr.h).
 *
 * The user's weight, divided among its jobs by their weights: a user has no more of a
 * thread for having split its work. 0: it is not admitted.
 */
uint32_t trib_jobs_weight(const struct trib_jobs *jobs, uint64_t id);

/* A table as a whole, for readers. */
struct trib_jobs_view {
    const struct trib_job *jobs; /* all jobs, in the order in which they asked */
    size_t stride;               /* bytes from one to the next */
    uint32_t n;
    struct trib_jobs_limits limits; /* limits of the service */
    struct trib_jobs_limits held;   /* slots, bytes, jobs in use, jobs queued */
    uint32_t lent;                  /* number of the used slots that idle jobs lend */
    bool draining;
};

/** trib_jobs_view - the table at this moment; valid until the next call that is not
 * const. */
struct trib_jobs_view trib_jobs_view(const struct trib_jobs *jobs);

/** trib_jobs_at - the i-th of a view. */
static inline const struct trib_job *trib_jobs_at(const struct trib_jobs_view *view,
                                                  uint32_t i)
{
    return (const struct trib_job *)((const char *)view->jobs + i * view->stride);
}

/** trib_job_fixed_bytes - the memory that a job holds from its admission on: for its
 * slots and its ranks. */
static inline uint64_t trib_job_fixed_bytes(const struct trib_job *job)
{
    return job->slots ? job->slots * job->slot_bytes + job->ranks_bytes : 0;
}

/** trib_job_bytes - all memory that a job holds: for its slots, its ranks and its
 * plans. */
static inline uint64_t trib_job_bytes(const struct trib_job *job)
{
    return trib_job_fixed_bytes(job) + job->plan_bytes;
}

/** trib_job_state_name - "queued", "admitted", "draining". */
const char *trib_job_state_name(enum trib_job_state state);

#endif
