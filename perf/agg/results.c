/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/agg/agg.h"
#include "perf/common/samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double agg_jain(const double *x, size_t n)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < n; i++) {
        sum += x[i];
        squares += x[i] * x[i];
    }
    return squares > 0 ? sum * sum / ((double)n * squares) : 1;
}

/* --- jobs --- */

/* Compare the last operation, if both workers have finished it. Earlier ones were
 * compared during the round. */
static uint64_t last_differs(const struct agg_worker *first, const struct agg_worker *w)
{
    const uint64_t last = (first->operations - 1) % AGG_HASHES;

    return w->operations == first->operations && w->hash[last] != first->hash[last];
}

/* Return one message per job, of the first worker that has one; failures before
 * losses. */
static const char *sentence_of(const struct agg_workers *workers, int job)
{
    const char *lost = "";

    for (int rank = 0; rank < workers->args->workers; rank++) {
        const struct agg_worker *w = agg_worker_at(workers, job, rank);
        if (w->failed)
            return w->why;
        if (lost[0] == '\0' && atomic_load(&w->words) == 2)
            lost = w->lost;
    }
    return lost;
}

static void results_of_job(const struct agg_workers *workers, int job, int round,
                           size_t bytes, struct agg_job_result *out)
{
    const struct agg_args *args = workers->args;
    const struct agg_worker *first = agg_worker_at(workers, job, 0);
    double input = (double)bytes * args->workers;

    memset(out, 0, sizeof(*out));
    snprintf(out->name, sizeof(out->name), "%s.%d", args->prefix, job);
    out->codec = agg_codec_of(args, job);
    out->weight = agg_weight_of(args, job);
    out->why = sentence_of(workers, job);
    for (int rank = 0; rank < args->workers; rank++)
        out->failed |= agg_worker_at(workers, job, rank)->failed;
    if (first->round != round || first->operations == 0)
        return;
    out->operations = first->operations;
    out->fell_back = first->fell_back;
    out->GBps = (double)first->operations * input / first->elapsed_s * 1e-9;
    for (int rank = 0; rank < args->workers; rank++) {
        const struct agg_worker *w = agg_worker_at(workers, job, rank);
        if (w->round == round)
            out->wrong += w->wrong + (args->each.check ? last_differs(first, w) : 0);
    }
}

/* --- latencies --- */

/* Collect the µs of a job's operations, each timed on its slowest worker. Return their
 * number. */
static size_t job_samples(const struct agg_workers *workers, int job, int round,
                          double *us)
{
    const struct agg_worker *first = agg_worker_at(workers, job, 0);
    size_t n = first->round == round ? first->n_samples : 0;

    for (int rank = 1; rank < workers->args->workers; rank++) {
        const struct agg_worker *w = agg_worker_at(workers, job, rank);
        if (w->round != round || w->stride != first->stride)
            return 0; /* a worker was killed */
        n = w->n_samples < n ? w->n_samples : n;
    }
    for (size_t i = 0; i < n; i++) {
        us[i] = 0;
        for (int rank = 0; rank < workers->args->workers; rank++)
            us[i] = fmax(us[i],
                         1e6 * (double)agg_worker_at(workers, job, rank)->seconds[i]);
    }
    return n;
}

static void results_of_latency(const struct agg_workers *workers, int round,
                          struct perf_summary *out)
{
    size_t jobs = (size_t)workers->args->jobs, n = 0;
    double *us = calloc(jobs * AGG_SAMPLES, sizeof(*us));

    for (size_t job = 0; us != NULL && job < jobs; job++)
        n += job_samples(workers, (int)job, round, us + n);
    perf_summarise(us, n, out);
    free(us);
}

/* --- sums --- */

/* Fairness over the jobs of one codec, or over all jobs if codec is NULL. */
static double fairness(const struct agg_job_result *jobs, int n_jobs, const char *codec)
{
    double *x = calloc((size_t)n_jobs, sizeof(*x));
    size_t n = 0;

    for (int job = 0; x != NULL && job < n_jobs; job++)
        if (codec == NULL || strcmp(jobs[job].codec, codec) == 0)
            x[n++] = jobs[job].GBps / jobs[job].weight;
    double jain = x != NULL ? agg_jain(x, n) : (double)NAN;
    free(x);
    return jain;
}

static void results_of_workers(const struct agg_workers *workers, int round,
                          struct agg_result *out)
{
    const int n = workers->args->jobs * workers->args->workers;

    for (int i = 0; i < n; i++) {
        const struct agg_worker *w = &workers->shared->workers[i];
        if (w->round != round)
            continue;
        out->seconds = fmax(out->seconds, w->elapsed_s);
        out->workers_cpu += w->cpu_s;
        out->us.max = fmax(out->us.max, 1e6 * w->longest_s);
        out->nmse = fmax(out->nmse, w->nmse);
    }
}

void agg_results(const struct agg_workers *workers, int round, double tribd_cpu_s,
               struct agg_job_result *jobs, struct agg_result *out)
{
    const struct agg_args *args = workers->args;
    const size_t bytes = args->each.sizes.bytes[round - 1];

    memset(out, 0, sizeof(*out));
    out->bytes = bytes;
    out->jobs = jobs;
    results_of_latency(workers, round, &out->us);
    results_of_workers(workers, round, out);
    for (int job = 0; job < args->jobs; job++) {
        results_of_job(workers, job, round, bytes, &jobs[job]);
        out->operations += jobs[job].operations;
        out->fell_back += jobs[job].fell_back;
        out->lost += jobs[job].fell_back > 0;
        out->failed += jobs[job].failed;
        out->wrong += jobs[job].wrong;
    }
    out->jain = out->jain_codec = fairness(jobs, args->jobs, NULL);
    for (int i = 0; i < args->n_codecs; i++)
        out->jain_codec = fmin(i == 0 ? 1 : out->jain_codec,
                               fairness(jobs, args->jobs, args->codecs[i]));
    const double GB = (double)out->operations * (double)bytes * args->workers * 1e-9;
    out->GBps = out->seconds > 0 ? GB / out->seconds : 0;
    out->workers_cpu = GB > 0 ? out->workers_cpu / GB : 0;
    out->tribd_cpu = GB > 0 ? tribd_cpu_s / GB : (double)NAN;
    out->tribd_elements =
        tribd_cpu_s > 0 ? GB * 1e9 / sizeof(float) / tribd_cpu_s : (double)NAN;
    if (!args->each.check)
        out->nmse = (double)NAN;
}
