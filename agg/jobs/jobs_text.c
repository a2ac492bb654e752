/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages about jobs: which resource a job lacks, and who holds it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agg/jobs/jobs_table.h"
#include "base/text.h"

#define HOLDERS_NAMED 3
#define JOB_BYTES_MAX ((uint64_t)1 << 50) /* × TRIB_JOBS_MAX fits 64 bits */

struct age {
    uint64_t n;
    const char *unit;
};

static struct age age_of(uint64_t since_ns, uint64_t now_ns)
{
    static const struct {
        uint64_t seconds;
        const char *unit;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}};
    uint64_t s = now_ns > since_ns ? (now_ns - since_ns) / 1000000000u : 0;

    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (s >= 2 * units[i].seconds)
            return (struct age){s / units[i].seconds, units[i].unit};
    return (struct age){s, "s"};
}

/* The resource that is short. */
enum lack { LACK_NOTHING, LACK_JOBS, LACK_SLOTS, LACK_BYTES };

static enum lack lack_of(const struct trib_jobs_limits *limits,
                         const struct trib_jobs_limits *held,
                         const struct trib_job *job)
{
    struct trib_jobs_limits only = *limits;

    if (limits->jobs && held->jobs >= limits->jobs)
        return LACK_JOBS;
    only.bytes = 0;
    if (trib_jobs_slots_left(&only, held, job) < job->slots_wanted)
        return LACK_SLOTS;
    return trib_jobs_slots_left(limits, held, job) < job->slots_wanted ? LACK_BYTES
                                                                       : LACK_NOTHING;
}

static uint64_t held_of(const struct trib_job *job, enum lack what)
{
    return what == LACK_BYTES ? trib_job_bytes(job) : job->slots;
}

/* Append a size, rounded up to KiB above 64 KiB: plans have odd sizes. */
static void append_bytes(char *text, uint64_t bytes)
{
    enum { FEW = 1 << 16 };
    char size[24];

    if (bytes > FEW)
        bytes = (bytes + 1023) / 1024 * 1024;
    trib_text_append(text, TRIB_JOB_TEXT_BYTES, "%s bytes",
                     trib_size_format(bytes, size));
}

/* "job train-7 of user ana holds 384 of 512 slots since 12 min" */
static void append_holder(char *text, const struct trib_job *job, enum lack what,
                          const struct trib_jobs_limits *limits, uint64_t now_ns)
{
    struct age age = age_of(job->since_ns, now_ns);

    trib_text_append(text, TRIB_JOB_TEXT_BYTES, "job %s of user %s %s ", job->name,
                     job->user,
                     job->state == TRIB_JOB_DRAINING ? "is ending and holds" : "holds");
    if (what == LACK_BYTES) {
        append_bytes(text, trib_job_bytes(job));
        trib_text_append(text, TRIB_JOB_TEXT_BYTES, " of ");
        append_bytes(text, limits->bytes);
    } else if (limits->slots) {
        trib_text_append(text, TRIB_JOB_TEXT_BYTES, "%" PRIu32 " of %" PRIu32 " slots",
                         job->slots, limits->slots);
    } else {
        trib_text_append(text, TRIB_JOB_TEXT_BYTES, "%" PRIu32 " slot%s", job->slots,
                         job->slots == 1 ? "" : "s");
    }
    trib_text_append(text, TRIB_JOB_TEXT_BYTES, " since %" PRIu64 " %s", age.n,
                     age.unit);
}

