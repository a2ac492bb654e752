/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of jobs, shared by the files of agg/jobs/ alone.
 */
#ifndef AGG_JOBS_JOBS_TABLE_H
#define AGG_JOBS_JOBS_TABLE_H

#include "agg/jobs/jobs.h"
#include "base/quota.h"

/* One user. Accounts are not moved; one without jobs may be given to another user. */
struct trib_jobs_account {
    char name[TRIB_JOB_NAME_BYTES];
    bool named; /* trib_jobs_user has named it: the account is kept */
    uint32_t weight;
    struct trib_jobs_limits limits;
    struct trib_jobs_limits held; /* bytes: as of trib_jobs_read_quotas */
    struct trib_quota quota;
    double served; /* service of jobs that ended: share of the service × seconds /
                    * weight */
    double hold_s; /* mean time for which its jobs hold what they are given */
    bool waiting;  /* has a queued job, and its limits allow the first of them */
    /* The fields of one pass over the queue: */
    bool seen;    /* its first queued job was met */
    double tag;   /* tag of its next queued job */
};

struct trib_jobs_entry {
    struct trib_job job; /* first: a view strides over entries */
    uint32_t account;
    struct trib_quota *quota; /* the caller's; NULL: it has none yet */
    uint64_t admitted_ns;
    uint64_t blocked_ns; /* time since which it is, or was, next and does not fit; 0: it
                          * was not */
    /* The fields of one pass over the queue: */
    double tag; /* its place in the order of all */
    bool able;  /* it is the first of its user's, whose limits allow it */
};

/* The place of a queued job among all. */
struct trib_jobs_place {
    double tag;
    uint32_t entry;
};

struct trib_jobs {
    struct trib_jobs_opts opts;
    struct trib_jobs_limits held; /* bytes: as of trib_jobs_read_quotas */
    uint32_t lent; /* slots of idle jobs, among those that are held */
    struct trib_quota quota;
    bool draining;
    uint64_t ids;
    double now_v;  /* virtual time: the tag of who was admitted last */
    double hold_s; /* mean of all accounts, as hold_s of one */
    uint32_t n;
    uint32_t n_max;
    struct trib_jobs_entry *entries; /* [n_max + 1: who asks], in the order in which
                                      * they asked */
    uint32_t n_accounts;
    uint32_t n_accounts_max;
    struct trib_jobs_account *accounts;
    struct trib_jobs_place *places; /* [n_max + 1], for positions */
    bool *labelled; /* [n_max + 2], to find a label */
    /* The next job does not fit and lets nobody pass: agg/jobs/jobs_fair.c says why. */
    uint64_t gate_since_ns; /* 0: all may pass */
    uint64_t gate_open_ns;  /* all may pass until then */
    uint64_t gate_ns;       /* time for which the gate is shut next; 0: opts.gate_ns */
    /* The fields of one pass over the queue: */
    double waiting_weights; /* sum of the weights of users who wait */
};

/**
 * trib_jobs_slots_left - the number of slots that the limits still allow for a job that
 * holds nothing yet; its ranks take their part of the memory first. 0 also if there are
 * enough jobs already.
 */
uint32_t trib_jobs_slots_left(const struct trib_jobs_limits *limits,
                        const struct trib_jobs_limits *held,
                        const struct trib_job *job);

/** trib_jobs_in_use - what the jobs hold of the service, without the slots that are
 * lent. */
struct trib_jobs_limits trib_jobs_in_use(const struct trib_jobs *jobs);

/** trib_jobs_read_quotas - read the memory that jobs hold into the fields of that
 * name. */
void trib_jobs_read_quotas(struct trib_jobs *jobs);

/* --- agg/jobs/jobs_fair.c --- */

/** trib_jobs_order - give every queued job its tag; ties go by who asked first. */
void trib_jobs_order(struct trib_jobs *jobs, uint64_t now_ns);

/** trib_jobs_choose - the job to admit now; NULL: none. */
struct trib_jobs_entry *trib_jobs_choose(struct trib_jobs *jobs, uint64_t now_ns);

/** trib_jobs_charge - a job that held slots is gone: its user's account. */
void trib_jobs_charge(struct trib_jobs *jobs, uint64_t now_ns,
                      const struct trib_jobs_entry *entry);

/* --- agg/jobs/jobs_text.c --- */

/** trib_jobs_explain - append what a job lacks, and who holds it. */
void trib_jobs_explain(const struct trib_jobs *jobs, uint64_t now_ns,
                   const struct trib_jobs_entry *entry, char text[TRIB_JOB_TEXT_BYTES]);

/**
 * trib_jobs_reject - can a request never be admitted, whoever leaves? A sentence then.
 *
 * account   of the user; NULL: the name of the user is not valid
 */
bool trib_jobs_reject(const struct trib_jobs *jobs,
                     const struct trib_job_request *request,
                     const struct trib_jobs_account *account,
                     char text[TRIB_JOB_TEXT_BYTES]);

#endif
