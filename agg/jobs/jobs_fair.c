/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Choice of the next job.
 *
 * Users are served by start-time fair queuing. A user's account sums the charges of its
 * jobs:
 *
 *     charge of a job  =  dominant share × seconds held / weight of the user
 *     dominant share   =  max(slots / all slots, bytes / all bytes)
 *
 * The tag of a queued job is its user's account plus the expected charges of the user's
 * earlier queued jobs; the smallest tag is next. On admission a job is charged for the
 * mean holding time of its user's jobs; otherwise one user would get everything that
 * becomes free at one moment. The actual charge replaces the estimate once known.
 * Virtual time is the tag of the job admitted last. A user that starts to wait starts
 * at virtual time or later, so idling saves nothing up.
 *
 * Why not deficit round robin: it needs the size of a job in advance, which is slots ×
 * an unknown time. It also defines no total order of jobs, so it could report no queue
 * position. The dominant share comes from DRF (Ghodsi et al., NSDI 2011): a job with
 * few slots and most of the memory pays for memory.
 *
 * Why no job starves: the tag of a waiting job grows only if running jobs of its own
 * user exceed their estimates. The tags of served users grow without bound, and users
 * that start to wait start at virtual time, which grows with the smallest tag. So every
 * job becomes next. If the next job does not fit, later jobs may pass it for
 * backfill_ns (backfilling). From then on no job is admitted before it, so it is
 * admitted once enough running jobs have ended. A job blocked by its own user's limits
 * is not next; only that user can change this.
 *
 * A running job may last for weeks, and free slots must not stay unused that long. So
 * the gate that holds back all other jobs opens after gate_ns, for as long as it was
 * shut; then it shuts for twice as long, and so on. If jobs last at most D, one shut
 * interval exceeds D. The blocked job is admitted in it, after a wait of about 4 D.
 * Other jobs keep half of the time, even if one user submits oversized jobs again and
 * again: whatever shuts the gate, it is open for as long afterwards.
 *
 * A job that passes the next job may lead it by at most lead(). Small jobs always fit
 * and would otherwise take the whole wait of a large one. In simulation
 * (tests/agg/jobs/test_jobs_fair.c) the bound raises Jain's index from 0.64 to 0.99 for
 * jobs of any size.
 */
#include <assert.h>
#include <math.h>

#include "agg/jobs/jobs_table.h"

#define HOLD_LEAST_S 1e-3 /* makes tags of queued jobs differ */
#define HOLD_MEMORY 0.1 /* weight of the newest value in a mean */

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (double)(to_ns - from_ns) * 1e-9 : 0;
}

static double dominant_share(const struct trib_jobs *jobs, const struct trib_job *job,
                             uint32_t slots)
{
    const struct trib_jobs_limits *all = &jobs->opts.service;
    double of_slots = (double)slots / all->slots;
    const double bytes =
        (double)slots * (double)job->slot_bytes + (double)job->ranks_bytes;
    double of_bytes = all->bytes ? bytes / (double)all->bytes : 0;

    return of_slots > of_bytes ? of_slots : of_bytes;
}

static double expected_s(const struct trib_jobs *jobs,
                         const struct trib_jobs_account *account)
{
    double hold_s = account->hold_s > 0 ? account->hold_s : jobs->hold_s;

    return hold_s > HOLD_LEAST_S ? hold_s : HOLD_LEAST_S;
}

/* Set the tag of each account from its ended and running jobs. */
static void charge_accounts(struct trib_jobs *jobs, uint64_t now_ns)
{
    for (uint32_t i = 0; i < jobs->n_accounts; i++) {
        struct trib_jobs_account *account = &jobs->accounts[i];
        account->tag = account->served;
        account->seen = false;
    }
    for (uint32_t i = 0; i < jobs->n; i++) {
        const struct trib_jobs_entry *e = &jobs->entries[i];
        struct trib_jobs_account *account = &jobs->accounts[e->account];

        if (e->job.state == TRIB_JOB_QUEUED)
            continue;
        double share = dominant_share(jobs, &e->job, e->job.slots);
        double held_s = seconds(e->admitted_ns, now_ns);
        /* A draining job is about to end: charge no estimate. */
        double least_s =
            e->job.state == TRIB_JOB_ADMITTED ? expected_s(jobs, account) : 0;
        account->tag += share * (held_s > least_s ? held_s : least_s) / account->weight;
    }
}

