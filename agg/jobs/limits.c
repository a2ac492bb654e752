/* SPDX-License-Identifier: BSD-3-Clause */
/* Resources that jobs hold, and that the limits of a user or of the service leave. */
#include <assert.h>

#include "agg/jobs/jobs_table.h"

uint64_t trib_job_fixed_bytes(const struct trib_job *job)
{
    return job->slots ? job->slots * job->slot_bytes + job->ranks_bytes : 0;
}

uint64_t trib_job_bytes(const struct trib_job *job)
{
    return trib_job_fixed_bytes(job) + job->plan_bytes;
}

uint32_t trib_jobs_slots_left(const struct trib_jobs_limits *limits,
                              const struct trib_jobs_limits *held,
                              const struct trib_job *job)
{
    const uint64_t taken = held->bytes + job->ranks_bytes;
    uint64_t room = UINT32_MAX;

    if (limits->jobs && held->jobs >= limits->jobs)
        return 0;
    if (limits->slots)
        room = limits->slots > held->slots ? limits->slots - held->slots : 0;
    if (limits->bytes && taken > limits->bytes)
        return 0;
    if (limits->bytes && job->slot_bytes) {
        uint64_t fit = (limits->bytes - taken) / job->slot_bytes;
        room = fit < room ? fit : room;
    }
    return (uint32_t)room;
}

struct trib_jobs_limits trib_jobs_in_use(const struct trib_jobs *jobs)
{
    const uint32_t most = jobs->opts.service.slots;
    struct trib_jobs_limits taken = jobs->held;

    assert(jobs->lent <= taken.slots);
    taken.slots -= jobs->lent < most ? jobs->lent : most;
    return taken;
}
