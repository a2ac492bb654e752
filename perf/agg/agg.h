/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-perf agg: many jobs at once, summed by a service.
 *
 *     agg.c               rounds of all jobs, one for each size
 *     aggargs.c           command line -> struct agg_args
 *     loopback_tribd.c    a tribd of its own, on loopback
 *     load_workers.c      jobs x workers by fork; who has ended, and how
 *     load.c              one worker: a rank of one job
 *     results.c           what the workers have noted -> struct agg_result
 *     aggreport.c         table, csv, json
 *
 * A worker notes what it does in memory that it shares with the parent, so that what it
 * did until it was killed counts. In a round all jobs begin at one moment and run for
 * the same time, or the same number of operations.
 *
 * What a job puts in is its vector times its workers: GB/s (1e9 bytes) are of that, and
 * so is processor time per GB. An operation has fallen back that was not summed by the
 * service.
 */
#ifndef PERF_AGG_AGG_H
#define PERF_AGG_AGG_H

#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "perf/perf.h"

enum {
    AGG_CODECS_MAX = 64,
    AGG_WEIGHTS_MAX = 64,
    AGG_WORKERS_MAX = 4096, /* of all jobs */
    AGG_SAMPLES = 1 << 14,  /* of a worker in a round */
    AGG_HASHES = 4,
    AGG_TEXT = 400,
};

/* The finished command line. Texts point into argv. */
struct agg_args {
    struct perf_args each; /* of a worker's operation; first, for the setters of
                            * arguments.c */
    int jobs;
    int workers; /* of a job */
    const char *codecs[AGG_CODECS_MAX]; /* jobs take them in turn; none: the
                                         * configuration's */
    int n_codecs;
    int weights[AGG_WEIGHTS_MAX]; /* likewise; none: 1 */
    int n_weights;
    double seconds; /* of a round; 0: each.iters operations */
    const char *service; /* addresses; NULL: a tribd of its own */
    const char *tribd; /* its program; NULL: beside this one, or in PATH */
    int tribd_pid; /* of a service whose processor time counts; 0: of its own tribd */
    char configured_service[512];
    char prefix[48]; /* of the names of jobs */
};

/* --- aggargs.c --- */

/** agg_args_parse - as perf_args_parse; argv[1] is "agg". */
int agg_args_parse(int argc, char **argv, FILE *err, struct agg_args *args_out);
void agg_args_free(struct agg_args *args);
const char *agg_codec_of(const struct agg_args *args, int job);
int agg_weight_of(const struct agg_args *args, int job);

/* --- loopback_tribd.c --- */

struct agg_daemon {
    pid_t pid; /* 0: none, or it has ended */
    char folder[64]; /* of the next two; empty: none */
    char key[80];
    char log[80];
    char address[32];
};

/**
 * agg_daemon_start - a tribd on loopback, with a key that only its jobs have.
 *
 * mask     the signals that it is to have blocked: none of ours
 * errors   false after a sentence on standard error; nothing to stop
 */
bool agg_daemon_start(const char *program, const sigset_t *mask,
                      struct agg_daemon *out);

/** agg_daemon_look - has it ended? True once, after a sentence. */
bool agg_daemon_look(struct agg_daemon *daemon);

/** agg_daemon_stop - end it, within 15 s; its files are gone. */
void agg_daemon_stop(struct agg_daemon *daemon);

/** agg_cpu_seconds - processor time of a process of this host; NAN: it is not known. */
double agg_cpu_seconds(pid_t pid);

/* --- load_workers.c --- */

/* Counters of a worker; the parent reads them between rounds, or when the worker has
 * ended. */
struct agg_worker {
    _Atomic uint64_t beats; /* changes while it gets on */
    _Atomic int ready; /* the round that it waits to begin */
    _Atomic int done; /* the round that it has ended */
    _Atomic int words; /* 1: a sentence is written to `lost`; 2: it is there */
    pid_t pid; /* 0: has ended */
    bool failed;
    int round; /* of all below */
    uint64_t operations;
    uint64_t fell_back;
    double elapsed_s; /* since the beginning of the round */
    double cpu_s; /* without that of checks */
    double longest_s;
    double nmse; /* the greatest */
    uint64_t wrong; /* elements, and results that differ from those of worker 0 */
    uint64_t first_wrong; /* operation */
    uint64_t hash[AGG_HASHES]; /* of results, by operation */
    uint32_t stride; /* each stride-th operation is a sample */
    uint32_t n_samples;
    float seconds[AGG_SAMPLES];
    char why[AGG_TEXT]; /* it has failed */
    char lost[AGG_TEXT]; /* the service has */
};