/* Return true if a user's first queued job may be next. A user that starts to wait
 * starts at virtual time. */
static bool visit_account(const struct trib_jobs *jobs,
                          struct trib_jobs_account *account, const struct trib_job *job)
{
    bool able = trib_jobs_slots_left(&account->limits, &account->held, job) >=
                job->slots_wanted;

    if (able && !account->waiting && account->tag < jobs->now_v) {
        account->served += jobs->now_v - account->tag;
        account->tag = jobs->now_v;
    }
    account->waiting = able;
    account->seen = true;
    return able;
}

static void sum_weights(struct trib_jobs *jobs)
{
    jobs->waiting_weights = 0;
    for (uint32_t i = 0; i < jobs->n_accounts; i++) {
        struct trib_jobs_account *account = &jobs->accounts[i];

        account->waiting &= account->seen;
        jobs->waiting_weights += account->waiting ? account->weight : 0;
    }
}

/* Copy memory use from the quotas into the `bytes` fields. */
static void read_quotas(struct trib_jobs *jobs)
{
    jobs->held.bytes = trib_quota_held_mt(&jobs->quota);
    for (uint32_t i = 0; i < jobs->n_accounts; i++)
        jobs->accounts[i].held.bytes = trib_quota_held_mt(&jobs->accounts[i].quota);
    for (uint32_t i = 0; i < jobs->n; i++) {
        struct trib_jobs_entry *e = &jobs->entries[i];
        const uint64_t all = e->quota ? trib_quota_held_mt(e->quota) : 0;
        const uint64_t fixed = trib_job_fixed_bytes(&e->job);
        e->job.plan_bytes = all > fixed ? all - fixed : 0;
    }
}

void trib_jobs_order(struct trib_jobs *jobs, uint64_t now_ns)
{
    read_quotas(jobs);
    charge_accounts(jobs, now_ns);
    for (uint32_t i = 0; i < jobs->n; i++) {
        struct trib_jobs_entry *e = &jobs->entries[i];
        struct trib_jobs_account *account = &jobs->accounts[e->account];

        if (e->job.state != TRIB_JOB_QUEUED)
            continue;
        e->able = !account->seen && visit_account(jobs, account, &e->job);
        e->tag = account->tag;
        account->tag += dominant_share(jobs, &e->job, e->job.slots_wanted) *
                        expected_s(jobs, account) / account->weight;
    }
    sum_weights(jobs);
}

/* Return true if enough slots are free for the job. */
static bool fits(const struct trib_jobs *jobs, const struct trib_jobs_entry *e)
{
    const struct trib_job *job = &e->job;
    const struct trib_jobs_account *account = &jobs->accounts[e->account];
    const struct trib_jobs_limits taken = trib_jobs_in_use(jobs);

    return trib_jobs_slots_left(&jobs->opts.service, &taken, job) >=
               job->slots_wanted &&
           trib_jobs_slots_left(&account->limits, &account->held, job) >=
               job->slots_wanted;
}

/* Return the job that has been next, and blocked, longest and beyond backfill_ns. */
static struct trib_jobs_entry *longest_blocked(struct trib_jobs *jobs, uint64_t now_ns)
{
    struct trib_jobs_entry *keeper = NULL;

    for (uint32_t i = 0; i < jobs->n; i++) {
        struct trib_jobs_entry *e = &jobs->entries[i];

        if (e->job.state != TRIB_JOB_QUEUED || !e->blocked_ns)
            continue;
        if (!e->able)
            e->blocked_ns = 0; /* now blocked by its own user's limits */
        else if (now_ns - e->blocked_ns >= jobs->opts.backfill_ns &&
                 (!keeper || e->blocked_ns < keeper->blocked_ns))
            keeper = e;
    }
    return keeper;
}

