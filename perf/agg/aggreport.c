/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output rows of trib-perf agg.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "perf/agg/agg.h"
#include "perf/common/output.h"
#include "perf/common/samples.h"
#include "perf/common/sizes.h"

struct agg_report {
    const struct agg_args *args;
    struct perf_output out;
    char codecs[1024];
};

/* Write the codecs that jobs use in turn: "none int8". */
static void join_codecs(const struct agg_args *args, char *text, size_t bytes)
{
    size_t at = 0;

    snprintf(text, bytes, "%s", args->each.configured_codec);
    for (int i = 0; i < args->n_codecs && at + 1 < bytes; i++)
        at += (size_t)snprintf(text + at, bytes - at, "%s%s", i > 0 ? " " : "",
                               args->codecs[i]);
}

/* --- table --- */

static void add_columns(struct tool_table *t, bool check)
{
    tool_table_add(t, "size", "", 10, 0);
    tool_table_add(t, "operations", "", 11, 2);
    tool_table_add(t, "input", "GB/s", 9, 0);
    tool_table_add(t, "p50", "µs ", 11, 0);
    tool_table_add(t, "p95", "µs ", 11, 4);
    tool_table_add(t, "p99", "µs ", 11, 1);
    tool_table_add(t, "max", "µs ", 11, 5);
    tool_table_add(t, "workers", "CPU s/GB", 10, 3);
    tool_table_add(t, "tribd", "CPU s/GB", 10, 3);
    tool_table_add(t, "jain", "", 7, 2);
    tool_table_add(t, "fell back", "", 10, 0);
    if (check) {
        tool_table_add(t, "nmse", "", 9, 0);
        tool_table_add(t, "wrong", "", 11, 0);
    }
}

static void table_open(struct agg_report *r)
{
    const struct agg_args *args = r->args;

    printf("agg, %d job%s of %d worker%s, codec %s", args->jobs,
           args->jobs == 1 ? "" : "s", args->workers, args->workers == 1 ? "" : "s",
           r->codecs);
    if (args->each.density < 1)
        printf(", density %g%s", args->each.density,
               args->each.same_blocks ? " (same blocks)" : "");
    printf(", %s, tributary %s\n",
           args->service != NULL ? args->service : "a local tribd", trib_version());
    add_columns(&r->out.rows, args->each.check);
    tool_table_head(&r->out.rows);
}

static void table_row(struct agg_report *r, const struct agg_result *p)
{
    struct tool_table *t = &r->out.rows;
    char size[32];

    tool_table_cell(t, "%s", perf_size_text(p->bytes, size, sizeof(size)));
    tool_table_cell(t, "%llu", (unsigned long long)p->operations);
    tool_table_cell(t, "%.3f", p->GBps);
    perf_output_us(t, p->us.p50);
    perf_output_us(t, p->us.p95);
    perf_output_us(t, p->us.p99);
    perf_output_us(t, p->us.max);
    tool_table_cell(t, "%.3f", p->workers_cpu);
    if (isnan(p->tribd_cpu))
        tool_table_cell(t, "-");
    else
        tool_table_cell(t, "%.3f", p->tribd_cpu);
    tool_table_cell(t, "%.3f", p->jain);
    tool_table_cell(t, "%llu", (unsigned long long)p->fell_back);
    if (r->args->each.check) {
        tool_table_cell(t, "%.2g", p->nmse);
        tool_table_cell(t, "%llu", (unsigned long long)p->wrong);
    }
    tool_table_row_end(t);
}

/* --- csv --- */

static void csv_header(FILE *f)
{
    fputs(
        "jobs,workers,codec,chunk,density,same_blocks,bytes,seconds,operations,GBps,"
        "samples,p50_us,p95_us,p99_us,"
        "max_us,workers_cpu_s_per_GB,tribd_cpu_s_per_GB,tribd_elements_per_cpu_s,jain,"
        "jain_codec,fell_back,jobs_lost,jobs_failed,nmse,wrong,version\n",
        f);
}

/* Unknown numbers are empty cells. */
static void csv_number(FILE *f, const char *format, double value)
{
    fputc(',', f);
    if (isfinite(value))
        fprintf(f, format, value); /* NOLINT: csv_row passes one of three constant
                                    * formats */
}

