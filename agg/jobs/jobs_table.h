/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of agg/jobs*.c share; nobody else includes it.
 */
#ifndef AGG_JOBS_JOBS_TABLE_H
#define AGG_JOBS_JOBS_TABLE_H

#include "agg/jobs/jobs.h"
#include "base/quota.h"

/* One user. Accounts are not moved; one without jobs may be given to another user. */
struct trib_jobs_account {
    char name[TRIB_JOB_NAME_BYTES];
    bool named; /* by trib_jobs_user: kept */
    uint32_t weight;
    struct trib_jobs_limits limits;
    struct trib_jobs_limits held; /* bytes: as of trib_jobs_read_ledgers */
    struct trib_ledger ledger;
    double served; /* by jobs that ended: share of the service × seconds / weight */
    double hold_s; /* how long its jobs hold what they are given, on average */
    bool waiting;  /* has a queued job, and its limits allow the first of them */
    /* Of one look at the queue: */
    bool seen;    /* its first queued job was met */
    double tag;   /* where its next queued job stands */
};

struct trib_jobs_entry {
    struct trib_job job; /* first: a view strides over entries */
    uint32_t account;
    struct trib_ledger *ledger; /* the caller's; NULL: it has none yet */
    uint64_t admitted_ns;
    uint64_t blocked_ns; /* since when it is next, or was, and does not fit; 0: it was
                          * not */
    /* Of one look at the queue: */
    double tag; /* its place in the order of all */
    bool able;  /* it is the first of its user's, whose limits allow it */
};

/* Of a queued job among all. */
struct trib_jobs_place {
    double tag;
    uint32_t entry;
};

struct trib_jobs {
    struct trib_jobs_opts opts;
    struct trib_jobs_limits held; /* bytes: as of trib_jobs_read_ledgers */
    uint32_t lent; /* slots of idle jobs, among those that are held */
    struct trib_ledger ledger;
    bool draining;
    uint64_t ids;
    double now_v;  /* virtual time: the tag of who was admitted last */
    double hold_s; /* as of an account, of all */
    uint32_t n;
    uint32_t n_max;
    struct trib_jobs_entry *entries; /* [n_max + 1: who asks], in the order in which
                                      * they asked */
    uint32_t n_accounts;
    uint32_t n_accounts_max;
    struct trib_jobs_account *accounts;
    struct trib_jobs_place *places; /* [n_max + 1], for positions */
    /* The next job does not fit and lets nobody pass: agg/jobs/jobs_fair.c says why. */
    uint64_t gate_since_ns; /* 0: all may pass */
    uint64_t gate_open_ns;  /* all may pass until then */
    uint64_t gate_ns;       /* how long nobody may the next time; 0: opts.gate_ns */
    /* Of one look at the queue: */
    double waiting_weights; /* of users who wait */
};

/**
 * trib_jobs_room - how many more slots limits allow, of the size of a job that holds
 * nothing yet, whose ranks take their part of the memory first; 0 also where jobs are
 * full.
 */
uint32_t trib_jobs_room(const struct trib_jobs_limits *limits,
                        const struct trib_jobs_limits *held,
                        const struct trib_job *job);

/** trib_jobs_taken - what is held of the service, without the slots that are lent. */
struct trib_jobs_limits trib_jobs_taken(const struct trib_jobs *jobs);

/** trib_jobs_read_ledgers - what is held of memory, into the fields of that name. */
void trib_jobs_read_ledgers(struct trib_jobs *jobs);

/* --- agg/jobs/jobs_fair.c --- */

/** trib_jobs_order - give every queued job its tag; ties go by who asked first. */
void trib_jobs_order(struct trib_jobs *jobs, uint64_t now_ns);

/** trib_jobs_choose - who is admitted now; NULL: nobody. */
struct trib_jobs_entry *trib_jobs_choose(struct trib_jobs *jobs, uint64_t now_ns);

/** trib_jobs_charge - a job that held slots is gone: its user's account. */
void trib_jobs_charge(struct trib_jobs *jobs, uint64_t now_ns,
                      const struct trib_jobs_entry *entry);

/* --- agg/jobs/jobs_text.c --- */

/** trib_jobs_why - append what a job lacks, and who holds it. */
void trib_jobs_why(const struct trib_jobs *jobs, uint64_t now_ns,
                   const struct trib_jobs_entry *entry, char text[TRIB_JOB_TEXT_BYTES]);

/**
 * trib_jobs_never - can a request never be admitted, whoever leaves? A sentence then.
 *
 * account   of the user; NULL: the name of the user is not valid
 */
bool trib_jobs_never(const struct trib_jobs *jobs,
                     const struct trib_job_request *request,
                     const struct trib_jobs_account *account,
                     char text[TRIB_JOB_TEXT_BYTES]);

#endif
