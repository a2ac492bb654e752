/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One size of a sweep: warm-up, batch size, samples, check.
 *
 * All ranks take the same decisions, from values reduced over all ranks: calls per
 * sample, number of samples, and when to synchronise. As in nccl-tests, no barrier
 * separates samples, so collectives with a root may overlap; --sync adds a barrier
 * before each. With --rewrite, and if a codec sums in place, every rank rewrites its
 * input before each call.
 */
#include "perf/coll/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "perf/coll/arguments.h"
#include "perf/coll/colls.h"
#include "perf/coll/operation.h"
#include "perf/coll/perf_oracle.h"
#include "perf/common/perf_interrupt.h"
#include "perf/common/progress.h"
#include "perf/common/samples.h"

#define AUTO_SECONDS 0.5
#define AUTO_LEAST 20
#define AUTO_MOST 1000
#define GROUP_SECONDS 0.25 /* between two progress lines */
#define MAX_BATCH 1000000

static bool rewrites(const struct perf_operation *op)
{
    return op->pristine != NULL || op->args->rewrite;
}

static trib_status_t run_calls(struct perf_operation *op, long calls)
{
    trib_status_t status = TRIB_OK;
    for (long i = 0; i < calls && status == TRIB_OK; i++) {
        if (rewrites(op))
            perf_operation_rewrite(op);
        status = op->run(op);
    }
    return status;
}

/* --- check --- */

struct check {
    double nmse;
    double wrong;
    double nmse_limit; /* as in struct perf_result */
    double lost;
};

/* All ranks must have bit-identical results: max(h) == -max(-h). */
static bool shares_result(trib_coll_t coll)
{
    return coll == TRIB_ALLREDUCE || coll == TRIB_BROADCAST || coll == TRIB_ALLGATHER;
}

static bool input_survived(const struct perf_operation *op)
{
    struct perf_oracle o = op->oracle;
    unsigned char want[1024];
    size_t total = perf_oracle_inputs(&o), element = trib_dtype_size(o.dtype);
    size_t step = sizeof(want) / element;
    const unsigned char *have = op->input;

    for (size_t first = 0; first < total; first += step) {
        size_t n = total - first < step ? total - first : step;
        perf_oracle_fill(&o, o.rank, first, n, want);
        if (memcmp(have + first * element, want, n * element) != 0)
            return false;
    }
    return true;
}

static trib_status_t check(struct perf_operation *op, struct check *out)
{
    struct perf_verdict verdict;
    perf_operation_fill(op);
    trib_status_t status = op->run(op);
    if (status == TRIB_OK)
        status = perf_operation_dense(op);
    if (status == TRIB_OK)
        status = perf_operation_judge_absent(op);
    if (status != TRIB_OK)
        return status;

    perf_oracle_compare(&op->oracle, op->output, &verdict);
    double hash = (double)(verdict.hash >> 11);
    size_t damaged = perf_operation_guards(op);
    bool changed = op->desc.send != NULL && !input_survived(op);
    double wrong = (double)verdict.wrong + (double)damaged + changed;
    perf_say_wrong(op, &verdict, damaged > 0, changed);
    double nmse = verdict.error2 == 0.0 ? 0 : verdict.error2 / verdict.reference2;
    bool within = verdict.error2 <= verdict.error2_limit;
    double limit = within ? 0 : verdict.error2_limit / verdict.reference2;
    double most[5] = {hash, -hash, nmse, limit, (double)verdict.lost};
    status = perf_combine(op->comm, TRIB_MAX, most, 5);
    if (status != TRIB_OK)
        return status;
    status = perf_combine(op->comm, TRIB_SUM, &wrong, 1);
    if (status != TRIB_OK)
        return status;
    if (shares_result(op->desc.count == 0 ? TRIB_BARRIER : op->args->coll) &&
        most[0] != -most[1]) {
        wrong++;
        status = perf_say_different(op);
    }
    out->nmse = most[2];
    out->wrong += wrong;
    out->nmse_limit = fmax(out->nmse_limit, most[3]);
    out->lost = fmax(out->lost, most[4]);
    return status;
}

/* --- timing --- */

struct timing {
    struct perf_operation *op;
    const struct perf_args *args;
    long batch;
    long samples;
    double *seconds; /* [samples] */
    double cpu_s;
};

/* Time `calls` calls after a barrier; seconds of the slowest rank. */
static trib_status_t time_calls(struct perf_operation *op, long calls, double *took_out)
{
    trib_status_t status = trib_barrier(op->comm);
    double start = perf_now();
    if (status == TRIB_OK)
        status = run_calls(op, calls);
    *took_out = perf_now() - start;
    return status == TRIB_OK ? perf_combine(op->comm, TRIB_MAX, took_out, 1) : status;
}