/* Append the largest holders; account UINT32_MAX: of all users. */
static void append_holders(const struct trib_jobs *jobs, uint64_t now_ns,
                           uint32_t account, enum lack what, char *text)
{
    const struct trib_jobs_limits *limits =
        account == UINT32_MAX ? &jobs->opts.service : &jobs->accounts[account].limits;
    const struct trib_jobs_entry *last = NULL;
    uint32_t named = 0;

    for (; named < HOLDERS_NAMED; named++) {
        const struct trib_jobs_entry *most = NULL;

        for (uint32_t i = 0; i < jobs->n; i++) {
            const struct trib_jobs_entry *e = &jobs->entries[i];
            uint64_t held = held_of(&e->job, what);

            if (!e->job.slots || (account != UINT32_MAX && e->account != account))
                continue;
            /* Holders are named in descending order, older first among equals: skip all
             * up to the last one named. */
            if (last && (held > held_of(&last->job, what) ||
                         (held == held_of(&last->job, what) && e <= last)))
                continue;
            if (!most || held > held_of(&most->job, what))
                most = e;
        }
        if (!most)
            break;
        trib_text_append(text, TRIB_JOB_TEXT_BYTES, "%s", named ? ", " : ": ");
        append_holder(text, &most->job, what, limits, now_ns);
        last = most;
    }
    uint32_t holders =
        account == UINT32_MAX ? jobs->held.jobs : jobs->accounts[account].held.jobs;
    if (holders > named)
        trib_text_append(text, TRIB_JOB_TEXT_BYTES,
                         ", and %" PRIu32 " more job%s the rest", holders - named,
                         holders - named == 1 ? " holds" : "s hold");
}

/* `held` may exceed `most`: limits can be lowered, and plans take memory at any
 * time. */
static uint64_t left(uint64_t most, uint64_t held)
{
    return most > held ? most - held : 0;
}

static void append_lack(const struct trib_jobs_limits *limits,
                        const struct trib_jobs_limits *held, const struct trib_job *job,
                        enum lack what, char *text)
{
    switch (what) {
    case LACK_JOBS:
        trib_text_append(text, TRIB_JOB_TEXT_BYTES,
                         "%" PRIu32 " of %" PRIu32 " jobs run", held->jobs,
                         limits->jobs);
        return;
    case LACK_SLOTS:
        trib_text_append(text, TRIB_JOB_TEXT_BYTES,
                         "it needs %" PRIu32 " slot%s and %" PRIu64 " of %" PRIu32
                         " are free",
                         job->slots_wanted, job->slots_wanted == 1 ? "" : "s",
                         left(limits->slots, held->slots), limits->slots);
        return;
    case LACK_BYTES:
        trib_text_append(text, TRIB_JOB_TEXT_BYTES, "it needs ");
        append_bytes(text, job->slots_wanted * job->slot_bytes + job->ranks_bytes);
        trib_text_append(text, TRIB_JOB_TEXT_BYTES, " and ");
        append_bytes(text, left(limits->bytes, held->bytes));
        trib_text_append(text, TRIB_JOB_TEXT_BYTES, " of ");
        append_bytes(text, limits->bytes);
        trib_text_append(text, TRIB_JOB_TEXT_BYTES, " are free");
        return;
    case LACK_NOTHING:
        break;
    }
    trib_text_append(text, TRIB_JOB_TEXT_BYTES, "other jobs come first");
}

void trib_jobs_explain(const struct trib_jobs *jobs, uint64_t now_ns,
                       const struct trib_jobs_entry *entry,
                       char text[TRIB_JOB_TEXT_BYTES])
{
    const struct trib_jobs_account *account = &jobs->accounts[entry->account];
    enum lack what = lack_of(&account->limits, &account->held, &entry->job);

    if (what != LACK_NOTHING) {
        trib_text_append(text, TRIB_JOB_TEXT_BYTES, "within the limits of user %s, ",
                         account->name);
        append_lack(&account->limits, &account->held, &entry->job, what, text);
        append_holders(jobs, now_ns, entry->account, what, text);
        return;
    }
    const struct trib_jobs_limits taken = trib_jobs_in_use(jobs);
    what = lack_of(&jobs->opts.service, &taken, &entry->job);
    append_lack(&jobs->opts.service, &taken, &entry->job, what, text);
    append_holders(jobs, now_ns, UINT32_MAX, what, text);
}

