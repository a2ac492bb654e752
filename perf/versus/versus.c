/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/versus/versus.h"

#include <stdlib.h>
#include <string.h>

#include "perf/coll/arguments.h"
#include "perf/coll/operation.h"
#include "perf/coll/perf_ranks.h"
#include "perf/common/progress.h"
#include "perf/common/samples.h"
#include "perf/common/setters.h"
#include "perf/common/sizes.h"

static const struct versus_kind *const kinds[] = {&versus_groups, &versus_neighbors,
                                                  &versus_store};

enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

static const struct versus_kind *find_kind(const char *name)
{
    for (int i = 0; i < KINDS; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

/* --- command line --- */

static int parse(int argc, char **argv, struct versus_args *args)
{
    const struct versus_kind *kind = find_kind(argv[1]);

    *args = (struct versus_args){.kind = kind, .rounds = 21};
    perf_args_init(&args->each, argc, argv);
    args->each.coll = TRIB_ALLREDUCE;
    args->each.root = 0;
    int code = tool_parse(&kind->command, argc - 1, argv + 1, args, stderr);
    if (code >= 0)
        return code;
    if (perf_launched_twice(args->each.ranks, args->each.bind, stderr))
        return 2;
    if (!kind->is_store && (args->rule != NULL || args->each.codec != NULL)) {
        fprintf(stderr,
                "trib-perf: --rule and --codec only apply to store: leave them out.\n");
        return 2;
    }
    return perf_float_sizes(&args->each.sizes, kind->sizes, stderr) &&
                   perf_outputs_differ(args->each.csv, args->each.json, stderr) &&
                   perf_memory_fits(&args->each, stderr)
               ? -1
               : 2;
}

/* --- rounds --- */

struct rank {
    struct versus now;
    trib_plan_t *plan; /* of the all-reduce */
    void *vector;
    double *us; /* [ways][rounds] */
    bool reports; /* on rank 0 only */
    struct versus_report report;
    struct perf_progress progress;
    char tell[256];
};

/* Return the number of ways. The first and the last are the all-reduce. */
static int ways(const struct rank *r)
{
    return r->now.args->kind->n_ways + 2;
}

static const char *way_name(const struct rank *r, int way)
{
    const struct versus_kind *kind = r->now.args->kind;

    if (way == 0)
        return "allreduce";
    return way <= kind->n_ways ? kind->ways[way - 1] : "allreduce again";
}

static trib_status_t run(struct rank *r, int way)
{
    if (way > 0 && way + 1 < ways(r))
        return r->now.args->kind->run(&r->now, way - 1);
    trib_status_t status = trib_plan_start(r->plan);
    return status == TRIB_OK ? trib_plan_wait(r->plan) : status;
}

static trib_status_t take(struct rank *r, int way, double *us)
{
    trib_status_t status = trib_barrier(r->now.comm);
    const double begin = perf_now();

    if (status == TRIB_OK)
        status = run(r, way);
    *us = 1e6 * (perf_now() - begin);
    return status == TRIB_OK ? perf_combine(r->now.comm, TRIB_MAX, us, 1) : status;
}

static trib_status_t take_rounds(struct rank *r)
{
    const long rounds = r->now.args->rounds;
    trib_status_t status = TRIB_OK;

    /* Round -1 is a warm-up. */
    for (long i = -1; i < rounds; i++) {
        for (int way = 0; way < ways(r) && status == TRIB_OK; way++)
            status = take(r, way, &r->us[way * rounds + (i < 0 ? 0 : i)]);
        if (status != TRIB_OK)
            return status;
        if (r->reports)
            perf_progress_show(&r->progress, r->now.bytes, i + 1, rounds);
    }
    perf_progress_clear(&r->progress);
    return TRIB_OK;
}

/* Summarise copies, since perf_summarise sorts its values. */
static trib_status_t report(struct rank *r)
{
    const size_t rounds = (size_t)r->now.args->rounds;
    double *copy = calloc(2 * rounds, sizeof(*copy)), *ratios = copy + rounds;

    if (copy == NULL)
        return TRIB_ERR_NO_MEMORY;
    for (int way = 0; way < ways(r); way++) {
        struct versus_row row = {.way = way_name(r, way), .bytes = r->now.bytes};
        const double *us = r->us + (size_t)way * rounds;
        for (size_t i = 0; i < rounds; i++) {
            copy[i] = us[i];
            ratios[i] = us[i] / r->us[i];
        }
        perf_summarise(copy, rounds, &row.us);
        perf_summarise(ratios, rounds, &row.ratio);
        versus_report_add(&r->report, &row);
    }
    free(copy);
    return TRIB_OK;
}

/* Open the all-reduce. Its size follows from the vectors that the kind has opened. */
static trib_status_t open_vector(struct rank *r)
{
    trib_desc_t d = TRIB_DESC_INIT;

    trib_status_t status = versus_memory(&r->now, r->now.bytes, &r->vector);
    d.recv = r->vector;
    d.count = r->now.bytes / sizeof(float);
    d.codec = "none";
    return status == TRIB_OK ? trib_plan_allreduce(r->now.comm, &d, &r->plan) : status;
}

static trib_status_t measure(struct rank *r, size_t bytes)
{
    const struct versus_kind *kind = r->now.args->kind;

    r->now.bytes = bytes;
    trib_status_t status = kind->open(&r->now);
    if (status == TRIB_OK)
        status = open_vector(r);
    if (status == TRIB_OK)
        status = take_rounds(r);
    if (status == TRIB_OK && r->reports)
        status = report(r);
    if (status == TRIB_OK && kind->tell != NULL)
        kind->tell(&r->now, r->tell, sizeof(r->tell));
    trib_plan_free(r->plan);
    versus_memory_free(&r->now, r->vector);
    r->plan = NULL;
    r->vector = NULL;
    kind->close(&r->now);
    return status;
}

/* --- all --- */

static trib_status_t sweep(struct rank *r)
{
    const struct perf_sizes *sizes = &r->now.args->each.sizes;
    const size_t n = sizes->n > 0 ? sizes->n : 1;
    trib_status_t status = TRIB_OK;

    perf_progress_start(&r->progress, n, r->reports);
    for (size_t i = 0; i < n && status == TRIB_OK; i++) {
        r->progress.at = i;
        status = measure(r, sizes->n > 0 ? sizes->bytes[i] : 0);
    }
    return status;
}

static int run_all(struct rank *r)
{
    const struct versus_args *args = r->now.args;
    const int number = trib_rank(r->now.comm);
    char why[4352] = "";
    double failed = 0;

    r->us = calloc((size_t)args->rounds * (size_t)ways(r), sizeof(*r->us));
    r->report = (struct versus_report){.args = args, .ranks = trib_size(r->now.comm)};
    r->reports = number == 0 && versus_report_open(&r->report, why, sizeof(why));
    if (why[0] != '\0')
        fprintf(stderr, "trib-perf: %s.\n", why);
    failed = (number == 0 && !r->reports) || r->us == NULL;
    trib_status_t status = perf_combine(r->now.comm, TRIB_MAX, &failed, 1);
    if (status == TRIB_OK && failed > 0)
        return 2;
    if (status == TRIB_OK)
        status = sweep(r);
    if (status != TRIB_OK) {
        fprintf(stderr, "trib-perf: rank %d: %s\n", number,
                r->now.why[0] != '\0' ? r->now.why : trib_last_error(r->now.comm));
        return 1;
    }
    if (!r->reports || versus_report_finish(&r->report, r->tell, why, sizeof(why)))
        return 0;
    fprintf(stderr, "trib-perf: %s.\n", why);
    return 1;
}

static int run_rank(const void *arg, trib_comm_t *comm)
{
    struct rank r = {.now = {.args = arg, .comm = comm}};
    const int code = run_all(&r);

    perf_output_free(&r.report.out);
    free(r.us);
    return code;
}

int versus_main(int argc, char **argv)
{
    struct versus_args args;
    int code = parse(argc, argv, &args);

    if (code < 0)
        code = perf_ranks_run(&args.each, run_rank, &args);
    perf_args_free(&args.each);
    return code;
}
