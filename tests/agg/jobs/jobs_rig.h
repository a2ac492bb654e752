/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of jobs for tests, and helpers to request slots in one line. */
#ifndef TESTS_AGG_JOBS_JOBS_RIG_H
#define TESTS_AGG_JOBS_JOBS_RIG_H

#include "tests/harness/tribtest.h"

#include "agg/jobs/jobs.h"
#include "base/error.h"

#define S 1000000000ull /* nanoseconds */
#define T0 (100 * S)

static const struct trib_jobs_opts plain = {
    .service = {.slots = 512, .jobs = 8, .queued = 8},
    .backfill_ns = 10 * S,
};

static inline struct trib_jobs *table(const struct trib_jobs_opts *opts)
{
    struct trib_error err = {0};
    struct trib_jobs *jobs;

    assert_status(trib_jobs_create(opts, &err, &jobs), TRIB_OK);
    return jobs;
}

static inline struct trib_job_answer ask_for(struct trib_jobs *jobs, uint64_t now_ns,
                                             const char *name, const char *user,
                                             uint32_t slots, uint64_t wait_ns)
{
    struct trib_job_answer answer;

    trib_jobs_submit(jobs, now_ns,
                     &(struct trib_job_request){.name = name,
                                                .user = user,
                                                .weight = 1,
                                                .ranks = 4,
                                                .slots = slots,
                                                .slot_bytes = 1024,
                                                .wait_ns = wait_ns},
                     &answer);
    return answer;
}

static inline void assert_says(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" does not say \"%s\"", text, words);
}

#endif
