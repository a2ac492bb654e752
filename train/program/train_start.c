/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/program/train_start.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "tools/common/launch.h"
#include "train/program/train_coded.h"
#include "train/program/train_replicas.h"

struct start {
    const struct train_job *job;
    const struct hosts *hosts;
    int (*report)(const struct train_job *job);
};

static void *share(size_t bytes)
{
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

struct train_result *train_results_make(int seeds)
{
    return share((size_t)seeds * sizeof(struct train_result));
}

struct train_rendezvous *train_rendezvous_make(void)
{
    return share(sizeof(struct train_rendezvous));
}

static int be_rank(void *arg, int rank, const char *root)
{
    const struct start *start = arg;

    if (start->hosts && hosts_enter(start->hosts, rank) != 0)
        return 1;
    return (start->job->args->code ? train_coded_rank
            : start->job->args->kind
                ? train_replicas_rank
                : train_rank)(start->job, rank, root, start->report);
}

int train_start(const struct train_job *job, const struct hosts *hosts,
                int (*report)(const struct train_job *job))
{
    struct start start = {.job = job, .hosts = hosts, .report = report};
    const struct tool_job ranks = {.tool = "trib-train",
                                   .bind = job->args->bind,
                                   .ranks = job->args->ranks,
                                   .later = job->rendezvous != NULL,
                                   .root = hosts ? hosts_root() : NULL,
                                   .fn = be_rank,
                                   .arg = &start};

    if (job->task->ops->keep && job->args->kept)
        job->task->ops->keep(job->args->kept, job->args->data);
    return job->args->ranks > 0 ? tool_launch(&ranks) : be_rank(&start, -1, NULL);
}
