/* SPDX-License-Identifier: BSD-3-Clause */
/* Admission: a request is admitted, queued or refused; queued jobs get slots or time
 * out; jobs end. */
#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "agg/jobs/jobs_table.h"
#include "base/error.h"
#include "base/text.h"

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
    jobs->accounts[e->account].job_weights += e->job.weight;
    e->job.slots = slots;
    trib_quota_add_mt(&jobs->accounts[e->account].quota, trib_job_fixed_bytes(&e->job));
    e->job.deadline_ns = 0;
    e->job.position = 0;
    e->job.since_ns = e->admitted_ns = now_ns;
    assert(trib_jobs_in_use(jobs).slots <= jobs->opts.service.slots);
    assert(jobs->held.jobs <= jobs->opts.service.jobs);
}

static void remove_entry(struct trib_jobs *jobs, uint64_t now_ns,
                         struct trib_jobs_entry *e)
{
    struct trib_jobs_limits *both[] = {&jobs->held, &jobs->accounts[e->account].held};
    bool queued = e->job.state == TRIB_JOB_QUEUED;

    trib_jobs_set_lent(jobs, e, false);
    if (e->job.state == TRIB_JOB_ADMITTED)
        jobs->accounts[e->account].job_weights -= e->job.weight;
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
static int compare_tags(const void *left, const void *right)
{
    const struct trib_jobs_tagged *a = left, *b = right;

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
            jobs->tagged[n++] = (struct trib_jobs_tagged){jobs->entries[i].tag, i};
    qsort(jobs->tagged, n, sizeof(*jobs->tagged), compare_tags);
    for (uint32_t i = 0; i < n; i++)
        jobs->entries[jobs->tagged[i].entry].job.position = i + 1;
}

/* Queue the job, or refuse it if it does not want to wait. */
static void put_off(struct trib_jobs *jobs, uint64_t now_ns, struct trib_jobs_entry *e,
                    struct trib_job_answer *out)
{
    bool waits = e->job.deadline_ns > now_ns;

    trib_jobs_positions(jobs, now_ns);
    *out = (struct trib_job_answer){.verdict = TRIB_JOB_QUEUE,
                                    .id = e->job.id,
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
                      const struct trib_job_request *request,
                      struct trib_job_answer *out)
{
    struct trib_jobs_account *account = trib_jobs_name_ok(request->user)
                                            ? trib_jobs_account_of(jobs, request->user)
                                            : NULL;

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

bool trib_jobs_remove(struct trib_jobs *jobs, uint64_t now_ns, uint64_t id)
{
    struct trib_jobs_entry *e = trib_jobs_find(jobs, id);

    if (!e)
        return false;
    remove_entry(jobs, now_ns, e);
    return true;
}

bool trib_jobs_end(struct trib_jobs *jobs, uint64_t now_ns, uint64_t id,
                   uint64_t deadline_ns)
{
    struct trib_jobs_entry *e = trib_jobs_find(jobs, id);

    if (!e)
        return false;
    switch (e->job.state) {
    case TRIB_JOB_QUEUED:
        remove_entry(jobs, now_ns, e);
        break;
    case TRIB_JOB_ADMITTED:
        e->job.state = TRIB_JOB_DRAINING;
        jobs->accounts[e->account].job_weights -= e->job.weight;
        trib_jobs_set_lent(jobs, e, false);
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

/* --- what would happen --- */

#define FOLLOW_NS 2000000000 /* the pauses of a rank that asks again, as a client has */

/* Return a copy of the table, to try changes on; NULL: out of memory. */
static struct trib_jobs *copy(const struct trib_jobs *jobs)
{
    struct trib_error err = {0};
    struct trib_jobs *c;

    if (trib_jobs_create(&jobs->opts, &err, &c) != TRIB_OK)
        return NULL;
    memcpy(c, jobs, offsetof(struct trib_jobs, quota));
    memcpy(c->entries, jobs->entries, jobs->n * sizeof(*jobs->entries));
    for (uint32_t i = 0; i < jobs->n_accounts; i++) {
        memcpy(&c->accounts[i], &jobs->accounts[i],
               offsetof(struct trib_jobs_account, quota));
        c->accounts[i].quota.above = &c->quota;
        atomic_store(&c->accounts[i].quota.held,
                     trib_quota_held_mt(&jobs->accounts[i].quota));
    }
    atomic_store(&c->quota.held, trib_quota_held_mt(&jobs->quota));
    return c;
}

/* Return true if a request at later_ns is admitted if job `id` ends now. */
static bool follows(const struct trib_jobs *jobs, uint64_t now_ns, uint64_t later_ns,
                    const struct trib_job_request *request, uint64_t id)
{
    struct trib_jobs *after = copy(jobs);
    struct trib_job_answer a = {0};

    if (!after)
        return false;
    trib_jobs_order(after, now_ns); /* reads the memory of plans */
    const struct trib_jobs_entry *gone = trib_jobs_find(after, id);
    struct trib_jobs_limits *both[] = {
        &after->opts.service, gone ? &after->accounts[gone->account].limits : NULL};
    for (int i = 0; gone && i < 2; i++) /* returned later, from the job's own quota */
        both[i]->bytes += both[i]->bytes ? gone->job.plan_bytes : 0;
    (void)trib_jobs_remove(after, now_ns, id);
    while (trib_jobs_next(after, now_ns, &a))
        ;
    while (trib_jobs_next(after, later_ns, &a))
        ;
    trib_jobs_submit(after, later_ns, request, &a);
    trib_jobs_destroy(after);
    return a.verdict == TRIB_JOB_ADMIT;
}

bool trib_jobs_follows(const struct trib_jobs *jobs, uint64_t now_ns,
                       const struct trib_job_request *request, uint64_t id)
{
    return follows(jobs, now_ns, now_ns, request, id) &&
           follows(jobs, now_ns, now_ns + FOLLOW_NS, request, id);
}