/* Estimate the seconds of one call; all ranks get the same value. */
static trib_status_t estimate(struct perf_operation *op, double *call_out)
{
    /* Increase the calls until clock cost and skew between ranks do not matter. */
    for (long calls = 1;; calls *= 4) {
        double least = HUGE_VAL;
        /* The minimum of three: a preempted one would spoil the batch size. */
        for (int i = 0; i < 3 && least > 1e-3; i++) {
            double took;
            trib_status_t status = time_calls(op, calls, &took);
            if (status != TRIB_OK)
                return status;
            least = fmin(least, took);
        }
        *call_out = fmax(least / (double)calls, 1e-9);
        if (least >= 20e-6 || calls >= 1024)
            return TRIB_OK;
    }
}

static trib_status_t decide(struct timing *t)
{
    struct perf_operation *op = t->op;
    long warmup = t->args->warmup;
    double call;
    if (warmup < 0)
        warmup = op->bytes > (1 << 20) ? 2 : 20;
    trib_status_t status = run_calls(op, warmup);
    if (status == TRIB_OK)
        status = estimate(op, &call);
    if (status != TRIB_OK)
        return status;

    double batch = rewrites(op) ? 1 : ceil(t->args->sample_s / call);
    t->batch = (long)fmin(fmax(batch, 1), MAX_BATCH);
    t->samples = t->args->iters;
    if (t->samples == 0) {
        double fit = AUTO_SECONDS / (call * (double)t->batch);
        t->samples = (long)fmin(fmax(fit, AUTO_LEAST), AUTO_MOST);
    }
    return TRIB_OK;
}

/* Time one call on rewritten input. Writing and the barrier are not timed. */
static trib_status_t sample_rewritten(struct perf_operation *op, double *seconds)
{
    perf_operation_rewrite(op);
    trib_status_t status = trib_barrier(op->comm);
    double before = perf_now();
    if (status == TRIB_OK)
        status = op->run(op);
    *seconds = perf_now() - before;
    return status;
}

static trib_status_t take_samples(struct timing *t, long first, long n)
{
    struct perf_operation *op = t->op;
    trib_status_t status = trib_barrier(op->comm);
    double cpu = perf_cpu_seconds();
    double before = perf_now();
    for (long i = first; i < first + n && status == TRIB_OK; i++) {
        if (rewrites(op)) {
            status = sample_rewritten(op, &t->seconds[i]);
            continue;
        }
        if (t->args->sync) {
            status = trib_barrier(op->comm);
            before = perf_now();
            if (status != TRIB_OK)
                break;
        }
        status = run_calls(op, t->batch);
        double now = perf_now();
        t->seconds[i] = now - before;
        before = now;
    }
    t->cpu_s += perf_cpu_seconds() - cpu;
    return status;
}

static trib_status_t take_all(struct timing *t, perf_progress_fn progress, void *arg)
{
    struct perf_operation *op = t->op;
    long group = 1;
    double start = perf_now();
    for (long done = 0; done < t->samples; done += group) {
        /* All ranks agree on the size of the next group, since they synchronise between
         * groups. */
        double rest = (double)(t->samples - done);
        if (done > 0) {
            double pace = (perf_now() - start) / (double)done;
            rest = fmin(rest, fmax(1, GROUP_SECONDS / pace));
            if (perf_interrupted())
                rest = 0;
            trib_status_t status = perf_combine(op->comm, TRIB_MIN, &rest, 1);
            if (status != TRIB_OK)
                return status;
        }
        group = done == 0 ? 1 : (long)rest;
        if (group == 0) {
            t->samples = done; /* interrupted: keep the samples so far */
            return TRIB_OK;
        }
        trib_status_t status = take_samples(t, done, group);
        if (status != TRIB_OK)
            return status;
        if (progress != NULL && op->oracle.rank == 0)
            progress(arg, op->bytes, done + group, t->samples);
    }
    return TRIB_OK;
}

/* --- results --- */

struct traffic {
    double wire_bytes, payload_bytes, dense_bytes;
};

static trib_status_t traffic(trib_comm_t *comm, struct traffic *out)
{
    trib_stats_t stats = {.size = sizeof(stats)};
    trib_status_t status = trib_stats(comm, &stats);
    out->wire_bytes = (double)stats.wire_bytes;
    out->payload_bytes = (double)stats.payload_bytes;
    out->dense_bytes = (double)stats.dense_bytes;
    return status;
}

/* Read the counters before and after a single operation, so that nothing else is
 * counted. */
