/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-perf agg: many concurrent jobs, summed by a service.
 *
 *     agg.c               rounds of all jobs, one per size
 *     aggargs.c           command line -> struct agg_args
 *     load_workers.c      forks jobs x workers, and waits for them
 *     load.c              one worker: a rank of one job
 *     results.c           the workers' counters -> struct agg_result
 *     aggreport.c         table, csv, json
 *
 * A worker writes its counters to memory shared with the parent, so that its operations
 * count even if it is killed. In a round all jobs start at the same time and run for
 * the same time, or for the same number of operations.
 *
 * A job contributes its vector size times its number of workers. GB/s (1e9 bytes) and
 * processor time per GB count contributed bytes. An operation has fallen back if the
 * service did not sum it.
 */
#ifndef PERF_AGG_AGG_H
#define PERF_AGG_AGG_H

#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "perf/coll/arguments.h"
#include "perf/common/samples.h"
#include "tools/common/local_tribd.h"
#include "tools/common/options.h"

enum {
    AGG_CODECS_MAX = 64,
    AGG_WEIGHTS_MAX = 64,
    AGG_WORKERS_MAX = 4096, /* over all jobs */
    AGG_SAMPLES = 1 << 14, /* per worker and round */
    AGG_HASHES = 4,
    AGG_TEXT = 400,
};

/* The parsed command line. Strings point into argv. */
struct agg_args {
    struct perf_args each; /* one worker's operation; first, for the setters of
                            * arguments.c */
    int jobs;
    int workers; /* per job */
    const char *codecs[AGG_CODECS_MAX]; /* assigned to jobs in turn; none: from the
                                         * configuration */
    int n_codecs;
    char codec_texts[1024]; /* of all jobs: "none int8" */
    int weights[AGG_WEIGHTS_MAX]; /* assigned to jobs in turn; none: 1 */
    int n_weights;
    double seconds; /* per round; 0: each.iters operations */
    const char *service; /* addresses; NULL: start a tribd */
    const char *tribd; /* path of tribd; NULL: in this program's folder, or in PATH */
    int tribd_pid; /* service whose processor time is measured; 0: the started tribd */
    char configured_service[512];
    char prefix[48]; /* of job names */
};

/* --- aggargs.c --- */

/** agg_args_parse - as perf_args_parse; argv[1] is "agg". */
int agg_args_parse(int argc, char **argv, FILE *err, struct agg_args *args);
void agg_args_free(struct agg_args *args);
const char *agg_codec_of(const struct agg_args *args, int job);
int agg_weight_of(const struct agg_args *args, int job);

/* --- load_workers.c --- */

/* Counters of a worker. The parent reads them between rounds or when the worker has
 * ended. */
struct agg_worker {
    _Atomic uint64_t beats; /* increments while the worker makes progress */
    _Atomic int ready; /* the round that the worker is ready to begin */
    _Atomic int done; /* the last round that the worker has finished */
    _Atomic int words; /* state of `lost`; 1: being written; 2: complete */
    pid_t pid; /* 0: has ended */
    bool failed;
    int round; /* the round that the following counters belong to */
    uint64_t operations;
    uint64_t fell_back;
    double elapsed_s; /* since the start of the round */
    double cpu_s; /* without checks */
    double longest_s;
    double nmse; /* maximum */
    uint64_t wrong; /* wrong elements, and results that differ from worker 0's */
    uint64_t first_wrong; /* index of the operation */
    uint64_t hash[AGG_HASHES]; /* hashes of the last results */
    uint32_t stride; /* every stride-th operation is a sample */
    uint32_t n_samples;
    float seconds[AGG_SAMPLES];
    char why[AGG_TEXT]; /* message if the worker failed */
    char lost[AGG_TEXT]; /* message if the service was lost */
};

struct agg_shared {
    _Atomic int round; /* the round that has begun; waiting workers poll it */
    double begin;
    _Atomic uint64_t last[AGG_WORKERS_MAX]; /* last operation of the round per job, set
                                             * by its worker 0 */
    struct agg_worker workers[];
};

struct agg_workers {
    const struct agg_args *args;
    struct tool_tribd *daemon; /* checked while waiting; NULL: not ours */
    struct agg_shared *shared;
    sigset_t waited; /* signals that this process waits for */
    sigset_t old_mask;
    int signalled; /* signal that ends this process; 0: none */
};

static inline struct agg_worker *agg_worker_at(const struct agg_workers *workers,
                                               int job, int rank)
{
    return &workers->shared->workers[job * workers->args->workers + rank];
}

/** agg_workers_open - block the signals that are waited for. Return false after a
 * message. */
bool agg_workers_open(struct agg_workers *workers);

/** agg_workers_start - fork all workers. Return false after a message. */
bool agg_workers_start(struct agg_workers *workers);

/**
 * agg_workers_round - run one round.
 *
 * tribd_cpu_out  processor seconds of the service in this round; NAN: unknown
 * returns  false: a signal ends this process, or all workers have ended
 */
bool agg_workers_round(struct agg_workers *workers, int round, double *tribd_cpu_out);

/** agg_workers_close - wait up to 10 s for the workers, then kill them. */
void agg_workers_close(struct agg_workers *workers);

/* --- load.c --- */

/** agg_worker_run - run a worker. Return the exit code. */
int agg_worker_run(const struct agg_workers *workers, int job, int rank,
                   const char *root);

/* --- results.c --- */

struct agg_job_result {
    char name[80];
    const char *codec;
    int weight;
    uint64_t operations;
    uint64_t fell_back;
    double GBps; /* contributed by its workers */
    uint64_t wrong;
    bool failed; /* a worker ended too early */
    const char *why; /* message of that worker, or about the lost service; "": none */
};

struct agg_result {
    size_t bytes; /* size of a vector */
    double seconds; /* of the round, until the last job finished */
    uint64_t operations; /* of all jobs */
    double GBps;
    struct perf_summary us; /* operations, each timed on the job's slowest worker */
    double workers_cpu; /* seconds per GB */
    double tribd_cpu; /* seconds per GB; NAN: unknown */
    double tribd_elements; /* summed per second of its processor time; NAN: unknown */
    double jain; /* Jain's fairness index of GB/s over weight */
    double jain_codec; /* minimum over the codecs, among the jobs of one codec */
    uint64_t fell_back;
    int lost; /* jobs that fell back */
    int failed; /* number of failed jobs */
    uint64_t wrong;
    double nmse; /* maximum; NAN: not checked */
    struct agg_job_result *jobs; /* [args->jobs] */
};

/**
 * agg_results - compute the results of a finished round.
 *
 * owner    jobs is the caller's [args->jobs]; its strings live as long as the workers
 */
void agg_results(const struct agg_workers *workers, int round, double tribd_cpu_s,
                 struct agg_job_result *jobs, struct agg_result *out);

/** agg_jain - return (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one has
 * everything. */
double agg_jain(const double *x, size_t n);

/* --- aggreport.c --- */

struct perf_output;

/** agg_report_open - open the outputs of args and write their heads. false: why[] has
 * the message. The caller frees o with perf_output_free. */
bool agg_report_open(struct perf_output *o, const struct agg_args *args, char *why,
                     size_t why_bytes);
void agg_report_add(struct perf_output *o, const struct agg_args *args,
                    const struct agg_result *result);
bool agg_report_finish(struct perf_output *o, const struct agg_args *args, char *why,
                       size_t why_bytes);

/* --- agg.c --- */

extern const struct tool_command agg_command;

/** agg_main - run `trib-perf agg …`. Return the exit code. */
int agg_main(int argc, char **argv);

#endif