struct agg_shared {
    _Atomic int round; /* that has begun; those who wait look at it */
    double begin;
    _Atomic uint64_t last[AGG_WORKERS_MAX]; /* operation of each job's round; its worker
                                             * 0 says */
    struct agg_worker workers[];
};

struct agg_workers {
    const struct agg_args *args;
    struct agg_daemon *daemon; /* looked at, too; NULL: not ours */
    struct agg_shared *shared;
    sigset_t waited; /* signals that this process waits for */
    sigset_t old_mask;
    int signalled; /* the one that tells this process to end */
};

static inline struct agg_worker *agg_worker_at(const struct agg_workers *workers,
                                               int job, int rank)
{
    return &workers->shared->workers[job * workers->args->workers + rank];
}

/** agg_workers_open - block the signals that are waited for; false after a sentence. */
bool agg_workers_open(struct agg_workers *workers);

/** agg_workers_start - fork them all; false after a sentence. */
bool agg_workers_start(struct agg_workers *workers);

/**
 * agg_workers_round - one of them: all begin, all end.
 *
 * tribd_cpu_out  processor seconds of the service meanwhile; NAN: not known
 * returns  false: a signal tells this process to end, or nobody is left
 */
bool agg_workers_round(struct agg_workers *workers, int round, double *tribd_cpu_out);

/** agg_workers_close - all have ended, or are ended within 10 s. */
void agg_workers_close(struct agg_workers *workers);

/* --- load.c --- */

/** agg_worker_run - be a worker; the exit code. */
int agg_worker_run(const struct agg_workers *workers, int job, int rank,
                   const char *root);

/* --- results.c --- */

struct agg_job_result {
    char name[80];
    const char *codec;
    int weight;
    uint64_t operations;
    uint64_t fell_back;
    double GBps; /* of what its workers put in */
    uint64_t wrong;
    bool failed; /* a worker has ended before its time */
    const char *why; /* that, or how it lost its service; "": all is well */
};

struct agg_result {
    size_t bytes; /* of a vector */
    double seconds; /* of the round, until the last job had ended it */
    uint64_t operations; /* of all jobs */
    double GBps;
    struct perf_summary us; /* of operations, each as long as the job's slowest worker
                             * took */
    double workers_cpu; /* seconds per GB */
    double tribd_cpu; /* seconds per GB; NAN: not known */
    double tribd_elements; /* summed in a second of its processor time; NAN: not
                            * known */
    double jain; /* of the jobs' GB/s, each by its weight */
    double jain_codec; /* the least among those of one codec */
    uint64_t fell_back;
    int lost; /* jobs with such operations */
    int failed; /* jobs */
    uint64_t wrong;
    double nmse; /* the greatest; NAN: not checked */
    struct agg_job_result *jobs; /* [args->jobs] */
};

/** agg_results - of a round that has ended.
 *
 * owner    jobs is the caller's [args->jobs]; the texts in it live as long as the
 *          workers */
void agg_results(const struct agg_workers *workers, int round, double tribd_cpu_s,
               struct agg_job_result *jobs, struct agg_result *out);

/** agg_jain - (sum x)^2 / (n sum x^2): 1 where all are the same, 1/n where one has it
 * all. */
double agg_jain(const double *x, size_t n);

/* --- aggreport.c --- */

struct agg_report;

struct agg_report *agg_report_open(const struct agg_args *args, char *why,
                                   size_t why_bytes);
void agg_report_add(struct agg_report *r, const struct agg_result *result);
bool agg_report_finish(struct agg_report *r, char *why, size_t why_bytes);
void agg_report_free(struct agg_report *r); /* NULL is allowed */

/* --- agg.c --- */

extern const struct tool_command agg_command;

/** agg_main - `trib-perf agg …`: the exit code. */
int agg_main(int argc, char **argv);

#endif
