/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output rows of put.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "perf/common/output.h"
#include "perf/common/samples.h"
#include "perf/common/sizes.h"
#include "perf/put/put.h"
#include "transport/ops.h"

struct put_report {
    const struct put_args *args;
    const struct put_endpoint *endpoint;
    struct trib_route route;
    struct perf_output out;
};

/* Return the transport that "auto" chose. */
static const char *transport_text(const struct put_report *r)
{
    const char *text = r->endpoint->setup.transport;
    return trib_text_is_auto(text) ? r->route.name : text;
}

static const char *ways(const struct put_args *args)
{
    return args->bidirectional ? "both" : "one";
}

/* --- table --- */

static void add_columns(struct tool_table *t, const struct put_args *args)
{
    tool_table_add(t, "size", "", 10, 0);
    if (args->latency) {
        tool_table_add(t, "samples", "", 8, 5);
        tool_table_add(t, "p50", "µs ", 11, 0);
        tool_table_add(t, "p99", "µs ", 11, 1);
        tool_table_add(t, "p99.9", "µs ", 11, 7);
        tool_table_add(t, "min", "µs ", 11, 3);
        tool_table_add(t, "max", "µs ", 11, 4);
    }
    if (args->bandwidth) {
        tool_table_add(t, "writes", "", 9, 6);
        tool_table_add(t, "bandwidth", "GB/s", 10, 0);
        tool_table_add(t, "messages", "million/s", 10, 1);
        tool_table_add(t, "CPU", "s/GB", 10, 2);
    }
    if (args->check)
        tool_table_add(t, "wrong", "bytes", 11, 0);
}

static void table_open(struct put_report *r)
{
    const struct put_args *args = r->args;
    printf("put over %s, depth %d, %s, %s to %s, tributary %s\n", transport_text(r),
           args->depth, args->bidirectional ? "both ways" : "one way",
           r->endpoint->me.host, r->endpoint->other.host, trib_version());
    if (args->latency)
        puts("times are one-way: half of a round trip");
    add_columns(&r->out.rows, args);
    tool_table_head(&r->out.rows);
}

static void table_row(struct put_report *r, const struct put_result *p)
{
    struct tool_table *t = &r->out.rows;
    char size[32];

    tool_table_cell(t, "%s", perf_size_text(p->bytes, size, sizeof(size)));
    if (r->args->latency) {
        tool_table_cell(t, "%zu", p->us.n);
        perf_output_us(t, p->us.p50);
        perf_output_us(t, p->us.p99);
        perf_output_us(t, p->us.p999);
        perf_output_us(t, p->us.min);
        perf_output_us(t, p->us.max);
    }
    if (r->args->bandwidth) {
        tool_table_cell(t, "%llu", (unsigned long long)p->writes);
        tool_table_cell(t, "%.4f", p->GBps);
        tool_table_cell(t, "%.4f", 1e-6 * p->messages_per_s);
        if (isfinite(p->cpu_s_per_GB))
            tool_table_cell(t, "%.3f", p->cpu_s_per_GB);
        else
            tool_table_cell(t, "-");
    }
    if (r->args->check)
        tool_table_cell(t, "%.0f", p->wrong);
    tool_table_row_end(t);
}

/* --- csv --- */

static void csv_header(FILE *f)
{
    fputs(
        "transport,depth,ways,bytes,iters,p50_us,p99_us,p999_us,min_us,max_us,mean_us,"
        "writes,GBps,messages_per_s,cpu_s_per_GB,wrong,client,server,version\n",
        f);
}

/* Figures not measured are empty cells. Transport texts have commas, so quote them. */
static void csv_row(const struct put_report *r, const struct put_result *p)
{
    const struct perf_summary *us = &p->us;
    FILE *f = r->out.csv;
    fprintf(f, "\"%s\",%d,%s,%zu", transport_text(r), r->args->depth, ways(r->args),
            p->bytes);
    if (r->args->latency)
        fprintf(f, ",%zu,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f", us->n, us->p50, us->p99,
                us->p999, us->min, us->max, us->mean);
    else
        fputs(",,,,,,,", f);
    if (r->args->bandwidth)
        fprintf(f, ",%llu,%.6f,%.1f,", (unsigned long long)p->writes, p->GBps,
                p->messages_per_s);
    else
        fputs(",,,,", f);
    if (isfinite(p->cpu_s_per_GB))
        fprintf(f, "%.6f", p->cpu_s_per_GB);
    if (r->args->check)
        fprintf(f, ",%.0f", p->wrong);
    else
        fputc(',', f);
    fprintf(f, ",%s,%s,%s\n", r->endpoint->me.host, r->endpoint->other.host,
            trib_version());
}

/* --- json --- */

static json_t *json_result(const struct put_args *args, const struct put_result *p)
{
    const struct perf_summary *us = &p->us;
    json_t *o = json_pack("{s:I}", "bytes", (json_int_t)p->bytes);
    if (args->latency)
        json_object_update_new(o, json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:f}",
                                            "iters", (json_int_t)us->n, "p50_us",
                                            us->p50, "p99_us", us->p99, "p999_us",
                                            us->p999, "min_us", us->min, "max_us",
                                            us->max, "mean_us", us->mean));
    if (args->bandwidth)
        json_object_update_new(
            o,
            json_pack("{s:I, s:f, s:f, s:o}", "writes", (json_int_t)p->writes, "GBps",
                      p->GBps, "messages_per_s", p->messages_per_s, "cpu_s_per_GB",
                      isfinite(p->cpu_s_per_GB) ? json_real(p->cpu_s_per_GB)
                                                : json_null()));
    if (args->check)
        json_object_set_new(o, "wrong", json_integer((json_int_t)p->wrong));
    return o;
}

static json_t *json_all(const struct put_report *r)
{
    const struct put_args *args = r->args;
    json_t *about =
        json_pack("{s:s, s:s, s:i, s:s, s:b, s:s, s:s, s:s}", "command", "put",
                  "transport", transport_text(r), "depth", args->depth, "ways",
                  ways(args), "check", args->check, "client", r->endpoint->me.host,
                  "server", r->endpoint->other.host, "latency", "half of a round trip");
    return perf_output_document(&r->out, args->argc, args->argv, about);
}

/* --- all outputs --- */

struct put_report *put_report_open(const struct put_args *args,
                                   const struct put_endpoint *endpoint, char *why,
                                   size_t why_bytes)
{
    struct put_report *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        snprintf(why, why_bytes, "out of memory");
        return NULL;
    }
    r->args = args;
    r->endpoint = endpoint;
    endpoint->t->ops->route(endpoint->t, !endpoint->server, &r->route);
    if (!perf_output_open(&r->out, args->csv, args->json, why, why_bytes)) {
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

void put_report_add(struct put_report *r, const struct put_result *result)
{
    if (r->out.table)
        table_row(r, result);
    if (r->out.csv != NULL)
        csv_row(r, result);
    if (r->out.results != NULL)
        json_array_append_new(r->out.results, json_result(r->args, result));
    perf_output_flush(&r->out);
}

bool put_report_finish(struct put_report *r, char *why, size_t why_bytes)
{
    json_t *all = r->out.results == NULL ? NULL : json_all(r);
    return perf_output_finish(&r->out, all, why, why_bytes);
}

void put_report_free(struct put_report *r)
{
    if (r == NULL)
        return;
    perf_output_free(&r->out);
    free(r);
}
