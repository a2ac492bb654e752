/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/jobs/jobs.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agg/jobs/jobs_table.h"
#include "base/error.h"
#include "base/text.h"

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
    jobs->places = calloc(jobs->n_max + 1, sizeof(*jobs->places));
    jobs->labelled = calloc(jobs->n_max + 2, sizeof(*jobs->labelled));
    if (!jobs->entries || !jobs->accounts || !jobs->places || !jobs->labelled)
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
    free(jobs->places);
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

static struct trib_jobs_entry *find(const struct trib_jobs *jobs, uint64_t id)
{
    for (uint32_t i = 0; i < jobs->n; i++)
        if (jobs->entries[i].job.id == id)
            return &jobs->entries[i];
    return NULL;
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

static struct trib_jobs_account *account_of(struct trib_jobs *jobs, const char *name)
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
    struct trib_jobs_account *account = account_of(jobs, name);
    account->named = true;
    account->weight = weight;
    account->limits = limits ? *limits : jobs->opts.user;
    atomic_store(&account->quota.most, account->limits.bytes);
    return TRIB_OK;
}

/* --- slots held --- */

static void hold(struct trib_jobs *jobs, struct trib_jobs_entry *e, uint64_t now_ns)
{
    const uint32_t slots = e->job.slots_wanted;
    struct trib_jobs_limits *both[] = {&jobs->held, &jobs->accounts[e->account].held};

    for (int i = 0; i < 2; i++) {
        both[i]->queued--;
        both[i]->jobs++;
        both[i]->slots += slots;
    }
    e->job.state = TRIB_JOB_ADMITTED;
    e->job.slots = slots;
    trib_quota_add_mt(&jobs->accounts[e->account].quota,
                       trib_job_fixed_bytes(&e->job));
    e->job.deadline_ns = 0;
    e->job.position = 0;
    e->job.since_ns = e->admitted_ns = now_ns;
    assert(trib_jobs_in_use(jobs).slots <= jobs->opts.service.slots);
    assert(jobs->held.jobs <= jobs->opts.service.jobs);
}

static void lend(struct trib_jobs *jobs, struct trib_jobs_entry *e, bool idle)
{
    idle &= e->job.state == TRIB_JOB_ADMITTED;
    if (idle && !e->job.lends)
        jobs->lent += e->job.slots;
    else if (!idle && e->job.lends)
        jobs->lent -= e->job.slots;
    e->job.lends = idle;
}

static void remove_entry(struct trib_jobs *jobs, uint64_t now_ns,
                         struct trib_jobs_entry *e)
{
    struct trib_jobs_limits *both[] = {&jobs->held, &jobs->accounts[e->account].held};
    bool queued = e->job.state == TRIB_JOB_QUEUED;

    lend(jobs, e, false);
    if (!queued)
        trib_jobs_charge(jobs, now_ns, e);
    for (int i = 0; i < 2; i++) {
        assert(queued ? both[i]->queued : both[i]->jobs);
        assert(both[i]->slots >= e->job.slots);
        both[i]->queued -= queued;
        both[i]->jobs -= !queued;
        both[i]->slots -= e->job.slots;
    }
    trib_quota_give_mt(&jobs->accounts[e->account].quota,
                        trib_job_fixed_bytes(&e->job));
    jobs->n--;
    memmove(e, e + 1, (size_t)(&jobs->entries[jobs->n] - e) * sizeof(*e));
}

/* --- requests --- */

static void refuse(struct trib_job_answer *out, uint64_t id, enum trib_job_cause cause)
{
    out->verdict = TRIB_JOB_REFUSE;
    out->cause = cause;
    out->id = id;
    out->slots = out->position = 0;
    out->deadline_ns = 0;
}

static bool is_draining(const struct trib_jobs *jobs, char *text)
{
    if (jobs->draining)
        trib_text_append(
            text, TRIB_JOB_TEXT_BYTES,
            "the service is draining and accepts no new jobs: use another");
    return jobs->draining;
}

/* Return true if no further job may wait. The new job is not in the queue yet. */
static bool queue_is_full(const struct trib_jobs *jobs,
                          const struct trib_jobs_account *account, char *text)
{
    const struct trib_jobs_limits *own = &account->limits;

    if (own->queued && account->held.queued >= own->queued) {
        trib_text_append(text, TRIB_JOB_TEXT_BYTES,
                         "the queue of user %s is full, with %" PRIu32 " of "
                         "%" PRIu32 " jobs: retry later",
                         account->name, account->held.queued, own->queued);
        return true;
    }
    if (jobs->held.queued < jobs->opts.service.queued)
        return false;
    trib_text_append(text, TRIB_JOB_TEXT_BYTES,
                     "the queue is full, with %" PRIu32 " of %" PRIu32 " jobs: retry "
                     "later, or use another service",
                     jobs->held.queued, jobs->opts.service.queued);
    return true;
}

