/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/agg/agg.h"

#include <math.h>
#include <stdlib.h>

#include "perf/common/output.h"
#include "tools/common/launch.h"

/* Print the losses of each job. Return the number of jobs that have any. */
static int say_jobs(const struct agg_args *args, const struct agg_result *p)
{
    int said = 0;

    for (int i = 0; i < args->jobs; i++) {
        const struct agg_job_result *j = &p->jobs[i];
        const char *why = j->why[0] != '\0' ? j->why : "no reason given";
        if (j->failed)
            fprintf(stderr, "trib-perf: job %s (%s) failed: %s.\n", j->name, j->codec,
                    why);
        else if (j->fell_back > 0)
            fprintf(stderr,
                    "trib-perf: job %s (%s) had no service for %llu of its %llu "
                    "operations: %s.\n",
                    j->name, j->codec, (unsigned long long)j->fell_back,
                    (unsigned long long)j->operations, why);
        if (j->wrong > 0)
            fprintf(stderr, "trib-perf: job %s (%s): %llu element%s wrong.\n", j->name,
                    j->codec, (unsigned long long)j->wrong,
                    j->wrong == 1 ? " is" : "s are");
        said += j->failed || j->fell_back > 0 || j->wrong > 0;
    }
    return said;
}

static int sweep(struct agg_workers *workers, struct perf_output *report)
{
    const struct agg_args *args = workers->args;
    struct agg_job_result *jobs = calloc((size_t)args->jobs, sizeof(*jobs));
    struct agg_result result;
    double tribd_cpu_s;
    int troubles = jobs == NULL;

    tool_ticker_begin("trib-perf agg: rounds of all jobs");
    for (int round = 1; jobs != NULL && round <= (int)args->each.sizes.n; round++) {
        tool_ticker_part((size_t)round - 1, args->each.sizes.n);
        bool went = agg_workers_round(workers, round, &tribd_cpu_s);
        tool_ticker_hide();
        if (workers->signalled != 0)
            break;
        agg_results(workers, round, tribd_cpu_s, jobs, &result);
        troubles += say_jobs(args, &result);
        if (!went && result.operations == 0)
            break; /* all workers have ended */
        agg_report_add(report, args, &result);
    }
    tool_ticker_end();
    free(jobs);
    return troubles > 0;
}

static int run(struct agg_workers *workers, struct perf_output *report)
{
    char why[4352];
    int code = agg_workers_start(workers) || workers->signalled == 0
                   ? sweep(workers, report)
                   : 1;

    agg_workers_close(workers);
    if (workers->signalled != 0)
        return 128 + workers->signalled;
    if (!agg_report_finish(report, workers->args, why, sizeof(why))) {
        fprintf(stderr, "trib-perf: %s.\n", why);
        return 1;
    }
    return code;
}

/* Run all jobs. Our own service starts before the first worker and stops after the
 * last. */
static int serve_and_run(const struct agg_args *args, struct perf_output *report)
{
    struct agg_workers workers = {.args = args};
    struct tool_tribd daemon = {0};
    const struct tool_tribd_desc desc = {
        .tool = "trib-perf",
        .program = args->tribd,
        .cure = "set its path with --tribd, or use a running service with --service",
        .auth = "key",
        .mask = &workers.old_mask};
    int code = 1;

    if (!agg_workers_open(&workers))
        return 1;
    if (args->service != NULL) {
        code = run(&workers, report);
    } else if (tool_tribd_start(&desc, &daemon)) {
        workers.daemon = &daemon;
        code = run(&workers, report);
        tool_tribd_stop(&daemon);
    }
    sigprocmask(SIG_SETMASK, &workers.old_mask, NULL);
    return code;
}

int agg_main(int argc, char **argv)
{
    struct agg_args args;
    char why[4352], by[96];
    int code = agg_args_parse(argc, argv, stderr, &args);

    if (code >= 0)
        return code;
    if (tool_launched(by, sizeof(by))) {
        fprintf(stderr,
                "trib-perf: agg starts its own workers (this is %s): run it without a "
                "launcher, or unset that variable.\n",
                by);
        agg_args_free(&args);
        return 2;
    }
    struct perf_output report;
    const bool open = agg_report_open(&report, &args, why, sizeof(why));
    if (!open)
        fprintf(stderr, "trib-perf: %s.\n", why);
    code = open ? serve_and_run(&args, &report) : 2;
    perf_output_free(&report);
    agg_args_free(&args);
    return code;
}