/* Open the gate for as long as it was shut. */
static void open_gate(struct trib_jobs *jobs, uint64_t now_ns)
{
    if (jobs->gate_since_ns)
        jobs->gate_open_ns = now_ns + (now_ns - jobs->gate_since_ns);
    jobs->gate_since_ns = 0;
}

/* Return the job that must be admitted before all others; NULL: all may pass. */
static struct trib_jobs_entry *gate_keeper(struct trib_jobs *jobs, uint64_t now_ns)
{
    struct trib_jobs_entry *keeper = longest_blocked(jobs, now_ns);
    const uint64_t shut_ns = jobs->gate_ns ? jobs->gate_ns : jobs->opts.gate_ns;

    if (!jobs->opts.gate_ns)
        return keeper;
    if (!keeper)
        open_gate(jobs, now_ns); /* removed, or no longer able */
    if (now_ns < jobs->gate_open_ns)
        return NULL;
    if (!keeper) {
        jobs->gate_ns = 0;
        return NULL;
    }
    if (!jobs->gate_since_ns)
        jobs->gate_since_ns = now_ns;
    if (fits(jobs, keeper)) { /* the blocked job fits: reset the gate */
        jobs->gate_since_ns = jobs->gate_ns = 0;
        return keeper;
    }
    if (now_ns - jobs->gate_since_ns < shut_ns)
        return keeper;
    open_gate(jobs, now_ns);
    jobs->gate_ns = shut_ns < UINT64_MAX / 4 ? 2 * shut_ns : shut_ns;
    return NULL;
}

/* Return the lead that other jobs may have over the next one: backfill_ns divided by
 * the weights of the waiting users. */
static double lead(const struct trib_jobs *jobs)
{
    return (double)jobs->opts.backfill_ns * 1e-9 / jobs->waiting_weights;
}

/* Return the job with the smallest tag up to `most`; with `fit`, only among jobs that
 * fit. */
static struct trib_jobs_entry *smallest(struct trib_jobs *jobs, double most, bool fit)
{
    struct trib_jobs_entry *best = NULL;

    for (uint32_t i = 0; i < jobs->n; i++) {
        struct trib_jobs_entry *e = &jobs->entries[i];

        if (e->job.state == TRIB_JOB_QUEUED && e->able && e->tag <= most &&
            (!best || e->tag < best->tag) && (!fit || fits(jobs, e)))
            best = e;
    }
    return best;
}

struct trib_jobs_entry *trib_jobs_choose(struct trib_jobs *jobs, uint64_t now_ns)
{
    trib_jobs_order(jobs, now_ns);
    struct trib_jobs_entry *next = gate_keeper(jobs, now_ns);

    if (!next) {
        next = smallest(jobs, HUGE_VAL, false);
        if (next && !fits(jobs, next)) {
            if (!next->blocked_ns)
                next->blocked_ns = now_ns;
            if (now_ns < jobs->gate_open_ns)
                next = smallest(jobs, HUGE_VAL, true);
            else if (now_ns - next->blocked_ns < jobs->opts.backfill_ns)
                next = smallest(jobs, next->tag + lead(jobs), true);
        }
    }
    if (!next || !fits(jobs, next))
        return NULL;
    if (next->tag > jobs->now_v)
        jobs->now_v = next->tag;
    return next;
}

static void learn(double *mean_s, double held_s)
{
    *mean_s = *mean_s > 0 ? *mean_s + HOLD_MEMORY * (held_s - *mean_s) : held_s;
}

void trib_jobs_charge(struct trib_jobs *jobs, uint64_t now_ns,
                      const struct trib_jobs_entry *entry)
{
    struct trib_jobs_account *account = &jobs->accounts[entry->account];
    double held_s = seconds(entry->admitted_ns, now_ns);

    assert(entry->job.state != TRIB_JOB_QUEUED && entry->job.slots);
    account->served +=
        dominant_share(jobs, &entry->job, entry->job.slots) * held_s / account->weight;
    learn(&account->hold_s, held_s);
    learn(&jobs->hold_s, held_s);
}
