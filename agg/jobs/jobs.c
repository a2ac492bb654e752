/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of jobs, and the accounts of users. */
#include "agg/jobs/jobs.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agg/jobs/jobs_table.h"
#include "base/error.h"

const char *trib_job_state_name(enum trib_job_state state)
{
    static const char *const names[] = {
        [TRIB_JOB_QUEUED] = "queued",
        [TRIB_JOB_ADMITTED] = "admitted",
        [TRIB_JOB_DRAINING] = "draining",
    };

    return names[state];
}

/* --- the table --- */

trib_status_t trib_jobs_create(const struct trib_jobs_opts *opts,
                               struct trib_error *err, struct trib_jobs **out)
{
    const struct trib_jobs_limits *all = &opts->service;

    *out = NULL;
    if (!all->slots || !all->jobs || !all->queued)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "invalid limits of the service: %" PRIu32 " slots, "
                         "%" PRIu32 " jobs, %" PRIu32 " queued jobs; each must be at "
                         "least 1",
                         all->slots, all->jobs, all->queued);
    if (all->jobs > TRIB_JOBS_MAX || all->queued > TRIB_JOBS_MAX - all->jobs)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "%" PRIu32 " jobs and %" PRIu32 " queued jobs are too many: "
                         "together at most %d",
                         all->jobs, all->queued, TRIB_JOBS_MAX);
    struct trib_jobs *jobs = calloc(1, sizeof(*jobs));
    if (!jobs)
        goto err_memory;
    jobs->opts = *opts;
    jobs->n_max = all->jobs + all->queued;
    jobs->quota.most = all->bytes;
    /* Named users, one user per job, and users of ended jobs whose memory is not freed
     * yet. */
    jobs->n_accounts_max = 2 * TRIB_JOBS_MAX + jobs->n_max;
    jobs->entries = calloc(jobs->n_max + 1, sizeof(*jobs->entries));
    jobs->accounts = calloc(jobs->n_accounts_max, sizeof(*jobs->accounts));
    jobs->tagged = calloc(jobs->n_max + 1, sizeof(*jobs->tagged));
    jobs->labelled = calloc(jobs->n_max + 2, sizeof(*jobs->labelled));
    if (!jobs->entries || !jobs->accounts || !jobs->tagged || !jobs->labelled)
        goto err_memory;
    *out = jobs;
    return TRIB_OK;

err_memory:
    trib_jobs_destroy(jobs);
    return trib_fail(err, TRIB_ERR_NO_MEMORY,
                     "out of memory for a table of %" PRIu32 " jobs",
                     all->jobs + all->queued);
}

void trib_jobs_destroy(struct trib_jobs *jobs)
{
    if (!jobs)
        return;
    free(jobs->entries);
    free(jobs->accounts);
    free(jobs->tagged);
    free(jobs->labelled);
    free(jobs);
}

struct trib_jobs_view trib_jobs_view(const struct trib_jobs *jobs)
{
    struct trib_jobs_view view = {
        .jobs = &jobs->entries[0].job,
        .stride = sizeof(jobs->entries[0]),
        .n = jobs->n,
        .limits = jobs->opts.service,
        .held = jobs->held,
        .lent = jobs->lent,
        .draining = jobs->draining,
    };

    view.held.bytes = trib_quota_held_mt(&jobs->quota);
    return view;
}

static int compare_id(const void *id, const void *entry)
{
    const uint64_t a = *(const uint64_t *)id;
    const uint64_t b = ((const struct trib_jobs_entry *)entry)->job.id;

    return (a > b) - (a < b);
}

/* Entries are in order of arrival, and so of their numbers. */
struct trib_jobs_entry *trib_jobs_find(const struct trib_jobs *jobs, uint64_t id)
{
    return jobs->n ? bsearch(&id, jobs->entries, jobs->n, sizeof(*jobs->entries),
                             compare_id)
                   : NULL;
}

/* --- accounts --- */

/* Return an account for a new user: an unused account, or else the account of the idle
 * user that has had the least service. */
static struct trib_jobs_account *free_account(struct trib_jobs *jobs)
{
    struct trib_jobs_account *idle = NULL;

    if (jobs->n_accounts < jobs->n_accounts_max)
        return &jobs->accounts[jobs->n_accounts++];
    for (uint32_t i = 0; i < jobs->n_accounts; i++) {
        struct trib_jobs_account *account = &jobs->accounts[i];
        if (!account->named && !account->held.jobs && !account->held.queued &&
            !trib_quota_held_mt(&account->quota) &&
            (!idle || account->served < idle->served))
            idle = account;
    }
    assert(idle); /* accounts outnumber named users and jobs */
    return idle;
}

