/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output rows of trib-perf agg.
 */
#include <math.h>
#include <stddef.h>

#include "perf/agg/agg.h"
#include "perf/common/columns.h"
#include "perf/common/samples.h"
#include "perf/common/sizes.h"

struct row {
    struct agg_result r;
    int jobs, workers;
    const char *codecs, *version;
    size_t chunk;
    double density;
    bool same_blocks;
};

/* clang-format off */
#define AT(member) offsetof(struct row, member)
static const struct perf_column all_columns[] = { /* PERF_IF_A: results are checked */
    {"jobs", PERF_UNSHOWN, PERF_INT, 0, 0, PERF_NO_JSON, AT(jobs)},
    {"workers", PERF_UNSHOWN, PERF_INT, 0, 0, PERF_NO_JSON, AT(workers)},
    {"codec", PERF_UNSHOWN, PERF_QUOTED, 0, 0, PERF_NO_JSON, AT(codecs)},
    {"chunk", PERF_UNSHOWN, PERF_SIZE, 0, 0, PERF_NO_JSON, AT(chunk)},
    {"density", PERF_UNSHOWN, PERF_GENERAL, 6, 0, PERF_NO_JSON, AT(density)},
    {"same_blocks", PERF_UNSHOWN, PERF_FLAG, 0, 0, PERF_NO_JSON, AT(same_blocks)},
    {"bytes", "size", "", 10, 0, PERF_BYTES, 0, 0, 0, AT(r.bytes)},
    {"seconds", PERF_UNSHOWN, PERF_FIXED, 4, 0, 0, AT(r.seconds)},
    {"operations", "operations", "", 11, 2, PERF_UINT64, 0, 0, 0, AT(r.operations)},
    {"GBps", "input", "GB/s", 9, 0, PERF_FIXED, 6, 3, 0, AT(r.GBps)},
    {"samples", PERF_UNSHOWN, PERF_SIZE, 0, 0, 0, AT(r.us.n)},
    {"p50_us", "p50", "µs ", 11, 0, PERF_US, 2, 0, 0, AT(r.us.p50)},
    {"p95_us", "p95", "µs ", 11, 4, PERF_US, 2, 0, 0, AT(r.us.p95)},
    {"p99_us", "p99", "µs ", 11, 1, PERF_US, 2, 0, 0, AT(r.us.p99)},
    {"max_us", "max", "µs ", 11, 5, PERF_US, 2, 0, 0, AT(r.us.max)},
    {"workers_cpu_s_per_GB", "workers", "CPU s/GB", 10, 3, PERF_FIXED, 6, 3, 0,
     AT(r.workers_cpu)},
    {"tribd_cpu_s_per_GB", "tribd", "CPU s/GB", 10, 3, PERF_FIXED, 6, 3,
     PERF_OPTIONAL, AT(r.tribd_cpu)},
    {"tribd_elements_per_cpu_s", PERF_UNSHOWN, PERF_GENERAL, 6, 0, PERF_OPTIONAL,
     AT(r.tribd_elements)},
    {"jain", "jain", "", 7, 2, PERF_FIXED, 5, 3, 0, AT(r.jain)},
    {"jain_codec", PERF_UNSHOWN, PERF_FIXED, 5, 0, 0, AT(r.jain_codec)},
    {"fell_back", "fell back", "", 10, 0, PERF_UINT64, 0, 0, 0, AT(r.fell_back)},
    {"jobs_lost", PERF_UNSHOWN, PERF_INT, 0, 0, 0, AT(r.lost)},
    {"jobs_failed", PERF_UNSHOWN, PERF_INT, 0, 0, 0, AT(r.failed)},
    {NULL, "nmse", "", 9, 0, PERF_GENERAL, 0, 2, PERF_IF_A, AT(r.nmse)},
    {"nmse", PERF_UNSHOWN, PERF_GENERAL, 6, 0, PERF_OPTIONAL | PERF_NO_JSON,
     AT(r.nmse)},
    {"wrong", "wrong", "", 11, 0, PERF_UINT64, 0, 0, PERF_IF_A | PERF_NO_JSON,
     AT(r.wrong)},
    {"version", PERF_UNSHOWN, PERF_TEXT, 0, 0, PERF_NO_JSON, AT(version)}};
