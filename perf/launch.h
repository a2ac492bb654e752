/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks of one host without a launcher: one process each, by fork.
 */
#ifndef PERF_LAUNCH_H
#define PERF_LAUNCH_H

enum perf_bind { PERF_BIND_NONE, PERF_BIND_CORE };

/** perf_rank_fn - what a started rank does; returns its exit code. */
typedef int (*perf_rank_fn)(void *arg, int rank, const char *root);

struct perf_job {
    int ranks;
    enum perf_bind bind;
    perf_rank_fn fn;
    void (*started)(void *arg); /* in the parent, behind the last fork; may be NULL */
    void *arg;
};

/**
 * perf_launch - run job->fn in job->ranks processes of this host.
 *
 * returns  0, or the exit code of the first rank that failed
 */
int perf_launch(const struct perf_job *job);

/** perf_bind_core - let the calling process run only on the core that is its turn. */
void perf_bind_core(int rank);

#endif