static trib_status_t count_traffic(struct perf_operation *op, struct perf_result *out)
{
    struct traffic a, b;
    trib_status_t status = traffic(op->comm, &a);
    if (status == TRIB_OK)
        status = op->run(op);
    if (status == TRIB_OK)
        status = traffic(op->comm, &b);
    if (status != TRIB_OK)
        return status;
    double sums[3] = {
        b.wire_bytes - a.wire_bytes,
        b.payload_bytes - a.payload_bytes,
        b.dense_bytes - a.dense_bytes,
    };
    status = perf_combine(op->comm, TRIB_SUM, sums, 3);
    out->wire_bytes = sums[0] / op->oracle.ranks;
    out->ratio = sums[1] > 0 ? sums[2] / sums[1] : 1;
    return status;
}

static trib_status_t summarise(struct timing *t, struct perf_result *out)
{
    struct perf_operation *op = t->op;
    double cpu = t->cpu_s;
    trib_status_t status =
        perf_combine(op->comm, TRIB_MAX, t->seconds, (size_t)t->samples);
    if (status == TRIB_OK)
        status = perf_combine(op->comm, TRIB_SUM, &cpu, 1);
    if (status != TRIB_OK)
        return status;

    double us = 1e6 / (double)t->batch;
    for (long i = 0; i < t->samples; i++)
        t->seconds[i] *= us;
    perf_summarise(t->seconds, (size_t)t->samples, &out->us);
    int ranks = op->oracle.ranks;
    double calls = (double)t->batch * (double)t->samples;
    out->bytes = op->bytes;
    out->count = op->desc.count;
    out->batch = t->batch;
    out->cpu_us = 1e6 * cpu / calls / ranks;
    out->algbw_GBps = out->us.p50 > 0 ? (double)op->bytes / out->us.p50 * 1e-3 : 0;
    out->busbw_GBps = out->algbw_GBps * perf_bus_factor(op->args->coll, ranks);
    return TRIB_OK;
}

static trib_status_t measure_open(struct perf_operation *op, perf_progress_fn progress,
                                  void *arg, struct perf_result *out)
{
    struct check verdict = {0};
    struct timing t = {.op = op, .args = op->args};
    bool lossy = op->oracle.loss.kind != PERF_LOSS_NONE;
    bool in_place = op->args->in_place && op->args->coll != TRIB_BARRIER;
    trib_status_t status = TRIB_OK;

    if (op->args->check)
        status = check(op, &verdict);
    /* In place, the vector grows with each call. Zeros stay finite. But codecs treat
     * zeros differently from gradients, so lossy codecs get their input back before
     * every sample. */
    if (in_place && !lossy)
        perf_operation_zero(op);
    else
        perf_operation_fill(op);
    if (in_place && lossy && status == TRIB_OK)
        status = perf_operation_keep(op);
    if (status == TRIB_OK)
        status = decide(&t);
    if (status != TRIB_OK)
        return status;
    t.seconds = calloc((size_t)t.samples, sizeof(*t.seconds));
    if (t.seconds == NULL)
        return TRIB_ERR_NO_MEMORY;
    status = take_all(&t, progress, arg);
    if (status == TRIB_OK)
        status = summarise(&t, out);
    free(t.seconds);
    if (status == TRIB_OK)
        status = count_traffic(op, out);
    /* Check again after thousands of operations. Report the first nmse, since error
     * feedback changes it. */
    double nmse = verdict.nmse;
    perf_operation_judge_later(op);
    if (status == TRIB_OK && op->args->check)
        status = check(op, &verdict);
    out->nmse = op->args->check ? nmse : (double)NAN;
    out->wrong = op->args->check ? verdict.wrong : (double)NAN;
    out->nmse_limit = verdict.nmse_limit;
    out->lost = verdict.lost;
    return status;
}

/* For blocking calls, explain a plan with the same settings. */
static void explain(struct perf_operation *op, struct perf_result *out)
{
    trib_plan_t *plan = op->plan;
    if (plan == NULL && op->args->coll == PERF_SENDRECV)
        return;
    if (plan == NULL &&
        trib_plan_create(op->comm, op->args->coll, &op->desc, &plan) != TRIB_OK)
        return;
    if (trib_plan_explain(plan, out->explain, sizeof(out->explain)) != TRIB_OK)
        out->explain[0] = '\0';
    if (op->plan == NULL)
        trib_plan_free(plan);
}

trib_status_t perf_measure(trib_comm_t *comm, const struct perf_args *args,
                           size_t bytes, perf_progress_fn progress, void *arg,
                           struct perf_result *out)
{
    struct perf_operation op;
    memset(out, 0, sizeof(*out));
    trib_status_t status = perf_operation_open(comm, args, bytes, &op);
    if (status != TRIB_OK)
        return status;
    status = measure_open(&op, progress, arg, out);
    if (status == TRIB_OK)
        explain(&op, out);
    if (status == TRIB_OK && args->overlap && args->overlap_fn != NULL)
        status = args->overlap_fn(&op, out);
    perf_operation_close(&op);
    return status;
}