struct trib_jobs_account *trib_jobs_account_of(struct trib_jobs *jobs, const char *name)
{
    for (uint32_t i = 0; i < jobs->n_accounts; i++)
        if (strcmp(jobs->accounts[i].name, name) == 0)
            return &jobs->accounts[i];
    struct trib_jobs_account *account = free_account(jobs);
    *account = (struct trib_jobs_account){
        .weight = 1,
        .limits = jobs->opts.user,
        .quota = {.above = &jobs->quota, .most = jobs->opts.user.bytes}};
    memcpy(account->name, name, strlen(name) + 1);
    return account;
}

void trib_jobs_limit(struct trib_jobs *jobs, const struct trib_jobs_limits *user,
                     const struct trib_jobs_limits *job)
{
    jobs->opts.user = *user;
    jobs->opts.job = *job;
    for (uint32_t i = 0; i < jobs->n_accounts; i++) {
        jobs->accounts[i].named = false;
        jobs->accounts[i].weight = 1;
        jobs->accounts[i].limits = *user;
        atomic_store(&jobs->accounts[i].quota.most, user->bytes);
    }
}

trib_status_t trib_jobs_user(struct trib_jobs *jobs, const char *name, uint32_t weight,
                             const struct trib_jobs_limits *limits,
                             struct trib_error *err)
{
    uint32_t named = 0;

    if (!trib_jobs_name_ok(name) || !weight || weight > TRIB_JOB_WEIGHT_MAX)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "user \"%.*s\" has weight %" PRIu32
                         ": a name is 1 to %d printable characters, a weight 1 to %d",
                         TRIB_JOB_NAME_BYTES, name, weight, TRIB_JOB_NAME_BYTES - 1,
                         TRIB_JOB_WEIGHT_MAX);
    for (uint32_t i = 0; i < jobs->n_accounts; i++)
        named += jobs->accounts[i].named && strcmp(jobs->accounts[i].name, name) != 0;
    if (named >= TRIB_JOBS_MAX)
        return trib_fail(err, TRIB_ERR_OVERFLOW,
                         "cannot add user %s: at most %d users can be named", name,
                         TRIB_JOBS_MAX);
    struct trib_jobs_account *account = trib_jobs_account_of(jobs, name);
    account->named = true;
    account->weight = weight;
    account->limits = limits ? *limits : jobs->opts.user;
    atomic_store(&account->quota.most, account->limits.bytes);
    return TRIB_OK;
}

void trib_jobs_set_lent(struct trib_jobs *jobs, struct trib_jobs_entry *e, bool idle)
{
    idle &= e->job.state == TRIB_JOB_ADMITTED;
    if (idle && !e->job.lends)
        jobs->lent += e->job.slots;
    else if (!idle && e->job.lends)
        jobs->lent -= e->job.slots;
    e->job.lends = idle;
}

void trib_jobs_quota(struct trib_jobs *jobs, uint64_t id, struct trib_quota *out)
{
    struct trib_jobs_entry *e = trib_jobs_find(jobs, id);

    assert(e && e->job.state != TRIB_JOB_QUEUED);
    out->above = &jobs->accounts[e->account].quota;
    atomic_store(&out->held, trib_job_fixed_bytes(&e->job));
    atomic_store(&out->most, jobs->opts.job.bytes);
    e->quota = out;
}

void trib_jobs_lend(struct trib_jobs *jobs, uint64_t id, bool idle)
{
    struct trib_jobs_entry *e = trib_jobs_find(jobs, id);

    if (e)
        trib_jobs_set_lent(jobs, e, idle);
}

uint64_t trib_jobs_wake_ns(const struct trib_jobs *jobs)
{
    uint64_t wake_ns = UINT64_MAX;

    for (uint32_t i = 0; i < jobs->n; i++) {
        const struct trib_job *job = &jobs->entries[i].job;
        if (job->state != TRIB_JOB_ADMITTED && job->deadline_ns < wake_ns)
            wake_ns = job->deadline_ns;
    }
    return wake_ns == UINT64_MAX ? 0 : wake_ns;
}

void trib_jobs_drain(struct trib_jobs *jobs, bool drain)
{
    jobs->draining = drain;
}

uint32_t trib_jobs_weight(const struct trib_jobs *jobs, uint64_t id)
{
    const struct trib_jobs_entry *e = trib_jobs_find(jobs, id);

    if (!e || e->job.state != TRIB_JOB_ADMITTED)
        return 0;
    const struct trib_jobs_account *account = &jobs->accounts[e->account];
    assert(account->job_weights >= e->job.weight);
    /* In units of 1/1024, so that a small weight among many is not rounded to 0. */
    const uint64_t weight =
        (uint64_t)account->weight * e->job.weight * 1024 / account->job_weights;
    return weight ? (uint32_t)weight : 1;
}