static void csv_row(const struct agg_report *r, const struct agg_result *p)
{
    const struct agg_args *args = r->args;
    FILE *f = r->out.csv;

    fprintf(f, "%d,%d,\"%s\",%zu,%g,%d,%zu,%.4f,%llu,%.6f,%zu", args->jobs,
            args->workers, r->codecs, args->each.chunk, args->each.density,
            args->each.same_blocks, p->bytes, p->seconds,
            (unsigned long long)p->operations, p->GBps, p->us.n);
    fprintf(f, ",%.2f,%.2f,%.2f,%.2f,%.6f", p->us.p50, p->us.p95, p->us.p99, p->us.max,
            p->workers_cpu);
    csv_number(f, "%.6f", p->tribd_cpu);
    csv_number(f, "%.6g", p->tribd_elements);
    fprintf(f, ",%.5f,%.5f,%llu,%d,%d", p->jain, p->jain_codec,
            (unsigned long long)p->fell_back, p->lost, p->failed);
    csv_number(f, "%.6g", p->nmse);
    if (args->each.check)
        fprintf(f, ",%llu", (unsigned long long)p->wrong);
    else
        fputc(',', f);
    fprintf(f, ",%s\n", trib_version());
}

/* --- json --- */

static json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *json_job(const struct agg_job_result *j)
{
    return json_pack("{s:s, s:s, s:i, s:I, s:I, s:f, s:I, s:b, s:s}", "name", j->name,
                     "codec", j->codec, "weight", j->weight, "operations",
                     (json_int_t)j->operations, "fell_back", (json_int_t)j->fell_back,
                     "GBps", j->GBps, "wrong", (json_int_t)j->wrong, "failed",
                     j->failed, "why", j->why);
}

static json_t *json_result(const struct agg_report *r, const struct agg_result *p)
{
    const struct perf_summary *us = &p->us;
    json_t *jobs = json_array();
    json_t *o = json_pack(
        "{s:I, s:f, s:I, s:f, s:I, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:f, s:f, s:I, "
        "s:i, s:i}",
        "bytes", (json_int_t)p->bytes, "seconds", p->seconds, "operations",
        (json_int_t)p->operations, "GBps", p->GBps, "samples", (json_int_t)us->n,
        "p50_us", us->p50, "p95_us", us->p95, "p99_us", us->p99, "max_us", us->max,
        "workers_cpu_s_per_GB", p->workers_cpu, "tribd_cpu_s_per_GB",
        json_number(p->tribd_cpu), "tribd_elements_per_cpu_s",
        json_number(p->tribd_elements), "jain", p->jain, "jain_codec", p->jain_codec,
        "fell_back", (json_int_t)p->fell_back, "jobs_lost", p->lost, "jobs_failed",
        p->failed);

    for (int job = 0; job < r->args->jobs; job++)
        json_array_append_new(jobs, json_job(&p->jobs[job]));
    json_object_set_new(o, "jobs", jobs);
    if (r->args->each.check) {
        json_object_set_new(o, "nmse", json_number(p->nmse));
        json_object_set_new(o, "wrong", json_integer((json_int_t)p->wrong));
    }
    return o;
}

static json_t *json_run(const struct agg_report *r)
{
    const struct agg_args *args = r->args;
    const char *service = args->service != NULL ? args->service : "its own";

    return json_pack("{s:s, s:i, s:i, s:s, s:I, s:f, s:b, s:s, s:f, s:I}", "command",
                     "agg", "jobs", args->jobs, "workers", args->workers, "codec",
                     r->codecs, "chunk_bytes", (json_int_t)args->each.chunk, "density",
                     args->each.density, "same_blocks", args->each.same_blocks,
                     "service", service, "seconds", args->seconds, "iters",
                     (json_int_t)args->each.iters);
}

/* --- all outputs --- */

struct agg_report *agg_report_open(const struct agg_args *args, char *why,
                                   size_t why_bytes)
{
    struct agg_report *r = calloc(1, sizeof(*r));

    if (r == NULL) {
        snprintf(why, why_bytes, "out of memory");
        return NULL;
    }
    r->args = args;
    join_codecs(args, r->codecs, sizeof(r->codecs));
    if (!perf_output_open(&r->out, args->each.csv, args->each.json, why, why_bytes)) {
        free(r);
        return NULL;
    }
    if (r->out.csv != NULL)
        csv_header(r->out.csv);
    if (r->out.table)
        table_open(r);
    perf_output_flush(&r->out);
    return r;
}

void agg_report_add(struct agg_report *r, const struct agg_result *result)
{
    if (r->out.table)
        table_row(r, result);
    if (r->out.csv != NULL)
        csv_row(r, result);
    if (r->out.results != NULL)
        json_array_append_new(r->out.results, json_result(r, result));
    perf_output_flush(&r->out);
}

bool agg_report_finish(struct agg_report *r, char *why, size_t why_bytes)
{
    json_t *all = NULL;

    if (r->out.results != NULL)
        all = perf_output_document(&r->out, r->args->each.argc, r->args->each.argv,
                                   json_run(r));
    return perf_output_finish(&r->out, all, why, why_bytes);
}

void agg_report_free(struct agg_report *r)
{
    if (r == NULL)
        return;
    perf_output_free(&r->out);
    free(r);
}