/* clang-format on */

static struct perf_columns columns_of(const struct agg_args *args)
{
    return (struct perf_columns){all_columns,
                                 sizeof(all_columns) / sizeof(*all_columns),
                                 args->each.check ? PERF_IF_A : 0};
}

/* --- table --- */

static void table_open(const struct agg_args *args)
{
    printf("agg, %d job%s of %d worker%s, codec %s", args->jobs,
           args->jobs == 1 ? "" : "s", args->workers, args->workers == 1 ? "" : "s",
           args->codec_texts);
    if (args->each.density < 1)
        printf(", density %g%s", args->each.density,
               args->each.same_blocks ? " (same blocks)" : "");
    printf(", %s, tributary %s\n",
           args->service != NULL ? args->service : "a local tribd", trib_version());
}

/* --- json --- */

static json_t *json_job(const struct agg_job_result *j)
{
    return json_pack("{s:s, s:s, s:i, s:I, s:I, s:f, s:I, s:b, s:s}", "name", j->name,
                     "codec", j->codec, "weight", j->weight, "operations",
                     (json_int_t)j->operations, "fell_back", (json_int_t)j->fell_back,
                     "GBps", j->GBps, "wrong", (json_int_t)j->wrong, "failed",
                     j->failed, "why", j->why);
}

/* Add the jobs and the errors to the row's object. */
static void add_jobs(const struct agg_args *args, const struct agg_result *p, json_t *o)
{
    json_t *jobs = json_array();

    for (int job = 0; job < args->jobs; job++)
        json_array_append_new(jobs, json_job(&p->jobs[job]));
    json_object_set_new(o, "jobs", jobs);
    if (args->each.check) {
        json_object_set_new(o, "nmse",
                            isfinite(p->nmse) ? json_real(p->nmse) : json_null());
        json_object_set_new(o, "wrong", json_integer((json_int_t)p->wrong));
    }
}

static json_t *json_run(const struct agg_args *args)
{
    const char *service = args->service != NULL ? args->service : "its own";

    return json_pack("{s:s, s:i, s:i, s:s, s:I, s:f, s:b, s:s, s:f, s:I}", "command",
                     "agg", "jobs", args->jobs, "workers", args->workers, "codec",
                     args->codec_texts, "chunk_bytes", (json_int_t)args->each.chunk,
                     "density", args->each.density, "same_blocks",
                     args->each.same_blocks, "service", service, "seconds",
                     args->seconds, "iters", (json_int_t)args->each.iters);
}

/* --- all outputs --- */

bool agg_report_open(struct perf_output *o, const struct agg_args *args, char *why,
                     size_t why_bytes)
{
    const struct perf_columns columns = columns_of(args);

    if (!perf_output_open(o, args->each.csv, args->each.json, why, why_bytes))
        return false;
    if (o->table)
        table_open(args);
    perf_columns_head(o, &columns);
    return true;
}

void agg_report_add(struct perf_output *o, const struct agg_args *args,
                    const struct agg_result *result)
{
    const struct perf_columns columns = columns_of(args);
    const struct row row = {.r = *result,
                            .jobs = args->jobs,
                            .workers = args->workers,
                            .codecs = args->codec_texts,
                            .version = trib_version(),
                            .chunk = args->each.chunk,
                            .density = args->each.density,
                            .same_blocks = args->each.same_blocks};
    json_t *object = perf_columns_row(o, &columns, &row);

    if (object != NULL)
        add_jobs(args, result, object);
}

bool agg_report_finish(struct perf_output *o, const struct agg_args *args, char *why,
                       size_t why_bytes)
{
    json_t *all = NULL;

    if (o->results != NULL)
        all = perf_output_document(o, args->each.argc, args->each.argv, json_run(args));
    return perf_output_finish(o, all, why, why_bytes);
}