static uint32_t free_label(const struct trib_jobs *jobs)
{
    uint32_t label = 1;

    memset(jobs->labelled, 0, (jobs->n_max + 2) * sizeof(*jobs->labelled));
    for (uint32_t i = 0; i < jobs->n; i++)
        jobs->labelled[jobs->entries[i].job.label] = true;
    while (jobs->labelled[label])
        label++;
    assert(label <= jobs->n + 1);
    return label;
}

static struct trib_jobs_entry *append_entry(struct trib_jobs *jobs, uint64_t now_ns,
                                            const struct trib_job_request *r,
                                            struct trib_jobs_account *account)
{
    const uint32_t label = free_label(jobs);
    struct trib_jobs_entry *e = &jobs->entries[jobs->n++];

    *e = (struct trib_jobs_entry){.account = (uint32_t)(account - jobs->accounts),
                                  .job = {
                                      .id = ++jobs->ids,
                                      .label = label,
                                      .state = TRIB_JOB_QUEUED,
                                      .weight = r->weight,
                                      .ranks = r->ranks,
                                      .slots_wanted = r->slots,
                                      .slot_bytes = r->slot_bytes,
                                      .ranks_bytes = r->ranks * r->rank_bytes,
                                      .asked_ns = now_ns,
                                      .since_ns = now_ns,
                                      .deadline_ns = r->wait_ns < UINT64_MAX - now_ns
                                                         ? now_ns + r->wait_ns
                                                         : UINT64_MAX,
                                  }};
    memcpy(e->job.name, r->name, strlen(r->name) + 1);
    memcpy(e->job.user, account->name, sizeof(account->name));
    jobs->held.queued++;
    account->held.queued++;
    return e;
}

static void admit(struct trib_jobs *jobs, uint64_t now_ns, struct trib_jobs_entry *e,
                  struct trib_job_answer *out)
{
    hold(jobs, e, now_ns);
    *out = (struct trib_job_answer){
        .verdict = TRIB_JOB_ADMIT, .id = e->job.id, .slots = e->job.slots};
    trib_text_append(out->text, sizeof(out->text),
                     "job %s of user %s has %" PRIu32 " slot%s", e->job.name,
                     e->job.user, e->job.slots, e->job.slots == 1 ? "" : "s");
}

/* Compare by tag; break ties by order of arrival. */
static int compare_places(const void *left, const void *right)
{
    const struct trib_jobs_place *a = left, *b = right;

    if (a->tag < b->tag || a->tag > b->tag)
        return a->tag < b->tag ? -1 : 1;
    return a->entry < b->entry ? -1 : 1;
}

void trib_jobs_positions(struct trib_jobs *jobs, uint64_t now_ns)
{
    uint32_t n = 0;

    trib_jobs_order(jobs, now_ns);
    for (uint32_t i = 0; i < jobs->n; i++)
        if (jobs->entries[i].job.state == TRIB_JOB_QUEUED)
            jobs->places[n++] = (struct trib_jobs_place){jobs->entries[i].tag, i};
    qsort(jobs->places, n, sizeof(*jobs->places), compare_places);
    for (uint32_t i = 0; i < n; i++)
        jobs->entries[jobs->places[i].entry].job.position = i + 1;
}

/* Queue the job, or refuse it if it does not want to wait. */
static void put_off(struct trib_jobs *jobs, uint64_t now_ns, struct trib_jobs_entry *e,
                    struct trib_job_answer *out)
{
    bool waits = e->job.deadline_ns > now_ns;

    trib_jobs_positions(jobs, now_ns);
    *out = (struct trib_job_answer){.verdict = TRIB_JOB_QUEUE, .id = e->job.id,
                                    .position = e->job.position,
                                    .deadline_ns = e->job.deadline_ns};
    trib_text_append(out->text, sizeof(out->text), "job %s of user %s ", e->job.name,
                     e->job.user);
    if (waits)
        trib_text_append(out->text, sizeof(out->text),
                         "waits at position %" PRIu32 ": ", e->job.position);
    else
        trib_text_append(out->text, sizeof(out->text), "cannot get slots now: ");
    trib_jobs_explain(jobs, now_ns, e, out->text);
    if (waits)
        return;
    refuse(out, e->job.id, TRIB_JOB_BY_WAIT);
    remove_entry(jobs, now_ns, e);
}

void trib_jobs_submit(struct trib_jobs *jobs, uint64_t now_ns,
                   const struct trib_job_request *request, struct trib_job_answer *out)
{
    struct trib_jobs_account *account =
        trib_jobs_name_ok(request->user) ? account_of(jobs, request->user) : NULL;

    char full[TRIB_JOB_TEXT_BYTES] = "";

    assert(now_ns);
    *out = (struct trib_job_answer){0};
    if (trib_jobs_reject(jobs, request, account, out->text)) {
        refuse(out, 0, TRIB_JOB_BY_LIMIT);
        return;
    }
    if (is_draining(jobs, out->text)) {
        refuse(out, 0, TRIB_JOB_BY_DRAIN);
        return;
    }
    const bool may_wait = !request->wait_ns || !queue_is_full(jobs, account, full);
    struct trib_jobs_entry *e = append_entry(jobs, now_ns, request, account);
    if (trib_jobs_choose(jobs, now_ns) == e) {
        admit(jobs, now_ns, e, out);
    } else if (may_wait) {
        put_off(jobs, now_ns, e, out);
    } else {
        remove_entry(jobs, now_ns, e);
        memcpy(out->text, full, sizeof(full));
        refuse(out, 0, TRIB_JOB_BY_QUEUE);
    }
}

