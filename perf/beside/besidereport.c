/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output rows of groups, neighbors and store.
 */
#include <stdlib.h>

#include "perf/beside/beside.h"
#include "perf/common/output.h"

struct beside_report {
    const struct beside_args *args;
    int ranks;
    struct perf_output out;
};

/* Return operations per second over all ranks; GB/s follows from it. */
static double each_second(const struct beside_report *r, const struct beside_row *row)
{
    return row->us.p50 > 0 ? 1e6 * r->ranks / row->us.p50 : 0;
}

static double GBps(const struct beside_report *r, const struct beside_row *row)
{
    return 1e-9 * (double)row->bytes * each_second(r, row);
}

static const char *memory_text(const struct beside_args *args)
{
    static const char *const names[] = {"alloc", "malloc", "register"};

    return names[args->each.memory];
}

static void table_open(struct beside_report *r)
{
    const struct beside_args *args = r->args;

    printf("%s and an all-reduce of the same bytes, float32, memory %s, %d rank%s, "
           "%ld rounds, tributary %s\n",
           args->kind->name, memory_text(args), r->ranks, r->ranks == 1 ? "" : "s",
           args->rounds, trib_version());
    struct tool_table *t = &r->out.rows;
    tool_table_add(t, "size", "", 10, 0);
    tool_table_add(t, "way", "", -19, 0);
    tool_table_add(t, "p50", "µs ", 11, 0);
    tool_table_add(t, "min", "µs ", 11, 4);
    tool_table_add(t, "max", "µs ", 11, 5);
    tool_table_add(t, "all ranks", "1/s", 11, 3);
    tool_table_add(t, "all ranks", "GB/s", 10, 2);
    tool_table_add(t, "ratio", "", 8, 0);
    tool_table_add(t, "min", "", 8, 1);
    tool_table_add(t, "max", "", 8, 1);
    tool_table_head(t);
}

static void table_row(struct beside_report *r, const struct beside_row *row)
{
    struct tool_table *t = &r->out.rows;
    char size[32];

    tool_table_cell(t, "%s", perf_size_text(row->bytes, size, sizeof(size)));
    tool_table_cell(t, "%s", row->way);
    perf_output_us(t, row->us.p50);
    perf_output_us(t, row->us.min);
    perf_output_us(t, row->us.max);
    tool_table_cell(t, "%.0f", each_second(r, row));
    tool_table_cell(t, "%.3f", GBps(r, row));
    tool_table_cell(t, "%.3f", row->ratio.p50);
    tool_table_cell(t, "%.3f", row->ratio.min);
    tool_table_cell(t, "%.3f", row->ratio.max);
    tool_table_row_end(t);
}

static void csv_row(const struct beside_report *r, const struct beside_row *row)
{
    fprintf(r->out.csv,
            "%s,%s,%d,%zu,%zu,%.3f,%.3f,%.3f,%.1f,%.6f,%.4f,%.4f,%.4f,%s,%s\n",
            r->args->kind->name, row->way, r->ranks, row->bytes, row->us.n, row->us.p50,
            row->us.min, row->us.max, each_second(r, row), GBps(r, row), row->ratio.p50,
            row->ratio.min, row->ratio.max, memory_text(r->args), trib_version());
}

static json_t *json_row(const struct beside_report *r, const struct beside_row *row)
{
    return json_pack("{s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "way",
                     row->way, "bytes", (json_int_t)row->bytes, "rounds",
                     (json_int_t)row->us.n, "p50_us", row->us.p50, "min_us",
                     row->us.min, "max_us", row->us.max, "each_second",
                     each_second(r, row), "GBps", GBps(r, row), "ratio", row->ratio.p50,
                     "min_ratio", row->ratio.min, "max_ratio", row->ratio.max);
}

struct beside_report *beside_report_open(const struct beside_args *args, int ranks,
                                         char *why, size_t why_bytes)
{
    struct beside_report *r = calloc(1, sizeof(*r));

    if (r == NULL) {
        snprintf(why, why_bytes, "out of memory");
        return NULL;
    }
    r->args = args;
    r->ranks = ranks;
    if (!perf_output_open(&r->out, args->each.csv, args->each.json, why, why_bytes)) {
        free(r);
        return NULL;
    }
    if (r->out.csv != NULL)
        fputs("command,way,ranks,bytes,rounds,p50_us,min_us,max_us,each_second,GBps,"
              "ratio,min_ratio,max_ratio,memory,version\n",
              r->out.csv);
    if (r->out.table)
        table_open(r);
    perf_output_flush(&r->out);
    return r;
}

void beside_report_add(struct beside_report *r, const struct beside_row *row)
{
    if (r->out.table)
        table_row(r, row);
    if (r->out.csv != NULL)
        csv_row(r, row);
    if (r->out.results != NULL)
        json_array_append_new(r->out.results, json_row(r, row));
    perf_output_flush(&r->out);
}

bool beside_report_finish(struct beside_report *r, const char *tell, char *why,
                          size_t why_bytes)
{
    json_t *all = NULL;

    if (r->out.table && tell[0] != '\0')
        puts(tell);
    if (r->out.results != NULL)
        all = perf_output_document(&r->out, r->args->each.argc, r->args->each.argv,
                                   json_pack("{s:s, s:i, s:I, s:s}", "command",
                                             r->args->kind->name, "ranks", r->ranks,
                                             "rounds", (json_int_t)r->args->rounds,
                                             "memory", memory_text(r->args)));
    return perf_output_finish(&r->out, all, why, why_bytes);
}

void beside_report_free(struct beside_report *r)
{
    if (r == NULL)
        return;
    perf_output_free(&r->out);
    free(r);
}