bool trib_jobs_name_ok(const char *name)
{
    size_t len = strnlen(name, TRIB_JOB_NAME_BYTES);

    for (size_t i = 0; i < len; i++)
        if (name[i] < ' ' || name[i] > '~')
            return false;
    return len && len < TRIB_JOB_NAME_BYTES;
}

/* Append a remedy for whichever of ranks and slots needs more memory. */
static void append_remedy(char *text, const struct trib_job_request *r,
                          uint64_t of_ranks)
{
    if (of_ranks < r->slots * r->slot_bytes) {
        trib_text_append(text, TRIB_JOB_TEXT_BYTES, ": request fewer or smaller slots");
        return;
    }
    trib_text_append(text, TRIB_JOB_TEXT_BYTES, ": its %" PRIu32 " ranks need ",
                     r->ranks);
    append_bytes(text, of_ranks);
    trib_text_append(text, TRIB_JOB_TEXT_BYTES,
                     " of that; use fewer ranks, or raise the limit");
}

/* Return true, with a message, if the request exceeds the limits of `who`. */
static bool too_much(const struct trib_job_request *r,
                     const struct trib_jobs_limits *limits, const char *who, char *text)
{
    const uint32_t slots = r->slots;

    if (limits->slots && slots > limits->slots) {
        trib_text_append(text, TRIB_JOB_TEXT_BYTES,
                         "job %s needs %" PRIu32 " slot%s, but the limit of %s is "
                         "%" PRIu32 ": request fewer",
                         r->name, slots, slots == 1 ? "" : "s", who, limits->slots);
        return true;
    }
    const uint64_t of_ranks = r->ranks * r->rank_bytes;
    if (limits->bytes && slots * r->slot_bytes + of_ranks > limits->bytes) {
        trib_text_append(text, TRIB_JOB_TEXT_BYTES, "job %s needs ", r->name);
        append_bytes(text, slots * r->slot_bytes + of_ranks);
        trib_text_append(text, TRIB_JOB_TEXT_BYTES, ", but the limit of %s is ", who);
        append_bytes(text, limits->bytes);
        append_remedy(text, r, of_ranks);
        return true;
    }
    return false;
}

bool trib_jobs_reject(const struct trib_jobs *jobs, const struct trib_job_request *r,
                      const struct trib_jobs_account *account,
                      char text[TRIB_JOB_TEXT_BYTES])
{
    char user[TRIB_JOB_NAME_BYTES + sizeof("user ")];

    text[0] = 0;
    if (!trib_jobs_name_ok(r->name) || !account) {
        trib_text_append(text, TRIB_JOB_TEXT_BYTES,
                         "the name of a %s must be 1 to %d printable ASCII characters",
                         account ? "job" : "user", TRIB_JOB_NAME_BYTES - 1);
        return true;
    }
    if (!r->ranks || !r->slots) {
        trib_text_append(text, TRIB_JOB_TEXT_BYTES,
                         "job %s has %" PRIu32 " ranks and requests %" PRIu32 " slots: "
                         "neither may be 0",
                         r->name, r->ranks, r->slots);
        return true;
    }
    if (!r->weight || r->weight > TRIB_JOB_WEIGHT_MAX) {
        trib_text_append(text, TRIB_JOB_TEXT_BYTES,
                         "job %s has weight %" PRIu32 ": it must be 1 to %d", r->name,
                         r->weight, TRIB_JOB_WEIGHT_MAX);
        return true;
    }
    if (r->slot_bytes > JOB_BYTES_MAX / r->slots ||
        r->rank_bytes > JOB_BYTES_MAX / r->ranks) {
        trib_text_append(text, TRIB_JOB_TEXT_BYTES,
                         "job %s requests %" PRIu32 " slots of %" PRIu64 " bytes, more "
                         "than any host has",
                         r->name, r->slots, r->slot_bytes);
        return true;
    }
    snprintf(user, sizeof(user), "user %s", account->name);
    return too_much(r, &jobs->opts.job, "a job", text) ||
           too_much(r, &account->limits, user, text) ||
           too_much(r, &jobs->opts.service, "all jobs together", text);
}