/* --- changes over time --- */

/* Remove a draining job past its deadline, or a queued job that timed out or is refused
 * because the service drains. */
static bool next_end(struct trib_jobs *jobs, uint64_t now_ns,
                     struct trib_job_answer *out)
{
    for (uint32_t i = 0; i < jobs->n; i++) {
        struct trib_jobs_entry *e = &jobs->entries[i];
        bool queued = e->job.state == TRIB_JOB_QUEUED;

        if (e->job.state == TRIB_JOB_ADMITTED ||
            (now_ns < e->job.deadline_ns && !(queued && jobs->draining)))
            continue;
        *out = (struct trib_job_answer){.verdict = TRIB_JOB_FREED, .id = e->job.id};
        trib_text_append(out->text, sizeof(out->text), "job %s of user %s ",
                         e->job.name, e->job.user);
        if (queued) {
            refuse(out, e->job.id,
                   jobs->draining ? TRIB_JOB_BY_DRAIN : TRIB_JOB_BY_WAIT);
            trib_text_append(out->text, sizeof(out->text),
                             jobs->draining
                                 ? "is refused because the service is draining"
                                 : "has reached its wait limit: ");
            if (!jobs->draining)
                trib_jobs_explain(jobs, now_ns, e, out->text);
        } else {
            trib_text_append(out->text, sizeof(out->text),
                             "did not release its %" PRIu32 " slots in time: they are "
                             "free again",
                             e->job.slots);
        }
        remove_entry(jobs, now_ns, e);
        return true;
    }
    return false;
}

bool trib_jobs_next(struct trib_jobs *jobs, uint64_t now_ns,
                    struct trib_job_answer *out)
{
    assert(now_ns);
    if (next_end(jobs, now_ns, out))
        return true;
    struct trib_jobs_entry *e = trib_jobs_choose(jobs, now_ns);
    if (!e)
        return false;
    admit(jobs, now_ns, e, out);
    return true;
}

void trib_jobs_quota(struct trib_jobs *jobs, uint64_t id, struct trib_quota *out)
{
    struct trib_jobs_entry *e = find(jobs, id);

    assert(e && e->job.state != TRIB_JOB_QUEUED);
    out->above = &jobs->accounts[e->account].quota;
    atomic_store(&out->held, trib_job_fixed_bytes(&e->job));
    atomic_store(&out->most, jobs->opts.job.bytes);
    e->quota = out;
}

void trib_jobs_lend(struct trib_jobs *jobs, uint64_t id, bool idle)
{
    struct trib_jobs_entry *e = find(jobs, id);

    if (e)
        lend(jobs, e, idle);
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

bool trib_jobs_remove(struct trib_jobs *jobs, uint64_t now_ns, uint64_t id)
{
    struct trib_jobs_entry *e = find(jobs, id);

    if (!e)
        return false;
    remove_entry(jobs, now_ns, e);
    return true;
}

bool trib_jobs_end(struct trib_jobs *jobs, uint64_t now_ns, uint64_t id,
                   uint64_t deadline_ns)
{
    struct trib_jobs_entry *e = find(jobs, id);

    if (!e)
        return false;
    switch (e->job.state) {
    case TRIB_JOB_QUEUED:
        remove_entry(jobs, now_ns, e);
        break;
    case TRIB_JOB_ADMITTED:
        e->job.state = TRIB_JOB_DRAINING;
        lend(jobs, e, false);
        e->job.since_ns = now_ns;
        e->job.deadline_ns = deadline_ns;
        break;
    case TRIB_JOB_DRAINING:
        if (deadline_ns < e->job.deadline_ns)
            e->job.deadline_ns = deadline_ns;
        break;
    }
    return true;
}

void trib_jobs_drain(struct trib_jobs *jobs, bool drain)
{
    jobs->draining = drain;
}

uint32_t trib_jobs_weight(const struct trib_jobs *jobs, uint64_t id)
{
    const struct trib_jobs_entry *e = find(jobs, id);
    uint64_t sum = 0;

    if (!e || e->job.state != TRIB_JOB_ADMITTED)
        return 0;
    for (uint32_t i = 0; i < jobs->n; i++)
        if (jobs->entries[i].account == e->account &&
            jobs->entries[i].job.state == TRIB_JOB_ADMITTED)
            sum += jobs->entries[i].job.weight;
    assert(sum);
    /* In units of 1/1024, so that a small weight among many is not rounded to 0. */
    uint64_t weight =
        (uint64_t)jobs->accounts[e->account].weight * e->job.weight * 1024 / sum;
    return weight ? (uint32_t)weight : 1;
}
