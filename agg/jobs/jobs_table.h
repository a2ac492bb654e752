/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of jobs, private to agg/jobs/. */
#ifndef AGG_JOBS_JOBS_TABLE_H
#define AGG_JOBS_JOBS_TABLE_H

#include "agg/jobs/jobs.h"
#include "base/quota.h"

/* The account of one user. It stays at its address; once it has no jobs, another user
 * may get it. */
struct trib_jobs_account {
    char name[TRIB_JOB_NAME_BYTES];
    bool named; /* named by trib_jobs_user: never reassigned */
    uint32_t weight;
    struct trib_jobs_limits limits;
    struct trib_jobs_limits held; /* bytes: as of trib_jobs_order */
    double served; /* charges of ended jobs: share of the service × s / weight */
    double hold_s; /* mean holding time of its jobs */
    uint64_t job_weights; /* sum of its admitted jobs */
    bool waiting; /* has a queued job, and its limits allow the first */
    /* Valid during one pass over the queue: */
    bool seen; /* its first queued job was visited */
    double tag; /* tag of its next queued job */
    struct trib_quota quota; /* last: other threads change it */
};

struct trib_jobs_entry {
    struct trib_job job; /* first: a view strides over entries */
    uint32_t account;
    struct trib_quota *quota; /* owned by the caller; NULL: none yet */
    uint64_t admitted_ns;
    uint64_t blocked_ns; /* since when the job is next and does not fit; 0: never */
    /* Valid during one pass over the queue: */
    double tag; /* order among all queued jobs */
    bool able; /* first job of its user, and within the user's limits */
};

/* Entry to sort queued jobs by tag. */
struct trib_jobs_tagged {
    double tag;
    uint32_t entry;
};

struct trib_jobs {
    struct trib_jobs_opts opts;
    struct trib_jobs_limits held; /* bytes: as of trib_jobs_order */
    uint32_t lent; /* slots of idle jobs, part of held.slots */
    bool draining;
    uint64_t ids;
    double now_v; /* virtual time: tag of the job admitted last */
    double hold_s; /* mean over all accounts */
    uint32_t n;
    uint32_t n_max;
    uint32_t n_accounts;
    uint32_t n_accounts_max;
    /* The gate: the next job does not fit and no job may pass it; see
     * agg/jobs/jobs_fair.c. */
    uint64_t gate_since_ns; /* time at which it was shut; 0: open */
    uint64_t gate_open_ns; /* all may pass until then */
    uint64_t gate_ns; /* how long it is shut next; 0: opts.gate_ns */
    /* Valid during one pass over the queue: */
    double waiting_weights; /* sum of the weights of waiting users */
    /* A copy has its own: */
    struct trib_quota quota;
    struct trib_jobs_entry *entries; /* [n_max + 1: a request], in arrival order */
    struct trib_jobs_account *accounts;
    struct trib_jobs_tagged *tagged; /* [n_max + 1], scratch of trib_jobs_positions */
    bool *labelled; /* [n_max + 2], scratch of free_label */
};

/* --- agg/jobs/jobs.c --- */

/** trib_jobs_find - return the entry of a job; NULL: none. */
struct trib_jobs_entry *trib_jobs_find(const struct trib_jobs *jobs, uint64_t id);

/** trib_jobs_account_of - return the account of a user; a new one if it has none. */
struct trib_jobs_account *trib_jobs_account_of(struct trib_jobs *jobs,
                                               const char *name);

/** trib_jobs_set_lent - lend the slots of an idle job, or count them again. */
void trib_jobs_set_lent(struct trib_jobs *jobs, struct trib_jobs_entry *e, bool idle);

/* --- agg/jobs/limits.c --- */

/**
 * trib_jobs_slots_left - return the number of slots that the limits leave to a job that
 * holds nothing yet, after memory for its ranks. 0 also if the limit of jobs is
 * reached.
 */
uint32_t trib_jobs_slots_left(const struct trib_jobs_limits *limits,
                              const struct trib_jobs_limits *held,
                              const struct trib_job *job);

/** trib_jobs_in_use - return the service's resources in use, without lent slots. */
struct trib_jobs_limits trib_jobs_in_use(const struct trib_jobs *jobs);

/* --- agg/jobs/jobs_fair.c --- */

/** trib_jobs_order - set the tag of every queued job; ties go by order of arrival. */
void trib_jobs_order(struct trib_jobs *jobs, uint64_t now_ns);

/** trib_jobs_choose - return the job to admit now; NULL: none. */
struct trib_jobs_entry *trib_jobs_choose(struct trib_jobs *jobs, uint64_t now_ns);

/** trib_jobs_charge - charge a job that held slots and is removed to its user's
 * account. */
void trib_jobs_charge(struct trib_jobs *jobs, uint64_t now_ns,
                      const struct trib_jobs_entry *entry);

/* --- agg/jobs/jobs_text.c --- */

/** trib_jobs_explain - append which resource a job lacks, and who holds it. */
void trib_jobs_explain(const struct trib_jobs *jobs, uint64_t now_ns,
                       const struct trib_jobs_entry *entry,
                       char text[TRIB_JOB_TEXT_BYTES]);

/**
 * trib_jobs_reject - return true, with a message, if a request can never be admitted.
 *
 * account   account of the user; NULL: the user's name is invalid
 */
bool trib_jobs_reject(const struct trib_jobs *jobs,
                      const struct trib_job_request *request,
                      const struct trib_jobs_account *account,
                      char text[TRIB_JOB_TEXT_BYTES]);

#endif
